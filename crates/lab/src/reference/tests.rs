use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;
use crate::experiment::Experiment;
use crate::subject::Subject;

const PAGE: &str = "docs/experiment-reference.md";

/// The file beside the parser is read whole.
#[test]
fn the_words_are_toml() {
    for file in KeyFile::ALL {
        let words: Result<FileWords, _> = toml::from_str(file.words());
        assert!(words.expect("words").table.len() > 10);
    }
}

#[test]
fn the_page_is_what_the_parser_says() {
    let path = prony_testkit::root().join(PAGE);
    let page = page();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        fs::write(&path, &page).expect("the page");
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    let differs = there.lines().zip(page.lines()).position(|(a, b)| a != b);
    assert!(
        there == page,
        "{PAGE}:{} is not what the parser says; INSTA_UPDATE=always writes it anew",
        differs.map_or(there.lines().count(), |line| line + 1)
    );
}

#[test]
fn every_example_is_taken_by_the_parser() {
    let mut refused = Vec::new();
    for file in KeyFile::ALL {
        for table in words(file) {
            for key in &table.key {
                let text = table.file_with(key, &key.example);
                let problems = file.read(&text);
                for problem in problems.errors.iter().chain(&problems.warnings) {
                    refused.push(format!("{}: {problem:?}\n{text}", table.key_id(key)));
                }
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// Files of this repository, of each kind.
fn written_here(file: KeyFile) -> Vec<String> {
    let root = prony_testkit::root();
    let below = |folder: &Path| -> Vec<std::path::PathBuf> {
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
    };
    let texts: Vec<String> = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|name| name == "toml"))
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    assert!(texts.len() > 5, "{file:?}");
    texts
}

/// The keys that the parser requests are those that are described: in the examples and in all files of this repository.
#[test]
fn every_key_of_the_parser_is_described_and_no_other() {
    let mut wrong = BTreeSet::new();
    for file in KeyFile::ALL {
        let tables = words(file);
        let mut read: Vec<ReadTable> = tables
            .iter()
            .flat_map(|table| requested(file, table))
            .collect();
        read.extend(
            written_here(file)
                .iter()
                .flat_map(|text| file.read(text).read),
        );
        let table_of = |place: &str| tables.iter().find(|t| t.places.iter().any(|p| p == place));
        for one in &read {
            let Some(table) = table_of(one.place) else {
                wrong.insert(format!(
                    "{file:?}: the table {} is not described",
                    one.place
                ));
                continue;
            };
            for (name, form) in &one.keys {
                let is_table = match form {
                    ValueForm::Table(place) | ValueForm::Tables(place) => table_of(place).is_some(),
                    _ => false,
                };
                let is_described = table.key.iter().any(|key| key.name == *name);
                let is_refused = table.refused.iter().any(|key| key == name);
                // A table's name is also requested where it is refused, as any value.
                let is_named = tables.iter().any(|t| t.id.rsplit('.').next() == Some(name));
                if !(is_table || is_described || is_refused || *form == ValueForm::Any && is_named)
                {
                    wrong.insert(format!(
                        "{file:?}: `{name}` of {} is not described",
                        one.place
                    ));
                }
            }
        }
        for table in &tables {
            for key in &table.key {
                let forms = forms(&read, table, key);
                let id = table.key_id(key);
                if forms.is_empty() {
                    wrong.insert(format!("{file:?}: the parser has no `{id}`"));
                }
                if form_of(key, &forms).is_empty() || forms.len() > 1 && key.form.is_none() {
                    wrong.insert(format!("{file:?}: `{id}` needs a `form`: {forms:?}"));
                }
                if key.form.is_some()
                    && matches!(forms[..], [ValueForm::Truth | ValueForm::Whole(_)])
                {
                    wrong.insert(format!("{file:?}: the parser itself says what `{id}` is"));
                }
            }
        }
    }
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a file says, without where it says it.
fn meaning(file: KeyFile, text: &str) -> String {
    let debug = match file {
        KeyFile::Experiment => {
            let mut read = Experiment::parse(text, &Origin::new("e.toml", "/srv")).expect(text);
            (read.text, read.sha256) = Default::default();
            (read.run.duration_at, read.run.warmup_at) = (None, None);
            read.run.is_warmup_said = false;
            format!("{read:#?}")
        }
        KeyFile::Subject => {
            let origin = Origin::new("subject.toml", "/srv/rust/axum");
            let mut read = Subject::parse(text, &origin).expect(text);
            read.text = String::new();
            format!("{read:#?}")
        }
    };
    let is_place = |line: &&str| {
        let word = line.trim().trim_end_matches(',');
        let word = word.rsplit(' ').next().unwrap_or_default();
        word.split_once("..")
            .is_some_and(|(a, b)| a.parse::<usize>().and(b.parse::<usize>()).is_ok())
    };
    debug
        .lines()
        .filter(|line| !is_place(line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A default that is written down changes nothing, and what is required is required.
#[test]
fn defaults_are_what_holds_without_the_key() {
    for file in KeyFile::ALL {
        for table in words(file) {
            for key in &table.key {
                let (id, without) = (table.key_id(key), table.file_with(key, ""));
                let said = [key.default.is_some(), key.otherwise.is_some(), key.needed];
                assert_eq!(said.into_iter().filter(|said| *said).count(), 1, "{id}");
                if key.needed {
                    assert!(
                        !file.read(&without).errors.is_empty(),
                        "{id} is not required:\n{without}"
                    );
                }
                if let Some(default) = &key.default {
                    let with = table.file_with(key, &format!("{} = {default}", key.name));
                    assert_eq!(meaning(file, &with), meaning(file, &without), "{id}");
                    let example = table.file_with(key, &key.example);
                    assert_ne!(meaning(file, &example), meaning(file, &without), "{id}");
                }
            }
        }
    }
}

#[test]
fn a_key_is_found_by_its_id_and_by_its_end() {
    let ids = |name: &str| -> Vec<String> { find(name).into_iter().map(|key| key.id).collect() };
    assert_eq!(ids("run.blocks"), ["run.blocks"]);
    assert_eq!(ids("blocks"), ["run.blocks", "run.quick.blocks"]);
    assert_eq!(ids("quick.blocks"), ["run.quick.blocks"]);
    assert_eq!(ids("homepage"), ["homepage"]);
    assert!(ids("name").len() > 5, "{:?}", ids("name"));
    assert!(ids("locks").is_empty());
    assert!(ids("").is_empty());
    let all = entries();
    let distinct: BTreeSet<&String> = all.iter().map(|key| &key.id).collect();
    assert_eq!(distinct.len(), all.len());
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
