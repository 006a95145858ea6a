//! Two states beside each other: what is claimed, in which words, and what comes of a limit.

use prony_record::Role;
use prony_report::Run;
use prony_report::compare::{Comparison, Gate, apart, baseline_in, interleaved};
use prony_report::log::{CellEntry, Entry, Section, history};
use prony_report::reproduced::{CameTo, reproduced};
use prony_stats::Conclusion;

use crate::fixture;

/// Twelve blocks of axum, the reference, beside fasthttp at 0.92 of its rate.
fn slower() -> Comparison {
    interleaved(&fixture::full(), "rust/axum", "go/fasthttp")
}

#[test]
fn a_claim_is_a_sentence_with_its_interval_and_the_rest_has_a_bound() {
    let said = slower().sentences();
    assert_eq!(said[0], "go/fasthttp is slower than rust/axum.");
    // The rate, by which the verdict is, then what is surest to be large.
    assert!(
        said[1].starts_with(
            "ping with 400 connections: rate −7.7 % (−8.2 to −7.2), memory peak 2.58 × ("
        ),
        "{said:?}"
    );
    assert!(
        said.iter()
            .all(|sentence| sentence.split(' ').count() <= 30),
        "{said:?}"
    );
    let table = slower().table();
    let rate = table
        .lines()
        .find(|line| line.contains("requests/s"))
        .expect("a rate");
    assert!(
        rate.contains("| 142 k") && rate.contains("| −7.7 % (−8.2 to −7.2)"),
        "{rate}"
    );
}

#[test]
fn a_block_that_others_disturbed_is_in_no_ratio_and_of_too_many_nothing_is_claimed() {
    // Half as fast in these blocks, while somebody else had a third of the core.
    let compared = |blocks: &[u32]| {
        let mut run = fixture::full();
        let is_one =
            |cell: &str, block| cell.starts_with("go/fasthttp ") && blocks.contains(&block);
        for trial in run.trials.iter_mut().filter(|t| is_one(&t.cell, t.block)) {
            for process in trial
                .processes
                .iter_mut()
                .filter(|p| p.role == Role::Subject)
            {
                process.cpu_ns -= 600_000_000;
            }
            let load = trial.load.as_mut().expect("a report");
            load.completed /= 2;
        }
        interleaved(&run, "rust/axum", "go/fasthttp")
    };
    let rate = |of: &Comparison| {
        let rates = of.figures.iter().filter(|of| of.metric == "rate");
        rates
            .map(|rate| (rate.ratio, rate.conclusion))
            .collect::<Vec<_>>()
    };
    let (usual, some, most) = (compared(&[]), compared(&[2, 7]), compared(&[0, 1, 2, 3, 4]));
    assert!(!usual.basis.contains("disturbed"), "{}", usual.basis);
    assert!(
        some.basis
            .ends_with("; in no ratio: what others disturbed (block 3, 8)"),
        "{}",
        some.basis
    );
    for ((with, said), (without, _)) in rate(&usual).into_iter().zip(rate(&some)) {
        assert!(
            (with / without - 1.0).abs() < 0.01 && said == Conclusion::Lower,
            "{with} {without}"
        );
    }
    assert!(
        rate(&most)
            .iter()
            .all(|(_, said)| *said == Conclusion::NotClaimed)
    );
    assert_eq!(most.basis, "others disturbed over a third of its blocks");
}

#[test]
fn a_run_that_came_out_the_same_holds_what_was_claimed_and_nothing_else() {
    let run = fixture::full();
    let again = reproduced(&run, &run);
    assert!(again.claims.len() > 5);
    for claim in &again.claims {
        let [_, low, high] = claim.original;
        assert!(low > 1.0 || high < 1.0, "{}", claim.what);
        assert_eq!(claim.came_to, CameTo::Held, "{}", claim.what);
    }
}

#[test]
fn requests_that_failed_are_told_of_both_sides() {
    assert!(slower().failed.is_empty());
    let mut run = fixture::full();
    let cells = run.plan.cells.iter();
    let own: Vec<String> = cells
        .filter(|cell| cell.subject == "go/fasthttp")
        .map(|cell| cell.id.clone())
        .collect();
    for trial in run.trials.iter_mut().filter(|t| own.contains(&t.cell)) {
        let load = trial.load.as_mut().expect("a report");
        load.counts.failed.reset = load.completed / 200;
    }
    let compared = interleaved(&run, "rust/axum", "go/fasthttp");
    let [failed] = &compared.failed[..] else {
        panic!("one place: {:?}", compared.failed)
    };
    assert!(
        failed.starts_with("failed on ping with 400 connections: rust/axum none of "),
        "{failed}"
    );
    assert!(failed.ends_with("(0.5 %)"), "{failed}");
    assert!(compared.sentence().contains(&format!("Requests {failed}.")));
}

#[test]
fn answers_that_are_not_as_long_are_unequal_work() {
    let mut run = fixture::full();
    let shorter = |run: &mut Run, factor: f64| {
        for trial in run
            .trials
            .iter_mut()
            .filter(|t| t.cell.contains("fasthttp"))
        {
            let load = trial.load.as_mut().expect("a report");
            load.received_bytes = (load.completed as f64 * 100.0 * factor) as u64;
        }
        for trial in run.trials.iter_mut().filter(|t| t.cell.contains("axum")) {
            let load = trial.load.as_mut().expect("a report");
            load.received_bytes = load.completed * 100;
        }
    };
    shorter(&mut run, 0.995);
    assert!(
        interleaved(&run, "rust/axum", "go/fasthttp")
            .lengths
            .is_empty()
    );
    shorter(&mut run, 0.9);
    let compared = interleaved(&run, "rust/axum", "go/fasthttp");
    let said = "Unequal work: answers on ping with 400 connections are not as long: rust/axum has 100 bytes with the head, go/fasthttp 90.";
    assert!(
        compared.sentence().ends_with(said),
        "{}",
        compared.sentence()
    );
}

#[test]
fn a_limit_is_broken_for_sure_held_for_sure_or_neither() {
    let compared = slower();
    // The rate is worse by 7.2 to 8.2 %.
    let rates = |limit: f64| {
        let mut rate = compared.clone();
        rate.figures.retain(|figure| figure.metric == "rate");
        (rate.gate(limit), rate.beyond(limit).len())
    };
    assert_eq!(rates(0.07), (Gate::Failed, 1));
    assert_eq!(rates(0.075), (Gate::Inconclusive, 0));
    assert_eq!(rates(0.085), (Gate::Passed, 0));
    // What is faster is not worse.
    let faster = interleaved(&fixture::full(), "rust/axum", "rust/prony");
    assert_eq!(faster.gate(0.0), Gate::Passed);
    // Less CPU time is better, more is worse.
    let mut dearer = compared.clone();
    dearer
        .figures
        .retain(|figure| figure.metric == "cpu_subject");
    assert_eq!(dearer.gate(0.0), Gate::Failed);
}

#[test]
fn few_blocks_claim_nothing_and_settle_no_limit() {
    let compared = interleaved(&fixture::quick(), "rust/axum", "go/fasthttp");
    assert_eq!(
        compared.sentence(),
        "No difference is claimed: 2 blocks are too few to claim anything: it takes 6."
    );
    assert_eq!(compared.gate(0.5), Gate::Inconclusive);
    let nobody = interleaved(&fixture::full(), "rust/axum", "nobody");
    assert_eq!(
        nobody.sentence(),
        "rust/axum and nobody could not be compared: run it again."
    );
    assert_eq!(nobody.gate(0.5), Gate::Inconclusive);
}

#[test]
fn markdown_is_whole_by_itself() {
    insta::assert_snapshot!("compare.md", slower().markdown());
}

fn entry(day: u64, state: &str, rate: f64) -> Entry {
    Entry {
        id: format!("day-{day}"),
        run: format!("run-{day}"),
        started_unix_ms: day * 86_400_000,
        environment: "this machine".to_owned(),
        sections: vec![Section {
            cells: vec![CellEntry {
                id: "a hello c=10".to_owned(),
                series: "a hello c=10, 10 s".to_owned(),
                state: state.to_owned(),
                session: Some(rate),
                ..CellEntry::default()
            }],
            ..Section::default()
        }],
        ..Entry::default()
    }
}

/// Five sessions of one state beside that of the baseline.
fn five() -> Vec<Entry> {
    let rates = [101.0, 99.0, 100.0, 100.0, 100.5];
    (2..)
        .zip(rates)
        .map(|(day, rate)| entry(day, "old", rate))
        .collect()
}

#[test]
fn two_sessions_alone_claim_nothing_however_far_apart() {
    let compared = apart(&entry(1, "old", 100.0), &entry(9, "new", 50.0), &[]);
    assert!((compared.figures[0].ratio - 0.5).abs() < 1e-9);
    assert_eq!(compared.figures[0].conclusion, Conclusion::NotClaimed);
    assert!(
        compared.sentence().contains("no history tells"),
        "{}",
        compared.sentence()
    );
    assert_eq!(compared.gate(0.05), Gate::Inconclusive);
}

#[test]
fn a_history_tells_how_far_sessions_of_one_state_lie_apart() {
    let against = |rate: f64| apart(&entry(1, "old", 100.0), &entry(9, "new", rate), &five());
    let slower = against(80.0);
    assert_eq!(slower.figures[0].conclusion, Conclusion::Lower);
    assert_eq!(slower.gate(0.05), Gate::Failed);
    let near = against(99.5);
    assert_eq!(near.figures[0].conclusion, Conclusion::NoDifferenceShown);
    assert_eq!(near.gate(0.05), Gate::Passed);
    assert!(near.detectable.is_some_and(|least| least < 0.05));
    // With the baseline's own session the state has six.
    assert!(
        slower.basis.contains("(5 degrees of freedom)"),
        "{}",
        slower.basis
    );
}

/// The entry of a log and two runs beside each other are one statement.
#[test]
fn a_run_against_its_log_says_what_the_log_says_of_it() {
    let mut log = vec![entry(1, "old", 100.0)];
    log.extend(five());
    log.push(entry(8, "new", 81.0));
    let own = entry(9, "new", 80.0);
    let baseline = baseline_in(&log, &own).expect("an entry before it");
    assert_eq!(baseline.id, "day-6", "the newest of another state");
    let compared = apart(baseline, &own, &log);
    let figure = &compared.figures[0];
    log.push(own.clone());
    let told = history(&log);
    let difference = &told.accounts.last().expect("accounts").differences[0];
    let interval = difference.compared.interval.expect("six of one state");
    assert_eq!(figure.ratio, difference.compared.ratio.0);
    assert_eq!(figure.interval, Some((interval.low.0, interval.high.0)));
    assert_eq!(
        (figure.conclusion, difference.sides.later.len()),
        (Conclusion::Lower, 2)
    );

    // Where no state differs the newest is the baseline, and nothing before it is none.
    let again = entry(10, "new", 80.5);
    let same = [entry(8, "new", 81.0), own];
    assert_eq!(baseline_in(&same, &again).expect("one").id, "day-9");
    assert_eq!(baseline_in(&same, &entry(8, "new", 81.0)), None);
}

#[test]
fn another_machine_or_other_settings_are_not_compared() {
    let mut other = entry(9, "new", 80.0);
    other.environment = "another machine".to_owned();
    let compared = apart(&entry(1, "old", 100.0), &other, &five());
    assert_eq!(compared.figures[0].interval, None);
    assert!(
        compared.basis.contains("different machines"),
        "{}",
        compared.basis
    );
    let mut other = entry(9, "new", 80.0);
    other.sections[0].cells[0].series = "a hello c=10, 5 s".to_owned();
    let compared = apart(&entry(1, "old", 100.0), &other, &five());
    assert_eq!(compared.figures, []);
    assert!(
        compared.left_out[0].contains("measured otherwise"),
        "{:?}",
        compared.left_out
    );
}
