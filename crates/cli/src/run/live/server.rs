//! Serves one page to this machine: `/`, and `/events`, on which the number of each new state is sent.
//!
//! It listens on 127.0.0.1 alone, and answers only who names that ([`local_server`]).
//!
//! Not for: what the page says ([`super::LivePage`]).

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use prony_base::Nanos;
use prony_engine::{Receiver, Sender, mailbox};
use prony_http::{BodyWriter, Handler, Header, Request, Response};
use prony_lab::launch;

use crate::local_server;

/// The policy of the page, which may do nothing but show itself and ask this server.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const NO_STORE: Header<'_> = Header::new("cache-control", b"no-store");

/// The state that is shown, and who has it.
#[derive(Default)]
struct LiveState {
    number: u64,
    page: Arc<str>,
    is_last: bool,
    /// Connections that wait for states.
    waiting: Vec<Sender<()>>,
    /// How many waited when the last state came.
    expected: usize,
    /// Times that the last state was fetched.
    fetched: usize,
}

/// The state, shared with the thread that serves.
#[derive(Default)]
struct LiveBoard {
    state: Mutex<LiveState>,
    fetched: Condvar,
}

impl LiveBoard {
    /// No code that holds it panics; if one did, the state would still be whole.
    fn lock(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server. It ends when it is dropped.
pub struct LiveServer {
    address: SocketAddr,
    board: Arc<LiveBoard>,
    _stop: Sender<Infallible>,
}

impl LiveServer {
    /// Listens on a port that is free, by a thread on `cores`.
    pub fn start(cores: &[u32]) -> io::Result<LiveServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let board = Arc::new(LiveBoard::default());
        let (stop, stopped) = mailbox(1);
        let (shared, cores) = (Arc::clone(&board), cores.to_vec());
        let serve = move || {
            // Where the cores cannot be had the run does not begin.
            let _ = launch::on_cores(&cores, || {
                local_server::serve(listener, stopped, |_| LivePages(shared))
            });
        };
        thread::Builder::new()
            .name("prony-live".to_owned())
            .spawn(serve)?;
        Ok(LiveServer {
            address,
            board,
            _stop: stop,
        })
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
        // One that has not read the word before looks at the newest state anyway.
        state.waiting.retain(|page| {
            let _ = page.send(());
            !page.is_closed()
        });
        state.expected = state.waiting.len();
    }

    /// Waits until every page that is open has the last state, for `limit` at the most.
    pub fn end(self, limit: Nanos) {
        let limit = Duration::from_nanos(limit.0);
        let is_behind = |state: &mut LiveState| state.fetched < state.expected;
        let fetched = &self.board.fetched;
        drop(fetched.wait_timeout_while(self.board.lock(), limit, is_behind));
    }
}

/// Answers with the newest state.
struct LivePages(Arc<LiveBoard>);

impl Handler for LivePages {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        match request.path() {
            "/" => self.page(response).await,
            "/events" => {
                let since = request.query().strip_prefix("since=");
                let since = since.and_then(|number| number.parse().ok());
                // Whoever does not read its events loses them.
                let _ = self.events(response, since.unwrap_or(0)).await;
            }
            _ => response.text(404, "the page is at /\n"),
        }
    }
}

impl LivePages {
    async fn page(&self, response: &mut Response) {
        let (page, is_last) = {
            let state = self.0.lock();
            (Arc::clone(&state.page), state.is_last)
        };
        let headers = [
            Header::new("content-type", b"text/html; charset=utf-8"),
            NO_STORE,
            Header::new("content-security-policy", POLICY.as_bytes()),
            Header::new("x-frame-options", b"DENY"),
            Header::new("x-content-type-options", b"nosniff"),
            Header::new("referrer-policy", b"no-referrer"),
        ];
        response.send(200, headers, page.as_bytes());
        // The run may end right after.
        let _ = response.flush().await;
        if is_last {
            self.0.lock().fetched += 1;
            self.0.fetched.notify_all();
        }
    }

    /// Sends the number of each state after `since` until the last one.
    async fn events(&self, response: &mut Response, since: u64) -> io::Result<()> {
        let (word, mut words) = mailbox(1);
        self.0.lock().waiting.push(word);
        let headers = [Header::new("content-type", b"text/event-stream"), NO_STORE];
        let mut body = response.stream(200, headers, None);
        let mut sent = since;
        loop {
            body.flush().await?;
            let (number, is_last) = {
                let state = self.0.lock();
                (state.number, state.is_last)
            };
            if number != sent {
                let event = if is_last { "event: last\n" } else { "" };
                let text = format!("{event}data: {number}\n\n");
                body.write(text.as_bytes()).await?;
                sent = number;
            } else if is_last || !is_told(&mut words, &mut body).await {
                return body.finish().await;
            }
        }
    }
}

/// Waits for a word; false: the page was closed, or the server ends.
async fn is_told(words: &mut Receiver<()>, body: &mut BodyWriter<'_>) -> bool {
    let mut word = pin!(words.recv());
    poll_fn(|cx| match body.poll_interrupted(cx) {
        Poll::Ready(_) => Poll::Ready(false),
        Poll::Pending => word.as_mut().poll(cx).map(|word| word.is_some()),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use super::*;

    /// The answer to a request, as it comes.
    fn get(server: &LiveServer, target: &str) -> TcpStream {
        let mut stream = TcpStream::connect(server.address).expect("a connection");
        let host = server.address;
        write!(
            stream,
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )
        .expect("a request");
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
            assert!(rest.contains("event: last\ndata: 2\n\n"), "{rest}");
            let mut stream = TcpStream::connect(address).expect("a connection");
            write!(
                stream,
                "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
            )
            .expect("a request");
            whole(stream)
        });
        server.end(Nanos::from_secs(60));
        assert!(fetched.join().expect("a page").ends_with("\r\n\r\nlast"));
    }
}
