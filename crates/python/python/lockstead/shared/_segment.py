"""Segments with several locks and data, which programs in Rust, C and Python share."""

import mmap
import os

from lockstead import _lockstead
from lockstead.shared._locks import BoundedSemaphore, Lock, RLock, RWLock, Semaphore
from lockstead.shared._segments import Handle, _sizes

_KINDS = {
    Lock: "mutex",
    RLock: "mutex",
    RWLock: "rwlock",
    Semaphore: "semaphore",
    BoundedSemaphore: "semaphore",
}


class Segment:
    """A file of locks and data, open in this process.

        shop = Segment.create("/dev/shm/shop", {"orders": Lock, "shelves": (Lock, 1000), "total": 8})
        with shop.lock("shelves[3]"):
            shop.data("total")[:] = (5).to_bytes(8, "little")

    A program in Rust opens the same file as `Segment::<Shop>` with a struct of these fields, one in C by
    `lks_shm_open`, as long as they describe the same; and files that they made are opened by `Segment`.
    """

    def __init__(self, path):
        self._segment = _lockstead.Segment.open(os.fspath(path))
        self._map = None

    @classmethod
    def create(cls, path, fields, *, struct="Segment", mode=0o600, units=0):
        """Makes a new segment in a file of this path. Raises `FileExistsError` if there is one.

        `fields` are the names and what they are: `Lock`, `RWLock` or `Semaphore`, a pair of one of them
        and how many, or how many bytes of data. `units` is what each semaphore begins with.
        """
        described = [_describe(name, field) for name, field in fields.items()]
        self = cls.__new__(cls)
        self._segment = _lockstead.Segment.create(
            os.fspath(path), struct, described, existing=False, mode=mode, units=units, **_sizes
        )
        self._map = None
        return self

    @property
    def path(self):
        """The path of the file."""
        return self._segment.path

    def parts(self):
        """Returns what the segment consists of: name, type, offset and bytes of each part."""
        return self._segment.parts()

    def lock(self, name=None, cls=None, *, on_owner_death=None, held=True, bound=None):
        """Returns the lock of this name, as `lockstead shm` writes it; the only one without a name.

        It is a `Lock`, `RWLock` or `Semaphore`, or of the class `cls`. Raises `KeyError` if there is none.
        """
        offset, kind = self._segment.find(name)
        if cls is None:
            cls = {"mutex": Lock, "rwlock": RWLock, "semaphore": Semaphore}.get(kind)
        if cls is None or _KINDS.get(cls) != kind:
            raise ValueError(f"{name}: a {kind}, which is not of that class")
        if kind == "mutex":
            return cls._at(Handle.of(self._segment), offset, on_owner_death)
        if kind == "rwlock":
            return _lockstead.RwLock.__new__(cls, self._segment, offset, on_owner_death)
        return _lockstead.Semaphore.__new__(cls, self._segment, offset, held=held, bound=bound)

    def data(self, name):
        """Returns the bytes of this name, which all programs share, to be read and written."""
        for part, _, offset, size in self._segment.parts():
            if part == name:
                if self._map is None:
                    self._map = mmap.mmap(self._segment.fileno(), 0)
                start = self._segment.root[0] + offset
                return memoryview(self._map)[start : start + size]
        raise KeyError(f"no part {name!r} in the segment")

    def __repr__(self):
        return f"<Segment {self.path}>"


def _describe(name, field):
    if isinstance(field, int):
        return name, "u8", field, True
    many = isinstance(field, tuple)
    cls, count = field if many else (field, 1)
    try:
        return name, _KINDS[cls], count, many
    except (KeyError, TypeError):
        raise TypeError(f"{name}: a class of locks, a pair of one and a number, or bytes") from None
