use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::diagnosis::Diagnoses;
use crate::experiment::{Experiment, Origin};
use crate::scenario::ScenarioFile;
use crate::subject::Subject;

const PAGE: &str = "docs/experiment-reference.md";

/// A file in which the keys of a table stand.
#[derive(Deserialize)]
struct Sample {
    id: String,
    /// `@` stands for the table.
    file: String,
    /// What an example needs beside its own key.
    #[serde(default)]
    usual: String,
    /// The same of single keys.
    #[serde(default)]
    with: BTreeMap<String, String>,
}

impl Sample {
    /// A file in which the table holds `keys`, and what an example of `key` needs.
    fn file_with(&self, key: &KeyEntry, keys: &str) -> String {
        let beside = self.with.get(&key.name).unwrap_or(&self.usual);
        let own = format!("{} =", key.name);
        let beside = beside.lines().filter(|line| !line.starts_with(&own));
        let lines: Vec<&str> = beside.chain([keys]).collect();
        self.file.replacen('@', &lines.join("\n"), 1)
    }
}

/// Each key with the file that its examples stand in.
fn samples() -> Vec<(KeyFile, Sample, &'static KeyEntry)> {
    let text = include_str!("samples.toml");
    let mut read: BTreeMap<String, Vec<Sample>> = toml::from_str(text).expect("samples");
    let mut all = Vec::new();
    for (file, name) in KeyFile::ALL
        .into_iter()
        .zip(["experiment", "subject", "scenario"])
    {
        for table in file.tables() {
            for key in &table.key {
                let samples = read.get_mut(name).expect("samples of a file");
                let place = samples.iter().position(|sample| sample.id == table.id);
                let sample = &samples[place.unwrap_or_else(|| panic!("no sample of {}", key.id))];
                let sample = Sample {
                    id: sample.id.clone(),
                    file: sample.file.clone(),
                    usual: sample.usual.clone(),
                    with: sample.with.clone(),
                };
                all.push((file, sample, key));
            }
        }
    }
    all
}

/// What a file says, without where it says it, and what is warned of.
fn meaning(file: KeyFile, text: &str) -> Result<(String, bool), Diagnoses> {
    let (debug, warns) = match file {
        KeyFile::Experiment => {
            let mut read = Experiment::parse(text, &Origin::new("e.toml", "/srv"))?;
            (read.text, read.sha256) = Default::default();
            (read.run.duration_at, read.run.warmup_at) = (None, None);
            read.run.is_warmup_said = false;
            (format!("{read:#?}"), !read.warnings.is_empty())
        }
        KeyFile::Subject => {
            let origin = Origin::new("subject.toml", "/srv/rust/axum");
            let mut read = Subject::parse(text, &origin)?;
            read.text = String::new();
            (format!("{read:#?}"), false)
        }
        KeyFile::Scenario => {
            let origin = Origin::new("s.toml", "/srv");
            let read = ScenarioFile::parse(text, &origin, &|_| None, true)?;
            (format!("{read:#?}"), false)
        }
    };
    let is_place = |line: &&str| {
        let word = line.trim().trim_end_matches(',');
        let word = word.rsplit(' ').next().unwrap_or_default();
        word.split_once("..")
            .is_some_and(|(a, b)| a.parse::<usize>().and(b.parse::<usize>()).is_ok())
    };
    let lines: Vec<&str> = debug.lines().filter(|line| !is_place(line)).collect();
    Ok((lines.join("\n"), warns))
}

/// Holds what is written to `path` to `text`.
fn check_written(path: &str, text: &str) {
    let full = prony_testkit::root().join(path);
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        fs::write(&full, text).expect("the file");
    }
    let there = fs::read_to_string(&full).unwrap_or_default();
    let differs = there.lines().zip(text.lines()).position(|(a, b)| a != b);
    assert!(
        there == text,
        "{path}:{} is not what the keys say; INSTA_UPDATE=always writes it anew",
        differs.map_or(there.lines().count(), |line| line + 1)
    );
}

#[test]
fn the_page_is_what_the_keys_say() {
    check_written(PAGE, &page());
}

/// All of each key is there, and what holds without it is said once.
#[test]
fn the_keys_are_whole() {
    for file in KeyFile::ALL {
        assert!(file.tables().len() > 4, "{file:?}");
    }
    let all: Vec<&KeyEntry> = samples().iter().map(|(_, _, key)| *key).collect();
    let distinct: BTreeSet<&String> = all.iter().map(|key| &key.id).collect();
    assert_eq!(distinct.len(), all.len());
    for key in all {
        let said = [key.default.is_some(), key.otherwise.is_some(), key.required];
        let said = said.into_iter().filter(|said| *said).count();
        assert_eq!(said, 1, "{}", key.id);
    }
}

/// An example is taken and read, a default that is written down changes nothing, and what is required is required.
#[test]
fn examples_and_defaults_are_what_is_read() {
    let mut wrong = Vec::new();
    for (file, sample, key) in samples() {
        let without = meaning(file, &sample.file_with(key, ""));
        let text = sample.file_with(key, &key.example);
        match meaning(file, &text) {
            Err(refused) => wrong.push(format!("{}: {refused}\n{text}", key.id)),
            Ok((_, true)) => wrong.push(format!("{} is warned of:\n{text}", key.id)),
            Ok(with) if without.as_ref().is_ok_and(|without| *without == with) => {
                wrong.push(format!("{} is not read:\n{text}", key.id));
            }
            Ok(_) => {}
        }
        if key.required && without.is_ok() {
            wrong.push(format!("{} is not required", key.id));
        }
        if let Some(default) = &key.default {
            let with = sample.file_with(key, &format!("{} = {default}", key.name));
            if meaning(file, &with) != without || without.is_err() {
                wrong.push(format!("{default} is not the default of {}", key.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_key_is_found_by_its_id_and_by_its_end() {
    let ids =
        |name: &str| -> Vec<String> { find(name).into_iter().map(|key| key.id.clone()).collect() };
    assert_eq!(ids("run.blocks"), ["run.blocks"]);
    assert_eq!(ids("blocks"), ["run.blocks", "run.quick.blocks"]);
    assert_eq!(ids("quick.blocks"), ["run.quick.blocks"]);
    assert_eq!(ids("homepage"), ["homepage"]);
    assert!(ids("name").len() > 5, "{:?}", ids("name"));
    assert!(ids("locks").is_empty());
    assert!(ids("").is_empty());
    let shown = find("run.visits")[0].to_string();
    insta::assert_snapshot!(shown, @r#"
    run.visits
      Keeps the servers of a workload alive together and measures them in turns of this length, the others paused (Visits).
      Value: length of time from 50 ms to 5 s, or `"off"`
      Without it: `"off"`; with a budget or a precision `"200ms"`
      Example: visits = "200ms"
    "#);
}

#[test]
fn links_become_their_texts() {
    assert_eq!(
        plain("a [b](c.md#d) [[e]] `[f]` [g](h)"),
        "a b [[e]] `[f]` g"
    );
}
