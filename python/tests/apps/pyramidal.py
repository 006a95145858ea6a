"""Hello in Pyramid."""

from typing import Any

from pyramid.config import Configurator
from pyramid.response import Response


def hello(request: Any) -> Response:
    return Response(f"hello {request.params.get('name', 'world')}", content_type="text/plain")


def twice(request: Any) -> dict[str, int]:
    return {"twice": 2 * request.json_body["value"]}


def make() -> Any:
    with Configurator() as config:
        config.add_route("hello", "/")
        config.add_view(hello, route_name="hello", request_method="GET")
        config.add_view(twice, route_name="hello", request_method="POST", renderer="json")
        return config.make_wsgi_app()
