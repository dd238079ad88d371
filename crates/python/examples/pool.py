"""A pool of multiprocessing, as it is, whose idle worker is killed. Without the patch it hangs."""

import multiprocessing
import os
import signal
import time

import lockstead


def double(number):
    return 2 * number


def pid(_):
    return os.getpid()


def main():
    lockstead.patch_multiprocessing()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        victim = pool.apply(pid, (0,))
        time.sleep(0.1)
        os.kill(victim, signal.SIGKILL)
        while os.path.exists(f"/proc/{victim}"):
            time.sleep(0.01)
        print(pool.map(double, range(5)))


if __name__ == "__main__":
    main()
