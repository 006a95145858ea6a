//! Whether a subject answers as the workload says, before anything is measured.
//!
//! *Must* checks decide whether the cell is measured at all: status, content
//! type and body, with several random numbers, on fresh and on reused
//! connections. *Capability* checks are recorded and become findings:
//! keep-alive, pipelining, requests split at any byte, HEAD.
//!
//! Not for: load, or protocol conformance beyond what a benchmark rests on.
//! Plain blocking sockets: a check must not depend on what is measured.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use prony_base::{Nanos, Random};
use prony_record::{CheckLevel, CheckResult, PlannedWorkload, PreparedRequest};
use prony_wire::{EndOfInput, Limits, Method, ResponseEvent, ResponseReader};

use crate::request;

/// Bytes of a body that are kept for comparing.
const BODY_BYTES_MAX: usize = 64 << 20;
/// How long a capability may take to show; a server without it often just waits.
const CAPABILITY_TIMEOUT: Duration = Duration::from_secs(1);
/// Requests in the keep-alive and the pipelining check.
const REPEATS: u64 = 5;

/// What is checked and where.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What is asked and what must be answered.
    pub workload: &'a PlannedWorkload,
    /// Where it listens.
    pub address: SocketAddr,
    /// What `Host` says.
    pub host: &'a str,
}

/// An answer as it came.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Answer {
    status: u16,
    content_type: Option<String>,
    body: Vec<u8>,
    keep_alive: bool,
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
pub fn answers_ok(address: SocketAddr, host: &str, path: &str, timeout: Duration) -> bool {
    let bytes = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let ask = || -> Result<Answer, String> {
        let mut talk = Talk::open(address, timeout)?;
        talk.send(bytes.as_bytes(), &Method::Get)?;
        talk.answer()
    };
    ask().is_ok_and(|answer| answer.status == 200)
}

/// 0, the largest number that JSON keeps exact, and three of `seed`; just one where nothing varies.
fn numbers(workload: &PlannedWorkload, seed: u64) -> Vec<u64> {
    if !request::varies(workload) {
        return vec![0];
    }
    let mut random = Random::of(seed, "verify");
    let mut numbers = vec![0, request::RANDOM_MAX];
    numbers.extend((0..3).map(|_| random.below(request::RANDOM_MAX + 1)));
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
        let ask = || -> Result<Answer, String> {
            let mut talk = Talk::open(subject.address, must_timeout(workload))?;
            talk.ask(&prepared(subject, number))
        };
        match ask() {
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
        let name = if body.contains(request::PLACEHOLDER) {
            "echo"
        } else {
            "body"
        };
        checks.push(must(name, all(check_body)));
    }
    checks
}

fn prepared(subject: &Subject<'_>, number: u64) -> PreparedRequest {
    let method = &subject.workload.request.method;
    request::prepare(subject.workload, subject.host, number, method)
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
        .map(|body| body.replace(request::PLACEHOLDER, &number.to_string()));
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

fn check_all(workload: &PlannedWorkload, number: u64, answer: &Answer) -> Result<(), String> {
    check_status(workload, number, answer)?;
    check_content_type(workload, number, answer)?;
    check_body(workload, number, answer)
}

fn with_number(workload: &PlannedWorkload, number: u64) -> String {
    if request::varies(workload) {
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
        let mut talk = Talk::open(subject.address, must_timeout(subject.workload))?;
        for turn in 0..REPEATS {
            let number = numbers[turn as usize % numbers.len()];
            let answer = talk
                .ask(&prepared(subject, number))
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
    let mut talk = Talk::open(subject.address, CAPABILITY_TIMEOUT)?;
    let mut bytes = Vec::new();
    let in_turn = || (0..REPEATS).map(|turn| numbers[turn as usize % numbers.len()]);
    for number in in_turn() {
        bytes.extend_from_slice(&prepared(subject, number).bytes);
        talk.expect(&subject.method())?;
    }
    talk.write(&bytes)?;
    for (turn, number) in in_turn().enumerate() {
        let of = |error| {
            format!(
                "answer {} of {REPEATS} to requests sent at once: {error}",
                turn + 1
            )
        };
        let answer = talk.answer().map_err(of)?;
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
    let mut talk = Talk::open(subject.address, CAPABILITY_TIMEOUT)?;
    talk.expect(&subject.method())?;
    for (index, piece) in pieces.iter().enumerate() {
        if index == 1 {
            // Not a wait for anything: it keeps the kernel from joining the first two
            // pieces before the server has read, so that the cut is really seen.
            std::thread::sleep(Duration::from_millis(2));
        }
        talk.write(piece)?;
    }
    let answer = talk.answer()?;
    check_all(subject.workload, number, &answer)
}

/// HEAD: the head of the GET, no body, and the connection stays open.
fn head(subject: &Subject<'_>) -> Result<(), String> {
    let mut talk = Talk::open(subject.address, CAPABILITY_TIMEOUT)?;
    let request = request::prepare(subject.workload, subject.host, 0, "HEAD");
    let answer = talk.ask(&request)?;
    check_status(subject.workload, 0, &answer)?;
    check_content_type(subject.workload, 0, &answer)?;
    if !answer.keep_alive {
        return Ok(());
    }
    // A body sent after a HEAD would be read as the start of this answer.
    let next = talk
        .ask(&prepared(subject, 0))
        .map_err(|error| format!("the request after it: {error}"))?;
    check_all(subject.workload, 0, &next).map_err(|error| format!("the request after it: {error}"))
}

impl Subject<'_> {
    fn method(&self) -> Method {
        method_named(&self.workload.request.method)
    }
}

/// The method that frames an answer as one of `name` does.
fn method_named(name: &str) -> Method {
    Method::from_name(name).unwrap_or(Method::Get)
}

/// One connection, blocking, with a time-out on every wait.
struct Talk {
    stream: TcpStream,
    reader: ResponseReader,
    pending: Vec<u8>,
}

impl Talk {
    fn open(address: SocketAddr, timeout: Duration) -> Result<Talk, String> {
        let failed = |error: std::io::Error| format!("cannot connect to {address}: {error}");
        let stream = TcpStream::connect_timeout(&address, timeout).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(timeout)).map_err(failed)?;
        stream.set_write_timeout(Some(timeout)).map_err(failed)?;
        Ok(Talk {
            stream,
            reader: ResponseReader::new(Limits::for_responses()),
            pending: Vec::new(),
        })
    }

    fn expect(&mut self, method: &Method) -> Result<(), String> {
        self.reader
            .expect(method)
            .map_err(|error| error.to_string())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream
            .write_all(bytes)
            .map_err(|error| format!("sending failed: {error}"))
    }

    fn send(&mut self, bytes: &[u8], method: &Method) -> Result<(), String> {
        self.expect(method)?;
        self.write(bytes)
    }

    fn ask(&mut self, request: &PreparedRequest) -> Result<Answer, String> {
        self.send(&request.bytes, &method_named(&request.method))?;
        self.answer()
    }

    /// Reads one whole answer.
    fn answer(&mut self) -> Result<Answer, String> {
        let mut answer = Answer::default();
        loop {
            if self.take_events(&mut answer)? {
                return Ok(answer);
            }
            let mut buffer = [0; 16 << 10];
            match self.stream.read(&mut buffer) {
                Ok(0) => return self.ended(answer),
                Ok(count) => self.pending.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Err("no answer in time".to_owned());
                }
                Err(error) => return Err(format!("receiving failed: {error}")),
            }
        }
    }

    /// Takes what has arrived; true when the answer is whole.
    fn take_events(&mut self, answer: &mut Answer) -> Result<bool, String> {
        let mut used_in_all = 0;
        let mut whole = false;
        while !whole {
            let (used, event) = self
                .reader
                .next(&self.pending[used_in_all..])
                .map_err(|error| format!("the answer is not HTTP: {error}"))?;
            used_in_all += used;
            match event {
                None => break,
                Some(ResponseEvent::Interim(_)) => {}
                Some(ResponseEvent::Head(head)) => {
                    answer.status = head.status;
                    answer.keep_alive = head.keep_alive;
                    let field = head.headers.get("content-type");
                    answer.content_type =
                        field.map(|value| String::from_utf8_lossy(value).into_owned());
                }
                Some(ResponseEvent::Data(data)) => {
                    if answer.body.len() + data.len() > BODY_BYTES_MAX {
                        return Err(format!("a body of more than {BODY_BYTES_MAX} bytes came"));
                    }
                    answer.body.extend_from_slice(data);
                }
                Some(ResponseEvent::End(end)) => {
                    answer.keep_alive = end.keep_alive;
                    whole = true;
                }
            }
        }
        self.pending.drain(..used_in_all);
        Ok(whole)
    }

    /// The stream ended: that may be the end of a body, or a lack of one.
    fn ended(&mut self, mut answer: Answer) -> Result<Answer, String> {
        match self.reader.end_of_input() {
            Ok(EndOfInput::Complete { .. }) => {
                answer.keep_alive = false;
                Ok(answer)
            }
            Ok(EndOfInput::Idle { .. }) => {
                Err("the server closed the connection without an answer".to_owned())
            }
            Err(error) => Err(format!(
                "the server closed the connection in the answer: {error}"
            )),
        }
    }
}
