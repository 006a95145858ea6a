//! What a `subject.toml` says of a client that is run against a peer: `[client]`.
//!
//! Not for: what an experiment asks of it ([`crate::experiment`]), or reading what it
//! prints ([`crate::printed`]).

use std::collections::BTreeMap;

use prony_base::counted;

use super::program::{self, Variants};
use crate::experiment::fields::Fields;
use crate::experiment::keys::{self, check_placeholders};
use crate::experiment::words::CLIENT_PLACEHOLDERS;

/// A client that does named works against a peer, each to its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Client {
    /// Argument vector with placeholders.
    pub cmd: Vec<String>,
    /// Environment with placeholders.
    pub env: BTreeMap<String, String>,
    /// Argument vector that turns what it printed into a line of JSON; empty: it prints one.
    pub translate: Vec<String>,
    /// The works that it does, `requests` or `downloads`.
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
pub(super) fn client(table: &Fields<'_>, variants: &Variants) -> Option<Client> {
    let cmd = keys::command(table, false);
    let works = program::works(table);
    let client = Client {
        not_applicable: program::not_applicable(table, &works),
        env: table.value("env"),
        translate: table.value("translate"),
        works,
        threads_max: table.get("threads_max"),
        threads_max_reason: table.value("threads_max_reason"),
        cmd: cmd.clone().unwrap_or_default(),
    };
    let right = program::with_variants(&CLIENT_PLACEHOLDERS, variants);
    check_placeholders(table, "cmd", &client.cmd, &right);
    check_placeholders(table, "env", client.env.values(), &right);
    check_placeholders(table, "translate", &client.translate, &right);
    if table.has("translate") && client.translate.first().is_none_or(String::is_empty) {
        table.note("translate", "`translate` names no program", "");
    }
    if !table.has("threads_max") {
        let message = "`{key}` is the reason for a `threads_max`, which is not there";
        table.refuse(&["threads_max_reason"], message, "");
    }
    cmd?;
    let texts = || client.cmd.iter().chain(client.env.values());
    program::check_told(table, texts(), &client.works);
    if !texts().any(|text| text.contains("{url}") || text.contains("{port}")) {
        let message = "neither `{url}` nor `{port}` stands in the command or in the environment";
        let help = "a client must be told whom to ask: add \"{url}\", or \"{host}\", \"{port}\"";
        table.note("cmd", message, help);
    }
    Some(client)
}
