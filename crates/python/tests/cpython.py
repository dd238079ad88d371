"""Runs the tests of CPython's own suite that are about locks of multiprocessing, on lockstead's.

    python tests/cpython.py [fork|spawn|forkserver] [test...]

The tests are those of the interpreter that runs this (`test._test_multiprocessing`), which the packages
of some distributions leave out. Left out below is what tests an implementation and no behaviour; each
with its reason.
"""

import multiprocessing
import sys
import threading
import unittest
from unittest import mock

import lockstead.shared as shared

try:
    from test import _test_multiprocessing as theirs
except ImportError:
    theirs = None

CLASSES = ["_TestLock", "_TestSemaphore", "_TestCondition", "_TestEvent", "_TestBarrier", "_TestQueue"]

# Name of the test, and why it does not apply.
LEFT_OUT = {
    "test_queue_feeder_donot_stop_onexc": "there is no feeder thread: put itself raises",
    "test_queue_feeder_on_queue_feeder_error": "of a class derived from theirs, and a hook of its thread",
}

# Tests that make a queue as `multiprocessing.Queue`, and get one of ours by that name.
BY_NAME = ["test_no_import_lock_contention"]


class Ours(theirs.ProcessesMixin if theirs else object):
    """The mixin of their tests, with lockstead's classes."""

    Lock = staticmethod(shared.Lock)
    RLock = staticmethod(shared.RLock)
    # Their semaphores are released by other threads than those that acquired.
    Semaphore = staticmethod(lambda *args: shared.Semaphore(*args, held=False))
    BoundedSemaphore = staticmethod(lambda *args: shared.BoundedSemaphore(*args, held=False))
    Condition = staticmethod(shared.Condition)
    Event = staticmethod(shared.Event)
    Barrier = staticmethod(shared.Barrier)
    Queue = staticmethod(shared.Queue)
    JoinableQueue = staticmethod(shared.JoinableQueue)

    def check_invariant(self, cond):
        """Theirs looks into the semaphores that their condition consists of."""
        self.assertEqual(cond._waiting(), 0)


def cases():
    for name in CLASSES:
        base = getattr(theirs, name, None)
        if base is None:
            continue
        members = {"__module__": "__main__", "check_invariant": Ours.check_invariant}
        for test, reason in LEFT_OUT.items():
            if hasattr(base, test):
                members[test] = unittest.skip(reason)(getattr(base, test))
        for test in BY_NAME:
            if hasattr(base, test):
                ours = mock.patch("multiprocessing.Queue", Ours.Queue)
                members[test] = ours(getattr(base, test))
        name = "With" + name.strip("_")
        yield name, type(name, (base, Ours, unittest.TestCase), members)


if theirs is not None:
    globals().update(cases())


def setUpModule():
    multiprocessing.set_start_method(sys.start, force=True)


if __name__ == "__main__":
    if theirs is None:
        print("skipped: this interpreter comes without its tests (test._test_multiprocessing)")
        sys.exit(0)
    starts = [word for word in sys.argv[1:] if word in multiprocessing.get_all_start_methods()]
    rest = [word for word in sys.argv[1:] if word not in starts]
    sys.start = starts[0] if starts else "fork"
    assert threading.active_count() == 1
    unittest.main(argv=[sys.argv[0], *rest])
