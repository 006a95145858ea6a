//! `expect` of a workload: what is right of an answer.

use prony_base::Nanos;
use prony_load::Checks;
use prony_record::{AnswerChecks, RequestTemplate};
use toml::Spanned;

use super::fields::{Fields, Problems};
use crate::diagnosis::Diagnosis;

/// The bytes that a body may be said to have.
const SIZE: std::ops::RangeInclusive<u64> = 0..=1 << 40;
/// How long an answer may be said to take.
const TIME: std::ops::RangeInclusive<Nanos> = Nanos(1)..=Nanos::from_secs(3_600);

/// What is right of an answer.
#[derive(Debug)]
pub struct RightAnswer {
    pub status: u16,
    pub content_type: Option<String>,
    pub body: Option<Spanned<String>>,
    pub checks: AnswerChecks,
}

impl Default for RightAnswer {
    fn default() -> RightAnswer {
        RightAnswer {
            status: 200,
            content_type: None,
            body: None,
            checks: AnswerChecks::default(),
        }
    }
}

/// Reads the table.
pub fn read(mut table: Fields<'_, '_>, p: &mut Problems) -> RightAnswer {
    let status = table
        .whole("status", 200..=599, p)
        .map_or(200, |n| n as u16);
    let content_type = table.text("content_type", p).map(Spanned::into_inner);
    let body = table.text("body", p);
    let checks = read_checks(&mut table, p);
    table.finish(&[], p);
    RightAnswer {
        status,
        content_type,
        body,
        checks,
    }
}

/// Reads the keys that are about the body and the time, but that of the exact body.
pub fn read_checks(table: &mut Fields<'_, '_>, p: &mut Problems) -> AnswerChecks {
    let mut checks = AnswerChecks {
        size: table.whole("size", SIZE, p).map(|bytes| (bytes, bytes)),
        within_ns: table.duration("time", TIME, p).map(|length| length.0),
        ..AnswerChecks::default()
    };
    let all = |of: Vec<Spanned<String>>| of.into_iter().map(Spanned::into_inner).collect();
    let contains = table.texts("contains", p).unwrap_or_default();
    for text in contains.iter().filter(|text| text.get_ref().is_empty()) {
        p.note(Diagnosis::new(text.span(), "an empty text is in any body"));
    }
    checks.contains = all(contains);
    let regex = table.texts("regex", p).unwrap_or_default();
    compile(&regex, p, |regex| AnswerChecks {
        regex: vec![regex],
        ..AnswerChecks::default()
    });
    checks.regex = all(regex);
    let json = table.texts("json", p).unwrap_or_default();
    compile(&json, p, |json| AnswerChecks {
        json: vec![json],
        ..AnswerChecks::default()
    });
    checks.json = all(json);
    let sha256 = table.text("sha256", p);
    compile(sha256.as_slice(), p, |sha256| AnswerChecks {
        sha256: Some(sha256),
        ..AnswerChecks::default()
    });
    checks.sha256 = sha256.map(Spanned::into_inner);
    checks
}

/// Notes which of these texts are no checks.
fn compile(texts: &[Spanned<String>], p: &mut Problems, of: impl Fn(String) -> AnswerChecks) {
    for text in texts {
        if let Err(why) = Checks::new(&of(text.get_ref().clone())) {
            p.note(Diagnosis::new(text.span(), why));
        }
    }
}

/// An expected random number must have been sent.
pub fn check_random(
    request: &RequestTemplate,
    has_source: bool,
    body: Option<&Spanned<String>>,
    p: &mut Problems,
) {
    let Some(body) = body.filter(|body| body.get_ref().contains("{random}")) else {
        return;
    };
    if has_source {
        let message = "the body that is expected has no `{random}` where there are several requests, or other fields";
        let help = "leave it out, or say what else is right of the answer: contains, regex, json";
        p.note(Diagnosis::new(body.span(), message).help(help));
        return;
    }
    if !request.path.contains("{random}") && !request.body.contains("{random}") {
        let message = "the answer is to hold `{random}`, and the request does not send it";
        p.note(Diagnosis::new(body.span(), message));
    }
}
