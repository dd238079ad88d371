"""Locks with owners and with units: what they do between processes, and after deaths."""

import multiprocessing
import os
import pickle
import signal
import threading
import time
import unittest

from lockstead import shared
from support import LONG, STARTS, ProcessTest


def hold(lock, held, let_go):
    with lock:
        held.set()
        let_go.wait(LONG)


def add(lock, total, times):
    for _ in range(times):
        with lock:
            value = total.value
            total.value = value + 1


def take_all(locks, answers):
    for lock in locks:
        assert lock.acquire(timeout=LONG)
        lock.release()
    answers.put(len(os.listdir("/proc/self/fd")))


def interrupted(acquire, ready, answers):
    # Tests may be started by who ignores the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ready.set()
    try:
        acquire()
        answers.put("acquired")
    except KeyboardInterrupt:
        answers.put("interrupted")


class Basics(ProcessTest):
    def test_a_lock_excludes_other_processes(self):
        for how in STARTS:
            with self.subTest(how):
                lock = shared.Lock()
                total = multiprocessing.get_context(how).RawValue("i", 0)
                children = [self.start(add, lock, total, 500, how=how) for _ in range(3)]
                for child in children:
                    self.joined(child)
                self.assertEqual(total.value, 1500)

    def test_a_lock_that_is_held_is_not_to_be_had(self):
        lock, held, let_go = shared.Lock(), shared.Event(), shared.Event()
        child = self.start(hold, lock, held, let_go)
        self.assertTrue(held.wait(LONG))
        self.assertFalse(lock.acquire(False))
        self.assertFalse(lock.acquire(block=0))
        self.assertFalse(lock.acquire(timeout=0.01))
        self.assertFalse(lock.acquire(True, -1))
        self.assertTrue(lock.locked())
        self.assertIn("SomeOtherProcess", repr(lock))
        let_go.set()
        self.assertTrue(lock.acquire(timeout=LONG))
        self.assertIn("MainProcess", repr(lock))
        lock.release()
        self.assertFalse(lock.locked())
        self.joined(child)

    def test_who_would_wait_for_itself_is_told(self):
        lock = shared.Lock()
        with lock:
            with self.assertRaises(shared.DeadlockError):
                lock.acquire()
            self.assertFalse(lock.acquire(timeout=0.01))
            self.assertFalse(lock.acquire(False))
        with shared.RWLock().read() as lock, self.assertRaises(shared.DeadlockError):
            lock.acquire_write()

    def test_only_who_has_a_lock_releases_it(self):
        lock, rlock = shared.Lock(), shared.RLock()
        with self.assertRaises(ValueError):
            lock.release()
        with self.assertRaises(AssertionError):
            rlock.release()
        with lock, rlock:
            errors = []

            def other():
                for one in (lock, rlock):
                    try:
                        one.release()
                    except (ValueError, AssertionError) as error:
                        errors.append(error)

            thread = threading.Thread(target=other)
            thread.start()
            thread.join(LONG)
            self.assertEqual(len(errors), 2)
            self.assertTrue(lock.locked() and rlock.locked())

    def test_an_rlock_is_released_as_often_as_it_was_acquired(self):
        lock = shared.RLock()
        for _ in range(3):
            self.assertTrue(lock.acquire())
        for left in (2, 1, 0):
            lock.release()
            self.assertEqual(lock._count(), left)
        self.assertFalse(lock.locked())

    def test_a_forked_child_does_not_have_what_its_parent_has(self):
        lock = shared.RLock()
        with lock:

            def child():
                assert not lock.acquire(False)
                try:
                    lock.release()
                except AssertionError:
                    os._exit(7)

            self.joined(self.start(child), 7)
            self.assertEqual(lock._count(), 1)

    def test_readers_share_and_a_writer_does_not(self):
        lock, held, let_go = shared.RWLock(), shared.Event(), shared.Event()
        child = self.start(hold, lock.read(), held, let_go)
        self.assertTrue(held.wait(LONG))
        with lock.read():
            pass
        self.assertFalse(lock.acquire_write(False))
        self.assertFalse(lock.acquire_write(timeout=0.01))
        let_go.set()
        self.assertTrue(lock.acquire_write(timeout=LONG))
        lock.release()
        self.joined(child)
        with self.assertRaises(ValueError):
            lock.release()

    def test_arguments_that_make_no_sense_are_refused(self):
        for make in (
            lambda: shared.Lock(on_owner_death="shout"),
            lambda: shared.Semaphore(-1),
            lambda: shared.Semaphore(2**31),
            lambda: shared.Lock("a/b"),
            lambda: shared.Lock("a", path="/b"),
            lambda: shared.Barrier(0),
            lambda: shared.configure(participants=0),
        ):
            with self.assertRaises(ValueError):
                make()
        for make in (lambda: shared.Lock(on_owner_death=3), lambda: shared.Condition(threading.Lock())):
            with self.assertRaises(TypeError):
                make()
        with self.assertRaises(TypeError):
            shared.Lock().acquire(timeout=float("nan"))


class Children(ProcessTest):
    def test_thousands_of_locks_take_one_descriptor_along(self):
        locks = [shared.Lock() for _ in range(1500)]
        self.assertEqual(len({lock._segment.fileno() for lock in locks[:100]}), 1)
        for how in STARTS:
            with self.subTest(how):
                answers = multiprocessing.get_context(how).SimpleQueue()
                child = self.start(take_all, locks, answers, how=how)
                self.assertLess(answers.get(), 32)
                self.joined(child)

    def test_anonymous_locks_are_for_children_only(self):
        with self.assertRaises(RuntimeError):
            pickle.dumps(shared.Lock())

    def test_a_forked_child_makes_locks_of_its_own(self):
        first = shared.Lock()

        def child():
            second = shared.Lock()
            with second:
                os._exit(3 if first.acquire(False) else 4)

        self.joined(self.start(child), 3)

    def test_a_full_arena_is_followed_by_another(self):
        locks = [shared.Lock() for _ in range(5000)]
        self.assertGreater(len({lock._segment.fileno() for lock in locks}), 1)
        self.assertLess(len({lock._segment.fileno() for lock in locks}), 8)
        self.assertTrue(all(lock.acquire(False) for lock in locks))
        for lock in locks:
            lock.release()


class Deaths(ProcessTest):
    def test_the_next_holder_gets_an_exception(self):
        for how in STARTS:
            with self.subTest(how):
                lock = shared.Lock()
                self.killed_inside(lock.acquire, how=how)
                for _ in range(2):
                    with self.assertRaises(shared.OwnerDied):
                        lock.acquire()
                self.assertFalse(lock.locked())
                with lock.recover() as recovery:
                    self.assertTrue(recovery.owner_died)
                with lock:
                    self.assertFalse(lock.owner_died)
                with lock.recover() as recovery:
                    self.assertFalse(recovery.owner_died)

    def test_a_recovery_that_fails_is_not_the_last(self):
        lock = shared.Lock()
        self.killed_inside(lock.acquire)
        with self.assertRaises(KeyError), lock.recover():
            raise KeyError
        with self.assertRaises(shared.OwnerDied):
            lock.acquire()

    def test_the_next_holder_sees_a_flag(self):
        lock = shared.RLock(on_owner_death="flag")
        self.killed_inside(lock.acquire)
        for _ in range(2):
            with lock:
                self.assertTrue(lock.owner_died)
        with lock:
            lock.mark_consistent()
            self.assertFalse(lock.owner_died)
        with lock:
            self.assertFalse(lock.owner_died)

    def test_the_next_holder_is_called(self):
        calls = []
        lock = shared.Lock(on_owner_death=lambda lock: calls.append(lock.locked()))
        self.killed_inside(lock.acquire)
        with lock, self.assertRaises(shared.DeadlockError):
            lock.acquire()
        with lock:
            pass
        self.assertEqual(calls, [True])

    def test_a_call_that_raises_leaves_the_lock_to_the_next(self):
        calls = []

        def repair(lock):
            calls.append(lock)
            if len(calls) == 1:
                raise KeyError

        lock = shared.Lock(on_owner_death=repair)
        self.killed_inside(lock.acquire)
        with self.assertRaises(KeyError):
            lock.acquire()
        self.assertFalse(lock.locked())
        with lock:
            pass
        self.assertEqual(len(calls), 2)

    def test_who_sleeps_is_woken_by_the_death(self):
        lock, held, let_go = shared.Lock(on_owner_death="flag"), shared.Event(), shared.Event()
        child = self.start(hold, lock, held, let_go)
        self.assertTrue(held.wait(LONG))
        threading.Timer(0.05, child.kill).start()
        self.assertTrue(lock.acquire(timeout=LONG))
        self.assertTrue(lock.owner_died)
        lock.release()

    def test_a_reader_that_dies_leaves_nothing(self):
        lock = shared.RWLock()
        self.killed_inside(lock.acquire_read)
        with lock.write():
            self.assertFalse(lock.owner_died)

    def test_a_writer_that_dies_is_told_of(self):
        lock = shared.RWLock()
        self.killed_inside(lock.acquire_write)
        for side in (lock.read, lock.write):
            with self.assertRaises(shared.OwnerDied), side():
                pass
        with lock.recover() as recovery:
            self.assertTrue(recovery.owner_died)
        with lock.read():
            pass

    def test_units_of_the_dead_are_free_again(self):
        semaphore = shared.BoundedSemaphore(2)
        self.killed_inside(lambda: semaphore.acquire() and semaphore.acquire())
        self.assertTrue(semaphore.acquire(timeout=LONG))
        self.assertTrue(semaphore.acquire(timeout=LONG))
        self.assertFalse(semaphore.acquire(False))
        semaphore.release()
        semaphore.release()
        with self.assertRaises(ValueError):
            semaphore.release()

    def test_units_that_are_not_held_are_used_up(self):
        semaphore = shared.Semaphore(1, held=False)
        self.killed_inside(semaphore.acquire)
        self.assertFalse(semaphore.acquire(False))
        semaphore.release()
        self.assertEqual(semaphore.get_value(), 1)


class Signals(ProcessTest):
    def test_control_c_ends_a_wait(self):
        lock, rwlock = shared.Lock(), shared.RWLock()
        semaphore, queue = shared.Semaphore(0), shared.Queue()
        condition, event, barrier = shared.Condition(), shared.Event(), shared.Barrier(2)

        def wait_for_condition():
            with condition:
                condition.wait()

        waits = [lock.acquire, rwlock.acquire_read, semaphore.acquire, queue.get]
        waits += [wait_for_condition, event.wait, barrier.wait]
        with lock, rwlock.write():
            for wait in waits:
                with self.subTest(wait=getattr(wait, "__qualname__", wait)):
                    ready, answers = shared.Event(), multiprocessing.SimpleQueue()
                    child = self.start(interrupted, wait, ready, answers)
                    self.assertTrue(ready.wait(LONG))
                    time.sleep(0.05)
                    os.kill(child.pid, signal.SIGINT)
                    self.assertEqual(answers.get(), "interrupted")
                    self.joined(child)

    def test_a_wait_goes_on_after_a_handler_that_returns(self):
        lock, held, let_go = shared.Lock(), shared.Event(), shared.Event()
        child = self.start(hold, lock, held, let_go)
        self.assertTrue(held.wait(LONG))
        calls = []
        before = signal.signal(signal.SIGUSR1, lambda *_: (calls.append(1), let_go.set()))
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        self.assertTrue(lock.acquire(timeout=LONG))
        lock.release()
        self.assertEqual(calls, [1])
        self.joined(child)

    def test_other_threads_run_while_one_waits(self):
        lock, done = shared.Lock(), []
        with lock:
            thread = threading.Thread(target=lambda: done.append(lock.acquire(timeout=0.2)))
            thread.start()
            count = 0
            while thread.is_alive():
                count += 1
            self.assertGreater(count, 1)
        thread.join()
        self.assertEqual(done, [False])


class Names(ProcessTest):
    def setUp(self):
        self.name = f"test-{os.getpid()}-{self._testMethodName[:40]}"
        self.addCleanup(self.forget)

    def forget(self):
        try:
            shared.unlink(self.name)
        except FileNotFoundError:
            pass

    def test_a_name_is_one_lock_for_all(self):
        here = shared.Lock(self.name)
        self.assertEqual(os.stat(here._segment.path).st_mode & 0o777, 0o600)
        with here:
            there = pickle.loads(pickle.dumps(shared.Lock(self.name)))
            self.assertFalse(there.acquire(False))

            def child():
                os._exit(5 if shared.Lock(self.name).acquire(False) else 6)

            self.joined(self.start(child), 6)
        self.killed_inside(here.acquire, how="spawn")
        with self.assertRaises(shared.OwnerDied):
            shared.Lock(self.name).acquire()
        with shared.Lock(self.name).recover():
            pass

    def test_a_name_is_of_one_kind(self):
        semaphore = shared.Semaphore(3, self.name)
        self.assertEqual(shared.Semaphore(7, self.name).get_value(), 3)
        self.assertTrue(semaphore.acquire())
        self.assertEqual(shared.Semaphore(1, self.name).get_value(), 2)
        semaphore.release()
        for other in (shared.Lock, shared.RWLock):
            with self.assertRaises(ValueError):
                other(self.name)

    def test_all_others_have_names_too(self):
        for make, use in (
            (lambda: shared.RWLock(self.name), lambda it: it.acquire_write(False)),
            (lambda: shared.Event(self.name), lambda it: it.set()),
            (lambda: shared.Barrier(1, name=self.name), lambda it: it.wait()),
            (lambda: shared.Condition(name=self.name), lambda it: it.acquire()),
            (lambda: shared.Queue(name=self.name), lambda it: it.put([1, 2])),
        ):
            one = make()
            use(one)
            two = make()
            if isinstance(two, shared.Event):
                self.assertTrue(two.is_set())
            if isinstance(two, shared.Queue):
                self.assertEqual(two.get(timeout=LONG), [1, 2])
            self.forget()
            del one, two

    def test_what_is_no_segment_is_refused(self):
        path = f"/tmp/lockstead-test-{os.getpid()}"
        self.addCleanup(os.unlink, path)
        with open(path, "w") as file:
            file.write("no segment" * 1000)
        with self.assertRaises(shared.SegmentUnusable):
            shared.Lock(path=path)
        with self.assertRaises(FileNotFoundError):
            shared.Segment("/nowhere/at/all")

    def test_a_segment_has_several_locks_and_data(self):
        path = f"/dev/shm/lockstead-test-{os.getpid()}"
        self.addCleanup(os.unlink, path)
        shop = shared.Segment.create(
            path,
            {"orders": shared.Lock, "shelves": (shared.Lock, 3), "carts": shared.Semaphore, "total": 8},
            units=4,
        )
        self.assertEqual([part[0] for part in shop.parts()][:2], ["orders", "shelves[0]"])
        with shop.lock("shelves[2]"):
            self.assertFalse(shared.Lock(path=path, at="shelves[2]").acquire(False))
            self.assertTrue(shop.lock("shelves[1]").acquire(False))
            shop.lock("shelves[1]").release()
        self.assertEqual(shop.lock("carts").get_value(), 4)
        shop.data("total")[:] = (5).to_bytes(8, "little")
        self.assertEqual(bytes(shared.Segment(path).data("total")), (5).to_bytes(8, "little"))
        with self.assertRaises(KeyError):
            shop.lock("nothing")
        with self.assertRaises(KeyError):
            shop.lock()
        with self.assertRaises(ValueError):
            shop.lock("carts", shared.Lock)


if __name__ == "__main__":
    unittest.main()
