"""Locks between processes that behave as multiprocessing's, and survive the death of their holders.

    from lockstead.shared import Lock, OwnerDied

    lock = Lock()              # for this process and its children: fork, spawn, forkserver
    orders = Lock("orders")    # for all processes of this user, by name

    try:
        with orders:
            ...
    except OwnerDied:
        with orders.recover():
            ...                # look what the dead holder left, and repair it

`docs/python-package.md` of the project has all of it.
"""

from queue import Empty, Full
from threading import BrokenBarrierError

from lockstead._lockstead import DeadlockError, NotRecoverable, OwnerDied, SegmentUnusable
from lockstead.shared._locks import BoundedSemaphore, Lock, RLock, RWLock, Semaphore
from lockstead.shared._queue import JoinableQueue, Queue
from lockstead.shared._segment import Segment
from lockstead.shared._segments import configure, unlink
from lockstead.shared._waits import Barrier, Condition, Event

__all__ = [
    "Barrier",
    "BoundedSemaphore",
    "BrokenBarrierError",
    "Condition",
    "DeadlockError",
    "Empty",
    "Event",
    "Full",
    "JoinableQueue",
    "Lock",
    "NotRecoverable",
    "OwnerDied",
    "Queue",
    "RLock",
    "RWLock",
    "Segment",
    "SegmentUnusable",
    "Semaphore",
    "configure",
    "unlink",
]
