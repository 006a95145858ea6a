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
//! Both are this binary, executed again with the word [`WORD`], with the order as the
//! first line on standard input. The line `interrupt` ends a trial in good order. The
//! reports are JSON lines on standard output. [`main`] is their whole program;
//! [`Supervisor`] is the other side of it.
//!
//! Not for: what happens in a trial ([`crate::trial`]).

mod client;
mod command;
mod order;

use std::io::{self, BufRead, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prony_record::{Fact, Isolation};

use crate::launch::{self, Entered, LaunchError};
pub use client::{Offer, Supervisor, SupervisorError, offer};
pub use order::{CommandOrder, Envelope, Generator, INTERRUPT, Order, Report, TrialOrder};

/// The hidden command of `prony` that runs [`main`].
pub const WORD: &str = "__supervise";

/// Looks at descendants of 1 ms each before one that cannot be killed is left to the kernel.
const KILL_ROUNDS_MAX: u32 = 5_000;

/// Whether what is under way is to end now.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// One that is raised by setting `flag`, as a signal handler can.
    pub fn by_flag(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt(flag)
    }

    /// Asks for the end.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The whole program of a guard or a supervisor: reads the order from `input` and
/// reports on `output`. `input` must be a pipe whose other end the parent holds.
/// Exit status 0: the order was carried out (a failed trial is a carried out one).
pub fn main(mut input: impl BufRead + Send + 'static, mut output: impl Write) -> ExitCode {
    let mut line = String::new();
    let envelope: Envelope = match input.read_line(&mut line) {
        Ok(0) => return ExitCode::FAILURE,
        Ok(_) => match serde_json::from_str(&line) {
            Ok(envelope) => envelope,
            Err(error) => return refuse(&mut output, &format!("not an order: {error}")),
        },
        Err(error) => return refuse(&mut output, &format!("cannot read the order: {error}")),
    };
    let outcome = match envelope.entered {
        None => guard(envelope, input),
        Some(entered) => supervisor(entered, envelope.order, input, &mut output),
    };
    outcome.unwrap_or_else(|error| refuse(&mut output, &error.to_string()))
}

fn refuse(output: &mut impl Write, reason: &str) -> ExitCode {
    let reason = reason.to_owned();
    // Without a reader there is nobody to tell.
    let _ = print(output, &Report::Refused { reason });
    ExitCode::FAILURE
}

/// Prints one report.
fn print(output: &mut impl Write, report: &Report) -> io::Result<()> {
    serde_json::to_writer(&mut *output, report)?;
    output.write_all(b"\n")?;
    output.flush()
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

/// The guard: enters the namespaces, starts the supervisor, passes on what the parent
/// says, and ends everything when the parent is gone.
fn guard(envelope: Envelope, input: impl BufRead + Send + 'static) -> Result<ExitCode, BeginError> {
    let entered = launch::enter(envelope.wanted)?;
    let alone = entered.wanted.processes;
    if alone {
        launch::die_with_parent()?;
    } else {
        launch::adopt_orphans()?;
    }
    let mut supervisor = Command::new("/proc/self/exe")
        .arg(WORD)
        .stdin(Stdio::piped())
        .stdout(Stdio::inherit())
        .spawn()?;
    let order = Envelope {
        entered: Some(entered),
        ..envelope
    };
    if let Some(mut pipe) = supervisor.stdin.take() {
        let mut line = serde_json::to_vec(&order)?;
        line.push(b'\n');
        // A supervisor that is gone by now is seen below, by its exit status.
        let _ = pipe.write_all(&line);
        let pid = supervisor.id();
        std::thread::spawn(move || pass_on(input, pipe, pid, alone));
    }
    let status = wait(&mut supervisor);
    if !alone {
        launch::kill_descendants(KILL_ROUNDS_MAX);
    }
    Ok(ExitCode::from(status))
}

fn wait(supervisor: &mut Child) -> u8 {
    match supervisor.wait() {
        Ok(status) if status.success() => 0,
        _ => 1,
    }
}

/// Passes lines on until the parent is gone; then ends everything.
fn pass_on(input: impl BufRead, mut to: impl Write, supervisor: u32, alone: bool) {
    for line in input.lines() {
        let Ok(line) = line else { break };
        if writeln!(to, "{line}").is_err() {
            return;
        }
    }
    if alone {
        launch::signal(supervisor, rustix::process::Signal::KILL);
    } else {
        launch::kill_descendants(KILL_ROUNDS_MAX);
        std::process::exit(1);
    }
}

/// The supervisor: furnishes the namespaces and carries out the order.
fn supervisor(
    entered: Entered,
    order: Order,
    input: impl BufRead + Send + 'static,
    output: &mut impl Write,
) -> Result<ExitCode, BeginError> {
    let alone = entered.wanted.processes;
    if alone {
        launch::die_with_parent()?;
    } else {
        launch::adopt_orphans()?;
    }
    launch::settle(&entered)?;
    if alone {
        // Giving up capabilities clears this; what was missed in between, the pipe shows.
        launch::die_with_parent()?;
    }
    launch::raise_open_files();
    let interrupt = Interrupt::default();
    let raised = interrupt.clone();
    std::thread::spawn(move || watch(input, &raised, alone));
    let isolation = Isolation {
        network_namespace: entered.wanted.network,
        process_namespace: entered.wanted.processes,
        ..Isolation::default()
    };
    let report = carry_out(order, isolation, &interrupt, output);
    launch::kill_descendants(KILL_ROUNDS_MAX);
    print(output, &report)?;
    Ok(ExitCode::SUCCESS)
}

/// Waits for `interrupt`, and ends everything when the parent is gone.
fn watch(input: impl BufRead, interrupt: &Interrupt, alone: bool) {
    for line in input.lines() {
        match line {
            Ok(line) if line == INTERRUPT => interrupt.raise(),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    if !alone {
        launch::kill_descendants(KILL_ROUNDS_MAX);
    }
    std::process::exit(1);
}

fn carry_out(
    order: Order,
    isolation: Isolation,
    interrupt: &Interrupt,
    output: &mut impl Write,
) -> Report {
    match order {
        Order::Probe => Report::Probed {
            isolation,
            facts: probe_facts(),
        },
        Order::Trial(order) => {
            let mut began = |phase| {
                // A reader that is gone ends this process through its input.
                let _ = print(output, &Report::Phase { phase });
            };
            let (trial, histogram) = crate::trial::run(&order, isolation, interrupt, &mut began);
            Report::Trial { trial, histogram }
        }
        Order::Command(order) => command::run(&order, interrupt),
    }
}

/// Settings of the network that trials run in.
fn probe_facts() -> Vec<Fact> {
    crate::environment::network_facts()
}
