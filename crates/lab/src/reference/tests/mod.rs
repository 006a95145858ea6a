use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::diagnosis::Diagnoses;
use crate::experiment::{Experiment, Origin};
use crate::scenario::{ScenarioContext, ScenarioFile};
use crate::subject::Subject;

const PAGE: &str = "docs/experiment-reference.md";

/// Files of one kind in which keys stand.
#[derive(Deserialize)]
struct Samples {
    /// A file that says as little as it can.
    base: String,
    /// What is particular to a table, by its id.
    table: BTreeMap<String, Sample>,
}

/// What the keys of a table stand in.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Sample {
    /// A file, in which `@` stands for the table; empty: the base with it.
    file: String,
    /// What an example needs beside its own key.
    usual: String,
    /// The same of single keys.
    with: BTreeMap<String, String>,
}

impl Sample {
    /// A file in which the table holds `keys`, and what an example of `key` needs.
    fn file_with(&self, key: &KeyEntry, keys: &str) -> String {
        let beside = self.with.get(&key.name).unwrap_or(&self.usual);
        let key = format!("{} =", key.name);
        let beside = beside.lines().filter(|line| !line.starts_with(&key));
        let lines: Vec<&str> = beside.chain([keys]).collect();
        self.file.replacen('@', &lines.join("\n"), 1)
    }
}

/// `base` with the table in place of what it has of it.
fn laid_into(base: &str, table: &KeyTable) -> String {
    let header = match (table.id.as_str(), table.several) {
        ("", _) => String::new(),
        (id, true) => format!("[[{id}]]"),
        (id, false) => format!("[{id}]"),
    };
    let mut sections: Vec<String> = vec![String::new()];
    for line in base.lines() {
        if line.starts_with('[') {
            sections.push(String::new());
        }
        sections
            .last_mut()
            .expect("one at least")
            .push_str(&format!("{line}\n"));
    }
    if header.is_empty() {
        return format!("@\n{}", sections[1..].concat());
    }
    sections.retain(|section| section.lines().next() != Some(&header));
    format!("{}{header}\n@\n", sections.concat())
}

/// Each key with its table, and what its examples stand in.
fn samples() -> Vec<(KeyFile, &'static KeyTable, &'static KeyEntry, Sample)> {
    let text = include_str!("samples.toml");
    let read: BTreeMap<String, Samples> = toml::from_str(text).expect("samples");
    let mut all = Vec::new();
    for file in KeyFile::ALL {
        let Samples {
            base,
            table: by_table,
        } = &read[file.name()];
        for table in file.tables() {
            let mut sample = by_table.get(&table.id).cloned().unwrap_or_default();
            if sample.file.is_empty() {
                sample.file = laid_into(base, table);
            }
            let keys = table.key.iter();
            all.extend(keys.map(|key| (file, table, key, sample.clone())));
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
            let context = ScenarioContext {
                variables: &|_| None,
                has_data: true,
            };
            let read = ScenarioFile::parse(text, "s.toml", &context)?;
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

#[test]
fn the_schemas_are_what_the_keys_say() {
    for file in KeyFile::ALL {
        let path = format!("docs/schemas/{}.json", file.name());
        check_written(&path, &format!("{:#}\n", schema(file)));
    }
}

/// Files of this repository, of each kind.
fn written_here(file: KeyFile) -> Vec<String> {
    let root = prony_testkit::root();
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect()
    };
    let paths = match file {
        KeyFile::Experiment => below(&root.join("experiments")),
        KeyFile::Subject => {
            let groups = below(&root.join("subjects"));
            let folders = groups.iter().flat_map(|group| below(group));
            folders.map(|folder| folder.join("subject.toml")).collect()
        }
        KeyFile::Scenario => Vec::new(),
    };
    let paths = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|name| name == "toml"));
    let texts: Vec<String> = paths
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    assert!(texts.len() > 5 || file == KeyFile::Scenario, "{file:?}");
    texts
}

/// Every file of this repository and every example is right by the schema, and a key that none has is wrong in each table.
#[test]
fn the_schemas_take_what_is_read_and_refuse_other_keys() {
    for file in KeyFile::ALL {
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler
            .add_resource("s.json", schema(file))
            .expect("a resource");
        let index = compiler.compile("s.json", &mut schemas).expect("a schema");
        let is_right = |text: &str| {
            let value: serde_json::Value = toml::from_str(text).expect(text);
            let wrong = schemas.validate(&value, index).err();
            wrong.map(|wrong| format!("{wrong:#}\n{text}"))
        };
        let samples = samples().into_iter().filter(|(of, ..)| *of == file);
        let (mut texts, mut misspelt) = (written_here(file), Vec::new());
        for text in &texts {
            meaning(file, text).expect(text);
        }
        for (_, table, key, sample) in samples {
            texts.push(sample.file_with(key, &key.example));
            if !table.others {
                misspelt.push(sample.file_with(key, "no_such_key = 1"));
            }
        }
        let wrong: Vec<String> = texts.iter().filter_map(|text| is_right(text)).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        for text in misspelt {
            assert!(is_right(&text).is_some(), "{text}");
            assert!(meaning(file, &text).is_err(), "{text}");
        }
    }
}

/// All of each key is there, and what holds without it is said once.
#[test]
fn the_keys_are_whole() {
    for file in KeyFile::ALL {
        assert!(file.tables().len() > 4, "{file:?}");
    }
    let all: Vec<&KeyEntry> = samples().iter().map(|(_, _, key, _)| *key).collect();
    let distinct: BTreeSet<&String> = all.iter().map(|key| &key.id).collect();
    assert_eq!(distinct.len(), all.len());
    for key in all {
        assert!(
            key.default.is_none() || key.otherwise.is_none(),
            "{}",
            key.id
        );
    }
}

/// An example is taken and read, a default that is written down changes nothing, and what is required is required.
#[test]
fn examples_and_defaults_are_what_is_read() {
    let mut wrong = Vec::new();
    for (file, _, key, sample) in samples() {
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
        if key.is_required() && without.is_ok() {
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
