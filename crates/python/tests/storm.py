"""Kills workers that use the locks of lockstead.shared, again and again, and looks whether all goes on.

    python tests/storm.py [--kills 1000] [--start fork] [--workers 4] [--at-once 1] [--seconds 300]

Each worker takes locks at random: a section adds one to a number, dawdles, and adds one to another. They
are *torn* if they differ and the lock had not said that its holder died, or if somebody else is inside.
Messages through queues have sums; one that does not come whole is torn. After every 20 kills the parent
takes each lock, all units and all messages: what is not to be had within 20 seconds is *stuck*. Status 1
if there was either.

Only workers that have begun to use the locks are killed and counted: with spawn, a new interpreter takes
longer to start than a worker lives. What takes long is to start workers, so that --at-once kills several
at a time.
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
# How many kills there are between two looks at everything.
LOOK = 20
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

    def __init__(self, context, workers):
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
        # What each worker that runs has done; of its own place alone, which is another line of memory.
        self.operations = context.RawArray("q", 8 * workers)


def worker(things, number):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    random.seed(os.getpid() ^ time.monotonic_ns())
    torn = things.torn
    while True:
        things.operations[8 * number] += 1
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


class Workers:
    """The workers that run, each at its place."""

    def __init__(self, context, things, count):
        self.context, self.things = context, things
        self.operations = 0
        self.kills = 0
        # Workers that ended by themselves, which they must not, by what they ended with.
        self.broken = []
        self.all = [self.start(number) for number in range(count)]

    def start(self, number):
        child = self.context.Process(target=worker, args=(self.things, number), daemon=True)
        child.start()
        return child

    def working(self):
        """Returns the places of those that have used a lock."""
        return [number for number in range(len(self.all)) if self.things.operations[8 * number]]

    def kill(self, numbers):
        """Kills those at these places, all before the first is waited for."""
        for number in numbers:
            if not self.all[number].is_alive():
                self.broken.append(self.all[number].exitcode)
            self.all[number].kill()
        for number in numbers:
            self.all[number].join()
            self.all[number].close()
            self.all[number] = None
            done = self.things.operations[8 * number]
            self.things.operations[8 * number] = 0
            self.operations += done
            self.kills += done != 0

    def fill(self):
        """Starts a worker at each place that has none."""
        for number, child in enumerate(self.all):
            if child is None:
                self.all[number] = self.start(number)

    def dead(self):
        """Returns the places whose workers have ended by themselves."""
        return [number for number, child in enumerate(self.all) if not child.is_alive()]


def storm(options):
    context = multiprocessing.get_context(options.start)
    things = Things(context, options.workers)
    workers = Workers(context, things, options.workers)
    stuck, looks, next_look = [], 0, LOOK
    began = told = time.monotonic()

    def say(end):
        seconds = time.monotonic() - began
        print(
            f"{options.start}: {workers.kills} kills in {seconds:.0f} s, {looks} looks, "
            f"{workers.operations} operations: {len(stuck)} stuck, {things.torn.value} torn, "
            f"{len(workers.broken)} broken",
            end=end,
            flush=True,
        )

    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    while workers.kills < options.kills and time.monotonic() - began < options.seconds and not ended:
        time.sleep(random.random() * options.pause)
        ready = workers.working()
        most = min(len(ready), random.randint(1, options.at_once))
        workers.kill(set(random.sample(ready, most)) | set(workers.dead()))
        if workers.kills >= next_look:
            next_look = workers.kills + LOOK
            looks += 1
            # Half of the time nobody works any more, so that no later death mends what was lost.
            if random.random() < 0.5:
                workers.kill([number for number, child in enumerate(workers.all) if child])
            stuck += look(things)
        workers.fill()
        if time.monotonic() - told > 10:
            told = time.monotonic()
            say("\r" if sys.stdout.isatty() else "\n")
    workers.kill(range(options.workers))
    stuck += look(things)
    looks += 1
    say("\n")
    for text in sorted({str(one) for one in stuck + workers.broken}):
        print(f"  {text}")
    return 1 if stuck or things.torn.value or workers.broken else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--start", default="fork", choices=multiprocessing.get_all_start_methods())
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--pause", type=float, default=0.01, help="the longest time between kills")
    parser.add_argument("--at-once", type=int, default=1, help="how many are killed at a time, at most")
    sys.exit(storm(parser.parse_args()))
