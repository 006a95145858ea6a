//! Several runs of one experiment as one: what differs from run to run is in what is claimed.

use std::collections::BTreeSet;

use crate::fixture::{self, subject};
use prony_report::compare::interleaved;
use prony_report::{Run, joined, render};

/// Six blocks at this time, in which the second server has so much of its rate.
fn run(started_unix_ms: u64, part: f64) -> Run {
    let subjects = [
        subject("rust/axum", "axum", 100_000.0),
        subject("go/fasthttp", "fasthttp", 90_000.0 * part),
    ];
    let mut run = fixture::run(&subjects, &[10], 6);
    run.environment.started_unix_ms = started_unix_ms;
    run
}

fn rate(run: &Run) -> (f64, (f64, f64)) {
    let compared = interleaved(run, "rust/axum", "go/fasthttp");
    let rate = compared.figures.iter().find(|of| of.metric == "rate");
    let rate = rate.expect("a rate");
    (rate.ratio, rate.interval.expect("an interval"))
}

#[test]
fn blocks_are_added_and_what_runs_differ_by_widens_the_interval() {
    let mut runs = vec![run(0, 1.0), run(1, 1.0), run(2, 1.0)];
    for run in &mut runs {
        run.plan.notes = vec!["of all".to_owned()];
    }
    runs[0].plan.notes.push("of the first".to_owned());
    let alike = joined(runs).expect("the same");
    let [of_all, _] = &alike.plan.notes[..] else {
        panic!("{:?}", alike.plan.notes)
    };
    assert_eq!(of_all, "of all");
    assert_eq!((alike.plan.blocks, alike.plan.order.len()), (18, 18));
    let all: Vec<u32> = alike.trials.iter().map(|trial| trial.block).collect();
    assert_eq!(all.iter().max(), Some(&17));
    assert_eq!(all.iter().filter(|block| **block == 7).count(), 2);
    // Each trial has the histogram of its own run.
    let names = alike
        .trials
        .iter()
        .filter_map(|trial| trial.histogram.clone());
    let names: BTreeSet<String> = names.collect();
    assert_eq!(names.len(), alike.histograms.len());
    let width = |(low, high): (f64, f64)| high / low;
    let (ratio, interval) = rate(&alike);
    assert!((ratio - 0.9).abs() < 0.01, "{ratio}");
    // Three runs have two degrees of freedom, whose quantile is 4.3.
    assert!(width(interval) < 1.04, "{interval:?}");
    let apart = joined(vec![run(0, 1.0), run(1, 1.1), run(2, 1.2)]).expect("the same");
    let (ratio, interval) = rate(&apart);
    assert!((ratio - 0.9 * 1.1).abs() < 0.01, "{ratio}");
    // Their logarithms deviate by 0.091, that of the mean by 0.053.
    let expected = 2.0 * 4.303 * 0.0912 / 3_f64.sqrt();
    let seen = libm::log(width(interval));
    assert!((seen / expected - 1.0).abs() < 0.05, "{seen} {expected}");
    let rendered = render(&apart);
    let document = rendered.document_md + &rendered.appendix_md;
    for said in [
        "3 runs of this experiment are joined, 6 blocks planned in each: 1970-01-01 00:00 UTC",
        "this machine and these days",
        "the seed of its run",
    ] {
        assert!(document.contains(said), "{said}");
    }
    assert!(rendered.summary_json.contains("\"runs\": 3"));
}

#[test]
fn what_one_run_alone_has_is_no_ratio() {
    let mut second = run(1, 1.0);
    second
        .trials
        .retain(|trial| !trial.cell.contains("fasthttp"));
    let both = joined(vec![run(0, 1.0), second]).expect("the same");
    let compared = interleaved(&both, "rust/axum", "go/fasthttp");
    assert!(compared.figures.is_empty(), "{:?}", compared.figures);
}

#[test]
fn what_comes_after_the_blocks_of_a_plan_comes_after_those_of_all() {
    let mut first = run(0, 1.0);
    let mut again = first.trials[0].clone();
    again.block = 7;
    first.trials.push(again);
    let both = joined(vec![first, run(1, 1.0)]).expect("the same");
    let last = both.trials.iter().map(|trial| trial.block).max();
    assert_eq!(last, Some(13));
    assert_eq!(both.plan.joined[&13], 0);
    assert_eq!((both.plan.joined[&5], both.plan.joined[&6]), (0, 1));
}

#[test]
fn what_did_something_else_is_not_joined() {
    let refused = |change: fn(&mut Run)| {
        let mut other = run(1, 1.0);
        change(&mut other);
        joined(vec![run(0, 1.0), other]).expect_err("another")
    };
    for (change, why) in [
        (
            (|run| run.plan.experiment_sha256 = "other".to_owned()) as fn(&mut Run),
            "is of another experiment",
        ),
        (|run| run.plan.quick = true, "is a quick run"),
        (
            |run| run.environment.kernel = "Linux 1.0".to_owned(),
            "was made on another machine",
        ),
        (
            |run| run.plan.subjects[1].build_key = "other".to_owned(),
            "has another state of go/fasthttp",
        ),
        (
            |run| run.plan.cells[0].connections = 3,
            "measured other cells",
        ),
        (
            |run| run.plan.duration_ns = 1,
            "has 6 blocks with windows of 1ns, no visits and",
        ),
        (|run| run.plan.blocks = 5, "has 5 blocks with windows"),
        (
            |run| run.trials[0].block = u32::MAX,
            "has a block 4294967295, which no run has",
        ),
        (
            |run| run.environment.started_unix_ms = 0,
            "began when another one did",
        ),
    ] {
        let (number, said) = refused(change);
        assert_eq!(number, 1);
        assert!(said.starts_with(why), "{said}");
    }
}
