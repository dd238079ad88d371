# One thread holds a mutex of C and sleeps; another waits for the mutex.
import ctypes
import threading
import time

library = ctypes.CDLL(None)
mutex = ctypes.create_string_buffer(64)


def keeps():
    library.pthread_mutex_lock(mutex)
    taken.set()
    time.sleep(1000000)


def wants():
    taken.wait()
    library.pthread_mutex_lock(mutex)


taken = threading.Event()
threads = [threading.Thread(target=run, daemon=True) for run in (keeps, wants)]
for thread in threads:
    thread.start()
threads[0].join()
