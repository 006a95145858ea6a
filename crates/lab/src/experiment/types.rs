//! What an experiment says, as types, once its file has been read and checked.
//!
//! Not for: reading it ([`super::read`]), or what a machine can do of it ([`crate::plan`]).

use std::collections::BTreeMap;
use std::ops::Range;

use prony_base::Nanos;
use prony_base::typed::requirement::LoadRequirement;
use prony_load::Objective;
use prony_record::{
    AnswerChecks, Arrival, Cell, CellMetric, Cores, Ended, Output, PlannedNetwork, PlannedSource,
    REQUESTS, ReadySign, RequestTemplate, Stated, StopRule,
};
use toml::Spanned;

use super::fields::{Origin, Problems};
use super::spoken;
use crate::diagnosis::{Diagnoses, Diagnosis};

/// A parsed experiment. Names that refer to subjects are not yet checked
/// ([`super::check_names`]): a subject's id may stand in its own file.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The source of its text.
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
    /// The workloads, in order; at least one.
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
    /// What is required of all cells of servers.
    pub require: Vec<LoadRequirement>,
    /// Whether subjects are profiled, in trials of their own after all blocks.
    pub profile: bool,
    /// Cores of a server; threads of a program where no setting says them.
    pub threads: Option<u32>,
    /// Cores by role, in place of those that the plan chooses.
    pub cores: Option<Spanned<Cores>>,
    /// The place of the length of the window, which means nothing to programs.
    pub duration_at: Option<Range<usize>>,
    /// The place of the warm-up, which means nothing to clients and programs.
    pub warmup_at: Option<Range<usize>>,
    /// Whether `[run]` itself says its warm-up.
    pub is_warmup_said: bool,
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubjectEntry {
    /// Its place in the file.
    pub place: Range<usize>,
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
    /// Commands that must be on PATH beside those that its file, or its command's first word, names.
    pub commands: Vec<String>,
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

impl Default for From {
    fn default() -> From {
        From::Url(String::new())
    }
}

impl SubjectEntry {
    /// The id that its subject has, where no file need be read for it: its `name`, or else its `ref` as it was written.
    fn known_as(&self) -> Option<&str> {
        let named = self.name.as_ref().map(|name| name.get_ref().as_str());
        named.or(match &self.from {
            From::Ref(reference) => Some(reference.get_ref().as_str()),
            From::Command(_) | From::Url(_) => None,
        })
    }
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
    /// The request; the first of several.
    pub request: RequestTemplate,
    /// What is sent where that is not the one request alone.
    pub source: Option<WorkloadSource>,
    /// Status of a right answer.
    pub expect_status: u16,
    /// What its `Content-Type` begins with.
    pub expect_content_type: Option<String>,
    /// Its exact body.
    pub expect_body: Option<String>,
    /// What else is right of it.
    pub expect_checks: AnswerChecks,
    /// What is required of its cells, beside what the [run](Run::require) requires of all.
    pub require: Vec<LoadRequirement>,
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
    /// How long nothing is asked of a server before one request is, which is timed.
    pub rest: Option<Nanos>,
    /// Its load ends with so many requests.
    pub requests_max: Option<u64>,
}

/// What a workload sends where that is not one request alone.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadSource {
    /// Its place in the file.
    pub place: Range<usize>,
    /// The place of its file of requests or of its scenario.
    pub file_at: Range<usize>,
    /// The place of its data file.
    pub data_at: Range<usize>,
    /// The place of its requirements.
    pub require_at: Range<usize>,
    /// It, without what is in its files before these are read ([`Experiment::read_sources`]).
    pub planned: PlannedSource,
    /// Whether the order stands in the experiment, and does not follow from the requests.
    pub is_order_said: bool,
    /// Paths of its requests.
    pub paths: Vec<String>,
}

impl Workload {
    /// The paths that its requests have.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let several = self.source.iter().flat_map(|source| &source.paths);
        let one = self.source.is_none().then_some(&self.request.path);
        one.into_iter().chain(several).map(String::as_str)
    }

    /// The number of connections before any cap.
    pub fn number_of(&self, connections: Connections) -> u32 {
        match connections {
            Connections::Exactly(number) => number,
            Connections::Max => self.connections_max,
        }
    }

    /// Whether it is requests that Prony's generator sends to a server.
    pub fn is_request(&self) -> bool {
        self.work.is_none() && self.client.is_none()
    }
}

/// The work of a program.
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
    /// The services and the output that its values give a subject.
    pub topology: SettingTopology,
    /// Only these subjects.
    pub subjects: Option<Vec<Spanned<String>>>,
    /// Only these workloads.
    pub workloads: Option<Vec<Spanned<String>>>,
}

impl Setting {
    /// Whether it affects any subject, not only one that offers builds by its name.
    pub fn has_effect(&self) -> bool {
        let nothing = self.env.is_empty() && self.args.is_empty() && self.env_of.is_empty();
        let topology = !self.topology.is_empty();
        let name = self.name.get_ref();
        let has_meaning = is_number_of_processes(name) || spoken::is_spoken(name);
        !nothing || self.sysctl.is_some() || topology || has_meaning
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
    /// What belongs to `[[subject]]`.
    pub subjects: &'a [T],
    /// What belongs to `[[peer]]`.
    pub peers: &'a [T],
    /// What belongs to `[[backing]]`.
    pub backings: &'a [T],
    /// What belongs to `[[front]]`.
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

    /// The names of its workloads.
    pub fn workload_names(&self) -> Vec<&str> {
        let names = self.workloads.iter().map(|workload| &workload.name);
        names.map(|name| name.get_ref().as_str()).collect()
    }

    /// The workload of a cell.
    pub fn workload_of(&self, cell: &Cell) -> Option<&Workload> {
        let mut workloads = self.workloads.iter();
        workloads.find(|workload| *workload.name.get_ref() == cell.workload)
    }

    /// Takes the subject of this id at a revision, whatever the file says.
    ///
    /// # Errors
    /// There is none, or it is none of a `ref`: a sentence.
    pub fn take_at(&mut self, subject: &str, revision: &str) -> Result<(), String> {
        let known = |entry: &&mut SubjectEntry| entry.known_as() == Some(subject);
        let Some(entry) = self.subjects.iter_mut().find(known) else {
            let there = self.subjects.iter().filter_map(SubjectEntry::known_as);
            let there: Vec<&str> = there.collect();
            let there = there.join(", ");
            return Err(format!(
                "the experiment has no subject `{subject}`; it has {there}"
            ));
        };
        let From::Ref(reference) = &entry.from else {
            return Err("a `cmd` or `url` has no revision".to_owned());
        };
        entry.revision = Some(Spanned::new(reference.span(), revision.to_owned()));
        Ok(())
    }

    /// Problems that were found after parsing, shown in this file.
    pub fn diagnoses(&self, problems: Vec<Diagnosis>) -> Diagnoses {
        Diagnoses::new(&self.origin.path, &self.text, problems)
    }

    /// Nothing, or the problems that were found after parsing.
    pub(crate) fn checked(&self, problems: Problems) -> Result<(), Diagnoses> {
        problems.checked(Some(()), &self.origin.path, &self.text)
    }
}

/// The work of clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientWork {
    /// `requests` or `downloads`.
    pub work: String,
    /// Path (and query) that is requested.
    pub path: String,
    /// Threads of the client where no setting says them.
    pub threads: u32,
    /// The server on the other side; `None`: the only one.
    pub peer: Option<Spanned<String>>,
    /// Threads of the peer.
    pub peer_threads: u32,
    /// The network between them; `None`: loopback.
    pub network: Option<Spanned<String>>,
    /// Length of what the peer serves for downloads; 0: nothing.
    pub payload_bytes: u64,
    /// Added to the client's command.
    pub args: Vec<String>,
}

impl ClientWork {
    /// Whether it lasts for the time that the experiment says, not until all is done.
    pub fn is_timed(&self) -> bool {
        self.work == REQUESTS
    }
}

/// `[[network]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Its name.
    pub name: Spanned<String>,
    /// What it is.
    pub planned: PlannedNetwork,
}

/// A search for the highest rate of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// The objective that must hold.
    pub objective: Objective,
    /// Length of a step.
    pub step: Nanos,
}

/// One of `rows`.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What the table calls it.
    pub title: Spanned<String>,
    /// Subject's id.
    pub subject: Spanned<String>,
    /// Values by setting, in the order of the file.
    pub settings: Vec<(Spanned<String>, Spanned<String>)>,
    /// The row to which its ratios refer.
    pub baseline: Baseline,
}

/// The row to which the ratios of another refer.
#[derive(Clone, Debug, PartialEq)]
pub enum Baseline {
    /// The first one, as where nothing is said. The first one itself has none.
    First,
    /// None, by `baseline = false`.
    Nothing,
    /// The one of this title.
    Row(Spanned<String>),
}

impl Row {
    /// Title of its baseline, as the `index`-th of `rows`.
    pub fn baseline_of<'a>(&'a self, index: usize, rows: &'a [Row]) -> Option<&'a str> {
        match &self.baseline {
            Baseline::Row(title) => Some(title.get_ref()),
            Baseline::First if index > 0 => rows.first().map(|row| row.title.get_ref().as_str()),
            Baseline::First | Baseline::Nothing => None,
        }
    }

    /// Its settings and their values.
    pub fn written<'a>(&'a self, settings: &'a [Setting]) -> Vec<(&'a Setting, &'a str)> {
        // In the order of the settings, not of the row, so that the order of a row is free.
        let value = |setting: &'a Setting| {
            let mut own = self.settings.iter();
            let found = own.find(|(name, _)| *name == setting.name)?;
            Some((setting, found.1.get_ref().as_str()))
        };
        settings.iter().filter_map(value).collect()
    }
}

/// The setting whose value is the number of processes of the subject.
pub const INSTANCES: &str = "instances";

/// The setting whose value is the number of threads of the generator.
pub const GENERATORS: &str = "generators";

/// The services and the output that the values of a setting give a subject, by value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingTopology {
    /// Backing services that are started.
    pub backings: BTreeMap<String, Vec<Spanned<String>>>,
    /// The proxy that is asked instead.
    pub fronts: BTreeMap<String, Spanned<String>>,
    /// The destination of standard output.
    pub outputs: BTreeMap<String, Output>,
    /// The network between the generator and the servers; without `loopback`, which is none.
    pub networks: BTreeMap<String, Spanned<String>>,
}

impl SettingTopology {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        let services = self.backings.is_empty() && self.fronts.is_empty();
        services && self.outputs.is_empty() && self.networks.is_empty()
    }
}

/// `counter`: a number that every correct response raises.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its place in the file.
    pub place: Range<usize>,
    /// Path whose answer to GET is the number.
    pub path: String,
    /// The amount by which one request raises it.
    pub adds: u64,
    /// How the subject is ended before its counter is read again; `None`: it is not.
    pub ended_by: Option<Ended>,
}

impl Setting {
    /// Whether `workload` is among those that it is for.
    pub fn is_for(&self, workload: &Workload) -> bool {
        let names = self.workloads.as_ref();
        names.is_none_or(|names| names.iter().any(|n| n.get_ref() == workload.name.get_ref()))
    }

    /// All texts that it may add.
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        let of_values = self.env_of.values().flat_map(BTreeMap::values);
        self.args.iter().chain(self.env.values()).chain(of_values)
    }

    /// The environment that it adds with `value`.
    pub fn env_with(&self, value: &str) -> BTreeMap<String, String> {
        let own = self.env_of.get(value).into_iter().flatten();
        let filled =
            |(name, text): (&String, &String)| (name.clone(), text.replace("{value}", value));
        self.env.iter().chain(own).map(filled).collect()
    }

    /// The texts that it adds with `value`.
    pub fn texts_of(&self, value: &str) -> impl Iterator<Item = &String> {
        let of_value = self.env_of.get(value).into_iter();
        let of_value = of_value.flat_map(BTreeMap::values);
        self.args.iter().chain(self.env.values()).chain(of_value)
    }
}

/// Whether a setting of this name is a number of processes.
pub fn is_number_of_processes(name: &str) -> bool {
    name == INSTANCES || name == GENERATORS
}

/// One of `[[published]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The claim.
    pub text: String,
    /// Document and place.
    pub source: String,
    /// What it states.
    pub stated: Stated,
    /// The figure that answers it of what the document measured.
    pub original: Option<Wanted>,
    /// The measurand of this project's subject.
    pub ours: Option<Wanted>,
    /// Cores below which it cannot be compared.
    pub cores_min: u32,
    /// Why no cell answers it; empty: one does.
    pub why_not: String,
}

/// A metric of a cell, or its ratio to another one, as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Its place in the file.
    pub place: Range<usize>,
    /// Subject's id.
    pub subject: Spanned<String>,
    /// Workload's name.
    pub workload: Spanned<String>,
    /// Connections, where they are said.
    pub connections: Option<Spanned<Connections>>,
    /// Size of a program's work, likewise.
    pub count: Option<u64>,
    /// Values by setting.
    pub settings: Vec<(Spanned<String>, Spanned<String>)>,
    /// What is measured.
    pub metric: CellMetric,
    /// What it is divided by.
    pub over: Option<Box<Wanted>>,
}

impl Wanted {
    /// It, and what it is divided by.
    pub fn both(&self) -> impl Iterator<Item = &Wanted> {
        std::iter::once(self).chain(self.over.as_deref())
    }
}

/// A setting and its value as the experiment writes it.
pub type Written<'a> = (&'a Setting, &'a str);

/// Whether a list of subjects, if there is one, holds the one of this `id`.
pub fn is_listed(names: &Option<Vec<Spanned<String>>>, id: &str) -> bool {
    let listed = |names: &Vec<Spanned<String>>| names.iter().any(|name| name.get_ref() == id);
    names.as_ref().is_none_or(listed)
}
