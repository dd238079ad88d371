"""Putting the locks of `lockstead.shared` under programs that use those of `multiprocessing`."""

import os
import warnings
from multiprocessing import context, synchronize

from lockstead import shared

# The classes of `multiprocessing.synchronize` as they were.
_before = {}
_queues_before = {}


class OwnerDiedWarning(RuntimeWarning):
    """A process has died while it had a lock of a patched program."""


def _warn(lock):
    warnings.warn(
        f"process {os.getpid()}: a holder of {lock!r} has died; what the lock protects may be half done",
        OwnerDiedWarning,
        stacklevel=2,
    )


def _classes(told):
    class Lock(shared.Lock):
        def __new__(cls, *, ctx=None):
            return super().__new__(cls, on_owner_death=told)

    class RLock(shared.RLock):
        def __new__(cls, *, ctx=None):
            return super().__new__(cls, on_owner_death=told)

    class Semaphore(shared.Semaphore):
        def __new__(cls, value=1, *, ctx=None):
            return super().__new__(cls, value, held=False)

    class BoundedSemaphore(shared.BoundedSemaphore):
        def __new__(cls, value=1, *, ctx=None):
            return super().__new__(cls, value, held=False)

    class Condition(shared.Condition):
        def __new__(cls, lock=None, *, ctx=None):
            return super().__new__(cls, lock, on_owner_death=told)

    class Event(shared.Event):
        def __new__(cls, *, ctx=None):
            return super().__new__(cls)

    class Barrier(shared.Barrier):
        def __new__(cls, parties, action=None, timeout=None, *, ctx=None):
            return super().__new__(cls, parties, action, timeout)

    return [Lock, RLock, Semaphore, BoundedSemaphore, Condition, Event, Barrier]


def patch_multiprocessing(on_owner_death=_warn, *, queues=False):
    """Has multiprocessing make locks of `lockstead.shared` from now on, in this process and forked children.

    `Lock`, `RLock`, `Semaphore`, `BoundedSemaphore`, `Condition`, `Event` and `Barrier` are replaced, of
    all contexts, and so under what multiprocessing builds on them: pools, queues, shared values. With
    `queues`, `Queue` and `JoinableQueue` are replaced as well. What changes is this:

    - A lock whose holder is killed goes to the next one, which is told as `on_owner_death` says (see
      `lockstead.shared.Lock`): by a warning, `OwnerDiedWarning`, unless said otherwise. It stays locked
      for ever otherwise.
    - A lock is released by the thread that acquired it; others get `ValueError`. (multiprocessing lets
      any thread release a `Lock`.) Who acquires a `Lock` that it has, without a timeout, gets
      `DeadlockError` in place of a wait for ever.
    - Semaphores are as they were: what a killed holder had of one is lost.
    - A pool whose idle worker is killed goes on. A worker that is killed in the middle of reading a task
      leaves a part of it in the pool's pipe, and the next worker reads nonsense: that is as it was, but
      it does not come to it otherwise, since all wait for ever.

    Children that are started by spawn or forkserver get the locks that they are given, and make locks of
    multiprocessing's own unless they call this too (at the main module's top level, say). Locks that exist
    already stay as they are. `unpatch_multiprocessing` takes it back.
    """
    unpatch_multiprocessing()
    for cls in _classes(on_owner_death):
        # Pickled by what rebuilds them, with the class: as classes of the package.
        public = getattr(shared, cls.__name__)
        cls.__reduce__ = _as(public)
        cls.__qualname__ = cls.__name__
        _before[cls.__name__] = getattr(synchronize, cls.__name__)
        setattr(synchronize, cls.__name__, cls)
    if queues:
        for name in ("Queue", "JoinableQueue"):
            _queues_before[name] = getattr(context.BaseContext, name)
            setattr(context.BaseContext, name, _maker(getattr(shared, name)))
        _refresh()


def unpatch_multiprocessing():
    """Has multiprocessing make its own locks again. Locks that were made meanwhile stay as they are."""
    for name, cls in _before.items():
        setattr(synchronize, name, cls)
    _before.clear()
    if _queues_before:
        for name, method in _queues_before.items():
            setattr(context.BaseContext, name, method)
        _queues_before.clear()
        _refresh()


def _as(public):
    def reduce(self):
        rebuild, (_, *arguments) = public.__reduce__(self)
        return rebuild, (public, *arguments)

    return reduce


def _maker(cls):
    def make(self, maxsize=0):
        return cls(maxsize, ctx=self.get_context())

    return make


def _refresh():
    """The module `multiprocessing` has the methods of its default context as functions of its own."""
    import multiprocessing

    for name in ("Queue", "JoinableQueue"):
        setattr(multiprocessing, name, getattr(context._default_context, name))
