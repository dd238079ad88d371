"""What the cases in Python share: threads that say what they do, and meet before they hang."""

import os
import sys
import threading
import time

come = []


def say(line):
    os.write(1, (line + "\n").encode())


def meet(count):
    come.append(1)
    after(count)


def after(count):
    while len(come) < count:
        time.sleep(0.0005)


def start(name, body, *arguments):
    def named():
        say("THREAD %s %d" % (name, threading.get_native_id()))
        started.append(name)
        body(*arguments)

    started_before = len(started)
    threading.Thread(target=named, name=name, daemon=True).start()
    while len(started) == started_before:
        time.sleep(0.0005)


started = []
first, second, third = threading.Lock(), threading.Lock(), threading.Lock()


def place(name, lock):
    say("LOCK %s %#x %d" % (name, id(lock), sys.getsizeof(lock)))


def crossing():
    say("OWN a one\nOWN b two\nWAIT one b\nWAIT two a")


def crossed(body, a=first, b=second):
    place("a", a)
    place("b", b)
    crossing()
    start("one", body, a, b)
    start("two", body, b, a)


def items(lock):
    with lock:
        yield 1
        yield 2


def late(mine, other, others):
    after(others)
    with mine:
        meet(others + 2)
        with other:
            pass


def cross(others):
    place("a", first)
    place("b", second)
    crossing()
    start("one", late, first, second, others)
    start("two", late, second, first, others)


def behind(past):
    say("WAIT past b")
    start("past", past, first, second)
    cross(1)


def sleep():
    while True:
        time.sleep(100_000)
