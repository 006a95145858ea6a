"""Flask, Django, Bottle, Falcon and Pyramid as they are installed."""

import json
import os
import signal

import pytest
from conftest import APPS, PATIENCE, Answer, Client, Serve, Server, running

WAYS = pytest.mark.parametrize("threads", ["1", "4"])


def form(client: Client, path: str, text: str) -> Answer:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return client.ask(path, method="POST", headers=headers, body=text.encode())


def upload(client: Client, path: str, data: bytes) -> Answer:
    body = (
        b'--edge\r\nContent-Disposition: form-data; name="data"; filename="a.bin"\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n" + data + b"\r\n--edge--\r\n"
    )
    headers = {"Content-Type": "multipart/form-data; boundary=edge"}
    return client.ask(path, method="POST", headers=headers, body=body)


def logged_in(client: Client, name: str) -> bytes:
    answer = client.ask(f"/login/{name}")
    assert (answer.status, answer.one("location")) == (302, "/me")
    cookie = answer.one("set-cookie").partition(";")[0]
    return client.ask("/me", headers={"Cookie": cookie}).body


def common(server: Server) -> None:
    """What both can."""
    data = os.urandom(200_000)
    with server.connect() as client:
        assert client.ask("/").body == b"hello world"
        assert client.ask("/", method="HEAD").one("content-length") == "11"
        assert json.loads(form(client, "/form", "a=1&b=%C3%A9").body)["b"] == "é"
        assert upload(client, "/upload", data).body == b"a.bin 200000"
        assert logged_in(client, "ada") == b"ada"
        assert client.ask("/me").body == b"nobody"
        assert client.ask("/nowhere").status == 404
        assert client.ask("/fail").status == 500
        assert client.ask("/").body == b"hello world"
    assert "ZeroDivisionError: in a view" in server.wait_for("in a view")


@WAYS
def test_flask(serve: Serve, threads: str) -> None:
    server = serve("flasky:app", "--threads", threads)
    common(server)
    with server.connect() as client:
        answer = client.ask("/item/7?tag=a&tag=b")
        assert json.loads(answer.body) == {"number": 7, "tags": ["a", "b"]}
        headers = {"Content-Type": "application/json"}
        answer = client.ask("/json", method="POST", headers=headers, body=b'{"value": 21}')
        assert json.loads(answer.body) == {"twice": 42}


@WAYS
def test_flask_streams_with_its_context_while_others_are_answered(
    serve: Serve, threads: str
) -> None:
    server = serve("flasky:app", "--threads", threads)
    clients = [server.connect() for _ in range(3)]
    for count, client in enumerate(clients, 200):
        client.send(f"GET /stream/{count} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        client.read_head()
        assert server.ask("/item/1").status == 200
    for count, client in reversed(list(enumerate(clients, 200))):
        lines = [chunk.split() for chunk in client.chunks()]
        path = f"/stream/{count}".encode()
        assert lines == [[path, str(number).encode()] for number in range(count)]
    assert "failed" not in server.said


@WAYS
def test_django(serve: Serve, threads: str) -> None:
    server = serve("djangoish:app", "--threads", threads)
    common(server)
    with server.connect() as client:
        assert client.ask("/stream/3").body == b"0\n1\n2\n"
        assert client.ask("/file").body == (APPS / "djangoish.py").read_bytes()
        assert client.ask("/memory").body == b"in memory"
        head = b"POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        client.send(head + b"5\r\nhello\r\n0\r\n\r\n")
        assert client.read().body == b"hello"


@pytest.mark.parametrize(
    ("application", "head"), [("falconish:app", 405), ("pyramidal:make()", 200)]
)
@WAYS
def test_falcon_and_pyramid(serve: Serve, application: str, head: int, threads: str) -> None:
    server = serve(application, "--threads", threads)
    with server.connect() as client:
        assert client.ask("/").body == b"hello world"
        assert client.ask("/?name=%C3%A9").body == "hello é".encode()
        answer = client.ask("/", method="HEAD")
        assert (answer.status, answer.body) == (head, b"")
        headers = {"Content-Type": "application/json"}
        answer = client.ask("/", method="POST", headers=headers, body=b'{"value": 21}')
        assert json.loads(answer.body) == {"twice": 42}
        assert client.ask("/nowhere").status == 404
    assert server.stop() == 0
    assert "Traceback" not in server.said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@WAYS
def test_bottle_starts_and_stops_it(threads: str, number: signal.Signals) -> None:
    start = f"import bottled; bottled.main({threads!r})"
    with running(python=("-c", start)) as process:
        server = Server(process)
        server.listening()
        with server.connect() as client:
            assert client.ask("/test").body == b"OK"
            assert client.ask("/test", method="HEAD").one("content-length") == "2"
            assert form(client, "/form", "a=1&b=%C3%A9").body == "{'a': '1', 'b': 'é'}".encode()
            assert client.ask("/nowhere").status == 404
            assert client.ask("/fail").status == 500
        process.send_signal(number)
        server.rest()
        assert process.wait(PATIENCE) == 0
    assert "ZeroDivisionError: in a view" in server.said
