"""Threads of Python that compute: one at a time has the interpreter. interpreter.py THREADS SECONDS"""
import sys
import threading
import time

threads, seconds = int(sys.argv[1]), float(sys.argv[2])
counts = [0] * threads
since = time.monotonic()
until = since + seconds


def compute(number):
    done = 0
    while time.monotonic() < until:
        sum(i * i for i in range(300))
        done += 1
    counts[number] = done


all_threads = [threading.Thread(target=compute, args=(i,)) for i in range(threads)]
for thread in all_threads:
    thread.start()
for thread in all_threads:
    thread.join()
print(sum(counts) / (time.monotonic() - since))
