//! Sentences and lists that all kinds of work share.

use prony_base::counted;
use prony_findings::Code;
use prony_stats::BLOCKS_INTERVAL_MIN;
use serde::Serialize;

use crate::Run;
use crate::figures::{CellFigures, Figure};
use crate::numbers;
use crate::ratio::RatioFigure;

/// One point of the short answer.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// What it is about.
    pub head: String,
    /// What is to be said.
    pub text: String,
}

/// Names in a sentence before it says how many more there are.
const NAMES_MAX: usize = 20;

/// Figures that are all named in a sentence; of more, the outermost and the baseline's.
pub const RANKED_MAX: usize = 5;

/// One of several whose figures are named together.
pub struct Ranked {
    /// What they are sorted by, the highest first.
    pub figure: f64,
    /// Its name and its figure as they are shown.
    pub shown: String,
    /// Whether the others are compared with it.
    pub is_baseline: bool,
}

/// `a 9, b 7 and c 5 requests/s`; of more than [`RANKED_MAX`] the three highest, the baseline and the lowest: the others
/// stand in a table, in which they are found faster than in a sentence. `None`: of none.
pub fn ranked(mut all: Vec<Ranked>, unit: &str) -> Option<String> {
    all.sort_by(|a, b| b.figure.total_cmp(&a.figure));
    let shown = |of: &[Ranked]| of.iter().map(|r| r.shown.clone()).collect::<Vec<_>>();
    if all.len() <= RANKED_MAX {
        return (!all.is_empty()).then(|| format!("{}{unit}", listed(&shown(&all))));
    }
    let (highest, rest) = all.split_at(3);
    let (lowest, between) = rest.split_last()?;
    let mut said = format!(
        "the highest of {} are {}{unit}",
        all.len(),
        listed(&shown(highest))
    );
    if let Some(baseline) = between.iter().find(|r| r.is_baseline) {
        said.push_str(&format!("; the baseline, {}", baseline.shown));
    }
    said.push_str(&format!("; the lowest, {}", lowest.shown));
    Some(said)
}

/// `a, b and c`, or `a, b and 7 more`.
pub fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        _ if names.len() > NAMES_MAX => {
            let shown = names[..NAMES_MAX].join(", ");
            format!("{shown} and {} more", names.len() - NAMES_MAX)
        }
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// What may be said of figures of so many blocks.
pub fn what_follows(run: &Run, blocks: usize) -> String {
    if blocks >= BLOCKS_INTERVAL_MIN {
        return "what is said to differ does so with 95 % confidence, all of a workload's rates taken together, and all other figures."
            .to_owned();
    }
    if run.plan.quick && run.plan.visits.is_some() {
        return "a quick look. Rates are ranked where they differ by more than their intervals, in which restarts are taken to differ as \
                those of other servers did (6 %); all else is a first look."
            .to_owned();
    }
    let quick = if run.plan.quick { " (a quick run)" } else { "" };
    format!(
        "one look{quick}, which shows orders of magnitude and faults. No comparison is claimed and nobody is ranked: \
         that takes {BLOCKS_INTERVAL_MIN} blocks or more."
    )
}

/// How many of so many cells were measured, how (of the most blocks that one has), and what follows from it.
pub fn claim(
    run: &Run,
    cells: usize,
    measured: &[&CellFigures],
    how: impl Fn(usize) -> String,
) -> String {
    let blocks = measured.iter().map(|c| c.trials.measured.len());
    let blocks = blocks.max().unwrap_or(0);
    format!(
        "{} of {} {} measured, {}: {}",
        measured.len(),
        counted(cells, "cell"),
        if cells == 1 { "was" } else { "were" },
        how(blocks),
        what_follows(run, blocks)
    )
}

/// The medians of a figure by name, the highest first; `at least` before one of a cell with the finding `bound`: what was
/// the limit was not its subject. `named` gives a name, and whether the others are compared with it.
pub fn medians<'a>(
    cells: impl IntoIterator<Item = &'a CellFigures>,
    of: impl Fn(&CellFigures) -> Option<Figure>,
    named: impl Fn(&CellFigures) -> (String, bool),
    (bound, show, unit): (Code, fn(f64) -> String, &str),
) -> Option<String> {
    let each = cells.into_iter().filter_map(|cell| {
        let figure = of(cell)?.median;
        let (name, is_baseline) = named(cell);
        let least = match cell.findings.contains(&bound) {
            true => "at least ",
            false => "",
        };
        Some(Ranked {
            figure,
            shown: format!("{name} {least}{}", show(figure)),
            is_baseline,
        })
    });
    ranked(each.collect(), unit)
}

/// What is said of the ratios of one conclusion: that, the words before them all, and those of each.
pub type Group<'a, T> = (&'a str, &'a str, &'a dyn Fn(&T) -> String);

/// `faster for a and b; slower for c`, a part for each group that has some.
pub fn by_conclusion<T>(
    all: &[T],
    ratio: impl Fn(&T) -> &RatioFigure,
    groups: &[Group<'_, T>],
) -> Vec<String> {
    let part = |(conclusion, words, shown): &Group<'_, T>| {
        let own = all.iter().filter(|of| ratio(of).conclusion == *conclusion);
        let own: Vec<String> = own.map(shown).collect();
        (!own.is_empty()).then(|| format!("{words}{}", listed(&own)))
    };
    groups.iter().filter_map(part).collect()
}

/// What a ratio of rates costs or brings, in per cent of its baseline and with its ends in the same unit: `costs 41 %
/// (38–44)`, `brings 28 % more (4.2–58)`, `brings 3.10 × (2.92–3.29)`.
pub fn costs_or_brings(of: &RatioFigure) -> String {
    let at_least = match of.bound {
        "" => "",
        _ => "at least ",
    };
    let ends = |low: f64, high: f64, show: fn(f64) -> String| match of.blocks > 1 {
        true => format!(" ({}–{})", show(low), show(high)),
        false => String::new(),
    };
    match of.ratio {
        r if r >= 2.0 => format!(
            "brings {at_least}{} ×{}",
            numbers::ratio(r),
            ends(of.low, of.high, numbers::ratio)
        ),
        r if r >= 1.0 => format!(
            "brings {at_least}{} % more{}",
            percents(r),
            ends(of.low, of.high, percents)
        ),
        r => format!(
            "costs {at_least}{} %{}",
            percents(r),
            ends(of.high, of.low, percents)
        ),
    }
}

/// How far a ratio is from 1, in per cent: of 1.042 and of 0.958, `4.2`.
fn percents(ratio: f64) -> String {
    let change = numbers::change(ratio);
    change.trim_start_matches(['+', '−']).to_owned()
}
