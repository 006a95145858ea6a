//! A `prony serve` process.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use prony_testkit::{RawAnswer, ask};

use crate::common::PRONY;

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
    let mut command = Command::new(PRONY);
    command.args(args).env_remove("PRONY_DRIVER");
    command
}

/// A server, killed when dropped.
pub struct Server {
    process: Child,
    /// Where it listens: scheme, host and port.
    pub url: String,
    pub port: u16,
}

impl Server {
    /// Starts one on a free port, with a driver of its own choice, and waits until it says that it listens.
    pub fn start(args: &[&str]) -> Server {
        Server::try_start(None, args).expect("it listens")
    }

    /// The same on this driver.
    ///
    /// A ring may be refused as long as those of other tests use up what may be locked in memory: then it is started again.
    pub fn start_on(driver: &str, args: &[&str]) -> Server {
        let due = Instant::now() + PATIENCE;
        loop {
            if let Some(server) = Server::try_start(Some(driver), args) {
                return server;
            }
            assert!(driver == "ring" && Instant::now() < due, "it ended");
        }
    }

    fn try_start(driver: Option<&str>, args: &[&str]) -> Option<Server> {
        let mut process = prony(&["serve", "--port", "0"])
            .args(args)
            .envs(driver.map(|driver| ("PRONY_DRIVER", driver)))
            .stdout(Stdio::piped())
            .spawn()
            .expect("prony starts");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let url = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("listening on ").map(str::to_owned));
        let Some(url) = url else {
            process.wait().expect("ours");
            return None;
        };
        let port = url.rsplit(':').next().and_then(|port| port.parse().ok());
        Some(Server {
            process,
            port: port.expect("a port"),
            url,
        })
    }

    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_nodelay(true).expect("set");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.set_write_timeout(Some(PATIENCE)).expect("set");
        stream
    }

    /// Asks over a connection of its own.
    pub fn ask_once(&self, request: &str) -> RawAnswer {
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
