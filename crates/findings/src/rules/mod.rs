//! One function a finding, and the table of them.
//!
//! A rule looks at one [`Case`] and knows nothing of the others. Most look at each measured
//! trial by itself and tell of the worst one ([`worst`]); the finding then names all blocks.

mod answers;
mod clients;
mod crowd;
mod machine;
mod open;
mod programs;
mod saturation;
mod search;
mod services;
mod stability;

use crate::code::Code;
use crate::finding::{Evidence, Finding, Severity};
use crate::records::{Case, Records};
use prony_record::Trial;
pub use services::keeps_nothing;

/// The thresholds of all rules; the pages give the same numbers.
pub mod limits {
    /// P001: a side is saturated from this share of the window on.
    pub const SATURATED_SHARE: f64 = 0.95;
    /// P001: and the generator's own threads used this share of the window.
    pub const SATURATED_OWN_SHARE: f64 = 0.5;
    /// P001: part of the latencies, or of the connections' time, that is the generator's own from which it shows.
    pub const GENERATOR_SHARE: f64 = 0.20;
    /// P001: the same of what is only known to be at most so much.
    pub const GENERATOR_BOUND_SHARE: f64 = 0.50;
    /// P001: part of a cell's trials up to which it is a note: neither a median nor a mean over blocks is made by so few.
    pub const BOUND_BLOCKS_SHARE: f64 = 0.10;
    /// P003: closings an answer from which keep-alive is not honoured.
    pub const CLOSED_SHARE: f64 = 0.01;
    /// P003: closings an answer from which keep-alive is limited.
    pub const CLOSED_SHARE_INFO: f64 = 0.0001;
    /// P005: connections in flight under this part of those asked for are a gap.
    pub const IN_FLIGHT_SHARE: f64 = 0.80;
    /// P005: what is allowed above all connections, beside the edges of the window.
    pub const IN_FLIGHT_OVER: f64 = 0.02;
    /// P002, P006: requests that failed make a cell invalid from this share on.
    pub const FAILED_SHARE: f64 = 0.01;
    /// P007: CPU time over that of the declared cores.
    pub const CORES_OVER: f64 = 1.05;
    /// P009: drift of the canary, at the median of the trials.
    pub const CANARY_DRIFT: f64 = 0.02;
    /// P009: part of the measured time that the hypervisor took, or in which a thread waited for a core.
    pub const WAIT_SHARE: f64 = 0.01;
    /// P010: part of the blocks that failed, from which the others do not stand for the cell.
    pub const FAILED_BLOCKS_SHARE: f64 = 0.5;
    /// P012: bytes an answer over those of the reference, or the other way round.
    pub const BYTES_RATIO: f64 = 1.20;
    /// P013: a run shorter than this is mostly the start of a process and of its clock.
    pub const ELAPSED_NS_MIN: u64 = 5_000_000;
    /// P014: CPU time under this part of what its threads could have used.
    pub const RUNNING_SHARE: f64 = 0.80;
    /// P014: shorter runs are not looked at: the kernel's accounting is too coarse for them.
    pub const RUNNING_WALL_NS_MIN: u64 = 20_000_000;
    /// P016: smaller peaks are mostly the program itself, and alike by nature.
    pub const PEAK_BYTES_MIN: u64 = 16 << 20;
    /// P016: blocks in which peaks are the same, at the least.
    pub const PEAK_BLOCKS_MIN: usize = 2;
    /// P017: missed deadlines that the evidence names one by one.
    pub const MISSED_NAMED_MAX: usize = 5;
    /// P006: kinds of failures that the evidence names, by a client's own names.
    pub const KINDS_NAMED_MAX: usize = 6;
    /// P012: how far bytes of a body may be off those of the page: the last answers may be cut.
    pub const PAGE_OFF: f64 = 0.01;
    /// P019: what the start and the end of a client may take beside the time by its own clock.
    pub const BESIDE_NS: f64 = 5e8;
    /// P019: and this part of that time.
    pub const BESIDE_SHARE: f64 = 0.10;
    /// P019: elapsed over the whole run, from which it cannot be.
    pub const ELAPSED_OVER: f64 = 1.01;
    /// P019: how far the time for which a client asked may be off what it was told.
    pub const DURATION_SHARE: f64 = 0.05;
    /// P019: and at the least this much.
    pub const DURATION_NS: f64 = 1e8;
    /// P019: how far a rate that a client gives may be off count ÷ elapsed.
    pub const RATE_OFF: f64 = 0.02;
    /// P019: what rounding of printed figures explains.
    pub const ROUNDED: f64 = 1.02;
    /// P022: how far the number of latencies may be off that of answers.
    pub const LATENCY_OFF: f64 = 0.01;
    /// P028: a freeze is this many times the median latency.
    pub const FROZEN_LATENCIES: f64 = 3.0;
    /// P028: or, where the median itself is of frozen requests, this part of the window.
    pub const FROZEN_SHARE: f64 = 0.30;
    /// P030: another generator's rate may lie so far beyond those of the blocks.
    pub const GENERATORS_APART: f64 = 0.10;
}

/// A rule.
#[derive(Clone, Copy)]
enum Rule {
    /// That looks at a cell.
    Cell(fn(&Case<'_>) -> Vec<Finding>),
    /// That looks at the whole run.
    Run(fn(&Records<'_>) -> Option<Finding>),
}

/// Which rule finds what.
const RULES: &[(Code, Rule)] = &[
    (Code::P001, Rule::Cell(saturation::generator_saturated)),
    (Code::P002, Rule::Cell(answers::refused_or_reset)),
    (Code::P003, Rule::Cell(answers::keep_alive)),
    (Code::P004, Rule::Cell(machine::listen_overflow)),
    (Code::P005, Rule::Cell(saturation::not_in_flight)),
    (Code::P006, Rule::Cell(answers::failed)),
    (Code::P007, Rule::Cell(machine::more_cores)),
    (Code::P008, Rule::Cell(stability::unstable)),
    (Code::P009, Rule::Run(machine::drifted)),
    (Code::P010, Rule::Cell(answers::not_measured)),
    (Code::P011, Rule::Cell(answers::capability)),
    (Code::P012, Rule::Cell(crowd::other_work)),
    (Code::P013, Rule::Cell(programs::too_short)),
    (Code::P014, Rule::Cell(programs::not_running)),
    (Code::P015, Rule::Cell(programs::checksum_differs)),
    (Code::P016, Rule::Cell(programs::same_peak)),
    (Code::P017, Rule::Cell(programs::deadlines_missed)),
    (Code::P018, Rule::Cell(clients::counts_disagree)),
    (Code::P019, Rule::Cell(clients::own_clock)),
    (Code::P020, Rule::Cell(clients::peer_saturated)),
    (Code::P021, Rule::Cell(clients::crowded)),
    (Code::P022, Rule::Cell(clients::latency_incomplete)),
    (Code::P023, Rule::Cell(services::uncounted)),
    (Code::P024, Rule::Cell(services::lost)),
    (Code::P025, Rule::Cell(services::invented)),
    (Code::P026, Rule::Cell(services::shared_cores)),
    (Code::P027, Rule::Cell(services::more_instances)),
    (Code::P028, Rule::Cell(stability::froze)),
    (Code::P029, Rule::Cell(open::overloaded)),
    (Code::P030, Rule::Cell(saturation::other_generator)),
    (Code::P031, Rule::Cell(search::nowhere)),
];

/// All findings, by cell in the plan's order and by code; then those on the run.
pub fn findings(records: &Records<'_>) -> Vec<Finding> {
    let of_cell = |case: Case<'_>| -> Vec<Finding> {
        let rules = RULES.iter().filter_map(|(_, rule)| match rule {
            Rule::Cell(rule) => Some(rule(&case)),
            Rule::Run(_) => None,
        });
        rules.flatten().collect()
    };
    let of_run = RULES.iter().filter_map(|(_, rule)| match rule {
        Rule::Run(rule) => rule(records),
        Rule::Cell(_) => None,
    });
    records.cases().flat_map(of_cell).chain(of_run).collect()
}

/// A note on the whole run.
fn of_run(code: Code, text: (&'static str, &'static str), evidence: Vec<Evidence>) -> Finding {
    Finding {
        code,
        severity: Severity::Note,
        cell: String::new(),
        subject: String::new(),
        blocks: Vec::new(),
        evidence,
        meaning: text.0,
        remedy: text.1,
    }
}

/// What a rule saw in one trial.
struct Seen {
    severity: Severity,
    /// How bad within the severity; the trial with the highest gives the evidence.
    badness: f64,
    evidence: Vec<Evidence>,
    meaning: &'static str,
    remedy: &'static str,
}

impl Seen {
    /// That the figures stand; [`Seen::severity`] says where they do not.
    fn note(badness: f64, text: (&'static str, &'static str), evidence: Vec<Evidence>) -> Seen {
        Seen {
            severity: Severity::Note,
            badness,
            evidence,
            meaning: text.0,
            remedy: text.1,
        }
    }

    fn severity(self, severity: Severity) -> Seen {
        Seen { severity, ..self }
    }
}

/// One finding from what was seen in some trials; none where nothing was.
fn worst<'a>(
    case: &Case<'_>,
    code: Code,
    trials: impl Iterator<Item = &'a Trial>,
    look: impl Fn(&Trial) -> Option<Seen>,
) -> Vec<Finding> {
    let mut blocks = Vec::new();
    let mut worst: Option<Seen> = None;
    for trial in trials {
        let Some(seen) = look(trial) else { continue };
        blocks.push(trial.block);
        let worse = |than: &Seen| {
            (seen.severity, seen.badness.max(0.0)) > (than.severity, than.badness.max(0.0))
        };
        if worst.as_ref().is_none_or(worse) {
            worst = Some(seen);
        }
    }
    worst
        .map(|seen| finding(case, code, blocks, seen))
        .into_iter()
        .collect()
}

fn finding(case: &Case<'_>, code: Code, blocks: Vec<u32>, seen: Seen) -> Finding {
    Finding {
        code,
        severity: seen.severity,
        cell: case.cell.id.clone(),
        subject: case.cell.subject.clone(),
        blocks,
        evidence: seen.evidence,
        meaning: seen.meaning,
        remedy: seen.remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_rule_and_they_stand_in_order() {
        let with_rule: Vec<Code> = RULES.iter().map(|(code, _)| *code).collect();
        assert_eq!(with_rule, Code::ALL);
    }
}
