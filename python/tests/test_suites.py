"""A list of what fails in the suites of `python/world` is held to the letter."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent / "world"))
import suites

RUN = {
    "good": {"outcome": "passed", "reason": "", "asked": 2},
    "bad": {"outcome": "failed", "reason": "1 != 2", "asked": 1},
    "left": {"outcome": "skipped", "reason": "no such thing", "asked": 0},
}
COUNTS = "3 tests, 1 passed, 1 failed, 1 skipped; 2 asked prony-wsgi"


def test_a_run_as_the_list_has_it_is_good() -> None:
    known = suites.read(f"# What.\n3.11: {COUNTS}\nbad\n    for a reason\n")
    assert suites.compared(RUN, known, "3.11") == []


def test_a_test_that_failed_and_was_on_no_list_passed() -> None:
    assert suites.compared(RUN, suites.Known(), "3.11") == [
        "fails, and is not on the list: bad: 1 != 2"
    ]


@pytest.mark.parametrize(("name", "became"), [("good", "passed"), ("gone", "not run")])
def test_a_test_that_was_repaired_stayed_on_the_list(name: str, became: str) -> None:
    known = suites.Known(failing={"bad": "why", name: "why"})
    assert suites.compared(RUN, known, "3.11") == [f"is on the list, and {became}: {name}"]


def test_tests_that_vanished_were_not_missed() -> None:
    known = suites.read("3.11: 4 tests\nbad\n    why\n")
    assert suites.compared(RUN, known, "3.11") == ["on the list is: 4 tests"]
    # Another Python has others.
    assert suites.compared(RUN, known, "3.14") == []


def test_a_list_gave_no_reason() -> None:
    with pytest.raises(ValueError, match="without a reason: bad"):
        suites.read("bad\nworse\n    why\n")
    with pytest.raises(ValueError, match="line 2"):
        suites.read("# What.\n    why\n")
