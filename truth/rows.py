"""A row of the table: what was measured, beside what, and what it must reach."""

import os
import sys
from dataclasses import dataclass

# Name of a row → (what it does: yields figures, seconds that it takes, whether it runs where no row is named).
ROWS = {}
EXCEPTIONS = os.path.join(os.path.dirname(__file__), "../crates/testkit/exceptions")


@dataclass
class Figure:
    """One line of the table. `reached` is None where it is only reported. What is asked may be more than every machine can
    give: `is_sound` is then whether it is at least as it must be on any, and how that is said is `must`."""
    what: str
    shown: str
    reach: str = "reported"
    reached: bool | None = None
    is_sound: bool | None = None
    must: str = ""

    def is_wrong(self):
        """Whether something is wrong with the generator, and not only slow or coarse here."""
        return self.reached is False and not self.is_sound


def row(name, seconds, always=True):
    """Makes a function that yields figures a row with this name."""
    def known(function):
        ROWS[name] = (function, seconds, always)
        return function
    return known


def at_most(what, value, limit, unit="", digits=4):
    return Figure(what, f"{value:.{digits}g}{unit}", f"≤ {limit:g}{unit}", value <= limit)


def at_least_share(what, share, limit, must=None):
    return Figure(what, f"{100 * share:.6g} %", f"≥ {100 * limit:g} %", share >= limit,
                  *([] if must is None else [share >= must, f"≥ {100 * must:g} %" if must else ""]))


def is_equal(what, beside, value, truth):
    return Figure(what, str(value), f"= {truth} ({beside})", value == truth)


def holds(what, value, shown=None):
    return Figure(what, shown or ("yes" if value else "no"), "yes", bool(value))


def show(figure):
    mark = "WRONG" if figure.is_wrong() else {True: "reached", False: "not reached", None: ""}[figure.reached]
    reach = f"{figure.reach}; in any case {figure.must}" if figure.must else figure.reach
    print(f"| {figure.what} | {figure.shown} | {reach} | {mark} |", flush=True)


def is_excepted(what):
    """Whether it may be missing even where nothing may be skipped."""
    with open(EXCEPTIONS) as lines:
        return any(line.startswith(f"{what}: ") for line in lines)


def skipped(name, why, what):
    """Says that a row cannot run here for want of `what`, to the reader and to who lists such things. Returns whether it may be."""
    print(f"| {name} | skipped: {why} | | |", flush=True)
    file = os.environ.get("PRONY_SKIPPED")
    if file:
        with open(file, "a") as listed:
            print(f"truth {name}: {why}", file=listed)
    if os.environ.get("PRONY_SKIP_NOTHING", "0") not in ("", "0") and not is_excepted(what):
        print(f"truth: {name} was skipped, and nothing may be", file=sys.stderr)
        return False
    return True
