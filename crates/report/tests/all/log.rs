//! A whole log from runs made by hand.

use prony_record::{CodeState, Environment, Failures, Source};
use prony_report::Run;
use prony_report::log::{Entry, brief, history, pictures, regions, written};

use crate::fixture;

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
    let document =
        written("# The host's log\n\n", &regions(&history, "log", "")).expect("a document");
    insta::assert_snapshot!("log.md", document.text);
    insta::assert_snapshot!("log.txt", brief(&history));
    let shown = pictures(&history);
    assert_eq!(shown.len(), 1);
    for (path, _, svg) in &shown {
        assert!(document.text.contains(&format!("](log/{path})")), "{path}");
        assert!(svg.starts_with("<svg "), "{path}");
    }
    for line in document.text.lines().filter(|line| line.starts_with('|')) {
        let bars = line.replace("\\|", "").matches('|').count();
        assert!(bars <= 8, "more than seven columns: {line}");
    }
    let regions = regions(&history, "log", &document.text);
    let again = written(&document.text, &regions).expect("a document");
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
        for region in regions(&history(&[entry]), "log", "") {
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
    let regions = regions(&history, "log", "");
    let last = regions
        .iter()
        .rfind(|r| r.id.ends_with("host-007"))
        .expect("the head of the last entry");
    let since = last
        .text
        .split("**What changed")
        .nth(1)
        .expect("what changed");
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
        let of_both = [history(&[entry]), history(&[back])].map(|h| regions(&h, "log", ""));
        assert_eq!(of_both[0], of_both[1]);
    }
}

/// As version 1 kept entries: with pictures, bars and evidence, and without the commits before them.
#[test]
fn an_entry_of_version_1_is_read_and_stands_beside_one_of_now() {
    let now = entry(1, "a", 40_000.0);
    let mut old = serde_json::to_value(entry(0, "a", 40_000.0)).expect("JSON");
    old["schema"] = 1.into();
    old["pictures"] = serde_json::json!([{ "name": "rate", "title": "Rate", "svg": "<svg/>" }]);
    old["findings"] = serde_json::json!([{
        "code": "P006", "title": "requests failed", "severity": "note", "meaning": "Some.", "count": 1,
        "places": ["ping (host 50)"], "evidence": ["completed: 7"],
    }]);
    let fields = old.as_object_mut().expect("fields");
    for later in ["commits", "revised", "digest", "answer"] {
        fields.remove(later);
    }
    let cells = old["sections"][0]["cells"].as_array_mut().expect("cells");
    cells[0]["latency"] = serde_json::Value::Null;
    cells[1]["latency"]["p90"] = 7.5.into();
    cells[1]["latency"]["bars"] = serde_json::json!({ "bars": [], "min_ns": 1, "max_ns": 2 });
    cells[1]["in_flight"] = 3.5.into();
    let old: Entry = serde_json::from_value(old).expect("an entry");
    let history = history(&[old, now]);
    assert_eq!(pictures(&history).len(), 1);
    let text = written("", &regions(&history, "log", ""))
        .expect("a document")
        .text;
    assert!(
        text.contains("| P006 | requests failed | note     | 1 cell  |"),
        "{text}"
    );
    assert!(
        text.contains("| `3128add3128a` | host: parse the head once |"),
        "{text}"
    );
    assert!(text.contains("**What changed:** nothing."), "{text}");
    assert!(
        text.contains("**What it did:** the same state again."),
        "{text}"
    );
}

/// A change is told by the messages of its commits, as far as they are not those of the entry before, and by conditions.
#[test]
fn what_changed_is_told_by_commits_and_conditions() {
    let commit = |number: u32| prony_report::log::Commit {
        commit: format!("{number:040}"),
        subject: format!("step {number}"),
    };
    let measured = |day: u64, newest: u32| {
        let mut run = run(day, "a", 40_000.0);
        run.environment.kernel = format!("Linux 6.{day}");
        run.environment.code = code("", "", "");
        run.environment.code.as_mut().expect("code").commit = commit(newest).commit;
        Entry {
            commits: (0..=newest).rev().take(30).map(commit).collect(),
            ..Entry::of(&run, &format!("host-{day:03}"))
        }
    };
    let history = history(&[
        measured(0, 4),
        measured(1, 6),
        measured(2, 26),
        measured(3, 6),
    ]);
    let regions = regions(&history, "log", "");
    let head = |day: u64| {
        let head = regions
            .iter()
            .find(|r| r.id.ends_with(&format!("host-00{day}")));
        head.expect("a head")
            .text
            .split("\n\n**What")
            .nth(1)
            .expect("what changed")
            .to_owned()
    };
    insta::assert_snapshot!(head(1), @r"
     changed:**

    | commit         | what it changes |
    | -------------- | --------------- |
    | `000000000000` | step 6          |
    | `000000000000` | step 5          |

    | condition | before    | now       |
    | --------- | --------- | --------- |
    | kernel    | Linux 6.0 | Linux 6.1 |
    ");
    let many = head(2);
    assert!(
        many.contains("| step 26 ") && many.contains("| step 15 "),
        "{many}"
    );
    assert!(
        many.contains("and 8 more") && !many.contains("step 14 "),
        "{many}"
    );
    assert!(head(3).contains("| step 6 "), "an older state again");
    let overview = &regions[0].text;
    assert!(
        overview.contains("| step 6 (and 1 more); a short look "),
        "{overview}"
    );
}

/// An entry that was kept before entries had commits, or of a commit that is not among those kept.
#[test]
fn commits_that_are_older_than_those_of_an_older_prony_are_no_change() {
    let commit = |number: u32| prony_report::log::Commit {
        commit: format!("{number:040}"),
        subject: format!("step {number}"),
    };
    let measured = |day: u64, newest: u32, kept: &[u32]| {
        let mut run = run(day, "a", 40_000.0);
        run.environment.code = code("", "of the code", "");
        run.environment.code.as_mut().expect("code").commit = commit(newest).commit;
        Entry {
            commits: kept.iter().copied().map(commit).collect(),
            ..Entry::of(&run, &format!("host-{day:03}"))
        }
    };
    let changed = |before: u32| {
        let history = history(&[measured(0, before, &[]), measured(1, 5, &[5, 4, 3, 2, 1])]);
        let overview = regions(&history, "log", "").swap_remove(0).text;
        let row = overview.lines().rfind(|line| line.starts_with("| [2026"));
        let row = row.expect("an entry").split(" | ").nth(1).map(str::trim);
        row.expect("what changed").to_owned()
    };
    assert_eq!(changed(3), "step 5 (and 1 more); a short look");
    assert_eq!(changed(4), "step 5; a short look");
    assert_eq!(
        changed(9),
        "step 5; a short look",
        "not known what lies between"
    );
}

#[test]
fn entries_whose_headings_have_the_same_anchor_are_linked_apart() {
    let named = |name: &str| Entry::of(&run(0, "a", 40_000.0), name);
    let history = history(&[named("a.b"), named("ab")]);
    let overview = regions(&history, "log", "").swap_remove(0).text;
    for link in [
        "a.b](#2026-03-01-1405-utc-ab)",
        "ab](#2026-03-01-1405-utc-ab-1)",
    ] {
        assert!(overview.contains(link), "{link}: {overview}");
    }
}

#[test]
fn a_picture_has_a_column_for_each_entry_and_joins_like_with_like() {
    let mut elsewhere = run(2, "a", 30_000.0);
    elsewhere.environment.machine = "another".to_owned();
    let mut entries = vec![entry(0, "a", 40_000.0)];
    assert!(
        pictures(&history(&entries)).is_empty(),
        "one entry is no time"
    );
    entries.push(entry(1, "b", 41_000.0));
    entries.push(Entry::of(&elsewhere, "host-002"));
    let [(path, title, svg)] = &pictures(&history(&entries))[..] else {
        panic!("a picture of the only workload");
    };
    assert_eq!(path, "over-time-ping.svg");
    assert_eq!(title, "ping, rate a second, 50 connections");
    let count = |what: &str| svg.matches(what).count();
    // A dot for each and one in the key; a whisker for each, and a line between the first two.
    assert_eq!(
        (count("class=\"dot s0\""), count("<line class=\"s0\"")),
        (4, 4),
        "{svg}"
    );
    assert!(svg.contains("host-002: 30.0 k (29.9–30.1 k)"), "{svg}");
    let days = ["2026-03-01", "2026-03-02", "2026-03-03"].map(|day| count(&format!(">{day} ")));
    assert_eq!(days, [1; 3], "{svg}");
}

/// It compared the first with the last of other machines, told a bound as a rate, and said "now" of what is measured no longer.
#[test]
fn a_picture_told_of_other_machines_bounds_and_the_past_as_if_they_were_alike() {
    let mut elsewhere = run(2, "a", 30_000.0);
    elsewhere.environment.machine = "another".to_owned();
    let mut entries = vec![entry(0, "a", 40_000.0), Entry::of(&elsewhere, "host-002")];
    let words = |entries: &[Entry], words: &str| {
        let shown = pictures(&history(entries));
        assert!(shown[0].2.contains(&format!(">{words}<")), "{}", shown[0].2);
    };
    words(&entries, "30.0 k now");
    let mut back = entry(3, "a", 41_000.0);
    for cell in back.sections.iter_mut().flat_map(|own| &mut own.cells) {
        cell.verdict = "bound".to_owned();
        cell.codes.push("P001".to_owned());
    }
    entries.push(back);
    words(&entries, "40.0 k at first, ≥ 41.0 k now");
    // The line between the two of one machine passes by the other.
    let svg = &pictures(&history(&entries))[0].2;
    assert_eq!(svg.matches("<line class=\"s0\"").count(), 3 + 1, "{svg}");
    let mut other = entry(4, "a", 50_000.0);
    for cell in other.sections.iter_mut().flat_map(|own| &mut own.cells) {
        cell.label = "other".to_owned();
    }
    entries.push(other);
    words(&entries, "40.0 k at first, ≥ 41.0 k at last");
    words(&entries, "50.0 k now");
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
    let regions = regions(&history(&[entry]), "log", "");
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
    let told = "Too few entries stand behind 1 figure of the newest one.";
    let history = history(&entries);
    let overview = regions(&history, "log", "").swap_remove(0);
    for text in [brief(&history), overview.text] {
        assert_eq!(text.matches(told).count(), 1, "{text}");
    }
}
