//! What a `subject.toml` says of a server: `endpoints`, `[start]`, `[ready]`, `[stop]`, and
//! `[counts]`, by which it can be the peer of clients.
//!
//! Not for: programs ([`super::program`]), clients ([`super::client`]), or starting one.

use std::collections::BTreeMap;
use std::ops::Range;

use prony_base::Nanos;
use prony_record::{CountsSign, ReadySign, StopRule};
use toml::Spanned;
use toml::de::DeValue;

use super::program::{self, Role, Variants};
use crate::counts;
use crate::diagnosis::{Diagnosis, suggest};
use crate::experiment::fields::{self, Fields, Problems};
use crate::experiment::keys::{self, check_placeholders};
use crate::experiment::spoken::{PLAIN, PROTOCOLS};
use crate::experiment::words::{
    BACKING_PLACEHOLDERS, FRONT_PLACEHOLDERS, OF_TLS, START_PLACEHOLDERS, short,
};
use crate::launch;

/// The parts of a server.
#[derive(Default)]
pub(super) struct Served {
    pub endpoints: Vec<String>,
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub ready: Option<ReadySign>,
    pub stop: Option<StopRule>,
    pub counts: Option<CountsSign>,
    pub protocols: BTreeMap<String, Vec<String>>,
}

impl Served {
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        let of_protocols = self.protocols.values().flatten();
        self.command
            .iter()
            .chain(self.env.values())
            .chain(of_protocols)
    }
}

/// All parts of a server.
pub(super) fn read_served(
    top: &mut Fields<'_, '_>,
    variants: &Variants,
    p: &mut Problems,
) -> Option<Served> {
    let listed = endpoints(top, p);
    if listed.is_none() && !top.has("endpoints") {
        top.missing("endpoints", "endpoints = [\"/ping\"]", p);
    }
    let start = read_start(top, &START_PLACEHOLDERS, variants, p);
    let ready = needed(top, "ready", "[ready]", "port = true", p).and_then(|table| ready(table, p));
    let stop = top.table("stop", "[stop]", p).map(|table| stop(table, p));
    let counts = top
        .table("counts", "[counts]", p)
        .and_then(|table| read_counts(table, p));
    let protocols = top.table("protocols", "[protocols]", p);
    let protocols = protocols.map(|table| read_protocols(table, variants, p));
    let (command, env) = start?;
    Some(Served {
        counts,
        protocols: protocols.unwrap_or_default(),
        endpoints: listed?,
        command,
        env,
        ready: Some(ready?),
        stop,
    })
}

/// All parts of a service that stands around servers.
pub(super) fn read_service(
    role: Role,
    top: &mut Fields<'_, '_>,
    variants: &Variants,
    p: &mut Problems,
) -> Option<Served> {
    program::refuse_subject_parts(role, top, p);
    let is_front = role == Role::Front;
    let right: &[&str] = match is_front {
        true => &FRONT_PLACEHOLDERS,
        false => &BACKING_PLACEHOLDERS,
    };
    let start = read_start(top, right, variants, p);
    let span = top.span_of("start");
    let ready = needed(top, "ready", "[ready]", "port = true", p).and_then(|table| ready(table, p));
    if is_front && ready.as_ref().is_some_and(|ready| ready.sign == "line") {
        let message = "a front is ready when its port accepts, or when it answers";
        let help = "port = true, or http = \"/path\"";
        p.note(Diagnosis::new(top.span_of("ready"), message).help(help));
    }
    let stop = top.table("stop", "[stop]", p).map(|table| stop(table, p));
    let (command, env) = start?;
    let mut texts = command.iter().chain(env.values());
    if is_front && !texts.any(|text| text.contains("{upstreams}")) {
        let message = "`{upstreams}` stands neither in the command nor in the environment";
        let help = "a front must be told whom to ask: add \"--upstreams\", \"{upstreams}\"";
        p.note(Diagnosis::new(span, message).help(help));
    }
    Some(Served {
        command,
        env,
        ready: Some(ready?),
        stop,
        ..Served::default()
    })
}

/// `endpoints`, each a path.
pub(crate) fn endpoints(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<Vec<String>> {
    let listed = table.texts("endpoints", p)?;
    for endpoint in &listed {
        if !endpoint.get_ref().starts_with('/') {
            p.note(Diagnosis::new(
                endpoint.span(),
                "an endpoint is a path and begins with `/`",
            ));
        }
    }
    Some(listed.into_iter().map(Spanned::into_inner).collect())
}

type Start = (Vec<String>, BTreeMap<String, String>);

fn read_start(
    top: &mut Fields<'_, '_>,
    right: &[&str],
    variants: &Variants,
    p: &mut Problems,
) -> Option<Start> {
    let example = "cmd = [\"{build}/server\", \"--port\", \"{port}\"]";
    let mut table = needed(top, "start", "[start]", example, p)?;
    let Some(value) = table.value("cmd") else {
        table.missing("cmd", example, p);
        return None;
    };
    let span = value.span();
    let command = match value.get_ref() {
        DeValue::String(_) => {
            let message = "`cmd` of [start] must be a list of words: no shell reads it";
            p.note(Diagnosis::new(value.span(), message).help(example));
            None
        }
        _ => keys::command(value, p),
    };
    let env = table.map("env", p).unwrap_or_default();
    let env_span = table.span_of("env");
    table.finish(&[], p);
    let command = command?;
    let right = program::with_variants(right, variants);
    check_placeholders(&command, &right, &span, p);
    check_placeholders(env.values(), &right, &env_span, p);
    check_port(command.iter().chain(env.values()), &span, p);
    Some((command, env))
}

/// A server must be told where to listen: Prony chooses the port.
pub(crate) fn check_port<'a>(
    mut texts: impl Iterator<Item = &'a String>,
    span: &Range<usize>,
    p: &mut Problems,
) {
    if !texts.any(|text| text.contains("{port}")) {
        let message = "`{port}` stands neither in the command nor in the environment";
        let help = "Prony chooses the port and must be able to tell it: add \"--port\", \"{port}\", \
                    or env = { PORT = \"{port}\" }";
        p.note(Diagnosis::new(span.clone(), message).help(help));
    }
}

/// `[ready]`: exactly one sign.
pub(crate) fn ready(mut table: Fields<'_, '_>, p: &mut Problems) -> Option<ReadySign> {
    let given: Vec<&str> = ["http", "port", "line"]
        .into_iter()
        .filter(|key| table.has(key))
        .collect();
    let http = table.text("http", p);
    let line = table.text("line", p);
    let port = table.value("port");
    if let Some(port) = port.filter(|port| port.get_ref().as_bool() != Some(true)) {
        let message = "`port` is either `true` or not there: Prony chooses the number";
        p.note(Diagnosis::new(port.span(), message));
    }
    if let Some(path) = http.iter().find(|path| !path.get_ref().starts_with('/')) {
        p.note(Diagnosis::new(
            path.span(),
            "`http` is a path and begins with `/`",
        ));
    }
    if let Some(empty) = line.iter().find(|line| line.get_ref().trim().is_empty()) {
        p.note(Diagnosis::new(
            empty.span(),
            "`line` is empty: any line would do",
        ));
    }
    let timeout_ns = seconds(&mut table, 20, p).0;
    let span = table.span.clone();
    table.finish(&[], p);
    let [sign] = given.as_slice() else {
        let message = match given.as_slice() {
            [] => "there is no sign by which one sees that it is ready".to_owned(),
            several => format!(
                "there is one sign of being ready, not {}",
                several.join(" and ")
            ),
        };
        let help = "one of http = \"/path\", port = true and line = \"text\"";
        p.note(Diagnosis::new(span, message).help(help));
        return None;
    };
    Some(ReadySign {
        sign: (*sign).to_owned(),
        text: http.or(line).map(Spanned::into_inner).unwrap_or_default(),
        timeout_ns,
    })
}

/// `[stop]`.
pub(crate) fn stop(mut table: Fields<'_, '_>, p: &mut Problems) -> StopRule {
    let signal = table.text("signal", p);
    if let Some(signal) = &signal {
        let typed = signal.get_ref().as_str();
        if !SIGNALS.contains(&typed) {
            let message = format!("`{}` is no signal that Prony sends", short(typed));
            let help = suggest(typed.trim_start_matches("SIG"), "signal", &SIGNALS);
            p.note(Diagnosis::new(signal.span(), message).help(help));
        }
    }
    let timeout_ns = seconds(&mut table, 5, p).0;
    table.finish(&[], p);
    StopRule {
        signal: signal.map_or_else(|| "TERM".to_owned(), Spanned::into_inner),
        timeout_ns,
    }
}

/// `timeout_s`: a number of seconds, at most two hours.
pub(super) fn seconds(table: &mut Fields<'_, '_>, usual: u64, p: &mut Problems) -> Nanos {
    const KEY: &str = "timeout_s";
    let Some(value) = table.value(KEY) else {
        return Nanos::from_secs(usual);
    };
    Nanos::from_secs(fields::whole(KEY, value, 1..=7_200, p).unwrap_or(usual))
}

pub(super) fn ready_default() -> ReadySign {
    ReadySign {
        sign: "port".to_owned(),
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
fn read_counts(mut table: Fields<'_, '_>, p: &mut Problems) -> Option<CountsSign> {
    let path = table.text_needed("path", "path = \"/nginx_status\"", p);
    if let Some(path) = path.iter().find(|path| !path.get_ref().starts_with('/')) {
        let message = "`path` is that of a request, and begins with `/`";
        p.note(Diagnosis::new(path.span(), message));
    }
    let example = "requests = 'requests: (?<requests>\\d+)'";
    let requests = table.text_needed("requests", example, p);
    let bytes = table.text("bytes", p);
    for (group, pattern) in [(counts::REQUESTS, &requests), (counts::BYTES, &bytes)] {
        let Some(pattern) = pattern else { continue };
        if let Err(why) = counts::pattern(pattern.get_ref(), group) {
            let message = format!("`{group}` is no pattern that can be used: {why}");
            let help = format!("{group} = '{group}: (?<{group}>\\d+)'");
            p.note(Diagnosis::new(pattern.span(), message).help(help));
        }
    }
    let own_requests = table.whole("own_requests", 0..=1, p);
    let refresh_ms = table.whole("refresh_ms", 0..=10_000, p);
    table.finish(&[], p);
    Some(CountsSign {
        path: path?.into_inner(),
        requests: requests?.into_inner(),
        bytes: bytes.map(Spanned::into_inner).unwrap_or_default(),
        own_requests: own_requests.unwrap_or(1),
        refresh_ns: Nanos::from_millis(refresh_ms.unwrap_or(0)).0,
    })
}

/// `[protocols]`: what the command is given for each protocol beside plain HTTP/1.1.
fn read_protocols(
    mut table: Fields<'_, '_>,
    variants: &Variants,
    p: &mut Problems,
) -> BTreeMap<String, Vec<String>> {
    let mut right = START_PLACEHOLDERS.to_vec();
    right.extend(OF_TLS);
    let right = program::with_variants(&right, variants);
    let mut all = BTreeMap::new();
    for protocol in PROTOCOLS.into_iter().filter(|&one| one != PLAIN) {
        let Some(args) = table.texts(protocol, p) else {
            continue;
        };
        let args = keys::texts(args);
        check_placeholders(&args, &right, &table.span_of(protocol), p);
        all.insert(protocol.to_owned(), args);
    }
    table.finish(&[], p);
    all
}

/// Signals that a server can be asked to stop with.
pub const SIGNALS: [&str; 7] = ["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "KILL"];

/// A table that must be there.
pub(crate) fn needed<'a, 'i>(
    top: &mut Fields<'a, 'i>,
    key: &'static str,
    place: &'static str,
    example: &str,
    p: &mut Problems,
) -> Option<Fields<'a, 'i>> {
    if !top.has(key) {
        top.missing(place, &format!("{place}\n{example}"), p);
    }
    top.table(key, place, p)
}

/// `capabilities`, each one that the kernel has.
pub(crate) fn capabilities(table: &mut Fields<'_, '_>, p: &mut Problems) -> Vec<String> {
    let names = table.texts("capabilities", p).unwrap_or_default();
    for name in &names {
        if launch::capability_named(name.get_ref()).is_none() {
            let message = format!("`{}` is no capability", short(name.get_ref()));
            let help = "capabilities = [\"sys_nice\"], as capabilities(7) lists them, in small letters without CAP_";
            p.note(Diagnosis::new(name.span(), message).help(help));
        }
    }
    names.into_iter().map(Spanned::into_inner).collect()
}
