//! A server over plain sockets that answers as a test tells it.

pub mod tls;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::{PATIENCE, SYSTEMS};

/// A request.
pub struct Ask {
    pub path: String,
    /// Names in small letters.
    headers: Vec<(String, String)>,
}

impl Ask {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers_of(name).first().copied()
    }

    pub fn headers_of(&self, name: &str) -> Vec<&str> {
        let lines = self.headers.iter().filter(|line| line.0 == name);
        lines.map(|line| line.1.as_str()).collect()
    }
}

/// What follows the bytes of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Close,
    /// The next request of the connection.
    Next,
    /// Nothing, until the client closes.
    Stall,
}

/// A server until the process ends.
pub struct Scripted {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    pub fn new(answer: impl Fn(&Ask) -> (Vec<u8>, End) + Send + Sync + 'static) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (answer, asked) = (Arc::new(answer), Arc::new(Mutex::new(Vec::new())));
        let seen = asked.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, seen) = (answer.clone(), seen.clone());
                // A client that has gone makes any step fail, and that is its right.
                thread::spawn(move || drop(serve(stream, &*answer, &seen)));
            }
        });
        Scripted { address, asked }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The paths that were asked for.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

fn serve(
    mut stream: TcpStream,
    answer: &(impl Fn(&Ask) -> (Vec<u8>, End) + ?Sized),
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    while let Some(ask) = read_request(&mut stream)? {
        asked.lock().expect("no panic").push(ask.path.clone());
        let (bytes, end) = answer(&ask);
        stream.write_all(&bytes)?;
        match end {
            End::Close => break,
            End::Next => {}
            End::Stall => return stream.read(&mut [0]).map(drop),
        }
    }
    Ok(())
}

/// The next request of a connection, which has no body; `None` once the client has closed.
fn read_request(stream: &mut TcpStream) -> std::io::Result<Option<Ask>> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let path = lines.next().and_then(|line| line.split(' ').nth(1));
    let headers = lines.filter_map(|line| line.split_once(": "));
    Ok(Some(Ask {
        path: path.unwrap_or_default().to_owned(),
        headers: headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect(),
    }))
}

/// An answer with this status line, these header lines and this body.
pub fn say(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

/// 200, with its length, and these header lines.
pub fn whole(headers: &str, body: &[u8]) -> Vec<u8> {
    let headers = format!("Content-Length: {}\r\n{headers}", body.len());
    say("200 OK", &headers, body)
}

/// The names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("read")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// `prony fetch` in a folder, at most for a minute.
pub fn fetch(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command
        // In the foreground, so that a signal is passed on once and not to the whole group as well.
        .args(["--foreground", "60", SYSTEMS, "fetch"])
        .args(words)
        .current_dir(folder)
        .env_remove("PRONY_DRIVER");
    command
}

/// What it did.
pub struct Did {
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
}

impl From<Output> for Did {
    fn from(output: Output) -> Did {
        Did {
            code: output.status.code(),
            out: output.stdout,
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

impl Did {
    /// The objects of --json.
    pub fn objects(&self) -> Vec<serde_json::Value> {
        let text = std::str::from_utf8(&self.out).expect("text");
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    /// The only one.
    pub fn object(&self) -> serde_json::Value {
        let [object] = <[_; 1]>::try_from(self.objects()).expect("one object");
        object
    }

    /// Phase and kind of the one error, as --json has it.
    pub fn fault(&self) -> String {
        let objects = self.objects();
        assert_eq!(objects.len(), 1, "{}", self.err);
        let error = &objects[0]["error"];
        let word = |name: &str| error[name].as_str().unwrap_or("none").to_owned();
        format!("{} {}", word("phase"), word("kind"))
    }
}

/// Runs it.
pub fn run(folder: &Path, words: &[&str]) -> Did {
    fetch(folder, words).output().expect("it runs").into()
}
