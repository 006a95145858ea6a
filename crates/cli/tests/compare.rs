//! `prony compare`: two commands in turns, two run directories, and how it ends.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::PRONY;
use serde_json::Value;

fn prony(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(PRONY);
    command
        .current_dir(folder)
        .env("PRONY_HOME", prony_testkit::root())
        .env("PRONY_CACHE", folder.join("cache"))
        .args(words);
    command.output().expect("prony runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn two_commands_in_turns_and_their_runs_beside_each_other() {
    let folder = common::folder("compare-turns");
    let serve = format!("{PRONY} serve --port {{port}}");
    // Two blocks claim nothing, on whichever machine.
    let small = [
        "compare", "--path", "/hello", "-c", "2", "--blocks", "2", "-d", "100ms", "--warmup",
        "20ms",
    ];
    let both = ["--interleave", &serve, &serve];
    let run = |more: &[&str]| prony(&folder, &[&small[..], &both[..], more].concat());

    let first = run(&["--json", "--fail-on", "5%"]);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let seen: Value = serde_json::from_slice(&first.stdout).expect("JSON");
    assert_eq!(
        (&seen["baseline"], &seen["other"]),
        (&"A".into(), &"B".into())
    );
    let metrics: Vec<&str> = seen["figures"]
        .as_array()
        .expect("figures")
        .iter()
        .filter_map(|figure| figure["metric"].as_str())
        .collect();
    assert_eq!(metrics, ["rate", "cpu_subject", "p50", "p99"]);
    assert!(seen["figures"][0]["baseline"].as_f64().expect("a rate") > 0.0);
    assert_eq!(seen["gate"]["came_to"], "inconclusive");
    assert!(
        text(&first.stderr).contains("inconclusive"),
        "{}",
        text(&first.stderr)
    );

    let second = run(&["--markdown", "--fail-on", "5%", "--inconclusive", "fail"]);
    assert_eq!(second.status.code(), Some(1), "{}", text(&second.stderr));
    let said = text(&second.stdout);
    assert!(
        said.starts_with("No change is claimed: 2 blocks are too few"),
        "{said}"
    );
    // Both runs are there like any other, and the experiments that they are of.
    for run in ["compare-001", "compare-002"] {
        assert!(
            folder.join("runs").join(run).join("document.md").exists(),
            "{run}"
        );
        assert!(folder.join(run).with_extension("toml").exists(), "{run}");
    }
    let apart = prony(
        &folder,
        &["compare", "runs/compare-001", "runs/compare-002"],
    );
    let said = text(&apart.stdout);
    assert!(said.contains("no history tells how far sessions"), "{said}");
    // Where the machine leaves the generator no time, there is no figure of a subject's own, and that is said.
    let is_compared = |name: &str| said.contains(&format!("| {name} hello c=2"));
    for name in ["A", "B"] {
        let is_left_out = said.contains(&format!("left out: {name} hello c=2"));
        assert!(is_compared(name) || is_left_out, "{name}: {said}");
    }
    let code = match is_compared("A") || is_compared("B") {
        true => 0,
        false => 3,
    };
    assert_eq!(apart.status.code(), Some(code), "{said}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let folder = common::folder("compare-wrong");
    let refused = |words: &[&str]| {
        let output = prony(&folder, words);
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = refused(&["compare", "nowhere", "here"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("nowhere") || said.contains("here"), "{said}");
    for words in [
        &["compare"][..],
        &["compare", "a", "b", "c"],
        &["compare", "--interleave", "a"],
        &["compare", "--interleave", "a", "b", "--fail-on", "150%"],
        &["compare", "a", "b", "--path", "/"],
        &["compare", "a", "b", "--inconclusive", "fail"],
    ] {
        assert_eq!(refused(words).0, Some(2), "{words:?}");
    }
    // One that cannot be started is a run without a figure.
    let (code, said) = refused(&[
        "compare",
        "--interleave",
        "false {port}",
        "false {port}",
        "--blocks",
        "1",
        "-d",
        "100ms",
    ]);
    assert_eq!(code, Some(3), "{said}");
}
