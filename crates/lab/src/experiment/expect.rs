//! `expect` of a workload: what is right of an answer.

use prony_base::Nanos;
use prony_load::Checks;
use prony_record::AnswerChecks;
use toml::Spanned;

use super::fields::Fields;
use super::keys::texts;

/// Reads the keys that are about the body and the time, but that of the exact body.
pub fn read_checks(table: &Fields<'_>) -> AnswerChecks {
    let contains: Vec<Spanned<String>> = table.value("contains");
    for text in contains.iter().filter(|text| text.get_ref().is_empty()) {
        let message = "an empty text is in any body";
        table.problems.note(text.span(), message);
    }
    let sha256: Option<Spanned<String>> = table.get("sha256");
    let of_sha256 = |checks: &mut AnswerChecks, text| checks.sha256 = Some(text);
    AnswerChecks {
        size: table.get("size").map(|bytes: u64| (bytes, bytes)),
        within_ns: table.get("time").map(|length: Nanos| length.0),
        contains: texts(contains),
        regex: compiled(table, table.value("regex"), |checks, text| {
            checks.regex = vec![text];
        }),
        json: compiled(table, table.value("json"), |checks, text| {
            checks.json = vec![text];
        }),
        sha256: compiled(table, sha256.into_iter().collect(), of_sha256).pop(),
        ..AnswerChecks::default()
    }
}

/// The texts; notes which of them are no checks.
fn compiled(
    table: &Fields<'_>,
    texts_read: Vec<Spanned<String>>,
    put: impl Fn(&mut AnswerChecks, String),
) -> Vec<String> {
    for text in &texts_read {
        let mut checks = AnswerChecks::default();
        put(&mut checks, text.get_ref().clone());
        if let Err(why) = Checks::new(&checks) {
            table.problems.note(text.span(), why);
        }
    }
    texts(texts_read)
}
