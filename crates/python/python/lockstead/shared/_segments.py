"""Where locks lie: in anonymous arenas, in segments with names, and how both reach children."""

import os
import weakref
from multiprocessing import context, reduction

from lockstead import _lockstead

# What segments are made like; see `configure`.
_sizes = {"participants": 1024, "claims": 32}

# The row of an arena in which locks of a kind lie.
_ROWS = {"mutex": "mutexes", "rwlock": "rwlocks", "semaphore": "semaphores"}


def configure(*, participants=None, claims=None):
    """Sets what segments are like that are made from now on, those of anonymous locks and named ones."""
    _lockstead.configure(participants=participants, claims=claims)
    if participants is not None:
        _sizes["participants"] = participants
    if claims is not None:
        _sizes["claims"] = claims


def path_of(name):
    """Returns the file of the lock with this name: it is the user's, and lies in shared memory."""
    if not name or "/" in name or "\0" in name:
        raise ValueError(f"name: some characters, and no slash: {name!r}; path= takes a path")
    return f"/dev/shm/lockstead-{os.getuid()}-{name}"


def unlink(name=None, *, path=None):
    """Removes the file of a lock with a name.

    Who has the lock keeps it, and who makes one of that name from now on makes another one. Raises
    `FileNotFoundError` if there is none.
    """
    path = path_of(name) if path is None else os.fspath(path)
    os.unlink(path)
    try:
        os.unlink(path + ".items")
    except FileNotFoundError:
        pass


def place(kind, name, path, at, mode, units=0):
    """Returns the segment and the offset of one lock, and whether it is a new one that has no name."""
    if name is None and path is None:
        if at is not None:
            raise ValueError("at= says which lock of a file; give path= too")
        segment, (offset,) = _lockstead.allocate([(_ROWS[kind], 1)])
        return segment, offset, True
    segment = _open_or_create(name, path, "", [("", kind, 1, False)], mode, units)
    offset, found = segment.find(at)
    if found != kind:
        raise ValueError(f"{segment.path}: that lock is a {found}, and not a {kind}")
    return segment, offset, False


def places(rows, struct, fields, name, path, mode):
    """Returns the segment and the offsets of several parts, in the order of the fields."""
    if name is None and path is None:
        return _lockstead.allocate(rows)
    segment = _open_or_create(name, path, struct, fields, mode, 0)
    known = {part: offset for part, _, offset, _ in segment.parts()}
    try:
        return segment, [known[field] for field, *_ in fields]
    except KeyError as missing:
        raise ValueError(f"{segment.path}: made for something else: it has no {missing}") from None


def _open_or_create(name, path, struct, fields, mode, units):
    if name is not None and path is not None:
        raise ValueError("name and path: one of them")
    path = path_of(name) if path is None else os.fspath(path)
    try:
        # Whatever made it: the lock may be one of several there, or have data in it.
        return _lockstead.Segment.open(path)
    except FileNotFoundError:
        return _lockstead.Segment.create(
            path, struct, fields, existing=True, mode=mode, units=units, **_sizes
        )


class Handle:
    """A segment in a pickle. The locks of one segment share one, so that its descriptor goes along once."""

    __slots__ = ("segment", "__weakref__")
    _known = weakref.WeakValueDictionary()

    def __init__(self, segment):
        self.segment = segment

    @classmethod
    def of(cls, segment):
        handle = cls._known.get(segment.fileno())
        if handle is None:
            handle = cls._known[segment.fileno()] = cls(segment)
        return handle

    def __reduce__(self):
        if self.segment.path is not None:
            return _opened, (self.segment.path,)
        return _inherited, (descriptor(self, self.segment.fileno()),)


def descriptor(what, fd):
    """Returns a descriptor as it is pickled for a child; not for processes that run already."""
    context.assert_spawning(what)
    return reduction.DupFd(fd)


def _opened(path):
    return Handle(_lockstead.Segment.open(path))


def _inherited(duplicate):
    fd = duplicate.detach()
    try:
        return Handle(_lockstead.Segment.from_fd(fd))
    finally:
        os.close(fd)
