#!/usr/bin/env python3
"""Builds the subjects that are programs, and checks that each does its works as agreed, without measuring.

    programs.py [LANGUAGE/NAME …] [--build DIR] [--prony PATH]

Without names: all subjects with a `[program]`. Each of its works is run at small counts, on one thread and on two, in all
variants of the build: the line that it prints, the count, the bytes and the checksum, which follows from the definition
of the work. Then what it must refuse. Needs Python 3.11 or newer, and nothing else that the subjects do not need.
Exit status: 0 all checks hold; 1 not so; 2 usage; 3 nothing wrong, but some were not run here.
"""

import argparse
import itertools
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # a check leaves nothing in the tree
import described  # noqa: E402

sys.dont_write_bytecode = True  # a check leaves nothing in the tree
import building  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_S = 120
COUNTS = [1, 2, 7, 1000]
THREADS = [1, 2]
MEASURES = {
    "coroutine": "coroutines",
    "event": "events",
    "start": "services",
    "start-stop": "cycles",
    "serializer": "messages",
    "realtime": "runs",
}
# Further words of a work, each of which it must do as well.
WORDS = {
    "coroutine": [[], ["--through", "events"], ["--through", "tasks"]],
    "event": [
        [],
        ["--priorities", "1", "--handler", "coroutine", "--payload", "0"],
        ["--priorities", "8", "--handler", "coroutine", "--payload", "32"],
        ["--priorities", "8", "--handler", "plain"],
        ["--handler", "plain", "--payload", "32"],
        ["--priorities", "8", "--handler", "none", "--payload", "32"],
    ],
    "start": [[], ["--injection", "explicit"], ["--injection", "constructor"]],
    "realtime": [[], ["--deadline-us", "1"]],
}
# What one may do in its ecosystem's own way beside the agreed one, or refuse, with the reason.
MAY_BE_REFUSED = [["--through", "tasks"]]


class NotRun(Exception):
    """The machine lacks something that the subject needs."""


class Wrong(Exception):
    """The program did not do what it must."""


def expect(condition, detail):
    if not condition:
        raise Wrong(detail)


def event_checksum(count, words):
    """The k-th event that the handler sees, from 1, adds its id times (k mod 7 + 1), and the words that it carries: its
    id and the three numbers after that. Without a handler the queue counts."""
    if "none" in words:
        return count
    priorities = 8 if "8" in words else 1
    ids = sorted(range(1, count + 1), key=lambda number: ((number - 1) % priorities, number))
    carried = (lambda number: 4 * number + 6) if "32" in words else (lambda _: 0)
    return sum(number * (k % 7 + 1) + carried(number) for k, number in enumerate(ids, 1))


def checksum(work, count, words):
    """What the work on one thread must come to; None where that is the program's own affair."""
    match work:
        case "coroutine":
            return count * (count - 1) // 2 + count
        case "event":
            return event_checksum(count, words)
        case "start":
            return 4 * (2 * count + 2)
        case "start-stop":
            return (1 + 3 + 5 + 7 + 2 * 11 + 2 * 13) * (count + 1)
        case "serializer":
            return sum(20 + i % 64 + len("five hundred") for i in range(count))
    return None


def message_bytes(count):
    return sum(len(f'{{"id":{20 + i % 64},"val":"five hundred"}}') for i in range(count))


def check_durations(line, words):
    durations = line["durations"]
    total = line["count"]
    expect(durations["count"] == total, f"durations of {durations['count']} runs, not {total}")
    expect(0 < durations["min_ns"] <= durations["mean_ns"] <= durations["max_ns"], f"not in order: {durations}")
    counts = durations["histogram"]["counts"]
    expect(sum(count for _, count in counts) == total, "the histogram does not have every run")
    expect([value for value, _ in counts] == sorted({value for value, _ in counts}), "the histogram is not sorted")
    expect(counts[-1][0] >= durations["max_ns"], "the histogram's last bucket is below the longest run")
    if words:
        expect(durations["missed_count"] == total, "a run was within a deadline of 1 us")
        expect(all(missed["ns"] > 1000 for missed in durations["missed"]), "a run is listed that met the deadline")


def check_line(text, work, count, threads, words):
    lines = text.splitlines()
    expect(len(lines) == 1, f"{len(lines)} lines instead of one")
    line = json.loads(lines[0])
    agreed = {"measure": MEASURES[work], "threads": threads, "count": count * threads}
    for name, value in agreed.items():
        expect(line.get(name) == value, f"{name} is {line.get(name)!r}, not {value!r}")
    elapsed = line.get("elapsed_ns")
    expect(isinstance(elapsed, int) and elapsed > 0, f"elapsed_ns is {elapsed!r}")
    size = message_bytes(count) * threads if work == "serializer" else 0
    expect(line.get("bytes") == size, f"bytes is {line.get('bytes')!r}, not {size}")
    one = checksum(work, count, words)
    if one is not None:
        whole = str(one * threads % 2**64)
        expect(line.get("checksum") == whole, f"checksum is {line.get('checksum')!r}, not {whole!r}")
    if work == "realtime":
        check_durations(line, words)


def fill(words, values):
    filled = []
    for word in words:
        for name, value in values.items():
            word = word.replace("{" + name + "}", value)
        filled.append(word)
    return filled


def execute(command):
    env = described.environment("trials")
    return subprocess.run(
        command, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env
    )


def check_works(program, values):
    """Every work at every count, on one thread and on two; returns how many runs that were."""
    runs = 0
    for work, threads, count in itertools.product(program["works"], THREADS, COUNTS):
        for words in WORDS.get(work, [[]]):
            given = {"work": work, "count": str(count), "threads": str(threads)}
            command = fill(program["cmd"], values | given) + words
            done = execute(command)
            if words in MAY_BE_REFUSED and done.returncode == 2:
                expect(done.stderr.strip() and not done.stdout, f"{shlex.join(command)}: no reason on stderr alone")
                continue
            try:
                expect(done.returncode == 0, f"ended with {done.returncode}: {done.stderr.strip()[-300:]}")
                expect(work == "realtime" or not done.stderr, f"wrote on stderr: {done.stderr.strip()[-300:]}")
                check_line(done.stdout, work, count, threads, words)
            except (Wrong, ValueError, KeyError) as reason:
                raise Wrong(f"{shlex.join(command)}: {reason!r}") from None
            runs += 1
    return runs


def check_refusals(program, values):
    """What no program takes, and the works that this one says it does not have."""
    base = {"work": program["works"][0], "count": "5", "threads": "1"}
    bad = [{"work": "nonesuch"}, {"count": "0"}, {"count": "-1"}, {"count": "x"}, {"count": "1.5"}, {"threads": "0"}]
    bad += [{"work": work} for work in program.get("not_applicable", {})]
    commands = [fill(program["cmd"], values | base | words) for words in bad]
    good = fill(program["cmd"], values | base)
    bad_words = [["--nonesuch", "1"], ["--priorities", "3"], ["--injection", "none"]]
    bad_words += [["--handler", "nobody"], ["--payload", "7"], ["--through", "nothing"]]
    commands += [good + words for words in bad_words]
    for command in commands:
        done = execute(command)
        said = done.stderr.strip()
        expect(done.returncode == 2, f"{shlex.join(command)}: ended with {done.returncode}, not 2")
        expect(said and not done.stdout, f"{shlex.join(command)}: the reason is not on stderr alone")
    return len(commands)


def check_needs(needs):
    missing = [name for name in needs.get("commands", []) if shutil.which(name) is None]
    if missing:
        remedy = needs.get("packages", {})
        raise NotRun(f"missing: {', '.join(missing)}; {remedy.get('debian') or remedy.get('any') or ''}")


def build(subject, folder, values):
    try:
        print(f"build: {folder.parent.name}/{folder.name} {building.build(subject, folder, values)}", flush=True)
    except building.Failed as reason:
        raise Wrong(str(reason)) from None


def variants(subject):
    """All builds that it offers, each as the values of its names."""
    offered = subject.get("variants", {})
    return [dict(zip(offered, choice, strict=True)) for choice in itertools.product(*offered.values())]


def check_declaration(subject, folder):
    program = subject["program"]
    works, lacking = set(program["works"]), program.get("not_applicable", {})
    expect(subject["name"] == folder.name, f"its name is {subject['name']}, its folder is {folder.name}")
    expect(works and works <= MEASURES.keys(), f"unknown works: {sorted(works - MEASURES.keys())}")
    if subject["role"] == "program":
        expect(works.isdisjoint(lacking), "a work is both offered and not applicable")
        expect(works | lacking.keys() == MEASURES.keys(), "a work is neither offered nor not applicable")
        expect(all(lacking.values()), "a work is not applicable without a reason")


def check(folder, build_folder, prony):
    subject = described.load(folder)
    check_declaration(subject, folder)
    check_needs(subject["needs"])
    values = {"dir": str(folder), "build": str(build_folder)} | described.programs(prony)
    if absent := described.missing(subject["program"]["cmd"], values):
        raise NotRun(f"there is no {absent}: give the path of prony with --prony")
    build(subject, folder, values)
    version = subprocess.run(
        ["sh", "-c", *fill([subject["version"]["cmd"]], values)], cwd=folder, capture_output=True, text=True, timeout=60
    ).stdout.strip()
    expect(version and "\n" not in version, f"its version is not one line: {version!r}")
    runs = refusals = 0
    for variant in variants(subject):
        runs += check_works(subject["program"], values | variant)
        refusals += check_refusals(subject["program"], values | variant)
    print(f"programs: {folder.parent.name}/{folder.name} ok ({version}): {runs} runs, {refusals} refusals")


def all_programs():
    files = sorted(HERE.glob("*/*/subject.toml"))
    return [file.parent for file in files if "program" in described.parse(file.read_text())]


def main():
    parser = argparse.ArgumentParser(description="Check the subjects that are programs.")
    parser.add_argument("subjects", nargs="*", metavar="LANGUAGE/NAME", help="default: all")
    parser.add_argument("--build", metavar="DIR", help="keep what is built here, for the next time (default: a directory that is removed)")
    parser.add_argument("--prony", metavar="PATH", default="prony", help="the prony binary, for rust/prony")
    args = parser.parse_args()
    described.leave_the_rest_behind()
    folders = [HERE / name for name in args.subjects] or all_programs()
    for folder in folders:
        if not (folder / "subject.toml").is_file() or folder not in all_programs():
            parser.error(f"no subject.toml with a [program] in {folder}")
    worst = 0
    with tempfile.TemporaryDirectory(prefix="prony-programs-") as scratch:
        root = pathlib.Path(args.build).resolve() if args.build else pathlib.Path(scratch)
        # For one subject alone the folder is its own.
        own = len(folders) == 1 and args.build
        for folder in folders:
            name = f"{folder.parent.name}/{folder.name}"
            try:
                check(folder, root if own else root / name, args.prony)
            except NotRun as reason:
                print(f"programs: {name} not run: {reason}")
                worst = worst or 3
            except (Wrong, OSError, subprocess.TimeoutExpired) as reason:
                print(f"programs: {name} FAIL: {reason}")
                worst = 1
    return worst


if __name__ == "__main__":
    sys.exit(main())
