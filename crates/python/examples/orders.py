"""Workers number orders. One is killed in the middle, and the next one puts in order what it left."""

import multiprocessing
import os
import signal

from lockstead.shared import Lock, OwnerDied


def repair(book):
    # An order is taken first, and numbered then: whichever was not finished is taken back.
    book["taken"] = book["numbered"]


def worker(lock, book, dies):
    for _ in range(100):
        try:
            with lock:
                book["taken"] += 1
                if dies and book["taken"] > 150:
                    os.kill(os.getpid(), signal.SIGKILL)
                book["numbered"] += 1
        except OwnerDied:
            with lock.recover():
                print("repaired:", book["taken"] - book["numbered"], "order was not finished")
                repair(book)


def main():
    with multiprocessing.Manager() as manager:
        lock, book = Lock(), manager.dict(taken=0, numbered=0)
        workers = [
            multiprocessing.Process(target=worker, args=(lock, book, number == 0)) for number in range(3)
        ]
        for process in workers:
            process.start()
        for process in workers:
            process.join()
        try:
            lock.acquire()
            lock.release()
        except OwnerDied:
            with lock.recover():
                repair(book)
        print("in order:", book["taken"] == book["numbered"])


if __name__ == "__main__":
    main()
