#!/usr/bin/env python3
"""Says from a trace of perf what the holder of a mutex did while others waited for it.

usage: holders.py TRACE REPORT.json ADDRESS

TRACE is the output of `perf script`, REPORT that of `lockstead run --json` on the same run. The
events are those of holders.sh. Prints the parts of the waiting by the trace and by the report, in
per cent, and their differences.
"""

import json
import re
import sys
from collections import Counter

LINE = re.compile(r"\s*(\d+)\s+(\d+)\.(\d{9}):\s+(\S+):\s+(.*)")
SWITCH = re.compile(r"prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+)")
PARTS = ["ran", "ready", "blocked", "free", "unknown"]


def lines(path):
    """Yields time, thread, event and fields, in the order of their times."""
    found = []
    with open(path) as file:
        for line in file:
            if match := LINE.match(line):
                tid, seconds, nanoseconds, event, fields = match.groups()
                time = int(seconds) * 10**9 + int(nanoseconds)
                found.append((time, int(tid), event.split(":")[1], fields))
    return sorted(found)


def events(path):
    """Returns what happened: waits, gets, releases, wakes, leaves (a processor), comes and is ready."""
    found = []
    waits, tries = set(), set()
    for time, tid, event, fields in lines(path):
        if event == "lk_lock":
            waits.add(tid)
            found.append([time, "waits", tid])
        elif event == "lk_lock_end__return" and tid in waits:
            waits.remove(tid)
            found.append([time, "gets", tid])
        elif event == "lk_try":
            tries.add(tid)
        elif event == "lk_try_end__return" and tid in tries:
            tries.remove(tid)
            if fields.endswith("ret=0"):
                found.append([time, "gets", tid])
        elif event == "lk_unlock":
            found.append([time, "releases", tid])
        elif event == "sys_enter_futex":
            # FUTEX_WAKE is 1; the word has been cleared by then.
            if int(re.search(r"op: (\w+)", fields)[1], 16) & 127 == 1:
                found.append([time, "wakes", tid])
        elif event == "sched_switch":
            before, state, after = SWITCH.search(fields).groups()
            found.append([time, "ready" if state.startswith("R") else "leaves", int(before)])
            found.append([time, "comes", int(after)])
        elif event == "sched_wakeup":
            found.append([time, "woken", int(re.search(r" pid=(\d+)", fields)[1])])
    return found


def released(found):
    """Moves each release to the wake-up that followed it.

    The probe is at the beginning of the release, and a thread may lose its processor there: it has
    the lock still.
    """
    begun = {}
    for event in found:
        time, kind, tid = event
        if kind == "releases":
            begun[tid] = event
        elif kind == "wakes":
            if release := begun.pop(tid, None):
                release[1], event[1] = "begins", "releases"
        elif kind in ("waits", "gets"):
            begun.pop(tid, None)
    return found


def split(found):
    """Returns the nanoseconds of waiting by what the holder did."""
    sums, state, waiting = Counter(), {}, set()
    owner = last = None
    for time, kind, tid in found:
        for waiter in waiting:
            free = owner is None or owner == waiter
            sums["free" if free else state.get(owner, "unknown")] += time - last
        last = time
        if kind == "comes":
            state[tid] = "ran"
        elif kind == "leaves":
            state[tid] = "blocked"
        elif kind == "ready":
            state[tid] = "ready"
        elif kind == "woken":
            if state.get(tid) == "blocked":
                state[tid] = "ready"
        else:
            state[tid] = "ran"
            if kind == "waits":
                waiting.add(tid)
            elif kind == "gets":
                waiting.discard(tid)
                owner = tid
            elif kind == "releases" and owner == tid:
                owner = None
    return sums


def reported(path, address):
    """Returns the waiting and its parts by the report, and how many looks they rest on."""
    with open(path) as file:
        processes = json.load(file)["processes"]
    locks = [lock for process in processes for lock in process["locks"]]
    lock = max((lock for lock in locks if lock["address"] == address), key=lambda one: one["wait"]["total_ns"])
    parts = {name.removesuffix("_percent"): part for name, part in lock["holder"]["split"].items()}
    parts["ran"] = parts.pop("running")
    parts["blocked"] = parts.pop("asleep") + parts.pop("waiting")
    return lock["wait"]["total_ns"], parts, lock["holder"]


def main():
    sums = split(released(events(sys.argv[1])))
    whole = sum(sums.values())
    total, parts, holder = reported(sys.argv[2], int(sys.argv[3], 0))
    print(f"waiting: {whole / 1e9:.2f} s by the trace, {total / 1e9:.2f} s by the report")
    print(f"{holder['looks']} looks, to {holder['margin_percent']:.0f} in 100")
    for part in PARTS:
        traced = sums[part] * 100 / whole
        print(f"{part:8} {traced:6.1f} {parts[part]:6.1f} {parts[part] - traced:+6.1f}")


if __name__ == "__main__":
    main()
