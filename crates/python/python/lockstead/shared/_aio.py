"""Locks in coroutines.

A lock's owner is a thread, and its death is the thread's. So a task that must wait for a lock has a
thread that waits, has the lock, and releases it for the task. A lock that is free is taken by the event
loop's own thread, which costs no thread. Threads are used again, and end with the process.
"""

import asyncio
import os
import queue
import threading


class _Holder:
    """A thread that does what a task cannot, in the task's stead."""

    _idle = []

    def __init__(self):
        self._calls = queue.SimpleQueue()
        threading.Thread(target=self._run, name="lockstead-holder", daemon=True).start()

    @classmethod
    def get(cls):
        try:
            return cls._idle.pop()
        except IndexError:
            return cls()

    def give_back(self):
        self._idle.append(self)

    def _run(self):
        while True:
            work = self._calls.get()
            work()
            # Not kept while the thread waits for more.
            del work

    async def call(self, function, *arguments, undo=None):
        """Calls in the thread. If the task is cancelled meanwhile, what the call brings is undone there."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        guard = threading.Lock()
        abandoned = False

        def settle(result, error):
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def work():
            result = error = None
            try:
                result = function(*arguments)
            except BaseException as caught:  # The task gets whatever it is.
                error = caught
            with guard:
                if not abandoned:
                    try:
                        loop.call_soon_threadsafe(settle, result, error)
                        return
                    except RuntimeError:
                        pass  # The loop is closed: nobody waits.
            if error is None and undo is not None:
                undo(result)
            self.give_back()

        self._calls.put(work)
        try:
            return await future
        except asyncio.CancelledError:
            with guard:
                abandoned = True
                came = future.done() and not future.cancelled()
            if came and undo is not None:
                self._calls.put(lambda: (undo(future.result()), self.give_back()))
            raise


def _forget_children():
    # The threads are the parent's.
    _Holder._idle = []


os.register_at_fork(after_in_child=_forget_children)


async def acquire(lock, tasks, function, timeout, release=None):
    """Has `function` acquire the lock for the current task. Returns whether it did."""
    task = asyncio.current_task()
    release = release or lock.release
    entry = tasks.get(task)
    if entry is not None and entry[0] is not None:
        holder, depth = entry
        if await holder.call(function, True, timeout):
            tasks[task] = (holder, depth + 1)
            return True
        return False
    if entry is None and getattr(lock, "_loop_may_own", False) and function(False):
        tasks[task] = (None, 1)
        return True
    holder = _Holder.get()
    try:
        got = await holder.call(function, True, timeout, undo=lambda got: got and release())
    except asyncio.CancelledError:
        raise
    except BaseException:
        holder.give_back()
        raise
    if got:
        tasks[task] = (holder, 1)
    else:
        holder.give_back()
    return got


async def release(lock, tasks, function=None):
    """Releases the lock for the current task."""
    task = asyncio.current_task()
    function = function or lock.release
    entry = tasks.get(task)
    if entry is None:
        raise ValueError("the current task does not have the lock")
    holder, depth = entry
    if depth == 1:
        del tasks[task]
    else:
        tasks[task] = (holder, depth - 1)
    if holder is None:
        function()
        return
    # Shielded: a lock must be released though its task is cancelled.
    await asyncio.shield(asyncio.ensure_future(holder.call(function)))
    if depth == 1:
        holder.give_back()


async def within(tasks, function, *arguments):
    """Calls a function in the thread that has the lock for the current task."""
    entry = tasks.get(asyncio.current_task())
    if entry is None or entry[0] is None:
        raise ValueError("the current task does not have the lock: use `async with`")
    return await entry[0].call(function, *arguments)


async def sliced(function, timeout):
    """Waits with a function that takes a timeout and has no effect but its result."""
    holder = _Holder.get()
    # If the task is cancelled the thread waits on, and comes back when what it waits for has come.
    result = await holder.call(function, timeout)
    holder.give_back()
    return result


async def taken(attempt, refusal, wait, timeout):
    """Makes an attempt again and again, waiting in between until it may succeed."""
    loop = asyncio.get_running_loop()
    end = None if timeout is None else loop.time() + timeout
    while True:
        try:
            return attempt()
        except refusal:
            left = None if end is None else end - loop.time()
            if left is not None and left <= 0:
                raise
            await sliced(wait, left)


class AsyncLock:
    """`async with` and `acquire_async` for locks that have `acquire` and `release`."""

    # Whether the thread of the event loop may own it for one of its tasks.
    _loop_may_own = True

    @property
    def _tasks(self):
        return self.__dict__.setdefault("_of_tasks", {})

    async def acquire_async(self, timeout=None):
        """Acquires for the current task, at most for `timeout` seconds. Returns whether it did."""
        return await acquire(self, self._tasks, self.acquire, timeout)

    async def release_async(self):
        """Releases what `acquire_async` acquired for the current task."""
        await release(self, self._tasks)

    async def __aenter__(self):
        await self.acquire_async()
        return self

    async def __aexit__(self, *error):
        await self.release_async()
