//! Tells the program which commit it is made from, where there is a git to ask: the last one that touched what it is
//! made of, so that another document in the repository makes no other program.

use std::process::Command;

/// What the program is made of, from the root of the repository.
const SOURCES: [&str; 4] = ["crates", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml"];

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(["-C", "../.."])
        .args(words)
        .arg("--")
        .args(SOURCES)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    // Applications may load modules in C, which look in the program for Lua's functions.
    println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=lua*");
    let commit = git(&["log", "-1", "--abbrev=12", "--format=%h"]).unwrap_or_default();
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_some_and(|text| !text.is_empty());
    println!(
        "cargo::rustc-env=PRONY_COMMIT={commit}{}",
        if changed { "+" } else { "" }
    );
    for source in SOURCES {
        println!("cargo::rerun-if-changed=../../{source}");
    }
    let logs = Command::new("git")
        .args(["rev-parse", "--git-path", "logs/HEAD"])
        .output();
    let logs = logs.ok().filter(|output| output.status.success());
    if let Some(path) = logs.and_then(|output| String::from_utf8(output.stdout).ok()) {
        println!("cargo::rerun-if-changed={}", path.trim());
    }
}
