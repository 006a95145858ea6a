//! Several runs of one experiment as one: what differs from run to run is in what is claimed.

mod fixture;

use fixture::subject;
use prony_report::compare::interleaved;
use prony_report::{Run, joined, render};

/// Six blocks, in which the second server has so much of its rate.
fn run(part: f64) -> Run {
    let subjects = [
        subject("rust/axum", "axum", 100_000.0),
        subject("go/fasthttp", "fasthttp", 90_000.0 * part),
    ];
    fixture::run(&subjects, &[10], 6)
}

fn rate(run: &Run) -> (f64, Option<(f64, f64)>) {
    let compared = interleaved(run, "rust/axum", "go/fasthttp");
    let rate = compared.figures.iter().find(|of| of.metric == "rate");
    let rate = rate.expect("a rate");
    (rate.ratio, rate.interval)
}

#[test]
fn blocks_are_added_and_what_runs_differ_by_widens_the_interval() {
    let both = joined(vec![run(1.0), run(1.0)]).expect("the same");
    assert_eq!((both.plan.blocks, both.plan.order.len()), (12, 12));
    let all: Vec<u32> = both.trials.iter().map(|trial| trial.block).collect();
    assert_eq!(all.iter().max(), Some(&11));
    assert_eq!(all.iter().filter(|block| **block == 7).count(), 2);
    // Each trial has the histogram of its own run.
    let names = both
        .trials
        .iter()
        .filter_map(|trial| trial.histogram.clone());
    let names: std::collections::BTreeSet<String> = names.collect();
    assert_eq!(names.len(), both.histograms.len());
    let (ratio, alike) = rate(&both);
    assert!((ratio - 0.9).abs() < 0.01, "{ratio}");
    let (ratio, apart) = rate(&joined(vec![run(1.0), run(1.1)]).expect("the same"));
    assert!((ratio - 0.9 * 1.05).abs() < 0.01, "{ratio}");
    let width = |interval: Option<(f64, f64)>| interval.map(|(low, high)| high / low);
    // Blocks lie 1 % apart, runs 10 %: of two runs of one comparison next to nothing is known of that.
    assert!(width(alike).expect("an interval") < 1.2, "{alike:?}");
    assert!(width(apart).expect("an interval") > 2.0, "{apart:?}");
    let document = render(&both).appendix_md;
    assert!(
        document.contains("2 runs of this experiment are joined, 12 blocks in all."),
        "{document}"
    );
}

#[test]
fn what_comes_after_the_blocks_of_a_plan_comes_after_those_of_all() {
    let mut first = run(1.0);
    let mut again = first.trials[0].clone();
    again.block = 7;
    first.trials.push(again);
    let both = joined(vec![first, run(1.0)]).expect("the same");
    let last = both.trials.iter().map(|trial| trial.block).max();
    assert_eq!(last, Some(13));
    assert_eq!(both.plan.joined[&13], 0);
    assert_eq!((both.plan.joined[&5], both.plan.joined[&6]), (0, 1));
}

#[test]
fn what_did_something_else_is_not_joined() {
    let refused = |change: fn(&mut Run)| {
        let mut other = run(1.0);
        change(&mut other);
        joined(vec![run(1.0), other]).expect_err("another")
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
        (|run| run.plan.duration_ns = 1, "has windows of 1ns"),
    ] {
        let (number, said) = refused(change);
        assert_eq!(number, 1);
        assert!(said.starts_with(why), "{said}");
    }
}
