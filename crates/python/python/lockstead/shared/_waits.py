"""Waiting for something to happen: `Condition`, `Event`, `Barrier`."""

import threading
import time

from lockstead import _lockstead
from lockstead.shared import _aio
from lockstead.shared._locks import RLock, _Mutex
from lockstead.shared._segments import Handle, places


class Condition(_lockstead.Condition):
    """A lock, and waiting with it for what it protects to change."""

    def __new__(
        cls, lock=None, name=None, *, path=None, mode=0o600, on_owner_death=None, ctx=None
    ):
        if lock is not None and not isinstance(lock, _Mutex):
            raise TypeError("lock: a Lock or RLock of lockstead.shared")
        if lock is None:
            segment, (mutex, changed, state) = places(
                [("mutexes", 1), ("conditions", 1), ("words", 2)],
                "Condition",
                [("lock", "mutex", 1, False), ("changed", "condvar", 1, False), ("state", "u64", 2, True)],
                name,
                path,
                mode,
            )
            lock = RLock._at(Handle.of(segment), mutex, on_owner_death)
        elif name is not None or path is not None:
            raise ValueError("lock and name: one of them; a condition with a name has a lock of its own")
        else:
            rows = [("conditions", 1), ("words", 2)]
            segment, (changed, state) = _lockstead.allocate(rows, lock._segment)
        return cls._at(lock, Handle.of(segment), changed, state)

    @classmethod
    def _at(cls, lock, handle, changed, state):
        self = _lockstead.Condition.__new__(cls, lock, handle.segment, changed, state)
        self._tasks = {}
        return self

    def acquire(self, block=True, timeout=None):
        """Acquires the condition's lock, as `Lock.acquire`."""
        return self._lock.acquire(block, timeout)

    def release(self):
        """Releases the condition's lock."""
        self._lock.release()

    def __enter__(self):
        return self._lock.__enter__()

    def __exit__(self, *error):
        return self._lock.__exit__(*error)

    def wait_for(self, predicate, timeout=None):
        """Waits until `predicate()` holds, at most `timeout` seconds. Returns its last value."""
        end = None if timeout is None else time.monotonic() + timeout
        while not (result := predicate()):
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            self.wait(left)
        return result

    def recover(self, timeout=None):
        """Returns a context that has the lock, whatever its last holder left; see `Lock.recover`."""
        return self._lock.recover(timeout)

    @property
    def owner_died(self):
        """Whether a holder has died since what the lock protects was last declared consistent."""
        return self._lock.owner_died

    def mark_consistent(self):
        """Declares that what the lock protects is in order, after a holder's death."""
        self._lock.mark_consistent()

    async def __aenter__(self):
        await _aio.acquire(self, self._tasks, self._lock.acquire, None, self._lock.release)
        return self

    async def __aexit__(self, *error):
        await _aio.release(self, self._tasks)

    async def wait_async(self, timeout=None):
        """Waits as `wait` does, inside `async with condition`, while the event loop goes on."""
        return await _aio.wait_within(self._tasks, self.wait, timeout)

    async def notify_async(self, n=1):
        """Notifies as `notify` does, inside `async with condition`."""
        return await _aio.within(self._tasks, self.notify, n)

    def __reduce__(self):
        lock = self._lock
        return _condition, (type(self), lock, Handle.of(self._segment), *self._offsets)

    def __repr__(self):
        return f"<{type(self).__name__}({self._lock!r})>"


def _condition(cls, lock, handle, changed, state):
    return cls._at(lock, handle, changed, state)


class Event(_lockstead.Event):
    """A flag that is set or not, and that threads of several processes wait for."""

    def __new__(cls, name=None, *, path=None, mode=0o600, ctx=None):
        segment, offsets = places(
            [("mutexes", 1), ("conditions", 1), ("words", 1)],
            "Event",
            [("lock", "mutex", 1, False), ("changed", "condvar", 1, False), ("value", "u64", 1, False)],
            name,
            path,
            mode,
        )
        return super().__new__(cls, segment, *offsets)

    async def wait_async(self, timeout=None):
        """Waits as `wait` does, while the event loop goes on. Returns whether the event is set."""
        return self.is_set() or await _aio.sliced(self.wait, timeout)

    def __reduce__(self):
        return _event, (type(self), Handle.of(self._segment), *self._offsets)

    def __repr__(self):
        return f"<{type(self).__name__} at {self._offsets[2]:#x} {'set' if self.is_set() else 'unset'}>"


def _event(cls, handle, *offsets):
    return _lockstead.Event.__new__(cls, handle.segment, *offsets)


class Barrier(_lockstead.Barrier):
    """Holds threads of several processes until so many have come."""

    def __new__(
        cls, parties, action=None, timeout=None, name=None, *, path=None, mode=0o600, ctx=None
    ):
        if not 1 <= parties < 2**31:
            raise ValueError("parties: one or more")
        segment, offsets = places(
            [("mutexes", 1), ("conditions", 1), ("words", 3)],
            "Barrier",
            [("lock", "mutex", 1, False), ("changed", "condvar", 1, False), ("state", "u64", 3, True)],
            name,
            path,
            mode,
        )
        self = super().__new__(cls, segment, *offsets, parties)
        self._action, self._timeout = action, timeout
        return self

    def wait(self, timeout=None):
        """Waits for the others, at most `timeout` seconds, else as long as the barrier was made to wait.

        Returns a number from 0 on, another one to each. Raises `threading.BrokenBarrierError` if the
        barrier is broken, as it is once somebody's time was over.
        """
        index = self._pass(self._timeout if timeout is None else timeout, self._action)
        if index is None:
            raise threading.BrokenBarrierError
        return index

    def __reduce__(self):
        handle = Handle.of(self._segment)
        more = (self.parties, self._action, self._timeout)
        return _barrier, (type(self), handle, self._offsets, *more)

    def __repr__(self):
        state = "broken" if self.broken else f"waiters={self.n_waiting}/{self.parties}"
        return f"<{type(self).__name__} at {self._offsets[2]:#x}: {state}>"


def _barrier(cls, handle, offsets, parties, action, timeout):
    self = _lockstead.Barrier.__new__(cls, handle.segment, *offsets, parties)
    self._action, self._timeout = action, timeout
    return self
