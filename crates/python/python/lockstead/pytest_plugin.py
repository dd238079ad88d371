"""The plugin of pytest: says why a test hangs, and in which order tests take locks.

    pytest --lockstead-timeout 60     a test that runs longer fails, with who waits for whom
    pytest --lockstead-check          at the end: locks that are taken in orders which can deadlock
"""

import os
import signal
import sys
import threading

import pytest

from lockstead import _order, _tool

# How long a test may take to end once it was told that it has failed, in seconds.
_GRACE = 10.0


def pytest_addoption(parser):
    group = parser.getgroup("lockstead")
    group.addoption(
        "--lockstead-timeout",
        type=float,
        default=None,
        metavar="SECONDS",
        help="fail a test that runs for longer, with the graph of who waits for which lock and who "
        "holds it, in this process and its children, with Python and native frames",
    )
    group.addoption(
        "--lockstead-check",
        action="store_true",
        help="check the order in which tests take locks of threading and of lockstead.shared; the "
        "session fails if they can deadlock",
    )
    parser.addini("lockstead_timeout", "as --lockstead-timeout, in seconds", default=None)


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "lockstead_timeout(seconds): as --lockstead-timeout, for one test"
    )
    if config.getoption("--lockstead-check"):
        recorder = _order.Recorder()
        recorder.install()
        config.add_cleanup(recorder.uninstall)
        config.pluginmanager.register(_Check(recorder), "lockstead-check")


def _seconds(item):
    marker = item.get_closest_marker("lockstead_timeout")
    if marker is not None:
        return float(marker.args[0] if marker.args else marker.kwargs["seconds"])
    given = item.config.getoption("--lockstead-timeout")
    if given is None:
        given = item.config.getini("lockstead_timeout")
    return float(given) if given not in (None, "") else None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    seconds = _seconds(item)
    if not seconds or seconds <= 0:
        yield
        return
    limit = _Limit(item, seconds)
    limit.begin()
    try:
        yield
    finally:
        limit.end()


def graph(pid):
    """Returns who waits for whom in a process and its descendants, as text."""
    parts = []
    for process in [pid, *_descendants(pid)]:
        try:
            parts.append(_tool.dump(process, all=True))
        except (OSError, RuntimeError, _tool.subprocess.SubprocessError) as error:
            parts.append(f"process {process} cannot be looked at: {error}\n")
    return "\n".join(parts)


def _descendants(pid):
    """Returns the children of a process, their children and so on."""
    found, todo = [], [pid]
    while todo:
        process = todo.pop()
        try:
            threads = os.listdir(f"/proc/{process}/task")
            for thread in threads:
                with open(f"/proc/{process}/task/{thread}/children") as file:
                    children = [int(number) for number in file.read().split()]
                found += children
                todo += children
        except OSError:
            continue
    return found


class _Limit:
    """The time of one test."""

    def __init__(self, item, seconds):
        self._item, self._seconds = item, seconds
        self._over = threading.Event()
        self._text = None
        self._thread = threading.Thread(target=self._run, name="lockstead-timeout", daemon=True)
        self._signals = threading.current_thread() is threading.main_thread()
        self._before = None

    def begin(self):
        if self._signals:
            self._before = signal.signal(signal.SIGALRM, self._fail)
        self._thread.start()

    def end(self):
        self._over.set()
        self._thread.join()
        if self._signals:
            signal.signal(signal.SIGALRM, self._before)

    def _run(self):
        if self._over.wait(self._seconds):
            return
        text = graph(os.getpid())
        if self._over.is_set():
            return
        self._text = (
            f"{self._item.nodeid} has run for more than {self._seconds:g} s; who waits for whom:\n\n{text}"
        )
        self._print(self._text)
        if self._signals:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
            if self._over.wait(_GRACE):
                return
        self._print(f"{self._item.nodeid} does not end: the session is given up")
        os._exit(1)

    def _fail(self, *_):
        if self._text is not None and not self._over.is_set():
            text, self._text = self._text, None
            pytest.fail(text, pytrace=True)

    def _print(self, text):
        capture = self._item.config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend(in_=True)
        try:
            print("\n" + text, file=sys.stderr, flush=True)
        finally:
            if capture is not None:
                capture.resume()


class _Check:
    """The order of locks over a session."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._findings = []

    def pytest_sessionfinish(self, session):
        self._findings = self._recorder.findings()
        if self._findings and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section("order of locks")
        for finding in self._findings:
            terminalreporter.write_line(finding)
        terminalreporter.write_line(f"{len(self._findings)} potential deadlocks")
