"""Threads of every kind that Python has, and processes."""

import asyncio
import concurrent.futures as futures
import multiprocessing
import queue
import sys
import threading


def work(n):
    return sum(i * i for i in range(n))


def many_threads():
    with futures.ThreadPoolExecutor(12) as pool:
        print(sum(pool.map(work, range(300))))
    jobs, done = queue.Queue(4), []

    def consume():
        while (job := jobs.get()) is not None:
            done.append(job)

    consumers = [threading.Thread(target=consume) for _ in range(6)]
    for thread in consumers:
        thread.start()
    for i in range(1500):
        jobs.put(i)
    for _ in consumers:
        jobs.put(None)
    for thread in consumers:
        thread.join()
    print(sum(done), len(done))


def waits():
    event, barrier = threading.Event(), threading.Barrier(4)
    print(event.wait(0.01))
    threads = [threading.Thread(target=barrier.wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    threading.Timer(0.02, event.set).start()
    print(event.wait(30))


async def tasks():
    async def one(i):
        await asyncio.sleep(0.001)
        return await asyncio.to_thread(work, i)

    print(sum(await asyncio.gather(*[one(i) for i in range(60)])))
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec("sh", "-c", "echo child; exit 4", stdout=pipe)
    print(await child.communicate(), child.returncode)


def processes():
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            print(method, pool.map(work, [10, 20, 30]))
        with context.Lock(), context.RLock(), context.Semaphore(2):
            pass


if __name__ == "__main__":
    many_threads()
    waits()
    asyncio.run(tasks())
    processes()
    sys.exit(5)
