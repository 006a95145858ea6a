//! What was to be done: an experiment, resolved. Nothing in it is left to a
//! default, so that a run can be resumed and read years later from it alone.

use std::collections::BTreeMap;

use prony_base::Untrusted;
use serde::{Deserialize, Serialize};

use crate::{
    AnswerChecks, Around, CountsSign, FindMax, Output, PlannedClient, PlannedCounter,
    PlannedNetwork, PlannedProfile, PlannedRow, PlannedSource, PublishedClaim, RequestTemplate,
    StagePoint,
};

/// The resolved experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Schema version ([`crate::SCHEMA`]).
    pub schema: u32,
    /// Version of how figures are measured ([`crate::METHOD`]).
    #[serde(default)]
    pub method: u32,
    /// Title of the document.
    pub title: Untrusted,
    /// The question that the document answers.
    pub question: Untrusted,
    /// Path of the experiment file as it was given.
    pub experiment: String,
    /// SHA-256 of the experiment file's bytes before its published claims, in hexadecimal.
    pub experiment_sha256: String,
    /// The words of the command line after `prony`, to repeat the run.
    pub command: Vec<String>,
    /// Whether `--quick` cut the run short: no interval and no ranking is claimed.
    pub quick: bool,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// Interleaved rounds over all cells.
    pub blocks: u32,
    /// Measured window of each trial.
    pub duration_ns: u64,
    /// Warm-up of each trial, the same in all.
    pub warmup_ns: u64,
    /// Servers of one workload are measured in turns, all of a block alive together; `None`: each trial by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<PlannedVisits>,
    /// Subjects are profiled in trials of their own after all blocks; `None`: nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<PlannedProfile>,
    /// Subject that ratios refer to (its `id`).
    pub reference: Option<String>,
    /// The cores of each side.
    pub cores: Cores,
    /// The one cap on connections and what set it.
    pub connection_cap: ConnectionCap,
    /// Everything that is measured.
    pub subjects: Vec<PlannedSubject>,
    /// Everything that is asked.
    pub workloads: Vec<PlannedWorkload>,
    /// Servers on the fixed other side of the clients that are measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PlannedSubject>,
    /// Services behind subjects: databases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backings: Vec<PlannedSubject>,
    /// Proxies in front of subjects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fronts: Vec<PlannedSubject>,
    /// Networks between client and peer, beside loopback.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<PlannedNetwork>,
    /// Every named variation.
    pub settings: Vec<PlannedSetting>,
    /// All cells, in the order of the document.
    pub cells: Vec<Cell>,
    /// The indices into `cells` of each block, in the order in which they are run.
    pub order: Vec<Vec<u32>>,
    /// What the experiment names and this machine cannot run.
    pub not_run: Vec<NotRun>,
    /// What a reader must know of how the plan came about, a sentence each: numbers of
    /// connections that were cut, a reference that cannot run.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Claims of published documents that the run answers; they change nothing that is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedClaim>,
    /// The run that each block is of, where several were joined; empty: it is one run. No file has it.
    #[serde(skip)]
    pub joined: BTreeMap<u32, u32>,
}

/// How servers are visited in turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedVisits {
    /// Measured window of one visit on average; visits of a trial are as many as make up its window.
    pub length_ns: u64,
    /// Load before it that is not measured.
    pub lead_in_ns: u64,
    /// Cells that are measured by themselves nevertheless, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fresh: Vec<NotVisited>,
}

/// A cell that is measured by itself in a run with visits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NotVisited {
    /// The cell's `id`.
    pub cell: String,
    /// Why.
    pub reason: String,
}

/// Cores by role. Empty lists: not pinned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cores {
    /// Cores of subject, backing and front.
    pub subject: Vec<u32>,
    /// Cores of the generator, or of the peer of clients.
    pub generator: Vec<u32>,
    /// Cores of the lab itself: supervisor and sampler. Empty: they are on the generator's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lab: Vec<u32>,
}

impl Cores {
    /// Cores on which supervisor and sampler run: the lab's own, or else the generator's.
    pub fn of_sampler(&self) -> &[u32] {
        match self.lab.is_empty() {
            true => &self.generator,
            false => &self.lab,
        }
    }
}

/// The smallest limit on connections on the way, minus 200.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionCap {
    /// Connections that a cell may ask for at the most.
    pub connections_max: u32,
    /// The limit that set it, in words.
    pub limited_by: String,
    /// Every limit that was looked at, by name.
    pub limits: BTreeMap<String, u64>,
}

/// A subject, resolved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedSubject {
    /// `language/name`, or the name that the experiment gives a `cmd` or `url`.
    pub id: String,
    /// Name as a table shows it.
    pub name: String,
    /// Language of the subject; empty where it is not known.
    pub language: String,
    /// One sentence on what it is.
    pub summary: String,
    /// The source it is built from.
    pub source: Source,
    /// Paths that it answers; empty: not restricted.
    pub endpoints: Vec<String>,
    /// Argument vector that starts it, placeholders unresolved; empty for a `url`.
    pub start: Vec<String>,
    /// Environment added to that of Prony, placeholders unresolved.
    pub env: BTreeMap<String, String>,
    /// Capabilities of the kernel that it keeps where Prony has them: `sys_nice`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// How one sees that it is ready.
    pub ready: ReadySign,
    /// How it is stopped.
    pub stop: StopRule,
    /// Threads that it is told to use.
    pub threads: u32,
    /// Absolute build directory; empty where nothing is built.
    pub build_dir: String,
    /// Absolute folder of the root file system that it is started in; empty: the machine's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub root_dir: String,
    /// Key of the build in the cache; empty where nothing is built.
    pub build_key: String,
    /// SHA-256 over the files in its folder where nothing is built, or over those that its commands name where the experiment
    /// gives it as a `cmd`, and over those that it needs of its user's own builds, in hexadecimal; empty where there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub files_sha256: String,
    /// Absolute folder of its user's own builds, for `{originals}`; empty where it needs none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub originals_dir: String,
    /// Repositories that it was built from: that of its work tree, then those that lie in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<Repository>,
    /// The line that its `[version]` command printed.
    pub version: String,
    /// Argument vector that runs it as a program, placeholders unresolved, `{work}` and
    /// `{count}` among them; empty where it is none.
    #[serde(default)]
    pub program: Vec<String>,
    /// Environment of the program, placeholders unresolved.
    #[serde(default)]
    pub program_env: BTreeMap<String, String>,
    /// Threads that the program is told to use where no setting says it.
    #[serde(default)]
    pub program_threads: u32,
    /// Regular expression by which the lines of a program that prints no JSON are read;
    /// `None`: it prints JSON.
    #[serde(default)]
    pub program_output: Option<String>,
    /// Builds that it offers: values by the name of the setting that chooses among them,
    /// the first being the usual one; `{name}` in a command stands for the chosen value.
    #[serde(default)]
    pub variants: BTreeMap<String, Vec<String>>,
    /// Arguments that its start command gets, by the protocol that it is to speak; plain HTTP/1.1 needs none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub protocols: BTreeMap<String, Vec<String>>,
    /// Argument vector that runs it as a client, placeholders unresolved, `{url}` and
    /// `{connections}` among them; empty where it is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client: Vec<String>,
    /// Environment of the client, placeholders unresolved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub client_env: BTreeMap<String, String>,
    /// Argument vector that turns what the client printed, which it gets on its standard
    /// input after the client has ended, into the line of JSON; empty: the client prints it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_translate: Vec<String>,
    /// How it tells what it has counted, where it is a peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<CountsSign>,
    /// The subject's `id` of which it is a second measurement (A/A).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<String>,
}

/// A state of a repository that a subject is built from.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Repository {
    /// Its address, as git takes it.
    pub git: String,
    /// The tag or the hash by which the state was named.
    pub revision: String,
    /// Hash of the commit, in hexadecimal; empty where it was not fetched.
    pub commit: String,
    /// Its path in the work tree; empty: it is the work tree.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Hash of the commit that the repository around it records for this place, where that is another one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub in_place_of: String,
    /// When the commit was made, seconds since the Unix epoch; 0 where the repository is not the one around the subject's folder.
    #[serde(default, skip_serializing_if = "crate::answers::is_zero")]
    pub committed_unix_s: u64,
}

/// The source of a subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Source {
    /// A folder with a `subject.toml` (absolute path).
    Folder {
        /// Absolute path of the folder.
        dir: String,
    },
    /// A command that the experiment names; it runs in the experiment's folder.
    Command {
        /// Absolute path of the folder that it runs in.
        dir: String,
    },
    /// A server that already runs.
    Url {
        /// `http://HOST:PORT`
        url: String,
    },
    /// Not said.
    #[default]
    Unknown,
}

/// What shows that a server is ready.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadyKind {
    /// Its port accepts connections.
    #[default]
    Port,
    /// It has printed a line that holds a text.
    Line,
    /// It answers a request with 200.
    Http,
}

/// How one sees that a process is ready, and how long one waits for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReadySign {
    /// What is looked for.
    pub sign: ReadyKind,
    /// The text of the line or the path of the request; empty for a port.
    pub text: String,
    /// Time-out.
    pub timeout_ns: u64,
}

/// How a process is stopped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StopRule {
    /// Signal without `SIG`: `TERM`, `INT`, `QUIT`.
    pub signal: String,
    /// After this it is killed.
    pub timeout_ns: u64,
}

/// Whose work a workload is, and what it is asked to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work<'a> {
    /// A server's, which the generator asks.
    Server,
    /// A program's, which is run to its end.
    Program(&'a PlannedProgram),
    /// A client's, which asks a peer.
    Client(&'a PlannedClient),
}

/// A workload, resolved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedWorkload {
    /// Its name.
    pub name: String,
    /// What headings call it; empty: its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The request; `{random}` in path and body stands for a random number. With a `source` it is the first one of its
    /// requests.
    pub request: RequestTemplate,
    /// What is sent where that is not the one request alone; `None`: it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PlannedSource>,
    /// Status that an answer must have.
    pub expect_status: u16,
    /// Text that the `Content-Type` of an answer must begin with.
    pub expect_content_type: Option<String>,
    /// Exact body that an answer must have; `{random}` is the number of its request.
    pub expect_body: Option<String>,
    /// What else an answer must be.
    #[serde(default, skip_serializing_if = "AnswerChecks::is_empty")]
    pub expect_checks: AnswerChecks,
    /// What is required of its cells: `p99 < 20ms`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<String>,
    /// When requests start.
    pub arrival: Arrival,
    /// Connections, after the cap; one cell for each.
    pub connections: Vec<u32>,
    /// Time-out of one request; of the whole run for a program.
    pub timeout_ns: u64,
    /// The work of a program that is run to its end; `None`: requests to a server.
    #[serde(default)]
    pub program: Option<PlannedProgram>,
    /// The work of a client against a peer; `None`: it is not a client that is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<PlannedClient>,
    /// The rows of its table, in order; empty: all combinations of subjects and settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<PlannedRow>,
    /// The number that its requests raise; `None`: they raise none.
    #[serde(default, alias = "tally", skip_serializing_if = "Option::is_none")]
    pub counter: Option<PlannedCounter>,
    /// The objective whose highest rate each trial looks for, after a closed loop; `None`: the closed loop is what is
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub find_max: Option<FindMax>,
    /// How long nothing is asked of a server before one request is, which is timed, nanoseconds; 0: not at all.
    #[serde(default, skip_serializing_if = "crate::answers::is_zero")]
    pub rest_ns: u64,
    /// Its load is so many requests (of a scenario, users), without a warm-up, and ends with the last of them, or with the window's
    /// planned end; `None`: it lasts until that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_max: Option<u64>,
}

impl PlannedSubject {
    /// The command by which it does `work`, and its environment.
    pub fn command(&self, work: Work<'_>) -> (&[String], &BTreeMap<String, String>) {
        match work {
            Work::Server => (&self.start, &self.env),
            Work::Program(_) => (&self.program, &self.program_env),
            Work::Client(_) => (&self.client, &self.client_env),
        }
    }

    /// Whether `placeholder` stands in that command or in its environment.
    pub fn mentions(&self, work: Work<'_>, placeholder: &str) -> bool {
        let (command, env) = self.command(work);
        let mut texts = command.iter().chain(env.values());
        texts.any(|text| text.contains(placeholder))
    }
}

impl Plan {
    /// Whether the cell measures a copy of another subject, which only runs of six blocks or more do.
    pub fn is_copy(&self, cell: &Cell) -> bool {
        let mut subjects = self.subjects.iter();
        subjects.any(|of| of.id == cell.subject && of.copy_of.is_some())
    }

    /// The workload of a cell.
    pub fn workload_of(&self, cell: &Cell) -> Option<&PlannedWorkload> {
        self.workloads.iter().find(|of| of.name == cell.workload)
    }

    /// The subject of a cell.
    pub fn subject_of(&self, cell: &Cell) -> Option<&PlannedSubject> {
        self.subjects.iter().find(|of| of.id == cell.subject)
    }
}

impl PlannedWorkload {
    /// Whose work it is.
    pub fn work(&self) -> Work<'_> {
        match (&self.program, &self.client) {
            (Some(program), _) => Work::Program(program),
            (None, Some(client)) => Work::Client(client),
            (None, None) => Work::Server,
        }
    }

    /// What a reader is told: the title, or the name where there is none.
    pub fn heading(&self) -> &str {
        if self.title.is_empty() {
            &self.name
        } else {
            &self.title
        }
    }
}

/// What a program is asked to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedProgram {
    /// Name of the work, which a subject must offer: `coroutine`, `start`.
    pub work: String,
    /// Sizes, one cell for each; several are a sweep, from which the exponent comes.
    pub counts: Vec<u64>,
    /// Arguments added to the command.
    pub args: Vec<String>,
}

/// When requests start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Arrival {
    /// On each connection the next one as soon as the last is answered.
    #[default]
    Closed,
    /// On each connection the next one this long after the last is answered.
    Think {
        /// Think time.
        think_ns: u64,
    },
    /// Open: evenly spaced, whatever the answers do.
    Constant {
        /// Requests a second, one cell for each; at least one.
        rates_per_s: Vec<f64>,
    },
    /// Open: a Poisson process.
    Poisson {
        /// Mean numbers of requests a second, one cell for each; at least one.
        rates_per_s: Vec<f64>,
    },
    /// Open: a rate that goes in straight lines from point to point.
    Stages {
        /// At least one; their times, from the beginning of the warm-up, grow.
        points: Vec<StagePoint>,
        /// Whether arrivals are drawn as a Poisson process of that rate; otherwise they are evenly spaced.
        poisson: bool,
    },
}

impl Arrival {
    /// Whether requests start by a schedule, and not by answers.
    pub fn is_open(&self) -> bool {
        !matches!(self, Arrival::Closed | Arrival::Think { .. })
    }
}

/// A named variation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedSetting {
    /// Its name.
    pub name: String,
    /// Its values, in order; the first is the base.
    pub values: Vec<String>,
    /// Environment that it adds to the subject; `{value}` stands for the value.
    pub env: BTreeMap<String, String>,
    /// Arguments that it adds to the subject's command, likewise.
    pub args: Vec<String>,
    /// Environment that only one of its values adds, by value.
    #[serde(default)]
    pub env_of: BTreeMap<String, BTreeMap<String, String>>,
    /// Kernel setting (`kernel.sched_rt_runtime_us`) that has the value during the trial.
    #[serde(default)]
    pub sysctl: Option<String>,
    /// Backing services that one of its values needs, by value (`id`s).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub backing_of: BTreeMap<String, Vec<String>>,
    /// The proxy that one of its values puts in front, by value (`id`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub front_of: BTreeMap<String, String>,
    /// The destination of the subject's standard output by value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub output_of: BTreeMap<String, Output>,
}

/// One subject × one workload × one setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Unique in the plan and stable: `rust/axum ping c=400 logging=info`.
    pub id: String,
    /// Subject's `id`.
    pub subject: String,
    /// Workload's name.
    pub workload: String,
    /// Connections; 0 for a program.
    pub connections: u32,
    /// Requests that are to start a second; `None`: none is said, as in a closed loop and in stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Size of a program's work; `None` for a server.
    #[serde(default)]
    pub count: Option<u64>,
    /// Setting values by name.
    pub settings: BTreeMap<String, String>,
    /// What stands around the subject, as its settings say.
    #[serde(default, skip_serializing_if = "Around::is_alone")]
    pub around: Around,
    /// Longest that the generator looks for answers before it sleeps, nanoseconds; 0: it sleeps at once.
    #[serde(default, skip_serializing_if = "crate::answers::is_zero")]
    pub look_before_sleep_ns: u64,
}

/// Something that the experiment names and that is not run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NotRun {
    /// Subject's id, the cell's, or `NAME=VALUE` of a setting.
    pub what: String,
    /// Why.
    pub reason: String,
    /// The command that would change it; empty where there is none.
    pub remedy: String,
}

impl NotRun {
    /// Notes that `what` is not run, for this reason; `remedy` is empty where there is none.
    pub fn new(what: &str, reason: impl Into<String>, remedy: impl Into<String>) -> NotRun {
        NotRun {
            what: what.to_owned(),
            reason: reason.into(),
            remedy: remedy.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_of_before_the_lab_had_its_own_are_read_and_written_as_they_were() {
        let text = r#"{"subject":[0],"generator":[1]}"#;
        let cores: Cores = serde_json::from_str(text).unwrap();
        assert_eq!(cores.of_sampler(), [1]);
        assert_eq!(serde_json::to_string(&cores).unwrap(), text);
        let cores = Cores {
            lab: vec![2, 6],
            ..cores
        };
        let text = serde_json::to_string(&cores).unwrap();
        assert_eq!(text, r#"{"subject":[0],"generator":[1],"lab":[2,6]}"#);
        let read: Cores = serde_json::from_str(&text).unwrap();
        assert_eq!((read.of_sampler(), &read), (&[2, 6][..], &cores));
    }
}
