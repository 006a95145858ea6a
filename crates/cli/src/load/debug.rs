//! `prony load --print-request` and `--debug N`: what is sent, and what comes back, one exchange after the other.
//!
//! Requests and answers go the way of a load (the same protocols, TLS, proxies and checks), on one connection. Not for: figures.

use std::fmt::Write as _;

use anyhow::Context as _;
use prony_base::{Nanos, counted};
use prony_load::form::head_and_body;
use prony_load::{
    LaneCookies, LoadResult, LoadSpec, ObservedAnswer, first_requests, request_fields,
};
use prony_record::{AnswerChecks, HttpProtocol, Pace, PreparedRequest};

use super::{ending, tls};
use crate::signals::interruption;
use crate::{Ending, Streams};

/// Bytes of a body that are shown.
const SHOWN_MAX: usize = 1_024;

/// Prints the first request of `spec`.
pub fn print_request(spec: &LoadSpec, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let requests = first_requests(spec, 1).map_err(anyhow::Error::msg)?;
    let request = requests.first().context("there is no request")?;
    match spec.protocol {
        HttpProtocol::Http2 => write!(streams.out, "{}", fields(request, spec, ""))?,
        HttpProtocol::Http1 => streams.out.write_all(&request.bytes)?,
    }
    Ok(Ending::Done)
}

/// The fields and the body of a request of HTTP/2, as text.
fn fields(request: &PreparedRequest, spec: &LoadSpec, mark: &str) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for (name, value) in request_fields(&request.bytes, spec.tls.is_some()) {
        let _ = writeln!(text, "{mark}{name}: {value}");
    }
    let body = head_and_body(&request.bytes).1;
    let _ = writeln!(text, "{mark}");
    text + &body_text(body, body.len() as u64)
}

/// Sends `count` requests of `spec` one by one, and shows them.
pub fn exchanges(
    spec: &LoadSpec,
    count: u32,
    allows_failures: bool,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Ending> {
    let spec = LoadSpec {
        threads: 1,
        connections: 1,
        depth: 1,
        pace: Pace::default(),
        warmup_ns: 0,
        duration_ns: Nanos::MAX.0,
        requests_max: Some(u64::from(count)),
        checks: Some(AnswerChecks {
            observe_max: count.saturating_mul(1 + spec.follow_max.unwrap_or_default()),
            ..spec.checks.clone().unwrap_or_default()
        }),
        ..spec.clone()
    };
    let outcome = prony_load::run(&spec, &mut interruption()?).map_err(tls::explained)?;
    let mut cookies = spec.cookies.then(LaneCookies::default);
    for (number, answer) in outcome.observed.iter().enumerate() {
        let mut request = answer.request.clone();
        if let Some(cookies) = &cookies {
            cookies.add_to(&mut request.bytes);
        }
        let text = exchange(&spec, number, &request, answer);
        streams.out.write_all(text.as_bytes())?;
        let Some(cookies) = &mut cookies else {
            continue;
        };
        let of = |wanted: &'static str| {
            let mut fields = answer.fields.iter();
            move || fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted))
        };
        std::iter::from_fn(of("set-cookie")).for_each(|(_, value)| cookies.set(value.as_bytes()));
        // The cookies are the connection's.
        let is_over = |(_, value): (&str, &str)| value.eq_ignore_ascii_case("close");
        if std::iter::from_fn(of("connection")).any(|(name, value)| is_over((name, value))) {
            cookies.clear();
        }
    }
    writeln!(streams.out, "{}", summed_up(&outcome))?;
    Ok(ending::ending(&outcome, allows_failures))
}

/// A summary of all requests.
fn summed_up(outcome: &LoadResult) -> String {
    let counts = &outcome.report.counts;
    let mut text = format!("== {} completed", counts.completed + counts.drained);
    for (kind, count) in counts.failed.by_kind() {
        if count > 0 {
            let _ = write!(text, ", {count} failed: {kind}");
        }
    }
    if let Some(rule) = &outcome.report.protocol_failure {
        let _ = write!(text, " ({rule})");
    }
    if counts.unexpected_status > 0 {
        let _ = write!(
            text,
            ", {} with another status than expected",
            counts.unexpected_status
        );
    }
    text
}

/// One request and its answer.
fn exchange(
    spec: &LoadSpec,
    number: usize,
    request: &PreparedRequest,
    answer: &ObservedAnswer,
) -> String {
    let mut text = format!("== request {}\n", number + 1);
    if spec.protocol == HttpProtocol::Http2 {
        text.push_str(&fields(request, spec, "> "));
    } else {
        let (head, body) = head_and_body(&request.bytes);
        for line in String::from_utf8_lossy(head).lines() {
            let _ = writeln!(text, "> {line}");
        }
        text.push_str(&body_text(body, body.len() as u64));
    }
    if answer.status == 0 {
        return text + "== no whole answer\n";
    }
    let _ = writeln!(
        text,
        "== answer: status {}, whole after {}",
        answer.status, answer.whole_after
    );
    for (name, value) in &answer.fields {
        let _ = writeln!(text, "< {}: {}", harmless(name), harmless(value));
    }
    let _ = writeln!(text, "< ");
    text.push_str(&body_text(&answer.body, answer.body_bytes));
    // Of a longer body only the beginning is here.
    let is_whole = answer.body_bytes == answer.body.len() as u64;
    let body = request.expect.as_ref().filter(|_| is_whole);
    let body = body.and_then(|of| of.body.as_ref());
    let is_expected =
        body.map(|body| ("the body that is expected".to_owned(), *body == answer.body));
    for (check, passed) in answer.checks.iter().cloned().chain(is_expected) {
        let came = if passed { "passed" } else { "failed" };
        let _ = writeln!(text, "== check {check}: {came}");
    }
    text
}

/// The beginning of a body, of which there are so many bytes; nothing of an empty one.
fn body_text(body: &[u8], bytes: u64) -> String {
    let start = &body[..body.len().min(SHOWN_MAX)];
    let mut text = harmless(&String::from_utf8_lossy(start));
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if start.len() as u64 != bytes {
        let _ = writeln!(text, "… {} in all", counted(bytes, "byte"));
    }
    text
}

/// The text without control characters, by which a server could control the terminal.
fn harmless(text: &str) -> String {
    let of = |c: char| match c.is_control() && !"\n\r\t".contains(c) {
        true => '�',
        false => c,
    };
    text.chars().map(of).collect()
}
