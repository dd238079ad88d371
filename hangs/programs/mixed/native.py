"""Threads that hang by a lock of Python, or the interpreter's own, and a native mutex."""

import ctypes
import os
import sys
import threading
import time

# Nothing is left beside the sources.
sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

from truth import after, come, first, meet, say, start

path, case = sys.argv[1:]


def places():
    say("LOCK a %#x %d" % (id(first), sys.getsizeof(first)))
    say("LOCK b %#x 40" % library.native_mutex())
    say("OWN a one\nOWN b two\nWAIT one b\nWAIT two a")


def crossed():
    def python_first():
        with first:
            meet(2)
            library.native_take()

    def native_first():
        library.native_take()
        meet(2)
        with first:
            pass

    places()
    start("one", python_first)
    start("two", native_first)


def called_back():
    def python_first():
        with first:
            meet(2)
            library.native_take()

    @ctypes.CFUNCTYPE(None)
    def body():
        meet(2)
        with first:
            pass

    places()
    start("one", python_first)
    start("two", lambda: library.native_call(body))


def interpreter():
    """Lets `two` hold the mutex and want the GIL, and `one` hold the GIL and want the mutex."""
    holding = ctypes.PyDLL(path)

    def with_gil():
        after(2)
        holding.native_take()

    @ctypes.CFUNCTYPE(None)
    def body():
        come.append(1)
        while True:
            time.sleep(0.001)

    say("LOCK gil 0x0 0\nLOCK b %#x 40" % library.native_mutex())
    say("OWN gil one\nOWN b two\nWAIT one b\nWAIT two gil")
    start("two", lambda: library.native_call(body))
    start("one", with_gil)
    after(1)
    # Nobody can say anything after the hang.
    say("END")
    come.append(1)
    time.sleep(100_000)


if case == "--list":
    print("crossed\ncalled_back\ninterpreter")
else:
    library = ctypes.CDLL(path)
    library.native_mutex.restype = ctypes.c_void_p
    say("THREAD main %d" % threading.get_native_id())
    {"crossed": crossed, "called_back": called_back, "interpreter": interpreter}[case]()
    say("END")
    while True:
        time.sleep(100_000)
