"""Conditions, events, barriers and queues."""

import asyncio
import multiprocessing
import os
import queue
import signal
import threading
import time
import unittest

from lockstead import shared
from support import LONG, STARTS, ProcessTest, eventually


def wait_at(condition, woken, timeout=None):
    with condition:
        woken.put(condition.wait(timeout))


def produce(items, first, count):
    for number in range(first, first + count):
        items.put((number, b"x" * (number % 5000)))


def consume(items, answers):
    while (item := items.get()) is not None:
        answers.put((item[0], len(item[1])))


def pass_barrier(barrier, answers):
    answers.put(barrier.wait(LONG))


class Conditions(ProcessTest):
    def test_notify_lets_as_many_return_as_it_says(self):
        for how in STARTS:
            with self.subTest(how):
                condition, woken = shared.Condition(), shared.Queue()
                children = [self.start(wait_at, condition, woken, how=how) for _ in range(4)]
                eventually(lambda: condition._waiting() == 4)
                with condition:
                    condition.notify(2)
                self.assertEqual([woken.get(timeout=LONG) for _ in range(2)], [True, True])
                # Waiters look again after a second by themselves, and must sleep on.
                with self.assertRaises(shared.Empty):
                    woken.get(timeout=1.3)
                with condition:
                    condition.notify_all()
                self.assertEqual([woken.get(timeout=LONG) for _ in range(2)], [True, True])
                for child in children:
                    self.joined(child)

    def test_a_wait_times_out(self):
        condition = shared.Condition()
        with condition:
            self.assertFalse(condition.wait(0.01))
            self.assertFalse(condition.wait_for(lambda: False, 0.01))
            self.assertTrue(condition.wait_for(lambda: True, 0.01))

    def test_a_wait_gives_up_all_levels_of_an_rlock(self):
        condition = shared.Condition()
        thread = threading.Thread(target=lambda: wait_and_notify(condition))
        with condition, condition:
            thread.start()
            self.assertTrue(condition.wait(LONG))
            self.assertEqual(condition._lock._count(), 2)
        thread.join(LONG)

    def test_two_conditions_have_one_lock(self):
        lock = shared.Lock()
        full, empty = shared.Condition(lock), shared.Condition(lock)
        with full:
            with self.assertRaises(shared.DeadlockError):
                empty.acquire()
            empty.notify()
        with self.assertRaises(AssertionError):
            empty.notify()
        with self.assertRaises(AssertionError):
            empty.wait()

    def test_a_waiter_learns_of_a_holder_s_death(self):
        condition, woken = shared.Condition(on_owner_death="flag"), shared.Queue()
        waiter = self.start(wait_at, condition, woken)
        eventually(lambda: condition._waiting() == 1)
        self.killed_inside(condition.acquire)
        self.assertTrue(woken.get(timeout=LONG))
        self.joined(waiter)
        self.assertTrue(condition.owner_died)
        with condition.recover():
            pass
        self.assertFalse(condition.owner_died)

    def test_a_notification_does_not_die_with_a_waiter(self):
        for _ in range(20):
            condition, woken = shared.Condition(), shared.Queue()
            waiters = [self.start(wait_at, condition, woken) for _ in range(2)]
            eventually(lambda: condition._waiting() == 2)
            with condition:
                condition.notify()
                waiters[0].kill()
            # The killed one may have returned before.
            waiters[0].join(LONG)
            if waiters[0].exitcode:
                self.assertTrue(woken.get(timeout=LONG))
            else:
                with condition:
                    condition.notify()
            self.joined(waiters[1])


def wait_and_notify(condition):
    with condition:
        condition.notify()


class Events(ProcessTest):
    def test_an_event_is_waited_for(self):
        for how in STARTS:
            with self.subTest(how):
                event, seen = shared.Event(), shared.Queue()
                children = [self.start(tell_event, event, seen, how=how) for _ in range(2)]
                self.assertFalse(event.wait(0.01))
                event.set()
                self.assertEqual([seen.get(timeout=LONG) for _ in children], [True, True])
                event.clear()
                self.assertFalse(event.is_set())
                for child in children:
                    self.joined(child)

    def test_a_setter_that_is_killed_leaves_the_event_usable(self):
        for _ in range(20):
            event = shared.Event()
            child = self.start(set_and_clear, event)
            event.wait(LONG)
            child.kill()
            child.join(LONG)
            event.set()
            self.assertTrue(event.wait(LONG))


def tell_event(event, seen):
    seen.put(event.wait(LONG))


def set_and_clear(event):
    while True:
        event.set()
        event.clear()


class Barriers(ProcessTest):
    def test_all_pass_together(self):
        for how in STARTS:
            with self.subTest(how):
                barrier, answers = shared.Barrier(3), shared.Queue()
                children = [self.start(pass_barrier, barrier, answers, how=how) for _ in range(3)]
                self.assertEqual(sorted(answers.get(timeout=LONG) for _ in children), [0, 1, 2])
                for child in children:
                    self.joined(child)
                self.assertEqual(barrier.n_waiting, 0)

    def test_a_time_that_is_over_breaks_it(self):
        barrier = shared.Barrier(2, timeout=0.01)
        for _ in range(2):
            with self.assertRaises(threading.BrokenBarrierError):
                barrier.wait()
        self.assertTrue(barrier.broken)
        barrier.reset()
        self.assertFalse(barrier.broken)

    def test_one_that_dies_in_the_action_breaks_it(self):
        barrier, answers = shared.Barrier(2, lambda: os.kill(os.getpid(), signal.SIGKILL)), shared.Queue()
        child = self.start(pass_broken, barrier, answers)
        eventually(lambda: barrier.n_waiting == 1)
        self.joined(self.start(barrier.wait), -signal.SIGKILL)
        self.assertEqual(answers.get(timeout=LONG), "broken")
        self.joined(child)

    def test_one_that_dies_waiting_has_arrived(self):
        barrier, answers = shared.Barrier(3), shared.Queue()
        dead = self.start(barrier.wait)
        eventually(lambda: barrier.n_waiting == 1)
        dead.kill()
        dead.join(LONG)
        child = self.start(pass_barrier, barrier, answers)
        self.assertIn(barrier.wait(LONG), (1, 2))
        self.assertIn(answers.get(timeout=LONG), (1, 2))
        self.joined(child)


def pass_broken(barrier, answers):
    try:
        barrier.wait(LONG)
        answers.put("passed")
    except threading.BrokenBarrierError:
        answers.put("broken")


class Queues(ProcessTest):
    def test_what_is_put_is_got_in_order(self):
        for how in STARTS:
            with self.subTest(how):
                items, answers = shared.Queue(), shared.Queue()
                producer = self.start(produce, items, 0, 300, how=how)
                consumer = self.start(consume, items, answers, how=how)
                for number in range(300):
                    self.assertEqual(answers.get(timeout=LONG), (number, number % 5000))
                items.put(None)
                self.joined(producer)
                self.joined(consumer)

    def test_a_queue_grows_with_what_is_in_it(self):
        items = shared.Queue()
        sizes = [10, 50_000, 3_000_000, 0, 70_000, 1]
        child = self.start(lambda: [items.put(b"a" * size) for size in sizes])
        self.joined(child)
        self.assertEqual(items.qsize(), len(sizes))
        self.assertEqual([len(items.get(timeout=LONG)) for _ in sizes], sizes)
        for size in sizes * 3:
            items.put(b"b" * size)
            self.assertEqual(len(items.get(False)), size)

    def test_a_queue_has_room_for_so_many(self):
        items = shared.Queue(2)
        items.put(1)
        items.put(2)
        self.assertTrue(items.full())
        with self.assertRaises(shared.Full):
            items.put(3, False)
        with self.assertRaises(queue.Full):
            items.put(3, timeout=0.01)
        child = self.start(items.put, 3)
        self.assertEqual(items.get(timeout=LONG), 1)
        self.joined(child)
        self.assertEqual([items.get(timeout=LONG), items.get(timeout=LONG)], [2, 3])
        with self.assertRaises(shared.Empty):
            items.get(timeout=0.01)
        items.close()
        for use in (items.get, lambda: items.put(1)):
            with self.assertRaises(ValueError):
                use()

    def test_what_cannot_be_pickled_is_refused_at_once(self):
        items = shared.Queue()
        with self.assertRaises(Exception):
            items.put(lambda: 1)
        self.assertTrue(items.empty())

    def test_tasks_are_done(self):
        items = shared.JoinableQueue()
        items.put(1)
        with self.assertRaises(shared.Empty):
            raise shared.Empty if not items._ring.join(0.01) else KeyError
        items.get()
        items.task_done()
        items.join()
        with self.assertRaises(ValueError):
            items.task_done()

    def test_workers_that_are_killed_tear_nothing(self):
        items = shared.Queue(50)
        for round in range(15):
            children = [self.start(put_for_ever, items, number) for number in range(2)]
            children += [self.start(get_for_ever, items)]
            time.sleep(0.02)
            for child in children:
                child.kill()
                child.join(LONG)
            count = items.qsize()
            for _ in range(count):
                number, text = items.get(timeout=LONG)
                self.assertEqual(text, b"%d" % number * (number % 700))
            self.assertTrue(items.empty())


def put_for_ever(items, number):
    while True:
        number += 2
        items.put((number, b"%d" % number * (number % 700)))


def get_for_ever(items):
    while True:
        number, text = items.get()
        assert text == b"%d" % number * (number % 700)


class Coroutines(ProcessTest):
    def run_async(self, coroutine):
        return asyncio.run(asyncio.wait_for(coroutine, LONG))

    def test_tasks_exclude_one_another(self):
        for lock in (shared.Lock(), shared.RLock(), shared.Semaphore(1), shared.RWLock().write()):
            with self.subTest(type(lock).__name__):
                inside, most = 0, 0

                async def work():
                    nonlocal inside, most
                    for _ in range(5):
                        async with lock:
                            inside += 1
                            most = max(most, inside)
                            await asyncio.sleep(0.001)
                            inside -= 1

                async def main():
                    await asyncio.gather(*(work() for _ in range(5)))

                self.run_async(main())
                self.assertEqual(most, 1)

    def test_a_task_waits_for_another_process(self):
        lock, held, let_go = shared.Lock(), shared.Event(), shared.Event()
        child = self.start(hold, lock, held, let_go)

        async def main():
            self.assertTrue(await held.wait_async(LONG))
            self.assertFalse(await lock.acquire_async(0.01))
            waiting = asyncio.ensure_future(lock.acquire_async())
            await asyncio.sleep(0.01)
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
            let_go.set()
            async with lock:
                pass

        self.run_async(main())
        self.joined(child)
        eventually(lambda: not lock.locked())

    def test_a_task_that_is_cancelled_leaves_nothing_locked(self):
        locks = [shared.Lock(), shared.RLock(), shared.Semaphore(1)]

        async def take(lock):
            async with lock:
                await asyncio.sleep(0.0005)

        async def main():
            for number in range(60):
                lock = locks[number % 3]
                tasks = [asyncio.ensure_future(take(lock)) for _ in range(4)]
                for _ in range(number % 7):
                    await asyncio.sleep(0)
                await asyncio.sleep(number % 5 * 0.0003)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        self.run_async(main())
        for lock in locks:
            self.assertTrue(lock.acquire(timeout=LONG))
            lock.release()

    def test_a_wait_for_a_condition_can_be_cancelled(self):
        condition = shared.Condition()

        async def wait():
            async with condition:
                await condition.wait_async()

        async def main():
            waiter = asyncio.ensure_future(wait())
            while not condition._waiting():
                await asyncio.sleep(0.001)
            waiter.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiter

        self.run_async(main())
        self.assertTrue(condition.acquire(timeout=LONG))
        condition.release()

    def test_an_rlock_is_of_its_task(self):
        lock = shared.RLock()

        async def main():
            async with lock:
                async with lock:
                    self.assertFalse(await asyncio.ensure_future(lock.acquire_async(0.01)))
                self.assertTrue(lock.locked())
            self.assertFalse(lock.locked())
            with self.assertRaises(ValueError):
                await lock.release_async()

        self.run_async(main())

    def test_queues_and_conditions(self):
        items, condition = shared.Queue(1), shared.Condition()

        async def produce():
            for number in range(5):
                await items.put_async(number)

        async def wait():
            async with condition:
                return await condition.wait_async(LONG)

        async def main():
            producer = asyncio.ensure_future(produce())
            self.assertEqual([await items.get_async() for _ in range(5)], list(range(5)))
            await producer
            with self.assertRaises(shared.Empty):
                await items.get_async(0.01)
            waiter = asyncio.ensure_future(wait())
            while not condition._waiting():
                await asyncio.sleep(0.001)
            async with condition:
                await condition.notify_async()
            self.assertTrue(await waiter)

        self.run_async(main())


def hold(lock, held, let_go):
    with lock:
        held.set()
        let_go.wait(LONG)


if __name__ == "__main__":
    unittest.main()
