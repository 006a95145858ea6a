//! The keys of the files that people write, as a reference: `docs/experiment-reference.md`, and `prony explain KEY`.
//!
//! Which keys there are, and what their values must be, comes from the parser: it reads an example of every key and notes
//! which keys it requests of each table (`ReadTable`). What a key means stands beside it, in `reference/*.toml`. The tests hold the two
//! together: a key that only one of them has, a default that is not one, or an example that is refused fails them.
//!
//! Not for: how the parts of an experiment work together, which `docs/experiments.md` tells.
//!
//! # Examples
//! ```
//! let found = prony_lab::reference::find("run.blocks");
//! assert_eq!(found[0].example, "blocks = 12");
//! assert_eq!(found[0].form, "whole number from 1 to 1000");
//! ```

use std::fmt::{self, Write as _};

use prony_base::Nanos;
use serde::Deserialize;

use crate::experiment::fields::{Origin, Problems, ReadTable, ValueForm};
use crate::experiment::read;
use crate::subject::file;

#[cfg(test)]
mod tests;

/// The page, without its keys.
const HEAD: &str = "\
# Keys of an experiment and of a subject

<!-- Generated from the parser and from crates/lab/src/reference/*.toml: INSTA_UPDATE=always cargo test -p prony-lab reference -->

Every key of an experiment file, and then of a [`subject.toml`](#subjecttoml). How they work together: [The experiment
file](experiments.md); what a subject must do: [the contract](../subjects/CONTRACT.md). An unknown key is an error, with its line and the
nearest name. `prony explain KEY` prints one entry, such as `prony explain run.blocks`.

A length of time is a text with its unit: `\"300ms\"`, in `ns`, `us`, `ms`, `s`, `m` or `h`. A file has at most
1 MiB, a list or table 1,000 items. A table in `[[double brackets]]` may stand several times.
";

/// A file that people write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum KeyFile {
    Experiment,
    Subject,
}

impl KeyFile {
    const ALL: [KeyFile; 2] = [KeyFile::Experiment, KeyFile::Subject];

    fn title(self) -> &'static str {
        match self {
            KeyFile::Experiment => "The experiment file",
            KeyFile::Subject => "`subject.toml`",
        }
    }

    fn top(self) -> &'static str {
        match self {
            KeyFile::Experiment => "Top of an experiment",
            KeyFile::Subject => "Top of a subject",
        }
    }

    fn words(self) -> &'static str {
        match self {
            KeyFile::Experiment => include_str!("reference/experiment.toml"),
            KeyFile::Subject => include_str!("reference/subject.toml"),
        }
    }

    /// Reads a whole file as the parser does; the problems hold the keys that it requested.
    fn read(self, text: &str) -> Problems {
        let mut problems = Problems::default();
        match self {
            KeyFile::Experiment => {
                read::experiment(text, &Origin::new("e.toml", "/srv"), &mut problems);
            }
            KeyFile::Subject => {
                let origin = Origin::new("subject.toml", "/srv/rust/axum");
                file::read(text, &origin, &mut problems);
            }
        }
        problems
    }
}

/// What `reference/*.toml` says of one file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileWords {
    table: Vec<TableWords>,
}

/// Of one table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableWords {
    id: String,
    places: Vec<String>,
    text: String,
    file: String,
    #[serde(default)]
    usual: String,
    /// Keys that the parser knows only to refuse them with a hint.
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "it is there for the tests"))]
    refused: Vec<String>,
    key: Vec<KeyWords>,
}

impl TableWords {
    /// A file in which this table holds `keys`, and what an example of `key` needs.
    fn file_with(&self, key: &KeyWords, keys: &str) -> String {
        let beside = key.with.as_ref().unwrap_or(&self.usual).trim();
        let lines: Vec<&str> = [beside, keys]
            .into_iter()
            .filter(|s| !s.is_empty())
            .collect();
        self.file.replacen('@', &lines.join("\n"), 1)
    }

    fn key_id(&self, key: &KeyWords) -> String {
        match self.id.as_str() {
            "" => key.name.clone(),
            id => format!("{id}.{}", key.name),
        }
    }
}

/// Of one key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyWords {
    name: String,
    text: String,
    example: String,
    default: Option<String>,
    otherwise: Option<String>,
    #[serde(default)]
    needed: bool,
    form: Option<String>,
    of: Option<String>,
    with: Option<String>,
}

impl KeyWords {
    /// What holds without it.
    fn without(&self) -> String {
        match (&self.default, &self.otherwise, self.needed) {
            (Some(default), ..) => format!("Default: `{default}`"),
            (None, Some(otherwise), _) => format!("Without it: {otherwise}"),
            (None, None, true) => "Required".to_owned(),
            (None, None, false) => String::new(),
        }
    }
}

/// One key, as the reference describes it. The texts are Markdown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyEntry {
    /// Its table and its name: `run.blocks`.
    pub id: String,
    /// What it does.
    pub text: String,
    /// What its value must be, with its unit and range.
    pub form: String,
    /// Its default, what holds without it, or that it is required.
    pub without: String,
    /// A line that has it.
    pub example: String,
}

impl fmt::Display for KeyEntry {
    /// For a terminal: plain text on several lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n  {}", self.id, plain(&self.text))?;
        writeln!(f, "  Value: {}", plain(&self.form))?;
        writeln!(f, "  {}", plain(&self.without))?;
        writeln!(f, "  Example: {}", self.example)
    }
}

/// Every key that is called `name`: by its whole id, or by the end of it (`blocks`). In the order of the page.
pub fn find(name: &str) -> Vec<KeyEntry> {
    let ends = |id: &str| {
        id.strip_suffix(name)
            .is_some_and(|rest| rest.ends_with('.'))
    };
    let mut all = entries();
    all.retain(|key| key.id == name || ends(&key.id));
    all
}

/// Every key, in the order of the page.
pub fn entries() -> Vec<KeyEntry> {
    let tables = KeyFile::ALL.into_iter().flat_map(described);
    tables.flat_map(|(_, keys)| keys).collect()
}

/// The whole page, `docs/experiment-reference.md`.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for file in KeyFile::ALL {
        // Writing to a text cannot fail.
        let _ = writeln!(page, "\n## {}", file.title());
        for (table, keys) in described(file) {
            let _ = match table.id.as_str() {
                "" => writeln!(page, "\n### {}\n\n{}", file.top(), table.text),
                id => writeln!(page, "\n### `{id}`\n\n{}", written(&table)),
            };
            for key in &keys {
                let KeyEntry { id, text, form, .. } = key;
                let (without, example) = (&key.without, &key.example);
                let _ = writeln!(
                    page,
                    "\n#### `{id}`\n\n{text}\n\nValue: {form}. {without}. Example: `{example}`"
                );
            }
        }
    }
    page
}

/// How a table is written, and what it is for.
fn written(table: &TableWords) -> String {
    let places: Vec<String> = table
        .places
        .iter()
        .map(|place| format!("`{place}`"))
        .collect();
    format!("{}. {}", places.join(", "), table.text)
}

/// The tables of a file with their keys.
fn described(file: KeyFile) -> Vec<(TableWords, Vec<KeyEntry>)> {
    let tables = words(file);
    let read: Vec<ReadTable> = tables
        .iter()
        .flat_map(|table| requested(file, table))
        .collect();
    let describe = |table: TableWords| {
        let keys = table.key.iter().map(|key| KeyEntry {
            id: table.key_id(key),
            text: key.text.clone(),
            form: form_of(key, &forms(&read, &table, key)),
            without: key.without(),
            example: key.example.clone(),
        });
        let keys = keys.collect();
        (table, keys)
    };
    tables.into_iter().map(describe).collect()
}

fn words(file: KeyFile) -> Vec<TableWords> {
    let words: FileWords = toml::from_str(file.words()).unwrap_or(FileWords { table: Vec::new() });
    words.table
}

/// The keys that the parser requests while it reads the examples of a table.
fn requested(file: KeyFile, table: &TableWords) -> Vec<ReadTable> {
    let examples = table
        .key
        .iter()
        .map(|key| table.file_with(key, &key.example));
    examples.flat_map(|text| file.read(&text).read).collect()
}

/// The forms in which the parser requests a key, each once; [`ValueForm::Any`] only where there is no other.
fn forms(read: &[ReadTable], table: &TableWords, key: &KeyWords) -> Vec<ValueForm> {
    let here = |read: &&ReadTable| table.places.iter().any(|place| place == read.place);
    let keys = read.iter().filter(here).flat_map(|read| &read.keys);
    let mut forms: Vec<ValueForm> = Vec::new();
    for (_, form) in keys.filter(|(name, _)| *name == key.name) {
        if !forms.contains(form) {
            forms.push(form.clone());
        }
    }
    if forms.len() > 1 {
        forms.retain(|form| *form != ValueForm::Any);
    }
    forms
}

/// What the value must be, in words.
fn form_of(key: &KeyWords, forms: &[ValueForm]) -> String {
    if let Some(form) = &key.form {
        return form.clone();
    }
    match forms.first() {
        Some(ValueForm::Text) => "text".to_owned(),
        Some(ValueForm::Truth) => "`true` or `false`".to_owned(),
        Some(ValueForm::Texts) => "list of texts".to_owned(),
        Some(ValueForm::Map) => "texts by name".to_owned(),
        Some(ValueForm::Whole(range)) => {
            let of = key
                .of
                .as_ref()
                .map_or_else(String::new, |of| format!(" of {of}"));
            match range.clone().into_inner() {
                (least, most) if most >= 1 << 53 => format!("whole number{of} from {least} on"),
                (least, most) => format!("whole number{of} from {least} to {most}"),
            }
        }
        Some(ValueForm::Length(range)) => {
            format!(
                "length of time from {} to {}",
                length(*range.start()),
                length(*range.end())
            )
        }
        Some(ValueForm::LengthOrOff(range)) => format!(
            "length of time from {} to {}, or `\"off\"`",
            length(*range.start()),
            length(*range.end())
        ),
        Some(ValueForm::Any | ValueForm::Table(_) | ValueForm::Tables(_)) | None => String::new(),
    }
}

/// A length of time as a file would have it, in the largest unit of which it is a whole number.
fn length(of: Nanos) -> String {
    const UNITS: [(u64, &str); 5] = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    let unit = UNITS
        .iter()
        .find(|(unit, _)| of.0 > 0 && of.0.is_multiple_of(*unit));
    match (of.0, unit) {
        (0, _) => "0".to_owned(),
        (ns, Some((unit, name))) => format!("{} {name}", ns / unit),
        (ns, None) => format!("{ns} ns"),
    }
}

/// Markdown's links as their texts.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        let link = after.split_once("](").and_then(|(name, target)| {
            let (_, behind) = target.split_once(')')?;
            (!name.contains('[')).then_some((name, behind))
        });
        match link {
            Some((name, behind)) => {
                plain.push_str(name);
                rest = behind;
            }
            None => {
                plain.push('[');
                rest = after;
            }
        }
    }
    plain + rest
}
