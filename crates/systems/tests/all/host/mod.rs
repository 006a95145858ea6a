//! A `prony-systems host` process with a small application, and what it says.

use std::io::{BufRead as _, BufReader, Read};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;
use std::{fs, thread};

use prony_testkit::{RawAnswer, ask};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{PATIENCE, SYSTEMS, systems};

/// A folder, gone with the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        Folder(prony_testkit::folder("host"))
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, content).expect("written");
        path
    }
}

/// The program with Lua 5.4, built with the folder of `./test`'s step of that name where it is missing or old.
pub fn lua54() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
        let target = target.expect("the folder of all builds").join("lua54");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo
            .current_dir(prony_testkit::root())
            .args(["build", "--locked", "--quiet"])
            .args(["--manifest-path", "lua54/Cargo.toml", "--target-dir"])
            .arg(&target);
        assert!(
            cargo.status().is_ok_and(|status| status.success()),
            "lua54 does not build"
        );
        target.join("debug/prony-lua54")
    })
}

/// The program with these words, which finds the program with Lua 5.4.
pub fn systems_with_lua54(words: &[&str]) -> Command {
    let mut command = systems(words);
    command.env("PRONY_LUA54", lua54());
    command
}

/// A host, killed when dropped; its workers die with it.
pub struct Host {
    process: Child,
    pub port: u16,
    said: Receiver<String>,
}

impl Host {
    /// Starts `app.lua` of a folder on a free port, and waits until it listens.
    pub fn start(folder: &Path, options: &[&str]) -> Host {
        Host::start_by(systems(&["host"]), folder, options)
    }

    /// The same, where Lua 5.4 is at hand.
    pub fn start_with_lua54(folder: &Path, options: &[&str]) -> Host {
        Host::start_by(systems_with_lua54(&["host"]), folder, options)
    }

    /// The same, where each of its processes may have so many descriptors.
    pub fn start_with_descriptors(folder: &Path, options: &[&str], descriptors: u32) -> Host {
        let mut command = Command::new("sh");
        command
            .env_remove("PRONY_DRIVER")
            .arg("-c")
            .arg(format!(
                "ulimit -n {descriptors} && exec \"$0\" host \"$@\""
            ))
            .arg(SYSTEMS);
        Host::start_by(command, folder, options)
    }

    fn start_by(mut command: Command, folder: &Path, options: &[&str]) -> Host {
        command.args(options).arg("--path").arg(folder);
        command.args(["app:app", "0"]);
        Host::start_command(command)
    }

    /// Starts this one, whose words say all but where it listens, which it says itself.
    pub fn start_command(mut command: Command) -> Host {
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("prony starts");
        let said = lines(process.stderr.take().expect("piped"));
        let listening = lines(process.stdout.take().expect("piped"));
        let mut host = Host {
            process,
            port: 0,
            said,
        };
        let line = listening.recv_timeout(PATIENCE);
        let line = line.unwrap_or_else(|error| {
            let said: Vec<_> = host.said.try_iter().collect();
            panic!("it does not listen ({error}): {said:?}");
        });
        let port = line.rsplit(':').next().and_then(|port| port.parse().ok());
        host.port = port.unwrap_or_else(|| panic!("it said {line:?}"));
        host
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_nodelay(true).expect("set");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.set_write_timeout(Some(PATIENCE)).expect("set");
        stream
    }

    /// Asks over a connection of its own.
    pub fn get(&self, target: &str) -> RawAnswer {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        ask(&mut self.connect(), &request, false)
    }

    /// Waits until it says a line with this text on standard error; all of it until then.
    pub fn says(&self, text: &str) -> String {
        let due = Instant::now() + PATIENCE;
        let mut said = String::new();
        while !said.contains(text) {
            let left = due.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok(line) => said += &(line + "\n"),
                Err(error) => panic!("{error}: it did not say {text:?} but:\n{said}"),
            }
        }
        said
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it lives");
    }

    /// Waits for its end.
    pub fn ends(&mut self) -> ExitStatus {
        self.process.wait().expect("ours")
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.process.try_wait().expect("ours").is_some()
    }

    /// What it has said by now and nobody has heard.
    pub fn has_said(&self) -> String {
        self.said.try_iter().map(|line| line + "\n").collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("the host had said:\n{}", self.has_said());
        }
    }
}

/// What is read, line by line, by a thread that ends with it.
fn lines(out: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                break;
            }
        }
    });
    told
}
