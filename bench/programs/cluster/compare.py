#!/usr/bin/env python3
"""Locks over etcd beside others: `lockstead-cluster`, `etcdctl lock`, the recipe of etcd's Go client.

    compare.py times FOLDER [MEMBERS]   times and messages: an uncontended pair, and hand-overs
    compare.py loss FOLDER              what each does when a lease ends that it believes to have

FOLDER has the programs that were built: `lockstead-cluster`, and `fenced_file` of its examples. `recipe`,
the Go program beside this file, is built into it where Go is installed and its modules can be had. Members of
etcd are started here and ended again. What is not installed is left out, and that is said. Messages are those
that members have counted (`grpc_server_msg_received_total`), of leases apart. Take the times with nothing else
to do; the programs that were built without optimisation say nothing.
"""
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ENVIRONMENT = {**os.environ, "ETCDCTL_API": "3"}
ROUNDS = 3
PAIRS = 300
CLIENTS = 16
TURNS = 20
COMMANDS = 40
LEASE = 3


def ports(number):
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    found = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return found


class Members:
    """Members of etcd on the loopback interface."""

    def __init__(self, number):
        self.folder = tempfile.TemporaryDirectory(prefix="lockstead-compare-")
        taken = ports(2 * number)
        self.urls = [f"http://127.0.0.1:{port}" for port in taken[:number]]
        peers = [f"http://127.0.0.1:{port}" for port in taken[number:]]
        names = ",".join(f"m{at}={peer}" for at, peer in enumerate(peers))
        self.processes = []
        for at, (client, peer) in enumerate(zip(self.urls, peers)):
            words = ["etcd", "--name", f"m{at}", "--data-dir", f"{self.folder.name}/{at}"]
            words += ["--listen-client-urls", client, "--advertise-client-urls", client]
            words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
            words += ["--initial-cluster", names, "--logger", "zap", "--log-level", "error"]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            self.processes.append(subprocess.Popen(words, **quiet))
        self.endpoints = ",".join(self.urls)
        until = time.monotonic() + 30
        while True:
            try:
                self.ask("/v3/kv/range", {"key": "AA=="})
                return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def ask(self, path, body, timeout=30):
        request = urllib.request.Request(self.urls[0] + path, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.load(answer)

    def messages(self):
        """Messages that the members got: those of leases, and the others but those of this script."""
        leases = others = 0
        for url in self.urls:
            with urllib.request.urlopen(url + "/metrics", timeout=30) as answer:
                text = answer.read().decode()
            for line in text.splitlines():
                if not line.startswith("grpc_server_msg_received_total{"):
                    continue
                count = int(float(line.rsplit(" ", 1)[1]))
                if 'grpc_service="etcdserverpb.Lease"' in line:
                    leases += count
                elif re.search(r'grpc_service="(etcdserverpb\.(KV|Watch)|v3lockpb)', line):
                    others += count
        return leases, others

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.folder.cleanup()


def recipe(folder):
    """Builds the Go program, and returns its path; None: it cannot be had."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        print("left out: the recipe of the Go client, for there is no go", file=sys.stderr)
        return None
    program = os.path.join(folder, "recipe")
    built = subprocess.run([go, "build", "-o", program, "."], cwd=HERE, capture_output=True, text=True)
    if built.returncode != 0:
        print(f"left out: the recipe of the Go client: {built.stderr.strip()}", file=sys.stderr)
        return None
    return program


def numbers(command, line=None):
    done = subprocess.run(command, input=line, capture_output=True, text=True, timeout=100, check=True)
    return [int(word) for word in done.stdout.split() if word.isdigit()]


class Table:
    """What was measured, by titles, ROUNDS times in turns."""

    def __init__(self):
        self.rows = {}

    def add(self, title, times, counted, turns):
        """Adds one round: times in nanoseconds, messages of so many turns."""
        found = (statistics.median(times), max(times), counted.messages / turns, counted.leases / turns)
        self.rows.setdefault(title, []).append(found)

    def print(self):
        print("| | median | of the rounds | longest | messages to etcd |\n|---|---|---|---|---|")
        for title, rounds in self.rows.items():
            medians, longest, messages, leases = ([each[at] for each in rounds] for at in range(4))
            medians = [median / 1e6 for median in medians]
            apart = statistics.median(leases)
            apart = f" + {apart:.1f} of leases" if apart >= 0.5 else ""
            print(
                f"| {title} | {statistics.median(medians):.2f} ms | {min(medians):.2f} to {max(medians):.2f} "
                f"| {max(longest) / 1e6:.1f} ms | {statistics.median(messages):.2f}{apart} |"
            )


class Counted:
    """Messages of what runs within."""

    def __init__(self, members):
        self.members = members

    def __enter__(self):
        self.before = self.members.messages()
        return self

    def __exit__(self, *_):
        after = self.members.messages()
        self.leases, self.messages = (later - sooner for sooner, later in zip(self.before, after))


def bench(program, members, clients, turns):
    words = [program, "bench", "--endpoints", members.endpoints, "--clients", str(clients)]
    done = subprocess.run(words + ["--turns", str(turns), "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)[0]


def command_times(words, number):
    times = []
    for _ in range(number):
        begun = time.monotonic_ns()
        subprocess.run(words, check=True, capture_output=True, env=ENVIRONMENT)
        times.append(time.monotonic_ns() - begun)
    return times


def commands(folder, endpoints, name, *lease):
    """The commands that run another one under a lock, by their names."""
    own = os.path.join(folder, "lockstead-cluster")
    found = {"`lockstead cluster lock`": [own, "lock", *lease, "--endpoints", endpoints, name, "--"]}
    if shutil.which("etcdctl"):
        found["`etcdctl lock`"] = ["etcdctl", "--endpoints", endpoints, "lock", *lease, name, "--"]
    else:
        print("left out: etcdctl, which is not installed", file=sys.stderr)
    return found


def at_once(words):
    """Returns the mean time of commands of which four run at a time, in nanoseconds."""
    each = COMMANDS // 4
    four = [threading.Thread(target=command_times, args=(words, each)) for _ in range(4)]
    begun = time.monotonic_ns()
    for thread in four:
        thread.start()
    for thread in four:
        thread.join()
    return (time.monotonic_ns() - begun) / (4 * each)


def times(folder, number):
    members = Members(number)
    own, go, table = os.path.join(folder, "lockstead-cluster"), recipe(folder), Table()
    pair, owners = "an uncontended pair", f"from owner to owner, {CLIENTS} clients"
    turns = CLIENTS * TURNS
    try:
        for _ in range(ROUNDS):
            for title, clients, count in [(pair, 1, PAIRS), (owners, CLIENTS, turns)]:
                with Counted(members) as counted:
                    got = bench(own, members, clients, count)
                table.add(f"{title}: `Mutex`", [got["median_ns"]] * 2 + [got["worst_ns"]], counted, count)
                if go:
                    words = ["pairs", str(PAIRS)] if clients == 1 else ["handover", str(clients), str(TURNS)]
                    with Counted(members) as counted:
                        found = numbers([go, members.endpoints, *words], "\n")
                    table.add(f"{title}: the Go recipe", found, counted, count)
            for title, words in commands(folder, members.endpoints, "compare").items():
                with Counted(members) as counted:
                    found = command_times([*words, "true"], COMMANDS)
                table.add(f"a whole command: {title} … true", found, counted, COMMANDS)
            for title, words in commands(folder, members.endpoints, "compare").items():
                with Counted(members) as counted:
                    mean = at_once([*words, "true"])
                table.add(f"four at once, time over turns: {title} … true", [mean], counted, COMMANDS)
    finally:
        members.end()
    print(f"{number} member{'s' if number > 1 else ''}, {ROUNDS} rounds\n")
    table.print()


def family(pid):
    """A process and those below it."""
    found = [pid]
    for parent in found:
        try:
            with open(f"/proc/{parent}/task/{parent}/children") as children:
                found += [int(child) for child in children.read().split()]
        except OSError:
            pass
    return found


def send(pids, what):
    for pid in pids:
        try:
            os.kill(pid, what)
        except ProcessLookupError:
            pass


def start(words):
    pipe = subprocess.PIPE
    both = {"stdout": pipe, "stderr": subprocess.STDOUT}
    return subprocess.Popen(words, stdin=pipe, text=True, env=ENVIRONMENT, **both)


def said_by(process):
    """What a program said until its end, in one line."""
    try:
        said = process.communicate(timeout=30)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        said = process.communicate()[0] + "(and did not end)"
    lines = [line for line in said.splitlines() if line and line != "asks"]
    return "; ".join(lines) or "nothing more"


def tell(process, line):
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def until(process, word):
    lines = []
    while word not in (line := process.stdout.readline()):
        lines.append(line)
        if not line:
            sys.exit(f"compare.py: {process.args} ended before it said {word!r}:\n{''.join(lines)}")


def command_loses(title, words):
    """A command whose host is stopped past its lease: the next one is in meanwhile, and then it goes on."""
    first = start([*words, "sh", "-c", "echo in; sleep 1; sleep 1; sleep 1; echo did its work"])
    until(first, "in")
    stopped = family(first.pid)
    send(stopped, signal.SIGSTOP)
    begun = time.monotonic()
    # A dead owner is told by one of the two, which then has to be told to go on.
    run = ["--on-owner-died", "run"] if "lockstead-cluster" in words[0] else []
    at = words.index("lock") + 1
    subprocess.run([*words[:at], *run, *words[at:], "true"], env=ENVIRONMENT, capture_output=True, timeout=60)
    after = time.monotonic() - begun
    send(stopped, signal.SIGCONT)
    said = said_by(first)
    print(f"| {title} | the next one was in after {after:.1f} s; continued, the first said: {said}; exit status {first.returncode} |")


def library_loses(title, words):
    """The same for a program that uses the library, which is asked afterwards."""
    first = start(words)
    until(first, "in,")
    os.kill(first.pid, signal.SIGSTOP)
    begun = time.monotonic()
    second = start(words)
    until(second, "in,")
    after = time.monotonic() - begun
    if "fenced_file" in words[0]:
        print(f"|  | the next one writes its file: {tell(second, 'file new')} |")
    os.kill(first.pid, signal.SIGCONT)
    answers = [tell(first, line) for line in ("look", "write")]
    if "fenced_file" in words[0]:
        answers.append(tell(first, "file old"))
    answers.append(tell(first, "release"))
    print(f"| {title} | the next one was in after {after:.1f} s; continued, the first said: {'; '.join(answers)} |")
    for each in (first, second):
        each.kill()
        each.wait()


def waiter_loses(title, words, others):
    """A waiter that is stopped past its lease, while which the lock is released."""
    holder = start(others)
    until(holder, "in")
    waiter = start(words)
    # It says nothing once it stands in the queue; a second is long for that.
    time.sleep(1)
    stopped = family(waiter.pid)
    send(stopped, signal.SIGSTOP)
    time.sleep(2 * LEASE + 2)
    holder.communicate("release\n", timeout=60)
    send(stopped, signal.SIGCONT)
    said = said_by(waiter)
    print(f"| {title} | said: {said}; exit status {waiter.returncode} |")


def service_grants(members):
    """etcd's own lock call: the waiter's lease is revoked while it waits."""
    def lease(number):
        members.ask("/v3/lease/grant", {"TTL": "60", "ID": str(number)})

    name = "c2VydmljZQ=="
    lease(71)
    lease(72)
    key = members.ask("/v3/lock/lock", {"name": name, "lease": "71"})["key"]
    answers = []

    def wait():
        try:
            answers.append(members.ask("/v3/lock/lock", {"name": name, "lease": "72"}))
        except OSError as error:
            answers.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(1)
    members.ask("/v3/lease/revoke", {"ID": "72"})
    members.ask("/v3/lock/unlock", {"key": key})
    waiter.join(40)
    answer = answers[0] if answers else "no answer within 40 s"
    if isinstance(answer, dict):
        there = members.ask("/v3/kv/range", {"key": answer["key"]}).get("count", "0")
        print(f"| etcd's lock call | granted; keys of that name that there are: {there} |")
    else:
        print(f"| etcd's lock call | refused: {answer} |")


def loss(folder):
    members = Members(1)
    try:
        go = recipe(folder)
        file = os.path.join(members.folder.name, "report")
        fenced = [os.path.join(folder, "fenced_file"), members.endpoints, "loss", file, str(LEASE)]
        ours, theirs = "a program with `Mutex`", "a program with the Go recipe"
        print("| the holder is stopped for longer than its lease | |\n|---|---|")
        for title, words in commands(folder, members.endpoints, "loss-c", "--ttl", str(LEASE)).items():
            command_loses(title, words)
        library_loses(ours, fenced)
        if go:
            library_loses(theirs, [go, members.endpoints, "hold", "loss", str(LEASE)])
        print("\n| the waiter is stopped for longer than its lease, and the lock released | |\n|---|---|")
        fenced[2] = "waiter"
        for title, words in commands(folder, members.endpoints, "waiter-c", "--ttl", str(LEASE)).items():
            holds = [*words, "sh", "-c", "echo in; read line"]
            waiter_loses(title, [*words, "echo", "in, with its command"], holds)
        waiter_loses(ours, fenced, fenced)
        if go:
            words = [go, members.endpoints, "hold", "waiter", str(LEASE)]
            waiter_loses(theirs, words, words)
        service_grants(members)
    finally:
        members.end()


def main():
    words = sys.argv[1:]
    if len(words) in (2, 3) and words[0] == "times":
        times(words[1], int(words[2]) if len(words) == 3 else 1)
    elif len(words) == 2 and words[0] == "loss":
        loss(words[1])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    if shutil.which("etcd") is None:
        sys.exit("compare.py: etcd is not installed (Debian and Ubuntu: apt-get install etcd-server etcd-client)")
    main()
