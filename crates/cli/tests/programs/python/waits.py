# A thread for each kind of wait, named by its function.
import contextlib
import queue
import threading
import time

ever = 1000000
# Released by each thread that has what the next ones want.
ready = threading.Semaphore(0)


def keeps_on():
    ready.release()
    time.sleep(ever)


class Account:
    def __init__(self):
        self.lock = threading.Lock()

    def keeps(self):
        with self.lock:
            try:
                keeps_on()
            finally:
                pass

    def wants(self):
        with self.lock:
            pass


account, recursive, bare = Account(), threading.RLock(), threading.Lock()
lent, generated, own = threading.Lock(), threading.Lock(), threading.Lock()
tried, managed, iterated, suspended = [threading.Lock() for _ in range(4)]
items, simple, event = queue.Queue(), queue.SimpleQueue(), threading.Event()
condition = threading.Condition(threading.Lock())
units, barrier = threading.Semaphore(0), threading.Barrier(2)


def keeps_recursive():
    with recursive, recursive:
        keeps_on()


def wants_recursive():
    with recursive:
        pass


def keeps_bare():
    bare.acquire()
    keeps_on()


def wants_bare():
    bare.acquire()


def lends():
    with lent:
        lent.release()
        keeps_on()


def borrows():
    lent.acquire()
    keeps_on()


def wants_lent():
    with lent:
        pass


def generates():
    with generated:
        yield
        keeps_on()


def keeps_generated():
    for _ in generates():
        pass


def wants_generated():
    with generated:
        pass


def keeps_tried():
    tried.acquire()
    try:
        keeps_on()
    finally:
        tried.release()


def wants_tried():
    tried.acquire()


@contextlib.contextmanager
def manages():
    with managed:
        yield


def keeps_managed():
    with contextlib.ExitStack() as stack:
        stack.enter_context(manages())
        keeps_on()


def wants_managed():
    with manages():
        pass


def iterates(lock):
    with lock:
        yield
        yield


def keeps_iterated():
    for _ in iterates(iterated):
        keeps_on()


def wants_iterated():
    iterated.acquire()


def keeps_suspended():
    kept = iterates(suspended)
    next(kept)
    keeps_on()


def wants_suspended():
    suspended.acquire()


def waits_for_condition():
    with condition:
        ready.release()
        condition.wait()


def keeps_condition():
    with condition:
        keeps_on()


def wants_condition():
    with condition:
        pass


def takes_twice():
    with own:
        with own:
            pass


def gets():
    items.get()


def gets_simple():
    simple.get()


def waits_for_event():
    event.wait()


def wants_unit():
    units.acquire()


def meets():
    barrier.wait()


def sleeps():
    time.sleep(ever)


first = [account.keeps, keeps_recursive, keeps_bare, lends, keeps_generated, waits_for_condition]
first += [keeps_tried, keeps_managed, keeps_iterated, keeps_suspended]
then = [borrows, keeps_condition]
last = [account.wants, wants_recursive, wants_bare, wants_lent, wants_generated, wants_condition]
last += [wants_tried, wants_managed, wants_iterated, wants_suspended]
last += [takes_twice, gets, gets_simple, waits_for_event, wants_unit, meets, sleeps]
threads = []
for part in (first, then, last):
    threads += [threading.Thread(target=run, daemon=True) for run in part]
    for thread in threads[-len(part):]:
        thread.start()
    for _ in part if part is not last else ():
        ready.acquire()
print("ready", flush=True)
threads[-1].join()
