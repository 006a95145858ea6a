//! P002, P003, P006, P010 and P011: what came back, and what did not.

use prony_record::{CheckLevel, LoadReport, Outcome, Trial};

use super::clients;
use super::seen::{Seen, worst};
use crate::code::Code;
use crate::finding::{Evidence, Finding, Severity, Value};
use crate::limits;
use crate::records::Case;

const REFUSED: (&str, &str) = (
    "The subject or its kernel refused or reset connections under load: part of what was measured is how it turns work \
     away.",
    "Raise the subject's backlog and its limits on connections and open files, or measure with fewer \
     connections.",
);

/// P002: at least one connection was refused or reset, in connecting or in the window; invalid from 1 % of requests that
/// failed, of whichever kind.
pub(super) fn refused_or_reset(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P002, case.measured(), |trial| {
        let counts = &trial.load.as_ref()?.counts;
        let seen = [
            ("refused while connecting", counts.connect_failed.refused),
            ("reset while connecting", counts.connect_failed.reset),
            ("refused in the window", counts.failed.refused),
            ("reset in the window", counts.failed.reset),
        ];
        let load = trial.load.as_ref()?;
        counted(&seen, REFUSED).map(|seen| seen.severity(by_share(failed_share(case, load))))
    })
}

/// The part of the requests of the window that have no right answer, of whichever kind; all, where there is none to rate.
fn failed_share(case: &Case<'_>, load: &LoadReport) -> f64 {
    let counts = &load.counts;
    let failed = [
        counts.failed.total(),
        counts.unexpected_status,
        alive(case, counts.abandoned),
    ];
    let failed = failed.into_iter().fold(0, u64::saturating_add) as f64;
    let all = failed + counts.completed.saturating_sub(counts.unexpected_status) as f64;
    match all > 0.0 {
        true => failed / all,
        false => f64::from(u8::from(has_none(load))),
    }
}

/// Whether no request ended in the window or after it, and some had failed before: the subject had gone.
fn has_none(load: &LoadReport) -> bool {
    let counts = &load.counts;
    let failed_before = counts.warmup_failed > 0 || counts.connect_failed.total() > 0;
    counts.completed == 0 && counts.drained == 0 && failed_before
}

/// What failures mean for the figures by their share of all requests.
pub(super) fn by_share(share: f64) -> Severity {
    match share >= limits::FAILED_SHARE {
        true => Severity::Invalid,
        false => Severity::Note,
    }
}

/// The counts that are not zero; nothing where all are.
fn counted(counts: &[(&str, u64)], text: (&'static str, &'static str)) -> Option<Seen> {
    let total = counts
        .iter()
        .fold(0_u64, |sum, &(_, count)| sum.saturating_add(count));
    let some = counts.iter().filter(|&&(_, count)| count > 0);
    let evidence = some
        .map(|&(what, count)| Evidence::count(what, count))
        .collect();
    (total > 0).then(|| Seen::note(total as f64, text, evidence))
}

const CLOSES: (&str, &str) = (
    "The subject closes connections although keep-alive was asked for: rate and CPU include opening \
     connections again and again. A latency does so only where requests have a schedule.",
    "Turn keep-alive on in the subject, or compare it only with subjects that close as well.",
);
const KEEPS_LESS: (&str, &str) = (
    "The subject keeps connections, but closes each after a number of requests or some time: a small \
     part of rate and CPU is opening connections.",
    "Raise the subject's limit of requests a connection (nginx: keepalive_requests) if that is not \
     meant to be measured.",
);

/// P003: the server closed for at least 1 % of its answers, or failed the check of keep-alive;
/// a note from one closing in 10,000 answers.
pub(super) fn keep_alive(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P003, case.measured(), |trial| {
        let load = trial.load.as_ref()?;
        let check = failed_check(trial, "keep-alive");
        let share = closed_share(load);
        if check.is_none() && share < limits::CLOSED_SHARE_INFO {
            return None;
        }
        let mut evidence = vec![
            Evidence::count("closed by the server", load.connections_closed_by_server),
            Evidence::count("requests answered", answered(load)),
        ];
        evidence.extend(check.map(|detail| Evidence::text("check of keep-alive", detail)));
        if check.is_some() || share >= limits::CLOSED_SHARE {
            return Some(Seen::note(share, CLOSES, evidence));
        }
        Some(Seen::note(share, KEEPS_LESS, evidence))
    })
}

fn closed_share(load: &LoadReport) -> f64 {
    match (load.connections_closed_by_server, answered(load)) {
        (0, _) => 0.0,
        (_, 0) => 1.0,
        (closed, answers) => closed as f64 / answers as f64,
    }
}

/// Answered in the whole run, as closings are counted over the whole run.
fn answered(load: &LoadReport) -> u64 {
    let counts = &load.counts;
    counts
        .warmup_completed
        .saturating_add(counts.completed)
        .saturating_add(counts.drained)
}

fn failed_check<'a>(trial: &'a Trial, name: &str) -> Option<&'a str> {
    let failed = |check: &&prony_record::CheckResult| check.name == name && !check.passed;
    trial
        .verification
        .iter()
        .find(failed)
        .map(|check| check.detail.as_str())
}

const FAILED: (&str, &str) = (
    "Some requests got no correct answer. They are excluded from the rate and from the latencies, so the slowest may \
     be missing.",
    "Check the subject's log of this trial; raise the time-out if late answers should count.",
);
const MANY_FAILED: (&str, &str) = (
    "At least one in a hundred requests got no correct answer: the rate is that of the others, and no percentile shows \
     how long these would have taken.",
    "Check the subject's log of this trial; lower the load, or raise the time-out if late answers should count.",
);
const NONE: (&str, &str) = (
    "No request ended in the window, and before it some had failed: there is no rate.",
    "Check the subject's log of this trial; lower the load.",
);
const WRONG: (&str, &str) = (
    "The subject gave wrong answers under load: its rate is not that of the requested work.",
    "Fix the subject; its log of this trial may show what happened.",
);

/// What failed after the window; nothing where the subject was killed at its end.
fn alive(case: &Case<'_>, failed: u64) -> u64 {
    if case.is_killed() { 0 } else { failed }
}

/// P006: any failure but refused and reset ones; a wrong answer, or from 1 % of failures of all kinds on, makes the cell
/// invalid.
pub(super) fn failed(case: &Case<'_>) -> Vec<Finding> {
    if case.is_client() {
        return clients::failed(case);
    }
    worst(case, Code::P006, case.measured(), |trial| {
        let load = trial.load.as_ref()?;
        let (counts, failed, connect) = (
            &load.counts,
            &load.counts.failed,
            &load.counts.connect_failed,
        );
        let seen = counted(
            &[
                ("wrong answers", failed.wrong_answer),
                ("answers that failed a check", failed.check),
                ("unexpected status", counts.unexpected_status),
                ("timed out", failed.timeout),
                ("closed before the answer was whole", failed.closed),
                ("not HTTP, or over a limit", failed.protocol),
                ("errors of the system", failed.system),
                ("failed before the window", counts.warmup_failed),
                ("failed after the window", alive(case, counts.drain_failed)),
                ("never answered", alive(case, counts.abandoned)),
                ("timed out while connecting", connect.timeout),
                ("closed while connecting", connect.closed),
                ("errors of the system while connecting", connect.system),
            ],
            FAILED,
        )?;
        let share = failed_share(case, load);
        let mut seen = seen.severity(by_share(share));
        seen.evidence
            .push(Evidence::count("completed", counts.completed));
        if failed.wrong_answer > 0 || failed.check > 0 {
            (seen.meaning, seen.remedy) = WRONG;
            return Some(seen.severity(Severity::Invalid));
        }
        if seen.severity == Severity::Invalid {
            (seen.meaning, seen.remedy) = if has_none(load) { NONE } else { MANY_FAILED };
        }
        Some(seen)
    })
}

const NOT_MEASURED: (&str, &str) = (
    "The trial failed; what it had measured until then is excluded from all figures.",
    "Read the subject's whole log in the run directory's logs folder; fix the cause, then run again.",
);

const OTHERS_MEASURED: &str =
    "A trial failed and is excluded: the figures are those of the other blocks.";

/// P010: a trial failed. Where fewer than half of the blocks did, and none by a wrong answer, the others stand.
pub(super) fn not_measured(case: &Case<'_>) -> Vec<Finding> {
    let mut found = failures(case);
    let ended = case.trials().iter();
    let ended = ended.filter(|trial| trial.outcome != Outcome::Interrupted);
    let (ended, wrong) = (ended.count(), case.trials().iter().any(|t| is_wrong(t)));
    for finding in &mut found {
        let failed = finding.blocks.len();
        if !wrong && (failed as f64) < limits::FAILED_BLOCKS_SHARE * ended as f64 {
            finding.severity = Severity::Note;
            finding.meaning = OTHERS_MEASURED;
        }
        if failed < ended {
            let measured = format!("{} of {ended}", ended - failed);
            let measured = Evidence::text("blocks measured", measured);
            finding.evidence.insert(0, measured);
        }
    }
    found
}

/// Whether a trial failed because an answer was not what it must be.
fn is_wrong(trial: &Trial) -> bool {
    matches!(
        trial.outcome,
        Outcome::Failed {
            phase: prony_record::Phase::Verify,
            ..
        }
    )
}

fn failures(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P010, case.trials().iter().copied(), |trial| {
        let Outcome::Failed { phase, reason } = &trial.outcome else {
            return None;
        };
        let mut evidence = vec![
            Evidence::text("phase", phase_name(*phase)),
            Evidence::text("reason", reason.clone()),
        ];
        let failed =
            |check: &&prony_record::CheckResult| check.level == CheckLevel::Must && !check.passed;
        evidence.extend(
            trial.verification.iter().find(failed).map(|check| {
                Evidence::text(format!("check `{}`", check.name), check.detail.clone())
            }),
        );
        if !trial.log_tail.is_empty() {
            evidence.push(Evidence {
                what: "last lines of its output".to_owned(),
                value: Value::Lines {
                    lines: trial.log_tail.clone(),
                },
            });
        }
        // All are as bad; the first block gives the evidence.
        Some(Seen::note(0.0, NOT_MEASURED, evidence).severity(Severity::Invalid))
    })
}

/// A phase as a sentence says it.
fn phase_name(phase: prony_record::Phase) -> &'static str {
    use prony_record::Phase;
    match phase {
        Phase::Prepare => "preparing",
        Phase::Start => "starting",
        Phase::Ready => "waiting until it is ready",
        Phase::Verify => "checking its answers",
        Phase::WarmUp => "warming up",
        Phase::Measure => "measuring",
        Phase::Search => "looking for the highest rate",
        Phase::Drain => "draining",
        Phase::Stop => "stopping",
    }
}

const LACKS: (&str, &str) = (
    "The subject lacks a feature that HTTP/1.1 servers commonly have. No figure here depends on it.",
    "Nothing, unless your clients need it.",
);

/// P011: a check of a capability failed, other than keep-alive (which is P003).
pub(super) fn capability(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P011, case.measured(), |trial| {
        let lacking = trial.verification.iter().filter(|check| {
            check.level == CheckLevel::Capability && !check.passed && check.name != "keep-alive"
        });
        let evidence: Vec<Evidence> = lacking
            .map(|check| Evidence::text(check.name.clone(), check.detail.clone()))
            .collect();
        (!evidence.is_empty()).then(|| Seen::note(evidence.len() as f64, LACKS, evidence))
    })
}
