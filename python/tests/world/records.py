"""What became of each test of a suite, in a file that `suites` reads."""

import json
import os

import prony_world


class Records:
    """Outcomes by test: `passed`, `failed` or `skipped`, and whether it asked the server."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, object]] = {}
        self.before = prony_world.Exchange.answered

    def begin(self) -> None:
        """The next test's requests are counted from here on."""
        self.before = prony_world.Exchange.answered

    def put(self, name: str, outcome: str, reason: str = "") -> None:
        """What has failed once stays failed: a part of it may pass later."""
        asked = prony_world.Exchange.answered - self.before
        known = self.tests.setdefault(name, {"outcome": outcome, "reason": reason, "asked": 0})
        if outcome == "failed" or known["outcome"] == "passed":
            known.update(outcome=outcome, reason=reason)
        known["asked"] = max(int(str(known["asked"])), asked)

    def write(self) -> None:
        with open(os.environ["PRONY_WORLD_RECORDS"], "w", encoding="utf-8") as file:
            json.dump(self.tests, file, indent=1)
