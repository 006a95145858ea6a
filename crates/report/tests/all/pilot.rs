//! What a pilot tells of the run that it is one of.

use std::collections::BTreeMap;

use prony_base::Nanos;
use prony_record::{PlannedVisits, Visit};
use prony_report::Run;
use prony_report::pilot::{by_first_trials, pilot};
use prony_stats::{WINDOWS, window_variance};

use crate::fixture;

fn of_pilot() -> Run {
    fixture::run(&fixture::four(), &[2, 400], 3)
}

#[test]
fn a_pilot_tells_what_trials_cost_and_how_they_vary() {
    let found = pilot(&of_pilot(), 10).expect("three blocks");
    // Three blocks a minute apart, of eight trials each.
    assert!((found.trial_s - 120.0 / 23.0).abs() < 1e-9, "{found:?}");
    assert!((found.spent_s - 24.0 * found.trial_s).abs() < 1e-9);
    let design = &found.design;
    assert_eq!(design.cost.windows, 10.0);
    assert!((design.cost.beside_s - 10.0 * (found.trial_s - 2.0)).abs() < 1e-9);
    assert_eq!((design.window_s, design.comparisons), (2.0, 6));
    // Rates are spread evenly over 1 % to either side: of a pair of logarithms the variance is 2 × 0.01² ÷ 3.
    let [noise] = design.noise[..] else {
        panic!("one workload: {design:?}")
    };
    assert!((2e-5..2e-4).contains(&noise.variance), "{noise:?}");
    // And their windows are even.
    assert!(noise.within < noise.variance / 100.0, "{noise:?}");
    assert_eq!(design.windows, WINDOWS);
    let spent = design.spend(1_800.0).expect("half an hour");
    assert_eq!(spent.window_s, WINDOWS[0], "{spent:?}");
    assert!(spent.seconds <= 1_800.0 && spent.blocks > 20, "{spent:?}");
}

#[test]
fn unevenness_within_windows_makes_them_longer() {
    let mut run = of_pilot();
    for trial in &mut run.trials {
        let load = trial.load.as_mut().expect("a report");
        for (at, count) in load.slices.completed.iter_mut().enumerate() {
            // By fifths of the window, 2 % up and down.
            let up = (at / 4) % 2 == 0;
            *count = *count * if up { 102 } else { 98 } / 100;
        }
    }
    let found = pilot(&run, 10).expect("three blocks");
    assert!(found.design.noise[0].within > 1e-5, "{found:?}");
    let spent = found.design.spend(1_800.0).expect("half an hour");
    assert!(spent.window_s > WINDOWS[0], "{spent:?}");
}

/// A pilot took more than half of a minute's budget.
#[test]
fn the_first_trial_of_each_server_tells_what_a_run_costs() {
    let mut first = fixture::run(&fixture::four(), &[2, 400], 1);
    for (trial, at) in first.trials.iter_mut().zip(0..) {
        trial.started_unix_ms = 7_500 * at;
    }
    let planned = of_pilot().plan;
    let told = |run: &Run| by_first_trials(run, &planned, Nanos::from_secs(1));
    let found = told(&first).expect("servers that are compared");
    // Eight trials, each 7.5 s after the one before, with windows of two seconds; a second of warm-up is beside these.
    let cost = found.design.cost;
    assert!(
        (cost.beside_s - 8.0 * (7.5 - 2.0 + 1.0)).abs() < 1e-9,
        "{cost:?}"
    );
    assert_eq!((cost.windows, found.design.comparisons), (8.0, 6));
    // Even windows: what is left is what others differ by.
    let [noise] = found.design.noise[..] else {
        panic!("one workload: {found:?}")
    };
    assert!((noise.variance.sqrt() - 0.032).abs() < 1e-3, "{noise:?}");
    let spent = found.design.spend(1_800.0).expect("half an hour");
    let (least, most) = (spent.detectable.0, spent.detectable_max.0);
    assert!(most > least && most < 2.0 * least, "{spent:?}");
    // Of programs, and where nothing is compared, it tells nothing.
    assert_eq!(told(&fixture::programs::runtime(1)), None);
    assert_eq!(told(&fixture::run(&fixture::four()[..1], &[2], 1)), None);
}

/// Of each trial the ratio varies by both of its sides, and an uneven baseline makes every comparison uneven.
#[test]
fn the_noise_of_one_side_was_taken_for_that_of_both() {
    let mut run = of_pilot();
    let reference = run.plan.reference.clone().expect("a reference");
    let cells = run.plan.cells.iter();
    let of_reference = cells.filter(|cell| cell.subject == reference);
    let of_reference: Vec<String> = of_reference.map(|cell| cell.id.clone()).collect();
    let mut own = 0.0;
    for trial in &mut run.trials {
        let load = trial.load.as_mut().expect("a report");
        let is_uneven = of_reference.contains(&trial.cell);
        for (at, count) in load.slices.completed.iter_mut().enumerate() {
            *count = if is_uneven && (at / 4) % 2 == 0 {
                12_000
            } else {
                10_000
            };
        }
        let counts: Vec<f64> = load.slices.completed.iter().map(|n| *n as f64).collect();
        own = window_variance(&counts).map_or(own, |of| of.max(own));
    }
    let within = pilot(&run, 10).expect("three blocks").design.noise[0].within;
    // Two sides, of which one varies: on average over the trials of both it is twice the half.
    assert!((within / own - 1.0).abs() < 1e-9, "{within} {own}");
}

#[test]
fn of_programs_only_the_number_of_blocks_is_chosen_and_of_nothing_nothing() {
    let programs = fixture::programs::runtime(3);
    let found = pilot(&programs, 4).expect("three blocks");
    assert_eq!(found.design.cost.windows, 0.0);
    assert_eq!(found.design.windows.len(), 1);
    assert_eq!(pilot(&Run::default(), 4), None);
    // What was measured once varies by nothing that is known.
    assert_eq!(pilot(&fixture::run(&fixture::four(), &[2], 1), 4), None);
}

/// The pilot in turns of 200 ms, with the rate of each visit what `speed` says of its subject's number and its round.
fn in_turns(speed: impl Fn(usize, usize) -> f64) -> Run {
    let mut run = of_pilot();
    run.plan.visits = Some(PlannedVisits {
        length_ns: 200_000_000,
        lead_in_ns: 20_000_000,
        ..PlannedVisits::default()
    });
    let subjects: Vec<String> = run.plan.subjects.iter().map(|s| s.id.clone()).collect();
    let of: BTreeMap<&str, usize> = run
        .plan
        .cells
        .iter()
        .filter_map(|cell| {
            Some((
                &*cell.id,
                subjects.iter().position(|id| *id == cell.subject)?,
            ))
        })
        .collect();
    for trial in &mut run.trials {
        let subject = of[&*trial.cell];
        let visit = |round| Visit {
            window_ns: 200_000_000,
            completed: (2_000.0 * speed(subject, round)) as u64,
            ..Visit::default()
        };
        trial.visits = (0..10).map(visit).collect();
    }
    run
}

#[test]
fn what_a_round_has_in_common_makes_no_windows_longer() {
    let within = |run: &Run| pilot(run, 10).expect("three blocks").design.noise[0].within;
    // The machine is now slow and now fast, for all alike.
    let weather = |_: usize, round: usize| if round.is_multiple_of(2) { 1.0 } else { 0.5 };
    assert!(within(&in_turns(weather)) < 1e-9);
    // Each by itself, 10 % to either side.
    let own = |subject: usize, round: usize| match (subject + round) % 2 {
        0 => 1.1,
        _ => 0.9,
    };
    let uneven = within(&in_turns(own));
    assert!((1e-4..1e-1).contains(&uneven), "{uneven}");
    // A second of window takes its lead-ins, too: 230 ms for each 200.
    let design = pilot(&in_turns(own), 10).expect("three blocks").design;
    assert!((design.cost.windows - 11.5).abs() < 1e-9, "{design:?}");
}
