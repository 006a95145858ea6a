//! What the tests of the program share.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use prony_program::sibling::SYSTEMS;
pub use prony_testkit::{folder, free_port};

/// The program under test.
pub const PRONY: &str = env!("CARGO_BIN_EXE_prony");

/// A process that is ended with the test.
pub struct Ended(pub Child);

impl Ended {
    pub fn start(command: &mut Command) -> Ended {
        Ended(command.spawn().expect("the process starts"))
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        // SIGTERM lets nginx's master end its workers; the child is then waited for.
        let id = self.0.id().to_string();
        let _ = Command::new("kill").arg(&id).status();
        let _ = self.0.wait();
    }
}

/// The program, run in `folder`, with what it keeps there.
pub fn prony(folder: &Path, words: &[&str]) -> Output {
    command(folder, words).output().expect("prony runs")
}

/// The same before it is started.
pub fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(PRONY);
    command
        .current_dir(folder)
        .env("PRONY_HOME", prony_testkit::root())
        .env("PRONY_CACHE", folder.join("cache"))
        .args(words);
    command
}

/// The program `prony-systems`, beside the one under test.
pub fn systems() -> PathBuf {
    let program = SYSTEMS.beside(Path::new(PRONY));
    assert!(
        program.is_file(),
        "{} is missing: cargo build {}",
        program.display(),
        SYSTEMS.cargo
    );
    program
}

/// What git prints in `folder`; whoever the user is, its commits are somebody's.
pub fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@localhost", "-C"])
        .arg(folder)
        .args(words)
        .output()
        .expect("git runs");
    assert!(
        output.status.success(),
        "git {words:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout).trim().to_owned()
}

/// What a program printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A run, or what is made of one, is whole: that a figure of so short a window is not valid on a busy machine is no fault.
pub fn rendered(output: &Output) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        matches!(output.status.code(), Some(0 | 3)),
        "{}: {out}{err}",
        output.status
    );
}

/// Returns once something accepts on `port`.
pub fn wait_for_port(port: u16) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "nothing listens on port {port}");
        thread::yield_now();
    }
}

/// Body of `GET path`.
pub fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    )
    .expect("a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text.split_once("\r\n\r\n")
        .expect("a head and a body")
        .1
        .to_owned()
}
