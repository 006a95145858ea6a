"""Runs suites of others through a live prony-wsgi, and holds what fails against a list.

    python suites.py SOURCES [SUITE …]      SOURCES: where they are unpacked

A list, such as `flask.txt`, has the counts of each Python's run (`3.11: …`) and each test that
fails, with the reason on the lines below it (`as root: …` where only root has it fail). A test that
fails and is not there, one that is there and does not fail, and another count are each an error.
`python/world` is the command.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Seconds for a suite. Django's takes a few minutes.
SECONDS_MAX = 2400
PYTEST = ["-m", "pytest", "--quiet", "--tb=short", "-p", "no:cacheprovider", "-p", "pytest_world"]
# Of Django's, those whose tests have a client ask something, or are about requests and answers.
DJANGO = (HERE / "django_labels.txt").read_text().split()

# Begins the reason of a test that fails only there: no permission stops root.
AS_ROOT = "as root: "

# How each is run: where in the sources, and Python's words.
SUITES: dict[str, tuple[str, list[str]]] = {
    "bottle": ("bottle-*", [*PYTEST, "-p", "bottle_world", "test"]),
    "flask": ("flask-*", [*PYTEST, "-p", "werkzeug_world", "tests"]),
    "django": ("django-*/tests", [str(HERE / "django_world.py"), ".", *DJANGO]),
}


@dataclass
class Known:
    """What a list says."""

    counts: dict[str, str] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)


def read(text: str) -> Known:
    """A list, from its text. Raises ValueError for a test without reason."""
    known, name = Known(), None
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if line.startswith(" "):
            if name is None:
                raise ValueError(f"line {number}: a reason belongs below a test")
            known.failing[name] += line.strip()
        elif line[0].isdigit():
            version, _, counts = line.partition(": ")
            known.counts[version] = counts
        else:
            name = line
            known.failing[name] = ""
    without = [name for name, reason in known.failing.items() if not reason]
    if without:
        raise ValueError(f"without a reason: {', '.join(without)}")
    if os.geteuid() != 0:
        known.failing = {
            name: reason for name, reason in known.failing.items() if not reason.startswith(AS_ROOT)
        }
    return known


def counted(tests: dict[str, Any]) -> str:
    """The counts as a list has them."""
    number = Counter(test["outcome"] for test in tests.values())
    asking = sum(test["asked"] > 0 for test in tests.values())
    return (
        f"{len(tests)} tests, {number['passed']} passed, {number['failed']} failed, "
        f"{number['skipped']} skipped; {asking} asked prony-wsgi"
    )


def compared(tests: dict[str, Any], known: Known, version: str) -> list[str]:
    """What is not as the list has it."""
    failing = {name: test["reason"] for name, test in tests.items() if test["outcome"] == "failed"}
    wrong = [
        f"fails, and is not on the list: {name}: {failing[name]}"
        for name in sorted(failing.keys() - known.failing.keys())
    ]
    for name in sorted(known.failing.keys() - failing.keys()):
        became = tests[name]["outcome"] if name in tests else "not run"
        wrong.append(f"is on the list, and {became}: {name}")
    if (wanted := known.counts.get(version)) is not None and wanted != counted(tests):
        wrong.append(f"on the list is: {wanted}")
    return wrong


def run(name: str, sources: Path) -> dict[str, Any]:
    """A suite's tests, by name."""
    place, words = SUITES[name]
    (folder,) = sources.glob(place)
    with tempfile.TemporaryDirectory() as scratch:
        records, output = Path(scratch, "records"), Path(scratch, "output")
        environment = {
            **os.environ,
            "PYTHONPATH": str(HERE),
            "PRONY_WORLD_RECORDS": str(records),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        with output.open("wb") as file:
            subprocess.run(
                [sys.executable, *words],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=SECONDS_MAX,
            )
        if not records.exists():
            end = output.read_text(errors="replace")[-4000:]
            raise SystemExit(f"{name}: it ended before its end:\n{end}")
        tests: dict[str, Any] = json.loads(records.read_text())
    return tests


def main(sources: str, names: list[str]) -> int:
    """Runs these suites; yields the exit code."""
    failed = 0
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for name in names or SUITES:
        if name not in SUITES:
            print(f"there is no suite {name}; there are: {', '.join(SUITES)}", file=sys.stderr)
            return 2
        known = read((HERE / f"{name}.txt").read_text())
        tests = run(name, Path(sources))
        wrong = compared(tests, known, version)
        print(f"{name}, Python {version}: {counted(tests)}", flush=True)
        for line in wrong:
            print(f"  {line}", flush=True)
        failed += bool(wrong)
    print(f"{len(names or SUITES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
