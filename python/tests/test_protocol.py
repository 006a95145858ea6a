"""PEP 3333, one rule after another."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Client, Serve, Server, in_time

FILE_BYTES = bytes(range(256)) * 4096


@pytest.fixture(params=["1", "3"], ids=["one-thread", "three-threads"])
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    """All applications of forms.py, in both ways of running them."""
    return serve("forms:app", "--workers", "0", "--threads", request.param)


@pytest.mark.parametrize(
    "name", ["plain", "several", "generator", "announced", "Instance", "writer", "head_only"]
)
def test_every_form_of_an_application_gives_the_same_body(server: Server, name: str) -> None:
    with server.connect() as client:
        for _ in range(3):
            answer = client.ask(f"/{name}")
            assert (answer.status, answer.body) == (200, b"hello world")
            assert answer.one("content-type") == "text/plain"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("plain", b"hello world"),
        ("several", b"hello world"),
        ("announced", b"hello world"),
        ("instance", b"hello world"),
        ("writer", b"hello world"),
        ("empty", b""),
        ("echo", b""),
        ("file", FILE_BYTES),
        ("file_like", FILE_BYTES),
        ("head_only", b"hello world"),
    ],
)
def test_the_validator_of_the_standard_library_finds_no_fault(
    server: Server, name: str, body: bytes
) -> None:
    with server.connect() as client:
        assert client.ask(f"/validated/{name}").body == body
        answer = client.ask(f"/validated/{name}", method="HEAD")
        assert (answer.status, answer.body) == (200, b"")
        query = "0" if name == "file" else "a=b%20c"
        assert client.ask(f"/validated/{name}?{query}").body == body
    assert server.stop() == 0
    assert "AssertionError" not in server.said


def test_a_length_that_is_known_is_announced_and_another_comes_in_chunks(server: Server) -> None:
    assert server.ask("/plain").one("content-length") == "11"
    assert server.ask("/several").one("content-length") == "11"
    assert server.ask("/announced").one("content-length") == "11"
    assert server.ask("/generator").one("transfer-encoding") == "chunked"
    assert server.ask("/empty").one("content-length") == "0"


def test_an_iterable_that_says_it_has_one_block_went_in_chunks(server: Server) -> None:
    answer = server.ask("/sized_one")
    assert (answer.one("content-length"), answer.body) == ("11", b"hello world")
    # Of several, only the first is known.
    answer = server.ask("/sized_two")
    assert (answer.one("transfer-encoding"), answer.body) == ("chunked", b"hello world")


def test_a_205_had_a_body(server: Server) -> None:
    with server.connect() as client:
        answer = client.ask("/reset_content")
        assert (answer.status, answer.one("content-length"), answer.body) == (205, "0", b"")
        assert client.ask("/plain").body == b"hello world"


def test_an_old_client_gets_a_body_without_length_until_the_end(server: Server) -> None:
    client = server.connect()
    client.send(b"GET /generator HTTP/1.0\r\n\r\n")
    assert client.read().body == b"hello world"


def test_the_environ_is_as_the_specification_has_it(server: Server) -> None:
    headers = {
        "X-Latin": "caf\xe9",
        "X-Twice": "1",
        "x-twice": "2",
        "Cookie": "a=1",
        "cookie": "b=2",
        "X_Forged": "1",
        "Content-Type": "text/plain",
    }
    path = "/show/a%20b%C3%A9%2Fc%zz?x=%20&y"
    answer = server.ask(path, method="POST", headers=headers, body=b"four")
    lines = answer.body.decode().split("\n")
    environ = dict(line.split("=", 1) for line in lines)
    expected = {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/show/a b\xc3\xa9/c%zz",
        "QUERY_STRING": "x=%20&y",
        "CONTENT_TYPE": "text/plain",
        "CONTENT_LENGTH": "4",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": str(server.port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "test",
        "HTTP_X_LATIN": "caf\xe9",
        "HTTP_X_TWICE": "1,2",
        "HTTP_COOKIE": "a=1; b=2",
        "wsgi.url_scheme": "http",
        "wsgi.version": (1, 0),
        "wsgi.run_once": False,
        "wsgi.multiprocess": False,
        "wsgi.input_terminated": True,
    }
    for key, value in expected.items():
        assert environ[key] == repr(value), key
    assert "HTTP_X_FORGED" not in environ
    assert "HTTP_CONTENT_LENGTH" not in environ
    assert answer.one("x-latin") == "caf\xe9"


def test_no_environ_has_anything_of_the_one_before(server: Server) -> None:
    with server.connect() as client:
        client.ask("/show?a=b", method="POST", headers={"X-A": "1"}, body=b"four")
        shown = client.ask("/show").body.decode()
    for gone in ("X_A", "CONTENT_LENGTH", "a=b", "POST"):
        assert gone not in shown


@pytest.mark.parametrize(("threads", "truth"), [("1", "False"), ("2", "True")])
def test_multithread_tells_the_truth(serve: Serve, threads: str, truth: str) -> None:
    shown = serve("forms:app", "--workers", "0", "--threads", threads).ask("/show").body.decode()
    assert f"wsgi.multithread={truth}" in shown


@pytest.mark.parametrize(("workers", "truth"), [("1", "False"), ("2", "True")])
def test_multiprocess_tells_the_truth(serve: Serve, workers: str, truth: str) -> None:
    shown = serve("forms:app", "--workers", workers).ask("/show").body.decode()
    assert f"wsgi.multiprocess={truth}" in shown


def test_the_input_can_be_read_in_all_ways(server: Server) -> None:
    body = b"one\ntwo three\nfour\nfive\nsix"
    shown = server.ask("/reader", method="POST", body=body).body.decode()
    rest = [b"one\n", b"tw", b"o three\n", [b"four\n"], [b"five\n", b"six"], b""]
    assert shown == repr(rest)
    assert server.ask("/real_input", method="POST", body="é".encode()).body == "É".encode()
    assert server.ask("/reader").body == repr([b"", b"", b"", [], [], b""]).encode()


def test_a_body_in_chunks_has_its_length_in_the_environ(server: Server) -> None:
    with server.connect() as client:
        head = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        client.send(head + b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")
        assert client.read().body == b"hello world"
        large = os.urandom(3_000_000)
        assert client.ask("/echo", method="PUT", body=large).body == large


def test_a_request_split_at_every_byte_is_the_same_request(server: Server) -> None:
    request = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    with server.connect() as client:
        for split in range(1, len(request)):
            client.send(request[:split])
            client.send(request[split:])
            assert client.read().body == b"hello"


def test_answers_without_body_have_none(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/no_content").all("content-length") == []
        answer = client.ask("/not_modified")
        assert (answer.status, answer.one("etag")) == (304, '"1"')
        answer = client.ask("/head_only", method="HEAD")
        assert answer.one("content-length") == "11"
        assert client.ask("/plain", method="HEAD").one("content-length") == "11"
        assert client.ask("/generator", method="HEAD").status == 200
        assert client.ask("/plain").body == b"hello world"


def test_headers_may_come_twice(server: Server) -> None:
    assert server.ask("/cookies").all("set-cookie") == ["a=1", "b=2"]


@pytest.mark.parametrize(
    "name",
    [
        "connection",
        "transfer",
        "newline",
        "name",
        "beyond",
        "bytes",
        "pairs",
        "dict",
        "status",
        "number",
        "interim",
        "length",
        "lengths",
        "injected",
    ],
)
def test_a_head_that_breaks_a_rule_is_refused(server: Server, name: str) -> None:
    answer = server.ask(f"/heads/{name}")
    assert answer.status == 500
    assert "x-injected" not in dict(answer.headers)
    assert "start_response(status, headers)" in server.wait_for("Error: ")


def test_a_head_can_be_replaced_until_it_is_sent(server: Server) -> None:
    answer = server.ask("/replaced")
    assert (answer.status, answer.body) == (503, b"sorry")
    assert answer.all("x-first") == []
    with server.connect() as client, pytest.raises((EOFError, ConnectionResetError)):
        client.ask("/too_late")
    server.wait_for("ValueError: after the head")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fails", "ZeroDivisionError: before the head"),
        ("twice", "a second call needs exc_info"),
        ("never_started", "did not call start_response"),
        ("text", "TypeError: an application gives blocks of bytes, and this one gave str"),
        ("nothing", "'NoneType' object is not iterable"),
        ("wrong_length", "announces 8 bytes, and the application gave 11"),
        ("wrong_long", "announces 1 bytes, and the application gave 100000"),
    ],
)
def test_an_error_before_the_head_is_answered_with_500(
    server: Server, name: str, said: str
) -> None:
    with server.connect() as client:
        answer = client.ask(f"/{name}")
        assert (answer.status, answer.body) == (500, b"Internal Server Error\n")
        assert f"GET /{name} failed" in server.wait_for(said)
        # The connection, and the server, go on.
        assert client.ask("/plain").body == b"hello world"


def test_an_error_shows_the_line_that_it_comes_from(server: Server) -> None:
    server.ask("/fails")
    said = server.wait_for("ZeroDivisionError")
    assert "forms.py" in said
    assert 'raise ZeroDivisionError("before the head")' in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fails_later", "ZeroDivisionError: after the head"),
        ("too_short", "the body is shorter than announced"),
        ("too_long", "the body is longer than announced"),
    ],
)
def test_an_error_after_the_head_cuts_the_answer_off(server: Server, name: str, said: str) -> None:
    with server.connect() as client, pytest.raises((EOFError, ConnectionResetError)):
        client.ask(f"/{name}")
    server.wait_for(said)
    assert server.ask("/plain").body == b"hello world"


def test_close_is_called_whatever_happens(server: Server) -> None:
    server.ask("/Instance")
    server.ask("/Instance", method="HEAD")
    server.ask("/file_like")
    assert server.ask("/FailsInClose").body == b"hello world"
    server.wait_for("ZeroDivisionError: in close")
    # It may come after the answer.
    closed = 0

    def are_closed() -> bool:
        nonlocal closed
        closed += server.ask("/logged").body.count(b"closed")
        return closed >= 3

    in_time(are_closed)
    assert closed == 3


def test_a_client_that_leaves_ends_an_endless_answer(server: Server) -> None:
    client = server.connect()
    client.send(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
    client.read_head()
    client.chunk()
    client.close()
    in_time(lambda: server.ask("/logged").body == b"left")


def test_blocks_are_sent_as_they_come(server: Server, tmp_path: Path) -> None:
    place = tmp_path / "lines"
    os.mkfifo(place)
    client = server.connect()
    client.send(f"GET /ticks?{place} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert client.read_head().status == 200
    assert client.chunk() == b"begun"
    # It waits for the pipe's other end: the block before was not kept back.
    with place.open("wb", buffering=0) as pipe:
        for line in (b"one\n", b"two\n"):
            pipe.write(line)
            assert client.chunk() == line
    assert client.chunk() == b""


def test_requests_that_take_turns_do_not_see_each_others_context(server: Server) -> None:
    clients = [server.connect() for _ in range(2)]
    for number, client in enumerate(clients):
        client.send(f"GET /contexts?{number} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        client.read_head()
        assert server.ask("/who").body == b"nobody"
    for number, client in enumerate(clients):
        blocks = list(client.chunks())
        assert blocks[-1] == b"before: nobody"
        shown = b"".join(blocks[:-1]).split()
        assert shown == [str(number).encode()] * 64
    assert server.ask("/who").body == b"nobody"


def test_start_response_of_an_old_request_is_refused(server: Server) -> None:
    with server.connect() as client:
        answers = [client.ask("/late_start").body for _ in range(6)]
    assert b"start_response was called after its request was over" in answers
    assert server.ask("/plain").body == b"hello world"


def test_a_write_that_was_kept_reaches_no_later_client(server: Server) -> None:
    with server.connect() as client:
        for turn in range(6):
            body = client.ask("/late_write").body
            assert body == b"\n".join([b"write was called after its request was over"] * turn)


def test_answers_that_come_at_once_leave_nothing_behind(server: Server) -> None:
    for _ in range(2):
        clients = [server.connect() for _ in range(16)]
        for client in clients:
            client.send(b"GET /contexts HTTP/1.1\r\nHost: a\r\n\r\n")
        # All at the same time: answers that nobody reads hold the threads, whichever came first.
        with ThreadPoolExecutor(len(clients)) as readers:
            for answer in readers.map(Client.read, clients):
                assert answer.body.endswith(b" before: nobody")
        for client in clients:
            client.close()
    # A few for each thread, with two methods, wait to be taken again.
    assert int(server.ask("/starts").body) <= 20


def test_the_reason_is_the_applications(server: Server) -> None:
    answer = server.ask("/reason")
    assert (answer.status, answer.reason) == (404, "Gone fishing, caf\xe9")


def test_a_head_that_is_refused_replaces_no_other(server: Server) -> None:
    answer = server.ask("/refused")
    assert (answer.status, answer.reason, answer.body) == (203, "Kept", b"refused")
    assert answer.one("x-first") == "1"


def test_a_long_list_has_a_length(server: Server) -> None:
    answer = server.ask("/long_list")
    assert (answer.one("content-length"), answer.body) == ("100000", bytes(100_000))
    assert server.ask("/long_list", method="HEAD").one("content-length") == "100000"


def test_many_names_of_headers_are_all_there(server: Server) -> None:
    with server.connect() as client:
        for turn in range(0, 400, 40):
            names = [f"X-{number:03}" for number in range(turn, turn + 40)]
            names.append("X-" + "a" * 100)
            answer = client.ask("/show", headers=dict.fromkeys(names, "here"))
            lines = answer.body.decode().split("\n")
            for name in names:
                assert f"HTTP_{name.upper().replace('-', '_')}='here'" in lines


def test_a_file_that_tells_no_size_is_read(server: Server) -> None:
    pid = server.ask("/process").body
    assert server.ask("/unsized").body.startswith(pid + b" (")


def test_a_file_that_is_taken_slowly_holds_no_thread(serve: Serve) -> None:
    server = serve("forms:app", "--workers", "0", "--threads", "2")
    # More than sockets hold, and more clients than threads.
    slow = [server.connect() for _ in range(4)]
    for client in slow:
        client.send(b"GET /big_file HTTP/1.1\r\nHost: a\r\n\r\n")
        client.read_head()
    assert server.ask("/plain").body == b"hello world"


def test_a_view_may_fork(server: Server) -> None:
    before = server.ask("/process").body
    for _ in range(2):
        assert server.ask("/forks").body == b"[0, 1, 4, 9]"
    assert server.ask("/process").body == before


def test_files_are_sent_whole_and_in_part(server: Server) -> None:
    with server.connect() as client:
        for query, bytes_ in [("", FILE_BYTES), ("?1000", FILE_BYTES[1000:])]:
            answer = client.ask(f"/file{query}")
            assert answer.one("content-length") == str(len(bytes_))
            assert answer.body == bytes_
        assert client.ask("/file_short").body == FILE_BYTES[10:30]
        assert client.ask("/file", method="HEAD").one("content-length") == str(len(FILE_BYTES))
        assert client.ask("/packed").body == FILE_BYTES
        assert client.ask("/file_like").body == FILE_BYTES


def test_a_thread_that_waits_holds_up_nobody_else(serve: Serve, tmp_path: Path) -> None:
    server = serve("forms:app", "--workers", "0", "--threads", "2")
    place = tmp_path / "pipe"
    os.mkfifo(place)
    waiting = server.connect()
    waiting.send(f"GET /sleep?{place} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    for _ in range(20):
        assert server.ask("/plain").body == b"hello world"
    place.open("wb").close()
    assert waiting.read().body.startswith(b"prony-wsgi-")


def test_what_a_thread_keeps_stays_its_own(server: Server) -> None:
    with server.connect() as client:
        counts = [int(client.ask("/counted").body) for _ in range(12)]
    assert max(counts) >= 4


def test_threads_of_the_application_go_on(server: Server) -> None:
    before = int(server.ask("/background").body)
    in_time(lambda: int(server.ask("/background").body) >= before + 3)


def test_many_clients_at_once_get_their_own_answers(server: Server) -> None:
    wrong: list[bytes] = []

    def converse(number: int) -> None:
        with server.connect() as client:
            for turn in range(50):
                body = f"{number} {turn}".encode() * 100
                answer = client.ask("/echo", method="POST", body=body)
                if answer.body != body:
                    wrong.append(answer.body)

    threads = [threading.Thread(target=converse, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
