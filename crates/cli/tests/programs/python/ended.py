# Waits that end, for as many seconds as the argument says: each at a line of its own.
import os
import queue
import sys
import threading
import time

seconds = float(sys.argv[1])
lock, recursive, condition = threading.Lock(), threading.RLock(), threading.Condition()
items, simple, event = queue.Queue(), queue.SimpleQueue(), threading.Event()
one, two = threading.Lock(), threading.Lock()


def wants():
    with lock:
        pass


def wants_recursive():
    with recursive:
        pass


def waits_for_condition():
    with condition:
        condition.wait()


def gets():
    items.get()


def gets_simple():
    simple.get()


def waits_for_event():
    event.wait()


def takes_turns():
    while not event.is_set():
        with one:
            time.sleep(0.003)
        with two:
            time.sleep(0.003)


def spins():
    while not event.is_set():
        pass


waiting = [wants, wants_recursive, waits_for_condition, gets, gets_simple, waits_for_event]
threads = [threading.Thread(target=run) for run in waiting + 3 * [takes_turns] + 2 * [spins]]
with lock, recursive:
    for thread in threads:
        thread.start()
    time.sleep(seconds)
items.put(None)
simple.put(None)
with condition:
    condition.notify_all()
event.set()
for thread in threads:
    thread.join()
print(hex(id(lock)), hex(id(one)), hex(id(two)), flush=True)
# The locks are there to the end, so that each has a row of its own.
os._exit(0)
