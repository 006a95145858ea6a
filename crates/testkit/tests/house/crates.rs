//! How many crates the program is made of, which is what its first build takes time for.
//!
//! Read from `Cargo.lock`, so that neither cargo nor a network is asked: crates of every platform count, crates that only tests need do
//! not. `.ci/release` says how many of them are compiled on this machine, and how long that takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Crates that the program may be made of. Who needs more raises it, and says in the commit what that costs a first build.
const CRATES_MAX: usize = 293;
const PROGRAM: &str = "prony-cli";

/// The packages of a lock file by `name version`, each with what it depends on, as it is written there.
fn packages(lock: &str) -> BTreeMap<String, Vec<String>> {
    let quoted = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
    let read = |text: &str| {
        let field = |key: &str| {
            let found = text.lines().find(|line| line.starts_with(key));
            quoted(found.unwrap_or_default())
        };
        let needs = text.lines().filter(|line| line.starts_with(" \""));
        let name = format!("{} {}", field("name = "), field("version = "));
        (name, needs.map(quoted).collect())
    };
    lock.split("[[package]]\n").skip(1).map(read).collect()
}

/// The names under `[dependencies]` and `[build-dependencies]` of a `Cargo.toml`, those of single platforms included.
fn declared(manifest: &str) -> BTreeSet<String> {
    let mut counts = false;
    let mut names = BTreeSet::new();
    for line in manifest.lines() {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            counts = table.ends_with("dependencies") && !table.contains("dev-dependencies");
        } else if counts && let Some((name, rest)) = line.split_once([' ', '.', '=']) {
            // Under another name: `package = "…"`.
            let renamed = rest.split("package = \"").nth(1);
            let real = renamed.and_then(|rest| rest.split('"').next());
            names.insert(real.unwrap_or(name).to_owned());
        }
    }
    names.remove("#");
    names
}

/// What `PROGRAM` is made of. `of_ours` is the manifest of a crate of this repository, by name.
fn reachable(lock: &str, of_ours: &dyn Fn(&str) -> Option<String>) -> BTreeSet<String> {
    let all = packages(lock);
    let whole = |written: &str| {
        let mut known = all.keys();
        let is_it = |one: &&String| {
            *one == written || one.split(' ').next().is_some_and(|name| name == written)
        };
        known.find(is_it).cloned()
    };
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = whole(PROGRAM).into_iter().collect();
    while let Some(one) = open.pop() {
        let name = one.split(' ').next().unwrap_or_default();
        let own = of_ours(name).map(|manifest| declared(&manifest));
        for need in &all[&one] {
            let short = need.split(' ').next().unwrap_or_default();
            // A lock file tells nothing apart of what a crate of ours needs for its tests.
            if own.as_ref().is_none_or(|own| own.contains(short)) {
                open.extend(whole(need).filter(|need| !found.contains(need)));
            }
        }
        found.insert(one);
    }
    found
}

#[test]
fn the_program_is_made_of_no_more_crates() {
    let root = prony_testkit::root();
    let lock = fs::read_to_string(root.join("Cargo.lock")).expect("a lock file");
    let of_ours = |name: &str| {
        let folder = name.strip_prefix("prony-")?;
        fs::read_to_string(root.join("crates").join(folder).join("Cargo.toml")).ok()
    };
    let found = reachable(&lock, &of_ours);
    assert!(
        found.len() <= CRATES_MAX,
        "{PROGRAM} is made of {} crates, and may be of {CRATES_MAX}: {found:?}",
        found.len()
    );
}

#[test]
fn a_crate_for_tests_does_not_count() {
    let lock = "[[package]]\nname = \"prony-cli\"\nversion = \"1\"\ndependencies = [\n \"a\",\n \"b 2\",\n \"t\",\n]\n\n\
                [[package]]\nname = \"a\"\nversion = \"1\"\ndependencies = [\n \"c\",\n]\n\n[[package]]\nname = \"b\"\nversion = \"1\"\n\n\
                [[package]]\nname = \"b\"\nversion = \"2\"\n\n[[package]]\nname = \"c\"\nversion = \"1\"\n\n[[package]]\nname = \"t\"\nversion = \"1\"\n";
    let manifest = "[dependencies]\na.workspace = true\n\n[target.'cfg(unix)'.build-dependencies]\nx = { package = \"b\" }\n\n\
                    [dev-dependencies]\nt = \"1\"\n";
    let of_ours = |name: &str| (name == PROGRAM).then(|| manifest.to_owned());
    let found: Vec<String> = reachable(lock, &of_ours).into_iter().collect();
    assert_eq!(found, ["a 1", "b 2", "c 1", "prony-cli 1"]);
}
