#!/usr/bin/env python3
"""What `lockstead whatif` predicts for programs on this machine, beside what they do.

    compare.py record LOCKSTEAD FOLDER [NAME ...]   runs and records each program on one processor and on two
    compare.py table LOCKSTEAD FOLDER MACHINE       predicts each from the other, and prints the table

Each program runs ROUNDS times unwatched on processor 0 and on 0 and 1, and once under `lockstead run` on
each. What a load generator starts is watched without the generator, which has the same processors. A
program's figure is the number that it prints, or one over its time. The prediction is a factor, from one
processor to two or back; so is what is real, of the medians. The error is the one over the other. Take the
recordings with nothing else to do, and MACHINE from `lockstead sim measure` just before.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = 3

# Name: kind, arguments.
PROGRAMS = {
    "pool": "queue 60000 1 4 64 500 10000",
    "queue": "queue 100000 1 1 16 4000 4000",
    "many-to-many": "queue 150000 3 2 32 2000 3000",
    "batches": "batches 2000 16 4 20000 40000",
    "stages": "stages 80000 8 3000 5000 2000",
    "phases": "phases 4 2000 100000",
    "cache-read": "cache 4 1.2 2000 2000 500 1",
    "cache-mixed": "cache 4 1.2 1500 3000 1500 100",
    "hot-mutex": "locks 4 1.2 1 3000 3000",
    "shards": "locks 4 1.2 16 3000 3000",
    "sqlite": "table 4 1.2 2000",
    "leveldb": "store 4 1.2 20",
    "rocksdb": "rocks 4 1.2 20",
    "memcached": "clients 16 2 10 -- memcached -s SOCKET -t 4 -A -u root",
    "python": "interpreter.py 4 4",
    "pbzip2": "@pbzip2 -kcf -p4 -b1 FILE",
    "zstd": "@zstd -qcf -T4 -12 -B1048576 FILE",
    "xz": "@xz -kcf -T4 -3 --block-size=1000000 FILE",
    "pigz": "@pigz -kcf -p4 FILE",
}
LIBRARIES = {"store": ["-lleveldb"], "rocks": ["-lrocksdb"], "table": ["-lsqlite3"]}
HEADERS = {"store": "leveldb/c.h", "rocks": "rocksdb/c.h", "table": "sqlite3.h"}


def absent(words):
    """Returns what a program needs and this machine lacks, or None."""
    first, *rest = words.split()
    starts = rest[rest.index("--") + 1] if "--" in rest else first.lstrip("@")
    if (first.startswith("@") or "--" in rest) and not shutil.which(starts):
        return "the program " + starts
    if first in HEADERS:
        source = "#include <%s>\n" % HEADERS[first]
        check = subprocess.run(["cc", "-fsyntax-only", "-xc", "-"], input=source, text=True, capture_output=True, check=False)
        if check.returncode:
            return "the header " + HEADERS[first]
    return None


def command(folder, words):
    """Builds what has to be built, and returns the arguments of a program."""
    first, *rest = words.split()
    if first.startswith("@"):
        data = os.path.join(folder, "data")
        if not os.path.exists(data):
            with open(data, "wb") as out:
                for number in range(1_600_000):
                    out.write(b"%d %d\n" % (number, number * 2654435761 % 1000003))
        return [first[1:]] + [data if word == "FILE" else word for word in rest]
    source = os.path.join(HERE, first)
    if first.endswith(".py"):
        return ["/usr/bin/python3", source] + rest
    program = os.path.join(folder, first)
    if not os.path.exists(program):
        build = ["cc", "-O2", "-g", "-pthread", source + ".c", "-o", program]
        subprocess.run(build + LIBRARIES.get(first, []), check=True)
    return [program] + rest


def figure(arguments, processors):
    """Runs a program on so many processors, and returns how fast it was."""
    since = time.monotonic()
    with tempfile.TemporaryFile() as output:
        subprocess.run(["taskset", "-c", "0-%d" % (processors - 1)] + arguments, check=True, stdout=output)
        took = time.monotonic() - since
        if output.tell() > 100:
            return 1 / took
        output.seek(0)
        return float(output.read().split()[-1])


def under(watched, arguments):
    """Returns the arguments with the program watched: what a load generator starts, behind its `--`, else all."""
    first = arguments.index("--") + 1 if "--" in arguments else 0
    return arguments[:first] + watched + arguments[first:]


def record(lockstead, folder, names):
    os.makedirs(folder, exist_ok=True)
    todo = []
    for name in names or PROGRAMS:
        lacks = absent(PROGRAMS[name])
        if lacks:
            print("skipped: %s, for lack of %s" % (name, lacks), flush=True)
        else:
            todo.append((name, command(folder, PROGRAMS[name])))
    for name, arguments in todo:
        found = {}
        for processors in (1, 2):
            runs = [figure(arguments, processors) for _ in range(ROUNDS)]
            report = os.path.join(folder, "%s-%d.json" % (name, processors))
            watched = [lockstead, "run", "--sort", "acquisitions", "--top", "40", "--json", report]
            watched += ["--report-file", os.path.join(folder, "text"), "--"]
            found[processors] = {"runs": runs, "watched": figure(under(watched, arguments), processors)}
        with open(os.path.join(folder, name + ".rates"), "w") as out:
            json.dump(found, out)
        print(name, {k: [round(x, 1) for x in v["runs"]] + [round(v["watched"], 1)] for k, v in found.items()}, flush=True)


def predicted(lockstead, folder, machine, name, recorded, wanted):
    """Returns the factor with its range, or why there is none."""
    report = os.path.join(folder, "%s-%d.json" % (name, recorded))
    words = [lockstead, "sim", "whatif", report, "--machine", machine, "--cores", "1,2", "--json"]
    words += ["--lock", "present", "--tasks", "recorded", "--no-advice"]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    if answer.returncode:
        return None, answer.stderr.strip().splitlines()[0]
    answer = json.loads(answer.stdout)
    points = {point["cores"]: point for point in answer["points"]}
    for point in points.values():
        if point["not_predictable"]:
            return None, point["not_predictable"]
    of = lambda n, which: points[n]["figures"][which]
    low = of(wanted, "lowest") / of(recorded, "highest")
    high = of(wanted, "highest") / of(recorded, "lowest")
    return (of(wanted, "jobs_per_second") / of(recorded, "jobs_per_second"), low, high), answer["recorded"]


def table(lockstead, folder, machine):
    errors = []
    print("| program | from | predicted factor | real factor | error |")
    print("|---|---|---|---|---|")
    for name in PROGRAMS:
        path = os.path.join(folder, name + ".rates")
        if not os.path.exists(path):
            continue
        with open(path) as file:
            rates = json.load(file)
        runs = {int(n): found["runs"] for n, found in rates.items()}
        for recorded, wanted in ((1, 2), (2, 1)):
            real = statistics.median(runs[wanted]) / statistics.median(runs[recorded])
            low, high = min(runs[wanted]) / max(runs[recorded]), max(runs[wanted]) / min(runs[recorded])
            shown = "%.2f (%.2f to %.2f)" % (real, low, high)
            what, why = predicted(lockstead, folder, machine, name, recorded, wanted)
            if what is None:
                print("| %s | %d | not predictable: %s | %s | |" % (name, recorded, why, shown))
                continue
            error = (what[0] / real - 1) * 100
            errors.append(abs(error))
            print("| %s | %d | %.2f (%.2f to %.2f) | %s | %+.0f %% |" % ((name, recorded) + what + (shown, error)), flush=True)
    if not errors:
        print("\nno predictions")
        return
    errors.sort()
    print("\n%d predictions: median error %.0f %%, worst %.0f %%" % (len(errors), errors[len(errors) // 2], errors[-1]))


if len(sys.argv) >= 4 and sys.argv[1] == "record":
    record(sys.argv[2], sys.argv[3], sys.argv[4:])
elif len(sys.argv) == 5 and sys.argv[1] == "table":
    table(*sys.argv[2:])
else:
    sys.exit(__doc__)
