"""A mutex over etcd, for programs that have outgrown one machine.

    from lockstead.cluster import Mutex, OwnerDied, Session

    with Session("http://10.0.0.1:2379,http://10.0.0.2:2379") as session:
        daily = Mutex(session, "reports/daily")
        try:
            with daily as held:
                held.check()                   # raises Lost; by the clock, no request
                store(report, held.token)      # which refuses a smaller token than it has seen
        except OwnerDied:                      # whoever had it lost its lease, and the lock is not ours
            with daily.recover():
                ...                            # look what it left; consistent again at the end

What a lock over a network can promise, and what not, is in `docs/cluster.md` of the project.
"""

import threading

from lockstead._lockstead import NotRecoverable, OwnerDied

try:
    from lockstead._lockstead import ClusterError, ClusterSession, Guard
    from lockstead._lockstead import ClusterLost as Lost
except ImportError as missing:
    raise ImportError("this lockstead was built without the feature `cluster`") from missing

__all__ = ["ClusterError", "Guard", "Lost", "Mutex", "NotRecoverable", "OwnerDied", "Session"]


class Session:
    """A lease of etcd, which a thread renews, and all that is held by it.

    Arguments: `endpoints`, URLs with commas between them, are asked in turn; `user` and `password` of etcd;
    `cacert`, `cert` and `key`, files with PEM, for `https:`; `root`, the folder of the locks' keys; `ttl`, whole
    seconds of the lease, 2 or more, so long at least others wait after a death; `margin`, seconds by which the
    lease is called lost before etcd may, the election timeout of its members; `patience`, seconds after which
    a request has failed.

    Raises `ValueError`, `ConnectionError`, `PermissionError`, `ClusterError`. A child of fork has none of
    its parent's locks.
    """

    def __init__(
        self,
        endpoints="http://127.0.0.1:2379",
        *,
        user=None,
        password=None,
        cacert=None,
        cert=None,
        key=None,
        root="lockstead",
        ttl=10,
        margin=1.0,
        patience=5.0,
    ):
        self._session = ClusterSession(
            endpoints, user, password, cacert, cert, key, root, ttl, margin, patience
        )

    @property
    def lease(self):
        """The number of the lease, as etcd has it."""
        return self._session.lease

    @property
    def safe_for(self):
        """Seconds for which what is held is one's own for sure; 0.0: it is lost."""
        return self._session.safe_for

    @property
    def unreachable_for(self):
        """Seconds for which no endpoint has answered; None: one does."""
        return self._session.unreachable_for

    @property
    def lost(self):
        """Whether the lease is lost."""
        return self._session.lost

    def check(self):
        """Raises `Lost` unless the lease is held; by the clock, without a request."""
        self._session.check()

    def wait_lost(self, timeout=None):
        """Waits for the loss of the lease, for `timeout` seconds at most; says whether it is lost.

        For a thread that is to act on it: `threading.Thread(target=..., daemon=True)`.
        """
        return self._session.wait_lost(timeout)

    def close(self):
        """Ends the lease: what is still held is lost, and whoever takes it gets `OwnerDied`."""
        self._session.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        try:
            self.close()
        except (ClusterError, ConnectionError, PermissionError):
            # An exception on its way is not replaced.
            if kind is None:
                raise

    def __repr__(self):
        return f"<lockstead.cluster.Session of lease {self.lease:x}>"


class Mutex:
    """Mutual exclusion among all sessions that name the same lock, first come, first served.

    Not recursive: who has it and asks again waits for itself, which `lockstead cluster dump` shows. `with`
    gives the `Guard`.
    """

    def __init__(self, session, name):
        if not isinstance(session, Session):
            raise TypeError("session: a lockstead.cluster.Session")
        if not isinstance(name, str) or not name:
            raise ValueError("name: a text that is not empty")
        self._session = session
        self._name = name
        self._entered = threading.local()

    @property
    def name(self):
        """The name that was given."""
        return self._name

    def acquire(self, block=True, timeout=None):
        """Acquires the mutex and returns its `Guard`, or None: it was not free (`block=False`) or not in time.

        `timeout` is in seconds. Other threads run while it waits; a handler of a signal that raises, as that
        of Ctrl-C, ends the wait within a tenth of a second and a request (`patience`).

        Raises `OwnerDied`: the lock is not acquired, and everybody is told until somebody leaves `recover()`
        without an exception. `NotRecoverable`, `Lost`, `ConnectionError`, `PermissionError`.
        """
        return self._session._session._acquire(self._name, bool(block), timeout, False)

    def recover(self, timeout=None):
        """Returns a context that has the lock whatever its last owner left, and declares that consistent at
        its end, unless by an exception.

        Entering raises `TimeoutError` after `timeout` seconds.
        """
        return _Recovery(self, timeout)

    def __enter__(self):
        guard = self.acquire()
        self._entered.guards = [*getattr(self._entered, "guards", []), guard]
        return guard

    def __exit__(self, kind, error, traceback):
        self._entered.guards.pop().__exit__(kind, error, traceback)

    def __repr__(self):
        return f"<lockstead.cluster.Mutex {self._name!r}>"


class _Recovery:
    """The context of `Mutex.recover`."""

    def __init__(self, mutex, timeout):
        self._mutex = mutex
        self._timeout = timeout
        self._guard = None

    def __enter__(self):
        mutex = self._mutex
        guard = mutex._session._session._acquire(mutex._name, True, self._timeout, True)
        if guard is None:
            raise TimeoutError(f"{mutex!r} was not free within {self._timeout} seconds")
        self._guard = guard
        return guard

    def __exit__(self, kind, error, traceback):
        guard, self._guard = self._guard, None
        if kind is None and guard.owner_died:
            guard.mark_consistent()
        guard.__exit__(kind, error, traceback)
