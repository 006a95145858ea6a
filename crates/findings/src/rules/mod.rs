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
    /// P003: closings an answer from which keep-alive is not honoured.
    pub const CLOSED_SHARE: f64 = 0.01;
    /// P003: closings an answer from which keep-alive is limited.
    pub const CLOSED_SHARE_INFO: f64 = 0.0001;
    /// P005: connections in flight under this part of those asked for are a gap.
    pub const IN_FLIGHT_SHARE: f64 = 0.80;
    /// P005: what is allowed above all connections, beside the edges of the window.
    pub const IN_FLIGHT_OVER: f64 = 0.02;
    /// P006: answers with an unexpected status make a cell invalid from this share on.
    pub const UNEXPECTED_SHARE: f64 = 0.01;
    /// P007: CPU time over that of the declared cores.
    pub const CORES_OVER: f64 = 1.05;
    /// P008: (highest - lowest) / median of the blocks' rates.
    pub const BLOCKS_SPREAD: f64 = 0.10;
    /// P009: drift of the canary.
    pub const CANARY_DRIFT: f64 = 0.02;
    /// P009: drift of the canary from which the figures are suspect.
    pub const CANARY_DRIFT_SUSPECT: f64 = 0.10;
    /// P009: part of the window that the hypervisor took, or in which a thread waited for a core.
    pub const WAIT_SHARE: f64 = 0.01;
    /// P009: the same, from which the figures are suspect.
    pub const WAIT_SHARE_SUSPECT: f64 = 0.05;
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
}

/// A rule.
type Rule = fn(&Case<'_>) -> Vec<Finding>;

/// Which rule finds what.
const RULES: &[(Code, Rule)] = &[
    (Code::P001, saturation::generator_saturated),
    (Code::P002, answers::refused_or_reset),
    (Code::P003, answers::keep_alive),
    (Code::P004, machine::listen_overflow),
    (Code::P005, saturation::not_in_flight),
    (Code::P006, answers::failed),
    (Code::P007, machine::more_cores),
    (Code::P008, stability::unstable),
    (Code::P009, machine::drifted),
    (Code::P010, answers::not_measured),
    (Code::P011, answers::capability),
    (Code::P012, crowd::other_work),
    (Code::P013, programs::too_short),
    (Code::P014, programs::not_running),
    (Code::P015, programs::checksum_differs),
    (Code::P016, programs::same_peak),
    (Code::P017, programs::deadlines_missed),
    (Code::P018, clients::counts_disagree),
    (Code::P019, clients::own_clock),
    (Code::P020, clients::peer_saturated),
    (Code::P021, clients::crowded),
    (Code::P022, clients::latency_incomplete),
    (Code::P023, services::uncounted),
    (Code::P024, services::lost),
    (Code::P025, services::invented),
    (Code::P026, services::shared_cores),
    (Code::P027, services::more_instances),
    (Code::P028, stability::froze),
    (Code::P029, open::overloaded),
];

/// All findings, by cell in the plan's order and by code.
pub fn findings(records: &Records<'_>) -> Vec<Finding> {
    let of_cell = |case: Case<'_>| -> Vec<Finding> {
        RULES.iter().flat_map(|(_, rule)| rule(&case)).collect()
    };
    records.cases().flat_map(of_cell).collect()
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
    fn suspect(badness: f64, text: (&'static str, &'static str), evidence: Vec<Evidence>) -> Seen {
        Seen {
            severity: Severity::Suspect,
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
