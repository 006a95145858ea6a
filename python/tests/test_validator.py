"""The validator of the standard library between prony-wsgi and applications of every shape: it
asserts what PEP 3333 asks of both sides."""

import pytest
from conftest import Answer, Client, Serve, Server

BODIED = [
    "whole",
    "one_by_one",
    "announced",
    "lazy",
    "Closed",
    "written",
    "written_and_given",
    "no_info",
    "replaced",
    "wrapped",
    "file",
    "by_lines",
]
SENT = b"one\ntwo three\n" * 3000


def sized(client: Client, path: str) -> Answer:
    return client.ask(path, method="POST", body=SENT)


def chunked(client: Client, path: str) -> Answer:
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    half = len(SENT) // 2
    chunks = b"".join(b"%x\r\n%b\r\n" % (half, SENT[at : at + half]) for at in (0, half))
    client.send(head.encode() + chunks + b"0\r\n\r\n")
    return client.read()


@pytest.fixture(params=["1", "3"], ids=["one-thread", "three-threads"])
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    """All shapes, in both ways of running them."""
    return serve("shapes:app", "--workers", "0", "--threads", request.param)


def ended_without_a_word(server: Server) -> None:
    """Neither an assertion, nor an iterator that nobody closed."""
    assert server.stop() == 0
    for word in ("AssertionError", "Traceback", "without being closed"):
        assert word not in server.said


def test_the_validator_sees_no_fault_in_any_shape_of_an_answer(server: Server) -> None:
    with server.connect() as client:
        for shape in BODIED:
            assert client.ask(f"/{shape}?a=b%20c").body == b"hello world", shape
            answer = client.ask(f"/{shape}", method="HEAD")
            assert (answer.status, answer.body) == (200, b""), shape
            assert sized(client, f"/{shape}").body == SENT, shape
            assert chunked(client, f"/{shape}").body == SENT, shape
    ended_without_a_word(server)
    assert server.said.count("an answer was closed") == 4


def test_the_validator_sees_no_fault_where_there_is_no_body(server: Server) -> None:
    with server.connect() as client:
        for shape, status, header in (
            ("no_content", 204, ("x-left", "1")),
            ("not_modified", 304, ("etag", '"1"')),
        ):
            answers = [client.ask(f"/{shape}", method=name) for name in ("GET", "HEAD", "DELETE")]
            for answer in [*answers, sized(client, f"/{shape}"), chunked(client, f"/{shape}")]:
                assert (answer.status, answer.body) == (status, b""), shape
                assert header in answer.headers
                assert answer.all("transfer-encoding") == []
    ended_without_a_word(server)


def test_the_validator_sees_no_fault_for_a_client_of_http_1_0(server: Server) -> None:
    for shape in BODIED:
        client = server.connect()
        client.send(f"GET /{shape} HTTP/1.0\r\n\r\n".encode())
        answer = client.read()
        assert (answer.status, answer.body) == (200, b"hello world"), shape
        assert answer.all("transfer-encoding") == [], shape
    ended_without_a_word(server)


def test_what_the_validator_says_is_seen(server: Server) -> None:
    assert server.ask("/wrong").status == 500
    assert server.stop() == 0
    assert "AssertionError: The Status header cannot be used" in server.said
