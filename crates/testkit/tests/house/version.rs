//! A release is one version, and the changelog says what is in it (docs/releasing.md).

use std::fs;
use std::path::PathBuf;

use super::assert_none;
use super::source::OWN_SUBJECT;

/// The first quoted word of the line `key = "…"` in the table `[table]` of a TOML file.
fn stated(toml: &str, table: &str, key: &str) -> Option<String> {
    let begin = format!("[{table}]");
    let lines = toml.lines().skip_while(|line| *line != begin).skip(1);
    let mut lines = lines.take_while(|line| !line.starts_with('['));
    let line = lines.find(|line| line.split(['=', '.']).next().map(str::trim) == Some(key))?;
    Some(line.split('"').nth(1).unwrap_or_default().to_owned())
}

#[test]
fn the_version_stands_in_one_place() {
    let root = prony_testkit::root();
    let read = |path: &str| fs::read_to_string(root.join(path)).expect(path);
    let version = stated(&read("Cargo.toml"), "workspace.package", "version");
    let version = version.expect("the workspace has a version");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    let mut breaches = Vec::new();
    let crates = fs::read_dir(root.join("crates"))
        .expect("the crates")
        .flatten();
    let mut packages: Vec<PathBuf> = crates.map(|entry| entry.path()).collect();
    packages.push(root.join(OWN_SUBJECT));
    for folder in packages {
        let text = fs::read_to_string(folder.join("Cargo.toml")).expect("a crate");
        if !text.lines().any(|line| line == "version.workspace = true") {
            breaches.push(format!("{}: a version of its own", folder.display()));
        }
    }
    let python = read("python/pyproject.toml");
    if stated(&python, "project", "version").is_some() {
        breaches
            .push("python/pyproject.toml: the wheel takes the version of crates/wsgi".to_owned());
    }
    let lock = read("Cargo.lock");
    for package in lock
        .split("[[package]]")
        .filter(|text| text.contains("\nname = \"prony-"))
    {
        if !package.contains(&format!("\nversion = \"{version}\"\n")) {
            breaches.push(format!(
                "Cargo.lock:{}: cargo update --workspace",
                package.trim()
            ));
        }
    }
    assert_none(&breaches);
}

#[test]
fn the_changelog_begins_with_the_version_that_is_being_made() {
    let text = fs::read_to_string(prony_testkit::root().join("CHANGELOG.md")).expect("a changelog");
    let heads: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let first = heads.first().copied().unwrap_or_default();
    let (version, when) = first.split_once(", ").unwrap_or((first, ""));
    assert_eq!(
        version,
        env!("CARGO_PKG_VERSION"),
        "the newest section is `{first}`"
    );
    let is_date = when.len() == 10 && when.split('-').all(|part| part.parse::<u16>().is_ok());
    assert!(
        when == "unreleased" || is_date,
        "`{when}` is neither `unreleased` nor a date"
    );
    let numbers = |head: &str| -> Vec<u64> {
        let version = head.split(',').next().unwrap_or_default();
        version
            .split('.')
            .map(|part| part.parse().expect("a number"))
            .collect()
    };
    assert!(
        heads.is_sorted_by(|a, b| numbers(a) > numbers(b)),
        "newest first: {heads:?}"
    );
}
