//! Every number of the document, once for each cell. `summary.json` holds these very values; tables and plots only lay
//! them out.
//!
//! Not for: computing them, which `cells` does.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use prony_findings::{Case, Code, Finding, Records, Verdict};
use prony_record::{Phase, Plan};
use serde::{Deserialize as _, Serialize, Serializer};
use serde_json::Value;

use crate::clients::figures::ClientFigures;
pub use crate::figure::Figure;
use crate::figure::{block_number, seen_in};
use crate::open::OpenFigures;
use crate::programs::figures::ProgramFigures;
use crate::ratio::RatioFigure;
use crate::rows::figures::{RowFigures, ServiceFigures};
use crate::search::figures::SearchFigures;
use crate::users::figures::CellUsers;

/// What became of a cell's trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trials {
    /// Trials that the plan has.
    pub planned: u32,
    /// Blocks that were measured.
    pub measured: Vec<u32>,
    /// Trials that failed.
    pub failed: Vec<FailedTrial>,
}

/// A trial that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailedTrial {
    /// Its block.
    pub block: u32,
    /// The phase that failed.
    pub phase: Phase,
    /// Why.
    pub reason: String,
}

/// All figures of one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CellFigures {
    /// The cell's `id`.
    pub cell: String,
    /// The subject's `id`.
    pub subject: String,
    /// The subject's name, with the settings.
    pub label: String,
    /// The workload's name.
    pub workload: String,
    /// Connections.
    pub connections: u32,
    /// Requests that are to start a second, where a rate is said; users, where they do steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_per_s: Option<f64>,
    /// What became of the schedule of an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenFigures>,
    /// What came of users and their steps, of a workload with a scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<CellUsers>,
    /// What a search for the highest rate found beside it; nothing of any other work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchFigures>,
    /// What a program recorded beside its rate and its memory; nothing of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramFigures>,
    /// What a client and its peer recorded besides; nothing of a server or another program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientFigures>,
    /// What a service and what is around it recorded besides; nothing of a server alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceFigures>,
    /// Settings.
    pub settings: BTreeMap<String, String>,
    /// Whether its subject is the reference.
    pub is_reference: bool,
    /// Whether it is the same program as the reference, under another id (A/A).
    pub is_copy: bool,
    /// Its trials.
    pub trials: Trials,
    /// What the findings come to; `None` where nothing was recorded.
    pub verdict: Option<Verdict>,
    /// Codes of its findings.
    pub findings: Vec<Code>,
    /// Those of them for which its figures cannot be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid_by: Vec<Code>,
    /// Requests a second; of a program what it counts, a second of its own clock; of a search the highest rate that keeps
    /// its objective.
    pub rate_per_s: Option<Figure>,
    /// Rate over that of the reference.
    pub ratio: Option<RatioFigure>,
    /// The same of what a server has beside its rate: `p50`, `p99`, `cpu_subject`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ratios: BTreeMap<&'static str, RatioFigure>,
    /// Latency by percentile, nanoseconds; 2^64 - 1: among the requests that were never answered.
    pub latency_ns: BTreeMap<&'static str, Figure>,
    /// Largest latency of all blocks, nanoseconds; 2^64 - 1: some request was never answered.
    pub latency_max_ns: Option<u64>,
    /// Requests beyond p99.9.
    pub beyond_p99_9: u64,
    /// Separate periods in which these were slow, at the least, as far as it is known.
    pub slow_periods: u64,
    /// Whether these are enough for p99.9 to be read.
    pub p99_9_supported: bool,
    /// CPU time a request, memory, and what else the metrics have of each block.
    #[serde(flatten)]
    pub measured: Measured,
    /// Processes of the subject, the most of all blocks.
    pub processes: usize,
    /// Bytes received a completed request.
    pub bytes_per_answer: Option<Figure>,
    /// Completed requests of all blocks.
    pub completed: u64,
    /// Everything that went wrong in all blocks.
    pub errors: u64,
    /// The same by kind, only those that happened.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Its place among all cells.
    #[serde(skip)]
    pub place: usize,
    /// It as `summary.json` has it, once a figure was asked for by its path. No figure changes after that: what changes them is
    /// [`settle`](crate::claims::settle), which comes first.
    #[serde(skip)]
    pub written: OnceCell<Value>,
}

/// Figures by name, in the order of the registry of metrics, which is that of `summary.json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured(pub Vec<(&'static str, Option<Figure>)>);

impl Serialize for Measured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, figure)| (name, figure)))
    }
}

/// A rate by wrk beside that by Prony's generator, of the same cell and block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CrossCheck {
    /// The cell.
    pub cell: String,
    /// The block.
    pub block: u32,
    /// Requests a second by Prony's generator.
    pub prony_per_s: f64,
    /// Requests a second by wrk.
    pub wrk_per_s: f64,
    /// The first over the second.
    pub ratio: f64,
}

impl CrossCheck {
    /// Its block as a reader counts them.
    pub fn block_number(&self) -> String {
        block_number(self.block)
    }
}

impl CellFigures {
    /// Its records, which are those of the plan's cell in the same place.
    pub fn case<'r>(&self, records: &'r Records<'_>) -> Case<'r> {
        records.case(&records.plan.cells[self.place])
    }

    /// What stands at a path in it: `latency_ns.p99`.
    pub fn at(&self, path: &str) -> Option<&Value> {
        let write = || serde_json::to_value(self).expect("figures that can be written");
        let written = self.written.get_or_init(write);
        path.split('.').try_fold(written, |at, name| match at {
            Value::Array(all) => all.get(name.parse::<usize>().ok()?),
            at => at.get(name),
        })
    }

    /// The figure at a path. A single number is one without a spread.
    pub fn figure(&self, path: &str) -> Option<Figure> {
        let at = self.at(path)?;
        let single = || Figure::range([at.as_f64()?]);
        Figure::deserialize(at).ok().or_else(single)
    }

    /// The number at a path; of a figure its median.
    pub fn number(&self, path: &str) -> Option<f64> {
        Some(self.figure(path)?.median)
    }

    /// The path of the number at a path: of a figure that of its median.
    pub fn path(&self, path: &str) -> String {
        let is_figure = self.at(path).is_some_and(|at| at.get("median").is_some());
        let median = if is_figure { ".median" } else { "" };
        format!("{path}{median}")
    }

    /// Its address in `summary.json`.
    pub fn address(&self, path: &str) -> String {
        let path = self.path(path).replace('.', "/");
        format!("/cells/{}/{path}", self.place)
    }

    /// By what the rows of a table are in order: the highest rate first, what cannot be used after all others.
    pub fn standing(&self) -> f64 {
        match (self.rate_per_s, self.verdict) {
            (None, _) => f64::NEG_INFINITY,
            (Some(rate), Some(Verdict::Invalid)) => rate.median - 1e18,
            (Some(rate), _) => rate.median,
        }
    }

    /// Whether it cannot be used.
    pub fn is_invalid(&self) -> bool {
        self.verdict == Some(Verdict::Invalid)
    }

    /// Whether its subject did not keep up with the schedule at any time.
    pub fn is_overloaded(&self) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| open.blocks_overloaded > 0)
    }

    /// Whether any of its trials was measured.
    pub fn is_measured(&self) -> bool {
        !self.trials.measured.is_empty()
    }

    /// Whether its subject is a server that the generator drives.
    pub fn is_server(&self) -> bool {
        self.program.is_none() && self.client.is_none()
    }

    /// The row of a table that it is.
    pub fn row(&self) -> Option<&RowFigures> {
        self.service.as_ref()?.row.as_ref()
    }

    /// Whether it is in a table of all combinations.
    pub fn is_combined(&self) -> bool {
        self.is_server() && self.row().is_none() && self.search.is_none()
    }
}

/// Where in a cell something was found; empty: in all its trials.
pub fn places_of(finding: &Finding, trials: usize) -> String {
    seen_in(&finding.blocks, trials)
}

/// Cells, each with what it is called.
pub type NamedCells<'a> = Vec<(String, &'a CellFigures)>;

/// Cells with their labels.
pub fn labelled<'a>(cells: &[&'a CellFigures]) -> NamedCells<'a> {
    let cells = cells.iter();
    cells.map(|cell| (cell.label.clone(), *cell)).collect()
}

/// The name of a subject, or its id where the name is not unique.
pub fn name_of<'a>(plan: &'a Plan, id: &'a str) -> &'a str {
    let subjects = &plan.subjects;
    let shared = |name: &str| subjects.iter().filter(|s| s.name == name).count() > 1;
    let subject = subjects.iter().find(|s| s.id == id);
    let name = subject.map(|subject| subject.name.as_str());
    name.filter(|name| !name.is_empty() && !shared(name))
        .unwrap_or(id)
}
