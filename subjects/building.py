"""What the scripts in this folder share: building a subject, once for what it is built of. Where what lies in the folder
was built of the same files, by the same tools, with the same variables, nothing is built; several scripts may build one
subject at the same time. Not for: experiments, whose builds the lab keeps (crates/lab/src/build.rs)."""

import fcntl
import hashlib
import os
import pathlib
import resource
import shlex
import subprocess
import time

import described

# Written last: what lies beside it is whole, and was built of what it says.
MARKER = ".built-of"
# Folders among the inputs that hold what others made of them.
SKIPPED = {"target", "node_modules", ".git", "__pycache__"}


class Failed(Exception):
    """A subject cannot be built."""


def files(path):
    """All files in a folder, or the one that `path` is."""
    if not path.is_dir():
        return [path]
    inside = (each for each in path.iterdir() if each.name not in SKIPPED)
    return [file for each in inside for file in files(each)]


def tool(name):
    """What a tool says of its version; tools differ in how they are asked."""
    name = shlex.quote(name)
    command = f"{name} --version 2>/dev/null || {name} version 2>/dev/null || {name} -v 2>&1"
    return subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL).stdout


def made_of(subject, folder, environment=os.environ):
    """A digest of what decides about what a build makes."""
    parts = [(folder / "subject.toml").read_bytes()]
    for file in sorted({file for name in subject["build"]["inputs"] for file in files(folder / name)}):
        parts += [f"{file.stat().st_mode:o} {os.path.relpath(file, folder)}".encode(), file.read_bytes()]
    parts += [tool(name) for name in subject.get("needs", {}).get("commands", [])]
    parts += [f"{name}={environment.get(name)}".encode() for name in environment.get(described.PASS, "").split(",")]
    # Each with its length, or else a byte could move from one to the next.
    return hashlib.sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).hexdigest()


def cpu_s():
    """CPU time of what has been started and has ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def build(subject, folder, values):
    """Builds a subject into the folder `values["build"]`, unless the same was built there; `values` go into its command.
    Returns what is to be said of it."""
    if "source" in subject:
        raise Failed("it is built from a repository, by `prony run` alone")
    into = pathlib.Path(values["build"])
    into.mkdir(parents=True, exist_ok=True)
    if "build" not in subject:
        return "there is nothing to build"
    command = subject["build"]["cmd"]
    for name, value in values.items():
        command = command.replace("{" + name + "}", shlex.quote(value))
    marker = into / MARKER
    with open(f"{into}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        now = made_of(subject, folder)
        if marker.exists() and marker.read_text() == now:
            return "built before"
        marker.unlink(missing_ok=True)
        began, spent = time.monotonic(), cpu_s()
        status = subprocess.run(["sh", "-c", command], cwd=folder, timeout=subject["build"]["timeout_s"]).returncode
        if status != 0:
            raise Failed(f"build ended with status {status}")
        marker.write_text(now)
    return f"built in {time.monotonic() - began:.1f} s, {cpu_s() - spent:.1f} s of CPU"
