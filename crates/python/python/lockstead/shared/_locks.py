"""Locks with an owner or with units: `Lock`, `RLock`, `RWLock`, `Semaphore`, `BoundedSemaphore`."""

import multiprocessing
import threading

from lockstead import _lockstead
from lockstead.shared import _aio
from lockstead.shared._segments import Handle, place

_MOST_UNITS = 2**31 - 1


class Recovery:
    """What `lock.recover()` returns: has the lock alone, and declares things consistent at its end."""

    __slots__ = ("_lock", "_timeout", "owner_died")

    def __init__(self, lock, timeout):
        self._lock = lock
        self._timeout = timeout
        self.owner_died = False

    def __enter__(self):
        died = self._lock._acquire_any(True, self._timeout)
        if died is None:
            raise TimeoutError("the lock to be recovered was not to be had in time")
        self.owner_died = died
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            self._lock.mark_consistent()
        self._lock.release()


class _SemLock:
    """What the queues of multiprocessing ask of the semaphore below a lock of theirs."""

    @property
    def _semlock(self):
        return self

    def _is_zero(self):
        return self._get_value() == 0


class _Mutex(_SemLock, _aio.AsyncLock, _lockstead.Mutex):
    _recursive = False

    def __new__(cls, name=None, *, path=None, at=None, mode=0o600, on_owner_death=None, ctx=None):
        segment, offset, _ = place("mutex", name, path, at, mode)
        return super().__new__(cls, segment, offset, cls._recursive, on_owner_death)

    @classmethod
    def _at(cls, handle, offset, on_owner_death):
        return _lockstead.Mutex.__new__(
            cls, handle.segment, offset, cls._recursive, on_owner_death
        )

    def recover(self, timeout=None):
        """Returns a context that has the lock, whatever its last holder left, to repair what it protects.

        Left without an exception it has declared that to be in order. Its attribute `owner_died` says
        whether there was anything to repair. Raises `TimeoutError` if the lock is not free in time.
        """
        return Recovery(self, timeout)

    def __reduce__(self):
        handle = Handle.of(self._segment)
        return _mutex, (type(self), handle, self._offset, self._on_owner_death)

    def _get_value(self):
        return 0 if self.locked() else 1

    def _holder(self):
        if self._is_mine():
            name = multiprocessing.current_process().name
            if threading.current_thread() is not threading.main_thread():
                name += "|" + threading.current_thread().name
            return name
        if not self.locked():
            return "None"
        return "SomeOtherThread" if self._count() else "SomeOtherProcess"


def _mutex(cls, handle, offset, on_owner_death):
    return cls._at(handle, offset, on_owner_death)


class Lock(_Mutex):
    """A lock between threads of several processes, whose next holder learns of a holder's death."""

    def __repr__(self):
        return f"<{type(self).__name__}(owner={self._holder()})>"


class RLock(_Mutex):
    """A `Lock` that its owner may acquire again; it is released as often as it was acquired."""

    _recursive = True
    # Tasks of one event loop share its thread: it must not be taken for the owner of all of them.
    _loop_may_own = False

    def __repr__(self):
        count = self._count() if self._is_mine() else (1 if self.locked() else 0)
        count = "nonzero" if count and not self._is_mine() else count
        return f"<{type(self).__name__}({self._holder()}, {count})>"


class _Side:
    """One side of an `RWLock`, for `with` and `async with`."""

    __slots__ = ("_lock", "_acquire", "_tasks")
    _loop_may_own = False

    def __init__(self, lock, acquire):
        self._lock = lock
        self._acquire = acquire
        self._tasks = {}

    def __enter__(self):
        self._acquire()
        return self._lock

    def __exit__(self, *error):
        self._lock.release()

    async def __aenter__(self):
        await _aio.acquire(self._lock, self._tasks, self._acquire, None)
        return self._lock

    async def __aexit__(self, *error):
        await _aio.release(self._lock, self._tasks)


class RWLock(_lockstead.RwLock):
    """Many readers or one writer, among threads of several processes.

    A reader's death needs no repair. After a writer's, the next one, reader or writer, is told.
    """

    def __new__(cls, name=None, *, path=None, at=None, mode=0o600, on_owner_death=None, ctx=None):
        segment, offset, _ = place("rwlock", name, path, at, mode)
        return super().__new__(cls, segment, offset, on_owner_death)

    def read(self):
        """Returns a context that reads under the lock, for `with` and `async with`."""
        return _Side(self, self.acquire_read)

    def write(self):
        """Returns a context that has the lock alone, for `with` and `async with`."""
        return _Side(self, self.acquire_write)

    def recover(self, timeout=None):
        """Returns a context that has the lock alone, to repair what a dead writer left; see `Lock`."""
        return Recovery(self, timeout)

    def __reduce__(self):
        handle = Handle.of(self._segment)
        return _rwlock, (type(self), handle, self._offset, self._on_owner_death)

    def __repr__(self):
        died = ", owner died" if self.owner_died else ""
        return f"<{type(self).__name__} at {self._offset:#x}{died}>"


def _rwlock(cls, handle, offset, on_owner_death):
    return _lockstead.RwLock.__new__(cls, handle.segment, offset, on_owner_death)


class Semaphore(_SemLock, _aio.AsyncLock, _lockstead.Semaphore):
    """A counter of free units, which `acquire` takes and `release` gives back.

    A thread has the units that it took, and its death gives them back, however it ends. With
    `held=False` a unit is used up when it is taken, as multiprocessing's are: for semaphores that one
    thread releases and another one acquires.
    """

    _bounded = False

    def __new__(cls, value=1, name=None, *, path=None, at=None, mode=0o600, held=True, ctx=None):
        if not 0 <= value <= _MOST_UNITS:
            raise ValueError(f"value: 0 to {_MOST_UNITS}, not {value}")
        segment, offset, is_new = place("semaphore", name, path, at, mode, value)
        return super().__new__(
            cls,
            segment,
            offset,
            held=held,
            bound=value if cls._bounded else None,
            units=value if is_new else None,
        )

    def get_value(self):
        """Returns how many units are free."""
        return self._get_value()

    def __reduce__(self):
        handle = Handle.of(self._segment)
        return _semaphore, (type(self), handle, self._offset, self._held, self._bound)

    def __repr__(self):
        bound = f", maxvalue={self._bound}" if self._bounded else ""
        return f"<{type(self).__name__}(value={self._get_value()}{bound})>"


def _semaphore(cls, handle, offset, held, bound):
    return _lockstead.Semaphore.__new__(cls, handle.segment, offset, held=held, bound=bound)


class BoundedSemaphore(Semaphore):
    """A `Semaphore` that never has more units than it began with: `release` raises `ValueError`."""

    _bounded = True
