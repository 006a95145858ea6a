//! Agents as processes whose standard input and output carry the messages: `ssh`, `srun`, or a program on this machine. Where a process
//! ends, or its connection does, its agent is lost; where the controller ends, its agents read the end of their input and stop.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use prony_base::Instant;
use rustix::process::{Pid, Signal, kill_process};

use crate::worker::{LineRead, read_lines, write_lines};

/// Lines of its standard error by which an end is explained.
const TAIL_LINES: usize = 3;
/// The program is sent in pieces of so many bytes, each of which is a sign of life.
const PIECE_BYTES: usize = 1 << 20;
/// How long an agent may take to end when its input has ended, and then when it is told to by a signal.
const GRACE: Duration = Duration::from_secs(3);
const GRACE_AFTER_TERM: Duration = Duration::from_secs(1);

/// What an agent's process does.
pub enum Carried {
    /// It printed a line, which came at this moment.
    Line(Vec<u8>, Instant),
    /// It is printing a line, and takes long.
    Alive,
    /// It has ended, or what came from it has: in words.
    Closed(String),
}

/// The processes of all agents.
pub struct Pipes {
    agents: Vec<PipedAgent>,
    events: mpsc::Receiver<(usize, Carried)>,
}

/// One process.
struct PipedAgent {
    child: Child,
    /// Takes lines for its standard input; `None`: that is closed.
    lines: Option<mpsc::Sender<Vec<u8>>>,
}

/// How an agent's process is started, and what it is asked before it is an agent.
pub struct AgentCommand {
    /// The command.
    pub command: Command,
    /// The bytes of a program that it may want first; empty: it wants none.
    pub program: Arc<[u8]>,
}

/// What a process says where it has the program already.
pub const HAS: &str = "prony-agent has";
/// What it says where it wants it.
pub const WANTS: &str = "prony-agent wants";

impl Pipes {
    /// Starts all of them.
    ///
    /// # Errors
    /// One cannot be started at all.
    pub fn start(commands: Vec<AgentCommand>) -> io::Result<Pipes> {
        let (send, events) = mpsc::channel();
        let mut pipes = Pipes {
            agents: Vec::new(),
            events,
        };
        for (number, command) in commands.into_iter().enumerate() {
            // Those that were started before it end with `pipes`.
            pipes.agents.push(start(number, command, send.clone())?);
        }
        Ok(pipes)
    }

    /// Sends a line to an agent. One that is gone is told of by [`Pipes::receive`].
    pub fn send(&self, agent: usize, line: Vec<u8>) {
        if let Some(lines) = self
            .agents
            .get(agent)
            .and_then(|agent| agent.lines.as_ref())
        {
            let _ = lines.send(line);
        }
    }

    /// What an agent's process did, waited for up to `timeout`.
    pub fn receive(&self, timeout: Duration) -> Option<(usize, Carried)> {
        match self.events.recv_timeout(timeout) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(timeout);
                None
            }
        }
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            agent.lines = None;
        }
        let mut deadline = std::time::Instant::now() + GRACE;
        for signal in [Signal::TERM, Signal::KILL] {
            for PipedAgent { child, .. } in &mut self.agents {
                while matches!(child.try_wait(), Ok(None)) && std::time::Instant::now() < deadline {
                    thread::sleep(Duration::from_millis(10));
                }
                if matches!(child.try_wait(), Ok(None)) {
                    let id = Pid::from_child(child);
                    // It may have ended just now, which is as good.
                    let _ = kill_process(id, signal);
                }
            }
            deadline = std::time::Instant::now() + GRACE_AFTER_TERM;
        }
        for agent in &mut self.agents {
            let _ = agent.child.wait();
        }
    }
}

fn start(
    number: usize,
    AgentCommand {
        mut command,
        program,
    }: AgentCommand,
    send: mpsc::Sender<(usize, Carried)>,
) -> io::Result<PipedAgent> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C is for the controller, which then has each agent say what it has.
        .process_group(0)
        .spawn()
        .map_err(|error| {
            let name = command.get_program().display();
            io::Error::new(error.kind(), format!("cannot start `{name}`: {error}"))
        })?;
    let (lines, to_write) = mpsc::channel();
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(io::Error::other("a process has no pipes"));
    };
    let tail = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&tail);
    let reads_errors = thread::spawn(move || keep_tail(stderr, &kept));
    thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let alive = || send.send((number, Carried::Alive)).is_ok();
        let is_there = greeted(&mut stdout, stdin, (&program, &alive), to_write);
        if is_there {
            read_lines(stdout, |read| {
                let carried = match read {
                    LineRead::Line(line, at) => Carried::Line(line, at),
                    LineRead::Some => Carried::Alive,
                };
                send.send((number, carried)).is_ok()
            });
        }
        // What it said last is there once its standard error has ended, too.
        let _ = reads_errors.join();
        let tail = tail
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .join("; ");
        let why = match tail.as_str() {
            "" => "the connection to it has ended".to_owned(),
            tail => tail.to_owned(),
        };
        let _ = send.send((number, Carried::Closed(why)));
    });
    Ok(PipedAgent {
        child,
        lines: Some(lines),
    })
}

/// Waits until the other side says whether it has the program, and sends it where it wants it. From then on lines are written.
fn greeted(
    stdout: &mut BufReader<impl io::Read>,
    mut stdin: ChildStdin,
    (program, alive): (&[u8], &dyn Fn() -> bool),
    lines: mpsc::Receiver<Vec<u8>>,
) -> bool {
    if program.is_empty() {
        thread::spawn(move || write_lines(stdin, &lines));
        return true;
    }
    loop {
        let mut line = Vec::new();
        // A shell may print anything before it runs what it is told.
        let read = stdout.by_ref().take(64 << 10).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return false;
        }
        let line = String::from_utf8_lossy(&line);
        if line.trim_end().ends_with(WANTS) {
            let mut pieces = program.chunks(PIECE_BYTES);
            if !pieces.all(|piece| stdin.write_all(piece).is_ok() && alive()) {
                return false;
            }
        }
        // Only now does an agent read: what copies the program may read more than that.
        if line.trim_end().ends_with(HAS) {
            thread::spawn(move || write_lines(stdin, &lines));
            return true;
        }
    }
}

fn keep_tail(stderr: ChildStderr, tail: &Mutex<Vec<String>>) {
    read_lines(stderr, |read| {
        let LineRead::Line(line, _) = read else {
            return true;
        };
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        if !line.is_empty() {
            tail.push(line);
        }
        if tail.len() > TAIL_LINES {
            tail.remove(0);
        }
        true
    });
}
