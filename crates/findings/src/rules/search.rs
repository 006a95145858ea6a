//! P031, and the part of P001 that is about searches for a highest rate.

use prony_record::{RateSearch, StepOutcome, Trial};

use super::seen::{Seen, worst};
use crate::code::Code;
use crate::finding::{Evidence, Finding, Severity, Unit};
use crate::records::Case;

const SHORT: (&str, &str) = (
    "Above this rate the generator did not keep up, or was itself late: the subject meets the objective at least up to \
     here.",
    "Give the generator more cores or a quieter machine; read the rate as \"at least\".",
);
const NOWHERE: (&str, &str) = (
    "The objective was missed even at the lowest rate at which a step has enough requests to decide: there is no rate \
     to report.",
    "Relax the objective (a longer latency, a lower percentile), or use longer steps (`duration` of the workload), \
     which allow lower rates.",
);
const LATE_EVERYWHERE: (&str, &str) = (
    "At every rate that was tried the generator itself was late by more than half of what the objective allows: \
     nothing is known about the subject.",
    "Measure on a quieter machine, give the generator a core of its own, or allow a longer latency.",
);

/// P001 of a search: the generator was the limit in half of its rounds or more.
pub(super) fn generator_short(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P001, case.measured(), |trial| {
        let search = trial.search.as_ref()?;
        let highest = search.highest.filter(|highest| highest.at_least)?;
        let steps = search.steps.iter();
        let short = steps.filter(|step| step.outcome == StepOutcome::GeneratorShort);
        let evidence = vec![
            Evidence::number("kept up to", highest.rate_per_s, Unit::PerSecond),
            Evidence::count(
                "steps that the generator did not keep up with",
                short.count() as u64,
            ),
            Evidence::count("steps", search.steps.len() as u64),
        ];
        Some(Seen::note(1.0, SHORT, evidence).severity(Severity::Bound))
    })
}

/// P031: a search that ended without a rate.
pub(super) fn nowhere(case: &Case<'_>) -> Vec<Finding> {
    if !case.is_search() {
        return Vec::new();
    }
    worst(case, Code::P031, case.measured(), look)
}

fn look(trial: &Trial) -> Option<Seen> {
    let search = trial.search.as_ref()?;
    if search.highest.is_some() {
        return None;
    }
    let text = match is_by_generator(search) {
        true => LATE_EVERYWHERE,
        false => NOWHERE,
    };
    let by_rate = |a: &&prony_record::RateStep, b: &&prony_record::RateStep| {
        a.rate_per_s.total_cmp(&b.rate_per_s)
    };
    let mut evidence = vec![Evidence::text("objective", search.objective.clone())];
    if let Some(lowest) = search.steps.iter().min_by(by_rate) {
        evidence.push(Evidence::number(
            "lowest rate",
            lowest.rate_per_s,
            Unit::PerSecond,
        ));
        evidence.push(Evidence::text("there", lowest.why.clone()));
    }
    Some(Seen::note(1.0, text, evidence).severity(Severity::Invalid))
}

fn is_by_generator(search: &RateSearch) -> bool {
    let last = search.steps.last();
    last.is_some_and(|step| step.outcome == StepOutcome::GeneratorShort)
}
