"""Locks in coroutines.

A lock's owner is a thread, and its death is the thread's. So a task that must wait for a lock has a
thread that waits, has the lock, and releases it for the task. A lock that is free is taken by the event
loop's own thread, which costs no thread. Threads are used again, and end with the process.

`asyncio` is imported by the coroutines, where it is there already: it is most of what importing it here
would cost each process that has no coroutine.
"""

import os
import queue
import threading
import time

# How long a thread waits before it looks whether its task still does, in seconds.
_LOOK = 0.5


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

    async def call(self, function, *arguments, undo=None, keep=False):
        """Calls in the thread.

        If the task is cancelled meanwhile, what the call brings is undone there, and the thread is given
        back unless the caller keeps it.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        future = loop.create_future()
        # Whoever takes it first sees to the result: the loop, or the thread if the loop ends before.
        claim, settled = threading.Lock(), threading.Event()

        def back(result, error):
            try:
                if error is None and undo is not None:
                    undo(result)
            finally:
                if not keep:
                    self.give_back()

        def settle(result, error):
            if not claim.acquire(False):
                return
            settled.set()
            if future.cancelled():
                self._calls.put(lambda: back(result, error))
            elif error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def work():
            result = error = None
            try:
                result = function(*arguments)
            except BaseException as caught:  # The task gets whatever it is.
                error = caught
            try:
                loop.call_soon_threadsafe(settle, result, error)
            except RuntimeError:
                back(result, error)  # The loop is closed: nobody waits.
                return
            # A loop that is closed now may have forgotten what it was to call.
            while undo is not None and not settled.wait(_LOOK):
                if loop.is_closed() and claim.acquire(False):
                    back(result, error)
                    return

        self._calls.put(work)
        try:
            return await future
        except asyncio.CancelledError:
            # It may have come, and the task be cancelled before it has seen that.
            if future.done() and not future.cancelled():
                error = future.exception()
                result = None if error else future.result()
                self._calls.put(lambda: back(result, error))
            else:
                future.cancel()
            raise


def _forget_children():
    # The threads are the parent's.
    _Holder._idle = []


os.register_at_fork(after_in_child=_forget_children)


class _Patience:
    """A wait of a thread for a task, which ends soon after the task has ceased to wait."""

    def __init__(self, timeout):
        self._end = None if timeout is None else time.monotonic() + timeout
        self._given_up = False

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self._given_up = kind is not None

    def wait(self, function):
        """Calls a function that takes a time, until it returns true or the time is over."""
        while True:
            left = _LOOK if self._end is None else min(_LOOK, max(0.0, self._end - time.monotonic()))
            if function(left):
                return True
            if self._given_up or (self._end is not None and time.monotonic() >= self._end):
                return False


async def acquire(lock, tasks, function, timeout, release=None):
    """Has `function` acquire the lock for the current task. Returns whether it did."""
    import asyncio

    task = asyncio.current_task()
    release = release or lock.release
    entry = tasks.get(task)
    if entry is not None and entry[0] is not None:
        holder, depth = entry
        # Of an RLock: the thread has it, and has it at once.
        if await holder.call(function, True, timeout, keep=True):
            tasks[task] = (holder, depth + 1)
            return True
        return False
    if entry is None and getattr(lock, "_loop_may_own", False) and function(False):
        tasks[task] = (None, 1)
        return True
    holder = _Holder.get()
    try:
        with _Patience(timeout) as patience:
            got = await holder.call(
                patience.wait, lambda left: function(True, left), undo=lambda got: got and release()
            )
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
    import asyncio

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

    async def finish():
        try:
            await holder.call(function, keep=True)
        finally:
            if depth == 1:
                holder.give_back()

    # Shielded: a lock must be released though its task is cancelled.
    await asyncio.shield(asyncio.ensure_future(finish()))


async def within(tasks, function, *arguments):
    """Calls a function in the thread that has the lock for the current task."""
    import asyncio

    entry = tasks.get(asyncio.current_task())
    if entry is None or entry[0] is None:
        raise ValueError("the current task does not have the lock: use `async with`")
    return await entry[0].call(function, *arguments, keep=True)


async def wait_within(tasks, wait, timeout):
    """Waits for a condition in the thread that has its lock for the current task.

    The thread has the lock whenever it looks whether the task waits, so no notification comes in between.
    """
    with _Patience(timeout) as patience:
        return await within(tasks, patience.wait, wait)


async def sliced(function, timeout):
    """Waits with a function that takes a timeout and has no effect but its result."""
    import asyncio

    holder = _Holder.get()
    try:
        with _Patience(timeout) as patience:
            result = await holder.call(patience.wait, function)
    except asyncio.CancelledError:
        raise
    except BaseException:
        holder.give_back()
        raise
    holder.give_back()
    return result


async def taken(attempt, refusal, wait, timeout):
    """Makes an attempt again and again, waiting in between until it may succeed."""
    import asyncio

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
