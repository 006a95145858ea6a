//! What a measurand came out as, and whether that can settle anything.

use prony_findings::{Records, Verdict};
use prony_record::{Cell, CellMetric, Measurand, Named, NotRun};
use prony_stats::{BLOCKS_INTERVAL_MIN, SpreadKind};
use serde::Serialize;

use super::values;
use crate::Run;
use crate::claims::copy_differs;
use crate::figure::{Figure, values};
use crate::figures::CellFigures;
use crate::metrics::Metric;
use crate::programs::across::Across;
use crate::ratio::{self, OpenSide, RatioFigure, Unclaimed};

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", content = "reason", rename_all = "kebab-case")]
pub enum Absence {
    /// The cell, or one of both, was not measured.
    NotRun(String),
    /// It was, and what came out cannot be used.
    Unusable(String),
}

/// What the ends of an answer are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerSpread {
    /// There is no figure.
    #[default]
    #[serde(rename = "")]
    Nothing,
    /// It is one figure over all blocks.
    Count,
    /// It is one of each block.
    #[serde(untagged)]
    Of(SpreadKind),
}

/// A metric of a cell, or its ratio to that of another one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// The subject.
    pub subject: String,
    /// The subject that it is divided by; `None`: it stands alone.
    pub over_subject: Option<String>,
    /// The cell.
    pub cell: String,
    /// The cell that it is divided by; `None`: it stands alone.
    pub over: Option<String>,
    /// What is measured.
    pub metric: CellMetric,
    /// Why there is no figure.
    pub absent: Option<Absence>,
    /// The figure.
    pub value: Option<f64>,
    /// Lower end of its range or interval.
    pub low: Option<f64>,
    /// Higher end.
    pub high: Option<f64>,
    /// What the ends are.
    pub spread: AnswerSpread,
    /// Blocks that it rests on.
    pub blocks: usize,
    /// What of all it handled, where that was not all.
    #[serde(skip)]
    pub(super) handled: Option<(u64, u64)>,
    /// How it is to be read where a cell is a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<OpenSide>,
    /// Why it settles nothing; empty: it may.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unsettled: String,
    /// The ratio whose interval is still to be given.
    #[serde(skip)]
    pub(super) ratio: Option<RatioFigure>,
}

/// All that answers are made from.
pub struct Sources<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its records by cell.
    pub records: &'a Records<'a>,
    /// The figures of its cells, settled.
    pub cells: &'a [CellFigures],
    /// Figures of several cells of programs.
    pub across: Option<&'a Across>,
}

impl Answer {
    /// What `asked` came out as. A ratio has an interval of its own until [`Answer::at`] gives it one that holds together
    /// with others.
    pub fn of(from: &Sources<'_>, asked: &Measurand) -> Answer {
        let mut answer = Answer {
            subject: asked.subject.clone(),
            over_subject: asked.over.as_deref().map(|over| over.subject.clone()),
            cell: asked.in_words(),
            over: asked.over.as_deref().map(Measurand::in_words),
            metric: asked.metric,
            ..Answer::default()
        };
        let taken = match asked.metric {
            CellMetric::Exponent => answer.take_exponent(from, asked),
            _ => answer.take(from, asked),
        };
        answer.absent = taken.err();
        answer
    }

    fn take(&mut self, from: &Sources<'_>, asked: &Measurand) -> Result<(), Absence> {
        let own = find(from, asked)?;
        self.cell.clone_from(&own.cell.id);
        let Some(over) = &asked.over else {
            return self.take_alone(from, own);
        };
        let base = find(from, over)?;
        self.over = Some(base.cell.id.clone());
        let values = |place: &Place<'_>, metric| {
            values::values(from.run, &from.records.case(place.cell), metric)
        };
        let paired = ratio::paired(
            &from.records.case(base.cell),
            &from.records.case(own.cell),
            values(&own, asked.metric),
            values(&base, over.metric),
        );
        self.ratio = paired.filter(|ratio| ratio.ratio.is_finite());
        self.show();
        if self.value.is_none() {
            let reason = "no block has both figures".to_owned();
            return Err(Absence::Unusable(reason));
        }
        self.bind([
            bound(&own, asked.metric),
            bound(&base, over.metric).map(|below| !below),
        ]);
        Ok(())
    }

    fn take_alone(&mut self, from: &Sources<'_>, own: Place<'_>) -> Result<(), Absence> {
        let case = from.records.case(own.cell);
        let found = if self.metric.is_of_blocks() {
            Figure::interval(values(values::values(from.run, &case, self.metric)))
        } else {
            values::of_all(&case, self.metric)
        };
        let Some(figure) = found else {
            return Err(Absence::Unusable("it has no such figure".to_owned()));
        };
        self.put(figure);
        if !self.metric.is_of_blocks() {
            self.spread = AnswerSpread::Count;
        }
        let program = own.figures.program.as_ref();
        self.handled = program.and_then(|of| Some((of.handled?, of.count)));
        self.bind([bound(&own, self.metric), None]);
        Ok(())
    }

    fn take_exponent(&mut self, from: &Sources<'_>, asked: &Measurand) -> Result<(), Absence> {
        let scaling = from.across.iter().flat_map(|across| &across.scaling);
        let mut found = scaling.filter(|of| {
            let same = (&of.subject, &of.workload) == (&asked.subject, &asked.workload);
            let mut settings = asked.settings.iter();
            same && settings.all(|(name, value)| of.settings.get(name) == Some(value))
        });
        let (Some(of), None) = (found.next(), found.next()) else {
            return Err(not_run(from.run, asked));
        };
        self.put(of.figure());
        Ok(())
    }

    /// Reads a figure as a bound where what it rests on is one: `true` is one from below.
    fn bind(&mut self, sides: [Option<bool>; 2]) {
        match (sides.contains(&Some(true)), sides.contains(&Some(false))) {
            (true, true) => self.unsettled = <&str>::from(Unclaimed::Bound).to_owned(),
            (true, false) => self.bound = Some(OpenSide::AtLeast),
            (false, true) => self.bound = Some(OpenSide::AtMost),
            (false, false) => {}
        }
    }

    /// Whether it is a ratio with an interval.
    pub fn is_claim(&self) -> bool {
        self.ratio.as_ref().is_some_and(RatioFigure::is_interval)
    }

    /// Gives a ratio the interval of this confidence.
    pub fn at(&mut self, confidence: f64) {
        if let Some(ratio) = &mut self.ratio {
            ratio.at(confidence);
        }
        self.show();
    }

    fn show(&mut self) {
        if let Some(of) = &self.ratio {
            self.put(of.figure());
        }
    }

    fn put(&mut self, of: Figure) {
        (self.value, self.low, self.high) = (Some(of.median), Some(of.low), Some(of.high));
        (self.spread, self.blocks) = (AnswerSpread::Of(of.spread), of.blocks);
    }

    /// Notes why nothing can be said of it, where the run does not allow it.
    pub fn weigh(&mut self, from: &Sources<'_>) {
        if self.absent.is_some() || !self.unsettled.is_empty() {
            return;
        }
        if from.run.plan.quick {
            self.unsettled = "a quick run settles nothing".to_owned();
        } else if self.blocks < BLOCKS_INTERVAL_MIN {
            let blocks = prony_base::counted(self.blocks, "block");
            self.unsettled = format!("{blocks}, and an interval needs {BLOCKS_INTERVAL_MIN}");
        } else if self.spread == AnswerSpread::Of(SpreadKind::Range) {
            self.unsettled =
                "the blocks lie in two groups, so that there is no interval".to_owned();
        } else if self.over.is_some()
            && copies(self.metric).is_some_and(|of| copy_differs(from.cells, of))
        {
            self.unsettled = <&str>::from(Unclaimed::Copy).to_owned();
        } else if self.ratio.as_ref().is_some_and(|of| of.is_disturbed) {
            self.unsettled = <&str>::from(Unclaimed::Disturbed).to_owned();
        }
    }

    /// The ends that are shown: of a count, or a single value, none.
    pub fn shown_ends(&self) -> Option<(f64, f64)> {
        let is_spread = self.spread != AnswerSpread::Count && self.blocks > 1;
        self.low.zip(self.high).filter(|_| is_spread)
    }

    /// The ends between which it lies, open where it is a bound.
    pub fn ends(&self) -> Option<(f64, f64)> {
        Some(OpenSide::ends(self.bound, self.low?, self.high?))
    }
}

/// A cell and its figures.
struct Place<'a> {
    cell: &'a Cell,
    figures: &'a CellFigures,
}

/// The cell that `asked` names, if it can be used.
fn find<'a>(from: &Sources<'a>, asked: &Measurand) -> Result<Place<'a>, Absence> {
    let plan = &from.run.plan;
    let cell = match asked.cell(&plan.cells, &plan.settings) {
        Named::Cell(cell) => cell,
        Named::Nothing => return Err(not_run(from.run, asked)),
        Named::Several(_) => {
            let reason = format!("the run has several cells `{}`", asked.in_words());
            return Err(Absence::Unusable(reason));
        }
    };
    let figures = from.cells.iter().find(|figures| figures.cell == cell.id);
    let Some(figures) = figures else {
        return Err(not_run(from.run, asked));
    };
    if !figures.is_measured() {
        let failed = figures.trials.failed.first();
        let reason = match failed {
            Some(failed) => format!("{} failed: {}", cell.id, failed.reason),
            None => format!("no trial of {} was measured", cell.id),
        };
        return Err(Absence::NotRun(reason));
    }
    if figures.is_invalid() {
        let codes: Vec<String> = figures.invalid_by.iter().map(ToString::to_string).collect();
        let reason = format!("{} is invalid ({})", cell.id, codes.join(", "));
        return Err(Absence::Unusable(reason));
    }
    Ok(Place { cell, figures })
}

/// Why the run has not what `asked` names.
fn not_run(run: &Run, asked: &Measurand) -> Absence {
    let of_work = format!("{} {}", asked.subject, asked.workload);
    let settings = asked.settings.iter();
    let values = settings.map(|(name, value)| format!("{name}={value}"));
    let values: Vec<String> = values.collect();
    let is_it = |not: &&NotRun| {
        not.what == asked.subject || not.what.starts_with(&of_work) || values.contains(&not.what)
    };
    let missing = run.plan.not_run.iter().find(is_it);
    Absence::NotRun(match missing {
        Some(missing) => format!("{}: {}", missing.what, missing.reason),
        None => format!("the run has no cell {}", asked.in_words()),
    })
}

/// Whether a metric of a cell is a bound from below; `None`: it is none.
fn bound(place: &Place<'_>, metric: CellMetric) -> Option<bool> {
    if place.figures.verdict != Some(Verdict::Bound) {
        return None;
    }
    match metric {
        CellMetric::Rate | CellMetric::Throughput | CellMetric::DownloadRate => Some(true),
        CellMetric::P50
        | CellMetric::P99
        | CellMetric::MeanLatency
        | CellMetric::Elapsed
        | CellMetric::Wall
        | CellMetric::Download => Some(false),
        _ => None,
    }
}

/// The metric whose copies tell whether a difference in this one can be claimed.
fn copies(metric: CellMetric) -> Option<Metric> {
    match metric {
        CellMetric::Rate | CellMetric::Throughput => Some(Metric::RATE),
        CellMetric::Elapsed | CellMetric::Wall => Some(Metric::RATE),
        CellMetric::P50 => Some(Metric::P50),
        CellMetric::P99 => Some(Metric::P99),
        CellMetric::Cpu => Some(Metric::CPU),
        _ => None,
    }
}
