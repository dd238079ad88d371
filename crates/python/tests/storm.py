"""Kills workers that use the locks of lockstead.shared, again and again, and looks whether all goes on.

    python tests/storm.py [--kills 1000] [--start fork] [--workers 4] [--seconds 300]

Each worker takes locks at random: a section adds one to a number, dawdles, and adds one to another. They
are *torn* if they differ and the lock had not said that its holder died, or if somebody else is inside.
Messages through queues have sums; one that does not come whole is torn. After every 20 kills the parent
takes each lock, all units and all messages: what is not to be had within 20 seconds is *stuck*. Status 1
if there was either.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import time
import zlib

from lockstead import shared

PATIENCE = 20
UNITS = 3


class Section:
    """Two numbers and who is inside, in memory that all share."""

    def __init__(self, lock, numbers):
        self.lock, self.numbers = lock, numbers

    def enter(self, died, torn):
        first, second, inside = self.numbers
        if died:
            self.numbers[1], self.numbers[2] = first, 0
            self.lock.mark_consistent()
        elif first != second or inside:
            torn.value += 1

    def work(self, died, torn):
        self.enter(died, torn)
        self.numbers[2] = os.getpid()
        self.numbers[0] += 1
        for _ in range(random.randrange(60)):
            pass
        self.numbers[1] += 1
        self.numbers[2] = 0


class Things:
    """All that the workers use."""

    def __init__(self, context):
        def numbers():
            return context.RawArray("q", 3)

        flag = {"on_owner_death": "flag"}
        self.locks = [Section(shared.Lock(**flag), numbers()) for _ in range(2)]
        self.rlock = Section(shared.RLock(**flag), numbers())
        self.rwlock = Section(shared.RWLock(**flag), numbers())
        self.condition = Section(shared.Condition(**flag), numbers())
        self.semaphore = shared.BoundedSemaphore(UNITS)
        self.event = shared.Event()
        self.queue = shared.Queue(20)
        self.torn = context.RawValue("q", 0)
        self.operations = context.RawValue("q", 0)


def worker(things):
    random.seed(os.getpid() ^ time.monotonic_ns())
    torn = things.torn
    while True:
        things.operations.value += 1
        choice = random.randrange(9)
        if choice < 2:
            section = things.locks[choice]
            with section.lock:
                section.work(section.lock.owner_died, torn)
        elif choice == 2:
            section = things.rlock
            if section.lock.acquire(timeout=random.random() / 100):
                with section.lock:
                    section.work(section.lock.owner_died, torn)
                section.lock.release()
        elif choice == 3:
            section = things.rwlock
            with section.lock.write():
                section.work(section.lock.owner_died, torn)
        elif choice == 4:
            section = things.rwlock
            with section.lock.read():
                # A death is told to a reader that has the lock alone.
                section.enter(section.lock.owner_died, torn)
        elif choice == 5:
            section = things.condition
            with section.lock:
                section.work(section.lock.owner_died, torn)
                if random.random() < 0.5:
                    section.lock.notify(2)
                else:
                    section.lock.wait(0.002)
                    section.work(section.lock.owner_died, torn)
        elif choice == 6:
            with things.semaphore:
                pass
        elif choice == 7:
            text = os.urandom(random.choice([10, 1000, 20000]))
            try:
                things.queue.put((zlib.crc32(text), text), timeout=0.01)
            except shared.Full:
                drain(things, 1)
        else:
            drain(things, 1)
            things.event.set()
            if random.random() < 0.1:
                things.event.clear()


def drain(things, most):
    for _ in range(most):
        try:
            check, text = things.queue.get(timeout=0.005)
        except shared.Empty:
            return
        if zlib.crc32(text) != check:
            things.torn.value += 1


def look(things):
    """Takes everything, beside the workers. Returns what was not to be had."""
    stuck = []

    def had(name, got):
        if not got:
            stuck.append(name)
        return got

    sections = [*things.locks, things.rlock, things.condition]
    for number, section in enumerate(sections):
        if had(f"lock {number}", section.lock.acquire(timeout=PATIENCE)):
            section.work(section.lock.owner_died, things.torn)
            section.lock.release()
    for acquire in (things.rwlock.lock.acquire_write, things.rwlock.lock.acquire_read):
        if had("rwlock", acquire(timeout=PATIENCE)):
            things.rwlock.enter(things.rwlock.lock.owner_died, things.torn)
            things.rwlock.lock.release()
    units = [had("unit", things.semaphore.acquire(timeout=PATIENCE)) for _ in range(UNITS)]
    for _ in filter(None, units):
        things.semaphore.release()
    things.event.set()
    # A worker may take it back at once; what must not be is that `set` or `wait` does not return.
    things.event.wait(0.01)
    drain(things, 1000)
    return stuck


def storm(options):
    context = multiprocessing.get_context(options.start)
    things = Things(context)

    def start():
        child = context.Process(target=worker, args=(things,), daemon=True)
        child.start()
        return child

    workers = [start() for _ in range(options.workers)]
    kills, stuck, broken = 0, [], []
    began = time.monotonic()
    while kills < options.kills and time.monotonic() - began < options.seconds:
        time.sleep(random.random() * options.pause)
        victim = random.randrange(len(workers))
        # A worker that is not alive by then has ended by itself: it must not.
        if not workers[victim].is_alive():
            broken.append(workers[victim].exitcode)
        workers[victim].kill()
        workers[victim].join()
        kills += 1
        if kills % 20 == 0:
            # Half of the time nobody works any more, so that no later death mends what was lost.
            if random.random() < 0.5:
                for one in workers:
                    one.kill()
                    one.join()
                    kills += 1
                stuck += look(things)
                workers = [start() for _ in range(options.workers)]
                continue
            stuck += look(things)
        workers[victim] = start()
    for one in workers:
        one.kill()
        one.join()
        kills += 1
    stuck += look(things)
    seconds = time.monotonic() - began
    print(
        f"{options.start}: {kills} kills in {seconds:.0f} s, {things.operations.value} operations: "
        f"{len(stuck)} stuck, {things.torn.value} torn, {len(broken)} broken"
    )
    for text in sorted({str(one) for one in stuck + broken}):
        print(f"  {text}")
    return 1 if stuck or things.torn.value or broken else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--start", default="fork", choices=multiprocessing.get_all_start_methods())
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument(
        "--pause",
        type=float,
        default=0.01,
        help="the longest time between kills; workers that spawn need 0.3 to come to their first lock",
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(storm(parser.parse_args()))
