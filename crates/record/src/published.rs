//! Claims of published documents, and the figures of a run that answer them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Cell, PlannedSetting};

/// A claim of a published document. Either some figure of this experiment answers it, or a reason says why none does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedClaim {
    /// The claim, in words of ours.
    pub text: String,
    /// The document, and the place in it.
    pub source: String,
    /// What it states.
    #[serde(default)]
    pub stated: Stated,
    /// What the document measured, measured here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Measurand>,
    /// The same of this project's own subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<Measurand>,
    /// Cores of the run below which it cannot be compared; 0: any number will do.
    #[serde(default)]
    pub cores_min: u32,
    /// Why no cell of the experiment answers it; empty: one does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why_not: String,
}

/// `published.json`: claims that took the place of a plan's after its run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedClaims {
    /// Schema version ([`crate::SCHEMA`]).
    pub schema: u32,
    /// The claims, in order.
    pub claims: Vec<PublishedClaim>,
}

/// What a claim states. Values are in the units of their [`Dimension`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Stated {
    /// Words alone.
    #[default]
    Words,
    /// A figure of its machine, which those of other machines neither support nor contradict.
    Absolute {
        /// The figure.
        value: f64,
        /// What it is of.
        dimension: Dimension,
    },
    /// A ratio of two figures.
    Ratio {
        /// The ratio.
        value: f64,
        /// How far another ratio may be off and still be the same: 0.1 is from 1/1.1 to 1.1 times.
        within: f64,
    },
    /// One figure is higher than the other.
    Higher,
    /// One figure is lower than the other.
    Lower,
    /// A figure lies between two ends, which belong to the range.
    Range {
        /// Lower end; `None`: open.
        from: Option<f64>,
        /// Higher end; `None`: open.
        to: Option<f64>,
        /// What the ends are of.
        dimension: Dimension,
    },
}

/// What a figure is of, and so its unit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    /// Nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// Requests, or what a program counts, a second.
    Rate,
    /// Bytes a second.
    Throughput,
    /// A count, or a number without a unit.
    #[default]
    Number,
}

/// One figure of a run: a metric of a cell, or its ratio to another one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurand {
    /// Subject's `id`.
    pub subject: String,
    /// Workload's name.
    pub workload: String,
    /// Connections; `None`: the only number that there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Size of a program's work, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Values by setting; one that is not named has its first value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// What is measured of the cell.
    pub metric: CellMetric,
    /// The figure that it is divided by; `None`: it stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Box<Measurand>>,
}

/// The cells that a [`Measurand`] names.
#[derive(Clone, Debug, PartialEq)]
pub enum Named<'a> {
    /// This one.
    Cell(&'a Cell),
    /// None of them.
    Nothing,
    /// More than one.
    Several(Vec<&'a Cell>),
}

impl Measurand {
    /// The cell that it names. Where several have all that it says, it is the one whose other settings have their first
    /// values in `settings`, and of several of these the one with the fewest settings.
    pub fn cell<'a>(&self, cells: &'a [Cell], settings: &[PlannedSetting]) -> Named<'a> {
        let agrees = |cell: &&Cell| {
            let own = |(name, value): (&String, &String)| cell.settings.get(name) == Some(value);
            cell.subject == self.subject
                && cell.workload == self.workload
                && self.connections.is_none_or(|c| c == cell.connections)
                && self.count.is_none_or(|count| cell.count == Some(count))
                && self.settings.iter().all(own)
        };
        let is_first = |(name, value): (&String, &String)| {
            let mut known = settings.iter().filter(|setting| setting.name == *name);
            self.settings.contains_key(name)
                || known.any(|setting| setting.values.first() == Some(value))
        };
        let found: Vec<&Cell> = cells.iter().filter(agrees).collect();
        let usual: Vec<&Cell> = found
            .iter()
            .copied()
            .filter(|cell| cell.settings.iter().all(is_first))
            .collect();
        // A row that has not a setting at all is more usual than one that has its only value.
        let fewest = usual.iter().map(|cell| cell.settings.len()).min();
        let plainest: Vec<&Cell> = usual
            .iter()
            .copied()
            .filter(|cell| Some(cell.settings.len()) == fewest)
            .collect();
        match (&found[..], &plainest[..]) {
            ([], _) => Named::Nothing,
            ([one], _) | (_, [one]) => Named::Cell(one),
            _ => Named::Several(found),
        }
    }

    /// What it names, in words like the `id` of a cell.
    pub fn in_words(&self) -> String {
        let mut words = format!("{} {}", self.subject, self.workload);
        if let Some(connections) = self.connections {
            words.push_str(&format!(" c={connections}"));
        }
        if let Some(count) = self.count {
            words.push_str(&format!(" n={count}"));
        }
        for (name, value) in &self.settings {
            words.push_str(&format!(" {name}={value}"));
        }
        words
    }
}

/// What is measured of a cell.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellMetric {
    /// Requests, or what a program counts, a second.
    #[default]
    Rate,
    /// Median latency.
    P50,
    /// Latency that one request in a hundred exceeds.
    P99,
    /// Arithmetic mean of the latency.
    MeanLatency,
    /// The first request that the subject answers after its start.
    First,
    /// A request after a rest.
    AfterRest,
    /// CPU time of the subject a request; of a program its whole run's.
    Cpu,
    /// Time that a program or client took, by its own clock.
    Elapsed,
    /// Time from a program's or client's start to its end.
    Wall,
    /// Peak resident memory of the subject's largest process.
    Memory,
    /// Peak virtual memory of a server's largest process.
    VirtualMemory,
    /// Bytes a second: received by the generator or the client, worked through by a program.
    Throughput,
    /// Requests that failed, over all blocks.
    Errors,
    /// Requests in flight on average, by Little's law.
    InFlight,
    /// Standard deviation of the rates of whole seconds within a trial, over their mean.
    Deviation,
    /// Runs of a job that missed their deadline, over all blocks.
    Missed,
    /// Longest run of a job, over all blocks.
    Longest,
    /// Shortest run of a job, over all blocks.
    Shortest,
    /// Mean length of the runs of a job.
    MeanRun,
    /// Exponent of the growth of a program's time with the size of its work.
    Exponent,
    /// Mean time of a connection's `socket()`.
    Socket,
    /// Mean time of a connection's set-up after that.
    Setup,
    /// Mean time of a download.
    Download,
    /// Bytes of a download over its mean time.
    DownloadRate,
    /// Proportional set size of a client, mean over its run.
    Pss,
}

impl CellMetric {
    /// All of them.
    pub const ALL: [CellMetric; 25] = [
        CellMetric::Rate,
        CellMetric::P50,
        CellMetric::P99,
        CellMetric::MeanLatency,
        CellMetric::First,
        CellMetric::AfterRest,
        CellMetric::Cpu,
        CellMetric::Elapsed,
        CellMetric::Wall,
        CellMetric::Memory,
        CellMetric::VirtualMemory,
        CellMetric::Throughput,
        CellMetric::Errors,
        CellMetric::InFlight,
        CellMetric::Deviation,
        CellMetric::Missed,
        CellMetric::Longest,
        CellMetric::Shortest,
        CellMetric::MeanRun,
        CellMetric::Exponent,
        CellMetric::Socket,
        CellMetric::Setup,
        CellMetric::Download,
        CellMetric::DownloadRate,
        CellMetric::Pss,
    ];

    /// Its name in experiments and in `plan.json`.
    pub fn name(self) -> &'static str {
        match self {
            CellMetric::Rate => "rate",
            CellMetric::P50 => "p50",
            CellMetric::P99 => "p99",
            CellMetric::MeanLatency => "mean-latency",
            CellMetric::First => "first",
            CellMetric::AfterRest => "after-rest",
            CellMetric::Cpu => "cpu",
            CellMetric::Elapsed => "elapsed",
            CellMetric::Wall => "wall",
            CellMetric::Memory => "memory",
            CellMetric::VirtualMemory => "virtual-memory",
            CellMetric::Throughput => "throughput",
            CellMetric::Errors => "errors",
            CellMetric::InFlight => "in-flight",
            CellMetric::Deviation => "deviation",
            CellMetric::Missed => "missed",
            CellMetric::Longest => "longest",
            CellMetric::Shortest => "shortest",
            CellMetric::MeanRun => "mean-run",
            CellMetric::Exponent => "exponent",
            CellMetric::Socket => "socket",
            CellMetric::Setup => "setup",
            CellMetric::Download => "download",
            CellMetric::DownloadRate => "download-rate",
            CellMetric::Pss => "pss",
        }
    }

    /// What it is of.
    pub fn dimension(self) -> Dimension {
        match self {
            CellMetric::Rate => Dimension::Rate,
            CellMetric::Memory | CellMetric::VirtualMemory | CellMetric::Pss => Dimension::Bytes,
            CellMetric::Throughput | CellMetric::DownloadRate => Dimension::Throughput,
            CellMetric::Errors
            | CellMetric::InFlight
            | CellMetric::Deviation
            | CellMetric::Missed
            | CellMetric::Exponent => Dimension::Number,
            _ => Dimension::Time,
        }
    }

    /// Whether each block has a value of it, so that two cells have a ratio.
    pub fn is_of_blocks(self) -> bool {
        !matches!(
            self,
            CellMetric::Errors
                | CellMetric::Missed
                | CellMetric::Longest
                | CellMetric::Shortest
                | CellMetric::Exponent
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(id: &str, allocator: &str, threads: &str) -> Cell {
        let settings = [("allocator", allocator), ("threads", threads)];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Cell {
            id: id.to_owned(),
            subject: "mine".to_owned(),
            workload: "event".to_owned(),
            settings: settings.into(),
            ..Cell::default()
        }
    }

    fn setting(name: &str, values: [&str; 2]) -> PlannedSetting {
        PlannedSetting {
            name: name.to_owned(),
            values: values.map(str::to_owned).into(),
            ..PlannedSetting::default()
        }
    }

    #[test]
    fn a_setting_that_is_not_named_has_its_first_value() {
        let cells = [
            cell("a", "std", "1"),
            cell("b", "std", "8"),
            cell("c", "mimalloc", "8"),
        ];
        let settings = [
            setting("allocator", ["std", "mimalloc"]),
            setting("threads", ["1", "8"]),
        ];
        let named = |pairs: &[(&str, &str)]| Measurand {
            subject: "mine".to_owned(),
            workload: "event".to_owned(),
            settings: pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..Measurand::default()
        };
        let found = |pairs: &[(&str, &str)]| named(pairs).cell(&cells, &settings);
        assert_eq!(found(&[]), Named::Cell(&cells[0]));
        assert_eq!(found(&[("threads", "8")]), Named::Cell(&cells[1]));
        assert_eq!(found(&[("allocator", "mimalloc")]), Named::Cell(&cells[2]));
        assert_eq!(found(&[("threads", "2")]), Named::Nothing);
        let unknown = named(&[("threads", "8")]).cell(&cells, &[]);
        assert_eq!(unknown, Named::Several(vec![&cells[1], &cells[2]]));
    }

    #[test]
    fn a_plan_of_before_has_no_claims_and_a_claim_may_leave_out_all_but_its_words() {
        let written = serde_json::to_value(crate::Plan::default()).expect("a plan");
        assert_eq!(written.get("published"), None);
        let plan: crate::Plan = serde_json::from_value(written).expect("a plan of before");
        assert_eq!(plan.published, []);
        let claim = r#"{"text":"a","source":"b"}"#;
        let claim: PublishedClaim = serde_json::from_str(claim).expect("a claim");
        assert_eq!((claim.stated, claim.original), (Stated::Words, None));
    }

    #[test]
    fn every_metric_is_written_as_it_is_called() {
        for metric in CellMetric::ALL {
            let written = serde_json::to_value(metric).expect("a word");
            assert_eq!(written, metric.name());
        }
    }
}
