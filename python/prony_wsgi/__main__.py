"""The command `prony-wsgi`."""

import sys
from typing import NoReturn

from prony_wsgi import _prony_wsgi, processes


def main() -> NoReturn:
    """Runs the command."""
    processes.begin()
    worker = [sys.executable, "-m", "prony_wsgi.worker"]
    processes.end(_prony_wsgi.main(["prony-wsgi", *sys.argv[1:]], worker))


if __name__ == "__main__":
    main()
