//! Files that people write, in TOML: their text, and their tables read key by key, as [`crate::reference`] describes them. Every problem is
//! noted with its place and reading continues, so that one look at a file finds all that is wrong with it.
//!
//! Not for: what the keys mean ([`super::read`] and [`crate::subject`] know).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use prony_base::Nanos;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::words::{self, ITEMS_MAX, short};
use crate::diagnosis::{Diagnoses, Diagnosis, nearest, quoted, suggest};
use crate::reference::{KeyEntry, KeyFile, KeyTable, ValueForm};

/// A value with its place.
pub type Value<'a> = Spanned<DeValue<'a>>;

/// The problems found so far.
#[derive(Debug, Default)]
pub struct Problems {
    errors: RefCell<Vec<Diagnosis>>,
    warnings: RefCell<Vec<Diagnosis>>,
}

impl Problems {
    /// Notes a problem with which the file cannot be used.
    pub fn note(&self, span: Range<usize>, message: impl Into<String>) {
        self.advise(span, message, "");
    }

    /// The same with what to do about it.
    pub fn advise(&self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        let diagnosis = Diagnosis::new(span, message).help(help);
        self.errors.borrow_mut().push(diagnosis);
    }

    /// Whether there is none with which the file cannot be used.
    pub fn is_empty(&self) -> bool {
        self.errors.borrow().is_empty()
    }

    /// Takes those with which the file can be used.
    pub fn take_warnings(&self) -> Vec<Diagnosis> {
        self.warnings.take()
    }

    /// `value`, or those with which it cannot be used, in the file `path` of this `text`.
    pub fn checked<T>(self, value: Option<T>, path: &str, text: &str) -> Result<T, Diagnoses> {
        match value.filter(|_| self.is_empty()) {
            Some(value) => Ok(value),
            None => Err(Diagnoses::new(path, text, self.errors.into_inner())),
        }
    }

    /// Notes that `value` is not what `name` must be, and gives nothing.
    pub fn wrong<T>(&self, name: &str, value: &Value<'_>, wanted: &str) -> Option<T> {
        let kind = kind_with_article(value.get_ref());
        self.note(
            value.span(),
            format!("`{name}` must be {wanted}, not {kind}"),
        );
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

/// One table while it is read.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    /// The table as a message names it: `[run]`.
    pub place: &'static str,
    /// The place where it begins.
    pub span: Range<usize>,
    /// The list in which problems with it are noted.
    pub problems: &'a Problems,
    file: KeyFile,
    path: &'static str,
    keys: &'static KeyTable,
    /// `None`: it is not there.
    table: Option<&'a DeTable<'a>>,
}

impl<'a> Fields<'a> {
    /// Begins to read a whole file.
    pub fn top(file: KeyFile, table: &'a DeTable<'a>, problems: &'a Problems) -> Fields<'a> {
        Fields::new(file, "", 0..0, Some(table), problems)
    }

    /// Begins to read the table at `path` of a file, if it is there: notes the keys that it cannot have.
    fn new(
        file: KeyFile,
        path: &str,
        span: Range<usize>,
        table: Option<&'a DeTable<'a>>,
        problems: &'a Problems,
    ) -> Fields<'a> {
        let (keys, path, place) = file.table(path).expect("all tables are described");
        let fields = Fields {
            place,
            span,
            problems,
            file,
            path,
            keys,
            table,
        };
        fields.check_keys();
        fields
    }

    /// Begins to read a table in this one, if it is there.
    fn child(&self, key: &str, span: Range<usize>, table: Option<&'a DeTable<'a>>) -> Fields<'a> {
        Fields::new(self.file, &self.path_in(key), span, table, self.problems)
    }

    fn check_keys(&self) {
        let known = self.file.names_in(self.path);
        for (key, _) in self.table.into_iter().flatten() {
            let typed: &str = key.get_ref();
            if known.contains(&typed) {
                continue;
            }
            let newer = self.keys.older.get(typed);
            if let Some(newer) = newer.filter(|newer| self.by_name(newer).is_none()) {
                let message = format!("`{typed}` is called `{newer}` now");
                let help = "the older name is still read; write the newer one";
                let warning = Diagnosis::new(key.span(), message).help(help);
                self.problems.warnings.borrow_mut().push(warning);
            } else if let Some(instead) = self.keys.unsupported.get(typed) {
                let message = format!("`{typed}` is not supported");
                self.problems.advise(key.span(), message, instead);
            } else if !self.keys.others {
                let message = format!("unknown key `{typed}` in {}", self.place);
                let help = match nearest(typed, known.iter().copied()) {
                    Some(word) => format!("did you mean `{word}`?"),
                    None => format!("keys here: {}", quoted(&known)),
                };
                self.problems.advise(key.span(), message, help);
            }
        }
    }

    /// The value of `key`, if it stands there, by this name or its older one.
    pub fn raw(&self, key: &str) -> Option<&'a Value<'a>> {
        debug_assert!(
            self.file.names_in(self.path).contains(&key) || self.keys.unsupported.contains_key(key),
            "`{key}` of {} is described",
            self.place
        );
        let older = || self.keys.older.iter().find(|(_, name)| *name == key);
        let own = self.by_name(key);
        own.or_else(|| self.by_name(older()?.0))
    }

    fn by_name(&self, key: &str) -> Option<&'a Value<'a>> {
        self.table?.get(key)
    }

    /// Whether `key` stands there, by this name or its older one.
    pub fn has(&self, key: &str) -> bool {
        self.raw(key).is_some()
    }

    /// Whether the value of `key` is a list without items.
    pub fn is_empty_list(&self, key: &str) -> bool {
        let list = self.raw(key).and_then(|value| value.get_ref().as_array());
        list.is_some_and(|list| list.is_empty())
    }

    /// The keys among `keys` that the table has.
    pub fn given<'k>(&self, keys: &[&'k str]) -> Vec<&'k str> {
        let keys = keys.iter().copied();
        keys.filter(|key| self.has(key)).collect()
    }

    /// The one of `keys` that stands there. Where there is `none`, or `several` (named in place of `{}`), that is noted.
    pub fn one_of<'k>(
        &self,
        keys: &[&'k str],
        (none, several): (&str, &str),
        help: &str,
    ) -> Option<&'k str> {
        let message = match self.given(keys).as_slice() {
            [key] => return Some(key),
            [] => none.to_owned(),
            given => several.replace("{}", &given.join(" and ")),
        };
        self.problems.advise(self.span.clone(), message, help);
        None
    }

    /// The place of the value of `key`; where the table begins if it is not there.
    pub fn span_of(&self, key: &str) -> Range<usize> {
        self.raw(key)
            .map_or_else(|| self.span.clone(), Spanned::span)
    }

    /// The place of `key`.
    pub fn place_of(&self, key: &str) -> Option<Range<usize>> {
        self.raw(key).map(Spanned::span)
    }

    /// Notes a problem with the value of `key`, or with the table.
    pub fn note(&self, key: &str, message: impl Into<String>, help: impl Into<String>) {
        self.problems.advise(self.span_of(key), message, help);
    }

    /// Notes that a key which must be there is not.
    pub fn missing(&self, key: &str, example: &str) {
        let message = format!("{} lacks `{key}`", self.place);
        let help = format!("add a line such as: {example}");
        self.problems.advise(self.span.clone(), message, help);
    }

    /// Notes those of `keys` that stand there; `{key}` in the message is the key.
    pub fn refuse(&self, keys: &[&str], message: &str, help: &str) {
        for key in self.given(keys) {
            self.note(key, message.replace("{key}", key), help);
        }
    }

    /// A line that has `key`.
    pub fn example(&self, key: &str) -> &'static str {
        self.keys.key(key).map_or("", |key| &key.example)
    }

    /// The value of `key`, or its default. Without both, and where it is wrong, there is none; that it is required is noted.
    pub fn get<T: FromValue>(&self, key: &'static str) -> Option<T> {
        let entry = self.keys.key(key)?;
        let rule = ValueRule::new(entry);
        let read = match self.raw(key) {
            Some(value) => T::read(value, rule, self.problems),
            None if entry.is_required() => {
                self.missing(key, &entry.example);
                None
            }
            None => None,
        };
        read.or_else(|| {
            let default = DeValue::parse(entry.default.as_ref()?).ok()?;
            T::read(&default, rule, &Problems::default())
        })
    }

    /// The same, where nothing is as good as the type's own default.
    pub fn value<T: FromValue + Default>(&self, key: &'static str) -> T {
        self.get(key).unwrap_or_default()
    }

    /// What `read` makes of the text of `key`; why it cannot is noted.
    pub fn parsed<T, E: Display>(
        &self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text: Spanned<String> = self.get(key)?;
        let read = read(text.get_ref()).map_err(|why| {
            self.problems.note(text.span(), why.to_string());
        });
        read.ok()
    }

    /// The table `key`.
    pub fn table(&self, key: &str) -> Option<Fields<'a>> {
        let value = self.raw(key)?;
        self.inner(key, value).or_else(|| {
            let place = self.place_in(key);
            self.problems
                .wrong(key, value, &format!("a table, {place}"))
        })
    }

    /// The same, as if it were there without keys where it is not, or is no table.
    pub fn table_or_empty(&self, key: &str) -> Fields<'a> {
        let empty = || self.child(key, self.span.clone(), None);
        self.table(key).unwrap_or_else(empty)
    }

    /// The table `key`, which must be there; `example`: a line of it.
    pub fn table_required(&self, key: &str, example: &str) -> Option<Fields<'a>> {
        if !self.has(key) {
            let place = self.place_in(key);
            self.missing(place, &format!("{place}\n{example}"));
        }
        self.table(key)
    }

    fn place_in(&self, key: &str) -> &'static str {
        let found = self.file.table(&self.path_in(key));
        found.map_or("", |(_, _, place)| place)
    }

    fn path_in(&self, key: &str) -> String {
        match self.path {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// `value` as a table that is described as `key`, if it is one.
    pub fn inner(&self, key: &str, value: &'a Value<'a>) -> Option<Fields<'a>> {
        let table = value.get_ref().as_table()?;
        Some(self.child(key, value.span(), Some(table)))
    }

    /// The array of tables `key`; empty where it is not there.
    pub fn tables(&self, key: &str) -> Vec<Fields<'a>> {
        let Some(value) = self.raw(key) else {
            return Vec::new();
        };
        let wanted = format!("an array of tables, {}", self.place_in(key));
        let items = list(key, value, &wanted, self.problems).unwrap_or_default();
        let table = |item| {
            let table = self.inner(key, item);
            table.or_else(|| self.problems.wrong(key, item, "made of tables"))
        };
        items.iter().filter_map(table).collect()
    }

    /// Names and values of the table `key`.
    pub fn entries(&self, key: &str) -> Vec<(Spanned<&'a str>, &'a Value<'a>)> {
        let Some(value) = self.raw(key) else {
            return Vec::new();
        };
        match value.get_ref() {
            DeValue::Table(table) => table.iter().map(borrowed).collect(),
            _ => self
                .problems
                .wrong(key, value, "a table")
                .unwrap_or_default(),
        }
    }

    /// The keys that are not described, with their values, in the order in which they are written.
    pub fn others(&self) -> impl Iterator<Item = (Spanned<&'a str>, &'a Value<'a>)> {
        let known = self.file.names_in(self.path);
        // An older name is read where the newer one is not there.
        let is_read = |key: &str| {
            self.keys
                .older
                .get(key)
                .is_some_and(|newer| self.by_name(newer).is_none())
        };
        let is_other = move |key: &str| !known.contains(&key) && !is_read(key);
        let all = self.table.into_iter().flat_map(in_order);
        all.filter(move |(key, _)| is_other(key.get_ref()))
    }
}

/// `value` as a setting has it: a text, a whole number, or a truth.
pub fn word(name: &str, value: &Value<'_>, p: &Problems) -> Option<String> {
    match value.get_ref() {
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Boolean(truth) => Some(truth.to_string()),
        _ => text(name, value, p).map(Spanned::into_inner),
    }
}

fn in_order<'a>(table: &'a DeTable<'a>) -> impl Iterator<Item = (Spanned<&'a str>, &'a Value<'a>)> {
    let mut entries: Vec<_> = table.iter().map(borrowed).collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter()
}

/// The name without its text, and the value.
fn borrowed<'a>(
    (key, value): (&'a Spanned<DeString<'a>>, &'a Value<'a>),
) -> (Spanned<&'a str>, &'a Value<'a>) {
    (Spanned::new(key.span(), key.get_ref().as_ref()), value)
}

/// What a value must be, and what messages call it.
#[derive(Clone, Copy, Debug)]
pub struct ValueRule<'k> {
    /// What messages call it.
    pub name: &'k str,
    /// What it must be.
    pub form: &'k ValueForm,
    key: &'k KeyEntry,
}

impl<'k> ValueRule<'k> {
    fn new(key: &'k KeyEntry) -> ValueRule<'k> {
        ValueRule {
            name: &key.name,
            form: &key.value,
            key,
        }
    }
}

/// A type that a value is read as.
pub trait FromValue: Sized {
    /// The value; why there is none is noted.
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<Self>;
}

impl<T: FromValue> FromValue for Spanned<T> {
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<Self> {
        Some(Spanned::new(value.span(), T::read(value, rule, p)?))
    }
}

impl FromValue for String {
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<String> {
        let text = match rule.form {
            ValueForm::Word => word(rule.name, value, p)?,
            _ => text(rule.name, value, p)?.into_inner(),
        };
        let problem = match rule.form {
            ValueForm::Name => words::name_problem(&text),
            ValueForm::Path => words::path_problem(&text).map(str::to_owned),
            ValueForm::Line if !words::is_line(&text) => {
                let most = words::LINE_BYTES_MAX;
                Some(format!("this is one line of at most {most} bytes"))
            }
            _ => None,
        };
        if let Some(problem) = problem {
            p.note(value.span(), problem);
        }
        let words = rule.form.find(|form| match form {
            ValueForm::Words(words) => Some(words),
            _ => None,
        });
        if let Some(words) = words.filter(|words| !words.contains(&text)) {
            let usual = format!("`{}` cannot be `{{}}`", rule.name);
            let message = rule.key.wrong.as_ref().unwrap_or(&usual);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let usual = || suggest(&text, rule.key.of.as_deref().unwrap_or(rule.name), &words);
            let help = rule.key.help.clone();
            let help = help.filter(|_| nearest(&text, words.iter().copied()).is_none());
            let message = message.replace("{}", &short(&text));
            p.advise(value.span(), message, help.unwrap_or_else(usual));
        }
        Some(text)
    }
}

impl FromValue for bool {
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<bool> {
        let truth = value.get_ref().as_bool();
        truth.or_else(|| p.wrong(rule.name, value, "true or false"))
    }
}

impl FromValue for u64 {
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<u64> {
        let (least, most) = rule.form.whole_numbers()?.into_inner();
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        let wanted = || format!("a whole number from {least} to {most}");
        number.or_else(|| p.wrong(rule.name, value, &wanted()))
    }
}

impl FromValue for u32 {
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<u32> {
        u32::try_from(u64::read(value, rule, p)?).ok()
    }
}

impl FromValue for Nanos {
    /// `"off"`, where it may be that, is none at all: zero.
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<Nanos> {
        let (least, most) = rule.form.lengths()?.into_inner();
        let name = rule.name;
        let read = match value.get_ref() {
            DeValue::String(text) if text == "off" && matches!(rule.form, ValueForm::AnyOf(_)) => {
                return Some(Nanos::ZERO);
            }
            DeValue::String(text) => words::duration(text),
            _ => return p.wrong(name, value, "a length of time such as \"5s\""),
        };
        let read = read.and_then(|length| match (least..=most).contains(&length) {
            true => Ok(length),
            false => Err(format!("it must be from {least} to {most}")),
        });
        let cannot = |why| format!("`{name}` is not a length of time that can be used: {why}");
        read.map_err(|why| p.note(value.span(), cannot(why))).ok()
    }
}

impl<T: FromValue + PartialEq> FromValue for Vec<T> {
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<Vec<T>> {
        let such_as = || {
            let example = rule.key.example.split_once(" = ");
            format!("a list such as {}", example.map_or("", |(_, list)| list))
        };
        let form = rule.form.find(|form| match form {
            ValueForm::List(form) | ValueForm::OneOrMore(form) => Some(&**form),
            _ => None,
        })?;
        let differ = matches!(rule.form, ValueForm::OneOrMore(_));
        let items = match (rule.form, value.get_ref()) {
            (ValueForm::List(_), _) => list(rule.name, value, "a list of strings", p)?,
            (_, DeValue::Array(_)) => list(rule.name, value, &such_as(), p)?,
            _ => std::slice::from_ref(value),
        };
        if items.is_empty() && differ {
            let message = format!("`{}` is empty; it is {}", rule.name, such_as());
            p.note(value.span(), message);
        }
        let mut read = Vec::with_capacity(items.len());
        for item in items {
            let Some(one) = T::read(item, ValueRule { form, ..rule }, p) else {
                continue;
            };
            if differ && read.contains(&one) {
                let noun = rule.key.of.as_deref().unwrap_or(rule.name);
                p.note(item.span(), format!("this {noun} stands here twice"));
            }
            read.push(one);
        }
        Some(read)
    }
}

/// Values by name, in the order in which they are written.
pub type Pairs = Vec<(Spanned<String>, Spanned<String>)>;

/// The pairs without their places.
pub fn plain_pairs(pairs: Pairs) -> Vec<(String, String)> {
    let plain =
        |(name, value): (Spanned<String>, Spanned<String>)| (name.into_inner(), value.into_inner());
    pairs.into_iter().map(plain).collect()
}

impl<T: FromValue> FromValue for BTreeMap<String, T> {
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<Self> {
        let entries = named(value, rule, p)?;
        let plain = |(name, value): (Spanned<String>, T)| (name.into_inner(), value);
        Some(entries.into_iter().map(plain).collect())
    }
}

impl FromValue for Pairs {
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<Self> {
        named(value, rule, p)
    }
}

/// Values by name.
fn named<T: FromValue>(
    value: &Value<'_>,
    rule: ValueRule<'_>,
    p: &Problems,
) -> Option<Vec<(Spanned<String>, T)>> {
    let (ValueForm::Map(form), DeValue::Table(table)) = (rule.form, value.get_ref()) else {
        let wanted = match rule.form {
            ValueForm::Map(form) if **form == ValueForm::Text => "a table of strings",
            _ => "a table",
        };
        return p.wrong(rule.name, value, wanted);
    };
    if !within_limit(rule.name, value, table.len(), p) {
        return None;
    }
    let read = |(name, value): (Spanned<&str>, &Value<'_>)| {
        let rule = ValueRule {
            name: name.get_ref(),
            form,
            ..rule
        };
        let owned = Spanned::new(name.span(), (*name.get_ref()).to_owned());
        Some((owned, T::read(value, rule, p)?))
    };
    Some(in_order(table).filter_map(read).collect())
}

/// `value` as a string.
pub fn text(name: &str, value: &Value<'_>, p: &Problems) -> Option<Spanned<String>> {
    match value.get_ref() {
        DeValue::String(text) if text.contains('\0') => {
            let message = format!("`{name}` holds a zero byte, which no program can be given");
            p.note(value.span(), message);
            None
        }
        DeValue::String(text) => Some(Spanned::new(value.span(), text.to_string())),
        _ => p.wrong(name, value, "a string"),
    }
}

/// `value` as a list that is not too long.
pub fn list<'a, 'i>(
    name: &str,
    value: &'a Value<'i>,
    wanted: &str,
    p: &Problems,
) -> Option<&'a [Value<'i>]> {
    match value.get_ref() {
        DeValue::Array(items) if within_limit(name, value, items.len(), p) => Some(items.as_ref()),
        DeValue::Array(_) => None,
        _ => p.wrong(name, value, wanted),
    }
}

fn within_limit(name: &str, value: &Value<'_>, count: usize, p: &Problems) -> bool {
    if count > ITEMS_MAX {
        let message = format!("`{name}` has {count} items; at most {ITEMS_MAX} are read");
        p.note(value.span(), message);
    }
    count <= ITEMS_MAX
}

/// Bytes of a file that a person writes, at the most.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// The source of a text.
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

/// Parses `text` as TOML; syntax errors become problems, at the most the first few. There is nothing to be read then: the values with
/// which the parser recovered would be reported as the writer's.
pub fn document<'i>(text: &'i str, p: &Problems) -> Option<Spanned<DeTable<'i>>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        p.note(span, error.message().replace('\n', ", "));
    }
    p.is_empty().then_some(table)
}
