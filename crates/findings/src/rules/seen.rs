//! What rules see in trials, and the findings that are made of it.

use prony_record::Trial;

use crate::code::Code;
use crate::finding::{Evidence, Finding, Severity};
use crate::records::Case;

/// A note on the whole run.
pub(super) fn of_run(
    code: Code,
    text: (&'static str, &'static str),
    evidence: Vec<Evidence>,
) -> Finding {
    Finding {
        code,
        severity: Severity::Note,
        cell: String::new(),
        subject: String::new(),
        blocks: Vec::new(),
        evidence,
        meaning: text.0,
        remedy: text.1,
    }
}

/// What a rule saw in one trial.
pub(super) struct Seen {
    pub(super) severity: Severity,
    /// How bad within the severity; the trial with the highest gives the evidence.
    pub(super) badness: f64,
    pub(super) evidence: Vec<Evidence>,
    pub(super) meaning: &'static str,
    pub(super) remedy: &'static str,
}

impl Seen {
    /// That the figures stand; [`Seen::severity`] says where they do not.
    pub(super) fn note(
        badness: f64,
        text: (&'static str, &'static str),
        evidence: Vec<Evidence>,
    ) -> Seen {
        Seen {
            severity: Severity::Note,
            badness,
            evidence,
            meaning: text.0,
            remedy: text.1,
        }
    }

    pub(super) fn severity(self, severity: Severity) -> Seen {
        Seen { severity, ..self }
    }
}

/// One finding from what was seen in some trials; none where nothing was.
pub(super) fn worst<'a>(
    case: &Case<'_>,
    code: Code,
    trials: impl Iterator<Item = &'a Trial>,
    look: impl Fn(&Trial) -> Option<Seen>,
) -> Vec<Finding> {
    let mut blocks = Vec::new();
    let mut worst: Option<Seen> = None;
    for trial in trials {
        let Some(seen) = look(trial) else { continue };
        blocks.push(trial.block);
        let worse = |than: &Seen| {
            (seen.severity, seen.badness.max(0.0)) > (than.severity, than.badness.max(0.0))
        };
        if worst.as_ref().is_none_or(worse) {
            worst = Some(seen);
        }
    }
    worst
        .map(|seen| finding(case, code, blocks, seen))
        .into_iter()
        .collect()
}

pub(super) fn finding(case: &Case<'_>, code: Code, blocks: Vec<u32>, seen: Seen) -> Finding {
    Finding {
        code,
        severity: seen.severity,
        cell: case.cell.id.clone(),
        subject: case.cell.subject.clone(),
        blocks,
        evidence: seen.evidence,
        meaning: seen.meaning,
        remedy: seen.remedy,
    }
}
