"""A plugin for pytest: what Bottle's own tests ask is sent to a live prony-wsgi.

They call an application in the validator of the standard library, which so sees what prony-wsgi
calls it with.
"""

import wsgiref.validate
from collections.abc import Iterable

import prony_world

validator = wsgiref.validate.validator


def routed(application: prony_world.Application) -> prony_world.Application:
    """An application that has the server call this one."""
    inner: prony_world.Application = validator(application)

    def ask(environ: prony_world.Environ, start: prony_world.Start) -> Iterable[bytes]:
        exchange = prony_world.Exchange(inner, environ)
        answer = exchange.ask()
        start(f"{answer.status} {answer.reason}", answer.headers(exchange.given))
        return answer.blocks

    return ask


vars(wsgiref.validate)["validator"] = routed
prony_world.port()
