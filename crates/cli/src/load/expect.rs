//! The checks of answers by `prony load`, and the failed answers that it writes to files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use prony_base::Nanos;
use prony_base::typed::{duration, size};
use prony_load::FailedAnswer;
use prony_record::AnswerChecks;

use crate::cause::CannotWrite;

/// Failed answers that --keep-failed keeps.
const KEPT_MAX: u32 = 10;

/// Words about the expected answer.
#[derive(Debug, Args)]
#[command(next_help_heading = "Expected answers; another one has failed")]
pub struct ExpectWords {
    /// Status codes that are expected, such as 200, 2xx or 200,404 [default: 2xx and 3xx]; another one is counted by
    /// itself, beside the answers
    #[arg(long, value_name = "STATUS", value_parser = statuses)]
    pub expect_status: Option<Statuses>,
    /// A header that the answer has, as `Name` or `Name: value`; may be repeated
    #[arg(long, value_name = "HEADER")]
    pub expect_header: Vec<String>,
    /// The exact body
    #[arg(long, value_name = "TEXT")]
    pub expect_body: Option<String>,
    /// A text in the body; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub expect_contains: Vec<String>,
    /// A regular expression that matches in the body, of 8 MiB at most; may be repeated
    #[arg(long, value_name = "REGEX")]
    pub expect_regex: Vec<String>,
    /// A value in the body, which is JSON of 8 MiB at most: '$.id == 5', '$.items[0].name', '$.n > 3'; may be repeated
    #[arg(long, value_name = "CHECK")]
    pub expect_json: Vec<String>,
    /// Size of the body: 512, 1KiB, 1KiB..2KiB, 1KiB..
    #[arg(long, value_name = "SIZE", value_parser = sizes)]
    pub expect_size: Option<Sizes>,
    /// SHA-256 of the body, in hexadecimal
    #[arg(long, value_name = "HASH")]
    pub expect_sha256: Option<String>,
    /// Longest latency: 50ms
    #[arg(long, value_name = "T", value_parser = longest)]
    pub expect_time: Option<Nanos>,
    /// Write the first 10 answers that failed a check of headers or body to this folder, a file each
    #[arg(long, value_name = "DIR", conflicts_with = "find_max")]
    pub keep_failed: Option<PathBuf>,
}

/// Status codes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Statuses(pub Vec<u16>);

/// Bytes, from and to, both included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sizes(pub u64, pub u64);

fn statuses(text: &str) -> Result<Statuses, String> {
    let mut all = Vec::new();
    for one in text.split(',').map(str::trim) {
        let class = one
            .strip_suffix("xx")
            .and_then(|class| class.parse::<u16>().ok());
        match (class, one.parse::<u16>()) {
            (Some(class @ 1..=5), _) => all.extend(class * 100..(class + 1) * 100),
            (None, Ok(status @ 100..=999)) => all.push(status),
            _ => return Err(format!("`{one}` is no status such as 200 or 2xx")),
        }
    }
    Ok(Statuses(all))
}

fn sizes(text: &str) -> Result<Sizes, String> {
    let of = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().map_err(|_| format!("`{text}` is no size")),
        false => size::parse(text),
    };
    let sizes = match text.split_once("..") {
        None => Sizes(of(text)?, of(text)?),
        Some((least, "")) => Sizes(of(least)?, u64::MAX),
        Some(("", most)) => Sizes(0, of(most)?),
        Some((least, most)) => Sizes(of(least)?, of(most)?),
    };
    match sizes.0 <= sizes.1 {
        true => Ok(sizes),
        false => Err(format!("`{text}`: the first is the smaller one")),
    }
}

/// `50ms`, or `< 50ms` as one may write it.
fn longest(text: &str) -> Result<Nanos, String> {
    let text = text.trim();
    let text = text
        .strip_prefix("<=")
        .or(text.strip_prefix('<'))
        .unwrap_or(text);
    duration::parse_positive(text.trim())
}

/// The checks that the words say; `None`: none, as of a scenario, whose steps have their own. `may_fail`: other words do something with
/// answers that may fail.
pub fn checks(
    words: &ExpectWords,
    is_scenario: bool,
    may_fail: bool,
) -> anyhow::Result<Option<AnswerChecks>> {
    if is_scenario {
        return Ok(None);
    }
    let mut checks = AnswerChecks {
        contains: words.expect_contains.clone(),
        regex: words.expect_regex.clone(),
        json: words.expect_json.clone(),
        size: words.expect_size.map(|Sizes(least, most)| (least, most)),
        sha256: words.expect_sha256.clone(),
        within_ns: words.expect_time.map(|length| length.0),
        ..AnswerChecks::default()
    };
    if let Some(empty) = checks.contains.iter().find(|text| text.is_empty()) {
        bail!("--expect-contains `{empty}` is in any body");
    }
    for text in &words.expect_header {
        checks.headers.push(match text.split_once(':') {
            None => (text.trim().to_owned(), None),
            Some((name, value)) => (name.trim().to_owned(), Some(value.trim().to_owned())),
        });
    }
    let is_any = checks != AnswerChecks::default();
    if words.keep_failed.is_some() {
        if !is_any && !may_fail {
            bail!(
                "--keep-failed keeps answers that fail a check: give one, such as --expect-contains"
            );
        }
        checks.keep_max = kept_max(words)?;
    }
    Ok((is_any || checks.keep_max > 0).then_some(checks))
}

/// How many failed answers are kept. Their folder is made.
pub fn kept_max(words: &ExpectWords) -> anyhow::Result<u32> {
    let Some(folder) = &words.keep_failed else {
        return Ok(0);
    };
    fs::create_dir_all(folder).with_context(CannotWrite::at(folder))?;
    Ok(KEPT_MAX)
}

/// Writes the answers that failed: what failed on the first lines, then the body.
pub fn write(folder: &Path, answers: &[FailedAnswer]) -> anyhow::Result<()> {
    for (number, answer) in (1..).zip(answers) {
        let FailedAnswer {
            check,
            status,
            body_bytes,
            body,
        } = answer;
        let cut = match body.len() as u64 == *body_bytes {
            true => String::new(),
            false => format!(", the first {} here", body.len()),
        };
        let head = format!("failed: {check}\nstatus: {status}\nbody: {body_bytes} bytes{cut}\n\n");
        let file = folder.join(format!("{number}.txt"));
        let text = [head.as_bytes(), body].concat();
        fs::write(&file, text).with_context(CannotWrite::at(&file))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_sizes_are_read_as_they_are_written() {
        assert_eq!(statuses("200, 404").map(|of| of.0), Ok(vec![200, 404]));
        assert_eq!(statuses("2xx").map(|of| of.0.len()), Ok(100));
        for wrong in ["", "0", "6xx", "xx", "2x", "1000"] {
            assert!(statuses(wrong).is_err(), "{wrong}");
        }
        assert_eq!(sizes("5"), Ok(Sizes(5, 5)));
        assert_eq!(sizes("1KiB..2KiB"), Ok(Sizes(1_024, 2_048)));
        assert_eq!(sizes("..9"), Ok(Sizes(0, 9)));
        assert_eq!(sizes("9.."), Ok(Sizes(9, u64::MAX)));
        for wrong in ["", "x", "2..1", ".."] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(longest("< 50ms"), longest("50ms"));
        assert!(longest("<").is_err());
    }
}
