#!/usr/bin/env python3
"""Attaches to a program under a checked load and leaves it, thousands of times.

    storm.py TARGET --command target/release/lockstead --rounds 2500

After each leave the program is compared with what it was: mappings of files, words of the tables of
calls, descriptors, threads and signals; and its answers go on being right. In a part of the rounds the
command is killed at a random moment, and --detach takes out what it has left. Prints a line of JSON for
each 50 rounds; docs/attach.md says what came of it.
"""
import argparse
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

from loads import LOADS, Wrong

FUNCTION = re.compile(rb"^(pthread_(mutex|rwlock|cond|spin|barrier|join|create|key|setspecific|getspecific|"
                      rb"timedjoin|tryjoin|clockjoin)|sem_|mtx_|cnd_|thrd_|tss_|syscall$|call_once|dlsym)")
LINE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) \S+ (\d+) *(.*)$")


def maps(pid):
    for line in open(f"/proc/{pid}/maps"):
        start, end, mode, offset, inode, name = LINE.match(line).groups()
        yield int(start, 16), int(end, 16), mode, int(offset, 16), int(inode), name


class Words:
    """Where the words lie by which files call the functions that are stood before."""

    cache = {}

    @classmethod
    def of_file(cls, path, name):
        if name not in cls.cache:
            try:
                cls.cache[name] = cls.read(open(path, "rb").read())
            except (OSError, struct.error, IndexError):
                cls.cache[name] = []
        return cls.cache[name]

    @staticmethod
    def read(data):
        if data[:5] != b"\x7fELF\x02":
            return []
        table, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + at * size) for at in range(count)]
        words = []
        for kind, offset, length, link in [(s[1], s[4], s[5], s[6]) for s in sections]:
            if kind != 4:  # RELA
                continue
            symbols, strings = sections[link][4], sections[sections[link][6]][4]
            for at in range(offset, offset + length, 24):
                place, info, _ = struct.unpack_from("<QQq", data, at)
                if info & 0xffffffff in (1, 6, 7) and info >> 32:
                    name = struct.unpack_from("<I", data, symbols + (info >> 32) * 24)[0]
                    name = data[strings + name:data.index(b"\0", strings + name)]
                    if FUNCTION.match(name):
                        words.append((place, name.decode()))
        return words


def words_of(pid, memory, mappings):
    """The words, by file and name: the file that each leads into, and where in it."""
    found, bases = {}, {}
    for start, end, mode, offset, inode, name in mappings:
        if inode and offset == 0 and name not in bases:
            bases[name] = start
    def lead(value):
        for start, end, mode, offset, inode, name in mappings:
            if start <= value < end:
                return (name, value - bases.get(name, start))
        return ("nowhere", value)
    for name, base in bases.items():
        path = f"/proc/{pid}/root{name}"
        head = os.pread(memory, 18, base)
        if head[:4] != b"\x7fELF" or "ld-linux" in name:
            continue
        bias = base if struct.unpack_from("<H", head, 16)[0] == 3 else 0
        for place, function in Words.of_file(path, name):
            try:
                value = struct.unpack("<Q", os.pread(memory, 8, bias + place))[0]
            except (OSError, struct.error):
                continue
            found[name, place, function] = lead(value)
    return found


class Seen:
    """What is compared of a process."""

    def __init__(self, pid):
        mappings = list(maps(pid))
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        try:
            self.words = words_of(pid, memory, mappings)
        finally:
            os.close(memory)
        named = [m for m in mappings if m[4] or m[5].startswith("/memfd")]
        self.files = sorted((name, mode, offset, end - start) for start, end, mode, offset, _, name in named)
        self.anonymous = [(start, end) for start, end, _, _, inode, name in mappings if not inode and not name]
        self.descriptors = {}
        for number in os.listdir(f"/proc/{pid}/fd"):
            try:
                self.descriptors[number] = os.readlink(f"/proc/{pid}/fd/{number}")
            except FileNotFoundError:
                pass
        self.threads, self.signals = set(), {}
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in open(f"/proc/{pid}/task/{task}/status")
                              if ":\t" in line)
            except (FileNotFoundError, ProcessLookupError):
                continue
            self.threads.add(task)
            self.signals[task] = tuple(status[name] for name in ("SigBlk", "SigIgn", "SigCgt", "TracerPid"))
        status = open(f"/proc/{pid}/status").read()
        self.resident = int(re.search(r"VmRSS:\s+(\d+)", status).group(1))

    def differs(self, before, is_database):
        """What is not as it was, in words."""
        wrong = []
        if self.files != before.files:
            now, then = set(self.files), set(before.files)
            wrong.append(f"mappings: new {sorted(now - then)}, gone {sorted(then - now)}")
        for key, then in before.words.items():
            now = self.words.get(key)
            # A word may have been filled meanwhile, by the loader.
            if now != then and not (now and "libc.so.6" in now[0] and then[0] == key[0]):
                wrong.append(f"word {key}: {then} became {now}")
        for key, now in self.words.items():
            if now[0] == "nowhere" and now[1] != 0 or "lockstead" in now[0]:
                wrong.append(f"word {key} leads to {now}")
        now, then = self.descriptors, before.descriptors
        if any("lockstead" in name for name in now.values()):
            wrong.append(f"descriptors: {now}")
        if not is_database and now != then:
            wrong.append(f"descriptors: {set(now.items()) ^ set(then.items())}")
        if self.threads != before.threads:
            wrong.append(f"threads: {self.threads ^ before.threads}")
        if self.signals != before.signals:
            wrong.append(f"signals: {[(t, v, before.signals.get(t)) for t, v in self.signals.items() if before.signals.get(t) != v]}")
        return wrong


def compare(load, pid, before, is_database):
    """Compares; what changes all the time may take some looks to be as it was."""
    end = time.monotonic() + 10
    while True:
        load.sound()
        now = Seen(pid)
        wrong = now.differs(before, is_database)
        if not wrong:
            return now
        if time.monotonic() > end:
            raise Wrong("; ".join(wrong)[:4000])
        time.sleep(0.02)


def storm(options, name):
    dice = random.Random(options.seed + hash(name) % 1000)
    folder = tempfile.mkdtemp(prefix="storm-")
    load = LOADS[name](folder)
    counts = dict(target=name, attached=0, killed=0, taken_out=0, refused=0)
    command = [options.command, "attach"]
    before, start, first = {}, time.monotonic(), {}
    try:
        load.goes_on(200)
        for round_ in range(options.rounds):
            pid = load.pid()
            if pid not in before:
                before[pid] = first[pid] = Seen(pid)
            kills = dice.random() < options.kill
            span = dice.randrange(50, 300)
            words = command + [str(pid), "--for", f"{span}ms"]
            words += ["--no-report"] if dice.random() < 0.7 else []
            child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            if kills:
                time.sleep(dice.random() * 0.25)
                child.kill()
            try:
                said = child.communicate(timeout=120)[1].decode(errors="replace")
            except subprocess.TimeoutExpired:
                raise Wrong("the command does not end")
            load.sound()
            if kills and child.returncode == -9:
                counts["killed"] += 1
                load.goes_on(3)
                for again in range(5):
                    done = subprocess.run(command + ["--detach", str(pid)], capture_output=True, timeout=120)
                    if done.returncode != 125 or again == 4:
                        break
                    time.sleep(0.5)
                if done.returncode != 0:
                    raise Wrong(f"--detach: {done.returncode}: {done.stderr.decode()}")
                counts["taken_out"] += b"took out" in done.stderr
            elif child.returncode == 125 and "no thread was found" in said:
                counts["refused"] += 1
            elif child.returncode == 0 and "lockstead: left" in said:
                counts["attached"] += 1
            else:
                raise Wrong(f"status {child.returncode}: {said[:3000]}")
            load.goes_on(3)
            now = compare(load, pid, before[pid], name == "postgres")
            # What it has loaded or bound itself meanwhile is known from here on.
            before[pid] = now
            if round_ % 50 == 49 or round_ == options.rounds - 1:
                counts.update(rounds=round_ + 1, answers=load.answers, seconds=round(time.monotonic() - start),
                              resident=[first[pid].resident, now.resident],
                              anonymous=[len(first[pid].anonymous), len(now.anonymous)],
                              anonymous_kib=[sum(e - s for s, e in x.anonymous) // 1024 for x in (first[pid], now)])
                print(json.dumps(counts), flush=True)
        load.goes_on(100)
        load.stop()
        print(json.dumps(dict(counts, rounds=round_ + 1, ended="well")), flush=True)
    except (Wrong, OSError, subprocess.TimeoutExpired) as error:
        print(json.dumps(dict(counts, round=round_, pid=pid, failed=f"{type(error).__name__}: {error}")), flush=True)
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=LOADS)
    parser.add_argument("--command", default="lockstead")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--kill", type=float, default=0.2, help="the share of rounds in which the command is killed")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.exit(storm(options, options.target))


main()
