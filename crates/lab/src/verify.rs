//! Whether a subject answers as the workload says, before anything is measured.
//!
//! *Must* checks decide whether the cell is measured at all: status, content
//! type and body, with several random numbers, on fresh and on reused
//! connections. *Capability* checks are recorded and become findings:
//! keep-alive, pipelining, requests split at any byte, HEAD.
//!
//! Not for: load, protocol conformance beyond what a benchmark rests on, or how a
//! request is sent and its answer read (`exchange`).

use std::time::Duration;

use prony_base::{Nanos, Random};
use prony_load::Checks;
use prony_record::{CheckLevel, CheckResult, PlannedWorkload, PreparedRequest};
use prony_wire::Method;

use crate::exchange::{self, Answer, BlockingConnection, Destination, KeptBody};

/// A body is kept for comparing; so many bytes of it at most.
const KEPT: KeptBody = KeptBody::Whole(64 << 20);
/// How long a capability may take to show; a server without it often just waits.
const CAPABILITY_TIMEOUT: Duration = Duration::from_secs(1);
/// Requests in the keep-alive and the pipelining check.
const REPEATS: u64 = 5;

/// What is checked and where.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What is asked and what must be answered.
    pub workload: &'a PlannedWorkload,
    /// Where it is.
    pub to: Destination<'a>,
    /// Whether it is to speak HTTP/2, beside HTTP/1.1, by which all else is checked.
    pub is_http2: bool,
}

/// Whether a failed must check is among `checks`, and the sentence that says what failed.
pub fn failed_must(checks: &[CheckResult]) -> Option<String> {
    let failed = |check: &&CheckResult| check.level == CheckLevel::Must && !check.passed;
    let check = checks.iter().find(failed)?;
    Some(format!("check `{}`: {}", check.name, check.detail))
}

/// Runs all checks, random numbers from `seed`. When a must check fails the rest is
/// not tried. Takes at the most the workload's time-out for each must check (or 5 s,
/// if that is less) and a second for each capability.
pub fn verify(subject: &Subject<'_>, seed: u64) -> Vec<CheckResult> {
    let numbers = numbers(subject.workload, seed);
    let mut checks = must_checks(subject, &numbers);
    if subject.is_http2 {
        let timeout = must_timeout(subject.workload);
        checks.push(must("http/2", exchange::speaks_http2(&subject.to, timeout)));
    }
    if failed_must(&checks).is_some() {
        return checks;
    }
    let (kept, reused) = keep_alive(subject, &numbers);
    let stop = !reused.passed;
    checks.push(reused);
    if stop {
        return checks;
    }
    checks.push(capability("keep-alive", kept));
    checks.push(capability("pipelining", pipelining(subject, &numbers)));
    checks.push(capability("split", split(subject, &numbers)));
    if subject.workload.request.method == "GET" {
        checks.push(capability("head", head(subject)));
    }
    checks
}

/// Whether the subject answers `GET path` with 200: the sign `http` of readiness.
pub fn answers_ok(to: &Destination<'_>, path: &str, timeout: Duration) -> bool {
    let answer = exchange::once(to, (&Method::Get, path), timeout, KEPT);
    answer.is_ok_and(|answer| answer.status == 200)
}

/// 0, the largest number that JSON keeps exact, and three of `seed`; just one where nothing varies.
fn numbers(workload: &PlannedWorkload, seed: u64) -> Vec<u64> {
    if !exchange::varies(workload) {
        return vec![0];
    }
    let mut random = Random::of(seed, "verify");
    let mut numbers = vec![0, exchange::RANDOM_MAX];
    numbers.extend((0..3).map(|_| random.below(exchange::RANDOM_MAX + 1)));
    numbers
}

fn must_timeout(workload: &PlannedWorkload) -> Duration {
    Duration::from(
        Nanos(workload.timeout_ns)
            .min(Nanos::from_secs(5))
            .max(Nanos::from_millis(100)),
    )
}

fn must(name: &str, result: Result<(), String>) -> CheckResult {
    result_of(name, CheckLevel::Must, result)
}

fn capability(name: &str, result: Result<(), String>) -> CheckResult {
    result_of(name, CheckLevel::Capability, result)
}

fn result_of(name: &str, level: CheckLevel, result: Result<(), String>) -> CheckResult {
    CheckResult {
        name: name.to_owned(),
        level,
        passed: result.is_ok(),
        detail: result.err().unwrap_or_default(),
    }
}

/// Status, content type and body of one answer on a fresh connection for each number.
fn must_checks(subject: &Subject<'_>, numbers: &[u64]) -> Vec<CheckResult> {
    let workload = subject.workload;
    let mut answers = Vec::new();
    for &number in numbers {
        let answer = subject
            .connect(must_timeout(workload))
            .and_then(|mut connection| ask(&mut connection, &prepared(subject, number)));
        match answer {
            Ok(answer) => answers.push((number, answer)),
            Err(error) => return vec![must("answer", Err(error))],
        }
    }
    let all = |check: fn(&PlannedWorkload, u64, &Answer) -> Result<(), String>| {
        answers
            .iter()
            .try_for_each(|(number, answer)| check(workload, *number, answer))
    };
    let mut checks = vec![must("status", all(check_status))];
    if workload.expect_content_type.is_some() {
        checks.push(must("content-type", all(check_content_type)));
    }
    if let Some(body) = &workload.expect_body {
        let name = if body.contains(exchange::PLACEHOLDER) {
            "echo"
        } else {
            "body"
        };
        checks.push(must(name, all(check_body)));
    }
    if !workload.expect_checks.is_empty() {
        checks.push(must("expect", all(check_expected)));
    }
    checks
}

fn prepared(subject: &Subject<'_>, number: u64) -> PreparedRequest {
    let method = &subject.workload.request.method;
    exchange::prepare(subject.workload, subject.to.authority, number, method)
}

fn check_status(workload: &PlannedWorkload, number: u64, answer: &Answer) -> Result<(), String> {
    if answer.status == workload.expect_status {
        return Ok(());
    }
    let with = with_number(workload, number);
    Err(format!(
        "status {} expected{with}, {} came with the body {}",
        workload.expect_status,
        answer.status,
        shown(&answer.body)
    ))
}

fn check_content_type(workload: &PlannedWorkload, _: u64, answer: &Answer) -> Result<(), String> {
    let Some(expected) = &workload.expect_content_type else {
        return Ok(());
    };
    let came = answer.content_type.as_deref().unwrap_or("");
    let begins = came
        .get(..expected.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(expected));
    if begins {
        return Ok(());
    }
    Err(format!("`{expected}` expected, `{came}` came"))
}

fn check_body(workload: &PlannedWorkload, number: u64, answer: &Answer) -> Result<(), String> {
    let expected = workload
        .expect_body
        .as_deref()
        .map(|body| body.replace(exchange::PLACEHOLDER, &number.to_string()));
    match expected {
        Some(expected) if expected.as_bytes() != answer.body => Err(format!(
            "{} expected{}, {} came",
            shown(expected.as_bytes()),
            with_number(workload, number),
            shown(&answer.body)
        )),
        _ => Ok(()),
    }
}

fn check_expected(workload: &PlannedWorkload, _: u64, answer: &Answer) -> Result<(), String> {
    let checks = Checks::new(&workload.expect_checks)?;
    match checks.failed_by(answer.status, &answer.body) {
        None => Ok(()),
        Some(failed) => Err(format!(
            "{failed}: the answer fails it: {}",
            shown(&answer.body)
        )),
    }
}

fn check_all(workload: &PlannedWorkload, number: u64, answer: &Answer) -> Result<(), String> {
    check_status(workload, number, answer)?;
    check_content_type(workload, number, answer)?;
    check_body(workload, number, answer)?;
    check_expected(workload, number, answer)
}

fn with_number(workload: &PlannedWorkload, number: u64) -> String {
    if exchange::varies(workload) {
        format!(" for the number {number}")
    } else {
        String::new()
    }
}

/// The start of a body as a message shows it.
fn shown(body: &[u8]) -> String {
    const SHOWN_MAX: usize = 80;
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN_MAX)]);
    let more = if body.len() > SHOWN_MAX { " …" } else { "" };
    format!("`{}`{more}", text.escape_debug())
}

/// Several requests on one connection: whether it was kept, and whether the answers
/// were right as far as it was (an answer to a reused connection is a must).
fn keep_alive(subject: &Subject<'_>, numbers: &[u64]) -> (Result<(), String>, CheckResult) {
    let mut right = Ok(());
    let mut ask_all = || -> Result<(), String> {
        let mut connection = subject.connect(must_timeout(subject.workload))?;
        for turn in 0..REPEATS {
            let number = numbers[turn as usize % numbers.len()];
            let answer = ask(&mut connection, &prepared(subject, number))
                .map_err(|error| format!("request {} on one connection: {error}", turn + 1))?;
            if let Err(wrong) = check_all(subject.workload, number, &answer) {
                right = Err(format!("request {} on one connection: {wrong}", turn + 1));
                return Ok(());
            }
            if !answer.keep_alive {
                return Err(format!(
                    "the server closes the connection after answer {}",
                    turn + 1
                ));
            }
        }
        Ok(())
    };
    let kept = ask_all();
    (kept, must("reused", right))
}

/// Several requests sent at once: all answers, in order.
fn pipelining(subject: &Subject<'_>, numbers: &[u64]) -> Result<(), String> {
    let mut connection = subject.connect(CAPABILITY_TIMEOUT)?;
    let mut bytes = Vec::new();
    let in_turn = || (0..REPEATS).map(|turn| numbers[turn as usize % numbers.len()]);
    for number in in_turn() {
        bytes.extend_from_slice(&prepared(subject, number).bytes);
        connection.expect(&subject.method())?;
    }
    connection.write(&bytes)?;
    for (turn, number) in in_turn().enumerate() {
        let of = |error| {
            format!(
                "answer {} of {REPEATS} to requests sent at once: {error}",
                turn + 1
            )
        };
        let answer = connection.answer(KEPT).map_err(of)?;
        check_all(subject.workload, number, &answer).map_err(of)?;
    }
    Ok(())
}

/// A request in two pieces, cut in the head and before its last byte, and byte by byte.
fn split(subject: &Subject<'_>, numbers: &[u64]) -> Result<(), String> {
    let number = numbers[numbers.len() - 1];
    let bytes = prepared(subject, number).bytes;
    for cut in [10.min(bytes.len()), bytes.len() - 1] {
        let pieces: Vec<&[u8]> = vec![&bytes[..cut], &bytes[cut..]];
        ask_in_pieces(subject, number, &pieces)
            .map_err(|error| format!("cut at byte {cut}: {error}"))?;
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    ask_in_pieces(subject, number, &single).map_err(|error| format!("byte by byte: {error}"))
}

fn ask_in_pieces(subject: &Subject<'_>, number: u64, pieces: &[&[u8]]) -> Result<(), String> {
    let mut connection = subject.connect(CAPABILITY_TIMEOUT)?;
    connection.expect(&subject.method())?;
    for (index, piece) in pieces.iter().enumerate() {
        if index == 1 {
            // Not a wait for anything: it keeps the kernel from joining the first two
            // pieces before the server has read, so that the cut is really seen.
            std::thread::sleep(Duration::from_millis(2));
        }
        connection.write(piece)?;
    }
    let answer = connection.answer(KEPT)?;
    check_all(subject.workload, number, &answer)
}

/// HEAD: the head of the GET, no body, and the connection stays open.
fn head(subject: &Subject<'_>) -> Result<(), String> {
    let mut connection = subject.connect(CAPABILITY_TIMEOUT)?;
    let request = exchange::prepare(subject.workload, subject.to.authority, 0, "HEAD");
    let answer = ask(&mut connection, &request)?;
    check_status(subject.workload, 0, &answer)?;
    check_content_type(subject.workload, 0, &answer)?;
    if !answer.keep_alive {
        return Ok(());
    }
    // A body sent after a HEAD would be read as the start of this answer.
    let next = ask(&mut connection, &prepared(subject, 0))
        .map_err(|error| format!("the request after it: {error}"))?;
    check_all(subject.workload, 0, &next).map_err(|error| format!("the request after it: {error}"))
}

/// Sends one request and reads its answer.
fn ask(connection: &mut BlockingConnection, request: &PreparedRequest) -> Result<Answer, String> {
    connection.send(&request.bytes, &method_named(&request.method))?;
    connection.answer(KEPT)
}

impl Subject<'_> {
    fn connect(&self, timeout: Duration) -> Result<BlockingConnection, String> {
        BlockingConnection::open(&self.to, timeout)
    }

    fn method(&self) -> Method {
        method_named(&self.workload.request.method)
    }
}

/// The method that frames an answer as one of `name` does.
fn method_named(name: &str) -> Method {
    Method::from_name(name).unwrap_or(Method::Get)
}
