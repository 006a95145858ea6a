"""An application in Bottle, and an adapter with which `bottle.run` starts prony-wsgi."""

import bottle

from prony_wsgi import _prony_wsgi


class PronyServer(bottle.ServerAdapter):  # type: ignore[misc]
    """Has prony-wsgi serve what `bottle.run` is given."""

    def run(self, handler: object) -> None:
        global served
        served = handler
        words = ["prony-wsgi", "bottled:served", str(self.port), "--host", self.host]
        words += ["--workers", "0", "--threads", self.options["threads"]]
        _prony_wsgi.main(words, [])


served: object = None
app = bottle.default_app()


@bottle.route("/test")  # type: ignore[untyped-decorator]
def test() -> str:
    return "OK"


@bottle.post("/form")  # type: ignore[untyped-decorator]
def form() -> str:
    return str(dict(bottle.request.forms.decode()))


@bottle.route("/fail")  # type: ignore[untyped-decorator]
def fail() -> str:
    raise ZeroDivisionError("in a view")


def main(threads: str) -> None:
    """Serves until a signal ends it."""
    bottle.run(app, server=PronyServer, host="127.0.0.1", port=0, threads=threads)
