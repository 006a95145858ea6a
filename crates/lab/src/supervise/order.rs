//! Orders to a supervisor and its reports: one JSON value a line.

use std::io::{self, Write};
use std::path::PathBuf;

use prony_base::clock;
use prony_record::{
    Cell, Cores, Exit, Fact, GeneratorKind, Histogram, Isolation, Phase, PlannedNetwork,
    PlannedSetting, PlannedSubject, PlannedWorkload, SCHEMA, Trial, Turned,
};
use serde::{Deserialize, Serialize};

use crate::build::CommandSpec;
use crate::launch::{Ended, Entered, Resolved, Wanted};
use crate::network::Refusal;
use crate::passed::To;
use crate::profile::Pass;

/// The hidden command of `prony` that runs [`super::main`].
pub const WORD: &str = "__supervise";

/// Longest line of an order or a report: a histogram is the largest thing in one.
pub const LINE_BYTES_MAX: usize = 64 << 20;

/// The line that requests a graceful end of a trial.
pub const INTERRUPT: &str = "interrupt";

/// Prefix of a line that gives a trial its turn; a [`TurnOrder`] follows as JSON.
pub const TURN: &str = "turn ";

/// One turn of a trial in turns. Before and after it all processes of its subject are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "turn", rename_all = "kebab-case")]
pub enum TurnOrder {
    /// Load that is not measured.
    WarmUp {
        /// Its length.
        length_ns: u64,
    },
    /// A measured window.
    Visit {
        /// Load before it.
        lead_in_ns: u64,
        /// Its length.
        window_ns: u64,
    },
    /// There is no other turn: the trial ends.
    Finish,
}

/// The first line on a supervisor's input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// The namespaces that are requested.
    pub wanted: Wanted,
    /// `None` for the guard, which enters the namespaces; what it entered for the
    /// supervisor, the first process in them.
    pub entered: Option<Entered>,
    /// The order to carry out in them.
    pub order: Order,
}

/// An order to a supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "one of them is ever held")]
pub enum Order {
    /// Only try whether the namespaces are available.
    Probe,
    /// Only try whether a network between client and peer can be made.
    Network(PlannedNetwork),
    /// Run one trial.
    Trial(TrialOrder),
    /// Run one command to its end.
    Command(CommandSpec),
    /// Start one program and wait for it, in a process that does nothing else.
    Program(ProgramOrder),
}

impl Order {
    /// Which environment its processes get; `None`: that of the caller, a supervisor.
    pub(super) fn environment(&self) -> Option<To> {
        match self {
            Order::Probe | Order::Network(_) | Order::Trial(_) => Some(To::Trials),
            Order::Command(_) => Some(To::Builds),
            Order::Program(_) => None,
        }
    }

    /// The network that it needs beside loopback.
    pub fn network(&self) -> Option<&PlannedNetwork> {
        match self {
            Order::Network(network) => Some(network),
            Order::Trial(order) => order.network.as_ref(),
            Order::Probe | Order::Command(_) | Order::Program(_) => None,
        }
    }
}

/// One trial, with all of the plan that it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialOrder {
    /// The cell.
    pub cell: Cell,
    /// Its subject.
    pub subject: PlannedSubject,
    /// Its workload.
    pub workload: PlannedWorkload,
    /// The settings that it names.
    pub settings: Vec<PlannedSetting>,
    /// The server on the other side of a client.
    pub peer: Option<PlannedSubject>,
    /// The backing services of the cell, in the order in which they are started.
    #[serde(default)]
    pub backings: Vec<PlannedSubject>,
    /// The proxy in front of the subject.
    #[serde(default)]
    pub front: Option<PlannedSubject>,
    /// The network between the two; `None`: loopback.
    pub network: Option<PlannedNetwork>,
    /// Cores by role.
    pub cores: Cores,
    /// Warm-up.
    pub warmup_ns: u64,
    /// Measured window.
    pub duration_ns: u64,
    /// Block, from 0.
    pub block: u32,
    /// Place in the block's order, from 0.
    pub position: u32,
    /// Seed of this trial.
    pub seed: u64,
    /// Its window is made of turns, which it receives one by one.
    #[serde(default)]
    pub in_turns: bool,
    /// Whether it ends once the responses have been checked, without a load.
    #[serde(default)]
    pub check_only: bool,
    /// What drives the subject.
    pub generator: Generator,
    /// Driver of Prony's generator: `auto`, `ring` or `epoll`.
    pub driver: String,
    /// The prony binary, for its generator and for `{prony}`.
    pub prony: PathBuf,
    /// A fresh folder, removed when the trial has ended.
    pub work_dir: PathBuf,
    /// The run directory.
    pub run_dir: PathBuf,
    /// Name of this trial's files in the run directory, without folder and ending.
    pub file_stem: String,
}

impl TrialOrder {
    /// The record of the trial before anything is known of its outcome.
    pub fn unfinished(&self) -> Trial {
        Trial {
            schema: SCHEMA,
            cell: self.cell.id.clone(),
            block: self.block,
            position: self.position,
            seed: self.seed,
            generator: self.generator.kind(),
            started_unix_ms: clock::unix_nanos() / 1_000_000,
            ..Trial::default()
        }
    }
}

/// What drives the subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Generator {
    /// `prony __generate`.
    Prony,
    /// wrk, as a cross-check.
    Wrk {
        /// Its binary.
        path: PathBuf,
        /// Name and version: `wrk 4.1.0`.
        version: String,
    },
    /// `prony __generate`, while the subject is looked into.
    Profile {
        /// What is looked at.
        pass: Pass,
    },
}

impl Generator {
    /// Its kind, for records ([`Trial::generator`]).
    pub fn kind(&self) -> GeneratorKind {
        match self {
            Generator::Prony => GeneratorKind::Prony,
            Generator::Wrk { .. } => GeneratorKind::Wrk,
            Generator::Profile { pass } if pass.strace.is_some() => GeneratorKind::ProfileStrace,
            Generator::Profile { .. } => GeneratorKind::Profile,
        }
    }

    /// Whether it is Prony's own.
    pub fn is_own(&self) -> bool {
        !matches!(self, Generator::Wrk { .. })
    }
}

/// One program, started by a process that has just begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramOrder {
    /// What is started, in a root file system that the supervisor has furnished.
    pub resolved: Resolved,
    /// File that its standard output is appended to.
    pub output: PathBuf,
    /// File that its standard error is appended to.
    pub log: PathBuf,
}

/// How a program ended and what it used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// Its end.
    pub ended: Ended,
    /// Time from just before it was started until it was seen to have ended.
    pub wall_ns: u64,
}

/// A line that a supervisor prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "one line of each is ever held")]
pub enum Report {
    /// The namespaces cannot be had.
    Refused {
        /// The step and the system's reason.
        reason: String,
    },
    /// They can be had, and these facts hold in them.
    Probed {
        /// What holds.
        isolation: Isolation,
        /// Settings of the network in them.
        facts: Vec<Fact>,
    },
    /// The network was tried.
    Tried {
        /// Why it cannot be had; `None`: it can.
        refusal: Option<Refusal>,
    },
    /// A phase of the trial begins.
    Phase {
        /// Which.
        phase: Phase,
    },
    /// The subject has been checked and is stopped: the trial waits for its first turn.
    Waiting,
    /// A turn is over, and the subject is stopped.
    Turned(Turned),
    /// The trial has ended.
    Trial {
        /// All that it recorded.
        trial: Trial,
        /// Latency of the completed requests.
        histogram: Option<Histogram>,
    },
    /// The program was started.
    Began {
        /// Its process id.
        pid: u32,
    },
    /// The program has ended.
    Ran(Ran),
    /// The command has ended.
    Exited {
        /// How; `None`: it was killed at its time-out, or never started.
        exit: Option<Exit>,
        /// Whether it could be started at all, and why not.
        error: Option<String>,
    },
}

impl Report {
    /// Prints it as one line.
    pub(super) fn print(&self, output: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *output, self)?;
        output.write_all(b"\n")?;
        output.flush()
    }
}
