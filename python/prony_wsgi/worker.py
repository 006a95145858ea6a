"""A worker process, started by the supervisor, which tells it all it has to know."""

import signal
import sys

from prony_wsgi import _prony_wsgi


def main() -> int:
    """Serves until the supervisor says that it is enough; yields the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # What was given to `-m` is not the application's command.
    sys.argv = ["prony-wsgi"]
    return _prony_wsgi.work()


if __name__ == "__main__":
    sys.exit(main())
