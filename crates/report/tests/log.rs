//! A whole log from runs made by hand.

mod fixture;

use prony_record::{CodeState, Environment, Failures};
use prony_report::Run;
use prony_report::log::{Entry, brief, history, regions, written};

const DAY_MS: u64 = 86_400_000;

fn code(commit: &str, subject: &str, changes: &str) -> Option<CodeState> {
    Some(CodeState {
        commit: commit.repeat(10),
        subject: subject.to_owned(),
        changes_sha256: changes.to_owned(),
    })
}

/// A run of one server on `day`, whose rate is `rate`, built from `build`.
fn run(day: u64, build: &str, rate: f64) -> Run {
    let subjects = [fixture::subject("lua/host", "host", rate)];
    let mut run = fixture::run(&subjects, &[1, 50], 2);
    let environment = fixture::environment();
    run.environment = Environment {
        started_unix_ms: environment.started_unix_ms + day * DAY_MS,
        code: code("3128add", "host: parse the head once", ""),
        machine: "77ab".to_owned(),
        ..environment
    };
    run.plan.subjects[0].build_key = build.to_owned();
    run
}

fn entry(day: u64, build: &str, rate: f64) -> Entry {
    Entry::of(&run(day, build, rate), &format!("host-{day:03}"))
}

#[test]
fn two_days_of_a_log() {
    let first = entry(0, "a", 40_000.0);
    let mut second = run(1, "b", 30_000.0);
    second.environment.code = code("99ffee1", "host: log | each *request*", "aa00");
    let overflow = second
        .trials
        .iter_mut()
        .find(|t| t.cell.ends_with("c=50"))
        .expect("a trial");
    overflow
        .kernel
        .before
        .insert("TcpExtListenOverflows".to_owned(), 1);
    overflow
        .kernel
        .after
        .insert("TcpExtListenOverflows".to_owned(), 19);
    let load = overflow.load.as_mut().expect("a load");
    load.connect_ns.max = 1_040_000_000;
    load.counts.connect_failed = Failures {
        reset: 17,
        timeout: 1,
        ..Failures::default()
    };
    let entries = [first, Entry::of(&second, "host-001")];
    let history = history(&entries);
    let document = written("# The host's log\n\n", &regions(&history)).expect("a document");
    insta::assert_snapshot!("log.md", document.text);
    insta::assert_snapshot!("log.txt", brief(&history));
    let again = written(&document.text, &regions(&history)).expect("a document");
    assert_eq!((again.text, again.replaced.len()), (document.text, 0));
}

#[test]
fn a_change_after_seven_days_of_one_state_is_claimed() {
    let rates = [
        40_000.0, 40_300.0, 39_800.0, 40_100.0, 39_900.0, 40_050.0, 40_000.0,
    ];
    let mut entries: Vec<Entry> = rates
        .iter()
        .zip(0..)
        .map(|(rate, day)| entry(day, "a", *rate))
        .collect();
    entries.push(entry(7, "b", 30_000.0));
    let history = history(&entries);
    let regions = regions(&history);
    let last = regions
        .iter()
        .rfind(|r| r.id.ends_with("host-007"))
        .expect("the head of the last entry");
    let since = last.text.split("**Since").nth(1).expect("what changed");
    insta::assert_snapshot!("claims.md", since);
    assert_eq!(
        history
            .accounts
            .last()
            .expect("an entry")
            .regressions()
            .count(),
        2
    );
}

#[test]
fn an_entry_that_was_kept_as_json_says_the_same() {
    for run in [
        run(0, "a", 40_000.0),
        fixture::failures(),
        fixture::programs::runtime(3),
        Run::default(),
    ] {
        let entry = Entry::of(&run, "x-001");
        let text = serde_json::to_string(&entry).expect("JSON");
        let back: Entry = serde_json::from_str(&text).expect("an entry");
        let of_both = [history(&[entry]), history(&[back])].map(|h| regions(&h));
        assert_eq!(of_both[0], of_both[1]);
    }
}
