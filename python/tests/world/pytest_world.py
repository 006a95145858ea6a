"""A plugin for pytest: writes down what became of each test, and which asked the server."""

import pytest
from records import Records

records = Records()


def pytest_runtest_logstart() -> None:
    records.begin()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        told = report.longrepr
        reason = told[2] if isinstance(told, tuple) else str(told or "").split("\n")[-1]
        records.put(report.nodeid, report.outcome, reason)


def pytest_sessionfinish() -> None:
    records.write()
