//! The keys of the files that people write: what each is called, what its value must be, what holds without it, and what it does.
//!
//! `reference/*.toml` is the one place where that stands. Reading a file follows it (`Fields`), and so do the page
//! `docs/experiment-reference.md`, `prony explain KEY` and the schemas for editors ([`schema`]). The tests hold reading to it: a key that is
//! not read, a default that is not one, or an example that is refused fails them.
//!
//! Not for: how the parts of an experiment work together, which `docs/experiments.md` tells, or what keys mean for each other, which
//! their readers check.
//!
//! # Examples
//! ```
//! let found = prony_lab::reference::find("run.blocks");
//! assert_eq!(found[0].example, "blocks = 12");
//! assert_eq!(found[0].form(), "whole number from 1 to 1000");
//! ```

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::LazyLock;

use prony_base::Nanos;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::experiment::words;

mod schema;

pub use schema::schema;

#[cfg(test)]
mod tests;

/// The page, without its keys.
const HEAD: &str = "\
# Keys of an experiment, of a subject and of a scenario

<!-- Generated from crates/lab/src/reference/*.toml: INSTA_UPDATE=always cargo test -p prony-lab reference -->

Every key of an experiment file, then of a [`subject.toml`](#subjecttoml) and of [the file of a scenario](#the-file-of-a-scenario). How they
work together: [The experiment file](experiments.md); what a subject must do: [the contract](../subjects/CONTRACT.md); what users do: [Users that
do steps](scenarios.md). An unknown key is an error, with its line and the
nearest name. `prony explain KEY` prints one entry, such as `prony explain run.blocks`.

A length of time is a text with its unit: `\"300ms\"`, in `ns`, `us`, `ms`, `s`, `m` or `h`. A file has at most
1 MiB, a list or table 1,000 items. A table in `[[double brackets]]` may stand several times.
";

/// A file that people write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyFile {
    /// An experiment.
    Experiment,
    /// The `subject.toml` of a folder.
    Subject,
    /// What users do.
    Scenario,
}

impl KeyFile {
    /// All, in the order of the page.
    pub const ALL: [KeyFile; 3] = [KeyFile::Experiment, KeyFile::Subject, KeyFile::Scenario];

    /// What the command line calls it.
    pub fn name(self) -> &'static str {
        ["experiment", "subject", "scenario"][self as usize]
    }

    /// What the page calls it, and its top.
    fn titles(self) -> (&'static str, &'static str) {
        match self {
            KeyFile::Experiment => ("The experiment file", "Top of an experiment"),
            KeyFile::Subject => ("`subject.toml`", "Top of a subject"),
            KeyFile::Scenario => ("The file of a scenario", "Top of a scenario"),
        }
    }

    /// Its tables, in the order of the page.
    pub(crate) fn tables(self) -> &'static [KeyTable] {
        static TABLES: LazyLock<[Vec<KeyTable>; 3]> = LazyLock::new(|| {
            [
                include_str!("reference/experiment.toml"),
                include_str!("reference/subject.toml"),
                include_str!("reference/scenario.toml"),
            ]
            .map(KeyTable::all)
        });
        &TABLES[self as usize]
    }

    /// The table at `path`, with that path as it stands there and its place for messages.
    pub(crate) fn table(
        self,
        path: &str,
    ) -> Option<(&'static KeyTable, &'static str, &'static str)> {
        self.tables().iter().find_map(|table| {
            let (path, place) = table.places.get_key_value(path)?;
            Some((table, path.as_str(), place.as_str()))
        })
    }

    /// The names of all keys of the table at `path`, those of tables among them.
    pub(crate) fn names_in(self, path: &str) -> Vec<&'static str> {
        let table = self.table(path).map(|(table, ..)| table);
        let refused = table.iter().flat_map(|table| &table.refused);
        let keys = table.iter().flat_map(|table| &table.key);
        let all = refused.chain(keys.map(|key| &key.name));
        let mut names: Vec<&str> = all.map(String::as_str).collect();
        for name in self.tables_in(path) {
            // A key that may be a table or another value is among both.
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The names of the tables in the one at `path`.
    pub(crate) fn tables_in(self, path: &str) -> impl Iterator<Item = &'static str> {
        let places = self.tables().iter().flat_map(|table| table.places.keys());
        places.filter_map(move |place| {
            let (outer, name) = place.rsplit_once('.').unwrap_or(("", place));
            (outer == path && !name.is_empty()).then_some(name)
        })
    }
}

impl FromStr for KeyFile {
    type Err = String;

    fn from_str(name: &str) -> Result<KeyFile, String> {
        let found = KeyFile::ALL.into_iter().find(|file| file.name() == name);
        found.ok_or_else(|| "it is experiment, subject or scenario".to_owned())
    }
}

/// A table of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyTable {
    /// The name by which its keys are found.
    pub id: String,
    /// How messages name it, by path; `[id]` at its id where nothing else is said.
    #[serde(default)]
    pub places: BTreeMap<String, String>,
    /// What it is for. Markdown.
    pub text: String,
    /// Whether it is an array of tables.
    #[serde(default)]
    pub several: bool,
    /// Whether it has other keys, too: the names of settings.
    #[serde(default)]
    pub others: bool,
    /// Names of keys by those that older files have.
    #[serde(default)]
    pub older: BTreeMap<String, String>,
    /// Keys that mean something to a reader but nothing here, and what is there instead.
    #[serde(default)]
    pub unsupported: BTreeMap<String, String>,
    /// Keys that are refused for a reason of their own.
    #[serde(default)]
    pub refused: Vec<String>,
    /// Its keys, in the order of the page.
    #[serde(default, deserialize_with = "in_order")]
    pub key: Vec<KeyEntry>,
}

impl KeyTable {
    fn all(text: &str) -> Vec<KeyTable> {
        let read: BTreeMap<String, Vec<KeyTable>> = toml::from_str(text).expect("tables of keys");
        let mut tables: Vec<KeyTable> = read.into_values().flatten().collect();
        for table in &mut tables {
            if table.places.is_empty() {
                let id = &table.id;
                let place = match table.several {
                    true => format!("[[{id}]]"),
                    false => format!("[{id}]"),
                };
                table.places.insert(id.clone(), place);
            }
            for key in &mut table.key {
                key.id = match table.id.as_str() {
                    "" => key.name.clone(),
                    id => format!("{id}.{}", key.name),
                };
            }
        }
        tables
    }

    /// Its key of this name.
    pub fn key(&self, name: &str) -> Option<&KeyEntry> {
        self.key.iter().find(|key| key.name == name)
    }
}

/// The keys as they follow each other in the file.
fn in_order<'de, D: Deserializer<'de>>(keys: D) -> Result<Vec<KeyEntry>, D::Error> {
    let keys = BTreeMap::<String, Spanned<KeyEntry>>::deserialize(keys)?;
    let mut keys: Vec<(String, Spanned<KeyEntry>)> = keys.into_iter().collect();
    keys.sort_by_key(|(_, key)| key.span().start);
    let named = |(name, key): (String, Spanned<KeyEntry>)| KeyEntry {
        name,
        ..key.into_inner()
    };
    Ok(keys.into_iter().map(named).collect())
}

/// One key. The texts are Markdown.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct KeyEntry {
    /// Its table and its name: `run.blocks`.
    #[serde(skip)]
    pub id: String,
    /// Its name: `blocks`.
    #[serde(skip)]
    pub name: String,
    /// What it does.
    pub text: String,
    /// What its value must be.
    #[serde(default)]
    pub(crate) value: ValueForm,
    /// The same in words, where they say more.
    form: Option<String>,
    /// What a number counts.
    pub(crate) of: Option<String>,
    /// The value that it has where it is not there.
    pub(crate) default: Option<String>,
    /// What holds without it, where that is no value.
    otherwise: Option<String>,
    /// What a value that is none of its words is answered with; `{}` stands for it.
    pub(crate) wrong: Option<String>,
    /// What is said of its words then, where none of them is near.
    pub(crate) help: Option<String>,
    /// A line that has it.
    pub example: String,
}

impl KeyEntry {
    /// What its value must be, with its unit and range.
    pub fn form(&self) -> String {
        let form = self.value.to_string();
        match (&self.form, &self.of, &self.value) {
            (Some(form), ..) => form.clone(),
            (None, Some(of), ValueForm::Whole(..)) => {
                form.replacen("whole number", &format!("whole number of {of}"), 1)
            }
            _ => form,
        }
    }

    /// Whether it must be there.
    pub(crate) fn is_required(&self) -> bool {
        self.default.is_none() && self.otherwise.is_none()
    }

    /// Its default, what holds without it, or that it is required.
    pub fn without(&self) -> String {
        match (&self.default, &self.otherwise) {
            (Some(default), _) => format!("Default: `{default}`"),
            (None, Some(otherwise)) => format!("Without it: {otherwise}"),
            (None, None) => "Required".to_owned(),
        }
    }
}

impl fmt::Display for KeyEntry {
    /// For a terminal: plain text on several lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n  {}", self.id, plain(&self.text))?;
        writeln!(f, "  Value: {}", plain(&self.form()))?;
        writeln!(f, "  {}", plain(&self.without()))?;
        writeln!(f, "  Example: {}", self.example)
    }
}

/// What a value must be.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ValueForm {
    /// A string; what else is right of it its reader checks.
    #[default]
    Text,
    /// A name.
    Name,
    /// A string of one line.
    Line,
    /// The path of a request.
    Path,
    /// The value of a setting.
    Word,
    /// A command line, or the list of its words.
    Command,
    /// Requests a second.
    Rate,
    /// A number that is not negative.
    Number,
    /// Whatever TOML has.
    Any,
    /// `true` or `false`.
    Truth,
    /// One of both.
    Exactly(bool),
    /// A whole number, from and to.
    Whole(u64, u64),
    /// A length of time, from and to.
    Length(
        #[serde(deserialize_with = "length")] Nanos,
        #[serde(deserialize_with = "length")] Nanos,
    ),
    /// One of these words.
    Words(Vec<String>),
    /// A list.
    List(Box<ValueForm>),
    /// A list of values that differ, or one of them.
    OneOrMore(Box<ValueForm>),
    /// Values by name.
    Map(Box<ValueForm>),
    /// One of several forms.
    AnyOf(Vec<ValueForm>),
}

impl ValueForm {
    /// What is `found` of it, or of one of its forms.
    pub fn find<'f, T>(&'f self, found: impl Fn(&'f ValueForm) -> Option<T>) -> Option<T> {
        match self {
            ValueForm::AnyOf(forms) => forms.iter().find_map(found),
            form => found(form),
        }
    }

    /// The whole numbers that it may be.
    pub fn whole_numbers(&self) -> Option<RangeInclusive<u64>> {
        self.find(|form| match form {
            ValueForm::Whole(least, most) => Some(*least..=*most),
            _ => None,
        })
    }

    /// The lengths of time that it may be.
    pub fn lengths(&self) -> Option<RangeInclusive<Nanos>> {
        self.find(|form| match form {
            ValueForm::Length(least, most) => Some(*least..=*most),
            _ => None,
        })
    }
}

fn length<'de, D: Deserializer<'de>>(text: D) -> Result<Nanos, D::Error> {
    words::duration(&String::deserialize(text)?).map_err(serde::de::Error::custom)
}

impl fmt::Display for ValueForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |all: Vec<String>, between: &str| match all.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, first)) => format!("{}{between}{last}", first.join(", ")),
            None => String::new(),
        };
        match self {
            ValueForm::Text => f.write_str("text"),
            ValueForm::Name => f.write_str("a name"),
            ValueForm::Line => write!(f, "one line of at most {} bytes", words::LINE_BYTES_MAX),
            ValueForm::Path => f.write_str("a path"),
            ValueForm::Word => f.write_str("text, whole number, `true` or `false`"),
            ValueForm::Command => f.write_str("a command line, or a list of its words"),
            ValueForm::Rate => {
                f.write_str("number above 0, or text such as `\"2.5k\"`; requests/s")
            }
            ValueForm::Number => f.write_str("a number from 0 on"),
            ValueForm::Any => f.write_str("any value"),
            ValueForm::Truth => f.write_str("`true` or `false`"),
            ValueForm::Exactly(truth) => write!(f, "`{truth}`"),
            ValueForm::Whole(least, most) if *most >= 1 << 53 => {
                write!(f, "whole number from {least} on")
            }
            ValueForm::Whole(least, most) => write!(f, "whole number from {least} to {most}"),
            ValueForm::Length(least, most) => write!(
                f,
                "length of time from {} to {}",
                in_largest_unit(*least),
                in_largest_unit(*most)
            ),
            ValueForm::Words(words) => {
                let words = words.iter().map(|word| format!("`\"{word}\"`"));
                f.write_str(&listed(words.collect(), " or "))
            }
            ValueForm::List(of) if **of == ValueForm::Text => f.write_str("list of texts"),
            ValueForm::List(of) => write!(f, "list, each {of}"),
            ValueForm::OneOrMore(of) => write!(f, "{of}, or a list of them"),
            ValueForm::Map(of) if **of == ValueForm::Text => f.write_str("texts by name"),
            ValueForm::Map(of) => write!(f, "by name, each {of}"),
            ValueForm::AnyOf(forms) => {
                let forms = forms.iter().map(ValueForm::to_string);
                f.write_str(&listed(forms.collect(), ", or "))
            }
        }
    }
}

/// The whole numbers that the key of this id may have.
pub fn whole_numbers(id: &str) -> RangeInclusive<u64> {
    let key = find(id).into_iter().next();
    let range = key.and_then(|key| key.value.whole_numbers());
    range.unwrap_or(0..=u64::MAX)
}

/// The lengths of time that the key of this id may have.
pub fn lengths(id: &str) -> RangeInclusive<Nanos> {
    let key = find(id).into_iter().next();
    let range = key.and_then(|key| key.value.lengths());
    range.unwrap_or(Nanos::ZERO..=Nanos(u64::MAX))
}

/// Every key that is called `name`: by its whole id, or by the end of it (`blocks`). In the order of the page.
pub fn find(name: &str) -> Vec<&'static KeyEntry> {
    let ends = |id: &str| {
        id.strip_suffix(name)
            .is_some_and(|rest| rest.ends_with('.'))
    };
    let tables = KeyFile::ALL.into_iter().flat_map(KeyFile::tables);
    let keys = tables.flat_map(|table| &table.key);
    keys.filter(|key| key.id == name || ends(&key.id)).collect()
}

/// The whole page, `docs/experiment-reference.md`.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for file in KeyFile::ALL {
        let (title, top) = file.titles();
        // Writing to a text cannot fail.
        let _ = writeln!(page, "\n## {title}");
        for table in file.tables() {
            let _ = match table.id.as_str() {
                "" => writeln!(page, "\n### {top}\n\n{}", table.text),
                id => writeln!(page, "\n### `{id}`\n\n{}", written(table)),
            };
            for key in &table.key {
                let KeyEntry {
                    id, text, example, ..
                } = key;
                let (form, without) = (key.form(), key.without());
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
fn written(table: &KeyTable) -> String {
    let mut places: Vec<String> = Vec::new();
    for place in table.places.values().map(|place| format!("`{place}`")) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    format!("{}. {}", places.join(", "), table.text)
}

/// A length of time as a file would have it, in the largest unit of which it is a whole number.
fn in_largest_unit(of: Nanos) -> String {
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
