"""A worker process, started by the supervisor, which tells it all it has to know."""

import sys
from typing import NoReturn

from prony_wsgi import _prony_wsgi, processes


def main() -> NoReturn:
    """Serves until the supervisor says that it is enough."""
    processes.begin()
    # What was given to `-m` is not the application's command.
    sys.argv = ["prony-wsgi"]
    processes.end(_prony_wsgi.work())


if __name__ == "__main__":
    main()
