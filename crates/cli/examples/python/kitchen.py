"""A kitchen with a deadlock in it.

    lockstead run -- python3 kitchen.py

The cook takes the pan, then the stove; the dishwasher takes the stove, then the pan. The
waiter refers to both and holds neither.
"""

import threading
import time

pan = threading.Lock()
stove = threading.Lock()
both_are_busy = threading.Barrier(2)


def cook():
    with pan:
        both_are_busy.wait()
        with stove:
            print("never printed")


def wash():
    with stove:
        both_are_busy.wait()
        with pan:
            print("never printed")


def serve(utensils):
    while utensils:
        time.sleep(0.1)


threads = [
    threading.Thread(target=cook, name="cook"),
    threading.Thread(target=wash, name="dishwasher"),
    threading.Thread(target=serve, name="waiter", args=([pan, stove],)),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
