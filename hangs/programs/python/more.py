"""More ways to hold a lock, or not to: by `acquire`, by managers of contexts, in generators."""

import contextlib
import threading

from truth import after, behind, come, crossed, first, items, meet, place, say, second, sleep, start


def enumerated(mine, other):
    for _ in enumerate(items(mine)):
        meet(2)
        with other:
            pass


def inner(lock):
    yield from items(lock)


def delegated(mine, other):
    for _ in inner(mine):
        meet(2)
        with other:
            pass


def if_free(mine, other):
    if not mine.acquire(blocking=False):
        return
    try:
        meet(2)
        with other:
            pass
    finally:
        mine.release()


def until_free(mine, other):
    while not mine.acquire(timeout=0.1):
        pass
    meet(2)
    other.acquire()
    other.release()
    mine.release()


def remembered(mine, other):
    done = None
    taken = mine.acquire(True, 1)
    try:
        meet(2)
        other.acquire()
        other.release()
    except ValueError as error:
        done = error
    finally:
        if taken and done is None:
            mine.release()


def shared(mine, other):
    def body():
        mine.acquire()
        try:
            meet(2)
            with other:
                pass
        finally:
            mine.release()

    body()


def by_name(mine, other):
    if mine is first:
        first.acquire()
        meet(2)
        second.acquire()
    else:
        second.acquire()
        meet(2)
        first.acquire()


class Slotted:
    __slots__ = ("lock",)

    def __init__(self, lock):
        self.lock = lock

    def __enter__(self):
        self.lock.acquire()
        return self

    def __exit__(self, *error):
        self.lock.release()


def own_manager(mine, other):
    with Slotted(mine):
        meet(2)
        with Slotted(other):
            pass


def in_slot(mine, other):
    one, two = Slotted(mine), Slotted(other)
    one.lock.acquire()
    try:
        meet(2)
        two.lock.acquire()
    finally:
        one.lock.release()


@contextlib.contextmanager
def taken(lock):
    lock.acquire()
    try:
        yield lock
    finally:
        lock.release()


def in_manager_with_finally(mine, other):
    with contextlib.ExitStack() as stack:
        stack.enter_context(taken(mine))
        meet(2)
        with taken(other):
            pass


def nested_try(mine, other):
    mine.acquire()
    try:
        try:
            meet(2)
            other.acquire()
        except (ValueError, KeyError):
            say("never")
        for _ in range(2):
            other.release()
    finally:
        mine.release()


def released_in_try(a, b):
    a.acquire()
    try:
        a.release()
        meet(3)
        b.acquire()
        a.acquire()
    finally:
        a.release()


def timed_out(a, b):
    come.append(1)
    after(3)
    a.acquire(timeout=0.01)
    try:
        b.acquire()
    finally:
        a.release()


def rebound(a, b):
    lock = threading.Lock()
    lock.acquire()
    lock = a
    meet(3)
    try:
        b.acquire()
    finally:
        lock.release()


class Unlocked:
    def __init__(self, lock):
        self.lock = lock

    def __enter__(self):
        self.lock.release()

    def __exit__(self, *error):
        self.lock.acquire()


def let_go(a, b):
    with a:
        with Unlocked(a):
            meet(3)
            with b:
                pass


def let_go_deeper(a, b):
    a.acquire()
    try:
        lets_go(a, b)
    finally:
        a.release()


def lets_go(a, b):
    a.release()
    meet(3)
    b.acquire()
    a.acquire()


def in_turn(a, b):
    for lock in (a, threading.Lock()):
        lock.acquire()
        lock.release()
    meet(3)
    b.acquire()
    lock.release()


def awaits_signal():
    """Lets `one` acquire a lock that `two` releases when it has the other one."""
    def signals():
        after(1)
        with second:
            come.append(1)
            sleep()
            first.release()

    def awaits():
        first.acquire()
        come.append(1)
        after(2)
        first.acquire()

    def wants():
        after(2)
        second.acquire()

    place("a", first)
    place("b", second)
    say("LEAK a one\nOWN b two\nWAIT one a\nWAIT three b")
    start("one", awaits)
    start("two", signals)
    start("three", wants)


class Kept:
    def __init__(self):
        self.lock = threading.Lock()

    def exchange(self, lock):
        self.lock = lock


def attribute_changed(a, b):
    kept = Kept()
    kept.lock.acquire()
    kept.exchange(a)
    try:
        meet(3)
        b.acquire()
    finally:
        kept.lock.release()


current = threading.Lock()


def exchange(lock):
    global current
    current = lock


def global_changed(a, b):
    current.acquire()
    exchange(a)
    try:
        meet(3)
        b.acquire()
    finally:
        current.release()


class Lent(Kept):
    def __enter__(self):
        self.lock.acquire()

    def __exit__(self, *error):
        self.lock.release()


def changed_in_manager(a, b):
    lent = Lent()
    with lent:
        lent.exchange(a)
        meet(3)
        b.acquire()


def by_alias(a, b):
    release = a.release
    a.acquire()
    try:
        release()
        meet(3)
        b.acquire()
    finally:
        a.release()


def take(lock):
    lock.acquire()


def behind_lost(past):
    """Lets `past` wait for `two`, who wants what `one` took in a function that has returned."""
    def takes():
        after(1)
        take(first)
        come.append(1)
        sleep()

    def wants():
        with second:
            meet(3)
            first.acquire()

    place("a", first)
    place("b", second)
    say("LEAK a one\nOWN b two\nWAIT past b\nWAIT two a")
    start("past", past, first, second)
    start("one", takes)
    start("two", wants)


def left_in_variable():
    def keeps():
        kept = items(first)
        next(kept)
        come.append(1)
        sleep()
        return kept

    def wants():
        after(1)
        first.acquire()

    place("a", first)
    say("LEAK a keeper\nWAIT one a")
    start("keeper", keeps)
    start("one", wants)


CASES = {
    "enumerated": lambda: crossed(enumerated),
    "delegated": lambda: crossed(delegated),
    "if_free": lambda: crossed(if_free),
    "until_free": lambda: crossed(until_free),
    "remembered": lambda: crossed(remembered),
    "shared": lambda: crossed(shared),
    "by_name": lambda: crossed(by_name),
    "own_manager": lambda: crossed(own_manager),
    "in_slot": lambda: crossed(in_slot),
    "in_manager_with_finally": lambda: crossed(in_manager_with_finally),
    "nested_try": lambda: crossed(nested_try),
    "released_in_try": lambda: behind(released_in_try),
    "timed_out": lambda: behind(timed_out),
    "rebound": lambda: behind(rebound),
    "let_go": lambda: behind(let_go),
    "let_go_deeper": lambda: behind(let_go_deeper),
    "in_turn": lambda: behind(in_turn),
    "awaits_signal": awaits_signal,
    "attribute_changed": lambda: behind_lost(attribute_changed),
    "global_changed": lambda: behind_lost(global_changed),
    "changed_in_manager": lambda: behind_lost(changed_in_manager),
    "by_alias": lambda: behind_lost(by_alias),
    "left_in_variable": left_in_variable,
}
