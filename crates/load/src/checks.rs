//! What an answer must be beside its status: headers, texts in its body, values of its JSON, its size, its hash, its time.
//!
//! [`Checks`] are compiled once and shared by all threads, which count there what failed; an [`AnswerChecker`] follows one answer
//! as it comes. Only regular expressions and JSON need the body as a whole: up to [`BODY_BYTES_MAX`] of it are held, and the check
//! of a longer one has failed. All other checks hold no more than the texts that they look for.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use memchr::memmem::Finder;
use prony_base::{Instant, Nanos, clock};
use prony_record::{AnswerChecks, CheckCount, LoadSpec, PreparedRequest};
use prony_wire::Headers;
use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::coded::UNDECODED;
use crate::follow::{AnswerEnd, AnswerFollower};
use crate::json_check::JsonCheck;
use crate::redirect::chain::RedirectFault;
use crate::source::EncodedRequest;
use crate::window::{LoadPhase, Window};

/// Most bytes of a body that are held for a check that needs all of it.
pub const BODY_BYTES_MAX: usize = 8 << 20;
/// Most bytes of a failed answer's body that are kept for looking.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// Most memory that a compiled expression takes.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// An answer that failed a check, kept for looking.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct FailedAnswer {
    /// The check, in words.
    pub check: String,
    /// The status of the answer.
    pub status: u16,
    /// Bytes of its body.
    pub body_bytes: u64,
    /// The first of them.
    pub body: Vec<u8>,
}

/// An answer as it came, kept for looking.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedAnswer {
    /// The request that it answers, as HTTP/1.1 has it, with its fields filled in, but without cookies that its connection adds.
    pub request: PreparedRequest,
    /// Its status; 0: none came.
    pub status: u16,
    /// The fields of its head, in order; of HTTP/2 as they are decoded.
    pub fields: Vec<(String, String)>,
    /// From when it was waited for until its head came, and until it was whole; 0: it did not.
    pub head_after: Nanos,
    /// Likewise, until it was whole.
    pub whole_after: Nanos,
    /// Bytes of its body.
    pub body_bytes: u64,
    /// The first of them.
    pub body: Vec<u8>,
    /// The checks in words, and whether it passes each. The check of time is not among them.
    pub checks: Vec<(String, bool)>,
}

/// One check.
#[derive(Debug)]
enum Check {
    /// A header, and its value where that matters.
    Header(String, Option<String>),
    Contains(Box<Finder<'static>>),
    Regex(Regex),
    Json(JsonCheck),
    Size(u64, u64),
    Sha256([u8; 32]),
}

/// What a load does with answers before anything is expected of them, and may fail at.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AnswerFaults {
    /// Redirects are followed, up to so many in a row.
    pub follow_max: Option<u32>,
    /// Bodies are decoded.
    pub decodes: bool,
}

impl AnswerFaults {
    /// Those of a load.
    pub fn of(spec: &LoadSpec) -> AnswerFaults {
        AnswerFaults {
            follow_max: spec.follow_max,
            decodes: spec.decodes,
        }
    }
}

/// All checks of a load.
#[derive(Debug)]
pub struct Checks {
    checks: Vec<Check>,
    /// In words, in the order of `checks`, then the one of time, and last the follower's. Of a scenario, those of each step and what
    /// it takes.
    names: Vec<String>,
    /// The number of the first that says why a redirect is not followed; 0: none are.
    first_fault: u16,
    /// Likewise, that a body does not decode.
    undecoded: u16,
    /// Something is done with answers before anything is expected of them, and may fail.
    has_faults: bool,
    /// Of each step, how long its answer may take, and the number of that check. Without a scenario there is one.
    within: Box<[(Nanos, u16)]>,
    /// Number of the follower's own check, where there is one.
    followed: Option<u16>,
    failed: Vec<AtomicU64>,
    keep_max: usize,
    kept: Mutex<Vec<FailedAnswer>>,
    window: OnceLock<Arc<Window>>,
    observe_max: usize,
    observed: Mutex<Vec<ObservedAnswer>>,
}

impl Checks {
    /// Compiles the checks of a load.
    ///
    /// # Errors
    /// What one of them says that it cannot.
    pub fn new(of: &AnswerChecks) -> Result<Arc<Checks>, String> {
        Checks::followed_as(of, None)
    }

    /// [`Checks::new`] with one more, which a follower does and which has this name.
    ///
    /// # Errors
    /// As there.
    pub fn followed_as(of: &AnswerChecks, name: Option<&str>) -> Result<Arc<Checks>, String> {
        Checks::compiled(of, name).map(Arc::new)
    }

    fn compiled(of: &AnswerChecks, name: Option<&str>) -> Result<Checks, String> {
        let mut checks = Vec::new();
        let mut names = Vec::new();
        let mut add = |name: String, check: Check| {
            names.push(name);
            checks.push(check);
        };
        for (name, value) in &of.headers {
            let said = match value {
                Some(value) => format!("header {name}: {value}"),
                None => format!("header {name}"),
            };
            add(said, Check::Header(name.clone(), value.clone()));
        }
        for text in &of.contains {
            let finder = Finder::new(text.as_bytes()).into_owned();
            add(
                format!("contains {text}"),
                Check::Contains(Box::new(finder)),
            );
        }
        for text in &of.regex {
            add(format!("regex {text}"), Check::Regex(regex(text)?));
        }
        for text in &of.json {
            add(format!("json {text}"), Check::Json(text.parse()?));
        }
        if let Some((least, most)) = of.size {
            let said = match (least, most) {
                (least, most) if least == most => format!("size {least}"),
                (least, u64::MAX) => format!("size from {least}"),
                (least, most) => format!("size {least} to {most}"),
            };
            add(said, Check::Size(least, most));
        }
        if let Some(text) = &of.sha256 {
            let hash = hash(text)
                .ok_or_else(|| format!("`{text}` is no SHA-256: it has 64 hexadecimal digits"))?;
            add(format!("sha256 {text}"), Check::Sha256(hash));
        }
        let within = of.within_ns.map_or(Nanos::MAX, Nanos);
        if of.within_ns.is_some() {
            names.push(format!("time up to {within}"));
        }
        let of_time = names.len().saturating_sub(1) as u16;
        let followed = name.map(|_| names.len() as u16);
        names.extend(name.map(str::to_owned));
        let mut failed = Vec::new();
        failed.resize_with(names.len(), AtomicU64::default);
        Ok(Checks {
            checks,
            first_fault: 0,
            undecoded: 0,
            has_faults: false,
            names,
            within: Box::new([(within, of_time)]),
            followed,
            failed,
            keep_max: of.keep_max as usize,
            kept: Mutex::default(),
            window: OnceLock::new(),
            observe_max: of.observe_max as usize,
            observed: Mutex::default(),
        })
    }

    /// [`Checks::followed_as`] of a load that does more with answers, with the checks that say why that cannot be done.
    ///
    /// # Errors
    /// Those of [`Checks::new`].
    pub fn with_faults(
        of: &AnswerChecks,
        name: Option<&str>,
        faults: AnswerFaults,
    ) -> Result<Arc<Checks>, String> {
        let mut checks = Checks::compiled(of, name)?;
        checks.add_faults(faults);
        Ok(Arc::new(checks))
    }

    fn add_faults(&mut self, faults: AnswerFaults) {
        self.first_fault = self.names.len() as u16;
        if let Some(hops_max) = faults.follow_max {
            self.names.extend(RedirectFault::names(hops_max));
        }
        self.undecoded = self.names.len() as u16;
        self.has_faults = faults != AnswerFaults::default();
        if faults.decodes {
            self.names.push(UNDECODED.to_owned());
        }
        self.failed
            .resize_with(self.names.len(), AtomicU64::default);
    }

    /// The number of the check that says that a body does not decode.
    pub fn undecoded(&self) -> u16 {
        self.undecoded
    }

    /// The number of the first check that says why a redirect is not followed.
    pub fn first_fault(&self) -> u16 {
        self.first_fault
    }

    /// The checks of all steps of a scenario, which are compiled apart: where each is counted. Of each step its name, its checks, and
    /// what it takes, in words. Also the number of each step's first check among all.
    ///
    /// # Errors
    /// There are more than can be counted.
    pub fn of_steps(
        steps: &[(&str, &Arc<Checks>, Vec<String>)],
        faults: AnswerFaults,
    ) -> Result<(Arc<Checks>, Vec<u16>), String> {
        let mut names = Vec::new();
        let mut within = Vec::new();
        let mut firsts = Vec::new();
        for (step, checks, takes) in steps {
            let first = u16::try_from(names.len());
            let first =
                first.map_err(|_| "there are more checks than can be counted".to_owned())?;
            let all = checks.names.iter().chain(takes);
            names.extend(all.map(|name| format!("{step}: {name}")));
            let own = checks.within.first().copied();
            let (longest, number) = own.unwrap_or((Nanos::MAX, 0));
            within.push((longest, first.saturating_add(number)));
            firsts.push(first);
        }
        let mut failed = Vec::new();
        failed.resize_with(names.len(), AtomicU64::default);
        let mut all = Checks {
            checks: Vec::new(),
            first_fault: 0,
            undecoded: 0,
            has_faults: false,
            names,
            within: within.into(),
            followed: None,
            failed,
            keep_max: 0,
            kept: Mutex::default(),
            window: OnceLock::new(),
            observe_max: 0,
            observed: Mutex::default(),
        };
        all.add_faults(faults);
        Ok((Arc::new(all), firsts))
    }

    /// Whether failed answers are kept for looking.
    pub fn keeps(&self) -> bool {
        self.keep_max > 0
    }

    /// How many there are, the one of time included.
    pub fn count_of_checks(&self) -> usize {
        self.names.len()
    }

    /// A checker of one answer after the other; `None` where only the time is checked.
    pub fn checker(self: &Arc<Checks>) -> Option<Box<AnswerChecker>> {
        let keeps = self.observe_max > 0 || (self.has_faults && self.keep_max > 0);
        if self.checks.is_empty() && !keeps {
            return None;
        }
        Some(Box::new(self.holding(false)))
    }

    /// The same, of however many checks. `needs_body`: it is also to hold the body for `AnswerChecker::held`.
    pub fn holding(self: &Arc<Checks>, needs_body: bool) -> AnswerChecker {
        let needs = |check: &Check| matches!(check, Check::Regex(_) | Check::Json(_));
        let tail = |check: &Check| match check {
            Check::Contains(finder) => finder.needle().len().saturating_sub(1),
            _ => 0,
        };
        AnswerChecker {
            holds: match needs_body || self.checks.iter().any(needs) {
                true => BODY_BYTES_MAX,
                false if self.keep_max > 0 || self.observe_max > 0 => KEPT_BYTES_MAX,
                false => 0,
            },
            tail_bytes: self.checks.iter().map(tail).max().unwrap_or_default(),
            found: vec![false; self.checks.len()],
            sha256: self
                .checks
                .iter()
                .any(|check| matches!(check, Check::Sha256(_)))
                .then(Sha256::new),
            of: Arc::clone(self),
            observing: None,
            begun: Instant::ZERO,
            body: Vec::new(),
            tail: Vec::new(),
            size: 0,
        }
    }

    /// The check that an answer with this status and body fails, in words. Headers and time are not looked at.
    pub fn failed_by(self: &Arc<Checks>, status: u16, body: &[u8]) -> Option<String> {
        let mut checker = self.checker()?;
        checker.begin(None);
        checker.body(body);
        let number = checker.end(status)?;
        self.names.get(usize::from(number)).cloned()
    }

    /// Whether some check looks at headers.
    pub fn looks_at_headers(&self) -> bool {
        let mut checks = self.checks.iter();
        self.observe_max > 0 || checks.any(|check| matches!(check, Check::Header(..)))
    }

    /// Failed answers are kept of this window, and of no other time; before it is known, of any.
    pub fn measured_in(&self, window: &Arc<Window>) {
        // A load has one window.
        let _ = self.window.set(Arc::clone(window));
    }

    /// The check of time, if an answer to `step` that took so long fails it. Without a scenario the step is 0.
    pub fn too_late(&self, step: u16, latency: Nanos) -> Option<u16> {
        let &(within, number) = self.within.get(usize::from(step))?;
        (latency > within).then_some(number)
    }

    /// Number of the follower's check; that of none where it has none.
    pub fn followed(&self) -> u16 {
        self.followed.unwrap_or(u16::MAX)
    }

    /// Counts a failure of the window.
    pub fn count(&self, check: u16) {
        if let Some(count) = self.failed.get(usize::from(check)) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// How often each failed.
    pub fn counts(&self) -> Vec<CheckCount> {
        let both = self.names.iter().zip(&self.failed);
        let count = |(name, failed): (&String, &AtomicU64)| CheckCount {
            check: name.clone(),
            failed: failed.load(Relaxed),
        };
        let mut counts: Vec<_> = both.map(count).collect();
        // The follower's is not one that the user asked for: it is named where it failed.
        let is_quiet = counts.last().is_some_and(|last| last.failed == 0);
        if self.followed.is_some() && is_quiet {
            counts.pop();
        }
        counts
    }

    /// The answers that were kept.
    pub fn kept(&self) -> Vec<FailedAnswer> {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The answers that were observed, in the order in which their requests were sent.
    pub fn observed(&self) -> Vec<ObservedAnswer> {
        self.observed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Changes the answer with this number, where it is there.
    fn observe(&self, number: usize, change: impl FnOnce(&mut ObservedAnswer)) {
        let mut all = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = all.get_mut(number) {
            change(answer);
        }
    }

    /// Another answer is waited for: its number, where it is observed.
    fn observe_next(&self, request: Option<&EncodedRequest>) -> Option<usize> {
        if self.observe_max == 0 {
            return None;
        }
        let mut all = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        let number = all.len();
        (number < self.observe_max).then(|| {
            all.push(ObservedAnswer {
                request: request.map(EncodedRequest::prepared).unwrap_or_default(),
                ..ObservedAnswer::default()
            });
            number
        })
    }

    fn keep(&self, check: &str, status: u16, of: &AnswerChecker) {
        let is_measured =
            |window: &Arc<Window>| window.phase(clock::monotonic()) == LoadPhase::Measured;
        if self.keep_max == 0 || !self.window.get().is_none_or(is_measured) {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < self.keep_max {
            kept.push(FailedAnswer {
                check: check.to_owned(),
                status,
                body_bytes: of.size,
                body: of.body[..of.body.len().min(KEPT_BYTES_MAX)].to_vec(),
            });
        }
    }
}

fn hash(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (place, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(hash)
}

/// Follows one answer after the other.
#[derive(Debug)]
pub struct AnswerChecker {
    of: Arc<Checks>,
    /// The number by which the answer is observed, and since when it is waited for.
    observing: Option<usize>,
    begun: Instant,
    /// Checks that are satisfied before the end of the answer.
    found: Vec<bool>,
    /// The body, as much of it as is held.
    body: Vec<u8>,
    holds: usize,
    /// The end of what came so far, where a text may begin that goes on.
    tail: Vec<u8>,
    tail_bytes: usize,
    size: u64,
    sha256: Option<Sha256>,
}

impl AnswerChecker {
    /// Another answer begins, to this request, where it is known.
    pub fn begin(&mut self, request: Option<&EncodedRequest>) {
        self.observing = self.of.observe_next(request);
        if self.observing.is_some() {
            self.begun = clock::monotonic();
        }
        self.found.fill(false);
        self.body.clear();
        self.tail.clear();
        self.size = 0;
        if let Some(sha256) = &mut self.sha256 {
            *sha256 = Sha256::new();
        }
    }

    /// Its head has come.
    pub fn head(&mut self, headers: &Headers<'_>) {
        if self.observing.is_some() {
            for header in headers {
                self.observe_field(header.name.as_bytes(), header.value);
            }
        }
        for (check, found) in self.of.checks.iter().zip(&mut self.found) {
            if let Check::Header(name, value) = check {
                let mut all = headers.get_all(name);
                *found = match value {
                    Some(value) => all.any(|of| of == value.as_bytes()),
                    None => all.next().is_some(),
                };
            }
        }
    }

    /// A field of its head has come, of an answer whose fields come one by one.
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        self.observe_field(name, value);
        for (check, found) in self.of.checks.iter().zip(&mut self.found) {
            if let Check::Header(of, wanted) = check {
                let is_it = of.as_bytes().eq_ignore_ascii_case(name);
                let is_right = wanted
                    .as_ref()
                    .is_none_or(|wanted| wanted.as_bytes() == value);
                *found |= is_it && is_right;
            }
        }
    }

    fn observe_field(&self, name: &[u8], value: &[u8]) {
        let Some(number) = self.observing else {
            return;
        };
        let after = clock::monotonic().since(self.begun);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.of.observe(number, |answer| {
            answer.head_after = after;
            answer.fields.push((text(name), text(value)));
        });
    }

    /// A part of its body has come.
    pub fn body(&mut self, data: &[u8]) {
        self.size += data.len() as u64;
        let room = self.holds.saturating_sub(self.body.len());
        self.body.extend_from_slice(&data[..data.len().min(room)]);
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(data);
        }
        let begun = self.tail.len();
        self.tail
            .extend_from_slice(&data[..data.len().min(self.tail_bytes)]);
        for (check, found) in self.of.checks.iter().zip(&mut self.found) {
            if let (Check::Contains(finder), false) = (check, *found) {
                let crosses = begun > 0 && finder.find(&self.tail).is_some();
                *found = crosses || finder.find(data).is_some();
            }
        }
        if data.len() >= self.tail_bytes {
            self.tail.clear();
            let from = data.len() - self.tail_bytes;
            self.tail.extend_from_slice(&data[from..]);
        } else {
            let over = self.tail.len().saturating_sub(self.tail_bytes);
            self.tail.drain(..over);
        }
    }

    /// The answer is whole: the first check that it fails.
    pub fn end(&mut self, status: u16) -> Option<u16> {
        self.observe_end(status);
        let mut both = self.of.checks.iter().zip(&self.found);
        let failed = both.position(|(check, found)| !self.passes(check, *found))?;
        self.keep(&self.of.names[failed], status);
        Some(failed as u16)
    }

    /// Whether the answer, which is whole, passes a check.
    fn passes(&self, check: &Check, found: bool) -> bool {
        let is_whole = self.body.len() as u64 == self.size;
        match check {
            Check::Header(..) | Check::Contains(_) => found,
            Check::Regex(regex) => is_whole && regex.is_match(&self.body),
            Check::Json(json) => is_whole && json.holds(&self.body),
            Check::Size(least, most) => (*least..=*most).contains(&self.size),
            Check::Sha256(expected) => {
                let sha256 = self.sha256.clone().map(|of| of.finalize());
                sha256.is_some_and(|of| of.as_slice() == expected)
            }
        }
    }

    fn observe_end(&self, status: u16) {
        if self.observing.is_some() {
            let all = self.of.checks.iter().zip(&self.found).zip(&self.of.names);
            let checks =
                all.map(|((check, found), name)| (name.clone(), self.passes(check, *found)));
            self.observe_whole(status, checks.collect());
        }
    }

    /// The answer is whole, and these checks say this of it.
    fn observe_whole(&self, status: u16, checks: Vec<(String, bool)>) {
        let Some(number) = self.observing else {
            return;
        };
        let after = clock::monotonic().since(self.begun);
        self.of.observe(number, |answer| {
            answer.status = status;
            answer.whole_after = after;
            answer.body_bytes = self.size;
            let kept = self.body.len().min(KEPT_BYTES_MAX);
            answer.body = self.body[..kept].to_vec();
            answer.checks = checks;
        });
    }

    /// Keeps the answer for looking, where that is asked for: it failed `check`, in words.
    pub fn keep(&self, check: &str, status: u16) {
        self.of.keep(check, status, self);
    }

    /// The body, where all of it is held.
    pub fn held(&self) -> Option<&[u8]> {
        (self.body.len() as u64 == self.size).then_some(&self.body)
    }
}

impl AnswerFollower for AnswerChecker {
    fn begin(&mut self, request: Option<&EncodedRequest>) {
        AnswerChecker::begin(self, request);
    }

    fn head(&mut self, headers: &Headers<'_>) {
        AnswerChecker::head(self, headers);
    }

    fn body(&mut self, data: &[u8]) {
        AnswerChecker::body(self, data);
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        AnswerChecker::field(self, name, value);
    }

    fn passed_over(&mut self, status: u16, fault: Option<u16>) {
        let fault = fault.and_then(|fault| self.of.names.get(usize::from(fault)));
        let fault = fault.cloned();
        if let Some(fault) = &fault {
            self.keep(fault, status);
        }
        self.observe_whole(
            status,
            fault.map(|fault| (fault, false)).into_iter().collect(),
        );
        if let Some(number) = self.observing {
            // What is expected is expected of the last answer.
            self.of
                .observe(number, |answer| answer.request.expect = None);
        }
    }

    fn end(&mut self, status: u16) -> AnswerEnd {
        AnswerChecker::end(self, status).map_or(AnswerEnd::Passed, AnswerEnd::Failed)
    }
}

fn regex(text: &str) -> Result<Regex, String> {
    let regex = RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build();
    regex.map_err(|error| {
        // It shows the place on lines of its own, and says in the last one what is wrong.
        let error = error.to_string();
        let why = error.lines().last().unwrap_or_default();
        let why = why.trim_start_matches("error: ");
        format!("`{text}` is no regular expression: {why}")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The words of the check that a body fails, however it is cut.
    fn failed(of: &AnswerChecks, body: &[u8], cuts: &[usize]) -> Option<String> {
        let checks = Checks::new(of).unwrap();
        let mut checker = checks.checker().unwrap();
        let mut number = None;
        // The second time: nothing is left of the first.
        for _ in 0..2 {
            checker.begin(None);
            checker.head(&Headers::default());
            let mut from = 0;
            for &cut in cuts.iter().chain([&body.len()]) {
                let to = cut.clamp(from, body.len());
                checker.body(&body[from..to]);
                from = to;
            }
            number = checker.end(200);
        }
        number.map(|number| checks.names[usize::from(number)].clone())
    }

    #[test]
    fn a_check_fails_by_its_name() {
        let contains = AnswerChecks {
            contains: vec!["b c".into(), "a".into()],
            ..AnswerChecks::default()
        };
        assert_eq!(failed(&contains, b"a b c", &[]), None);
        assert_eq!(
            failed(&contains, b"b c", &[]).as_deref(),
            Some("contains a")
        );
        let regex = AnswerChecks {
            regex: vec!["^[0-9]+$".into()],
            ..AnswerChecks::default()
        };
        assert_eq!(failed(&regex, b"123", &[1]), None);
        assert_eq!(
            failed(&regex, b"12a", &[]).as_deref(),
            Some("regex ^[0-9]+$")
        );
        let size = AnswerChecks {
            size: Some((2, 3)),
            ..AnswerChecks::default()
        };
        assert_eq!(failed(&size, b"abc", &[1, 2]), None);
        assert_eq!(failed(&size, b"a", &[]).as_deref(), Some("size 2 to 3"));
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let sha256 = AnswerChecks {
            sha256: Some(abc.into()),
            ..AnswerChecks::default()
        };
        assert_eq!(failed(&sha256, b"abc", &[1]), None);
        assert!(failed(&sha256, b"abd", &[1]).is_some());
        let header = AnswerChecks {
            headers: vec![("X".into(), None)],
            ..AnswerChecks::default()
        };
        assert_eq!(failed(&header, b"", &[]).as_deref(), Some("header X"));
    }

    #[test]
    fn a_body_that_is_too_long_to_be_held_fails_and_is_not_held() {
        let json = AnswerChecks {
            json: vec!["$.a == 1".into()],
            ..AnswerChecks::default()
        };
        let checks = Checks::new(&json).unwrap();
        let mut checker = checks.checker().unwrap();
        checker.begin(None);
        checker.body(b"{\"a\":1}");
        let part = vec![b' '; 1 << 20];
        for _ in 0..20 {
            checker.body(&part);
        }
        assert_eq!(checker.end(200), Some(0));
        assert!(checker.body.len() <= BODY_BYTES_MAX);
    }

    #[test]
    fn what_is_no_check_says_why() {
        let why = |of: AnswerChecks| Checks::new(&of).unwrap_err();
        let regex = why(AnswerChecks {
            regex: vec!["(".into()],
            ..AnswerChecks::default()
        });
        assert!(
            regex.starts_with("`(` is no regular expression: "),
            "{regex}"
        );
        let hash = why(AnswerChecks {
            sha256: Some("é".repeat(32)),
            ..AnswerChecks::default()
        });
        assert!(hash.ends_with("64 hexadecimal digits"), "{hash}");
    }

    #[test]
    fn failed_answers_of_the_warm_up_are_not_kept() {
        let kept_in = |warmup: Nanos| {
            let checks = Checks::new(&AnswerChecks {
                contains: vec!["b".to_owned()],
                keep_max: 5,
                ..AnswerChecks::default()
            });
            let checks = checks.unwrap();
            let hour = Nanos::from_secs(3_600);
            checks.measured_in(&Arc::new(Window::new(clock::monotonic(), warmup, hour)));
            let mut checker = checks.checker().unwrap();
            checker.begin(None);
            checker.body(b"a");
            assert_eq!(checker.end(200), Some(0));
            checks.kept().len()
        };
        assert_eq!(kept_in(Nanos::ZERO), 1);
        assert_eq!(kept_in(Nanos::from_secs(3_600)), 0);
    }

    #[test]
    fn answers_are_observed_with_what_each_check_says() {
        let checks = Checks::new(&AnswerChecks {
            contains: vec!["b".to_owned()],
            size: Some((1, 1)),
            observe_max: 1,
            ..AnswerChecks::default()
        });
        let checks = checks.unwrap();
        assert!(
            !checks.keeps(),
            "it looks at answers, and keeps none that failed"
        );
        let mut checker = checks.checker().unwrap();
        for _ in 0..2 {
            checker.begin(None);
            checker.field(b"x", b"y");
            checker.body(b"a");
            checker.end(200);
        }
        let observed = checks.observed();
        assert_eq!(observed.len(), 1, "no more than are to be");
        let answer = &observed[0];
        assert_eq!(
            (answer.status, answer.body.as_slice(), answer.body_bytes),
            (200, &b"a"[..], 1)
        );
        assert_eq!(answer.fields, [("x".to_owned(), "y".to_owned())]);
        let said = [
            ("contains b".to_owned(), false),
            ("size 1".to_owned(), true),
        ];
        assert_eq!(answer.checks, said);
    }

    #[test]
    fn the_first_failed_answers_are_kept() {
        let checks = Checks::new(&AnswerChecks {
            contains: vec!["x".into()],
            within_ns: Some(5),
            keep_max: 1,
            ..AnswerChecks::default()
        })
        .unwrap();
        let mut checker = checks.checker().unwrap();
        for body in [&b"first"[..], b"second"] {
            checker.begin(None);
            checker.body(body);
            let failed = checker.end(404).unwrap();
            checks.count(failed);
        }
        assert_eq!(
            (checks.too_late(0, Nanos(5)), checks.too_late(0, Nanos(6))),
            (None, Some(1))
        );
        checks.count(1);
        let kept = checks.kept();
        assert_eq!(
            (kept.len(), kept[0].status, kept[0].body.as_slice()),
            (1, 404, &b"first"[..])
        );
        let counts = checks.counts();
        let counts: Vec<_> = counts
            .iter()
            .map(|of| (of.check.as_str(), of.failed))
            .collect();
        assert_eq!(counts, [("contains x", 2), ("time up to 5ns", 1)]);
    }

    proptest! {
        #[test]
        fn a_text_is_found_however_the_body_is_cut(
            body in "[ab]{0,30}",
            text in "[ab]{1,4}",
            cuts in prop::collection::btree_set(0_usize..30, 0..6),
        ) {
            let of = AnswerChecks {
                contains: vec![text.clone()],
                ..AnswerChecks::default()
            };
            let cuts: Vec<usize> = cuts.into_iter().collect();
            prop_assert_eq!(failed(&of, body.as_bytes(), &cuts).is_none(), body.contains(&text));
        }
    }
}
