"""What several test files use."""

import multiprocessing
import os
import signal
import time
import unittest

STARTS = ["fork", "spawn", "forkserver"]

# How long anything may take that a test waits for, in seconds: a test that hangs fails.
LONG = 60


def eventually(condition):
    """Waits until the condition holds, and fails if it does not for long."""
    end = time.monotonic() + LONG
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("what the test waits for did not come")
        time.sleep(0.002)


class ProcessTest(unittest.TestCase):
    """A test whose children end with it."""

    def start(self, target, *args, how="fork"):
        child = multiprocessing.get_context(how).Process(target=target, args=args)
        child.start()
        self.addCleanup(self._end, child)
        return child

    def _end(self, child):
        if child.is_alive():
            child.kill()
        child.join(LONG)

    def joined(self, child, status=0):
        child.join(LONG)
        self.assertEqual(child.exitcode, status)

    def killed_inside(self, enter, *args, how="fork"):
        """Has a child call `enter` and be killed there."""
        child = self.start(_enter_and_die, enter, args, how=how)
        self.joined(child, -signal.SIGKILL)


def _enter_and_die(enter, args):
    enter(*args)
    os.kill(os.getpid(), signal.SIGKILL)
