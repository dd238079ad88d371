"""The order in which a program's Python locks are taken, for `pytest --lockstead-check`.

Each lock that is made while `Recorder` is installed tells it of its acquisitions. Where a thread takes one
lock while it has another, that order is kept, with both stacks. A ring of such orders is a potential
deadlock: threads that take the locks at the same time can wait for each other for ever. As elsewhere in
lockstead a ring counts if its orders are of *instances*, not all of one thread, and not all under one
common lock, which keeps them apart.
"""

import _thread
import sys
import threading

_FRAMES = 12


def _stack(depth):
    """Returns where the caller is: pairs of a code object and a line, innermost first."""
    frames, frame = [], sys._getframe(depth)
    while frame is not None and len(frames) < _FRAMES:
        if frame.f_code.co_filename not in (__file__, threading.__file__):
            frames.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(frames)


def _text(stack):
    return [f"{code.co_name}() at {code.co_filename}:{line}" for code, line in stack]


class _Order:
    """That one lock was taken while another was held, by one thread or several."""

    __slots__ = ("threads", "common", "held_at", "taken_at")

    def __init__(self, held_at, taken_at, common):
        self.threads = set()
        self.common = common
        self.held_at, self.taken_at = held_at, taken_at


class Recorder:
    """Knows the locks that were made since it was installed, and in which orders they were taken."""

    def __init__(self):
        # Neither of the patched kind, nor a lock of Python code that a finaliser could meet again.
        self._guard = _thread.RLock()
        self._held = threading.local()
        self._orders = {}
        self._names = {}
        self._next = self._threads = 0
        self._before = None

    def install(self):
        """Has threading, and `lockstead.shared`, make locks that tell."""
        from lockstead.shared import _locks

        recorder = self

        class Lock(_Told):
            def __init__(self):
                super().__init__(recorder, _thread.allocate_lock(), "threading.Lock")

        class RLock(_ToldRLock):
            def __init__(self):
                super().__init__(recorder, _thread.RLock(), "threading.RLock")

        self._before = threading.Lock, threading.RLock
        threading.Lock, threading.RLock = Lock, RLock
        _locks._Mutex._recorder = recorder
        for name in ("acquire", "release", "__enter__", "__exit__"):
            setattr(_locks._Mutex, name, _telling(getattr(_locks._Mutex, name), name))

    def uninstall(self):
        """Has them make their own locks again."""
        from lockstead.shared import _locks

        threading.Lock, threading.RLock = self._before
        for name in ("acquire", "release", "__enter__", "__exit__"):
            delattr(_locks._Mutex, name)

    def name(self, kind):
        """Returns a number for a new lock, and keeps where it was made."""
        with self._guard:
            self._next += 1
            self._names[self._next] = (kind, _stack(3)[:1])
            return self._next

    def _mine(self):
        try:
            return self._held.locks
        except AttributeError:
            # Not the interpreter's number, which the next thread may have again.
            with self._guard:
                self._threads += 1
                self._held.me = self._threads
            self._held.locks = {}
            return self._held.locks

    def acquired(self, lock, waited):
        """Notes that the calling thread has taken the lock. One that only tried is in no order."""
        held = self._mine()
        if lock in held:
            depth, stack = held[lock]
            held[lock] = depth + 1, stack
            return
        stack = _stack(3)
        if waited:
            me = self._held.me
            for other, (_, held_at) in held.items():
                common = frozenset(held) - {other}
                with self._guard:
                    order = self._orders.get((other, lock))
                    if order is None:
                        order = self._orders[other, lock] = _Order(held_at, stack, common)
                    order.common &= common
                    order.threads.add(me)
        held[lock] = 1, stack

    def released(self, lock):
        """Notes that the calling thread has released the lock, if it has taken it."""
        held = self._mine()
        if lock in held:
            depth, stack = held[lock]
            if depth > 1:
                held[lock] = depth - 1, stack
            else:
                del held[lock]

    def findings(self):
        """Returns a text for each ring of orders that can become a deadlock."""
        with self._guard:
            orders = dict(self._orders)
        following = {}
        for first, second in orders:
            following.setdefault(first, []).append(second)
        found, seen = [], set()
        for start in following:
            ring = _shortest_ring(start, following)
            if ring is None or frozenset(ring) in seen:
                continue
            seen.add(frozenset(ring))
            steps = [orders[pair] for pair in zip(ring, ring[1:] + ring[:1])]
            one_thread = len(set().union(*(step.threads for step in steps))) == 1
            common = frozenset.intersection(*(step.common for step in steps))
            if not one_thread and not common:
                found.append(self._describe(ring, steps))
        return found

    def _describe(self, ring, steps):
        lines = [f"POTENTIAL deadlock: {len(ring)} locks are taken in a ring"]
        for lock, after, step in zip(ring, ring[1:] + ring[:1], steps):
            lines.append(f"  {self._called(after)} was taken while {self._called(lock)} was held")
            lines += [f"    taken:  {line}" for line in _text(step.taken_at)[:4]]
            lines += [f"    held:   {line}" for line in _text(step.held_at)[:4]]
        return "\n".join(lines)

    def _called(self, lock):
        kind, made = self._names[lock]
        where = _text(made)
        return f"{kind} #{lock}" + (f", made in {where[0]}," if where else "")


def _shortest_ring(start, following):
    """Returns the locks of the shortest way from one back to itself."""
    before, todo = {start: None}, [start]
    for lock in todo:
        for after in following.get(lock, ()):
            if after == start:
                ring = []
                while lock is not None:
                    ring.append(lock)
                    lock = before[lock]
                return ring[::-1]
            if after not in before:
                before[after] = lock
                todo.append(after)
    return None


class _Told:
    """A lock of threading's that tells the recorder."""

    def __init__(self, recorder, lock, kind):
        self._recorder, self._lock = recorder, lock
        self._number = recorder.name(kind)

    def acquire(self, blocking=True, timeout=-1):
        got = self._lock.acquire(blocking, timeout)
        if got:
            self._recorder.acquired(self._number, blocking)
        return got

    def release(self):
        self._lock.release()
        self._recorder.released(self._number)

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *error):
        self.release()

    def __repr__(self):
        return repr(self._lock)

    def __getattr__(self, name):
        # `locked`, `_at_fork_reinit` and what else the interpreter's own code asks of a lock.
        return getattr(self._lock, name)


class _ToldRLock(_Told):
    """The same for an RLock, which conditions give up and take back by methods of their own."""

    def _release_save(self):
        state = self._lock._release_save()
        held = self._recorder._mine()
        return state, held.pop(self._number, None)

    def _acquire_restore(self, state):
        self._lock._acquire_restore(state[0])
        if state[1] is not None:
            self._recorder.acquired(self._number, True)
            self._recorder._mine()[self._number] = state[1]


def _telling(method, name):
    """Has a method of the locks between processes tell the recorder."""

    def tell(self, *args, **named):
        recorder = self._recorder
        number = self.__dict__.get("_number")
        if number is None:
            number = self.__dict__["_number"] = recorder.name(f"lockstead {type(self).__name__}")
        result = method(self, *args, **named)
        if name in ("acquire", "__enter__"):
            if result:
                blocks = named.get("block", args[0] if args else True)
                recorder.acquired(number, bool(blocks))
        else:
            recorder.released(number)
        return result

    return tell
