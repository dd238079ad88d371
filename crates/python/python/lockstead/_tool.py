"""The command `lockstead`, asked from Python: `dump` and `watch`."""

import json as _json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading

from lockstead import _lockstead

# The statuses of `lockstead dump`: it has shown that there is no deadlock, or what it should look at cannot
# be read, or there is a deadlock.
_SHOWN, _UNREADABLE, _DEADLOCK = 0, 1, 3


def command():
    """Returns the path of the command: `LOCKSTEAD_COMMAND`, that of this package, or one on the path.

    Raises `FileNotFoundError` if there is none.
    """
    given = os.environ.get("LOCKSTEAD_COMMAND")
    places = [
        os.path.dirname(sys.executable or ""),
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", f"{os.name}_user"),
    ]
    found = given or shutil.which("lockstead", path=os.pathsep.join(filter(None, places)))
    found = found or shutil.which("lockstead")
    if not found:
        raise FileNotFoundError(
            "there is no command `lockstead` beside python or on the path: install the wheel, or name it "
            "in LOCKSTEAD_COMMAND"
        )
    return found


def _run(arguments, timeout):
    # So that a program which was started with another locale is read all the same.
    return subprocess.run(
        [command(), "--color", "never", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout,
    )


class _Readable:
    """Lets this process's children read its memory, for as long as a command looks at it.

    Afterwards nobody may that the process had allowed it before, for the kernel does not tell whom.
    """

    _guard = threading.Lock()
    _users = 0

    def __enter__(self):
        with self._guard:
            _Readable._users += 1
            if _Readable._users == 1:
                _lockstead.allow_tracer(os.getpid())

    def __exit__(self, *error):
        with self._guard:
            _Readable._users -= 1
            if _Readable._users == 0:
                _lockstead.allow_tracer(0)


def dump(pid=None, *, all=False, json=False, timeout=60):
    """Returns who waits for which lock in a process, who holds it, and deadlocks: what `lockstead dump` shows.

    `pid` is the process, this one unless said otherwise; it need not have been prepared, nor be Python.
    The text has the frames of Python and native ones, and of the locks of `lockstead.shared` who has them
    and who waits, in all processes that share them. `all` shows threads that neither wait nor hold, too.
    With `json` it is a dictionary, of what the command writes with `--json`.

    Raises `RuntimeError` if the process cannot be looked at, with the reason, `FileNotFoundError` if there
    is no command, `subprocess.TimeoutExpired` after `timeout` seconds.
    """
    text, _ = _dumped(os.getpid() if pid is None else pid, all, json, timeout)
    return _json.loads(text) if json else text


def _dumped(pid, all, json, timeout):
    """Returns what `dump` says and whether there is a deadlock."""
    arguments = ["dump", *(["--all"] if all else []), *(["--json"] if json else []), str(pid)]
    done = _run(arguments, timeout)
    if done.returncode == _UNREADABLE and pid == os.getpid():
        with _Readable():
            done = _run(arguments, timeout)
    if done.returncode not in (_SHOWN, _DEADLOCK):
        raise RuntimeError(done.stderr.strip() or f"lockstead dump: status {done.returncode}")
    text = done.stdout
    if not json:
        text += "".join(f"\n{shown}" for shown in _segments(pid, timeout))
    return text, done.returncode == _DEADLOCK


def _segments(pid, timeout):
    """Yields what `lockstead shm` shows of the segments of anonymous locks that a process has open."""
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)
    except OSError:
        return
    for number in numbers:
        path = f"{folder}/{number}"
        try:
            name = os.readlink(path)
        except OSError:
            continue
        if name.startswith("/memfd:lockstead ") or name.startswith("/dev/shm/lockstead-"):
            done = _run(["shm", path], timeout)
            if done.returncode in (_SHOWN, _DEADLOCK) and "\n  lock" in done.stdout:
                yield done.stdout


class Watch:
    """What `watch` returns: looks for deadlocks until it is stopped. Also a context."""

    def __init__(self, report, interval, pid):
        self._report, self._interval, self._pid = report, interval, pid
        self._stopped = threading.Event()
        self._known = set()
        self._thread = threading.Thread(target=self._run, name="lockstead-watch", daemon=True)
        self._thread.start()

    def stop(self):
        """Ends the watch, and waits for a look that has begun."""
        self._stopped.set()
        self._thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()

    def _run(self):
        while not self._stopped.wait(self._interval):
            try:
                self._look()
            except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
                # Once: a process that cannot be looked at now cannot be in a minute.
                print(f"lockstead: watch ends: {error}", file=sys.stderr)
                return

    def _look(self):
        pid = os.getpid() if self._pid is None else self._pid
        found, is_deadlock = _dumped(pid, False, True, 60)
        if not is_deadlock:
            return
        cycles = {tuple(sorted(cycle["threads"])) for cycle in _json.loads(found)["cycles"]}
        if not cycles <= self._known:
            self._known |= cycles
            self._report(_dumped(pid, False, False, 60)[0])


def _print(text):
    print(text, file=sys.stderr, flush=True)


def watch(report=_print, *, interval=5.0, pid=None):
    """Looks for deadlocks in a process, this one unless said otherwise, every `interval` seconds.

    Calls `report` with the text of `dump` for each deadlock once, in a thread of its own; it is printed
    to standard error unless said otherwise. Each look starts the command, which reads the process's
    memory from outside; a deadlock of threads that hold the GIL for ever keeps this process from looking,
    and `lockstead run` or `lockstead dump` from outside do not depend on it. Returns a `Watch`.
    """
    if not interval > 0:
        raise ValueError("interval: more than no seconds")
    command()
    return Watch(report, interval, pid)
