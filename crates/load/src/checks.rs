//! What an answer must be beside its status: headers, texts in its body, values of its JSON, its size, its hash, its time.
//!
//! [`Checks`] are compiled once and shared by all threads, which count there what failed; an [`AnswerChecker`] follows one answer
//! as it comes. Only regular expressions and JSON need the body as a whole: up to [`BODY_BYTES_MAX`] of it are held, and the check
//! of a longer one has failed. All other checks hold no more than the texts that they look for.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use memchr::memmem::Finder;
use prony_base::Nanos;
use prony_record::{AnswerChecks, CheckCount};
use prony_wire::Headers;
use regex::bytes::{Regex, RegexBuilder};
use sha2::{Digest as _, Sha256};

use crate::json_check::JsonCheck;

/// Most bytes of a body that are held for a check that needs all of it.
pub const BODY_BYTES_MAX: usize = 8 << 20;
/// Most bytes of a failed answer's body that are kept for looking.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// Most memory that a compiled expression takes.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Follows the answers of one connection, one after the other, as they come.
pub trait AnswerFollower {
    /// Another answer begins.
    fn begin(&mut self);

    /// Its head has come.
    fn head(&mut self, headers: &Headers<'_>);

    /// A part of its body has come.
    fn body(&mut self, data: &[u8]);

    /// The answer is whole: the number of the check that it fails.
    fn end(&mut self, status: u16) -> Option<u16>;
}

/// Makes a follower for each connection of a load.
pub trait AnswerFollowers: Debug + Send + Sync {
    /// That of a connection of thread `thread`. It passes the answer on to `checker`, and returns `failed` where the answer fails by
    /// the follower itself.
    fn follower(
        &self,
        thread: u32,
        checker: Option<Box<dyn AnswerFollower>>,
        failed: u16,
    ) -> Box<dyn AnswerFollower>;
}

/// An answer that failed a check, kept for looking.
#[derive(Clone, Debug, Eq, PartialEq)]
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

/// All checks of a load.
#[derive(Debug)]
pub struct Checks {
    checks: Vec<Check>,
    /// In words, in the order of `checks`, then the one of time, and last the follower's.
    names: Vec<String>,
    within: Nanos,
    /// Number of the check of time.
    time: u16,
    /// Number of the follower's own check, where there is one.
    followed: Option<u16>,
    failed: Vec<AtomicU64>,
    keep_max: usize,
    kept: Mutex<Vec<FailedAnswer>>,
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
            let regex = RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build();
            let regex = regex.map_err(|error| {
                // It shows the place on lines of its own, and says in the last one what is wrong.
                let error = error.to_string();
                let why = error.lines().last().unwrap_or_default();
                let why = why.trim_start_matches("error: ");
                format!("`{text}` is no regular expression: {why}")
            })?;
            add(format!("regex {text}"), Check::Regex(regex));
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
        let time = names.len().saturating_sub(1) as u16;
        let followed = name.map(|_| names.len() as u16);
        names.extend(name.map(str::to_owned));
        let mut failed = Vec::new();
        failed.resize_with(names.len(), AtomicU64::default);
        Ok(Arc::new(Checks {
            checks,
            names,
            within,
            time,
            followed,
            failed,
            keep_max: of.keep_max as usize,
            kept: Mutex::default(),
        }))
    }

    /// A checker of one answer after the other; `None` where only the time is checked.
    pub fn checker(self: &Arc<Checks>) -> Option<Box<AnswerChecker>> {
        if self.checks.is_empty() {
            return None;
        }
        let needs = |check: &Check| matches!(check, Check::Regex(_) | Check::Json(_));
        let tail = |check: &Check| match check {
            Check::Contains(finder) => finder.needle().len().saturating_sub(1),
            _ => 0,
        };
        Some(Box::new(AnswerChecker {
            holds: match self.checks.iter().any(needs) {
                true => BODY_BYTES_MAX,
                false if self.keep_max > 0 => KEPT_BYTES_MAX,
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
            body: Vec::new(),
            tail: Vec::new(),
            size: 0,
        }))
    }

    /// The same as a follower.
    pub fn follower(self: &Arc<Checks>) -> Option<Box<dyn AnswerFollower>> {
        let checker = self.checker()?;
        Some(checker)
    }

    /// The check that an answer with this status and body fails, in words. Headers and time are not looked at.
    pub fn failed_by(self: &Arc<Checks>, status: u16, body: &[u8]) -> Option<String> {
        let mut checker = self.checker()?;
        checker.begin();
        checker.body(body);
        let number = checker.end(status)?;
        self.names.get(usize::from(number)).cloned()
    }

    /// The check of time, if an answer that took so long fails it.
    pub fn too_late(&self, latency: Nanos) -> Option<u16> {
        (latency > self.within).then_some(self.time)
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

    fn keep(&self, number: usize, status: u16, of: &AnswerChecker) {
        if self.keep_max == 0 {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < self.keep_max {
            kept.push(FailedAnswer {
                check: self.names[number].clone(),
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

impl AnswerFollower for AnswerChecker {
    fn begin(&mut self) {
        self.found.fill(false);
        self.body.clear();
        self.tail.clear();
        self.size = 0;
        if let Some(sha256) = &mut self.sha256 {
            *sha256 = Sha256::new();
        }
    }

    fn head(&mut self, headers: &Headers<'_>) {
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

    fn body(&mut self, data: &[u8]) {
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

    fn end(&mut self, status: u16) -> Option<u16> {
        let is_whole = self.body.len() as u64 == self.size;
        let mut both = self.of.checks.iter().zip(&self.found);
        let failed = both.position(|(check, found)| !match check {
            Check::Header(..) | Check::Contains(_) => *found,
            Check::Regex(regex) => is_whole && regex.is_match(&self.body),
            Check::Json(json) => is_whole && json.holds(&self.body),
            Check::Size(least, most) => (*least..=*most).contains(&self.size),
            Check::Sha256(expected) => {
                let sha256 = self.sha256.clone().map(|of| of.finalize());
                sha256.is_some_and(|of| of.as_slice() == expected)
            }
        })?;
        self.of.keep(failed, status, self);
        Some(failed as u16)
    }
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
            checker.begin();
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
        checker.begin();
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
            checker.begin();
            checker.body(body);
            let failed = checker.end(404).unwrap();
            checks.count(failed);
        }
        assert_eq!(
            (checks.too_late(Nanos(5)), checks.too_late(Nanos(6))),
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
