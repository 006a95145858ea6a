//! A `prony serve` process, and raw sockets to ask it over.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// The drivers that this machine allows.
pub fn drivers() -> Vec<&'static str> {
    let mut drivers = vec!["epoll"];
    let config = prony_engine::Config {
        driver: prony_engine::DriverChoice::Ring,
        ..prony_engine::Config::default()
    };
    match prony_engine::run(&config, |_| async {}) {
        Ok(()) => drivers.insert(0, "ring"),
        Err(error) => prony_testkit::skip_ring(&error.to_string()),
    }
    drivers
}

/// The program with these arguments.
pub fn prony(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prony"));
    command.args(args).env_remove("PRONY_DRIVER");
    command
}

/// A server, killed when dropped.
pub struct Server {
    process: Child,
    pub url: String,
    pub port: u16,
}

impl Server {
    /// Starts one on a free port and waits until it says that it listens.
    ///
    /// A ring may be refused as long as those of other tests use up what may be locked in memory: then it is started again.
    pub fn start(driver: &str, args: &[&str]) -> Server {
        let due = Instant::now() + PATIENCE;
        loop {
            if let Some(server) = Server::try_start(driver, args) {
                return server;
            }
            assert!(driver == "ring" && Instant::now() < due, "it ended");
        }
    }

    fn try_start(driver: &str, args: &[&str]) -> Option<Server> {
        let mut process = prony(&["serve", "--port", "0"])
            .args(args)
            .env("PRONY_DRIVER", driver)
            .stdout(Stdio::piped())
            .spawn()
            .expect("prony starts");
        let mut line = String::new();
        let mut out = BufReader::new(process.stdout.take().expect("piped"));
        if out.read_line(&mut line).expect("a line") == 0 {
            process.wait().expect("ours");
            return None;
        }
        let url = line.trim_end().strip_prefix("listening on ");
        let url = url.unwrap_or_else(|| panic!("it said {line:?}")).to_owned();
        let port = url.rsplit(':').next().and_then(|port| port.parse().ok());
        Some(Server {
            process,
            port: port.expect("a port"),
            url,
        })
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_nodelay(true).expect("set");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.set_write_timeout(Some(PATIENCE)).expect("set");
        stream
    }

    /// Asks over a connection of its own.
    pub fn ask_once(&self, request: &str) -> Answer {
        ask(&mut self.connect(), request, false)
    }

    pub fn stats(&self) -> serde_json::Value {
        let answer = self.ask_once("GET /stats HTTP/1.1\r\nHost: a\r\n\r\n");
        serde_json::from_slice(&answer.body).expect("JSON")
    }

    /// The largest resident set so far.
    pub fn peak_memory_bytes(&self) -> usize {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(path).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
        kib.expect("a number") * 1024
    }

    pub fn signal_term(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it lives");
    }

    /// Waits for its end; its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        self.process.wait().expect("ours").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A response.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self.headers.iter().find(|(its_name, _)| its_name == name);
        line.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends `request` and reads the answer; `is_head`: which has no body.
pub fn ask(stream: &mut TcpStream, request: &str, is_head: bool) -> Answer {
    stream.write_all(request.as_bytes()).expect("sent");
    read_answer(stream, is_head)
}

/// Sends `request` and reads the answer; None if the connection is closed without
/// one byte of it.
pub fn try_ask(stream: &mut TcpStream, request: &str) -> Option<Answer> {
    stream.write_all(request.as_bytes()).ok()?;
    loop {
        match stream.peek(&mut [0]) {
            Ok(0) => return None,
            Ok(_) => return Some(read_answer(stream, false)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads a head and not one byte more.
pub fn read_head(stream: &mut TcpStream) -> Answer {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        // Unlike `read`, this goes on where a signal interrupts it.
        if let Err(error) = stream.read_exact(&mut byte) {
            panic!("{error} after \"{}\"", head.escape_ascii());
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let mut lines = head.trim_end().split("\r\n");
    let status = lines.next().and_then(|line| line.get(9..12)?.parse().ok());
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(": ").expect("a header line");
        (name.to_owned(), value.to_owned())
    });
    Answer {
        status: status.expect("a status"),
        headers: headers.collect(),
        body: Vec::new(),
    }
}

/// Reads an answer with a known length.
pub fn read_answer(stream: &mut TcpStream, is_head: bool) -> Answer {
    let mut answer = read_head(stream);
    if !is_head && !matches!(answer.status, 204 | 304) {
        let length = answer.header("content-length").expect("a length");
        answer.body = vec![0; length.parse().expect("a number")];
        stream.read_exact(&mut answer.body).expect("the body");
    }
    answer
}

/// Everything until the end of the stream.
pub fn rest(stream: &mut TcpStream) -> String {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("an orderly end");
    String::from_utf8_lossy(&rest).into_owned()
}

/// Whether a stream that does not block has ended.
pub fn has_ended(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// Now, on the clock that all processes of the machine share.
pub fn monotonic_ns() -> u64 {
    prony_base::clock::monotonic().0
}
