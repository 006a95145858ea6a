//! Serves one page to this machine: `/`, and `/events`, on which the number of each new state is sent.
//!
//! It listens on 127.0.0.1 alone, answers GET alone, and only where the request names that address: a page of a stranger whose name resolves
//! to 127.0.0.1 (DNS rebinding) gets nothing. A request has at most 8 KiB and five seconds.
//!
//! Not for: what the page says ([`super::LivePage`]).

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use prony_base::Nanos;
use prony_lab::launch;

const HEAD_BYTES_MAX: usize = 8 << 10;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections at one time; a page has one or two.
const CONNECTIONS_MAX: usize = 32;
/// After this without a state a connection is looked at, so that those whose page was closed end.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// What the page may do: nothing but show itself and ask this server.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The state that is shown, and who has it.
#[derive(Debug, Default)]
struct LiveState {
    number: u64,
    page: Arc<str>,
    is_last: bool,
    /// Connections that wait for states.
    waiting: usize,
    /// Of them, those that waited when the last state came.
    expected: usize,
    /// Times that the last state was fetched.
    fetched: usize,
    is_closed: bool,
}

/// The state, shared with the connections.
#[derive(Debug, Default)]
struct LiveBoard {
    state: Mutex<LiveState>,
    changed: Condvar,
}

impl LiveBoard {
    /// No code that holds it panics; if one did, the state would still be whole.
    fn lock(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server. It ends with [`LiveServer::end`], or with the process.
#[derive(Debug)]
pub struct LiveServer {
    address: SocketAddr,
    board: Arc<LiveBoard>,
}

impl LiveServer {
    /// Listens on a port that is free, by a thread on `cores`.
    pub fn start(cores: &[u32]) -> io::Result<LiveServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let board = Arc::new(LiveBoard::default());
        let (shared, cores) = (Arc::clone(&board), cores.to_vec());
        let accepting = move || {
            // The threads of the connections keep to the same cores. Where those cannot be had the run does not begin.
            let _ = launch::on_cores(&cores, || accept(&listener, address.port(), &shared));
        };
        thread::Builder::new()
            .name("prony-live".to_owned())
            .spawn(accepting)?;
        Ok(LiveServer { address, board })
    }

    /// Where the page is.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The number that the next state will have.
    pub fn next_number(&self) -> u64 {
        self.board.lock().number + 1
    }

    /// Shows the next state.
    pub fn show(&self, page: String, is_last: bool) {
        let mut state = self.board.lock();
        state.number += 1;
        state.page = page.into();
        state.is_last = is_last;
        state.expected = state.waiting;
        drop(state);
        self.board.changed.notify_all();
    }

    /// Waits until every page that is open has the last state, for `limit` at the most, and stops listening.
    pub fn end(self, limit: Nanos) {
        let limit = Duration::from_nanos(limit.0);
        let state = self.board.lock();
        let is_behind = |state: &mut LiveState| state.fetched < state.expected;
        let waited = self
            .board
            .changed
            .wait_timeout_while(state, limit, is_behind);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_closed = true;
        drop(state);
        self.board.changed.notify_all();
        // Wakes the thread that accepts, which then ends.
        let _ = TcpStream::connect(self.address);
    }
}

fn accept(listener: &TcpListener, port: u16, board: &Arc<LiveBoard>) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        if board.lock().is_closed {
            return;
        }
        let Ok(stream) = stream else { continue };
        if open.load(Relaxed) >= CONNECTIONS_MAX {
            continue;
        }
        open.fetch_add(1, Relaxed);
        let (own, board) = (Arc::clone(&open), Arc::clone(board));
        let spawned = thread::Builder::new().spawn(move || {
            // Whoever does not read its answer loses it.
            let _ = serve(stream, port, &board);
            own.fetch_sub(1, Relaxed);
        });
        if spawned.is_err() {
            open.fetch_sub(1, Relaxed);
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LiveRequest {
    Page,
    /// The states after this one.
    Events(u64),
}

fn serve(mut stream: TcpStream, port: u16, board: &LiveBoard) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    let Some(head) = read_head(&mut stream)? else {
        return refuse(&mut stream, "400 Bad Request");
    };
    match request(&head, port) {
        Err(status) => refuse(&mut stream, status),
        Ok(LiveRequest::Page) => page(&mut stream, board),
        Ok(LiveRequest::Events(since)) => {
            board.lock().waiting += 1;
            let sent = events(&mut stream, since, board);
            board.lock().waiting -= 1;
            sent
        }
    }
}

/// The request up to its empty line; `None` if it is too long, ends early or is no text.
fn read_head(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let count = stream.read(&mut part)?;
        head.extend(part.iter().take(count));
        if count == 0 || head.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
    }
    Ok(String::from_utf8(head).ok())
}

/// What a request asks for, or the status by which it is refused.
fn request(head: &str, port: u16) -> Result<LiveRequest, &'static str> {
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let [method, target, version] = first.split(' ').collect::<Vec<_>>()[..] else {
        return Err("400 Bad Request");
    };
    if !version.starts_with("HTTP/1.") {
        return Err("400 Bad Request");
    }
    let fields = lines.filter_map(|line| line.split_once(':'));
    let hosts: Vec<&str> = fields
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value.trim())
        .collect();
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    match hosts[..] {
        [host] if own.iter().any(|own| own == host) => {}
        _ => return Err("403 Forbidden"),
    }
    if method != "GET" {
        return Err("405 Method Not Allowed");
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path {
        "/" => Ok(LiveRequest::Page),
        "/events" => {
            let since = query
                .strip_prefix("since=")
                .and_then(|number| number.parse().ok());
            Ok(LiveRequest::Events(since.unwrap_or(0)))
        }
        _ => Err("404 Not Found"),
    }
}

fn refuse(stream: &mut TcpStream, status: &str) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

fn page(stream: &mut TcpStream, board: &LiveBoard) -> io::Result<()> {
    let (page, is_last) = {
        let state = board.lock();
        (Arc::clone(&state.page), state.is_last)
    };
    let sent = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nContent-Security-Policy: {POLICY}\r\nX-Frame-Options: DENY\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    if is_last {
        board.lock().fetched += 1;
        board.changed.notify_all();
    }
    sent
}

/// Sends the number of each state after `since` until the last one.
fn events(stream: &mut TcpStream, since: u64, board: &LiveBoard) -> io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
          Connection: close\r\n\r\n",
    )?;
    let mut sent = since;
    loop {
        let state = board.lock();
        let is_old = |state: &mut LiveState| state.number == sent && !state.is_closed;
        let waited = board.changed.wait_timeout_while(state, ALIVE_EVERY, is_old);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let (number, is_last, is_closed) = (state.number, state.is_last, state.is_closed);
        drop(state);
        match number == sent {
            true => stream.write_all(b":\n\n")?,
            false if is_last => write!(stream, "event: last\ndata: {number}\n\n")?,
            false => write!(stream, "data: {number}\n\n")?,
        }
        sent = number;
        if is_last || is_closed {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_by_its_address_is_answered() {
        let asked = |first: &str, rest: &str| request(&format!("{first}\r\n{rest}\r\n\r\n"), 8080);
        let own = "Accept: */*\r\nhost: 127.0.0.1:8080";
        for (first, fields, expected) in [
            ("GET / HTTP/1.1", own, Ok(LiveRequest::Page)),
            (
                "GET /?a=b HTTP/1.0",
                "Host: localhost:8080",
                Ok(LiveRequest::Page),
            ),
            (
                "GET /events?since=7 HTTP/1.1",
                own,
                Ok(LiveRequest::Events(7)),
            ),
            ("GET /events HTTP/1.1", own, Ok(LiveRequest::Events(0))),
            (
                "GET /events?since=x HTTP/1.1",
                own,
                Ok(LiveRequest::Events(0)),
            ),
            ("GET /plan.json HTTP/1.1", own, Err("404 Not Found")),
            ("GET /../etc/passwd HTTP/1.1", own, Err("404 Not Found")),
            ("POST / HTTP/1.1", own, Err("405 Method Not Allowed")),
            (
                "GET / HTTP/1.1",
                "Host: rebound.example:8080",
                Err("403 Forbidden"),
            ),
            (
                "GET / HTTP/1.1",
                "Host: 127.0.0.1:9090",
                Err("403 Forbidden"),
            ),
            ("GET / HTTP/1.1", "Host: 127.0.0.1", Err("403 Forbidden")),
            ("GET / HTTP/1.1", "Accept: */*", Err("403 Forbidden")),
            (
                "GET / HTTP/1.1",
                "Host: 127.0.0.1:8080\r\nHost: a.example",
                Err("403 Forbidden"),
            ),
            ("GET  / HTTP/1.1", own, Err("400 Bad Request")),
            ("GET / HTTP/2", own, Err("400 Bad Request")),
            ("", own, Err("400 Bad Request")),
        ] {
            assert_eq!(asked(first, fields), expected, "{first} {fields}");
        }
    }

    /// The answer to a request, as it comes.
    fn get(server: &LiveServer, target: &str) -> TcpStream {
        let mut stream = TcpStream::connect(server.address).expect("a connection");
        let host = server.address;
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("a request");
        stream
    }

    fn whole(mut stream: TcpStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    }

    #[test]
    fn states_are_announced_up_to_the_last_which_is_delivered_before_the_end() {
        let server = LiveServer::start(&[]).expect("a server");
        server.show("first".to_owned(), false);
        assert!(whole(get(&server, "/")).ends_with("\r\n\r\nfirst"));
        let mut waiting = get(&server, "/events?since=0");
        let mut text = String::new();
        while !text.contains("data: 1\n\n") {
            let mut part = [0; 256];
            let count = waiting.read(&mut part).expect("an event");
            assert!(count > 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&part[..count]));
        }
        server.show("last".to_owned(), true);
        let address = server.address;
        let fetched = thread::spawn(move || {
            let rest = whole(waiting);
            assert!(rest.ends_with("event: last\ndata: 2\n\n"), "{rest}");
            let mut stream = TcpStream::connect(address).expect("a connection");
            write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("a request");
            whole(stream)
        });
        server.end(Nanos::from_secs(60));
        assert!(fetched.join().expect("a page").ends_with("\r\n\r\nlast"));
    }

    #[test]
    fn too_long_a_request_is_refused() {
        let server = LiveServer::start(&[]).expect("a server");
        let mut stream = TcpStream::connect(server.address).expect("a connection");
        stream
            .write_all(&[b'a'; HEAD_BYTES_MAX + 1])
            .expect("bytes");
        assert!(whole(stream).starts_with("HTTP/1.1 400 "));
        server.end(Nanos::ZERO);
    }
}
