"""`dump`, `watch` and the plugin of pytest: they need the command, which a wheel brings along."""

import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
from unittest import mock

import lockstead
from lockstead import _order, _tool, shared
from support import LONG, ProcessTest, eventually

try:
    _tool.command()
    NO_COMMAND = None
except FileNotFoundError as error:
    NO_COMMAND = str(error)

try:
    import pytest
except ImportError:
    pytest = None

DEADLOCK = """
import sys, threading
from threading import Lock

first, second = Lock(), Lock()
both = threading.Barrier(2)

def left():
    with first:
        both.wait()
        with second:
            pass

def right():
    with second:
        both.wait()
        with first:
            pass

for work in (left, right):
    threading.Thread(target=work, daemon=True).start()
"""


class Rights(unittest.TestCase):
    """Who may read this process, with a command that may only where a file says so."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.allowed = os.path.join(folder.name, "allowed")
        command = os.path.join(folder.name, "lockstead")
        with open(command, "w") as file:
            file.write(f"#!/bin/sh\ntest -e {self.allowed} || exit 1\necho shown\n")
        os.chmod(command, 0o700)
        self.told = []
        patches = [
            mock.patch.dict(os.environ, LOCKSTEAD_COMMAND=command),
            mock.patch.object(_tool._lockstead, "allow_tracer", self.allow),
        ]
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)

    def allow(self, pid):
        self.told.append(pid)
        if pid:
            open(self.allowed, "w").close()

    def test_it_is_allowed_for_a_look_where_it_is_not(self):
        self.assertTrue(lockstead.dump().startswith("shown\n"))
        self.assertEqual(self.told, [os.getpid(), 0])

    def test_what_is_allowed_stays_so(self):
        open(self.allowed, "w").close()
        self.assertTrue(lockstead.dump().startswith("shown\n"))
        self.assertEqual(self.told, [])

    def test_of_another_process_nothing_is_allowed(self):
        with self.assertRaises(RuntimeError):
            lockstead.dump(os.getppid())
        self.assertEqual(self.told, [])


@unittest.skipIf(NO_COMMAND, NO_COMMAND)
class Dumps(ProcessTest):
    def program(self, text):
        child = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        return child

    def test_a_deadlock_of_another_process_is_shown(self):
        child = self.program(DEADLOCK + "sys.stdin.read()")
        eventually(lambda: "DEADLOCK" in lockstead.dump(child.pid))
        text = lockstead.dump(child.pid)
        self.assertIn("left()", text)
        self.assertIn("threading.Lock", text)
        self.assertEqual(len(lockstead.dump(child.pid, json=True)["cycles"]), 1)

    def test_waiters_for_shared_locks_are_shown(self):
        lock = shared.Lock()
        with lock:
            thread = threading.Thread(target=lock.acquire, args=(True, LONG))
            thread.start()
            eventually(lambda: "owned" in (text := lockstead.dump()) and "slot" in text)
        thread.join(LONG)

    def test_what_cannot_be_looked_at_says_why(self):
        with self.assertRaisesRegex(RuntimeError, "."):
            lockstead.dump(2**22 + 1)
        with self.assertRaises(ValueError):
            lockstead.watch(interval=0)

    def test_a_watch_reports_a_deadlock_once(self):
        child = self.program(DEADLOCK + "sys.stdin.read()")
        reports = []
        with lockstead.watch(reports.append, interval=0.02, pid=child.pid) as watch:
            eventually(lambda: reports)
            looks = 0

            def looked(*_):
                nonlocal looks
                looks += 1

            before, watch._look = watch._look, lambda: (before(), looked())
            eventually(lambda: looks >= 2)
        self.assertEqual(len(reports), 1)
        self.assertIn("DEADLOCK", reports[0])


@unittest.skipIf(pytest is None, "there is no pytest")
class Plugin(unittest.TestCase):
    def pytest(self, text, *options):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "test_it.py")
            with open(file, "w") as out:
                out.write(textwrap.dedent(text))
            plugin = [] if _is_installed() else ["-p", "lockstead.pytest_plugin"]
            # Neither plugins of the machine nor files of this project's.
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *plugin, "-p", "no:cacheprovider", *options, file],
                capture_output=True,
                text=True,
                cwd=folder,
                timeout=LONG,
            )
            return done.returncode, done.stdout + done.stderr

    @unittest.skipIf(NO_COMMAND, NO_COMMAND)
    def test_a_test_that_hangs_fails_with_the_graph(self):
        status, text = self.pytest(
            """
            import threading
            def test_hangs():
                lock = threading.Lock()
                with lock:
                    lock.acquire()
            def test_passes():
                pass
            """,
            "--lockstead-timeout=0.3",
        )
        self.assertEqual(status, 1, text)
        self.assertIn("test_hangs() at", text)
        self.assertIn("who waits for whom", text)
        self.assertIn("1 failed, 1 passed", text)

    @unittest.skipIf(NO_COMMAND, NO_COMMAND)
    def test_a_child_that_hangs_is_in_the_graph(self):
        status, text = self.pytest(
            """
            import multiprocessing, pytest
            def waits_for_ever(lock):
                lock.acquire()
            @pytest.mark.lockstead_timeout(0.5)
            def test_hangs():
                from lockstead.shared import Lock
                lock = Lock()
                with lock:
                    child = multiprocessing.get_context("fork").Process(
                        target=waits_for_ever, args=(lock,), daemon=True)
                    child.start()
                    child.join()
            """,
        )
        self.assertEqual(status, 1, text)
        self.assertIn("waits_for_ever() at", text)
        self.assertIn("1 failed", text)

    def test_orders_of_locks_are_checked(self):
        status, text = self.pytest(
            """
            import threading
            first, second = threading.Lock(), threading.RLock()
            def take(one, other):
                def work():
                    with one, other:
                        pass
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
            def test_one():
                take(first, second)
            def test_other():
                take(second, first)
            """,
            "--lockstead-check",
        )
        self.assertEqual(status, 1, text)
        self.assertIn("2 passed", text)
        self.assertIn("POTENTIAL deadlock: 2 locks", text)
        self.assertIn("work() at", text)
        self.assertIn("1 potential deadlocks", text)


def _is_installed():
    from importlib import metadata

    try:
        return any(point.name == "lockstead" for point in metadata.distribution("lockstead").entry_points)
    except metadata.PackageNotFoundError:
        return False


class Orders(unittest.TestCase):
    def recorded(self, *works):
        """Runs each work in a thread, one after the other, and returns the findings."""
        recorder = _order.Recorder()
        recorder.install()
        try:
            locks = [threading.Lock(), threading.RLock(), shared.Lock(), threading.Lock()]
            for work in works:
                thread = threading.Thread(target=work, args=(locks,))
                thread.start()
                thread.join(LONG)
        finally:
            recorder.uninstall()
        return recorder.findings()

    def test_a_ring_of_two_threads_is_found(self):
        found = self.recorded(lambda locks: take(locks, 0, 1), lambda locks: take(locks, 1, 0))
        self.assertEqual(len(found), 1)

    def test_a_ring_through_a_lock_between_processes_is_found(self):
        works = [lambda locks: take(locks, 0, 1), lambda locks: take(locks, 1, 2)]
        self.assertEqual(self.recorded(*works), [])
        found = self.recorded(*works, lambda locks: take(locks, 2, 0))
        self.assertEqual(len(found), 1)
        self.assertIn("lockstead Lock", found[0])

    def test_one_thread_does_not_wait_for_itself(self):
        def both(locks):
            take(locks, 0, 1)
            take(locks, 1, 0)

        self.assertEqual(self.recorded(both), [])

    def test_a_common_lock_keeps_two_orders_apart(self):
        works = [lambda locks: take(locks, 3, 0, 1), lambda locks: take(locks, 3, 1, 0)]
        self.assertEqual(self.recorded(*works), [])

    def test_who_only_tries_does_not_wait(self):
        def tries(locks):
            with locks[1]:
                self.assertTrue(locks[0].acquire(False))
                locks[0].release()

        self.assertEqual(self.recorded(lambda locks: take(locks, 0, 1), tries), [])

    def test_a_condition_gives_its_lock_up(self):
        def work(locks):
            condition = threading.Condition(locks[1])
            with condition:
                condition.wait(0.001)
                with locks[0]:
                    pass

        self.assertEqual(self.recorded(work), [])


def take(locks, *numbers):
    for number in numbers:
        locks[number].acquire()
    for number in reversed(numbers):
        locks[number].release()


if __name__ == "__main__":
    unittest.main()
