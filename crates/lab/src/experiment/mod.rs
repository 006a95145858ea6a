//! The experiment: one TOML file that says what is measured and how.
//!
//! Not for: what a machine can do of it ([`crate::plan`]), or what a folder of a
//! subject says ([`crate::subject`]).
#![doc = include_str!("../../../../docs/experiments.md")]

mod arrival;
mod client;
pub(crate) mod fields;
mod find_max;
mod folder;
mod names;
mod published;
mod read;
mod rows;
pub(crate) mod service;
mod services;
pub(crate) mod words;
mod work;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use prony_base::Nanos;
use prony_record::{Arrival, ReadySign, RequestTemplate, StopRule};
use toml::Spanned;

use crate::diagnosis::{Diagnoses, Diagnosis};

pub use client::{ClientWork, Network};
pub use find_max::Search;
pub use names::{check_names, check_peers, check_settings};
pub use published::{Published, Wanted};
pub use read::{BLOCKS, BUDGET, DURATION, VISITS, sha256};
pub(crate) use read::{HexOf, command, document};
pub use rows::{Baseline, Row};
pub use service::{AroundOf, Counter, GENERATORS, INSTANCES};
pub use services::check_services;

/// Bytes of a file that a person writes, at the most.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// Connections that a workload may ask for, where it does not say `max`.
pub const CONNECTIONS_MAX_DEFAULT: u32 = 20_000;

/// Where a text comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Origin {
    /// The file as it was named, for messages.
    pub path: String,
    /// The absolute folder that it lies in.
    pub folder: PathBuf,
}

impl Origin {
    /// A file named `path` in `folder`.
    pub fn new(path: impl Into<String>, folder: impl Into<PathBuf>) -> Origin {
        Origin {
            path: path.into(),
            folder: folder.into(),
        }
    }
}

/// A parsed experiment. Names that refer to subjects are not yet checked
/// ([`check_names`]): a subject's id may stand in its own file.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Where it comes from.
    pub origin: Origin,
    /// Its text, for messages that are found later.
    pub text: String,
    /// SHA-256 of the text before its claims, which is all that says what is measured, in hexadecimal.
    pub sha256: String,
    /// Title of the document.
    pub title: String,
    /// The question that it answers.
    pub question: String,
    /// How trials are run.
    pub run: Run,
    /// What `--quick` changes.
    pub quick: Quick,
    /// What is measured, in order; at least one.
    pub subjects: Vec<SubjectEntry>,
    /// Servers on the fixed other side of clients, in order; each is a `ref`.
    pub peers: Vec<SubjectEntry>,
    /// Services that subjects need, in order; each is a `ref`.
    pub backings: Vec<SubjectEntry>,
    /// Proxies in front of subjects, likewise.
    pub fronts: Vec<SubjectEntry>,
    /// Networks between client and peer, beside loopback.
    pub networks: Vec<Network>,
    /// What is asked, in order; at least one.
    pub workloads: Vec<Workload>,
    /// Named variations, in order.
    pub settings: Vec<Setting>,
    /// Cells left out.
    pub exclude: Vec<Exclusion>,
    /// Claims of published documents, in order.
    pub published: Vec<Published>,
    /// What a newer file would say otherwise.
    pub warnings: Vec<Diagnosis>,
}

/// What a run is to reach, by whatever blocks and windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    /// The narrowest intervals in this time.
    Budget(Nanos),
    /// Differences from this part on.
    Precision(f64),
}

/// `[run]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Interleaved rounds over all cells.
    pub blocks: u32,
    /// Measured window of each trial.
    pub duration: Nanos,
    /// Warm-up of each trial.
    pub warmup: Nanos,
    /// Servers are visited in turns of this length, all of a block alive together. Zero: each trial by itself, which is
    /// so, too, where nothing is said and nothing is [aimed](Run::aim) at.
    pub visits: Option<Nanos>,
    /// Seed of everything random.
    pub seed: u64,
    /// Subject that ratios refer to.
    pub reference: Option<Spanned<String>>,
    /// Whether the reference is measured a second time as a subject of its own, where that tells something.
    pub copy: bool,
    /// What decides on blocks and windows, after a pilot, in place of these here.
    pub aim: Option<Aim>,
    /// Whether subjects are profiled, in trials of their own after all blocks.
    pub profile: bool,
    /// Cores of a server; threads of a program where no setting says them.
    pub threads: Option<u32>,
    /// Where the length of the window is said, which means nothing to programs.
    pub duration_at: Option<std::ops::Range<usize>>,
    /// Where the warm-up is said, which means nothing to clients and programs.
    pub warmup_at: Option<std::ops::Range<usize>>,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            blocks: 6,
            duration: Nanos::from_secs(10),
            warmup: Nanos::from_secs(2),
            visits: None,
            seed: 1,
            reference: None,
            copy: true,
            aim: None,
            profile: false,
            threads: None,
            duration_at: None,
            warmup_at: None,
        }
    }
}

/// `[run.quick]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quick {
    /// Rounds.
    pub blocks: Option<u32>,
    /// Measured window.
    pub duration: Option<Nanos>,
    /// Warm-up.
    pub warmup: Option<Nanos>,
    /// The connections that are kept.
    pub connections: Option<Spanned<Vec<Connections>>>,
    /// The rates that are kept.
    pub rates: Option<Spanned<Vec<f64>>>,
    /// The sizes of programs' works that are kept.
    pub count: Option<Spanned<Vec<u64>>>,
    /// Larger sizes are cut to this.
    pub count_max: Option<u64>,
    /// Larger numbers of connections are cut to this.
    pub connections_max: Option<u32>,
    /// Larger payloads of downloads are cut to this.
    pub payload_max: Option<u64>,
}

/// How many connections.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Connections {
    /// This many.
    Exactly(u32),
    /// As many as the machine allows, up to the workload's `max`.
    Max,
}

/// `[[subject]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SubjectEntry {
    /// Where it stands in the file.
    pub place: std::ops::Range<usize>,
    /// What it names.
    pub from: From,
    /// The revision at which a `ref` is taken; `None`: as it is.
    pub revision: Option<Spanned<String>>,
    /// Its id where it is not the usual one.
    pub name: Option<Spanned<String>>,
    /// What `{threads}` says.
    pub threads: Option<u32>,
    /// Added to its command.
    pub args: Vec<String>,
    /// Added to its environment.
    pub env: BTreeMap<String, String>,
    /// Capabilities that it keeps beside those that its file names.
    pub capabilities: Vec<String>,
    /// Paths that it answers; `None`: as its file says, or all.
    pub endpoints: Option<Vec<String>>,
    /// How one sees that it is ready; `None`: as its file says, or the port accepts.
    pub ready: Option<ReadySign>,
    /// How it is stopped; `None`: as its file says, or SIGTERM and 5 s.
    pub stop: Option<StopRule>,
    /// Works that a `cmd` does, which is a program then; empty: a server.
    pub works: Vec<String>,
    /// Pattern of a program's output; `None`: JSON, or as its file says.
    pub output: Option<String>,
}

/// What a `[[subject]]` names.
#[derive(Clone, Debug, PartialEq)]
pub enum From {
    /// `ref`: a folder with a `subject.toml`.
    Ref(Spanned<String>),
    /// `cmd`: an argument vector.
    Command(Vec<String>),
    /// `url`: `http://HOST:PORT`.
    Url(String),
}

/// `[[workload]]`: requests to servers, a work of programs, or one of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its name.
    pub name: Spanned<String>,
    /// What headings call it; empty: its name.
    pub title: String,
    /// The work; what this type says of requests means nothing then.
    pub work: Option<Work>,
    /// What clients are asked to do; likewise.
    pub client: Option<ClientWork>,
    /// The request.
    pub request: RequestTemplate,
    /// Status of a right answer.
    pub expect_status: u16,
    /// What its `Content-Type` begins with.
    pub expect_content_type: Option<String>,
    /// Its exact body.
    pub expect_body: Option<String>,
    /// When requests start.
    pub arrival: Arrival,
    /// Connections, as written.
    pub connections: Vec<Connections>,
    /// What "max" is at the most.
    pub connections_max: u32,
    /// Time-out of one request, or of a program's run.
    pub timeout: Nanos,
    /// Only these subjects.
    pub subjects: Option<Vec<Spanned<String>>>,
    /// The rows of its table; empty: all combinations.
    pub rows: Vec<Row>,
    /// The number that its requests raise.
    pub counter: Option<Counter>,
    /// The objective whose highest rate is looked for.
    pub find_max: Option<Search>,
}

impl Workload {
    /// Whether it is requests that Prony's generator sends to a server.
    pub fn is_request(&self) -> bool {
        self.work.is_none() && self.client.is_none()
    }
}

/// What a program is asked to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// The name of the work.
    pub work: String,
    /// Sizes; at least one.
    pub counts: Vec<u64>,
    /// Added to the program's command.
    pub args: Vec<String>,
}

/// The setting whose value is the number of threads that a subject is told.
pub const THREADS: &str = "threads";
/// The value of [`THREADS`] that stands for all that the subject may have.
pub const ALL_CORES: &str = "cores";

/// `[[setting]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name.
    pub name: Spanned<String>,
    /// Its values; at least one.
    pub values: Vec<String>,
    /// Environment that it adds.
    pub env: BTreeMap<String, String>,
    /// Arguments that it adds.
    pub args: Vec<String>,
    /// Environment that only one of its values adds.
    pub env_of: BTreeMap<String, BTreeMap<String, String>>,
    /// Kernel setting that has the value during a trial.
    pub sysctl: Option<String>,
    /// What its values put around a subject.
    pub around: AroundOf,
    /// Only these subjects.
    pub subjects: Option<Vec<Spanned<String>>>,
    /// Only these workloads.
    pub workloads: Option<Vec<Spanned<String>>>,
}

impl Setting {
    /// Whether it does something to any subject, not only to one that offers builds by
    /// its name.
    pub fn has_effect(&self) -> bool {
        let nothing = self.env.is_empty() && self.args.is_empty() && self.env_of.is_empty();
        let around = !self.around.is_empty();
        let processes = service::is_number_of_processes(self.name.get_ref());
        !nothing || self.sysctl.is_some() || around || processes
    }
}

/// One item of `exclude`: a cell that has all of it is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exclusion {
    /// Subject's id.
    pub subject: Option<Spanned<String>>,
    /// Workload's name.
    pub workload: Option<Spanned<String>>,
    /// Connections, before the cap.
    pub connections: Option<Connections>,
    /// Requests that are to start a second.
    pub rate: Option<f64>,
    /// Size of a program's work.
    pub count: Option<u64>,
    /// Values by setting.
    pub settings: Vec<(Spanned<String>, Spanned<String>)>,
}

/// What belongs to the entries of an experiment, by what they are.
#[derive(Debug)]
pub struct Parts<'a, T> {
    /// To `[[subject]]`.
    pub subjects: &'a [T],
    /// To `[[peer]]`.
    pub peers: &'a [T],
    /// To `[[backing]]`.
    pub backings: &'a [T],
    /// To `[[front]]`.
    pub fronts: &'a [T],
}

impl Experiment {
    /// All entries that name something to be started: subjects, peers, backings, fronts.
    pub fn entries(&self) -> impl Iterator<Item = &SubjectEntry> {
        let servers = self.subjects.iter().chain(&self.peers);
        servers.chain(&self.backings).chain(&self.fronts)
    }

    /// Splits what is in the order of [`Experiment::entries`]. A list that is too short has
    /// empty parts at its end.
    pub fn split<'a, T>(&self, all: &'a [T]) -> Parts<'a, T> {
        let cut = |all: &'a [T], count: usize| all.split_at(count.min(all.len()));
        let (subjects, rest) = cut(all, self.subjects.len());
        let (peers, rest) = cut(rest, self.peers.len());
        let (backings, fronts) = cut(rest, self.backings.len());
        Parts {
            subjects,
            peers,
            backings,
            fronts,
        }
    }

    /// Reads and checks the file at `path`.
    pub fn load(path: &Path) -> Result<Experiment, Diagnoses> {
        let (text, origin) = read_file(path)?;
        Experiment::parse(&text, &origin)
    }

    /// Checks the text of an experiment. Pure; all problems are reported together.
    pub fn parse(text: &str, origin: &Origin) -> Result<Experiment, Diagnoses> {
        read::experiment(text, origin)
            .map_err(|problems| Diagnoses::new(&origin.path, text, problems))
    }

    /// Problems that were found after parsing, shown in this file.
    pub fn diagnoses(&self, problems: Vec<Diagnosis>) -> Diagnoses {
        Diagnoses::new(&self.origin.path, &self.text, problems)
    }
}

/// The text of the file at `path`, not more than [`FILE_BYTES_MAX`], and its origin.
pub(crate) fn read_file(path: &Path) -> Result<(String, Origin), Diagnoses> {
    let name = path.display().to_string();
    let wrong = |reason: String| Diagnoses::unreadable(&name, &reason);
    let absolute = path
        .canonicalize()
        .map_err(|error| wrong(error.to_string()))?;
    let file = File::open(&absolute).map_err(|error| wrong(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(format!("it is longer than {FILE_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        wrong(format!("it is not UTF-8 text (byte {at})"))
    })?;
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    Ok((text, Origin::new(name, folder)))
}

/// Hook for fuzzing: any bytes as an experiment and as a subject; whatever is
/// wrong with them is shown. Must not panic.
pub fn fuzz(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let origin = Origin::new("experiment.toml", "/nowhere");
    match Experiment::parse(text, &origin) {
        Err(wrong) => drop(wrong.render(true)),
        Ok(experiment) => crate::plan::fuzz(&experiment),
    }
    if let Err(wrong) = crate::subject::Subject::parse(text, &origin) {
        drop(wrong.render(false));
    }
}

#[cfg(test)]
mod tests;
