"""Settings of Django's own tests: databases in memory, and a runner that writes outcomes down."""

import unittest
from typing import Any

from django.test.runner import DiscoverRunner
from records import Records

DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3"},
    "other": {"ENGINE": "django.db.backends.sqlite3"},
}
SECRET_KEY = "of these tests"  # noqa: S105
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "django_settings.Runner"

records = Records()


class Result(unittest.TextTestResult):
    """Hands each outcome on."""

    def startTest(self, test: Any) -> None:  # noqa: N802
        records.begin()
        super().startTest(test)

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        records.put(test.id(), "passed")
        super().addSuccess(test)

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        records.put(test.id(), "failed", repr(err[1]))
        super().addFailure(test, err)

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        records.put(test.id(), "failed", repr(err[1]))
        super().addError(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            records.put(test.id(), "failed", repr(err[1]))
        super().addSubTest(test, subtest, err)

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        records.put(test.id(), "skipped", reason)
        super().addSkip(test, reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        records.put(test.id(), "skipped", "a failure that its author expects")
        super().addExpectedFailure(test, err)

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        records.put(test.id(), "failed", "a success that its author does not expect")
        super().addUnexpectedSuccess(test)


class Runner(DiscoverRunner):  # type: ignore[misc]
    """Django's, with these results."""

    def get_resultclass(self) -> type[Result]:
        return Result

    def teardown_test_environment(self, **kwargs: Any) -> None:
        records.write()
        super().teardown_test_environment(**kwargs)
