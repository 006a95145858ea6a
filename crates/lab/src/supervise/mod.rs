//! The processes between Prony and what it starts, so that nothing that Prony
//! started outlives it, whatever kills Prony.
//!
//! ```text
//! prony run ── guard (`prony __supervise`) ── supervisor (the same) ── subject, generator …
//!        pipe                          pipe
//! ```
//!
//! - The *guard* enters new namespaces and starts the supervisor, which is the first
//!   process of its process namespace: when it ends, the kernel kills all in it.
//! - With namespaces, guard and supervisor die with their parents (the kernel sees to
//!   it). That fails only when a parent was dead before it was asked for; the pipe
//!   shows this: its end means that the parent is gone.
//! - Without them, both are sub-reapers that are watched through the same pipes: when
//!   either sees its parent gone, it kills all of its descendants, orphans included.
//!   Only killing both in the same moment escapes this.
//!
//! A program that is run to its end has one more process above it, its *parent*, which is
//! fresh and does nothing but wait: the kernel counts the memory that a process had before
//! it executed its program as that program's, and the supervisor's would be too much.
//!
//! All are this binary, executed again with the word [`WORD`], with the order as the
//! first line on standard input. The line `interrupt` ends a trial in good order. The
//! reports are JSON lines on standard output. [`main`] is their whole program;
//! [`Supervisor`] is the other side of it.
//!
//! Not for: what happens in a trial ([`crate::trial`]).

mod client;
mod command;
mod order;
mod parent;
mod turns;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use prony_record::{Isolation, Outcome, Phase, Source};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags};

use crate::launch::{self, Entered, LaunchError};
use crate::network::{Network, Refusal};
use crate::root::{self, Rooted};
use crate::sample::machine;
use crate::sysctl;
pub use client::{Offer, Supervisor, SupervisorError, offer};
pub use command::SupervisedLauncher;
pub use turns::Interrupt;
pub(crate) use turns::Turns;

pub use order::{
    Envelope, Generator, INTERRUPT, Order, ProgramOrder, Ran, Report, TURN, TrialOrder, TurnOrder,
    WORD,
};

/// Looks at descendants of 1 ms each before one that cannot be killed is left to the kernel.
const KILL_ROUNDS_MAX: u32 = 5_000;

/// The whole program of a guard or a supervisor: reads the order from `input` and
/// reports on `output`. `input` must be a pipe whose other end the parent holds
/// (standard input, which nothing may have read from).
/// Exit status 0: the order was carried out (a failed trial is a carried out one).
pub fn main(input: BorrowedFd<'_>, mut output: impl Write) -> ExitCode {
    let begun = input
        .try_clone_to_owned()
        .and_then(|input| Lines::new(input).first());
    let (line, rest) = match begun {
        Ok(Some(begun)) => begun,
        Ok(None) => return ExitCode::FAILURE,
        Err(error) => return refuse(&mut output, &format!("cannot read the order: {error}")),
    };
    let envelope: Envelope = match serde_json::from_slice(&line) {
        Ok(envelope) => envelope,
        Err(error) => return refuse(&mut output, &format!("not an order: {error}")),
    };
    let outcome = match (envelope.entered, envelope.order) {
        (_, Order::Program(order)) => parent::run(&order, &mut output).map_err(BeginError::Io),
        (None, order) => guard(
            Envelope {
                wanted: envelope.wanted,
                entered: None,
                order,
            },
            rest,
        ),
        (Some(entered), order) => supervisor(entered, order, rest, &mut output),
    };
    outcome.unwrap_or_else(|error| refuse(&mut output, &error.to_string()))
}

/// The lines of the parent, read without buffering ahead, so that
/// the rest can be polled for or read by another thread.
struct Lines {
    input: File,
    pending: Vec<u8>,
}

impl Lines {
    fn new(input: OwnedFd) -> Lines {
        Lines {
            input: File::from(input),
            pending: Vec::new(),
        }
    }

    /// The first line and what follows it; `None` when the parent is gone.
    fn first(mut self) -> io::Result<Option<(Vec<u8>, Lines)>> {
        let mut searched = 0;
        loop {
            let found = self.pending[searched..]
                .iter()
                .position(|&byte| byte == b'\n');
            if let Some(end) = found {
                let rest = self.pending.split_off(searched + end + 1);
                let line = std::mem::replace(&mut self.pending, rest);
                return Ok(Some((line, self)));
            }
            searched = self.pending.len();
            if searched > order::LINE_BYTES_MAX {
                return Err(io::Error::other("the order is too long"));
            }
            let mut buffer = [0; 16 << 10];
            match self.input.read(&mut buffer)? {
                0 => return Ok(None),
                count => self.pending.extend_from_slice(&buffer[..count]),
            }
        }
    }
}

fn refuse(output: &mut impl Write, reason: &str) -> ExitCode {
    let reason = reason.to_owned();
    // Without a reader the report cannot be delivered.
    let _ = Report::Refused { reason }.print(output);
    ExitCode::FAILURE
}

/// Why a guard or a supervisor could not begin.
#[derive(Debug, thiserror::Error)]
enum BeginError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the order cannot be passed on: {0}")]
    Json(#[from] serde_json::Error),
}

/// The guard: enters the namespaces, starts the supervisor, forwards the parent's lines,
/// and kills everything when the parent is gone. It has a single thread: after
/// leaving its process namespace the kernel lets it start no other.
fn guard(envelope: Envelope, rest: Lines) -> Result<ExitCode, BeginError> {
    let entered = launch::enter(envelope.wanted)?;
    let alone = bind_to_parent(&entered)?;
    let mut supervisor = Command::new("/proc/self/exe")
        .arg(WORD)
        .stdin(Stdio::piped())
        .stdout(Stdio::inherit())
        .spawn()?;
    let order = Envelope {
        entered: Some(entered),
        ..envelope
    };
    let mut line = serde_json::to_vec(&order)?;
    line.push(b'\n');
    let orphaned = pass_on(&mut supervisor, &line, rest)?;
    if orphaned && alone {
        supervisor.kill()?;
    }
    // Before its descendants are collected, or its status would be with theirs.
    let ended = if orphaned {
        None
    } else {
        Some(supervisor.wait()?)
    };
    if !alone {
        launch::kill_descendants(KILL_ROUNDS_MAX);
    }
    let well = ended.is_some_and(|status| status.success());
    Ok(ExitCode::from(u8::from(!well)))
}

/// Has the kernel end this process with its parent, where it is in a process namespace (true); else makes it the parent of
/// orphans.
fn bind_to_parent(entered: &Entered) -> io::Result<bool> {
    let alone = entered.wanted.processes;
    match alone {
        true => launch::die_with_parent()?,
        false => launch::adopt_orphans()?,
    }
    Ok(alone)
}

/// Sends the supervisor its order and forwards the parent's lines, until the
/// supervisor has ended (false) or the parent is gone (true).
fn pass_on(supervisor: &mut Child, order: &[u8], rest: Lines) -> io::Result<bool> {
    let pid = i32::try_from(supervisor.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("the supervisor has no process id"))?;
    let ended = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    let mut to = supervisor.stdin.take();
    let mut say = |bytes: &[u8]| {
        if let Some(pipe) = &mut to {
            // A supervisor that is gone by now is seen by its descriptor.
            let _ = pipe.write_all(bytes);
        }
    };
    say(order);
    say(&rest.pending);
    let mut input = rest.input;
    loop {
        let (heard, over) = {
            let mut watched = [
                PollFd::new(&input, PollFlags::IN),
                PollFd::new(&ended, PollFlags::IN),
            ];
            match rustix::event::poll(&mut watched, None) {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            let happened = |index: usize| !watched[index].revents().is_empty();
            (happened(0), happened(1))
        };
        if over {
            return Ok(false);
        }
        let mut buffer = [0; 4096];
        match if heard {
            input.read(&mut buffer)?
        } else {
            continue;
        } {
            0 => return Ok(true),
            count => say(&buffer[..count]),
        }
    }
}

/// The supervisor: sets up the namespaces and carries out the order.
fn supervisor(
    entered: Entered,
    order: Order,
    rest: Lines,
    output: &mut impl Write,
) -> Result<ExitCode, BeginError> {
    let alone = bind_to_parent(&entered)?;
    machine::open_kernel_threads();
    let join = || Network::set_up(order.network(), &entered);
    let network = launch::settle(&entered, join)?;
    if alone {
        // Giving up capabilities clears this; what was missed in between, the pipe shows.
        launch::die_with_parent()?;
    }
    launch::raise_open_files();
    launch::raise_locked_memory();
    let interrupt = Interrupt::default();
    let (sender, turns) = turns::channel(interrupt.clone());
    std::thread::spawn(move || watch(rest, &sender, alone));
    let isolation = Isolation {
        network_namespace: entered.wanted.network,
        process_namespace: entered.wanted.processes,
        ..Isolation::default()
    };
    let report = carry_out(order, network, isolation, &interrupt, turns, output);
    launch::kill_descendants(KILL_ROUNDS_MAX);
    report.print(output)?;
    Ok(ExitCode::SUCCESS)
}

/// Waits for `interrupt` and for turns, and ends everything when the parent is gone.
fn watch(rest: Lines, sender: &turns::TurnSender, alone: bool) {
    let input = io::Cursor::new(rest.pending).chain(rest.input);
    for line in BufReader::new(input).lines() {
        match line {
            Ok(line) => sender.forward(&line),
            Err(_) => break,
        }
    }
    if !alone {
        // The trial's thread may just be starting one.
        launch::start_no_more();
        launch::kill_descendants(KILL_ROUNDS_MAX);
    }
    sysctl::put_back();
    std::process::exit(1);
}

/// Mounts in the root file systems of all that take part what each is to see there.
fn furnish_roots(order: &TrialOrder, alone: bool) -> io::Result<()> {
    let all = std::iter::once(&order.subject).chain(&order.peer);
    let all = all.chain(&order.backings).chain(&order.front);
    let mut by_root: BTreeMap<&str, Vec<PathBuf>> = BTreeMap::new();
    for subject in all.filter(|subject| !subject.root_dir.is_empty()) {
        let folders = by_root.entry(&subject.root_dir).or_default();
        let source = match &subject.source {
            Source::Folder { dir } | Source::Command { dir } => dir.as_str(),
            Source::Url { .. } | Source::Unknown => "",
        };
        let named = [source, &subject.build_dir].map(PathBuf::from);
        folders.extend(named.into_iter().filter(|path| path.is_absolute()));
    }
    if !by_root.is_empty() {
        // It is seen in them, and the trial makes it otherwise.
        std::fs::create_dir_all(&order.work_dir)?;
    }
    for (dir, mut folders) in by_root {
        folders.push(order.work_dir.clone());
        folders.sort();
        folders.dedup();
        let dir = PathBuf::from(dir);
        root::furnish(&Rooted { dir, folders }, alone)?;
    }
    Ok(())
}

fn carry_out(
    order: Order,
    network: Result<Network, Refusal>,
    isolation: Isolation,
    interrupt: &Interrupt,
    turns: Turns,
    output: &mut impl Write,
) -> Report {
    match order {
        Order::Probe => Report::Probed {
            isolation,
            facts: crate::environment::network_facts(),
        },
        Order::Network(_) => Report::Tried {
            refusal: network.err(),
        },
        Order::Trial(order) => {
            let mut began = |report: Report| {
                // A reader that is gone ends this process through its input.
                let _ = report.print(output);
            };
            if let Err(error) = furnish_roots(&order, isolation.process_namespace) {
                let reason = format!("a root file system cannot be furnished: {error}");
                return unprepared(&order, reason);
            }
            let network = match prepared(&order, network) {
                Ok(network) => network,
                Err(reason) => return unprepared(&order, reason),
            };
            let (trial, histogram) =
                crate::trial::run(&order, network, isolation, interrupt, turns, &mut began);
            sysctl::put_back();
            Report::Trial { trial, histogram }
        }
        Order::Command(order) => command::run(&order, isolation.process_namespace, interrupt),
        Order::Program(_) => Report::Refused {
            reason: "a program is started outside of a supervisor".to_owned(),
        },
    }
}

/// The network of a trial, with the kernel settings of its cell on both sides.
fn prepared(order: &TrialOrder, network: Result<Network, Refusal>) -> Result<Network, String> {
    let network = network.map_err(|refusal| refusal.reason)?;
    let wanted = sysctl::wanted(&order.cell, &order.settings);
    sysctl::change(&wanted)?;
    let theirs = network.on_peers_side(move || sysctl::change(&wanted));
    theirs.map_err(|error| error.to_string())??;
    Ok(network)
}

fn unprepared(order: &TrialOrder, reason: String) -> Report {
    let mut trial = order.unfinished();
    let phase = Phase::Prepare;
    trial.outcome = Outcome::Failed { phase, reason };
    let histogram = None;
    Report::Trial { trial, histogram }
}
