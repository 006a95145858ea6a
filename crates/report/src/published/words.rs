//! Published claims as a section: a sentence that counts them, a table of those that the run could decide, one of absolute
//! figures beside what is measured here, and one of the others.

use crate::ratio::OpenSide;
use prony_record::{CellMetric, Dimension, Stated};

use super::figure::{Absence, Answer};
use super::{ClaimOutcome, Judged};
use crate::grid::Grid;
use crate::numbers::{self, FigureUnit, NOTHING};
use crate::part::{Captioned, Part, captioned, column};
use crate::table::{Column, Entry};
use crate::words::paragraph;

/// The section.
pub fn part(judged: &[Judged]) -> Option<Part> {
    if judged.is_empty() {
        return None;
    }
    // What this run could decide, in the document; absolute figures beside what is measured here and the rest, in the appendix.
    // Each by outcome, then in the order of the experiment.
    let mut order: Vec<(usize, &Judged)> = judged.iter().enumerate().collect();
    order.sort_by_key(|(_, claim)| claim.outcome);
    let (decidable, rest): (Vec<_>, Vec<_>) = order
        .into_iter()
        .partition(|(_, claim)| claim.outcome <= ClaimOutcome::Undecided);
    let (absolute, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(|(_, claim)| {
        matches!(claim.stated, Stated::Absolute { .. }) && claim.has_figure()
    });
    let tables = [
        table("", decidable, true, false),
        // Where an outcome is the same for all, nothing is said of it.
        table(&paragraph("published: absolute"), absolute, false, true),
        table(&paragraph("published: rest"), rest, true, true),
    ];
    Some(Part {
        id: "published".to_owned(),
        title: "What was published, and what came out".to_owned(),
        before: vec![paragraph("published"), counts(judged)],
        tables: tables.into_iter().flatten().collect(),
        ..Part::default()
    })
}

/// `Of 31 claims: 12 held, 3 contradicted, …`
fn counts(judged: &[Judged]) -> String {
    let of = |(outcome, word): &(ClaimOutcome, &str)| {
        let count = judged.iter().filter(|claim| claim.outcome == *outcome);
        let count = count.count();
        (count > 0).then(|| format!("{count} {word}"))
    };
    let words: Vec<String> = ClaimOutcome::WORDS.iter().filter_map(of).collect();
    let claims = prony_base::counted(judged.len(), "claim");
    format!("Of {claims}: {}.", words.join(", "))
}

/// A claim with its place in `summary.json`.
type Placed<'j> = (usize, &'j Judged);

/// A table of claims, of which the outcome is told or not; `None` where there are none.
fn table(
    caption: &str,
    claims: Vec<Placed<'_>>,
    has_outcome: bool,
    details: bool,
) -> Option<Captioned> {
    let head = |title: &str, below: &'static str| Column {
        details,
        ..column(title, below, false)
    };
    let mut grid = Grid::new()
        .head(head("claim", "where"), |(_, of): Placed<'_>| Entry {
            below: of.source.clone(),
            ..Entry::text(&*of.text)
        })
        .head(head("stated", ""), |(_, of)| Entry::text(stated(of)))
        .head(
            head("the original here", "interval or range"),
            |(at, of)| {
                shown(
                    &format!("/published/{at}/original/value"),
                    of.original.as_ref(),
                )
            },
        )
        .head(head("ours here", "interval or range"), |(at, of)| {
            shown(&format!("/published/{at}/ours/value"), of.ours.as_ref())
        });
    if has_outcome {
        grid = grid
            .head(head("outcome", ""), |(_, of)| {
                Entry::text(of.outcome.word())
            })
            .head(head("because", ""), |(_, of)| Entry::text(&*of.because));
    }
    (!claims.is_empty()).then(|| captioned(caption, grid.rows(claims)))
}

/// What a claim states, in words.
fn stated(claim: &Judged) -> String {
    let answer = claim.original.as_ref().or(claim.ours.as_ref());
    let metric = answer.map(|answer| format!("{} ", metric(answer.metric)));
    let metric = metric.unwrap_or_default();
    let is_ratio = answer.is_some_and(|answer| answer.over.is_some());
    let times = if is_ratio { " times" } else { "" };
    let unit = |dimension| answer.map_or_else(|| unit_of(dimension), unit);
    match claim.stated {
        Stated::Words => NOTHING.to_owned(),
        Stated::Absolute { value, dimension } => {
            format!("{metric}{}", unit(dimension).text(value))
        }
        Stated::Ratio { value, .. } => format!("{metric}{} times", numbers::ratio(value)),
        Stated::Higher => format!("{metric}higher"),
        Stated::Lower => format!("{metric}lower"),
        Stated::Range {
            from,
            to,
            dimension,
        } => {
            let figure = |value| unit(dimension).text(value);
            let ends = match (from, to) {
                (Some(from), Some(to)) if from == to => figure(from),
                (Some(from), Some(to)) => format!("from {} to {}", figure(from), figure(to)),
                (Some(from), None) => format!("at least {}", figure(from)),
                (None, Some(to)) => format!("at most {}", figure(to)),
                (None, None) => NOTHING.to_owned(),
            };
            format!("{metric}{ends}{times}")
        }
    }
}

/// A figure with its interval or range.
fn shown(path: &str, answer: Option<&Answer>) -> Entry {
    let Some(answer) = answer else {
        return Entry::text(NOTHING);
    };
    match &answer.absent {
        Some(Absence::NotRun(_)) => return Entry::text("not run"),
        Some(Absence::Unusable(_)) => return Entry::text(NOTHING),
        None => {}
    }
    let unit = unit(answer);
    let bound = OpenSide::words(answer.bound);
    let whose = whose(answer);
    let show = |value: f64| format!("{whose}: {bound}{}", unit.text(value));
    let mut entry = Entry::figure(path.to_owned(), answer.value, show);
    if let Some((low, high)) = answer.shown_ends() {
        entry.below = unit.ends(low, high);
    }
    if let Some(part) = answer.handled {
        entry.below = format!(
            "{}, of a run that handled {}",
            entry.below,
            numbers::part_of(part)
        );
    }
    entry
}

/// The subject, or both where a ratio has two.
fn whose(answer: &Answer) -> String {
    match &answer.over_subject {
        Some(other) if *other != answer.subject => format!("{} ÷ {other}", answer.subject),
        _ => answer.subject.clone(),
    }
}

/// How a figure of this dimension is written.
fn unit_of(dimension: Dimension) -> FigureUnit {
    match dimension {
        Dimension::Time => FigureUnit::Time,
        Dimension::Bytes => FigureUnit::Bytes,
        Dimension::Rate => FigureUnit::PerSecond,
        Dimension::Throughput => FigureUnit::BytesPerSecond,
        Dimension::Number => FigureUnit::Number,
    }
}

fn unit(answer: &Answer) -> FigureUnit {
    match (answer.over.is_some(), answer.metric) {
        (true, _) => FigureUnit::Ratio,
        (false, CellMetric::Deviation) => FigureUnit::Percent,
        (false, metric) => unit_of(metric.dimension()),
    }
}

fn metric(metric: CellMetric) -> String {
    let words = match metric {
        CellMetric::First => "first request",
        CellMetric::AfterRest => "request after a rest",
        CellMetric::Cpu => "CPU time",
        CellMetric::Elapsed => "time",
        CellMetric::Wall => "time from start to end",
        CellMetric::Memory => "peak memory",
        CellMetric::VirtualMemory => "peak virtual memory",
        CellMetric::InFlight => "requests in flight",
        CellMetric::Missed => "missed deadlines",
        CellMetric::Longest => "longest run",
        CellMetric::Shortest => "shortest run",
        CellMetric::Download => "time of a download",
        CellMetric::Pss => "memory (PSS)",
        other => other.name(),
    };
    words.replace('-', " ")
}
