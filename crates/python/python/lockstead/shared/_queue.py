"""Queues of objects between processes."""

import os
from multiprocessing import reduction
from queue import Empty, Full

from lockstead import _lockstead
from lockstead.shared import _aio
from lockstead.shared._segments import Handle, descriptor, path_of, places

_FIELDS = [
    ("lock", "mutex", 1, False),
    ("not_empty", "condvar", 1, False),
    ("not_full", "condvar", 1, False),
    ("all_done", "condvar", 1, False),
]


class Queue:
    """A queue of objects that threads of several processes put and get.

    Unlike multiprocessing's it has no thread and no pipe: `put` pickles, and has put the object when it
    returns. The memory grows with what is in the queue. A process that is killed in the middle of `put`
    or `get` leaves the queue in order, with the object in it or without.
    """

    def __init__(self, maxsize=0, name=None, *, path=None, mode=0o600, ctx=None):
        most = maxsize if maxsize > 0 else 0
        rows = [("mutexes", 1), *[("conditions", 1)] * 3]
        segment, (mutex, *conditions) = places(rows, "Queue", _FIELDS, name, path, mode)
        if name is not None or path is not None:
            path = (path_of(name) if path is None else os.fspath(path)) + ".items"
        self._begin(
            _lockstead.Ring(segment, mutex, conditions, most=most, path=path, mode=mode), path
        )

    def _begin(self, ring, path):
        self._ring = ring
        self._path = path
        self._closed = False

    def put(self, obj, block=True, timeout=None):
        """Puts an object, waiting for room if `block`, at most `timeout` seconds; else raises `Full`."""
        self._check()
        if not self._ring.put(bytes(reduction.ForkingPickler.dumps(obj)), bool(block), timeout):
            raise Full

    def get(self, block=True, timeout=None):
        """Takes an object, waiting for one if `block`, at most `timeout` seconds; else raises `Empty`."""
        self._check()
        message = self._ring.get(bool(block), timeout)
        if message is None:
            raise Empty
        return reduction.ForkingPickler.loads(message)

    def put_nowait(self, obj):
        """Puts an object if there is room; else raises `Full`."""
        self.put(obj, False)

    def get_nowait(self):
        """Takes an object if there is one; else raises `Empty`."""
        return self.get(False)

    def qsize(self):
        """Returns how many objects are in the queue."""
        return self._ring.qsize()

    def empty(self):
        """Tells whether no object is in the queue."""
        return self.qsize() == 0

    def full(self):
        """Tells whether there is no room for another object."""
        return bool(self._ring.most()) and self.qsize() >= self._ring.most()

    async def get_async(self, timeout=None):
        """Takes an object, while the event loop goes on. Raises `Empty` when the time is over."""
        return await _aio.taken(self.get_nowait, Empty, self._ring.wait_items, timeout)

    async def put_async(self, obj, timeout=None):
        """Puts an object, while the event loop goes on. Raises `Full` when the time is over."""
        return await _aio.taken(lambda: self.put_nowait(obj), Full, self._ring.wait_room, timeout)

    def close(self):
        """Ends the use of the queue by this process; what is in it stays for the others."""
        self._closed = True

    def join_thread(self):
        """Does nothing: there is no thread, and what was put is in the queue."""
        if not self._closed:
            raise ValueError(f"Queue {self!r} is not closed")

    def cancel_join_thread(self):
        """Does nothing, for the same reason."""

    def _check(self):
        if self._closed:
            raise ValueError(f"Queue {self!r} is closed")

    def __reduce__(self):
        segment = self._ring._segment
        fd = None if self._path else descriptor(self, self._ring.fileno())
        return _queue, (type(self), Handle.of(segment), self._ring._offsets, self._path, fd)


def _queue(cls, handle, offsets, path, duplicate):
    mutex, conditions = offsets
    fd = None if duplicate is None else duplicate.detach()
    try:
        ring = _lockstead.Ring(handle.segment, mutex, conditions, most=0, fd=fd, path=path)
    finally:
        if fd is not None:
            os.close(fd)
    self = cls.__new__(cls)
    self._begin(ring, path)
    return self


class JoinableQueue(Queue):
    """A `Queue` whose objects are declared done, and which can be waited for until all are."""

    def task_done(self):
        """Declares one object that was taken done. Raises `ValueError` if none is left to be."""
        self._ring.task_done()

    def join(self):
        """Waits until all objects that were put are declared done."""
        self._ring.join()
