//! Tells the program which commit it is made from, where there is a git to ask.

use std::process::Command;

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    let changed = git(&[
        "status",
        "--porcelain",
        "--untracked-files=no",
        "../../crates",
    ])
    .is_some_and(|text| !text.is_empty());
    println!(
        "cargo::rustc-env=PRONY_COMMIT={commit}{}",
        if changed { "+" } else { "" }
    );
    println!("cargo::rerun-if-changed=../../crates");
    if let Some(folder) = git(&["rev-parse", "--git-dir"]) {
        println!("cargo::rerun-if-changed={folder}/logs/HEAD");
    }
}
