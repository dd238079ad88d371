"""Programs under load, with clients that check each of their answers."""
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time


class Wrong(Exception):
    """What must not be."""


class Load:
    """A program with clients that check each of its answers."""

    def __init__(self):
        self.answers = 0
        self.wrong = None
        self.over = False
        self.threads = []

    def client(self, work):
        def run():
            try:
                for _ in work():
                    self.answers += 1
                    if self.over:
                        return
                    if self.answers % 8 == 0:
                        time.sleep(0.001)
            except Exception as error:
                if not self.over:
                    self.wrong = f"{type(error).__name__}: {error}"
        thread = threading.Thread(target=run, daemon=True)
        self.threads.append(thread)
        thread.start()

    def goes_on(self, want=20, within=60):
        start, before = time.monotonic(), self.answers
        while self.answers < before + want:
            self.sound()
            if time.monotonic() - start > within:
                raise Wrong(f"no answers for {within} s")
            time.sleep(0.005)

    def sound(self):
        if self.wrong:
            raise Wrong("a wrong answer: " + self.wrong)
        status = self.child.poll()
        if status is not None:
            raise Wrong(f"it ended: {status}")

    def pid(self):
        return self.child.pid

    def stop(self):
        self.over = True
        for thread in self.threads:
            thread.join(10)
        if self.wrong:
            raise Wrong("a wrong answer: " + self.wrong)
        self.child.terminate()
        try:
            self.child.wait(20)
        except subprocess.TimeoutExpired:
            raise Wrong("it does not end")


class Lines:
    def __init__(self, address, kind=socket.AF_INET):
        self.socket = socket.socket(kind)
        self.socket.settimeout(60)
        self.socket.connect(address)
        if kind == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def send(self, text):
        self.socket.sendall(text)

    def line(self):
        while b"\n" not in self.rest:
            more = self.socket.recv(65536)
            if not more:
                raise Wrong("the connection was closed")
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return line.rstrip(b"\r")

    def exactly(self, count):
        while len(self.rest) < count:
            more = self.socket.recv(65536)
            if not more:
                raise Wrong("the connection was closed")
            self.rest += more
        data, self.rest = self.rest[:count], self.rest[count:]
        return data


def same(got, wanted, what):
    if got != wanted:
        raise Wrong(f"{what}: got {got!r}, wanted {wanted!r}")


class Memcached(Load):
    def __init__(self, folder):
        super().__init__()
        path = f"{folder}/memcached.sock"
        self.child = subprocess.Popen(
            ["memcached", "-u", "root", "-s", path, "-t", "4", "-m", "64", "-v"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: os.path.exists(path))
        time.sleep(0.1)
        for number in range(3):
            self.client(lambda number=number: self.work(path, number))

    def work(self, path, number):
        lines = Lines(path, socket.AF_UNIX)
        values = {}
        lines.send(b"set count%d 0 0 1\r\n0\r\n" % number)
        same(lines.line(), b"STORED", "set")
        count = 0
        dice = random.Random(number)
        while True:
            key = b"key-%d-%d" % (number, dice.randrange(200))
            value = (b"%d-" % dice.randrange(10**9)) * dice.randrange(1, 200)
            lines.send(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
            same(lines.line(), b"STORED", "set")
            values[key] = value
            yield
            key = dice.choice(list(values))
            lines.send(b"get %s\r\n" % key)
            same(lines.line(), b"VALUE %s 0 %d" % (key, len(values[key])), "get")
            same(lines.exactly(len(values[key]) + 2), values[key] + b"\r\n", "get")
            same(lines.line(), b"END", "get")
            yield
            count += 1
            lines.send(b"incr count%d 1\r\n" % number)
            same(lines.line(), b"%d" % count, "incr")
            yield


class Server(Load):
    def __init__(self, folder):
        super().__init__()
        program = os.environ.get("STORM_SERVER", f"{folder}/server")
        if not os.path.exists(program):
            source = pathlib.Path(__file__).resolve().parent / "server.rs"
            subprocess.run(["rustc", "-O", "--edition", "2021", "-o", program, source], check=True)
        self.child = subprocess.Popen([program], stdout=subprocess.PIPE)
        port = int(self.child.stdout.readline())
        for number in range(3):
            self.client(lambda number=number: self.work(port, number))

    def work(self, port, number):
        lines = Lines(("127.0.0.1", port))
        total, values, dice = 0, {}, random.Random(number)
        def ask(text):
            lines.send(text + b"\n")
            return int(lines.line())
        while True:
            step = dice.randrange(100)
            total += step
            same(ask(b"add %d %d" % (number, step)), total, "add")
            yield
            key, value = number * 1000 + dice.randrange(100), dice.randrange(10**6)
            same(ask(b"put %d %d" % (key, value)), value, "put")
            values[key] = value
            yield
            key = dice.choice(list(values))
            same(ask(b"get %d" % key), values[key], "get")
            yield
            same(ask(b"job %d" % step), step * 3 + 1, "job")
            yield
            same(ask(b"ask %d" % step), step ^ 0xffff, "ask")
            yield
            same(ask(b"fair"), 0, "fair")
            yield


class Database(Load):
    """PostgreSQL: what is attached to is a backend, or now and then the process that forks them."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}
        os.chmod(folder, 0o777)
        data = f"{folder}/data"
        done = subprocess.run(["initdb", "-D", data, "-A", "trust", "-U", "storm", "-N"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder, **user)
        if done.returncode:
            sys.exit(done.stderr.decode())
        self.child = subprocess.Popen(
            ["postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off",
             "-c", "shared_buffers=4MB", "-c", "autovacuum_naptime=5s"],
            stdout=subprocess.DEVNULL, stderr=open(f"{folder}/log", "w"), cwd=folder, **user)
        self.socket = f"{folder}/.s.PGSQL.5432"
        until(lambda: os.path.exists(self.socket))
        for _ in range(100):
            try:
                setup = Backend(self.socket)
                break
            except (Wrong, OSError):
                time.sleep(0.1)
        setup.query("create table t (k int primary key, n bigint not null)")
        setup.query("insert into t select g, 0 from generate_series(0, 9) g")
        setup.close()
        self.backends = []
        self.started = threading.Semaphore(0)
        for number in range(3):
            self.client(lambda number=number: self.work(number))
        for _ in range(3):
            self.started.acquire()
        self.client(self.visits)
        self.round = 0

    def work(self, number):
        backend = Backend(self.socket)
        self.backends.append(backend.pid)
        self.started.release()
        backend.query(f"insert into t values ({100 + number}, 0)")
        own = 0
        dice = random.Random(number)
        while True:
            step = dice.randrange(100)
            own += step
            rows = backend.query(f"update t set n = n + {step} where k = {100 + number} returning n")
            same(rows, [[str(own)]], "update")
            yield
            one, two = dice.sample(range(10), 2)
            one, two = sorted((one, two))
            backend.query(f"begin; update t set n = n - 1 where k = {one}; "
                          f"update t set n = n + 1 where k = {two}; commit")
            yield
            same(backend.query("select sum(n) from t where k < 10"), [["0"]], "sum")
            yield
            n = dice.randrange(1, 3000)
            same(backend.query(f"select sum(g), count(distinct g % 7) from generate_series(1, {n}) g"),
                 [[str(n * (n + 1) // 2), str(min(n, 7))]], "series")
            yield

    def visits(self):
        """New backends come and go."""
        while True:
            visitor = Backend(self.socket)
            same(visitor.query("select 6 * 7"), [["42"]], "visit")
            visitor.close()
            yield
            time.sleep(0.05)

    def pid(self):
        self.round += 1
        if self.round % 8 == 0:
            return self.child.pid
        return self.backends[self.round % 3]

    def stop(self):
        self.child.send_signal(signal.SIGINT)
        self.over = True
        self.child.wait(30)
        if self.wrong:
            raise Wrong("a wrong answer: " + self.wrong)
        same(self.child.returncode, 0, "end")

    def sound(self):
        super().sound()
        log = open(f"{self.folder}/log").read()
        if "terminated by signal" in log or "PANIC" in log:
            raise Wrong("a backend ended: " + log[-2000:])


class Backend:
    """The simple part of PostgreSQL's protocol."""

    def __init__(self, path):
        self.lines = Lines(path, socket.AF_UNIX)
        body = struct.pack("!i", 196608) + b"user\0storm\0database\0postgres\0\0"
        self.lines.send(struct.pack("!i", len(body) + 4) + body)
        self.pid = None
        self.answer()

    def answer(self):
        rows, error = [], None
        while True:
            kind, length = self.lines.exactly(1), struct.unpack("!i", self.lines.exactly(4))[0]
            body = self.lines.exactly(length - 4)
            if kind == b"K":
                self.pid = struct.unpack("!i", body[:4])[0]
            elif kind == b"D":
                row, at = [], 2
                for _ in range(struct.unpack("!h", body[:2])[0]):
                    size = struct.unpack("!i", body[at:at + 4])[0]
                    row.append(body[at + 4:at + 4 + size].decode())
                    at += 4 + size
                rows.append(row)
            elif kind == b"E":
                error = body.decode(errors="replace").replace("\0", " ")
                if self.pid is None:
                    raise Wrong(error)
            elif kind == b"Z":
                if error:
                    raise Wrong(error)
                return rows

    def query(self, text):
        body = text.encode() + b"\0"
        self.lines.send(b"Q" + struct.pack("!i", len(body) + 4) + body)
        return self.answer()

    def close(self):
        self.lines.send(b"X" + struct.pack("!i", 4))
        self.lines.socket.close()


PYTHON = r'''
import os, queue, sys, threading, time
lock, turn = threading.Lock(), threading.Condition()
parts, total, steps = [0] * 3, [0], [0]
lines, slots = queue.Queue(50), threading.BoundedSemaphore(2)
failed = []
def fails(what):
    failed.append(what)
def adds(number):
    while True:
        with lock:
            parts[number] += 1
            if number == 0: time.sleep(0.0001)
            total[0] += 1
        with slots:
            time.sleep(0.0002)
def checks():
    while True:
        with lock:
            if sum(parts) != total[0]: fails("sum")
        with turn:
            steps[0] += 1
            turn.notify_all()
        time.sleep(0.001)
def waits():
    with turn:
        before = steps[0]
        while True:
            if not turn.wait_for(lambda: steps[0] > before, 60): fails("no turn")
            before = steps[0]
def makes(number):
    for at in range(10**12):
        lines.put((number, at))
        if at % 20 == 0: time.sleep(0.001)
def takes():
    last = [-1, -1]
    while True:
        number, at = lines.get()
        if at != last[number] + 1: fails(f"{number}: {at} after {last[number]}")
        last[number] = at
def forks():
    while True:
        child = os.fork()
        if child == 0:
            with threading.Lock(): os._exit(7)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 7: fails("child")
        time.sleep(0.3)
work = [(adds, (n,)) for n in range(3)] + [(checks, ()), (waits, ()), (takes, ()), (forks, ())]
work += [(makes, (n,)) for n in range(2)]
for function, arguments in work:
    threading.Thread(target=function, args=arguments, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    if line == "end\n": os._exit(0)
    with lock: print(f"{total[0]} {steps[0]} {lines.qsize()} {failed}", flush=True)
'''


class Python(Load):
    def __init__(self, folder):
        super().__init__()
        program = os.environ.get("STORM_PYTHON", sys.executable)
        self.child = subprocess.Popen([program, "-c", PYTHON], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        same(self.child.stdout.readline(), b"ready\n", "start")
        self.client(self.work)

    def work(self):
        before = (0, 0)
        stuck = 0
        while True:
            self.child.stdin.write(b"?\n")
            self.child.stdin.flush()
            line = self.child.stdout.readline().decode()
            total, steps, _, failed = line.split(" ", 3)
            same(failed, "[]\n", "python")
            now = (int(total), int(steps))
            stuck = 0 if now[0] > before[0] and now[1] > before[1] else stuck + 1
            if stuck > 3000:
                raise Wrong(f"its threads do not go on: {line}")
            before = now
            yield
            time.sleep(0.01)

    def stop(self):
        self.over = True
        for thread in self.threads:
            thread.join(10)
        if self.wrong:
            raise Wrong("a wrong answer: " + self.wrong)
        self.child.stdin.write(b"end\n")
        self.child.stdin.flush()
        same(self.child.wait(20), 0, "end")


LOADS = {"memcached": Memcached, "postgres": Database, "python": Python, "rust": Server}


def until(reached, seconds=30):
    start = time.monotonic()
    while not reached():
        if time.monotonic() - start > seconds:
            raise Wrong("not in time")
        time.sleep(0.01)
