//! A server that gives out tokens and cookies, refuses those that it does not know, and counts by path; and users for it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The steps of a user.
pub const SHOP: &str = r#"
[[step]]
name = "login"
path = "/login"
form = { user = "u{counter}" }
take.token = { json = "$.token" }

[[step]]
name = "list"
path = "/list"
headers = { Authorization = "Bearer {token}" }
expect = { status = 200, contains = ["[]"] }

[[step]]
name = "order"
path = "/order"
form = { token = "{token}" }
think = "1ms..3ms"
"#;

/// What the server has seen.
#[derive(Default)]
pub struct Seen {
    pub by_path: BTreeMap<String, u64>,
    /// Logins by the name of their user.
    pub users: BTreeMap<String, u64>,
    pub sessions: u64,
    pub refused: u64,
}

/// The server, which lives as long as the test.
pub struct SessionServer {
    /// Where it listens.
    pub url: String,
    seen: Arc<Mutex<Seen>>,
}

impl SessionServer {
    pub fn start() -> SessionServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let all = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&all);
                thread::spawn(move || converse(stream, &seen));
            }
        });
        SessionServer { url, seen }
    }

    /// What it has seen since the last call.
    pub fn seen(&self) -> Seen {
        std::mem::take(&mut *self.seen.lock().expect("no panic"))
    }
}

fn converse(mut stream: TcpStream, seen: &Mutex<Seen>) {
    let mut pending = Vec::new();
    let mut bytes = [0; 4_096];
    loop {
        let length = loop {
            if let Some(length) = whole(&pending) {
                break length;
            }
            match stream.read(&mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(length) => pending.extend_from_slice(&bytes[..length]),
            }
        };
        let request: Vec<u8> = pending.drain(..length).collect();
        let answer = answer(&String::from_utf8_lossy(&request), seen);
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(request: &str, seen: &Mutex<Seen>) -> String {
    let mut seen = seen.lock().expect("no panic");
    let path = request.split([' ', '?']).nth(1).unwrap_or_default();
    *seen.by_path.entry(path.to_owned()).or_default() += 1;
    let body = request.split("\r\n\r\n").nth(1).unwrap_or_default();
    let said = |status: &str, headers: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
    };
    if path == "/login" {
        seen.sessions += 1;
        let number = seen.sessions;
        *seen.users.entry(body.to_owned()).or_default() += 1;
        let cookie = format!("Set-Cookie: sid={number}; HttpOnly\r\n");
        return said(
            "200 OK",
            &cookie,
            &format!("{{\"token\":\"t+{number}/=\"}}"),
        );
    }
    if path == "/limited" {
        // The first two are answered as they are to be.
        let status = match seen.by_path[path] {
            0..=2 => "200 OK",
            _ => "503 Service Unavailable",
        };
        return said(status, "", "busy");
    }
    let line = |begin: &str| request.lines().find_map(|line| line.strip_prefix(begin));
    let number = line("Cookie: sid=").unwrap_or_default();
    let is_known = number
        .parse()
        .is_ok_and(|number: u64| number <= seen.sessions);
    let token = match path {
        "/order" => body
            .strip_prefix("token=")
            .unwrap_or_default()
            .replace("%2B", "+"),
        _ => line("Authorization: Bearer ")
            .unwrap_or_default()
            .to_owned(),
    };
    let token = token.replace("%2F", "/").replace("%3D", "=");
    match is_known && token == format!("t+{number}/=") {
        true => said("200 OK", "", "[]"),
        false => {
            seen.refused += 1;
            said("401 Unauthorized", "", "")
        }
    }
}

/// The length of the request that `bytes` begin with, if it is whole.
fn whole(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let length = end + length.map_or(0, |length| length.parse().expect("a length"));
    (bytes.len() >= length).then_some(length)
}
