//! An entry that can only be a folder: `[[peer]]`, `[[backing]]`, `[[front]]`. Pure.
//!
//! Not for: `[[subject]]`, which may be a command or an address as well ([`super::read`]).

use toml::Spanned;

use super::fields::{Fields, Problems};
use super::keys::{check_placeholders, read_name, texts};
use super::types::{From, SubjectEntry};
use crate::diagnosis::Diagnosis;

/// What is particular to one kind of entry.
pub struct Kind<'a> {
    /// A line that would be right: `ref = "c/nginx"`.
    pub example: &'a str,
    /// Why it cannot be the key `cmd` or `url`, and what to write instead.
    pub refusal: &'a dyn Fn(&str) -> (String, String),
    /// Placeholders of its arguments and environment.
    pub placeholders: &'a [&'a str],
    /// Keys that do not belong here, each with where they do.
    pub elsewhere: &'a [(&'a str, &'a str)],
    /// What a name must not be: the reason, where it is wrong.
    pub name_fault: &'a dyn Fn(&str) -> Option<String>,
}

/// Reads one.
pub fn read(mut table: Fields<'_, '_>, kind: &Kind<'_>, p: &mut Problems) -> Option<SubjectEntry> {
    let named = table.has("cmd") || table.has("url");
    for key in ["cmd", "url"] {
        if let Some(value) = table.value(key) {
            let (message, help) = (kind.refusal)(key);
            p.note(Diagnosis::new(value.span(), message).help(help));
        }
    }
    let reference = match named {
        true => table.text("ref", p),
        false => table.text_needed("ref", kind.example, p),
    };
    let name: Option<Spanned<String>> = read_name(&mut table, p);
    if let Some(name) = &name
        && let Some(fault) = (kind.name_fault)(name.get_ref())
    {
        p.note(Diagnosis::new(name.span(), fault));
    }
    let args = texts(table.texts("args", p).unwrap_or_default());
    let env = table.map("env", p).unwrap_or_default();
    let right = kind.placeholders;
    check_placeholders(&args, right, &table.span_of("args"), p);
    check_placeholders(env.values(), right, &table.span_of("env"), p);
    let place = table.span.clone();
    table.finish(kind.elsewhere, p);
    Some(SubjectEntry {
        place,
        from: From::Ref(reference?),
        revision: None,
        name,
        threads: None,
        args,
        env,
        commands: Vec::new(),
        capabilities: Vec::new(),
        endpoints: None,
        ready: None,
        stop: None,
        works: Vec::new(),
        output: None,
    })
}
