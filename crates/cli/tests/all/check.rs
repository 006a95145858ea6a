//! `prony check`: subjects that hold to the contract, and ones that each do one thing wrong.

use std::fs;
use std::path::Path;

use crate::common::{self, prony, text};
use serde_json::Value;

/// A subject in `folder/subject`, started by `start`, of which the endpoints are `endpoints`.
fn subject(folder: &Path, start: &str, more: &str) {
    let own = folder.join("subject");
    fs::create_dir_all(&own).expect("a folder");
    let file = format!(
        "name = \"subject\"\nlanguage = \"any\"\nrole = \"server\"\nsummary = \"Made for a test\"\nendpoints = [\"/hello\"]\n{more}\n\
         [start]\ncmd = [\"sh\", \"-c\", \"{start}\"]\n[ready]\nport = true\ntimeout_s = 2\n[stop]\ntimeout_s = 1\n\
         [version]\ncmd = \"echo 1\"\n"
    );
    fs::write(own.join("subject.toml"), file).expect("a file");
}

/// Exit code, standard output and standard error of `prony check`.
fn checked(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let output = prony(folder, &[&["check"], words].concat());
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

const SERVE: &str = "exec {prony} serve --port {port}";

#[test]
fn what_holds_is_told_with_all_that_was_asked() {
    let folder = common::folder("check-holds");
    subject(&folder, SERVE, "");
    let (code, out, err) = checked(&folder, &["rust/prony", "subject", "rust/prony-load"]);
    assert_eq!(code, Some(0), "{out}{err}");
    for part in [
        "rust/prony: holds (",
        "\n  ping c=1 protocol=http: ready in ",
        "\n  ping c=1 protocol=h2: ready in ",
        "\n  coroutine n=1000",
        "any/subject: holds (",
        "rust/prony-load: holds (",
        "\n3 subjects hold\n",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (code, json, _) = checked(&folder, &["subject", "--json"]);
    assert_eq!(code, Some(0));
    let value: Value = serde_json::from_str(&json).expect("JSON and nothing else");
    let asked = &value["subjects"][0]["asked"][0];
    assert_eq!(
        (
            value["schema"].as_u64(),
            value["subjects"][0]["state"].as_str()
        ),
        (Some(1), Some("held"))
    );
    let passed = asked["passed"].as_array().expect("checks");
    for name in [
        "status",
        "content-type",
        "body",
        "reused",
        "keep-alive",
        "pipelining",
        "split",
        "head",
    ] {
        assert!(passed.iter().any(|own| own == name), "{name}: {asked}");
    }
}

#[test]
fn each_fault_is_named_and_the_exit_status_tells() {
    for (name, start, more, why) in [
        ("ends", ": {port}; exit 3", "", "it does not become ready"),
        (
            "answers",
            ": {port}; exec tail -f /dev/null",
            "",
            "it does not become ready",
        ),
        (
            "needs",
            SERVE,
            "[needs]\ncommands = [\"no-such-program\"]\npackages = { any = \"make one\" }",
            "`no-such-program` is not on PATH",
        ),
        (
            "build",
            SERVE,
            "[build]\ncmd = \"echo no compiler; false\"\ninputs = []",
            "its build failed with status 1: no compiler",
        ),
        (
            "stop",
            "trap '' TERM; {prony} serve --port {port} & while :; do wait; done",
            "",
            "it did not stop in time, and was killed",
        ),
        (
            "status",
            "trap 'kill $!; exit 4' TERM; {prony} serve --port {port} & while :; do wait; done",
            "",
            "it ended with status 4",
        ),
    ] {
        let folder = common::folder(&format!("check-{name}"));
        subject(&folder, start, more);
        let (code, out, err) = checked(&folder, &["subject"]);
        assert_eq!(code, Some(1), "{name}: {out}{err}");
        let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(why), "{name}: {out}{err}");
        assert!(
            flat.contains("failed: any/subject") || flat.contains("not run: any/subject"),
            "{out}"
        );
    }
}

#[test]
fn a_wrong_answer_is_quoted() {
    let folder = common::folder("check-wrong");
    subject(&folder, "exec {prony} serve --port {port}", "");
    let file = folder.join("subject/subject.toml");
    let declared = fs::read_to_string(&file).expect("its file");
    fs::write(
        &file,
        declared.replace("\"/hello\"", "\"/hello\", \"/nothing-here\""),
    )
    .expect("its file");
    let (code, out, _) = checked(&folder, &["subject"]);
    assert_eq!(code, Some(1), "{out}");
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("hello c=1: ready in"), "{out}");
    assert!(flat.contains("nothing-here c=1: failed it answers wrongly: check `status`: status 200 expected, 404 came"), "{out}");
}

#[test]
fn bad_words_are_named() {
    let folder = common::folder("check-bad");
    let (code, _, err) = checked(&folder, &["rust/axun"]);
    assert_eq!(code, Some(2));
    assert!(
        err.contains("there is no subject `rust/axun`: did you mean `rust/axum`?"),
        "{err}"
    );
    let (code, _, err) = checked(&folder, &["mine"]);
    assert_eq!(code, Some(2));
    assert!(
        err.contains("there is no subject `mine`: `prony list subjects` names"),
        "{err}"
    );
    subject(&folder, SERVE, "colour = 1");
    let (code, _, err) = checked(&folder, &["subject"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("colour"), "{err}");
}
