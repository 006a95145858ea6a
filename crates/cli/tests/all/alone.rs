//! The programs without their checkout: copied alone to an empty folder, with a user of its own.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{self, PRONY, git, systems, text};
use serde_json::Value;

/// A folder with the program in `bin`, the user's `home` and `cache`, and `work`, in which it is called.
struct Alone(PathBuf);

impl Alone {
    fn new(name: &str) -> Alone {
        let folder = common::folder(&format!("alone-{name}"));
        for name in ["bin", "home", "cache", "work"] {
            fs::create_dir(folder.join(name)).expect("a folder");
        }
        for (from, to) in [
            (PRONY.into(), "bin/prony"),
            (systems(), "bin/prony-systems"),
        ] {
            let program = folder.join(to);
            // A second name is as good as a copy: a program finds itself by the name that it was called by.
            if fs::hard_link(&from, &program).is_err() {
                // By another process: see prony_testkit::write_program.
                let copied = Command::new("cp").arg(&from).arg(&program).status();
                assert!(copied.expect("cp runs").success());
            }
        }
        Alone(folder)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.0.join("bin/prony"));
        command
            .args(words)
            .current_dir(self.0.join("work"))
            .env_clear()
            .env("PATH", "/nowhere")
            .env("HOME", self.0.join("home"))
            .env("XDG_CACHE_HOME", self.0.join("cache"));
        command
    }

    fn output(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("prony runs")
    }

    /// Standard output of what ends with 0.
    fn out(&self, words: &[&str]) -> String {
        let output = self.output(words);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{words:?}: {out}{err}");
        out
    }

    /// Standard error of what ends with `code`.
    fn err(&self, words: &[&str], code: i32) -> String {
        let output = self.output(words);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {err}");
        err
    }

    /// The folders of what was unpacked.
    fn copies(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.join("cache/prony/embedded")).expect("a cache");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.filter(|path| path.is_dir()).collect()
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The files below `folder` by path, with whether each is a program; the marker of the cache is none of them.
fn files(folder: &Path) -> BTreeSet<(String, bool)> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(path).expect("a folder") {
            let path = entry.expect("an entry").path();
            let below = path.strip_prefix(folder).expect("below").to_owned();
            if path.is_dir() {
                open.push(path);
            } else if below != Path::new(".done") {
                let mode = fs::metadata(&path).expect("a file").permissions().mode();
                found.insert((below.display().to_string(), mode & 0o100 != 0));
            }
        }
    }
    found
}

#[test]
fn an_experiment_runs_by_its_name_and_subjects_are_listed_and_checked() {
    let alone = Alone::new("run");
    let words = "run ping --quick --only rust/prony --duration 100ms --warmup 0ms --blocks 1";
    let output = alone.output(&words.split(' ').collect::<Vec<_>>());
    let err = text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{err}");
    let work = alone.0.join("work");
    assert!(work.join("runs/ping-001/document.md").is_file(), "{err}");
    let read = |name: &str| {
        let bytes = fs::read(work.join("runs/ping-001").join(name)).expect("a record");
        serde_json::from_slice::<Value>(&bytes).expect("JSON")
    };
    let plan = read("plan.json");
    assert_eq!(plan["experiment"], "experiments/ping.toml");
    assert_eq!(plan["command"][1], "ping");
    assert!(read("environment.json")["code"].is_null());
    // It left nothing else where it was called.
    assert_eq!(fs::read_dir(&work).expect("a folder").count(), 1);

    let by_path = alone.out(&[
        "run",
        "experiments/ping.toml",
        "--dry-run",
        "--only",
        "rust/prony",
    ]);
    assert!(by_path.contains("cell: rust/prony"), "{by_path}");
    let listed = alone.out(&["list", "experiments"]);
    assert!(
        listed.contains("\nping                         "),
        "{listed}"
    );

    let subjects = alone.out(&["list", "subjects", "--json"]);
    let subjects: Value = serde_json::from_str(&subjects).expect("JSON");
    let of = |id: &str| {
        let mut all = subjects["subjects"].as_array().expect("subjects").iter();
        all.find(|subject| subject["id"] == id)
            .expect("the subject")
    };
    assert_eq!(of("rust/prony")["here"], true);
    for id in [
        "rust/prony-clicky",
        "python/prony-wsgi",
        "original/nibiru-by-prony",
    ] {
        let missing = of(id)["missing"].as_str().expect("a reason");
        assert!(missing.starts_with("needs a checkout: /"), "{missing}");
        let remedy = of(id)["remedy"].as_str().expect("a remedy");
        assert!(remedy.contains("PRONY_HOME=DIR"), "{remedy}");
    }
    let checked = alone.out(&["check", "rust/prony"]);
    assert!(checked.starts_with("rust/prony"), "{checked}");
}

#[test]
fn what_is_written_to_be_changed_is_what_the_checkout_has_and_is_then_used() {
    let alone = Alone::new("new");
    let said = alone.out(&["new", "subjects", "own"]);
    assert!(
        said.contains("PRONY_HOME=own prony list subjects"),
        "{said}"
    );
    let own = alone.0.join("work/own");
    let root = prony_testkit::root();
    if prony_testkit::need("git").is_some() && root.join(".git").exists() {
        let words = [
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "subjects",
            "experiments",
        ];
        let known = git(&root, &words);
        let known: BTreeSet<&str> = known
            .lines()
            .filter(|name| root.join(name).exists())
            .collect();
        let written = files(&own);
        let names: BTreeSet<&str> = written.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, known);
        for (name, is_program) in &written {
            let source = root.join(name);
            assert_eq!(
                fs::read(own.join(name)).expect("a file"),
                fs::read(&source).expect("a file"),
                "{name}"
            );
            let mode = fs::metadata(&source).expect("a file").permissions().mode();
            assert_eq!(mode & 0o100 != 0, *is_program, "{name}");
        }
    }
    let again = alone.err(&["new", "subjects", "own"], 2);
    assert!(again.contains("own/subjects already exists"), "{again}");
    fs::remove_dir_all(own.join("subjects/rust/axum")).expect("it goes");
    let listed = |command: &mut Command| text(&command.output().expect("prony runs").stdout);
    let above = listed(
        alone
            .command(&["list", "subjects"])
            .current_dir(own.join("experiments")),
    );
    let named = listed(alone.command(&["list", "subjects"]).env("PRONY_HOME", &own));
    for listed in [above, named] {
        assert!(
            listed.contains("rust/prony ") && !listed.contains("rust/axum "),
            "{listed}"
        );
    }
    // A subject of the user's beside those of the program.
    alone.out(&["new", "subject", "python/mine"]);
    let listed = alone.out(&["list", "subjects"]);
    assert!(
        listed.contains("python/mine ") && listed.contains("rust/axum "),
        "{listed}"
    );
}

#[test]
fn unpacking_survives_others_at_the_same_time_and_a_kill_in_the_middle() {
    let alone = Alone::new("unpack");
    let mut cut = alone.command(&["list", "subjects"]);
    let mut cut = cut
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    cut.kill().expect("it is killed");
    let children: Vec<_> = (0..4)
        .map(|_| {
            alone
                .command(&["list", "subjects"])
                .stdout(Stdio::piped())
                .spawn()
                .expect("it starts")
        })
        .collect();
    let outputs: BTreeSet<Vec<u8>> = children
        .into_iter()
        .map(|child| child.wait_with_output().expect("it ends").stdout)
        .collect();
    cut.wait().expect("it ended");
    assert_eq!(outputs.len(), 1);
    let copies = alone.copies();
    assert_eq!(copies.len(), 1);
    alone.out(&["new", "subjects", "own"]);
    let whole = files(&alone.0.join("work/own"));
    assert_eq!(files(&copies[0]), whole);

    // As a kill leaves it: no marker, files that are not whole, and some that are none.
    fs::remove_file(copies[0].join(".done")).expect("a marker");
    fs::write(copies[0].join("subjects/CONTRACT.md"), "# The").expect("a file");
    fs::write(copies[0].join("subjects/.tmp0"), "").expect("a file");
    assert_eq!(alone.err(&["list", "subjects"], 0), "");
    assert_eq!(files(&copies[0]), whole);

    // What was changed or removed is restored, and said.
    let file = copies[0].join("subjects/rust/prony/subject.toml");
    let before = fs::read(&file).expect("a file");
    fs::write(&file, "name = \"other\"\n").expect("a file");
    fs::remove_dir_all(copies[0].join("subjects/c")).expect("a folder");
    let said = alone.err(&["list", "subjects"], 0);
    assert!(
        said.contains("prony: restored ") && said.contains("prony new subjects DIR"),
        "{said}"
    );
    assert_eq!(
        (files(&copies[0]), fs::read(&file).expect("a file")),
        (whole, before)
    );
}

#[test]
fn copies_of_other_versions_are_cleaned_and_the_own_is_kept() {
    let alone = Alone::new("clean");
    alone.out(&["list", "subjects"]);
    let own = alone.copies();
    let shelf = alone.0.join("cache/prony/embedded");
    for name in ["00112233aabb", "0123456789ab"] {
        fs::create_dir_all(shelf.join(name).join("subjects")).expect("a folder");
        fs::write(shelf.join(format!("{name}.lock")), "").expect("a file");
    }
    let used = fs::File::open(shelf.join("0123456789ab.lock")).expect("a lock");
    used.lock_shared().expect("a lock");
    let said = alone.out(&["clean", "--builds", "--dry-run"]);
    assert!(
        said.starts_with("would be removed: ") && said.contains("00112233aabb"),
        "{said}"
    );
    assert_eq!(alone.copies().len(), 3);
    let said = alone.out(&["clean", "--builds"]);
    assert!(said.ends_with("1 folder, 0 B freed\n"), "{said}");
    let left: BTreeSet<PathBuf> = alone.copies().into_iter().collect();
    let kept = [own[0].clone(), shelf.join("0123456789ab")];
    assert_eq!(left, kept.into());
}

#[test]
fn what_is_not_there_and_what_cannot_be_written_is_said() {
    let alone = Alone::new("wrong");
    let wrong = alone.err(&["run", "pnig", "--dry-run"], 2);
    assert!(
        wrong.contains("no experiment `pnig`") && wrong.contains("`ping`"),
        "{wrong}"
    );
    let file = alone.0.join("file");
    fs::write(&file, "").expect("a file");
    let output = alone
        .command(&["list"])
        .env("PRONY_CACHE", &file)
        .output()
        .expect("prony runs");
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(
        err.contains("PRONY_CACHE=DIR names another folder"),
        "{err}"
    );
    let output = alone
        .command(&["list"])
        .env("PRONY_HOME", &alone.0)
        .output()
        .expect("prony runs");
    let err = text(&output.stderr);
    assert!(
        err.contains("without PRONY_HOME Prony uses what it was built with"),
        "{err}"
    );
}

#[test]
fn the_documentation_was_in_a_checkout_only() {
    let alone = Alone::new("docs");
    let page = |name: &str| {
        let path = prony_testkit::root().join(name);
        fs::read_to_string(path).expect("a page")
    };
    for (typed, file) in [
        ("starting", "docs/starting.md"),
        ("docs/experiments.md", "docs/experiments.md"),
        ("contract", "subjects/CONTRACT.md"),
    ] {
        assert_eq!(alone.out(&["docs", typed]), page(file), "{typed}");
    }
    let listed = alone.out(&["docs"]);
    let docs = fs::read_dir(prony_testkit::root().join("docs")).expect("docs");
    let names = docs.map(|entry| {
        entry
            .expect("an entry")
            .file_name()
            .into_string()
            .expect("a name")
    });
    for name in names.filter_map(|name| Some(name.strip_suffix(".md")?.to_owned())) {
        assert!(
            listed
                .lines()
                .any(|line| line.starts_with(&format!("{name} "))),
            "{name}: {listed}"
        );
    }
    let wrong = alone.err(&["docs", "experiment"], 2);
    assert!(wrong.contains("did you mean `experiments`?"), "{wrong}");
    let wrong = alone.err(&["docs", "./experiment"], 2);
    assert!(wrong.contains("takes a checkout"), "{wrong}");
    // What is written for a user names pages that are there.
    alone.out(&[
        "new",
        "experiment",
        "mine.toml",
        "--url",
        "http://127.0.0.1:1/",
    ]);
    let written = fs::read_to_string(alone.0.join("work/mine.toml")).expect("an experiment");
    assert!(written.contains("`prony docs experiments`"), "{written}");
}
