//! Tells the program which commit it is made from, where there is a git to ask: the last one that touched what it is
//! made of, so that another document in the repository makes no other program.
//!
//! Packs `subjects/` and `experiments/` for `src/embedded.rs`, and the pages of the documentation, so that the program needs
//! no checkout. No git is asked for that: what it ignores there is known by its name, and a test compares both.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, io};

/// What the program is made of, from the root of the repository.
const SOURCES: [&str; 5] = [
    ".cargo",
    "crates",
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
];

/// What is packed, from the root of the repository.
const PACKED: [&str; 2] = ["experiments", "subjects"];
/// A page beside those in `docs/`.
const CONTRACT: &str = "subjects/CONTRACT.md";
/// Folders and endings of files that builds and tests leave there.
const IGNORED: [&str; 5] = [".git", ".venv", "__pycache__", "node_modules", "target"];
const IGNORED_ENDINGS: [&str; 2] = [".pyc", ".pending-snap"];
/// It takes two seconds, once for each change of a subject or an experiment.
const LEVEL: i32 = 19;

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

/// The files below `folder` that are packed, by their paths from `root`.
fn files(root: &Path, folder: &Path, found: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if IGNORED.contains(&name.as_ref()) || IGNORED_ENDINGS.iter().any(|end| name.ends_with(end))
        {
            continue;
        }
        if entry.file_type()?.is_dir() {
            files(root, &path, found)?;
        } else {
            let below = path.strip_prefix(root).unwrap_or(&path);
            found.insert(below.display().to_string(), path.clone());
        }
    }
    Ok(())
}

/// What the program holds: subjects and experiments.
fn own_files(root: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for folder in PACKED {
        files(root, &root.join(folder), &mut found)?;
    }
    Ok(found)
}

/// The pages that `prony docs` prints. Findings are in the program by themselves; documents of runs and decisions are not.
fn pages(root: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::from([(CONTRACT.to_owned(), root.join(CONTRACT))]);
    for entry in fs::read_dir(root.join("docs"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "md") {
            let below = path.strip_prefix(root).unwrap_or(&path);
            found.insert(below.display().to_string(), path);
        }
    }
    Ok(found)
}

/// The archive, with the same bytes for the same files: neither owners nor times.
fn packed(found: &BTreeMap<String, PathBuf>) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, path) in found {
        let bytes = fs::read(path)?;
        let is_program = fs::metadata(path)?.permissions().mode() & 0o100 != 0;
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(if is_program { 0o755 } else { 0o644 });
        archive.append_data(&mut header, name, &bytes[..])?;
    }
    let archive = archive.into_inner()?;
    let mut packed = vec![0; zstd_safe::compress_bound(archive.len())];
    let made = zstd_safe::compress(&mut packed[..], &archive, LEVEL)
        .map_err(|code| io::Error::other(zstd_safe::get_error_name(code)))?;
    packed.truncate(made);
    Ok(packed)
}

fn main() {
    let root = Path::new("../..");
    let place = env::var_os("OUT_DIR").expect("cargo names a folder");
    for (name, found) in [("files", own_files(root)), ("pages", pages(root))] {
        for path in found
            .iter()
            .filter(|_| name == "pages")
            .flat_map(BTreeMap::values)
        {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        let packed = found.and_then(|found| packed(&found));
        let written = packed.and_then(|packed| fs::write(Path::new(&place).join(name), packed));
        if let Err(error) = written {
            println!(
                "cargo::error=prony-cli is built in its checkout, with docs/, experiments/ and subjects/: {error}"
            );
        }
    }
    for folder in PACKED {
        println!("cargo::rerun-if-changed=../../{folder}");
    }
    // A script may load modules in C, which look in the program for Lua's functions.
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
