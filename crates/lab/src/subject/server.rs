//! What a `subject.toml` says of a server: `endpoints`, `[start]`, `[ready]`, `[stop]`, and
//! `[counts]`, by which it can be the peer of clients.
//!
//! Not for: programs ([`super::program`]), clients ([`super::client`]), or starting one.

use std::collections::BTreeMap;

use prony_base::Nanos;
use prony_record::{CountsSign, ReadyKind, ReadySign, StopRule};

use super::file::Subject;
use super::program::{self, Role, Variants};
use crate::counts;
use crate::experiment::fields::Fields;
use crate::experiment::keys::{self, check_placeholders};
use crate::experiment::spoken::{PLAIN, PROTOCOLS};
use crate::experiment::words::{
    BACKING_PLACEHOLDERS, FRONT_PLACEHOLDERS, OF_TLS, START_PLACEHOLDERS,
};

/// Reads all parts of a server into `subject`.
pub(super) fn read_server(top: &Fields<'_>, subject: &mut Subject) {
    subject.endpoints = top.value("endpoints");
    read_started(top, &START_PLACEHOLDERS, subject);
    subject.counts = top.table("counts").and_then(|table| read_counts(&table));
    subject.protocols = read_protocols(&top.table_or_empty("protocols"), &subject.variants);
}

/// Reads all parts of a service that stands around servers into `subject`.
pub(super) fn read_service(top: &Fields<'_>, subject: &mut Subject) {
    program::refuse_subject_parts(subject.role, top);
    if subject.role == Role::Backing {
        return read_started(top, &BACKING_PLACEHOLDERS, subject);
    }
    read_started(top, &FRONT_PLACEHOLDERS, subject);
    if subject.ready.sign == ReadyKind::Line {
        let message = "a front is ready when its port accepts, or when it answers";
        top.note("ready", message, "port = true, or http = \"/path\"");
    }
    if !subject.start.is_empty() && !subject.texts().any(|text| text.contains("{upstreams}")) {
        let message = "`{upstreams}` stands neither in the command nor in the environment";
        let help = "a front must be told whom to ask: add \"--upstreams\", \"{upstreams}\"";
        top.note("start", message, help);
    }
}

/// What is started: `[start]`, `[ready]` and `[stop]`.
fn read_started(top: &Fields<'_>, right: &[&str], subject: &mut Subject) {
    let example = "cmd = [\"{build}/server\", \"--port\", \"{port}\"]";
    if let Some(table) = top.table_required("start", example) {
        subject.env = table.value("env");
        let right = program::with_variants(right, &subject.variants);
        check_placeholders(&table, "env", subject.env.values(), &right);
        if let Some(command) = keys::command(&table, false) {
            check_placeholders(&table, "cmd", &command, &right);
            check_port(&table, command.iter().chain(subject.env.values()));
            subject.start = command;
        }
    }
    let sign = top.table_required("ready", "port = true");
    if let Some(sign) = sign.and_then(|table| ready(&table)) {
        subject.ready = sign;
    }
    if let Some(table) = top.table("stop") {
        subject.stop = stop(&table);
    }
}

/// A server must be told where to listen: Prony chooses the port.
pub(crate) fn check_port<'a>(table: &Fields<'_>, mut texts: impl Iterator<Item = &'a String>) {
    if !texts.any(|text| text.contains("{port}")) {
        let message = "`{port}` stands neither in the command nor in the environment";
        let help = "Prony chooses the port and must be able to tell it: add \"--port\", \"{port}\", \
                    or env = { PORT = \"{port}\" }";
        table.note("cmd", message, help);
    }
}

/// `[ready]`: exactly one sign.
pub(crate) fn ready(table: &Fields<'_>) -> Option<ReadySign> {
    let (http, line): (Option<String>, Option<String>) = (table.get("http"), table.get("line"));
    let port = table.raw("port").map(|port| port.get_ref());
    if port.is_some_and(|port| port.as_bool() != Some(true)) {
        let message = "`port` is either `true` or not there: Prony chooses the number";
        table.note("port", message, "");
    }
    if line.as_ref().is_some_and(|line| line.trim().is_empty()) {
        table.note("line", "`line` is empty: any line would do", "");
    }
    let timeout_ns = Nanos::from_secs(table.value("timeout_s")).0;
    let none = "there is no sign by which one sees that it is ready";
    let several = "there is one sign of being ready, not {}";
    let help = "one of http = \"/path\", port = true and line = \"text\"";
    let sign = match table.one_of(&["http", "port", "line"], (none, several), help)? {
        "http" => ReadyKind::Http,
        "line" => ReadyKind::Line,
        _ => ReadyKind::Port,
    };
    Some(ReadySign {
        sign,
        text: http.or(line).unwrap_or_default(),
        timeout_ns,
    })
}

/// `[stop]`.
pub(crate) fn stop(table: &Fields<'_>) -> StopRule {
    StopRule {
        signal: table.value("signal"),
        timeout_ns: Nanos::from_secs(table.value("timeout_s")).0,
    }
}

pub(super) fn ready_default() -> ReadySign {
    ReadySign {
        sign: ReadyKind::Port,
        text: String::new(),
        timeout_ns: Nanos::from_secs(20).0,
    }
}

pub(super) fn stop_default() -> StopRule {
    StopRule {
        signal: "TERM".to_owned(),
        timeout_ns: Nanos::from_secs(5).0,
    }
}

/// `[counts]`: where a server says how many requests it has had.
fn read_counts(table: &Fields<'_>) -> Option<CountsSign> {
    let (path, requests, bytes) = (table.get("path"), table.get("requests"), table.get("bytes"));
    for (group, pattern) in [(counts::REQUESTS, &requests), (counts::BYTES, &bytes)] {
        let pattern = pattern
            .as_ref()
            .map(|text: &String| counts::pattern(text, group));
        if let Some(Err(why)) = pattern {
            let message = format!("`{group}` is no pattern that can be used: {why}");
            let help = format!("{group} = '{group}: (?<{group}>\\d+)'");
            table.note(group, message, help);
        }
    }
    Some(CountsSign {
        own_requests: table.value("own_requests"),
        refresh_ns: Nanos::from_millis(table.value("refresh_ms")).0,
        path: path?,
        requests: requests?,
        bytes: bytes.unwrap_or_default(),
    })
}

/// `[protocols]`: what the command is given for each protocol beside plain HTTP/1.1.
fn read_protocols(table: &Fields<'_>, variants: &Variants) -> BTreeMap<String, Vec<String>> {
    let mut right = START_PLACEHOLDERS.to_vec();
    right.extend(OF_TLS);
    let right = program::with_variants(&right, variants);
    let read = |protocol: &'static str| {
        let args = table.get(protocol)?;
        check_placeholders(table, protocol, &args, &right);
        Some((protocol.to_owned(), args))
    };
    let protocols = PROTOCOLS.into_iter().filter(|&one| one != PLAIN);
    protocols.filter_map(read).collect()
}
