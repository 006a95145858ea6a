//! A line of JSON for each second of a load, while it goes on.

use prony_base::PerSecond;
use prony_load::{LoadInterval, LoadReport, LoadSpec};
use prony_record::{LatencyNs, RequirementOutcome, SCHEMA};
use serde::Serialize;

use super::output::{FinishedLoad, LinesFile, LoadOutput};

/// The lines.
pub struct JsonLines {
    file: LinesFile,
    /// Of each step of a scenario its own name, and that of its flow.
    steps: Vec<(String, String)>,
}

/// The requests of a step that ended in a second.
#[derive(Debug, Serialize)]
struct StepOfSecond<'a> {
    flow: &'a str,
    name: &'a str,
    completed: u64,
    unexpected_status: u64,
    failed: u64,
}

/// The line of a second, or of what was left of the window and came after it.
#[derive(Debug, Serialize)]
struct SecondLine<'a> {
    schema: u32,
    /// Its number, from 0.
    second: u64,
    /// From the start of the window.
    start_ns: u64,
    end_ns: u64,
    completed: u64,
    failed: u64,
    /// As `--require errors` counts them.
    errors: u64,
    rate_per_s: f64,
    received_bytes: u64,
    sent_bytes: u64,
    latency_ns: LatencyNs,
    /// How late the generator itself sent, at the 99th percentile.
    lateness_p99_ns: u64,
    connections_open: u64,
    outstanding: u64,
    waiting: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<StepOfSecond<'a>>,
}

/// The report of a load, with what was required of it. Also the last line.
#[derive(Debug, Serialize)]
pub struct WholeReport<'a> {
    #[serde(flatten)]
    report: &'a LoadReport,
    #[serde(skip_serializing_if = "<[RequirementOutcome]>::is_empty")]
    requirements: &'a [RequirementOutcome],
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    script_failed: Option<&'a str>,
}

impl<'a> WholeReport<'a> {
    /// Of a run that has ended.
    pub fn new(finished: &FinishedLoad<'a>) -> WholeReport<'a> {
        WholeReport {
            report: &finished.outcome.report,
            requirements: finished.requirements,
            stopped: finished.stopped,
            script_failed: finished.script_failed,
        }
    }
}

/// The last line.
#[derive(Debug, Serialize)]
struct LastLine<'a> {
    schema: u32,
    report: WholeReport<'a>,
}

impl JsonLines {
    /// Lines for `file`, of a load by `spec`.
    pub fn new(file: LinesFile, spec: &LoadSpec) -> JsonLines {
        let flows = spec.scenario.iter().flat_map(|scenario| &scenario.flows);
        let steps = flows.flat_map(|flow| {
            let steps = flow.steps.iter();
            steps.map(|step| (step.name.clone(), flow.name.clone()))
        });
        JsonLines {
            file,
            steps: steps.collect(),
        }
    }

    fn line(&mut self, line: String) -> anyhow::Result<()> {
        self.file.write(&(line + "\n"))
    }

    /// The requests of each step that ended.
    fn steps(&self, interval: &LoadInterval) -> Vec<StepOfSecond<'_>> {
        let both = self.steps.iter().zip(&interval.steps);
        both.map(|((name, flow), of)| StepOfSecond {
            flow,
            name,
            completed: of.completed,
            unexpected_status: of.unexpected_status,
            failed: of.failed,
        })
        .collect()
    }
}

impl LoadOutput for JsonLines {
    fn interval(&mut self, interval: &LoadInterval) -> anyhow::Result<()> {
        let line = serde_json::to_string(&SecondLine {
            schema: SCHEMA,
            second: interval.number,
            start_ns: interval.start.0,
            end_ns: interval.end.0,
            completed: interval.completed,
            failed: interval.failed,
            errors: interval.errors,
            rate_per_s: PerSecond::of(interval.completed, interval.end - interval.start).0,
            received_bytes: interval.received_bytes,
            sent_bytes: interval.sent_bytes,
            latency_ns: interval.latency.summary(),
            lateness_p99_ns: interval.lateness.summary().p99,
            connections_open: interval.total.connections_open,
            outstanding: interval.total.outstanding,
            waiting: interval.total.waiting,
            steps: self.steps(interval),
        })?;
        self.line(line)
    }

    fn finish(&mut self, of: &FinishedLoad<'_>) -> anyhow::Result<()> {
        let line = LastLine {
            schema: SCHEMA,
            report: WholeReport::new(of),
        };
        self.line(serde_json::to_string(&line)?)
    }
}
