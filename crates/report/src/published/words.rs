//! Published claims as a section: a sentence that counts them, a table of those that the run could decide, one of absolute
//! figures beside what is measured here, and one of the others.

use prony_record::{CellMetric, Dimension, Stated};

use super::figure::{Absence, Answer};
use super::{ClaimOutcome, Judged};
use crate::numbers::{self, NOTHING};
use crate::part::{Part, captioned, column, detail};
use crate::table::{Column, Entry, Row, Table};

const HOW: &str = "What published documents state, beside what the same comes out as here. original/… is the original itself; any other is a tool as \
     it is, or a program that stands for what was measured. A claim holds where the whole interval lies where it says. It is contradicted where \
     none of the interval does: on this machine, which says nothing of the document's own. An absolute figure is one of its machine and is not \
     compared. The intervals of the ratios hold together at 95 %; those of single figures are each by itself.";

/// What stands above the table of absolute figures.
const ABSOLUTE: &str =
    "Absolute figures, which are those of their machine and are not compared: as stated, and here";

/// Columns before the outcome.
const FIGURES: usize = 4;

/// The section.
pub fn part(judged: &[Judged]) -> Option<Part> {
    if judged.is_empty() {
        return None;
    }
    let columns = vec![
        column("claim", "where", false),
        column("stated", "", false),
        column("the original here", "interval or range", false),
        column("ours here", "interval or range", false),
        column("outcome", "", false),
        column("because", "", false),
    ];
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
    let table = |caption: &str, columns: Vec<Column>, of: Vec<(usize, &Judged)>| {
        // Where an outcome is the same for all, nothing is said of it.
        let row = |(at, claim)| {
            let mut row = row(at, claim);
            row.entries.truncate(columns.len());
            row
        };
        let rows: Vec<Row> = of.into_iter().map(row).collect();
        (!rows.is_empty()).then(|| captioned(caption, Table { columns, rows }))
    };
    let details = columns.iter().cloned().map(detail).collect();
    let figures = columns[..FIGURES].iter().cloned().map(detail).collect();
    let tables = [
        table("", columns, decidable),
        table(ABSOLUTE, figures, absolute),
        table("Claims that this run decides nothing about", details, rest),
    ];
    Some(Part {
        id: "published".to_owned(),
        title: "What was published, and what came out".to_owned(),
        before: vec![HOW.to_owned(), counts(judged)],
        tables: tables.into_iter().flatten().collect(),
        ..Part::default()
    })
}

/// `Of 31 claims: 12 held, 3 contradicted, …`
fn counts(judged: &[Judged]) -> String {
    let of = |outcome: &ClaimOutcome| {
        let count = judged.iter().filter(|claim| claim.outcome == *outcome);
        let count = count.count();
        (count > 0).then(|| format!("{count} {}", outcome.word()))
    };
    let words: Vec<String> = ClaimOutcome::ALL.iter().filter_map(of).collect();
    let claims = prony_base::counted(judged.len(), "claim");
    format!("Of {claims}: {}.", words.join(", "))
}

fn row(at: usize, claim: &Judged) -> Row {
    let metric = claim.original.as_ref().or(claim.ours.as_ref());
    let entry = |side: &str, answer: Option<&Answer>| match answer {
        Some(answer) => shown(&format!("/published/{at}/{side}/value"), answer),
        None => Entry::text(NOTHING),
    };
    let entries = vec![
        Entry {
            below: claim.source.clone(),
            ..Entry::text(&*claim.text)
        },
        Entry::text(stated(claim.stated, metric)),
        entry("original", claim.original.as_ref()),
        entry("ours", claim.ours.as_ref()),
        Entry::text(claim.outcome.word()),
        Entry::text(&*claim.because),
    ];
    Row {
        entries,
        ..Row::default()
    }
}

/// What a claim states, in words.
fn stated(stated: Stated, answer: Option<&Answer>) -> String {
    let metric = answer.map(|answer| format!("{} ", metric(answer.metric)));
    let metric = metric.unwrap_or_default();
    let is_ratio = answer.is_some_and(|answer| answer.over.is_some());
    let times = if is_ratio { " times" } else { "" };
    let shown = answer.map(Shown::of);
    let of = |dimension| shown.unwrap_or(Shown::In(dimension));
    match stated {
        Stated::Words => NOTHING.to_owned(),
        Stated::Absolute { value, dimension } => {
            format!("{metric}{}", figure(of(dimension), value))
        }
        Stated::Ratio { value, .. } => format!("{metric}{} times", numbers::ratio(value)),
        Stated::Higher => format!("{metric}higher"),
        Stated::Lower => format!("{metric}lower"),
        Stated::Range {
            from,
            to,
            dimension,
        } => {
            let figure = |value| figure(of(dimension), value);
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
fn shown(path: &str, answer: &Answer) -> Entry {
    match &answer.absent {
        Some(Absence::NotRun(_)) => return Entry::text("not run"),
        Some(Absence::Unusable(_)) => return Entry::text(NOTHING),
        None => {}
    }
    let how = Shown::of(answer);
    let bound = match answer.bound {
        "at-least" => "at least ",
        "at-most" => "at most ",
        _ => "",
    };
    let whose = whose(answer);
    let show = |value: f64| format!("{whose}: {bound}{}", figure(how, value));
    let mut entry = Entry::figure(path.to_owned(), answer.value, show);
    if let (Some(low), Some(high)) = (answer.low, answer.high)
        && answer.spread != "count"
        && answer.blocks > 1
    {
        entry.below = ends(how, low, high);
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

/// How a figure is written.
#[derive(Clone, Copy)]
enum Shown {
    In(Dimension),
    Times,
    Percent,
}

impl Shown {
    fn of(answer: &Answer) -> Shown {
        match (answer.over.is_some(), answer.metric) {
            (true, _) => Shown::Times,
            (false, CellMetric::Deviation) => Shown::Percent,
            (false, metric) => Shown::In(metric.dimension()),
        }
    }
}

fn figure(how: Shown, value: f64) -> String {
    match how {
        Shown::Times => numbers::ratio(value),
        Shown::Percent => numbers::percent(value),
        Shown::In(Dimension::Time) => numbers::time(value),
        Shown::In(Dimension::Bytes) => numbers::bytes(value),
        Shown::In(Dimension::Rate) => format!("{}/s", numbers::rate(value)),
        Shown::In(Dimension::Throughput) => format!("{}/s", numbers::bytes(value)),
        Shown::In(Dimension::Number) if value.fract() == 0.0 && value < 1e15 => {
            numbers::count(value as u64)
        }
        Shown::In(Dimension::Number) => numbers::three(value),
    }
}

fn ends(how: Shown, low: f64, high: f64) -> String {
    match how {
        Shown::In(Dimension::Time) => numbers::times(low, high),
        Shown::In(Dimension::Bytes) => numbers::sizes(low, high),
        Shown::In(Dimension::Rate) => format!("{}/s", numbers::rates(low, high)),
        Shown::In(Dimension::Throughput) => format!("{}/s", numbers::sizes(low, high)),
        how => format!("{}–{}", figure(how, low), figure(how, high)),
    }
}

fn metric(metric: CellMetric) -> &'static str {
    match metric {
        CellMetric::Rate => "rate",
        CellMetric::P50 => "p50",
        CellMetric::P99 => "p99",
        CellMetric::MeanLatency => "mean latency",
        CellMetric::First => "first request",
        CellMetric::AfterRest => "request after a rest",
        CellMetric::Cpu => "CPU time",
        CellMetric::Elapsed => "time",
        CellMetric::Wall => "time from start to end",
        CellMetric::Memory => "peak memory",
        CellMetric::Throughput => "throughput",
        CellMetric::Errors => "errors",
        CellMetric::InFlight => "requests in flight",
        CellMetric::Deviation => "deviation over seconds",
        CellMetric::Missed => "missed deadlines",
        CellMetric::Longest => "longest run",
        CellMetric::Shortest => "shortest run",
        CellMetric::MeanRun => "mean run",
        CellMetric::Exponent => "exponent",
        CellMetric::Socket => "socket()",
        CellMetric::Setup => "set-up",
        CellMetric::Download => "time of a download",
        CellMetric::DownloadRate => "rate of a download",
        CellMetric::Pss => "memory (PSS)",
    }
}
