//! Whether a subject answers as the workload says, before anything is measured.
//!
//! *Must* checks decide whether the cell is measured at all: status, content
//! type and body, with several random numbers, on fresh and on reused
//! connections. *Capability* checks are recorded and become findings:
//! keep-alive, pipelining, requests split at any byte, HEAD.
//!
//! Not for: load, protocol conformance beyond what a benchmark rests on, or how a
//! request is sent and its answer read (`exchange`).

use std::time::{Duration, Instant};

use prony_base::{Nanos, Random, counted};
use prony_load::{Checks, LaneCookies, LedRequest, decoded};
use prony_record::{CheckLevel, CheckResult, HttpProtocol, PlannedWorkload, PreparedRequest};
use prony_wire::Method;

use crate::exchange::{self, Answer, BlockingConnection, Destination, KeptBody, shown};
use crate::sending::{self, SentSource};

/// A body is kept for comparing; so many bytes of it at most.
const KEPT: KeptBody = KeptBody::Whole(64 << 20);
/// How long a capability may take to show; a server without it often just waits.
const CAPABILITY_TIMEOUT: Duration = Duration::from_secs(1);
/// The check that says how many of several requests were sent.
pub const REQUESTS: &str = "requests";
/// Characters of a request's line in a message.
const LINE_CHARS_MAX: usize = 120;
/// Requests in the keep-alive and the pipelining check.
const REPEATS: u64 = 5;

/// What is checked and where.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What must be answered.
    pub workload: &'a PlannedWorkload,
    /// What is sent.
    pub sent: &'a SentSource,
    /// The server that is asked.
    pub to: Destination<'a>,
    /// What it is to speak beside HTTP/1.1, by which all else is checked.
    pub protocol: HttpProtocol,
}

/// What checking a subject showed.
#[derive(Debug, Default)]
pub struct Verified {
    /// The checks, in order.
    pub checks: Vec<CheckResult>,
    /// How long the first request took, from before connecting until its answer was read, redirects that are followed with it.
    pub first: Option<Nanos>,
}

impl From<Vec<CheckResult>> for Verified {
    fn from(checks: Vec<CheckResult>) -> Verified {
        Verified {
            checks,
            first: None,
        }
    }
}

/// Whether a failed must check is among `checks`, and the sentence that says what failed.
pub fn failed_must(checks: &[CheckResult]) -> Option<String> {
    let failed = |check: &&CheckResult| check.level == CheckLevel::Must && !check.passed;
    let check = checks.iter().find(failed)?;
    Some(format!("check `{}`: {}", check.name, check.detail))
}

/// Runs all checks, random numbers from `seed`. When a must check fails the rest is
/// not tried. Takes at the most the workload's time-out for each must check (or 5 s,
/// if that is less) and a second for each capability; of several requests so many are sent
/// as end within that time-out, and the check `requests` says how many.
pub fn verify(subject: &Subject<'_>, seed: u64) -> Verified {
    let requests = match requests_to_check(subject, seed) {
        Ok(requests) => requests,
        Err(error) => return Verified::from(vec![check(REQUESTS, Err(error))]),
    };
    let mut verified = must_checks(subject, &requests);
    let checks = &mut verified.checks;
    if failed_must(checks).is_none() {
        verify_connections(subject, requests, checks);
    }
    verified
}

/// How long one request of the workload takes on a new connection, until its answer, whatever it is, was read; redirects that are
/// followed with it.
///
/// # Errors
/// No answer came within the time that a must check has, or there is no request.
pub fn time_one(subject: &Subject<'_>, seed: u64) -> Result<Nanos, String> {
    let requests = requests_to_check(subject, seed)?;
    let begun = Instant::now();
    led(subject, &requests[0].request, |request| {
        ask(
            &mut subject.connect(must_timeout(subject.workload))?,
            request,
        )
    })?;
    Ok(begun.elapsed().into())
}

/// What is checked of answers that were right: connections that are kept, several requests at once, in pieces, without a body.
fn verify_connections(
    subject: &Subject<'_>,
    requests: Vec<VerifyRequest>,
    checks: &mut Vec<CheckResult>,
) {
    if subject.protocol == HttpProtocol::Http2 {
        let timeout = must_timeout(subject.workload);
        let spoken = check("http/2", exchange::speaks_http2(&subject.to, timeout));
        let stop = !spoken.passed;
        checks.push(spoken);
        if stop {
            return;
        }
    }
    let sent = subject.sent;
    if sent.cookies || sent.decodes || sent.follow_max.is_some() {
        // What a request without the cookies of those before it is answered says nothing, nor does a redirect alone, or a body as it came.
        return;
    }
    // Of a source, whatever may change something is sent once: a server may take a key once.
    let again: Vec<VerifyRequest> = requests
        .into_iter()
        .filter(|one| subject.workload.source.is_none() || is_safe(&one.request.method))
        .collect();
    let Some(first) = again.first() else {
        return;
    };
    let (kept, reused) = keep_alive(subject, &again);
    let stop = !reused.passed;
    checks.push(reused);
    if stop {
        return;
    }
    checks.push(capability("keep-alive", kept));
    checks.push(capability("pipelining", pipelining(subject, &again)));
    checks.push(capability("split", split(subject, &again)));
    if first.request.method == "GET" {
        checks.push(capability("head", head(subject, first)));
    }
}

/// Whether a request of this method changes nothing (RFC 9110, 9.2.1), so that it may be sent again.
fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS")
}

/// Whether the subject answers `GET path` with 200: the sign `http` of readiness.
pub fn answers_ok(to: &Destination<'_>, path: &str, timeout: Duration) -> bool {
    let answer = exchange::once(to, (&Method::Get, path), timeout, KEPT);
    answer.is_ok_and(|answer| answer.status == 200)
}

/// A request that is sent for checking.
struct VerifyRequest {
    request: PreparedRequest,
    /// Which one it is, for messages: ` for the number 7`; empty where there is one alone.
    label: String,
}

impl VerifyRequest {
    fn check_status(&self, workload: &PlannedWorkload, answer: &Answer) -> Result<(), String> {
        let (expected, status) = (workload.expect_status, answer.status);
        if status == expected {
            return Ok(());
        }
        let (label, body) = (&self.label, shown(&answer.body));
        Err(format!(
            "status {expected} expected{label}, {status} came with the body {body}"
        ))
    }

    fn check_content_type(
        &self,
        workload: &PlannedWorkload,
        answer: &Answer,
    ) -> Result<(), String> {
        let Some(expected) = &workload.expect_content_type else {
            return Ok(());
        };
        let came = answer.content_type.as_deref().unwrap_or("");
        let start = came.get(..expected.len());
        if start.is_some_and(|start| start.eq_ignore_ascii_case(expected)) {
            return Ok(());
        }
        // The number of a request has nothing to do with the type of its answer.
        let label = self.label_in_source(workload);
        Err(format!("`{expected}` expected{label}, `{came}` came"))
    }

    fn check_body(&self, _: &PlannedWorkload, answer: &Answer) -> Result<(), String> {
        let expected = self.request.expect.as_ref();
        match expected.and_then(|expected| expected.body.as_ref()) {
            Some(expected) if *expected != answer.body => {
                let (expected, came) = (shown(expected), shown(&answer.body));
                Err(format!("{expected} expected{}, {came} came", self.label))
            }
            _ => Ok(()),
        }
    }

    fn check_expected(&self, workload: &PlannedWorkload, answer: &Answer) -> Result<(), String> {
        let checks = Checks::new(&workload.expect_checks)?;
        let Some(failed) = checks.failed_by(answer.status, &answer.body) else {
            return Ok(());
        };
        let (label, body) = (self.label_in_source(workload), shown(&answer.body));
        Err(format!("{failed}: the answer{label} fails it: {body}"))
    }

    fn check_all(&self, workload: &PlannedWorkload, answer: &Answer) -> Result<(), String> {
        self.check_status(workload, answer)?;
        self.check_content_type(workload, answer)?;
        self.check_body(workload, answer)?;
        self.check_expected(workload, answer)
    }

    /// Its label among several requests of a source.
    fn label_in_source(&self, workload: &PlannedWorkload) -> &str {
        match workload.source {
            Some(_) => &self.label,
            None => "",
        }
    }
}

/// At least one. Of a workload's source each request; else its one request, with 0, the largest number that JSON keeps exact, and three of
/// `seed` where it varies.
fn requests_to_check(subject: &Subject<'_>, seed: u64) -> Result<Vec<VerifyRequest>, String> {
    let workload = subject.workload;
    if workload.source.is_some() {
        let requests = sending::to_verify(subject.sent, seed)?;
        if requests.is_empty() {
            return Err("there is no request, or the data file has no row".to_owned());
        }
        // In turn, as they are written down, with their fields filled in.
        let written = subject.sent.lines.iter().cycle();
        let one = |(request, written): (PreparedRequest, &(String, String))| VerifyRequest {
            label: label(&request, written),
            request,
        };
        return Ok(requests.into_iter().zip(written).map(one).collect());
    }
    let varies = exchange::varies(workload);
    let mut numbers = vec![0];
    if varies {
        let mut random = Random::of(seed, "verify");
        numbers.push(exchange::RANDOM_MAX);
        numbers.extend((0..3).map(|_| random.below(exchange::RANDOM_MAX + 1)));
    }
    let method = &workload.request.method;
    let one = |number| VerifyRequest {
        request: exchange::prepare(workload, subject.to.authority, number, method),
        label: match varies {
            true => format!(" for the number {number}"),
            false => String::new(),
        },
    };
    Ok(numbers.into_iter().map(one).collect())
}

/// Which of several requests it is: its line as it is sent, or as it is `written` where it has something of the environment.
fn label(request: &PreparedRequest, written: &(String, String)) -> String {
    let (method, path) = written;
    let line = match path.contains("{env:") {
        true => format!("{method} {path}"),
        false => {
            let line = request.bytes.split(|&byte| byte == b'\r').next();
            String::from_utf8_lossy(line.unwrap_or_default()).into_owned()
        }
    };
    let line = line.trim_end_matches(" HTTP/1.1").chars();
    format!(" for {}", line.take(LINE_CHARS_MAX).collect::<String>())
}

fn must_timeout(workload: &PlannedWorkload) -> Duration {
    Duration::from(answer_timeout(workload))
}

/// How long an answer may take that decides whether a cell is measured: the workload's time-out, or 5 s, if that is less.
pub fn answer_timeout(workload: &PlannedWorkload) -> Nanos {
    Nanos(workload.timeout_ns)
        .min(Nanos::from_secs(5))
        .max(Nanos::from_millis(100))
}

fn check(name: &str, result: Result<(), String>) -> CheckResult {
    CheckResult::new(name, CheckLevel::Must, result)
}

fn capability(name: &str, result: Result<(), String>) -> CheckResult {
    CheckResult::new(name, CheckLevel::Capability, result)
}

/// Status, content type and body of one answer on a fresh connection for each request; on one connection, with the cookies
/// that the server sets on it, where they are kept.
fn must_checks(subject: &Subject<'_>, requests: &[VerifyRequest]) -> Verified {
    let workload = subject.workload;
    let timeout = must_timeout(workload);
    let begun = Instant::now();
    let mut answers = Vec::new();
    let (mut kept, mut first) = (None, None);
    for one in requests {
        if !answers.is_empty() && workload.source.is_some() && begun.elapsed() > timeout {
            break;
        }
        let answer = led(subject, &one.request, |request| {
            match subject.sent.cookies {
                true => ask_with_cookies(subject, &mut kept, request),
                false => subject
                    .connect(timeout)
                    .and_then(|mut connection| ask(&mut connection, request)),
            }
        });
        match answer {
            Ok(answer) => {
                first.get_or_insert_with(|| Nanos::from(begun.elapsed()));
                answers.push((one, answer));
            }
            Err(error) => {
                let failed = check("answer", Err(format!("{error}{}", one.label)));
                return Verified {
                    checks: vec![failed],
                    first,
                };
            }
        }
    }
    let all = |check: fn(&VerifyRequest, &PlannedWorkload, &Answer) -> Result<(), String>| {
        let mut each = answers.iter();
        each.try_for_each(|(one, answer)| check(one, workload, answer))
    };
    let mut checks = vec![check("status", all(VerifyRequest::check_status))];
    if workload.expect_content_type.is_some() {
        checks.push(check(
            "content-type",
            all(VerifyRequest::check_content_type),
        ));
    }
    if let Some(body) = &workload.expect_body {
        let is_echo = body.contains(exchange::PLACEHOLDER) && workload.source.is_none();
        let name = if is_echo { "echo" } else { "body" };
        checks.push(check(name, all(VerifyRequest::check_body)));
    }
    if !workload.expect_checks.is_empty() {
        checks.push(check("expect", all(VerifyRequest::check_expected)));
    }
    if let Some(source) = &workload.source {
        checks.push(CheckResult {
            detail: extent(answers.len(), source.count),
            ..check(REQUESTS, Ok(()))
        });
    }
    Verified { checks, first }
}

/// How much of a source was sent before it is measured.
fn extent(sent: usize, count: u64) -> String {
    match count.saturating_sub(sent as u64) {
        0 => format!("all of {}", counted(count, "request")),
        left => format!(
            "the first {sent} of {}; {left} not",
            counted(count, "request")
        ),
    }
}

/// The answer to `request`, or to the last of those that redirects lead to where they are followed.
fn led(
    subject: &Subject<'_>,
    request: &PreparedRequest,
    mut ask: impl FnMut(&PreparedRequest) -> Result<Answer, String>,
) -> Result<Answer, String> {
    let mut answer = ask(request)?;
    let Some(hops_max) = subject.sent.follow_max else {
        return in_clear(subject, answer);
    };
    let is_secure = subject.to.trust.is_some();
    let mut chain = LedRequest::new(request, hops_max, is_secure, subject.sent.cookies);
    while let Some(next) = chain.next(
        answer.status,
        answer.location.as_deref(),
        !answer.cookies.is_empty(),
    )? {
        answer = ask(&next)?;
    }
    in_clear(subject, answer)
}

/// A connection that is kept, with its cookies.
type WithCookies = (BlockingConnection, LaneCookies);

/// One request on the connection that is kept; on a new one, without cookies, where the server closed it.
fn ask_with_cookies(
    subject: &Subject<'_>,
    kept: &mut Option<WithCookies>,
    request: &PreparedRequest,
) -> Result<Answer, String> {
    let (mut connection, mut cookies) = match kept.take() {
        Some(kept) => kept,
        None => {
            let connection = subject.connect(must_timeout(subject.workload))?;
            (connection, LaneCookies::default())
        }
    };
    let mut request = request.clone();
    cookies.add_to(&mut request.bytes);
    let answer = ask(&mut connection, &request)?;
    answer.cookies.iter().for_each(|cookie| cookies.set(cookie));
    *kept = answer.keep_alive.then_some((connection, cookies));
    Ok(answer)
}

/// Several requests on one connection: whether it was kept, and whether the answers
/// were right as far as it was (an answer to a reused connection is a must).
fn keep_alive(
    subject: &Subject<'_>,
    requests: &[VerifyRequest],
) -> (Result<(), String>, CheckResult) {
    let mut right = Ok(());
    let mut ask_all = || -> Result<(), String> {
        let mut connection = subject.connect(must_timeout(subject.workload))?;
        for turn in 0..REPEATS {
            let one = &requests[turn as usize % requests.len()];
            let answer = ask(&mut connection, &one.request)
                .map_err(|error| format!("request {} on one connection: {error}", turn + 1))?;
            if let Err(wrong) = one.check_all(subject.workload, &answer) {
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
    (kept, check("reused", right))
}

/// Several requests sent at once: all answers, in order.
fn pipelining(subject: &Subject<'_>, requests: &[VerifyRequest]) -> Result<(), String> {
    let mut connection = subject.connect(CAPABILITY_TIMEOUT)?;
    let mut bytes = Vec::new();
    let in_turn = || (0..REPEATS).map(|turn| &requests[turn as usize % requests.len()]);
    for one in in_turn() {
        bytes.extend_from_slice(&one.request.bytes);
        connection.expect(&method_named(&one.request.method))?;
    }
    connection.write(&bytes)?;
    for (turn, one) in in_turn().enumerate() {
        let of = |error| {
            format!(
                "answer {} of {REPEATS} to requests sent at once: {error}",
                turn + 1
            )
        };
        let answer = connection.answer(KEPT).map_err(of)?;
        one.check_all(subject.workload, &answer).map_err(of)?;
    }
    Ok(())
}

/// A request in two pieces, cut in the head and before its last byte, and byte by byte.
fn split(subject: &Subject<'_>, requests: &[VerifyRequest]) -> Result<(), String> {
    let one = &requests[requests.len() - 1];
    let bytes = &one.request.bytes;
    for cut in [10.min(bytes.len()), bytes.len() - 1] {
        let pieces: Vec<&[u8]> = vec![&bytes[..cut], &bytes[cut..]];
        ask_in_pieces(subject, one, &pieces)
            .map_err(|error| format!("cut at byte {cut}: {error}"))?;
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    ask_in_pieces(subject, one, &single).map_err(|error| format!("byte by byte: {error}"))
}

fn ask_in_pieces(
    subject: &Subject<'_>,
    one: &VerifyRequest,
    pieces: &[&[u8]],
) -> Result<(), String> {
    let mut connection = subject.connect(CAPABILITY_TIMEOUT)?;
    connection.expect(&method_named(&one.request.method))?;
    for (index, piece) in pieces.iter().enumerate() {
        if index == 1 {
            // Not a wait for anything: it keeps the kernel from joining the first two
            // pieces before the server has read, so that the cut is really seen.
            std::thread::sleep(Duration::from_millis(2));
        }
        connection.write(piece)?;
    }
    let answer = connection.answer(KEPT)?;
    one.check_all(subject.workload, &answer)
}

/// HEAD: the head of the GET, no body, and the connection stays open.
fn head(subject: &Subject<'_>, one: &VerifyRequest) -> Result<(), String> {
    let mut connection = subject.connect(CAPABILITY_TIMEOUT)?;
    let request = PreparedRequest {
        method: "HEAD".to_owned(),
        bytes: [
            b"HEAD",
            one.request.bytes.strip_prefix(b"GET").unwrap_or_default(),
        ]
        .concat(),
        ..PreparedRequest::default()
    };
    let answer = ask(&mut connection, &request)?;
    one.check_status(subject.workload, &answer)?;
    one.check_content_type(subject.workload, &answer)?;
    if !answer.keep_alive {
        return Ok(());
    }
    // A body sent after a HEAD would be read as the start of this answer.
    let next = ask(&mut connection, &one.request)
        .map_err(|error| format!("the request after it: {error}"))?;
    one.check_all(subject.workload, &next)
        .map_err(|error| format!("the request after it: {error}"))
}

/// Sends one request and reads its answer.
fn ask(connection: &mut BlockingConnection, request: &PreparedRequest) -> Result<Answer, String> {
    connection.send(&request.bytes, &method_named(&request.method))?;
    connection.answer(KEPT)
}

/// The answer with what its body stands for, where bodies are decoded.
fn in_clear(subject: &Subject<'_>, mut answer: Answer) -> Result<Answer, String> {
    if subject.sent.decodes {
        answer.body = decoded(&answer.codings, &answer.body)?;
    }
    Ok(answer)
}

impl Subject<'_> {
    fn connect(&self, timeout: Duration) -> Result<BlockingConnection, String> {
        BlockingConnection::open(&self.to, timeout)
    }
}

/// The method that frames an answer as one of `name` does.
fn method_named(name: &str) -> Method {
    Method::from_name(name).unwrap_or(Method::Get)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::{SocketAddr, TcpListener};
    use std::thread;

    use prony_record::RequestTemplate;

    use super::*;

    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n";

    /// A server that answers `hello`, HEAD with `to_head`, and what is asked after it on the same connection with `then`.
    fn serve(to_head: &str, then: &str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (to_head, then) = (to_head.to_owned(), then.to_owned());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (to_head, then) = (to_head.clone(), then.clone());
                thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let mut to_get = format!("{HEAD}hello");
                    let mut line = String::new();
                    // An error is a connection that is over.
                    while reader.read_line(&mut line).is_ok_and(|count| count > 0) {
                        if !line.ends_with("\r\n\r\n") {
                            continue;
                        }
                        let is_head = line.starts_with("HEAD ");
                        let text = if is_head { &to_head } else { &to_get };
                        if stream.write_all(text.as_bytes()).is_err() {
                            return;
                        }
                        if is_head {
                            to_get.clone_from(&then);
                        }
                        line.clear();
                    }
                });
            }
        });
        address
    }

    /// What is wrong with HEAD at such a server; empty: nothing.
    fn wrong_with_head(to_head: &str, then: &str) -> String {
        let address = serve(to_head, then);
        let workload = PlannedWorkload {
            request: RequestTemplate {
                method: "GET".to_owned(),
                path: "/hello".to_owned(),
                ..RequestTemplate::default()
            },
            expect_status: 200,
            expect_content_type: Some("text/plain".to_owned()),
            expect_body: Some("hello".to_owned()),
            timeout_ns: 5_000_000_000,
            ..PlannedWorkload::default()
        };
        let authority = address.to_string();
        let subject = Subject {
            workload: &workload,
            sent: &sending::from_workload(&workload, &authority, 1).unwrap(),
            to: Destination {
                address,
                authority: &authority,
                trust: None,
            },
            protocol: HttpProtocol::Http1,
        };
        let verified = verify(&subject, 1);
        assert_eq!(failed_must(&verified.checks), None);
        let of_head = verified.checks.iter().find(|check| check.name == "head");
        let check = of_head.expect("a check of HEAD");
        assert_eq!(check.passed, check.detail.is_empty(), "{check:?}");
        check.detail.clone()
    }

    #[test]
    fn what_was_answered_after_head_was_not_looked_at() {
        let hello = format!("{HEAD}hello");
        assert_eq!(wrong_with_head(HEAD, &hello), "");
        for (to_head, then) in [
            (hello.as_str(), hello.as_str()),
            (HEAD, &hello.replace("hello", "other")),
            (HEAD, &hello.replace("200 OK", "500 Oh")),
        ] {
            let wrong = wrong_with_head(to_head, then);
            assert!(wrong.starts_with("the request after it: "), "{wrong}");
        }
    }
}
