//! What a finding is, and the verdict that follows.

use serde::Serialize;

use crate::code::Code;

/// A fact drawn from the trials of one cell, or of a whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Which.
    pub code: Code,
    /// What it means for the figures.
    pub severity: Severity,
    /// The cell's `id`; empty: it is about the whole run.
    pub cell: String,
    /// The subject's `id`; empty in the same case.
    pub subject: String,
    /// Blocks in which it was seen, rising.
    pub blocks: Vec<u32>,
    /// What was seen, in the worst of these blocks.
    pub evidence: Vec<Evidence>,
    /// What follows for the figures, in one or two sentences.
    pub meaning: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// What a finding means for the figures.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// A reader should know it; the figures stand.
    Note,
    /// The figures are bounds: the subject is at least this fast, and its latency at most this long.
    Bound,
    /// The figures cannot be used.
    Invalid,
}

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// What it is.
    pub what: String,
    /// What it came to.
    pub value: Value,
}

/// A value in evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Value {
    /// A number with its unit.
    Number {
        /// How many.
        value: f64,
        /// Of what.
        unit: Unit,
    },
    /// Words; they may come from the subject.
    Text {
        /// The words.
        text: String,
    },
    /// Lines of output of the subject.
    Lines {
        /// The lines.
        lines: Vec<String>,
    },
}

/// Units of evidence.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A number of things.
    Count,
    /// A part of a whole, or a ratio less 1: 0.05 is 5 %.
    Share,
    /// One figure over another.
    Ratio,
    /// Nanoseconds.
    Nanoseconds,
    /// Events a second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Cores' worth of CPU time.
    Cores,
}

impl Evidence {
    /// A number.
    pub fn number(what: impl Into<String>, value: f64, unit: Unit) -> Evidence {
        Evidence {
            what: what.into(),
            value: Value::Number { value, unit },
        }
    }

    /// A count.
    pub fn count(what: impl Into<String>, count: u64) -> Evidence {
        Evidence::number(what, count as f64, Unit::Count)
    }

    /// Words.
    pub fn text(what: impl Into<String>, text: impl Into<String>) -> Evidence {
        Evidence {
            what: what.into(),
            value: Value::Text { text: text.into() },
        }
    }
}

/// What findings come to: whether figures may be used, and as what.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The figures stand.
    #[default]
    Valid,
    /// They are bounds.
    Bound,
    /// They cannot be used.
    Invalid,
}

/// The verdict that follows from `findings`, of one cell or of a whole run.
pub fn verdict<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Verdict {
    let of = |finding: &Finding| match finding.severity {
        Severity::Note => Verdict::Valid,
        Severity::Bound => Verdict::Bound,
        Severity::Invalid => Verdict::Invalid,
    };
    findings.into_iter().map(of).max().unwrap_or_default()
}
