//! A whole log from runs made by hand.

mod fixture;

use prony_record::{CodeState, Environment, Failures, Source};
use prony_report::Run;
use prony_report::log::{Entry, brief, history, pictures, regions, written};

const DAY_MS: u64 = 86_400_000;

fn code(commit: &str, subject: &str, changes: &str) -> Option<CodeState> {
    Some(CodeState {
        commit: commit.repeat(10),
        subject: subject.to_owned(),
        source_commit: String::new(),
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
    let document = written("# The host's log\n\n", &regions(&history, "log")).expect("a document");
    insta::assert_snapshot!("log.md", document.text);
    insta::assert_snapshot!("log.txt", brief(&history));
    let shown = pictures(&history);
    assert!(shown.len() >= 2);
    for (path, svg) in &shown {
        assert!(document.text.contains(&format!("](log/{path})")), "{path}");
        assert!(svg.starts_with("<svg "), "{path}");
    }
    for line in document.text.lines().filter(|line| line.starts_with('|')) {
        let bars = line.replace("\\|", "").matches('|').count();
        assert!(bars <= 8, "more than seven columns: {line}");
    }
    let again = written(&document.text, &regions(&history, "log")).expect("a document");
    assert_eq!((again.text, again.replaced.len()), (document.text, 0));
}

/// Clients, programs and rows, where something goes wrong.
#[test]
fn no_table_of_a_log_has_more_than_seven_columns() {
    for run in [
        fixture::failures(),
        fixture::clients::faults(),
        fixture::programs::runtime(3),
        fixture::services::faults(),
    ] {
        let entry = Entry::of(&run, "x-001");
        assert!(!entry.answer.is_empty());
        assert!(entry.pictures.len() >= 2, "{}", entry.title);
        for region in regions(&history(&[entry]), "log") {
            for line in region.text.lines().filter(|line| line.starts_with('|')) {
                let bars = line.replace("\\|", "").matches('|').count();
                assert!(bars <= 8, "{line}");
                assert!(!line.contains("verdict"), "{line}");
            }
        }
    }
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
    let regions = regions(&history, "log");
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
        let of_both = [history(&[entry]), history(&[back])].map(|h| regions(&h, "log"));
        assert_eq!(of_both[0], of_both[1]);
    }
}

/// States of the cells of a run, after `change`.
fn states(change: impl Fn(&mut Run)) -> Vec<String> {
    let mut run = run(0, "", 40_000.0);
    run.plan.subjects[0].files_sha256 = "f11e".to_owned();
    change(&mut run);
    let entry = Entry::of(&run, "host-000");
    entry.cells().map(|cell| cell.state.clone()).collect()
}

#[test]
fn a_state_is_what_the_cell_is_made_of_and_nothing_else() {
    let first = states(|_| {});
    let written = states(|run| run.environment.code = code("99ffee1", "docs: the log", "aa00"));
    assert_eq!(written, first, "another document is no other code");
    let beside = states(|run| {
        let mut other = run.plan.subjects[0].clone();
        other.id = "redis".to_owned();
        run.plan.backings.push(other);
    });
    assert_eq!(beside, first, "what no cell of these has");
    let changes: [fn(&mut Run); 4] = [
        |run| run.plan.subjects[0].files_sha256 = "0ther".to_owned(),
        |run| run.plan.subjects[0].start.push("--fast".to_owned()),
        |run| run.environment.prony_commit = "99ffee1".to_owned(),
        |run| {
            let mut redis = run.plan.subjects[0].clone();
            redis.id = "redis".to_owned();
            run.plan.backings.push(redis);
            for cell in &mut run.plan.cells {
                cell.around.backings.push("redis".to_owned());
            }
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert_ne!(states(change), first, "change {number}");
    }
    let of_command = |change: fn(&mut CodeState)| {
        states(|run| {
            run.plan.subjects[0].files_sha256 = String::new();
            let code = run.environment.code.as_mut().expect("code");
            code.source_commit = "50ce".to_owned();
            change(code);
        })
    };
    let command = of_command(|_| {});
    assert_eq!(
        of_command(|code| code.commit = "99ffee1".to_owned()),
        command
    );
    assert_ne!(
        of_command(|code| code.source_commit = "99ffee1".to_owned()),
        command
    );
    // What the experiment gives as a command has files that it names, and those around it, which they may load.
    let named = |sha256: &str, source_commit: &str| {
        states(|run| {
            let subject = &mut run.plan.subjects[0];
            subject.files_sha256 = sha256.to_owned();
            subject.source = Source::Command {
                dir: "/e".to_owned(),
            };
            let code = run.environment.code.as_mut().expect("code");
            code.source_commit = source_commit.to_owned();
        })
    };
    assert_ne!(named("f11e", "50ce"), named("0ther", "50ce"));
    assert_ne!(named("f11e", "50ce"), named("f11e", "99ffee1"));
    assert_eq!(named("f11e", "50ce"), named("f11e", "50ce"));
}

#[test]
fn a_session_without_all_its_blocks_is_compared_with_none() {
    let mut cut = run(0, "a", 40_000.0);
    let whole = Entry::of(&cut, "host-000");
    assert!(whole.cells().all(|cell| cell.session.is_some()));
    cut.trials.pop();
    let entry = Entry::of(&cut, "host-000");
    let without = entry.cells().filter(|cell| cell.session.is_none()).count();
    assert_eq!(without, 1);
}

#[test]
fn no_two_regions_have_the_same_name() {
    let mut entry = entry(0, "a", 40_000.0);
    let section = entry.sections[0].clone();
    let workloads = ["findings", "a/b", "ab", "ab-2", "/", "findings-2"];
    entry.sections = workloads
        .map(|name| prony_report::log::Section {
            workload: name.to_owned(),
            ..section.clone()
        })
        .to_vec();
    let regions = regions(&history(&[entry]), "log");
    let ids: std::collections::BTreeSet<&str> = regions.iter().map(|r| r.id.as_str()).collect();
    assert_eq!(ids.len(), regions.len(), "{ids:?}");
    assert!(
        regions
            .last()
            .is_some_and(|last| last.id.ends_with("/findings"))
    );
    let text = written("", &regions).expect("a document").text;
    assert_eq!(written(&text, &regions).expect("a document").text, text);
}

#[test]
fn figures_without_a_history_are_counted_apart() {
    let mut entries: Vec<Entry> = (0..7)
        .map(|day| entry(day, "a", 40_000.0 + day as f64))
        .collect();
    entries.push(entry(7, "b", 40_000.0));
    for entry in &mut entries[..5] {
        entry.sections[0].cells[1].session = None;
    }
    let text = brief(&history(&entries));
    let said = "no change shown in 1 figure, 1 figure not told apart";
    assert!(text.contains(said), "{text}");
    let head = regions(&history(&entries), "log")
        .into_iter()
        .rfind(|r| r.id.ends_with("host-007"))
        .expect("a head");
    assert!(
        head.text
            .contains("no change is shown in 1 figure. 1 figure has too few entries"),
        "{}",
        head.text
    );
}
