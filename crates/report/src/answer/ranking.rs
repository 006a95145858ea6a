//! The subjects of one question in their order, as far as it is told.
//!
//! One is ahead of another where their intervals beside the baseline, which hold together, do not meet. A subject stands behind as many as are shown
//! to be ahead of it, and before as many as are shown to be behind: between these lie its places, `2–4`, or the only one. What is a bound has no end
//! on that side.
//!
//! Not for: which questions there are, which each kind of work says; sentences.

use std::fmt;

use prony_findings::{Code, Verdict};
use serde::Serialize;

use crate::figures::{CellFigures, Figure, NamedCells};
use crate::lists::distinct;
use crate::metrics::Metric;
use crate::numbers::{self, FigureUnit, RATE};
use crate::ratio::{OpenSide, RatioFigure, Unclaimed};

/// Which of these subjects is ahead?
pub struct RankedQuestion<'a> {
    /// Of what: `hello, 100 connections`.
    pub title: String,
    /// By what.
    pub by: By,
    /// Names and figures.
    pub subjects: NamedCells<'a>,
    /// Its name, where all are one thing with something added or taken away: what that costs is asked then, and not who leads.
    pub without: Option<String>,
}

impl<'a> RankedQuestion<'a> {
    /// Who leads?
    pub fn new(title: String, by: By, subjects: NamedCells<'a>) -> RankedQuestion<'a> {
        let without = None;
        RankedQuestion {
            title,
            by,
            subjects,
            without,
        }
    }
}

/// What decides a question, and how it is shown.
#[derive(Clone, Copy)]
pub struct By {
    /// With its unit, where `show` has none: `requests/s`.
    pub heading: &'static str,
    /// Where its figure is in a cell of `summary.json`.
    pub path: &'static str,
    /// How that is written.
    pub unit: FigureUnit,
    /// Whether less of it is better.
    pub falls: bool,
    /// Whose ratio to the baseline tells subjects apart; `None`: none does.
    pub ratio: Option<Metric>,
    /// The finding by which a figure is a bound: what was the limit was not its subject.
    pub bound: Code,
}

/// The answer to a question.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ranking {
    /// Of what.
    pub title: String,
    /// By what.
    pub metric: String,
    /// What all are compared with; empty: nothing.
    pub baseline: String,
    /// What the last column is called: `beside nginx`; empty: nothing stands there.
    pub compared: String,
    /// Whether what each costs is asked, and not who leads.
    #[serde(skip)]
    pub is_of_costs: bool,
    /// How its figures are written.
    #[serde(skip)]
    pub unit: FigureUnit,
    /// Where its figures are in a cell of `summary.json`.
    #[serde(skip)]
    pub figure: String,
    /// The best first.
    pub rows: Vec<Ranked>,
    /// How many more rows there are.
    #[serde(skip)]
    pub more: usize,
    /// Who has no place, and why.
    pub left_out: Vec<LeftOut>,
}

/// The first place that a subject may have, from 1 on, and the last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(into = "String")]
pub struct PlaceRange(pub usize, pub usize);

impl From<PlaceRange> for String {
    fn from(of: PlaceRange) -> String {
        of.to_string()
    }
}

impl fmt::Display for PlaceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceRange(first, last) if first == last => write!(f, "{first}"),
            PlaceRange(first, last) => write!(f, "{first}–{last}"),
        }
    }
}

/// A subject in its place.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ranked {
    /// Where it stands; `None`: nothing is ranked.
    pub place: Option<PlaceRange>,
    /// Its name.
    pub name: String,
    /// Its figure, with `≥` or `≤` where that is a bound.
    pub value: String,
    /// What it is beside the baseline: `+34 % (+26 to +42)`, or `baseline`.
    pub beside: String,
    /// Its cell.
    #[serde(skip)]
    pub cell: String,
    /// Median, and the ends of its interval or range.
    #[serde(skip)]
    pub figure: Option<Figure>,
    /// Whether the others are compared with it.
    #[serde(skip)]
    pub is_baseline: bool,
    /// Its ratio, where it is claimed.
    #[serde(skip)]
    pub claimed: Option<f64>,
}

/// A subject without a place.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Why, in a few words.
    pub why: String,
}

impl Ranking {
    /// What is answered to `question`; `None` where nothing of it was measured.
    pub fn from_question(question: &RankedQuestion<'_>) -> Option<Ranking> {
        let subjects = question.subjects.iter().filter(|(_, cell)| !cell.is_copy);
        let (mut usable, out): (Vec<_>, Vec<_>) = subjects.partition(|(_, cell)| {
            let is_sound = !cell.is_invalid() && !cell.is_overloaded();
            is_sound && !discards(cell) && question.by.figure(cell).is_some()
        });
        if usable.is_empty() && out.iter().all(|(_, cell)| cell.verdict.is_none()) {
            return None;
        }
        usable.sort_by(|a, b| {
            let standing = |cell| question.by.standing(cell);
            standing(b.1).total_cmp(&standing(a.1))
        });
        let beside = AgainstBaseline::of(question, &usable);
        let places = beside.places(&usable);
        let baseline = usable.iter().find(|(_, cell)| beside.is_baseline(cell));
        let baseline = baseline.map_or_else(String::new, |(name, _)| name.clone());
        // Of a time, which is the better the shorter, the ratio is that of the rates.
        let of_rates = question.by.falls && !question.by.ratio_falls();
        let compared = match (baseline.is_empty(), of_rates) {
            (true, _) => String::new(),
            (false, true) => format!("speed beside {baseline}"),
            (false, false) => format!("beside {baseline}"),
        };
        let rows = usable.iter().zip(places);
        let rows = rows.map(|((name, cell), place)| {
            let row = Ranked {
                place,
                name: name.clone(),
                value: question.by.value(cell),
                beside: beside.words(cell),
                cell: cell.cell.clone(),
                figure: question.by.figure(cell),
                is_baseline: beside.is_baseline(cell),
                claimed: beside.claimed(cell),
            };
            (beside.ends(cell), row)
        });
        Some(Ranking {
            title: question.title.clone(),
            metric: question.by.heading.to_owned(),
            baseline,
            compared,
            is_of_costs: question.without.is_some(),
            unit: question.by.unit,
            figure: usable
                .first()
                .map_or_else(String::new, |(_, cell)| cell.path(question.by.path)),
            rows: arranged(rows.collect()),
            more: 0,
            left_out: out
                .iter()
                .map(|(name, cell)| left_out(name, cell))
                .collect(),
        })
    }

    /// Its first rows and the baseline's, as many as `rows` says.
    pub fn brief(&self, rows: usize) -> Ranking {
        let mut brief = self.clone();
        if brief.rows.len() <= rows {
            return brief;
        }
        let rest = brief.rows.split_off(rows.saturating_sub(1));
        let baseline = rest.iter().find(|row| row.beside == BASELINE);
        let last = baseline.or(rest.first()).cloned();
        brief.rows.extend(last);
        brief.more = self.rows.len() - brief.rows.len();
        brief
    }

    /// Whether its title ends with what decides it.
    pub fn is_named_in_title(&self) -> bool {
        self.title.ends_with(&self.metric)
    }

    /// Those in the first place.
    pub fn first(&self) -> impl Iterator<Item = &Ranked> {
        self.rows.iter().filter(|row| row.is_first())
    }
}

impl Ranked {
    /// Whether nobody is shown to be ahead of it.
    pub fn is_first(&self) -> bool {
        self.place.is_some_and(|PlaceRange(first, _)| first == 1)
    }
}

/// Questions that have their sentence, and their ranking at the top.
pub const FOREMOST: usize = 3;
/// What stands beside the baseline itself.
pub const BASELINE: &str = "baseline";

/// By requests a second.
pub const BY_RATE: By = By {
    heading: "requests/s",
    path: "rate_per_s",
    unit: RATE,
    falls: false,
    ratio: Some(Metric::RATE),
    bound: Code::P001,
};

impl By {
    fn ratio<'c>(&self, cell: &'c CellFigures) -> Option<&'c RatioFigure> {
        self.ratio?.ratio(cell)
    }

    fn ratio_falls(&self) -> bool {
        self.ratio.is_some_and(|metric| metric.falls)
    }

    fn figure(&self, cell: &CellFigures) -> Option<Figure> {
        cell.figure(self.path)
    }

    /// By what subjects are in order: the more the better.
    fn standing(&self, cell: &CellFigures) -> f64 {
        let figure = cell.number(self.path).unwrap_or(0.0);
        if self.falls { -figure } else { figure }
    }

    /// Whether its figure is a bound. As a note the finding is about a few values, and the figure is none.
    fn is_bound(&self, cell: &CellFigures) -> bool {
        cell.verdict == Some(Verdict::Bound) && cell.findings.contains(&self.bound)
    }

    /// The ends of its figure, the better the higher.
    fn ends(&self, cell: &CellFigures) -> Option<(f64, f64)> {
        let figure = self.figure(cell)?;
        Some(match self.falls {
            true => (-figure.high, -figure.low),
            false => (figure.low, figure.high),
        })
    }

    fn value(&self, cell: &CellFigures) -> String {
        let Some(figure) = cell.number(self.path) else {
            return numbers::NOTHING.to_owned();
        };
        let bound = match (self.is_bound(cell), self.falls) {
            (false, _) => "",
            (true, false) => "≥ ",
            (true, true) => "≤ ",
        };
        format!("{bound}{}", self.unit.text(figure))
    }
}

/// Subjects beside the one that all of them are compared with, where there is one.
struct AgainstBaseline<'q, 'a> {
    question: &'q RankedQuestion<'a>,
    /// Its cell.
    baseline: Option<&'a str>,
}

impl<'q, 'a> AgainstBaseline<'q, 'a> {
    fn of(
        question: &'q RankedQuestion<'a>,
        subjects: &[&(String, &'a CellFigures)],
    ) -> AgainstBaseline<'q, 'a> {
        let ratios = subjects
            .iter()
            .filter_map(|(_, cell)| question.by.ratio(cell));
        let mut baselines = distinct(ratios.map(|ratio| &*ratio.reference_cell)).into_iter();
        let without = question.without.as_ref();
        let without = without.and_then(|name| subjects.iter().find(|of| of.0 == *name));
        let baseline = match (without, baselines.next(), baselines.next()) {
            (Some((_, cell)), ..) => Some(&*cell.cell),
            (None, Some(one), None) => Some(one),
            _ => None,
        };
        // Who is left out, nobody stands beside.
        let is_there = |id: &&str| subjects.iter().any(|(_, cell)| cell.cell == **id);
        let baseline = baseline.filter(is_there);
        AgainstBaseline { question, baseline }
    }

    fn is_baseline(&self, cell: &CellFigures) -> bool {
        self.baseline == Some(&*cell.cell)
    }

    fn ratio<'c>(&self, cell: &'c CellFigures) -> Option<&'c RatioFigure> {
        self.question
            .by
            .ratio(cell)
            .filter(|_| !self.is_baseline(cell))
    }

    /// Between which ends it is shown to be, the better the higher; `None`: nothing tells.
    fn ends(&self, cell: &CellFigures) -> Option<(f64, f64)> {
        self.baseline?;
        if self.is_baseline(cell) {
            return Some((1.0, 1.0));
        }
        let ratio = self.ratio(cell)?;
        let (low, high) = ratio.interval()?;
        let (low, high) = OpenSide::ends(ratio.bound, low, high);
        Some(match self.question.by.ratio_falls() {
            true => (1.0 / high, 1.0 / low),
            false => (low, high),
        })
    }

    /// The places of each, the best first; `None` of all where no interval tells any two apart.
    fn places(&self, subjects: &[&(String, &CellFigures)]) -> Vec<Option<PlaceRange>> {
        let by = &self.question.by;
        let standing = |(_, cell): &&(String, &CellFigures)| RankedEnds {
            ends: self.ends(cell),
            figure: by.ends(cell),
            is_bound: by.is_bound(cell),
        };
        let all: Vec<RankedEnds> = subjects.iter().map(standing).collect();
        let ranked = all.iter().filter(|of| of.ends.is_some()).count();
        match self.question.without.is_some() || ranked < 2 {
            true => vec![None; subjects.len()],
            false => placed(&all),
        }
    }

    fn words(&self, cell: &CellFigures) -> String {
        let Some(of) = self.ratio(cell).filter(|_| self.baseline.is_some()) else {
            return match self.is_baseline(cell) {
                true => BASELINE.to_owned(),
                false => String::new(),
            };
        };
        match of.unclaimed {
            None if of.is_interval() => numbers::change_of(of),
            None => numbers::change_words(of.ratio, None, None),
            Some(Unclaimed::Bound) => "not told: a bound".to_owned(),
            Some(Unclaimed::Copy) => "not told: a copy differs".to_owned(),
            Some(Unclaimed::Disturbed) => "not told: disturbed".to_owned(),
        }
    }

    /// The ratio to the baseline, where the two are shown to differ.
    fn claimed(&self, cell: &CellFigures) -> Option<f64> {
        self.baseline?;
        Some(self.ratio(cell).filter(|of| of.is_difference())?.ratio)
    }
}

/// The lower and the higher.
type Ends = (f64, f64);

/// Whether the first is shown to be ahead of the second.
fn is_ahead(first: Option<Ends>, second: Option<Ends>) -> bool {
    first.zip(second).is_some_and(|(a, b)| a.0 > b.1)
}

/// In the order of their figures; but who is shown to be behind another stands behind it.
fn arranged(mut rows: Vec<(Option<Ends>, Ranked)>) -> Vec<Ranked> {
    let mut arranged = Vec::with_capacity(rows.len());
    while !rows.is_empty() {
        let is_foremost =
            |own: &(Option<Ends>, Ranked)| !rows.iter().any(|of| is_ahead(of.0, own.0));
        let next = rows.iter().position(is_foremost).unwrap_or(0);
        arranged.push(rows.remove(next).1);
    }
    arranged
}

/// What tells where a subject stands.
#[derive(Clone, Copy, Default)]
struct RankedEnds {
    /// Between which ends it is shown to be beside the baseline.
    ends: Option<Ends>,
    /// The ends of its figure.
    figure: Option<Ends>,
    /// Whether that is a bound.
    is_bound: bool,
}

/// The places of each. Who is not told beside the baseline has none, unless it may be as good as those of whom nobody is shown to be ahead, by a
/// figure that is a bound or whose ends reach that far: it then stands before those whose figures' ends are all below its own.
fn placed(all: &[RankedEnds]) -> Vec<Option<PlaceRange>> {
    let ahead = |own: &RankedEnds| all.iter().filter(|of| is_ahead(of.ends, own.ends)).count();
    let first = all
        .iter()
        .filter(|own| own.ends.is_some() && ahead(own) == 0);
    let lows = first.filter_map(|own| Some(own.figure?.0));
    let best = lows.fold(f64::NEG_INFINITY, f64::max);
    let has_place = |own: &&RankedEnds| {
        let may_lead = own.is_bound || own.figure.is_some_and(|(_, high)| high >= best);
        own.ends.is_some() || may_lead
    };
    let place = |own: &RankedEnds| {
        let is_behind = |of: &&RankedEnds| match own.ends {
            Some(_) => is_ahead(own.ends, of.ends),
            None => is_ahead(own.figure, of.figure),
        };
        let others = all.iter().filter(has_place);
        let last = others.filter(|of| !is_behind(of)).count();
        has_place(&own).then_some(PlaceRange(1 + ahead(own), last))
    };
    all.iter().map(place).collect()
}

/// Whether it throws away what it receives, which others look at.
fn discards(cell: &CellFigures) -> bool {
    cell.client.as_ref().is_some_and(|client| client.discards)
}

fn left_out(name: &str, cell: &CellFigures) -> LeftOut {
    let all = cell.errors.saturating_add(cell.completed);
    let failed = cell.invalid_by.contains(&Code::P006) && all > 0;
    let why = match (failed, cell.invalid_by.first()) {
        (true, _) => format!(
            "{} of requests failed (P006)",
            numbers::percent(cell.errors as f64 / all as f64)
        ),
        (false, Some(code)) => format!("{} ({code})", code.title()),
        (false, None) if cell.is_overloaded() => "did not keep up".to_owned(),
        (false, None) if discards(cell) => "discards what it receives".to_owned(),
        (false, None) => match cell.trials.failed.first() {
            Some(failed) => format!("failed: {}", failed.reason),
            None => "not measured".to_owned(),
        },
    };
    LeftOut {
        name: name.to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(all: &[RankedEnds]) -> String {
        let shown = |place: Option<PlaceRange>| place.map_or("?".to_owned(), String::from);
        let places = placed(all).into_iter().map(shown);
        places.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn places_are_behind_who_is_shown_to_be_ahead_and_before_who_is_shown_to_be_behind() {
        let of = |ends: &[Option<Ends>]| {
            let standing = |ends| RankedEnds {
                ends,
                ..RankedEnds::default()
            };
            places(&ends.iter().copied().map(standing).collect::<Vec<_>>())
        };
        let told = |low, high| Some((low, high));
        let ends = [
            None,
            told(1.0, 1.0),
            told(0.8, 1.1),
            told(0.3, 0.5),
            None,
            told(0.04, 0.06),
        ];
        assert_eq!(of(&ends), "? 1–2 1–2 3 ? 4");
        // Who comes later may be as fast as the first, so that the first does not lead.
        let ends = [told(0.9, 2.0), told(0.5, 0.8), told(0.4, 1.2)];
        assert_eq!(of(&ends), "1–2 2–3 1–3");
        let ends = [told(1.2, f64::INFINITY), told(1.0, 1.0), told(0.0, 0.9)];
        assert_eq!(of(&ends), "1 2 3");
    }

    #[test]
    fn who_may_be_ahead_may_have_the_first_place() {
        let standing = |ends, is_bound, low, high| RankedEnds {
            ends,
            figure: Some((low, high)),
            is_bound,
        };
        let all = [
            standing(Some((1.0, 1.0)), false, 89.0, 91.0),
            // At least as fast as this.
            standing(None, true, 87.0, 88.0),
            // Disturbed, and up to as fast as the first.
            standing(None, false, 60.0, 90.0),
            standing(None, false, 50.0, 70.0),
            standing(Some((0.9, 0.95)), false, 80.0, 86.0),
        ];
        assert_eq!(places(&all), "1–3 1–3 1–4 ? 2–4");
    }

    #[test]
    fn figures_are_in_their_order_but_where_another_is_shown() {
        let row = |name: &str, ends| {
            (
                ends,
                Ranked {
                    name: name.to_owned(),
                    ..Ranked::default()
                },
            )
        };
        let rows = vec![
            row("a", Some((0.5, 0.8))),
            row("b", None),
            row("c", Some((0.9, 2.0))),
            row("d", Some((0.6, 1.0))),
        ];
        let names: Vec<String> = arranged(rows).into_iter().map(|row| row.name).collect();
        assert_eq!(names, ["b", "c", "a", "d"]);
    }
}
