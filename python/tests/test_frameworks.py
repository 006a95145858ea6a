"""Flask and Django as they are installed."""

import json
import os

import pytest
from conftest import APPS, Answer, Client, Serve, Server

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
