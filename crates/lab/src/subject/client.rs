//! What a `subject.toml` says of a client that is run against a peer: `[client]`.
//!
//! Not for: what an experiment asks of it ([`crate::experiment`]), or reading what it
//! prints ([`crate::printed`]).

use prony_base::counted;

use super::program::{self, Program, Variants};
use crate::experiment::fields::Fields;
use crate::experiment::keys::check_placeholders;
use crate::experiment::words::CLIENT_PLACEHOLDERS;

/// A client that does named works against a peer, each to its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Client {
    /// How it is run, and its works: `requests` or `downloads`.
    pub program: Program,
    /// Argument vector that turns what it printed into a line of JSON; empty: it prints one.
    pub translate: Vec<String>,
    /// The most threads that it can use; `None`: not limited.
    pub threads_max: Option<u32>,
    /// Why no more; empty where it is not said.
    pub threads_max_reason: String,
}

impl Client {
    /// Why it does not do `work` with `threads`; `None`: it does.
    pub fn why_not(&self, work: &str, threads: u32) -> Option<String> {
        self.program.why_not(work).or_else(|| {
            let most = self.threads_max.filter(|&most| threads > most)?;
            let threads = counted(most, "thread");
            Some(match self.threads_max_reason.as_str() {
                "" => format!("has at most {threads}"),
                reason => format!("has at most {threads}: {reason}"),
            })
        })
    }
}

/// `[client]`.
pub(super) fn client(table: &Fields<'_>, variants: &Variants) -> Option<Client> {
    let right = program::with_variants(&CLIENT_PLACEHOLDERS, variants);
    let client = Client {
        program: program::command(table, &right),
        translate: table.value("translate"),
        threads_max: table.get("threads_max"),
        threads_max_reason: table.value("threads_max_reason"),
    };
    check_placeholders(table, "translate", &client.translate, &right);
    if table.has("translate") && client.translate.first().is_none_or(String::is_empty) {
        table.note("translate", "`translate` names no program", "");
    }
    if !table.has("threads_max") {
        let message = "`{key}` is the reason for a `threads_max`, which is not there";
        table.refuse(&["threads_max_reason"], message, "");
    }
    if client.program.cmd.is_empty() {
        return None;
    }
    let is_address = |text: &String| text.contains("{url}") || text.contains("{port}");
    if !client.program.texts().any(is_address) {
        let message = "neither `{url}` nor `{port}` stands in the command or in the environment";
        let help = "a client must be told whom to ask: add \"{url}\", or \"{host}\", \"{port}\"";
        table.note("cmd", message, help);
    }
    Some(client)
}
