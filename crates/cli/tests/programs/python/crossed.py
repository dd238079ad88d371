# Two threads that take two locks in two orders, and one that waits for the end of the first.
import threading

front, back = threading.Lock(), threading.Lock()
both = threading.Barrier(2)


def left():
    with front:
        both.wait()
        with back:
            pass


def right():
    with back:
        both.wait()
        with front:
            pass


threads = [threading.Thread(target=run, daemon=True) for run in (left, right)]
for thread in threads:
    thread.start()
threads[0].join()
