"""Threads that hang by each other's locks, in Python: each case is one way to hold a lock."""

import contextlib
import queue
import sys
import threading

# Nothing is left beside the sources.
sys.dont_write_bytecode = True

from truth import after, come, crossed, crossing, cross, behind, first, items, meet, place, say
from truth import second, sleep, start, third
import more


def abba(mine, other):
    with mine:
        meet(2)
        with other:
            pass


def two_in_one_with(mine, other):
    with mine, arriving(), other:
        pass


@contextlib.contextmanager
def arriving():
    meet(2)
    yield


def try_finally(mine, other):
    mine.acquire()
    try:
        meet(2)
        other.acquire()
        other.release()
    finally:
        mine.release()


def bare(mine, other):
    mine.acquire()
    meet(2)
    other.acquire()


@contextlib.contextmanager
def locked(lock):
    with lock:
        yield


def in_manager(mine, other):
    with locked(mine):
        meet(2)
        with locked(other):
            pass


def in_stack(mine, other):
    with contextlib.ExitStack() as stack:
        stack.enter_context(mine)
        meet(2)
        stack.enter_context(other)


def level(depth, other):
    if depth == 0:
        meet(2)
        with other:
            return 1
    return level(depth - 1, other) + 1


def deep(mine, other):
    with mine:
        level(6, other)


class Account:
    def __init__(self):
        self._lock = threading.Lock()
        self.balance = 0

    def pay(self, to):
        with self._lock:
            meet(2)
            with to._lock:
                to.balance += self.balance


def attribute():
    a, b = Account(), Account()
    place("a", a._lock)
    place("b", b._lock)
    crossing()
    start("one", a.pay, b)
    start("two", b.pay, a)


def generator(mine, other):
    for _ in items(mine):
        meet(2)
        with other:
            pass


def link(mine, other):
    with mine:
        meet(3)
        with other:
            pass


def ring():
    locks, names = [first, second, third], ["one", "two", "three"]
    for at in range(3):
        place("abc"[at], locks[at])
        say("OWN %s %s" % ("abc"[at], names[at]))
        say("WAIT %s %s" % (names[at], "abc"[(at + 1) % 3]))
    for at in range(3):
        start(names[at], link, locks[at], locks[(at + 1) % 3])


def again(lock):
    with lock:
        with lock:
            pass


def twice():
    place("a", first)
    say("OWN a one\nWAIT one a")
    start("one", again, first)


def dropped(a, b):
    with a:
        pass
    meet(3)
    with b:
        pass


def released(a, b):
    a.acquire()
    a.release()
    meet(3)
    b.acquire()


def thrown(a, b):
    try:
        with a:
            raise ValueError("an error")
    except ValueError:
        meet(3)
        with b:
            pass


def tried(a, b):
    meet(3)
    a.acquire(blocking=False)
    with b:
        pass


def leaked():
    place("a", first)
    place("b", second)
    say("LEAK a past\nOWN b one\nWAIT past b\nWAIT one a")
    start("past", lose, first, second)
    start("one", late_pair, second, first)


def lose(a, b):
    take_and_return(a)
    meet(2)
    with b:
        pass


def take_and_return(lock):
    lock.acquire()


def late_pair(mine, other):
    with mine:
        meet(2)
        with other:
            pass


def stand_by(a, b):
    seen, enter, leave = [a, b], a.__enter__, b.__exit__
    meet(4)
    sleep()
    return seen, enter, leave


def bystander():
    start("by_one", stand_by, first, second)
    start("by_two", stand_by, second, first)
    cross(2)


changed = threading.Condition(first)


def wait_for_more(lock):
    with changed:
        come.append(1)
        while True:
            changed.wait()


def condition():
    say("LOCK changed 0x0 0\nWAIT past changed")
    start("past", wait_for_more, first)
    after(1)
    cross(1)


def lost_wake_up():
    with changed:
        changed.notify()
    say("LOCK changed 0x0 0\nWAIT one changed")
    start("one", wait_for_more, first)


def empty_queue():
    items = queue.Queue()
    say("LOCK items 0x0 0\nWAIT one items")
    start("one", items.get)


def owner_sleeps():
    def holds():
        with first:
            come.append(1)
            sleep()

    def wants():
        after(1)
        with first:
            pass

    place("a", first)
    say("OWN a busy\nWAIT one a")
    start("busy", holds)
    start("one", wants)


CASES = {
    "abba": lambda: crossed(abba),
    "rlock": lambda: crossed(abba, threading.RLock(), threading.RLock()),
    "two_in_one_with": lambda: crossed(two_in_one_with),
    "try_finally": lambda: crossed(try_finally),
    "bare": lambda: crossed(bare),
    "in_manager": lambda: crossed(in_manager),
    "in_stack": lambda: crossed(in_stack),
    "deep": lambda: crossed(deep),
    "attribute": attribute,
    "generator": lambda: crossed(generator),
    "ring": ring,
    "self": twice,
    "dropped": lambda: behind(dropped),
    "released": lambda: behind(released),
    "thrown": lambda: behind(thrown),
    "tried": lambda: behind(tried),
    "leaked": leaked,
    "bystander": bystander,
    "condition": condition,
    "lost_wake_up": lost_wake_up,
    "empty_queue": empty_queue,
    "owner_sleeps": owner_sleeps,
    **more.CASES,
}

if sys.argv[1] == "--list":
    print("\n".join(CASES))
else:
    say("THREAD main %d" % threading.get_native_id())
    CASES[sys.argv[1]]()
    say("END")
    sleep()
