//! The real service as a process, and a client of plain sockets that can be as rude as a
//! test wants.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything here takes on a machine that others use, too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until it is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let due = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < due, "{what}: not in {PATIENCE:?}");
        thread::yield_now();
    }
}

/// A service that runs; killed when dropped.
pub struct Service {
    child: Child,
    out: Option<BufReader<ChildStdout>>,
    /// Where it listens.
    pub address: SocketAddr,
}

/// What a service came to.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; None: a signal ended it.
    pub code: Option<i32>,
    /// What it wrote after the first line.
    pub out: String,
    /// What it wrote to standard error.
    pub err: String,
}

/// The program with these settings and no others.
pub fn command(settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prony-clicky"));
    command.env_clear();
    if let Some(driver) = std::env::var_os("PRONY_DRIVER") {
        command.env("PRONY_DRIVER", driver);
    }
    command
        .env("SERVER_ADDRESS", "127.0.0.1:0")
        .env("RUST_LOG", "off")
        .env("CLICKY_BACKEND", "none")
        .envs(settings.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Starts it on a free port, keeping nothing unless `settings` say so.
pub fn start(settings: &[(&str, &str)]) -> Service {
    let mut child = command(settings).spawn().expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    let Some(address) = line.trim().strip_prefix("listening on http://") else {
        let mut err = String::new();
        let mut pipe = child.stderr.take().expect("a pipe");
        let _ = pipe.read_to_string(&mut err);
        let _ = child.wait();
        panic!("the first line was {line:?}; {err}");
    };
    Service {
        address: address.parse().expect("an address"),
        out: Some(out),
        child,
    }
}

impl Service {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is there");
    }

    /// Stops it gracefully, and waits for that.
    pub fn stop(self) -> Ended {
        self.signal(Signal::TERM);
        self.ended()
    }

    /// Waits for its end.
    pub fn ended(mut self) -> Ended {
        let (tell, told) = mpsc::channel();
        let mut out = self.out.take().expect("not asked before");
        let mut err = self.child.stderr.take().expect("not asked before");
        thread::spawn(move || {
            let mut texts = (String::new(), String::new());
            let _ = out.read_to_string(&mut texts.0);
            let _ = err.read_to_string(&mut texts.1);
            let _ = tell.send(texts);
        });
        // Both pipes end when the process does.
        let (out, err) = told.recv_timeout(PATIENCE).expect("it ends in time");
        let status = self.child.wait().expect("it was waited for once");
        Ended {
            code: status.code(),
            out,
            err,
        }
    }

    /// A connection.
    pub fn connect(&self) -> Client {
        Service::client(TcpStream::connect(self.address).expect("it listens"))
    }

    /// A connection from another address of this machine, such as 127.0.0.2.
    pub fn connect_from(&self, source: [u8; 4]) -> Client {
        use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
        let made = socket(AddressFamily::INET, SocketType::STREAM, None);
        let socket = made.expect("a socket");
        let source = SocketAddr::from((source, 0));
        bind(&socket, &source).expect("an address of this machine");
        connect(&socket, &self.address).expect("it listens");
        Service::client(TcpStream::from(socket))
    }

    fn client(stream: TcpStream) -> Client {
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
        Client {
            stream: BufReader::new(stream),
        }
    }

    /// Sends a request on a connection of its own.
    pub fn ask(&self, request: &str) -> Answer {
        let mut client = self.connect();
        client.send(request.as_bytes());
        client.answer()
    }

    /// The body of a GET.
    pub fn get(&self, path: &str) -> String {
        self.ask(&get(path)).body
    }

    /// A number of `/metrics`.
    pub fn metric(&self, sample: &str) -> f64 {
        let text = self.get("/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(sample));
        let value = line.unwrap_or_else(|| panic!("no {sample} in {text}"));
        value.trim().parse().expect("a number")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A GET.
pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// A POST.
pub fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// One connection.
pub struct Client {
    stream: BufReader<TcpStream>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its lines, as `name: value`, names in lower case.
    pub head: Vec<String>,
    /// Its body.
    pub body: String,
}

impl Answer {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head
            .iter()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

impl Client {
    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("it reads");
    }

    /// Sends bytes that it may not want to the end.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).is_ok()
    }

    /// The socket a second time, for a thread that only sends.
    pub fn clone_stream(&self) -> TcpStream {
        self.stream.get_ref().try_clone().expect("a descriptor")
    }

    /// The status of an answer, if one comes; its body is read, too.
    pub fn try_status(&mut self) -> Option<u16> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let status = line.get(9..12)?.parse().ok()?;
        let mut length = 0;
        while line != "\r\n" {
            line.clear();
            self.stream.read_line(&mut line).ok()?;
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().ok()?;
            }
        }
        self.stream.read_exact(&mut vec![0; length]).ok()?;
        Some(status)
    }

    /// Ends this side.
    pub fn end(&self) {
        let stream = self.stream.get_ref();
        stream
            .shutdown(std::net::Shutdown::Write)
            .expect("a socket");
    }

    /// A line without its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// The head of an answer.
    pub fn head(&mut self) -> Answer {
        let line = self.line();
        let status = line.get(9..12).and_then(|digits| digits.parse().ok());
        let mut head = Vec::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ").expect("a header");
            head.push(format!("{}: {value}", name.to_ascii_lowercase()));
        }
        Answer {
            status: status.unwrap_or_else(|| panic!("no answer: {line:?}")),
            head,
            body: String::new(),
        }
    }

    /// A whole answer with a length.
    pub fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        let length = answer.header("content-length");
        let length = length.map_or(0, |length| length.parse().expect("a length"));
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a body");
        answer.body = String::from_utf8(body).expect("text");
        answer
    }

    /// The data of the next event, in an answer of chunks.
    pub fn event(&mut self) -> String {
        loop {
            let line = self.line();
            if let Some(data) = line.strip_prefix("data: ") {
                return data.to_owned();
            }
            assert_ne!(line, "0", "the events have ended");
        }
    }

    /// All that comes until the end.
    pub fn rest(&mut self) -> String {
        let mut text = Vec::new();
        // A reset is an end, too.
        let _ = self.stream.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }
}
