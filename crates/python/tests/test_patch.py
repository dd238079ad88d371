"""Programs that use multiprocessing, on the locks of lockstead."""

import multiprocessing
import os
import signal
import time
import unittest
import warnings

import lockstead
from lockstead import shared
from support import LONG, STARTS, ProcessTest, eventually


def double(number):
    return 2 * number


def pid_of_worker(_):
    return os.getpid()


def use(lock, value, queue):
    with lock, value.get_lock():
        value.value += 1
    queue.put(type(lock).__name__)


class Patched(ProcessTest):
    def setUp(self):
        lockstead.patch_multiprocessing("flag")
        self.addCleanup(lockstead.unpatch_multiprocessing)

    def test_children_use_the_locks(self):
        for how in STARTS:
            with self.subTest(how):
                context = multiprocessing.get_context(how)
                lock, value, queue = context.Lock(), context.Value("i", 0), context.Queue(5)
                self.assertIsInstance(lock, shared.Lock)
                children = [self.start(use, lock, value, queue, how=how) for _ in range(3)]
                for _ in children:
                    self.assertEqual(queue.get(timeout=LONG), "Lock")
                for child in children:
                    self.joined(child)
                self.assertEqual(value.value, 3)
                queue.close()
                queue.join_thread()

    def test_a_joinable_queue_is_joined(self):
        queue = multiprocessing.JoinableQueue()
        queue.put(1)
        self.assertEqual(queue.get(timeout=LONG), 1)
        queue.task_done()
        queue.join()
        queue.close()
        queue.join_thread()

    def test_a_pool_goes_on_when_an_idle_worker_is_killed(self):
        with multiprocessing.get_context("fork").Pool(3) as pool:
            for _ in range(5):
                victim = pool.apply(pid_of_worker, (0,))
                # One of the idle ones reads at the pool's pipe, with its lock. What a worker is killed
                # over is lost, as ever: it must not meet the next tasks.
                time.sleep(0.05)
                os.kill(victim, signal.SIGKILL)
                eventually(lambda: not os.path.exists(f"/proc/{victim}"))
                self.assertEqual(
                    pool.map_async(double, range(20), 1).get(LONG), [2 * n for n in range(20)]
                )

    def test_all_is_as_before_afterwards(self):
        lockstead.unpatch_multiprocessing()
        self.assertNotIsInstance(multiprocessing.Lock(), shared.Lock)

    def test_queues_are_replaced_if_that_is_said(self):
        lockstead.patch_multiprocessing(queues=True)
        queue = multiprocessing.Queue(3)
        self.assertIsInstance(queue, shared.Queue)
        queue.put(1)
        self.assertEqual(queue.get(), 1)
        lockstead.unpatch_multiprocessing()
        self.assertNotIsInstance(multiprocessing.Queue(), shared.Queue)

    def test_a_death_is_a_warning_unless_said_otherwise(self):
        lockstead.patch_multiprocessing()
        lock = multiprocessing.Lock()
        self.killed_inside(lock.acquire)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with lock:
                pass
        self.assertEqual([type(one.message).__name__ for one in caught], ["OwnerDiedWarning"])
        with lock:
            pass


if __name__ == "__main__":
    unittest.main()
