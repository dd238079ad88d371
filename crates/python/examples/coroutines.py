"""Tasks of one event loop and a process share a lock and a queue."""

import asyncio
import multiprocessing

from lockstead.shared import Lock, Queue


def produce(lock, queue):
    for number in range(6):
        with lock:
            queue.put(number)
    queue.put(None)


async def consume(lock, queue):
    total = 0
    while (number := await queue.get_async()) is not None:
        async with lock:
            total += number
    return total


async def main():
    lock, queue = Lock(), Queue()
    producer = multiprocessing.Process(target=produce, args=(lock, queue))
    producer.start()
    print("total:", await consume(lock, queue))
    producer.join()


if __name__ == "__main__":
    asyncio.run(main())
