"""What the scripts in this folder share: a subject's file with the values that it leaves out, as `prony run` takes them,
and the environment that builds and subjects get. Not for: checking anything of either."""

import functools
import os
import pathlib
import shutil
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
# Names that a user lets through beside those of environment.toml.
PASS = "PRONY_PASS_ENV"
# What a file need not say, table by table: docs/experiments.md has the same.
TABLES = {"build": {"timeout_s": 900}, "ready": {"timeout_s": 20}, "stop": {"signal": "TERM", "timeout_s": 5}}
# Tables that may be left out as a whole by whoever is started.
ALWAYS = ("ready", "stop")


def parse(text):
    """The subject that a text describes, with what it leaves out."""
    subject = tomllib.loads(text)
    subject.setdefault("needs", {})
    for name, values in TABLES.items():
        if name in subject or name in ALWAYS:
            subject[name] = values | subject.get(name, {})
    return subject


def programs(prony):
    """The values of the placeholders of Prony's own programs, of which the second lies beside the first."""
    found = pathlib.Path(shutil.which(prony) or prony)
    return {"prony": prony, "systems": str(found.with_name("prony-systems"))}


def missing(command, values):
    """The program of Prony's that a command names and that is not there."""
    named = [values[name] for name in ("prony", "systems") if any(f"{{{name}}}" in word for word in command)]
    return next((program for program in named if shutil.which(program) is None), None)


def load(folder):
    """The subject in a folder."""
    return parse((folder / "subject.toml").read_text())


@functools.cache
def groups():
    return tomllib.loads((HERE / "environment.toml").read_text())["pass"]


def passes(name, to, named=()):
    """Whether a variable reaches `builds` or `trials`."""

    def fits(listed):
        return name.startswith(listed[:-1]) if listed.endswith("*") else name == listed

    listed = any(fits(each) for group in groups() if to == "builds" or group["to"] == "all" for each in group["names"])
    return listed or name in named


def environment(to):
    """What of the environment that the script was called in reaches `builds` or `trials`."""
    named = [name.strip() for name in os.environ.get(PASS, "").split(",")]
    return {name: value for name, value in os.environ.items() if passes(name, to, named)}


def leave_the_rest_behind():
    """From now on what this script starts gets the environment of builds, but for what it starts with another one."""
    kept = environment("builds") | {name: value for name, value in os.environ.items() if name == PASS}
    os.environ.clear()
    os.environ.update(kept)
