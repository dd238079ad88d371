# One thread holds a mutex of C and wants the GIL; another holds that and wants the mutex.
import ctypes
import threading

gives_gil, keeps_gil = ctypes.CDLL(None), ctypes.PyDLL(None)
mutex = ctypes.create_string_buffer(64)
taken = threading.Event()


def left():
    gives_gil.pthread_mutex_lock(mutex)
    taken.set()
    while True:
        pass


def right():
    taken.wait()
    keeps_gil.pthread_mutex_lock(mutex)


threads = [threading.Thread(target=run, daemon=True) for run in (left, right)]
for thread in threads:
    thread.start()
threads[0].join()
