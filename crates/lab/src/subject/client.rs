//! What a `subject.toml` says of a client that is run against a peer: `[client]`.
//!
//! Not for: what an experiment asks of it ([`crate::experiment`]), or reading what it
//! prints ([`crate::printed`]).

use std::collections::BTreeMap;

use prony_base::counted;
use toml::Spanned;

use super::check_placeholders;
use super::program::{self, Variants};
use crate::diagnosis::{Diagnosis, suggest};
use crate::experiment::fields::{Fields, Problems};
use crate::experiment::words::{CLIENT_PLACEHOLDERS, short};

/// The works that a client may do.
pub const WORKS: [&str; 2] = [prony_record::REQUESTS, prony_record::DOWNLOADS];
/// A `cmd`, as a message shows one.
pub(super) const EXAMPLE: &str = "cmd = [\"wrk\", \"-t\", \"{threads}\", \"-c\", \"{connections}\", \"-d\", \"{seconds}s\", \"{url}\"]";

/// A client that does named works against a peer, each to its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Client {
    /// Argument vector with placeholders.
    pub cmd: Vec<String>,
    /// Environment with placeholders.
    pub env: BTreeMap<String, String>,
    /// Argument vector that turns what it printed into a line of JSON; empty: it prints one.
    pub translate: Vec<String>,
    /// The works that it does, of `WORKS`.
    pub works: Vec<String>,
    /// Works that it does not do, and why.
    pub not_applicable: BTreeMap<String, String>,
    /// The most threads that it can use; `None`: not limited.
    pub threads_max: Option<u32>,
    /// Why no more; empty where it is not said.
    pub threads_max_reason: String,
}

impl Client {
    /// Why it does not do `work` with `threads`; `None`: it does.
    pub fn why_not(&self, work: &str, threads: u32) -> Option<String> {
        if let Some(reason) = self.not_applicable.get(work) {
            return Some(format!("does not do this work: {reason}"));
        }
        if !self.works.iter().any(|own| own == work) {
            return Some(format!(
                "does not do this work: `{work}` is none of its works"
            ));
        }
        let most = self.threads_max.filter(|&most| threads > most)?;
        let threads = counted(most, "thread");
        Some(match self.threads_max_reason.as_str() {
            "" => format!("has at most {threads}"),
            reason => format!("has at most {threads}: {reason}"),
        })
    }

    /// Everything in which a placeholder may stand.
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        self.cmd
            .iter()
            .chain(self.env.values())
            .chain(&self.translate)
    }

    /// Whether it is told how many threads to use.
    pub fn is_told_threads(&self) -> bool {
        let mut texts = self.cmd.iter().chain(self.env.values());
        texts.any(|text| text.contains("{threads}"))
    }
}

/// `[client]`.
pub(super) fn client(
    mut table: Fields<'_, '_>,
    variants: &Variants,
    p: &mut Problems,
) -> Option<Client> {
    let cmd = program::command(&mut table, EXAMPLE, p);
    let env = table.map("env", p).unwrap_or_default();
    let translate = program::plain(table.texts("translate", p).unwrap_or_default());
    let right = program::with_variants(&CLIENT_PLACEHOLDERS, variants);
    let places = ["cmd", "env", "translate"].map(|key| table.span_of(key));
    check_placeholders(cmd.iter().flatten(), &right, &places[0], p);
    check_placeholders(env.values(), &right, &places[1], p);
    check_placeholders(&translate, &right, &places[2], p);
    if table.has("translate") && translate.first().is_none_or(String::is_empty) {
        p.note(Diagnosis::new(
            places[2].clone(),
            "`translate` names no program",
        ));
    }
    let works = works(&mut table, p);
    let not_applicable = program::not_applicable(&mut table, &works, p);
    let threads_max = table.whole("threads_max", 1..=4_096, p);
    let reason = table.text("threads_max_reason", p);
    if reason.is_some() && !table.has("threads_max") {
        let message = "`threads_max_reason` is the reason for a `threads_max`, which is not there";
        p.note(Diagnosis::new(table.span_of("threads_max_reason"), message));
    }
    let texts = || cmd.iter().flatten().chain(env.values());
    if cmd.is_some() {
        program::check_told(texts(), &works, &places[0], p);
        check_target(texts(), &places[0], p);
    }
    table.finish(&[], p);
    Some(Client {
        env,
        translate,
        works: program::plain(works),
        not_applicable,
        threads_max: threads_max.map(|most| most as u32),
        threads_max_reason: reason.map(Spanned::into_inner).unwrap_or_default(),
        cmd: cmd?,
    })
}

/// `works`, each one that clients can be asked for.
fn works(table: &mut Fields<'_, '_>, p: &mut Problems) -> Vec<Spanned<String>> {
    if !table.has("works") {
        table.missing("works", "works = [\"requests\"]", p);
    }
    let listed = program::works(table, p);
    for work in &listed {
        let typed = work.get_ref().as_str();
        if !WORKS.contains(&typed) {
            let message = format!("`{}` is no work of clients", short(typed));
            let help = suggest(typed, "work", &WORKS);
            p.note(Diagnosis::new(work.span(), message).help(help));
        }
    }
    listed
}

/// A client must be told whom to ask.
fn check_target<'a>(
    mut texts: impl Iterator<Item = &'a String>,
    span: &std::ops::Range<usize>,
    p: &mut Problems,
) {
    if !texts.any(|text| text.contains("{url}") || text.contains("{port}")) {
        let message = "neither `{url}` nor `{port}` stands in the command or in the environment";
        let help = "a client must be told whom to ask: add \"{url}\", or \"{host}\", \"{port}\"";
        p.note(Diagnosis::new(span.clone(), message).help(help));
    }
}
