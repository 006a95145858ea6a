"""What goes wrong: what its author reads, and what becomes of everybody else."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import PATIENCE, Client, LateError, Serve, Server, running


def refused(*words: str, cwd: Path) -> str:
    """What a command that cannot begin says."""
    with running(*words, cwd=cwd) as process:
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode != 0
        return output.decode()


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize(
    ("source", "application", "said"),
    [
        ("", "nowhere:app", "there is no module `nowhere` in"),
        ("", "sub.nowhere:app", "there is no module `sub` in"),
        ("application = 1", "shop:app", "shop.py: there is no `app` for `app`"),
        ("apple = 1", "shop:appl", "did you mean `apple`?"),
        ("\n\napp = 5\n", "shop:app", "shop.py:3: `app` is an int"),
        ("import nowhere", "shop:app", 'shop.py", line 1'),
        ("def app(:\n", "shop:app", "SyntaxError"),
        ("\n1/0\n", "shop:app", 'shop.py", line 2'),
        ("import sys; sys.exit(3)", "shop:app", "SystemExit: 3"),
        ("def make():\n    return 1\n", "shop:make()", "yields an int"),
        ("", "shop", "`shop` names no application"),
    ],
)
def test_an_application_that_cannot_be_loaded_is_named_with_its_line(
    tmp_path: Path, workers: str, source: str, application: str, said: str
) -> None:
    (tmp_path / "shop.py").write_text(source)
    text = refused(application, "0", "--workers", workers, cwd=tmp_path)
    assert said in text
    assert "listening" not in text


def test_a_port_in_use_is_told(serve: Serve, tmp_path: Path) -> None:
    server = serve("forms:app")
    (tmp_path / "shop.py").write_text("def app(e, s): pass")
    for workers in ("0", "1"):
        text = refused("shop:app", str(server.port), "--workers", workers, cwd=tmp_path)
        assert str(server.port) in text


def test_wrong_words_are_explained(tmp_path: Path) -> None:
    assert "--threads" in refused("a:b", "--threads", "0", cwd=tmp_path)
    assert "--static" in refused("a:b", "--static", "nowhere", cwd=tmp_path)


def test_factories_and_dotted_names_are_applications(serve: Serve) -> None:
    assert serve("forms:make()").ask("/").body == b"hello world"


def test_other_directories_can_be_named(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "shop.py").write_text(
        "def app(environ, start_response):\n"
        "    start_response('200 OK', [])\n"
        "    return [b'found']\n"
    )
    assert serve("shop:app", "--path", "inner", cwd=tmp_path).ask("/").body == b"found"


def test_a_traceback_is_shown_to_clients_in_development_only(serve: Serve) -> None:
    for threads in ("1", "2"):
        server = serve("forms:app", "--development", "--threads", threads)
        answer = server.ask("/fails")
        assert answer.status == 500
        assert b"forms.py" in answer.body
        assert answer.one("content-type").startswith("text/plain")
        assert b"forms.py" not in serve("forms:app", "--threads", threads).ask("/fails").body


@pytest.mark.parametrize("threads", ["1", "2"])
def test_sys_exit_ends_the_worker_which_is_replaced(serve: Serve, threads: str) -> None:
    server = serve("forms:app", "--workers", "1", "--threads", threads)
    before = server.ask("/process").body
    assert server.ask("/leaves").status == 500
    server.wait_for("SystemExit: enough")
    server.wait_for("the application says goodbye")
    assert other_process(server, before)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_crash_in_c_ends_one_worker_and_no_other(serve: Serve, threads: str) -> None:
    server = serve("forms:app", "--workers", "2", "--threads", threads)
    with server.connect() as client, pytest.raises((EOFError, ConnectionResetError)):
        client.ask("/crashes")
    for _ in range(20):
        assert server.ask("/plain").body == b"hello world"
    said = server.wait_for("another is started")
    assert "SIGSEGV" in said or "signal 11" in said
    assert server.stop() == 0


def test_a_worker_that_hangs_is_replaced(serve: Serve) -> None:
    # Within this time the application is loaded, too, whatever else runs.
    server = serve("forms:app", "--workers", "1", "--timeout", "5s")
    before = server.ask("/process").body
    with server.connect() as client, pytest.raises((EOFError, ConnectionResetError)):
        client.ask("/hangs")
    server.wait_for("another is started")
    assert other_process(server, before)


def test_a_killed_worker_is_replaced(serve: Serve) -> None:
    server = serve("forms:app", "--workers", "2")
    before = server.ask("/process").body
    os.kill(int(before), signal.SIGKILL)
    server.wait_for("another is started")
    assert other_process(server, before)


def other_process(server: Server, before: bytes) -> bool:
    """Asks until another process answers."""
    due = time.monotonic() + PATIENCE
    while time.monotonic() < due:
        try:
            with Client(server.port) as client:
                after = client.ask("/process").body
        except (EOFError, ConnectionError):
            continue
        if after != before:
            return True
    return False


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_stop_answers_what_was_begun_and_runs_atexit(
    serve: Serve, workers: str, threads: str
) -> None:
    server = serve("forms:app", "--workers", workers, "--threads", threads)
    client = server.connect()
    client.send(b"GET /contexts?1 HTTP/1.1\r\nHost: a\r\n\r\n")
    client.read_head()
    server.process.send_signal(signal.SIGTERM)
    # It waits for us, and we for it.
    assert sum(len(block) for block in client.chunks()) > 64 * 65536
    client.close()
    assert "the application says goodbye" in server.rest()
    assert server.process.returncode == 0


def test_two_that_end_the_process_end_it_gracefully(serve: Serve) -> None:
    server = serve("forms:app", "--workers", "0", "--threads", "1")
    client = server.connect()
    client.send(b"GET /contexts HTTP/1.1\r\nHost: a\r\n\r\n")
    client.read_head()
    leaving = [server.connect() for _ in range(2)]
    for each in leaving:
        each.send(b"GET /leaves HTTP/1.1\r\nHost: a\r\n\r\n")
    for each in leaving:
        assert each.read().status == 500
    assert sum(len(block) for block in client.chunks()) > 64 * 65536
    client.close()
    server.rest()
    assert server.process.returncode == 0


def test_requests_whose_time_is_over_are_not_begun(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("static")
    words = ["--workers", "0", "--threads", "2", "--graceful-timeout", "100ms"]
    server = serve("forms:app", *words, "--static", str(tmp_path))
    with ExitStack() as pipes:
        for name in ("one", "two"):
            place = tmp_path / name
            os.mkfifo(place)
            asking = server.connect()
            asking.send(f"GET /sleep?{place} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            # A thread has it open, too.
            pipes.enter_context(place.open("wb"))
        for _ in range(4):
            server.connect().send(b"GET /fails HTTP/1.1\r\nHost: a\r\n\r\n")
        # The loop has seen those before this one.
        assert server.ask("/static/a.txt").body == b"static"
        server.process.send_signal(signal.SIGTERM)
        for client in server.connections:
            with pytest.raises((EOFError, ConnectionResetError)):
                client.read()
    assert "ZeroDivisionError" not in server.rest()


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_thread_that_never_returns_does_not_keep_atexit_from_running(
    serve: Serve, workers: str
) -> None:
    words = ["--workers", workers, "--threads", "2", "--graceful-timeout", "1s"]
    server = serve("forms:app", *words)
    server.connect().send(b"GET /hangs HTTP/1.1\r\nHost: a\r\n\r\n")
    assert server.ask("/plain").body == b"hello world"
    assert server.stop() == 0
    assert "the application says goodbye" in server.said


def test_sigint_stops_as_sigterm_does(serve: Serve) -> None:
    server = serve("forms:app", "--workers", "1")
    server.process.send_signal(signal.SIGINT)
    said = server.rest()
    assert server.process.returncode == 0
    assert "KeyboardInterrupt" not in said


def test_sighup_replaces_the_workers(serve: Serve) -> None:
    server = serve("forms:app", "--workers", "1")
    before = server.ask("/process").body
    server.process.send_signal(signal.SIGHUP)
    assert other_process(server, before)


def test_no_worker_outlives_a_killed_supervisor(serve: Serve) -> None:
    server = serve("forms:app", "--workers", "1")
    worker = int(server.ask("/process").body)
    gone = os.pidfd_open(worker)
    server.process.kill()
    import select

    assert select.select([gone], [], [], PATIENCE)[0]
    os.close(gone)


def test_static_files_and_the_access_log_are_there(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("static")
    log = tmp_path / "log"
    words = ["--static", str(tmp_path), "--access-log", str(log)]
    server = serve("forms:app", *words)
    assert server.ask("/static/a.txt").body == b"static"
    assert server.ask("/plain").body == b"hello world"
    assert server.stop() == 0
    assert "/static/a.txt" in log.read_text()


def test_waiting_for_what_never_comes_is_told(serve: Serve) -> None:
    server = serve("forms:app", "--workers", "0")
    server.process.terminate()
    with pytest.raises(LateError):
        server.wait_for("never said")


def test_a_signal_that_comes_while_a_process_is_forked_ends_that_one(tmp_path: Path) -> None:
    """Python's own pool ends its processes so, as soon as there is nothing left for them to do."""
    script = """
import faulthandler, os, signal
from prony_wsgi import processes

# A handler that is not Python's, as the server's is, and a signal that comes before anything else.
faulthandler.register(signal.SIGTERM, file=open(os.devnull, "w"))
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))
before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
processes.begin()
forked = os.fork()
if forked == 0:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == -signal.SIGTERM
assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
"""
    # Elsewhere than beside the sources, which would be found before what is installed.
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, timeout=PATIENCE)
