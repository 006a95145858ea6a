//! Searches for a highest rate: P001 and P031.

use prony_findings::{Code, Finding, Records, Severity, findings};
use prony_record::{
    FindMax, HighestRate, Plan, RateSearch, RateStep, SpreadKind, StepOutcome, Trial,
};

use super::rules::{evidence, good, only, plan};

fn searching() -> Plan {
    let mut plan = plan();
    plan.workloads[0].find_max = Some(FindMax {
        objective: "p99 < 10ms".to_owned(),
        below_ns: 10_000_000,
        step_ns: 1_000_000_000,
    });
    plan
}

fn step(rate_per_s: f64, outcome: StepOutcome) -> RateStep {
    RateStep {
        rate_per_s,
        outcome,
        why: "p99 is 12.0ms".to_owned(),
        ..RateStep::default()
    }
}

/// What is found of two trials whose search ended so.
pub fn found(highest: Option<HighestRate>, last: StepOutcome) -> Vec<Finding> {
    let searched = |cell: &str, block: u32| Trial {
        search: Some(RateSearch {
            objective: "p99 < 10ms".to_owned(),
            steps: vec![step(900.0, StepOutcome::Kept), step(500.0, last)],
            highest,
            ..RateSearch::default()
        }),
        ..good(cell, block)
    };
    let trials: Vec<Trial> = (0..2)
        .flat_map(|block| [searched("a ping", block), good("b ping", block)])
        .collect();
    let plan = searching();
    let all = findings(&Records::new(&plan, &trials));
    all.into_iter().filter(|of| of.cell == "a ping").collect()
}

pub const HIGHEST: HighestRate = HighestRate {
    rate_per_s: 900.0,
    low: 880.0,
    high: 910.0,
    spread: SpreadKind::Interval,
    at_least: false,
};

#[test]
fn a_search_that_found_a_rate_is_nothing_to_be_told() {
    let found = found(Some(HIGHEST), StepOutcome::Missed);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn p001_a_search_that_the_generator_ended_is_a_bound() {
    let at_least = HighestRate {
        at_least: true,
        ..HIGHEST
    };
    let found = found(Some(at_least), StepOutcome::GeneratorShort);
    let finding = only(Code::P001, Severity::Bound, &found);
    assert_eq!(evidence(&finding, "kept up to"), 900.0);
    assert_eq!(finding.blocks, [0, 1]);
}

#[test]
fn p031_a_search_without_a_rate_is_invalid_and_says_whose_doing_it_is() {
    let by_server = found(None, StepOutcome::Missed);
    let finding = only(Code::P031, Severity::Invalid, &by_server);
    assert_eq!(evidence(&finding, "lowest rate"), 500.0);
    assert!(
        finding
            .meaning
            .contains("was missed even at the lowest rate")
    );
    let by_generator = found(None, StepOutcome::GeneratorShort);
    let finding = only(Code::P031, Severity::Invalid, &by_generator);
    assert!(finding.meaning.contains("the generator itself was late"));
}
