"""What multiprocessing.Lock costs, and what becomes of it; one object of JSON on standard output."""

import json
import multiprocessing
import os
import platform
import signal
import statistics
import threading
import time


def pair(lock, rounds=31, slice_s=0.005, turns=64):
    """Nanoseconds of acquire and release, the median of the rounds."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        pairs = 0
        while True:
            for _ in range(turns):
                lock.acquire()
                lock.release()
            pairs += turns
            elapsed = time.perf_counter() - begin
            if elapsed >= slice_s:
                break
        times.append(elapsed / pairs * 1e9)
    return statistics.median(times)


def hold(lock, held):
    lock.acquire()
    held.set()
    signal.pause()


def after_kill(context):
    """What a waiter gets within two seconds when the holder is killed, and after how long."""
    lock, held = context.Lock(), context.Event()
    holder = context.Process(target=hold, args=(lock, held), daemon=True)
    holder.start()
    held.wait()
    begin = time.perf_counter()
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    if lock.acquire(timeout=2):
        return "silent", (time.perf_counter() - begin) * 1e3
    return "stuck", None


def excludes_threads(context):
    lock, got = context.Lock(), []
    lock.acquire()
    other = threading.Thread(target=lambda: got.append(lock.acquire(block=False)))
    other.start()
    other.join()
    return not got[0]


def survives_child(context):
    """Whether it is held when a child has released what its parent holds."""
    lock = context.Lock()
    lock.acquire()
    child = context.Process(target=lock.release)
    child.start()
    child.join()
    return not lock.acquire(block=False)


def main():
    context = multiprocessing.get_context("fork")
    outcome, known = after_kill(context)
    print(json.dumps({
        "version": platform.python_version(),
        "pair_ns": pair(context.Lock()),
        "after_kill": outcome,
        "known_ms": known,
        "excludes_threads": excludes_threads(context),
        "survives_child": survives_child(context),
    }))


main()
