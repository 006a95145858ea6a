//! Claims of published documents: what was stated, what the original comes out as here, what ours does, and whether the
//! claim holds.
//!
//! A claim is a statement of a figure: that it lies in a range, that it is a ratio, that one is higher than another. It
//! is held against an interval ([`outcome()`]): it holds where the interval lies in the range stated, it is contradicted
//! where none of it does, and nothing is settled in between, by a quick run, or from too few values. The intervals of all
//! ratios of the section hold together. An absolute figure is one of its machine, which no other one settles.
//!
//! Not for: what is claimed of this run's own comparisons ([`crate::claims`]).

mod figure;
mod values;
mod words;

use std::collections::BTreeSet;

use prony_findings::Records;
use prony_record::{PublishedClaim, Stated};
use prony_stats::simultaneous;
use serde::Serialize;

use crate::Run;
use crate::figures::CellFigures;
use crate::programs::across::Across;
use figure::{Absence, Answer, AnswerSpread, Sources};
pub use words::part;

/// What came of a claim.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimOutcome {
    /// The whole interval lies where the claim says.
    Held,
    /// None of the interval does.
    Contradicted,
    /// Neither.
    Undecided,
    /// The claim is of another machine than this can be.
    NotComparable,
    /// What would answer it was not measured.
    NotRun,
    /// No cell of the experiment answers it.
    NotAnswerable,
}

impl ClaimOutcome {
    /// All of them as tables write them, in the order in which they are counted.
    const WORDS: [(ClaimOutcome, &str); 6] = [
        (ClaimOutcome::Held, "held"),
        (ClaimOutcome::Contradicted, "contradicted"),
        (ClaimOutcome::Undecided, "undecided"),
        (ClaimOutcome::NotComparable, "not comparable"),
        (ClaimOutcome::NotRun, "not run"),
        (ClaimOutcome::NotAnswerable, "not answerable"),
    ];

    /// As tables write it.
    fn word(self) -> &'static str {
        let own = ClaimOutcome::WORDS.iter().find(|(of, _)| *of == self);
        own.map_or("", |(_, word)| word)
    }
}

/// A claim, what answers it, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The claim.
    pub text: String,
    /// Document and place.
    pub source: String,
    /// What it states.
    pub stated: Stated,
    /// What the document measured, measured here.
    pub original: Option<Answer>,
    /// The same of ours.
    pub ours: Option<Answer>,
    /// What came of it: of the original where the claim names one, else of ours.
    pub outcome: ClaimOutcome,
    /// The reason.
    pub because: String,
}

impl Judged {
    /// Whether something that was measured here stands beside what is stated.
    pub fn has_figure(&self) -> bool {
        let mut both = [&self.original, &self.ours].into_iter().flatten();
        both.any(|answer| answer.absent.is_none())
    }
}

/// The claims of a run's plan, each with what came of it.
pub fn judged(
    run: &Run,
    records: &Records<'_>,
    cells: &[CellFigures],
    across: Option<&Across>,
) -> Vec<Judged> {
    let from = Sources {
        run,
        records,
        cells,
        across,
    };
    let answer = |asked: &Option<_>| asked.as_ref().map(|asked| Answer::of(&from, asked));
    let claims = run.plan.published.iter();
    let mut answers: Vec<[Option<Answer>; 2]> = claims
        .map(|claim| [answer(&claim.original), answer(&claim.ours)])
        .collect();
    let all = || answers.iter().flatten().flatten();
    let confidence = simultaneous(all().filter(|answer| answer.is_claim()).count());
    for answer in answers.iter_mut().flatten().flatten() {
        answer.at(confidence);
        answer.weigh(&from);
    }
    let each = run.plan.published.iter().zip(answers);
    let judge = |(claim, [original, ours]): (&PublishedClaim, [Option<Answer>; 2])| {
        let (outcome, because) = conclude(run, claim, original.as_ref(), ours.as_ref());
        Judged {
            text: claim.text.clone(),
            source: claim.source.clone(),
            stated: claim.stated,
            original,
            ours,
            outcome,
            because,
        }
    };
    each.map(judge).collect()
}

fn conclude(
    run: &Run,
    claim: &PublishedClaim,
    original: Option<&Answer>,
    ours: Option<&Answer>,
) -> (ClaimOutcome, String) {
    let cores = &run.plan.cores;
    let all = [&cores.subject, &cores.generator, &cores.lab];
    let cores: BTreeSet<u32> = all.into_iter().flatten().copied().collect();
    let cores = u32::try_from(cores.len()).unwrap_or(u32::MAX);
    let judged = |answer: &Answer| {
        if cores < claim.cores_min && answer.absent.is_none() {
            let needed = prony_base::counted(claim.cores_min as usize, "core");
            let reason = format!("it needs {needed}, and the run had {cores}");
            return (ClaimOutcome::NotComparable, reason);
        }
        outcome(claim.stated, answer)
    };
    let (word, mut because) = match (&*claim.why_not, original.or(ours)) {
        ("", Some(answer)) => judged(answer),
        ("", None) => (ClaimOutcome::NotAnswerable, "no cell is named".to_owned()),
        (why_not, _) => (ClaimOutcome::NotAnswerable, why_not.to_owned()),
    };
    if original.is_none() && ours.is_some() && claim.why_not.is_empty() {
        because = format!("of ours: {because}");
    }
    let is_second = original.is_some() || !claim.why_not.is_empty();
    if let Some(own) = ours.filter(|_| is_second) {
        let (own, _) = judged(own);
        if own <= ClaimOutcome::Undecided {
            because.push_str(&format!("; of ours: {}", own.word()));
        }
    }
    (word, because)
}

/// What a figure makes of a statement, and why.
pub fn outcome(stated: Stated, answer: &Answer) -> (ClaimOutcome, String) {
    match &answer.absent {
        Some(Absence::NotRun(reason)) => return (ClaimOutcome::NotRun, reason.clone()),
        Some(Absence::Unusable(reason)) => return (ClaimOutcome::Undecided, reason.clone()),
        None => {}
    }
    let (inside, outside) = match (stated, answer.ends()) {
        (Stated::Absolute { .. }, _) => {
            let reason = "an absolute figure of another machine".to_owned();
            return (ClaimOutcome::NotComparable, reason);
        }
        (Stated::Words, _) | (_, None) => {
            let reason = "nothing is stated that can be compared".to_owned();
            return (ClaimOutcome::Undecided, reason);
        }
        (Stated::Higher, Some((low, high))) => (low > 1.0, high < 1.0),
        (Stated::Lower, Some((low, high))) => (high < 1.0, low > 1.0),
        (Stated::Ratio { value, within }, Some(ends)) => {
            let from = value / (1.0 + within);
            placed(ends, Some(from), Some(value * (1.0 + within)))
        }
        (Stated::Range { from, to, .. }, Some(ends)) => placed(ends, from, to),
    };
    if !answer.unsettled.is_empty() {
        return (ClaimOutcome::Undecided, answer.unsettled.clone());
    }
    let what = match answer.spread {
        AnswerSpread::Count => "what was counted",
        _ => "the interval",
    };
    let (came_to, place) = match (inside, outside) {
        (true, _) => (ClaimOutcome::Held, "in it"),
        (_, true) => (ClaimOutcome::Contradicted, "outside of it"),
        _ => (ClaimOutcome::Undecided, "on both sides"),
    };
    (came_to, format!("{what} lies {place}"))
}

/// Whether an interval lies in a range, and whether it lies outside of it.
fn placed((low, high): (f64, f64), from: Option<f64>, to: Option<f64>) -> (bool, bool) {
    let inside = from.is_none_or(|from| low >= from) && to.is_none_or(|to| high <= to);
    let outside = from.is_some_and(|from| high < from) || to.is_some_and(|to| low > to);
    (inside, outside)
}

#[cfg(test)]
mod tests;
