//! Files that people write, in TOML: their text, and their tables read key by key. Every problem is noted with its place
//! and reading continues, so that one look at a file finds all that is wrong with it.
//!
//! Not for: what the keys mean ([`super::read`] and [`crate::subject`] know).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

use prony_base::Nanos;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::words;
use crate::diagnosis::{Diagnoses, Diagnosis, nearest, quoted};

/// Items of one list or table at the most.
pub const ITEMS_MAX: usize = 1_000;

/// A value with its place.
pub type Value<'i> = Spanned<DeValue<'i>>;

/// Keys that have another name now: what older files call them, and the name.
const RENAMED: [(&str, &str); 2] = [("beside", "baseline"), ("tally", "counter")];

/// The problems found so far.
#[derive(Debug, Default)]
pub struct Problems {
    /// Those with which the file cannot be used.
    pub errors: Vec<Diagnosis>,
    /// Those with which it can.
    pub warnings: Vec<Diagnosis>,
    /// The tables that were read and the keys that each may have, from which the reference of keys is made.
    pub read: Vec<ReadTable>,
}

/// A table that was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReadTable {
    /// The table as a message names it: `[run]`.
    pub place: &'static str,
    /// Its keys, in the order in which they were requested; the same one several times where it has several forms.
    pub keys: Vec<(&'static str, ValueForm)>,
}

/// What the value of a key must be, as far as [`Fields`] checks it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ValueForm {
    /// Any value: the caller checks it.
    Any,
    /// A string.
    Text,
    /// `true` or `false`.
    Truth,
    /// A whole number.
    Whole(RangeInclusive<u64>),
    /// A length of time.
    Length(RangeInclusive<Nanos>),
    /// A length of time, or `"off"`.
    LengthOrOff(RangeInclusive<Nanos>),
    /// A list of strings.
    Texts,
    /// Strings by name.
    Map,
    /// A table.
    Table(&'static str),
    /// An array of tables.
    Tables(&'static str),
}

impl Problems {
    /// Notes a problem with which the file cannot be used.
    pub fn note(&mut self, diagnosis: Diagnosis) {
        self.errors.push(diagnosis);
    }

    /// Notes that `value` is not what `key` must be, and gives nothing.
    fn wrong<T>(&mut self, key: &str, value: &Value<'_>, wanted: &str) -> Option<T> {
        let message = format!(
            "`{key}` must be {wanted}, not {}",
            kind_with_article(value.get_ref())
        );
        self.note(Diagnosis::new(value.span(), message));
        None
    }
}

fn kind_with_article(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Integer(number) if number.as_str().len() <= 30 => number.to_string(),
        DeValue::String(_) => "a string".to_owned(),
        DeValue::Integer(_) => "an integer".to_owned(),
        DeValue::Float(_) => "a number with a fraction".to_owned(),
        DeValue::Boolean(truth) => format!("`{truth}`"),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// One table while it is read. Each key that is requested becomes a known one;
/// [`Fields::finish`] then notes those that are not.
#[derive(Debug)]
pub struct Fields<'a, 'i> {
    /// The table as a message names it: `[run]`.
    pub place: &'static str,
    /// Where it begins.
    pub span: Range<usize>,
    table: &'a DeTable<'i>,
    known: Vec<(&'static str, ValueForm)>,
}

impl<'a, 'i> Fields<'a, 'i> {
    /// Begins to read `table`.
    pub fn new(place: &'static str, span: Range<usize>, table: &'a DeTable<'i>) -> Self {
        Fields {
            place,
            span,
            table,
            known: Vec::new(),
        }
    }

    /// The value of `key`, if it stands there, by this name or its older one.
    pub fn value(&mut self, key: &'static str) -> Option<&'a Value<'i>> {
        self.ask(key, ValueForm::Any)
    }

    /// Likewise, of a value that must be of `form`.
    fn ask(&mut self, key: &'static str, form: ValueForm) -> Option<&'a Value<'i>> {
        self.known.push((key, form));
        self.table.get(self.written(key))
    }

    /// Hands on which keys were requested, once all were.
    pub fn note_asked(&self, problems: &mut Problems) {
        let (place, keys) = (self.place, self.known.clone());
        problems.read.push(ReadTable { place, keys });
    }

    /// Whether `key` stands there, by this name or its older one.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(self.written(key))
    }

    /// Where the value of `key` stands; where the table begins if it is not there.
    pub fn span_of(&self, key: &str) -> Range<usize> {
        let value = self.table.get(self.written(key));
        value.map_or_else(|| self.span.clone(), Spanned::span)
    }

    /// The name of `key` in the table: its older name where only that is there.
    fn written<'k>(&self, key: &'k str) -> &'k str {
        let older = RENAMED.iter().find(|(_, name)| *name == key);
        match older {
            Some((older, _))
                if !self.table.contains_key(key) && self.table.contains_key(*older) =>
            {
                older
            }
            _ => key,
        }
    }

    /// Warns of keys that were read by their older names.
    pub fn warn_of_renamed(&self, problems: &mut Problems) {
        for &(key, _) in &self.known {
            let written = self.written(key);
            if let Some((at, _)) = self.table.get_key_value(written).filter(|_| written != key) {
                let message = format!("`{written}` is called `{key}` now");
                let help = "the older name is still read; write the newer one";
                problems
                    .warnings
                    .push(Diagnosis::new(at.span(), message).help(help));
            }
        }
    }

    /// Notes that a key which must be there is not.
    pub fn missing(&self, key: &str, example: &str, problems: &mut Problems) {
        let message = format!("{} lacks `{key}`", self.place);
        let help = format!("add a line such as: {example}");
        problems.note(Diagnosis::new(self.span.clone(), message).help(help));
    }

    /// A string that must be there.
    pub fn text_needed(
        &mut self,
        key: &'static str,
        example: &str,
        problems: &mut Problems,
    ) -> Option<Spanned<String>> {
        if !self.has(key) {
            self.known.push((key, ValueForm::Text));
            self.missing(key, example, problems);
            return None;
        }
        self.text(key, problems)
    }

    /// A string.
    pub fn text(&mut self, key: &'static str, problems: &mut Problems) -> Option<Spanned<String>> {
        text(key, self.ask(key, ValueForm::Text)?, problems)
    }

    /// `true` or `false`.
    pub fn truth(&mut self, key: &'static str, problems: &mut Problems) -> Option<bool> {
        let value = self.ask(key, ValueForm::Truth)?;
        match value.get_ref() {
            DeValue::Boolean(truth) => Some(*truth),
            _ => problems.wrong(key, value, "true or false"),
        }
    }

    /// A whole number in `range`.
    pub fn whole(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        problems: &mut Problems,
    ) -> Option<u64> {
        whole(
            key,
            self.ask(key, ValueForm::Whole(range.clone()))?,
            range,
            problems,
        )
    }

    /// A length of time such as `"5s"`, in `range`.
    pub fn duration(
        &mut self,
        key: &'static str,
        range: RangeInclusive<Nanos>,
        problems: &mut Problems,
    ) -> Option<Nanos> {
        let value = self.ask(key, ValueForm::Length(range.clone()))?;
        length(key, value, &range, problems)
    }

    /// A length of time in `range`, or `"off"`, which is none at all: zero.
    pub fn duration_or_off(
        &mut self,
        key: &'static str,
        range: RangeInclusive<Nanos>,
        problems: &mut Problems,
    ) -> Option<Nanos> {
        let value = self.ask(key, ValueForm::LengthOrOff(range.clone()))?;
        match value.get_ref() {
            DeValue::String(text) if text == "off" => Some(Nanos::ZERO),
            _ => length(key, value, &range, problems),
        }
    }

    /// A list of strings; empty where it is not there.
    pub fn texts(
        &mut self,
        key: &'static str,
        problems: &mut Problems,
    ) -> Option<Vec<Spanned<String>>> {
        let list = list(
            key,
            self.ask(key, ValueForm::Texts)?,
            "a list of strings",
            problems,
        )?;
        let read = list.iter().map(|item| text(key, item, problems));
        Some(read.collect::<Vec<_>>().into_iter().flatten().collect())
    }

    /// A table of strings by name.
    pub fn map(
        &mut self,
        key: &'static str,
        problems: &mut Problems,
    ) -> Option<BTreeMap<String, String>> {
        map(key, self.ask(key, ValueForm::Map)?, problems)
    }

    /// A table of strings, in the order in which they are written.
    pub fn pairs(
        &mut self,
        key: &'static str,
        problems: &mut Problems,
    ) -> Option<Vec<(Spanned<String>, Spanned<String>)>> {
        pairs_of(key, self.ask(key, ValueForm::Map)?, problems)
    }

    /// A table.
    pub fn table(
        &mut self,
        key: &'static str,
        place: &'static str,
        problems: &mut Problems,
    ) -> Option<Fields<'a, 'i>> {
        let value = self.ask(key, ValueForm::Table(place))?;
        match value.get_ref() {
            DeValue::Table(table) => Some(Fields::new(place, value.span(), table)),
            _ => problems.wrong(key, value, &format!("a table, {place}")),
        }
    }

    /// An array of tables; empty where it is not there.
    pub fn tables(
        &mut self,
        key: &'static str,
        place: &'static str,
        problems: &mut Problems,
    ) -> Vec<Fields<'a, 'i>> {
        let Some(value) = self.ask(key, ValueForm::Tables(place)) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            let wanted = format!("an array of tables, {place}");
            return problems.wrong(key, value, &wanted).unwrap_or_default();
        };
        if !within_limit(key, value, items.len(), problems) {
            return Vec::new();
        }
        let mut tables = Vec::with_capacity(items.len());
        for item in items.iter() {
            match item.get_ref() {
                DeValue::Table(table) => tables.push(Fields::new(place, item.span(), table)),
                _ => problems
                    .wrong(key, item, "made of tables")
                    .unwrap_or_default(),
            }
        }
        tables
    }

    /// Keys and values that have not been requested.
    pub fn rest(&self) -> impl Iterator<Item = (Spanned<&'a str>, &'a Value<'i>)> {
        let known = self.known.iter().map(|(key, _)| self.written(key));
        let known: Vec<&str> = known.collect();
        self.table
            .iter()
            .map(|(key, value)| (Spanned::new(key.span(), key.get_ref().as_ref()), value))
            .filter(move |(key, _)| !known.contains(key.get_ref()))
    }

    /// Reports every key that was not read. `unsupported`: keys that mean
    /// something to a reader but not yet to Prony, and what is supported instead.
    pub fn finish(self, unsupported: &[(&str, &str)], problems: &mut Problems) {
        self.warn_of_renamed(problems);
        self.note_asked(problems);
        for (key, _) in self.rest() {
            let typed = *key.get_ref();
            if let Some((_, instead)) = unsupported.iter().find(|(name, _)| *name == typed) {
                let message = format!("`{typed}` is not supported");
                problems.note(Diagnosis::new(key.span(), message).help(*instead));
                continue;
            }
            let message = format!("unknown key `{typed}` in {}", self.place);
            let known: Vec<&str> = self.known.iter().map(|&(key, _)| key).collect();
            let help = match nearest(typed, known.iter().copied()) {
                Some(word) => format!("did you mean `{word}`?"),
                None => format!("keys here: {}", quoted(&known)),
            };
            problems.note(Diagnosis::new(key.span(), message).help(help));
        }
    }
}

/// `value` as a table of strings, in the order in which they are written.
fn pairs_of(
    key: &str,
    value: &Value<'_>,
    problems: &mut Problems,
) -> Option<Vec<(Spanned<String>, Spanned<String>)>> {
    let DeValue::Table(table) = value.get_ref() else {
        return problems.wrong(key, value, "a table of strings");
    };
    if !within_limit(key, value, table.len(), problems) {
        return None;
    }
    let mut pairs = Vec::with_capacity(table.len());
    for (name, value) in table {
        let owned = Spanned::new(name.span(), name.get_ref().to_string());
        if let Some(value) = text(name.get_ref(), value, problems) {
            pairs.push((owned, value));
        }
    }
    pairs.sort_by_key(|(name, _)| name.span().start);
    Some(pairs)
}

/// `value` as a table of strings by name.
pub fn map(
    key: &str,
    value: &Value<'_>,
    problems: &mut Problems,
) -> Option<BTreeMap<String, String>> {
    let pairs = pairs_of(key, value, problems)?;
    let plain =
        |(name, value): (Spanned<String>, Spanned<String>)| (name.into_inner(), value.into_inner());
    Some(pairs.into_iter().map(plain).collect())
}

/// `value` as a string.
pub fn text(key: &str, value: &Value<'_>, problems: &mut Problems) -> Option<Spanned<String>> {
    match value.get_ref() {
        DeValue::String(text) if text.contains('\0') => {
            let message = format!("`{key}` holds a zero byte, which no program can be given");
            problems.note(Diagnosis::new(value.span(), message));
            None
        }
        DeValue::String(text) => Some(Spanned::new(value.span(), text.to_string())),
        _ => problems.wrong(key, value, "a string"),
    }
}

/// `value` as a whole number in `range`.
pub fn whole(
    key: &str,
    value: &Value<'_>,
    range: RangeInclusive<u64>,
    problems: &mut Problems,
) -> Option<u64> {
    let number = match value.get_ref() {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    match number.filter(|number| range.contains(number)) {
        Some(number) => Some(number),
        None => {
            let (least, most) = range.into_inner();
            problems.wrong(
                key,
                value,
                &format!("a whole number from {least} to {most}"),
            )
        }
    }
}

/// `value` as a list that is not too long.
pub fn list<'a, 'i>(
    key: &str,
    value: &'a Value<'i>,
    wanted: &str,
    problems: &mut Problems,
) -> Option<&'a [Value<'i>]> {
    match value.get_ref() {
        DeValue::Array(items) if within_limit(key, value, items.len(), problems) => {
            Some(items.as_ref())
        }
        DeValue::Array(_) => None,
        _ => problems.wrong(key, value, wanted),
    }
}

fn within_limit(key: &str, value: &Value<'_>, count: usize, problems: &mut Problems) -> bool {
    if count > ITEMS_MAX {
        let message = format!("`{key}` has {count} items; at most {ITEMS_MAX} are read");
        problems.note(Diagnosis::new(value.span(), message));
    }
    count <= ITEMS_MAX
}

/// The length of time in `range` that `value` is.
fn length(
    key: &'static str,
    value: &Spanned<DeValue<'_>>,
    range: &RangeInclusive<Nanos>,
    problems: &mut Problems,
) -> Option<Nanos> {
    let DeValue::String(text) = value.get_ref() else {
        return problems.wrong(key, value, "a length of time such as \"5s\"");
    };
    let read = words::duration(text).and_then(|length| {
        if range.contains(&length) {
            return Ok(length);
        }
        Err(format!(
            "it must be from {} to {}",
            range.start(),
            range.end()
        ))
    });
    match read {
        Ok(length) => Some(length),
        Err(reason) => {
            let message = format!("`{key}` is not a length of time that can be used: {reason}");
            problems.note(Diagnosis::new(value.span(), message));
            None
        }
    }
}

/// Bytes of a file that a person writes, at the most.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// Where a text comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Origin {
    /// The file as it was named, for messages.
    pub path: String,
    /// The absolute folder that it lies in.
    pub folder: PathBuf,
}

impl Origin {
    /// A file named `path` in `folder`.
    pub fn new(path: impl Into<String>, folder: impl Into<PathBuf>) -> Origin {
        Origin {
            path: path.into(),
            folder: folder.into(),
        }
    }
}

/// The text of the file at `path`, not more than [`FILE_BYTES_MAX`], and its origin.
pub(crate) fn read_file(path: &Path) -> Result<(String, Origin), Diagnoses> {
    let name = path.display().to_string();
    let wrong = |reason: String| Diagnoses::unreadable(&name, &reason);
    let absolute = path
        .canonicalize()
        .map_err(|error| wrong(error.to_string()))?;
    let file = File::open(&absolute).map_err(|error| wrong(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(format!("it is longer than {FILE_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        wrong(format!("it is not UTF-8 text (byte {at})"))
    })?;
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    Ok((text, Origin::new(name, folder)))
}

/// Parses `text` as TOML; syntax errors become problems, at the most the first few.
pub fn document<'i>(text: &'i str, problems: &mut Problems) -> Spanned<DeTable<'i>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        problems.note(Diagnosis::new(span, error.message().replace('\n', ", ")));
    }
    table
}
