"""Measures the locks of lockstead.shared beside those of multiprocessing, in turns.

    python tests/measure.py [--rounds 7] [--seconds 1]

The pair is the best of all rounds, in nanoseconds; throughput is that of each round, and the median is
shown with the least and the most. Sections add one to a number in shared memory.
"""

import argparse
import multiprocessing
import statistics
import time
import timeit

from lockstead import shared

PAIRS = 200_000


def kinds(context):
    return {
        "Lock": (shared.Lock, context.Lock),
        "RLock": (shared.RLock, context.RLock),
        "Semaphore": (shared.Semaphore, context.Semaphore),
        "Semaphore(held=False)": (lambda: shared.Semaphore(held=False), context.Semaphore),
    }


def pair(lock, statement):
    names = {"lock": lock, "acquire": lock.acquire, "release": lock.release}
    return timeit.timeit(statement, globals=names, number=PAIRS) / PAIRS * 1e9


def work(lock, numbers, number, ready, end):
    ready.release()
    while not end.value:
        for _ in range(100):
            with lock:
                numbers[0] += 1
            numbers[1 + number * 16] += 1


def throughput(context, lock, processes, seconds):
    numbers, end = context.RawArray("q", 1 + 16 * processes), context.RawValue("b", 0)
    ready = context.Semaphore(0)
    children = [
        context.Process(target=work, args=(lock, numbers, number, ready, end), daemon=True)
        for number in range(processes)
    ]
    for child in children:
        child.start()
    for _ in children:
        ready.acquire()
    before, began = numbers[0], time.monotonic()
    time.sleep(seconds)
    done, took = numbers[0] - before, time.monotonic() - began
    end.value = 1
    for child in children:
        child.join()
    total = sum(numbers[1 + number * 16] for number in range(processes))
    assert total == numbers[0], "two had the lock at once"
    return done / took / 1000


def shown(values):
    return f"{statistics.median(values):8.0f} ({min(values):.0f} to {max(values):.0f})"


def main(options):
    context = multiprocessing.get_context("fork")
    print(f"{'pair, ns':24} {'lockstead':>10} {'multiproc.':>10}")
    for name, makes in kinds(context).items():
        locks = [make() for make in makes]
        for statement in ("acquire(); release()", "with lock: pass"):
            best = [
                min(times)
                for times in zip(*[[pair(lock, statement) for lock in locks] for _ in range(options.rounds)])
            ]
            label = name if "acquire" in statement else "  with"
            print(f"{label:24} {best[0]:10.1f} {best[1]:10.1f}")
    print("\ndisputed Lock, thousand sections a second: median (least to most)")
    for processes in (1, 2, 4, 8):
        ours, theirs = [], []
        for _ in range(options.rounds):
            ours.append(throughput(context, shared.Lock(), processes, options.seconds))
            theirs.append(throughput(context, context.Lock(), processes, options.seconds))
        print(f"{processes} processes: lockstead {shown(ours)}, multiprocessing {shown(theirs)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0)
    main(parser.parse_args())
