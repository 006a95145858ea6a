//! `prony verify`: a run that is whole, one damaged in each way, and figures in prose.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, PRONY, prony};
use serde_json::Value;

const TINY: &str = r#"
title = "A tiny run"

[run]
blocks = 1
duration = "200ms"
warmup = "20ms"

[[subject]]
cmd = "PRONY serve --port {port}"
name = "serve"

[[workload]]
name = "hello"
request = { path = "/hello" }
connections = [1, 2]
"#;

/// How `prony verify` ended, and what it printed.
fn verify(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let output = prony(folder, &[&["verify"], words].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A folder with a run called `run`.
fn with_run(name: &str) -> PathBuf {
    let folder = common::folder(name);
    fs::write(folder.join("tiny.toml"), TINY.replace("PRONY", PRONY)).expect("an experiment");
    let output = prony(&folder, &["run", "tiny.toml", "--out", "run"]);
    let told = String::from_utf8_lossy(&output.stderr);
    // A busy machine may leave the generator no time: the records are whole all the same.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{told}");
    folder
}

/// The run's files as they were, for one damage after the other.
fn put_back(folder: &Path) {
    let run = folder.join("run");
    let _ = fs::remove_dir_all(&run);
    copy(&folder.join("good"), &run);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("listed").flatten() {
        let (old, new) = (entry.path(), to.join(entry.file_name()));
        match old.is_dir() {
            true => copy(&old, &new),
            false => {
                fs::copy(&old, &new).expect("copied");
            }
        }
    }
}

/// Puts `new` in place of the first `old` in a file of the run.
fn edit(folder: &Path, name: &str, old: &str, new: &str) {
    let path = folder.join("run").join(name);
    let text = fs::read_to_string(&path).expect("text");
    assert!(text.contains(old), "{name} has {old}");
    fs::write(&path, text.replacen(old, new, 1)).expect("written");
}

/// The first trial of the run.
fn first_trial(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("good/trials.jsonl")).expect("trials");
    serde_json::from_str(text.lines().next().expect("a trial")).expect("JSON")
}

#[test]
fn a_run_is_whole_and_each_damage_is_named() {
    let folder = with_run("verify-run");
    fs::rename(folder.join("run"), folder.join("good")).expect("put aside");
    put_back(&folder);
    let (code, out, err) = verify(&folder, &["run"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("run: whole: 2 trials, 2 histograms"), "{out}");
    assert_eq!(err, "");

    let trial = first_trial(&folder);
    let completed = format!("\"completed\":{}", trial["load"]["counts"]["completed"]);
    let seed = format!("\"seed\":{}", trial["seed"]);
    let histogram = trial["histogram"].as_str().expect("a histogram").to_owned();
    let sent = format!("\"sent\":{}", trial["load"]["counts"]["sent"]);
    let unsealed = |folder: &Path| {
        fs::remove_file(folder.join("run/records.sha256")).expect("it was sealed");
    };
    let damage = |what: &dyn Fn(&Path), told: &[&str]| {
        put_back(&folder);
        what(&folder);
        let (code, out, err) = verify(&folder, &["run"]);
        assert_eq!(code, Some(1), "{told:?}: {out}{err}");
        for told in told {
            assert!(out.contains(told), "{told}: {out}{err}");
        }
    };
    // A byte that nothing else contradicts: what is reported of it is said to be of changed records.
    let reported = || {
        let output = prony(&folder, &["report", "run"]);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(reported(), "");
    damage(
        &|f| edit(f, "trials.jsonl", &seed, "\"seed\":7"),
        &["run/trials.jsonl: was changed after the run ended"],
    );
    insta::assert_snapshot!(reported(), @"prony: run: its records were changed after the run ended (1 file): `prony verify run` names each");
    damage(
        &|f| fs::remove_file(f.join("run").join(&histogram)).expect("gone"),
        &[&format!("run/{histogram}: is not there")],
    );
    damage(
        &|f| edit(f, "document.md", "A tiny run", "A tidy run"),
        &["run/document.md:1: was changed after it was rendered"],
    );
    damage(
        &|f| fs::remove_file(f.join("run/index.html")).expect("gone"),
        &["run/index.html: is not there", "`prony report run`"],
    );
    // Without the digests of the records they still contradict each other.
    damage(
        &|f| {
            unsealed(f);
            edit(f, "trials.jsonl", &sent, "\"sent\":7");
        },
        &[
            "serve hello c=",
            "block 1: sent is 7, but completed, failed and in flight come to",
        ],
    );
    damage(
        &|f| {
            unsealed(f);
            edit(f, &histogram, "\"counts\":[", "\"counts\":[[1,1],");
        },
        &["the histogram has"],
    );
    damage(
        &|f| {
            unsealed(f);
            edit(f, "trials.jsonl", &completed, "\"completed\":x");
        },
        &["run/trials.jsonl:1: "],
    );
    damage(
        &|f| {
            unsealed(f);
            let path = f.join("run/trials.jsonl");
            let text = fs::read_to_string(&path).expect("text");
            fs::write(&path, &text[..text.len() - 20]).expect("cut");
        },
        &["run/trials.jsonl:2: a trial that is cut off"],
    );
    fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn documents_of_another_prony_are_a_note_and_resuming_seals_anew() {
    let folder = with_run("verify-older");
    fs::rename(folder.join("run"), folder.join("good")).expect("put aside");
    put_back(&folder);
    let first = fs::read_to_string(folder.join("run/documents.sha256")).expect("digests");
    let older = "# rendered by prony 0.1.0 (abc)";
    let head = first.lines().next().expect("a first line").to_owned();
    // As if an older one had rendered it otherwise.
    edit(&folder, "document.md", "A tiny run", "The tiny run");
    let sum = Command::new("sha256sum")
        .current_dir(folder.join("run"))
        .arg("document.md")
        .output()
        .expect("coreutils");
    let sum = String::from_utf8(sum.stdout).expect("a line");
    let old = first
        .lines()
        .find(|l| l.ends_with("  document.md"))
        .expect("its line");
    edit(&folder, "documents.sha256", old, sum.trim_end());
    edit(&folder, "documents.sha256", &head, older);
    let (code, out, err) = verify(&folder, &["run"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        err.contains("1 document rendered by prony 0.1.0 (abc)"),
        "{err}"
    );
    // Rendered by this one, it could not say so.
    edit(&folder, "documents.sha256", older, &head);
    let (code, out, _) = verify(&folder, &["run"]);
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.contains("run/document.md:1: the records render to something else"),
        "{out}"
    );

    put_back(&folder);
    let sums = folder.join("run/records.sha256");
    let before = fs::read(&sums).expect("digests");
    fs::remove_file(&sums).expect("gone");
    let output = prony(&folder, &["run", "tiny.toml", "--resume", "run"]);
    assert!(matches!(output.status.code(), Some(0 | 3)));
    assert_eq!(fs::read(&sums).expect("digests"), before);
    fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn figures_in_prose_are_held_against_the_run_and_written_right() {
    let folder = with_run("verify-prose");
    let bind =
        |name: &str, figure: &str| format!("<!-- {{{{{name}}}}} -->{figure}<!-- {{{{/}}}} -->");
    let text = format!(
        "# Mine\r\n<!-- {{{{run run}}}} -->\nIt completed {} of them\n\nin {}  block, `<!-- {{{{x}}}} -->` as it were.  \n",
        bind("completed \"hello\"\n connections=2", "12"),
        bind("blocks", "1"),
    );
    let path = folder.join("mine.md");
    fs::write(&path, &text).expect("prose");
    let (code, out, _) = verify(&folder, &["mine.md"]);
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.contains("mine.md:4: `12` is written here, and run has `"),
        "{out}"
    );
    assert!(out.contains("mine.md: 1 bound figure is right"), "{out}");
    assert_eq!(
        fs::read_to_string(&path).expect("prose"),
        text,
        "nothing is written unasked"
    );

    let (code, out, _) = verify(&folder, &["--fix", "mine.md"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains(": written"), "{out}");
    let fixed = fs::read_to_string(&path).expect("prose");
    let right = fixed
        .split("connections=2}} -->")
        .nth(1)
        .expect("the figure");
    let right = right.split('<').next().expect("its end");
    let digits = right.replace(',', "");
    assert!(digits.parse::<u64>().expect("a count") > 0, "{right}");
    assert_eq!(fixed.replacen(right, "12", 1), text, "all else stays");
    assert_eq!(verify(&folder, &["mine.md"]).0, Some(0));

    // Off by one, in a text beside the run that names none.
    let off = digits.parse::<u64>().expect("a count") + 1;
    let beside = folder.join("run/notes.md");
    let told = bind("completed subject=serve connections=2", &off.to_string());
    fs::write(&beside, told).expect("prose");
    let (code, out, _) = verify(&folder, &["run"]);
    assert_eq!(code, Some(1), "{out}");
    let said = format!("run/notes.md:1: `{off}` is written here, and run has `{right}`");
    assert!(out.contains(&said), "{out}");

    for (words, told) in [
        (
            "rat \"hello\" connections=1",
            "`rat` is not a figure of this run; did you mean `rate`?",
        ),
        (
            "rate \"helo\"",
            "`helo` is not a workload of this run; did you mean `hello`?",
        ),
        ("rate \"hello\"", "2 cells are meant"),
    ] {
        fs::write(&beside, format!("\n{}", bind(words, "1"))).expect("prose");
        let (code, out, _) = verify(&folder, &["run"]);
        assert_eq!(code, Some(2), "{out}");
        assert!(out.contains("run/notes.md:2: {{"), "{out}");
        assert!(out.contains(told), "{told}: {out}");
    }
    fs::write(&beside, bind("blocks", "1")).expect("prose");
    let (code, out, _) = verify(&folder, &["run/notes.md"]);
    assert_eq!(code, Some(2), "{out}");
    assert!(out.contains("no run is named"), "{out}");
    for words in [&["nowhere"][..], &["cache-of-none", "run"], &[]] {
        assert_eq!(verify(&folder, words).0, Some(2), "{words:?}");
    }
    fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn a_file_that_holds_nothing_to_check_passed_in_silence() {
    let folder = common::folder("verify-silent");
    fs::write(folder.join("empty.prony"), "").expect("written");
    fs::write(folder.join("page.PRONY"), "<html></html>").expect("written");
    fs::write(folder.join("prose.md"), "Words.\n").expect("written");
    for name in ["empty.prony", "page.PRONY"] {
        let (code, out, err) = verify(&folder, &[name, "prose.md"]);
        assert_eq!(code, Some(2), "{out}{err}");
        let told = format!("{name}: not a bundle: it does not begin with the four bytes of zstd\n");
        assert!(out.starts_with(&told), "{out}{err}");
        assert!(out.ends_with("prose.md: no figures\n"), "{out}{err}");
    }
    let (code, out, err) = verify(&folder, &["prose.md"]);
    assert_eq!(
        (code, &*out, &*err),
        (Some(0), "prose.md: no figures\n", "")
    );
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn excerpts_are_held_against_the_text_that_they_are_of() {
    let folder = common::folder("verify-excerpt");
    let there = "| a | 1 |\n| b | 2 |\n\n| a | 3 |\n| b | 4 |\nAll of it.\n";
    fs::write(folder.join("there.md"), there).expect("a text");
    let excerpt = |rows: &str| {
        format!("x\r\n<!-- excerpt: there.md of x.toml -->\n{rows}<!-- /excerpt -->\ny\n")
    };
    let path = folder.join("mine.md");
    fs::write(&path, excerpt("| a | 3 |\n| b | 9 |\nAll of it.\n")).expect("prose");
    let (code, out, _) = verify(&folder, &["mine.md"]);
    assert_eq!(code, Some(1), "{out}");
    let said = "mine.md:4: `| b | 9 |` is not a line of there.md; there it is `| b | 4 |`";
    assert!(out.contains(said), "{out}");
    assert_eq!(verify(&folder, &["--fix", "mine.md"]).0, Some(0));
    let right = excerpt("| a | 3 |\n| b | 4 |\nAll of it.\n");
    assert_eq!(fs::read_to_string(&path).expect("prose"), right);
    assert_eq!(verify(&folder, &["mine.md"]).0, Some(0));
    // What is nowhere there has nothing to be put in its place.
    fs::write(&path, excerpt("None of it.\n")).expect("prose");
    let (code, out, _) = verify(&folder, &["--fix", "mine.md"]);
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.contains("mine.md:3: `None of it.` is not a line of there.md"),
        "{out}"
    );
    fs::remove_file(folder.join("there.md")).expect("gone");
    let (code, out, _) = verify(&folder, &["mine.md"]);
    assert_eq!(
        (code, out.as_str()),
        (Some(2), "mine.md:2: there.md does not exist\n")
    );
    fs::remove_dir_all(&folder).expect("the folder goes");
}
