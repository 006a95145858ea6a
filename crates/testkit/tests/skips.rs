//! A test that cannot run is listed, and is a failure where nothing may be skipped: each
//! case is played by this program as a process of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What the process that is started does: the name of one of [`PARTS`].
const PART: &str = "PRONY_TESTKIT_PART";
const PARTS: [(&str, fn()); 8] = [
    ("reason", || prony_testkit::skip("the moon is full")),
    ("lines", || {
        prony_testkit::skip("no moon\nwarning: a compiler's\nwords");
    }),
    ("line", || prony_testkit::skip(&"moon ".repeat(10_000))),
    ("command", || {
        assert_eq!(prony_testkit::need("no-such-command"), None);
    }),
    ("excepted", || {
        prony_testkit::skip_without("cpp/drogon", "no Drogon");
    }),
    ("no memory for a ring", || {
        prony_testkit::skip_ring("no memory; raise the limit of locked memory");
    }),
    ("no ring", || prony_testkit::skip_ring("not permitted")),
    ("not excepted", || {
        prony_testkit::skip_without("c/nginx", "no nginx");
    }),
];

#[test]
fn plays_a_part() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let (_, play) = PARTS.iter().find(|(name, _)| *name == part).expect("one");
    play();
}

/// Whether the test passed, and the list of what was skipped.
fn played(part: &str, nothing: Option<&str>) -> (bool, String) {
    let list = std::env::temp_dir().join(format!(
        "prony-skips-{}-{part}-{}",
        std::process::id(),
        nothing.unwrap_or("unset")
    ));
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "plays_a_part"]).env(PART, part);
    command.env("PRONY_SKIPPED", &list);
    match nothing {
        Some(value) => command.env("PRONY_SKIP_NOTHING", value),
        None => command.env_remove("PRONY_SKIP_NOTHING"),
    };
    let passed = command.output().expect("it starts").status.success();
    let said = fs::read_to_string(&list).unwrap_or_default();
    let _ = fs::remove_file(list);
    (passed, said)
}

#[test]
fn what_is_skipped_is_listed_with_its_reason() {
    for nothing in [None, Some("0"), Some("")] {
        let (passed, said) = played("reason", nothing);
        assert!(passed);
        assert!(said.ends_with(": the moon is full\n"), "{said}");
    }
    let (passed, said) = played("command", None);
    assert!(passed);
    assert!(said.ends_with(": no-such-command is not on this machine\n"));
}

#[test]
fn a_reason_on_the_list_was_all_that_a_compiler_had_printed() {
    let (_, said) = played("lines", None);
    assert!(said.contains(": no moon … (all of it: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let (_, said) = played("line", None);
    assert!(said.len() < 400 && said.contains("moon … ("), "{said}");
}

#[test]
fn where_nothing_may_be_skipped_it_is_a_failure() {
    for part in ["reason", "command", "not excepted", "no ring"] {
        assert_eq!(played(part, Some("1")), (false, String::new()), "{part}");
    }
}

#[test]
fn an_exception_is_no_failure_and_is_listed_all_the_same() {
    for nothing in [None, Some("1")] {
        let (passed, said) = played("excepted", nothing);
        assert!(passed);
        let told = "no Drogon (excepted: Debian 12 has no package of Drogon)\n";
        assert!(said.ends_with(told), "{said}");
        let (passed, said) = played("no memory for a ring", nothing);
        assert!(passed && said.contains("(excepted: "), "{said}");
    }
}

#[test]
fn each_exception_has_a_name_and_a_reason_and_is_of_something_that_is_there() {
    let root = prony_testkit::root();
    assert!(!prony_testkit::EXCEPTIONS.is_empty());
    for line in prony_testkit::EXCEPTIONS.lines() {
        let (what, why) = line.split_once(": ").expect("`WHAT: REASON`");
        assert!(why.len() > 10, "{line}");
        let subject = root.join("subjects").join(what).join("subject.toml");
        // A step of ./test, a subject, or what a test asks for by that name.
        let asked = format!("skip_without(\"{what}\"");
        assert!(
            what == "miri" || subject.is_file() || is_written(&root.join("crates"), &asked),
            "{line}"
        );
        assert_eq!(prony_testkit::exception(what), Some(why));
    }
}

/// `./test` with all steps that can lack something, on a machine whose cargo can format and nothing else: whether it
/// passed, and what it printed.
fn stepped(nothing: &str) -> (bool, String) {
    let commands =
        std::env::temp_dir().join(format!("prony-test-steps-{}-{nothing}", std::process::id()));
    fs::create_dir_all(&commands).expect("a folder");
    prony_testkit::write_program(&commands.join("cargo"), "#!/bin/sh\n[ \"$1\" = fmt ]\n");
    prony_testkit::write_program(&commands.join("rustc"), "#!/bin/sh\nexit 1\n");
    let path = std::env::var("PATH").expect("a path");
    let output = Command::new(prony_testkit::root().join("test"))
        .args("format lint miri python arm64 world versions".split(' '))
        .env("PATH", format!("{}:{path}", commands.display()))
        .env("PYTHON", "/no/python")
        .env("PRONY_SKIP_NOTHING", nothing)
        .output()
        .expect("a shell");
    fs::remove_dir_all(commands).expect("removed");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), said)
}

#[test]
fn a_step_that_did_not_run_had_passed() {
    let (passed, said) = stepped("0");
    assert!(!passed, "lint failed: {said}");
    for name in ["miri", "python", "arm64", "world", "versions"] {
        assert!(
            said.contains(&format!("== {name} skipped after ")),
            "{said}"
        );
        assert!(said.contains(&format!("\n{name:9} skipped ")), "{said}");
    }
    assert!(
        said.ends_with("\n1 passed, 1 failed, 5 skipped\n"),
        "{said}"
    );
    // Of these only Miri may be missing everywhere.
    let (_, said) = stepped("1");
    assert!(
        said.ends_with("\n1 passed, 5 failed, 1 skipped\n"),
        "{said}"
    );
}

/// Whether a source file under `folder` holds `text`.
fn is_written(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return is_written(&path, text);
        }
        let is_source = path.extension().is_some_and(|end| end == "rs");
        is_source && fs::read_to_string(path).unwrap().contains(text)
    })
}
