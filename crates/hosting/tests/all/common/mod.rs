//! A host as its user sees it: a process, what it prints, what it answers. Ended with the
//! test, however that ends.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// How long anything may take that a test waits for; only a test that fails waits so long.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Host {
    child: Child,
    pub folder: tempfile::TempDir,
    lines: Receiver<String>,
    /// What it has said so far.
    said: Vec<String>,
    pub address: SocketAddr,
}

impl Host {
    /// Starts `hosting-rehearsal` with the application of version `v1`.
    ///
    /// Rings may be refused as long as those of other tests use up what may be locked in memory: then it is started again.
    pub fn start(options: &[&str]) -> Host {
        let due = Instant::now() + PATIENCE;
        loop {
            match Host::try_start("v1", options) {
                Ok(host) => return host,
                Err((_, said)) if said.contains("locked memory") && Instant::now() < due => {}
                Err((status, said)) => panic!("{status}: {said}"),
            }
        }
    }

    /// The same; else how it ended and what it said.
    pub fn try_start(version: &str, options: &[&str]) -> Result<Host, (ExitStatus, String)> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("app.txt"), version).expect("a file");
        let mut child = command(folder.path(), options, "0")
            .spawn()
            .expect("the rehearsal starts");
        let lines = lines_of(child.stderr.take().expect("its standard error"));
        let mut out = BufReader::new(child.stdout.take().expect("its standard output"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        match line.trim().strip_prefix("listening on http://") {
            Some(address) => Ok(Host {
                child,
                folder,
                lines,
                said: Vec::new(),
                address: address.parse().expect("an address"),
            }),
            None => {
                let status = child.wait().expect("an end");
                Err((status, lines.iter().collect::<Vec<_>>().join("\n")))
            }
        }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a signal");
    }

    /// The application changes.
    pub fn become_version(&self, version: &str) {
        std::fs::write(self.folder.path().join("app.txt"), version).expect("a file");
    }

    /// Waits until it says a line with this in it; yields the line.
    pub fn hears(&mut self, what: &str) -> String {
        let due = Instant::now() + PATIENCE;
        loop {
            let left = due.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if line.contains(what) {
                        return line;
                    }
                }
                Err(_) => panic!("it has not said {what:?}, but {:#?}", self.said),
            }
        }
    }

    /// All that it has said and says until it ends.
    pub fn last_words(&mut self) -> String {
        self.said.extend(self.lines.iter());
        self.said.join("\n")
    }

    /// Waits for its end.
    pub fn ends(&mut self) -> ExitStatus {
        assert!(is_gone(&watch(self.pid())), "it has not ended");
        self.child.wait().expect("an end")
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream
    }

    /// Number, process and version of the worker that answers on a new connection.
    pub fn who(&self) -> (u32, u32, String) {
        who(&mut self.connect())
    }

    /// What waits for it is answered from now on.
    pub fn go(&self) {
        std::fs::write(self.folder.path().join("go"), "").expect("a file");
    }

    /// The process of a worker and two connections to it, at rest. Which worker takes a connection
    /// is the kernel's to say, for ever the same one if it likes; but of one more connection than
    /// there are workers, two go to the same.
    pub fn two_of_one(&self, workers: usize) -> (u32, TcpStream, TcpStream) {
        let mut of_each: BTreeMap<u32, TcpStream> = BTreeMap::new();
        for _ in 0..=workers {
            let mut stream = self.connect();
            let process = who(&mut stream).1;
            if let Some(earlier) = of_each.remove(&process) {
                return (process, earlier, stream);
            }
            of_each.insert(process, stream);
        }
        panic!("more than {workers} workers answer");
    }

    /// Asks on new connections until it is told what is looked for.
    pub fn until(&self, what: impl Fn(&(u32, u32, String)) -> bool) -> (u32, u32, String) {
        let due = Instant::now() + PATIENCE;
        loop {
            let who = self.who();
            if what(&who) {
                return who;
            }
            assert!(Instant::now() < due, "still {who:?}");
            thread::yield_now();
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Its workers end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            self.said.extend(self.lines.try_iter());
            eprintln!("the host said: {:#?}", self.said);
        }
    }
}

/// Waits until the worker of this connection, which is at rest, ends it.
pub fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

pub fn command(folder: &Path, options: &[&str], port: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hosting-rehearsal"));
    command
        .arg("--path")
        .arg(folder)
        .args(options)
        .args(["app.txt:app", port])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn lines_of(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Names a process, also when its number comes again.
pub fn watch(pid: Pid) -> OwnedFd {
    pidfd_open(pid, PidfdFlags::empty()).expect("a process")
}

pub fn watch_number(number: u32) -> OwnedFd {
    watch(Pid::from_raw(number as i32).expect("a process's number"))
}

/// Whether the process ends in time.
pub fn is_gone(process: &OwnedFd) -> bool {
    let timeout = Timespec {
        tv_sec: PATIENCE.as_secs() as i64,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout)).expect("a wait") > 0
}

/// Sends a GET.
pub fn ask(stream: &mut TcpStream, target: &str) {
    write!(stream, "GET {target} HTTP/1.1\r\nhost: a\r\n\r\n").expect("a request is sent");
}

/// Reads one answer: its head and its body.
pub fn answer(stream: &mut TcpStream) -> std::io::Result<(String, String)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.expect("a length").parse().expect("a number")];
    stream.read_exact(&mut body)?;
    Ok((head, String::from_utf8(body).expect("text")))
}

pub fn who(stream: &mut TcpStream) -> (u32, u32, String) {
    ask(stream, "/who");
    let (_, body) = answer(stream).expect("an answer");
    let mut words = body.split_whitespace();
    let mut number = || words.next()?.parse().ok();
    let (worker, process) = (number().expect("worker"), number().expect("process"));
    (worker, process, words.next().expect("version").to_owned())
}
