"""A plugin for pytest: what the test client of werkzeug, which is Flask's, asks is sent to a live
prony-wsgi."""

from typing import Any

import prony_world
import werkzeug.test
from werkzeug.datastructures import Headers


def run_wsgi_app(app: Any, environ: Any, buffered: bool = False) -> tuple[Any, str, Headers]:
    """Stands for werkzeug's; an answer is always read whole."""
    del buffered
    keys = getattr(environ, "environ", environ)
    exchange = prony_world.Exchange(app, dict(keys))
    answer = exchange.ask()
    headers = Headers(answer.headers(exchange.given))
    return iter(answer.blocks), f"{answer.status} {answer.reason}", headers


vars(werkzeug.test)["run_wsgi_app"] = run_wsgi_app
prony_world.port()
