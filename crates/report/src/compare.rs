//! Two states of something beside each other: by what is it faster, slower or dearer, and how sure is that?
//!
//! [`interleaved`] reads the claims of one run in which both were measured in turns; [`apart`] compares two runs of
//! different sessions, by what a history tells of how far sessions lie apart, and claims nothing without one. Both give the
//! same [`Comparison`], which has a sentence, a table, Markdown for a pull request and a gate.
//!
//! Not for: running anything, reading files.

use std::collections::BTreeSet;

use prony_base::counted;
use prony_stats::{BLOCKS_INTERVAL_MIN, Conclusion};
use serde::Serialize;

use crate::claims::{self};
use crate::figure::block_number;
use crate::figures::CellFigures;
use crate::groups::Group;
use crate::lists::distinct;
use crate::log::history::{Session, Sides, Value, sessions};
use crate::log::{CellEntry, Entry};
use crate::metrics::Metric;
use crate::ratio::{OpenSide, RatioFigure, Unclaimed};
use crate::settings::with_settings;
use crate::words::{capitalised, few};
use crate::{Run, markdown, numbers, view};

/// Sentences on what differs before one says in how many more places something does.
const CLAIMS_MAX: usize = 3;

/// One figure of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Where: `hello with 20 connections`.
    pub place: String,
    /// The key of a metric that is compared, as in `summary.json`: `rate`, `p50`, `p99`, `cpu_subject`.
    pub metric: &'static str,
    /// Requests a second, or nanoseconds: the baseline's.
    pub baseline: f64,
    /// The other's.
    pub other: f64,
    /// The other over the baseline.
    pub ratio: f64,
    /// Ends of the interval, which hold together with those of the same metric; `None`: nothing is claimed.
    pub interval: Option<(f64, f64)>,
    /// What may be lines.
    pub conclusion: Conclusion,
    /// How the ratio is to be read where a figure is a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<OpenSide>,
}

/// What comes of a comparison against a limit.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Every figure is surely not worse by more than the limit.
    Passed,
    /// Some may be, and none surely is.
    Inconclusive,
    /// At least one surely is.
    Failed,
}

/// Two states, figure by figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Version of these figures.
    pub schema: u32,
    /// What the baseline is called.
    pub baseline: String,
    /// What is compared with it.
    pub other: String,
    /// The figures, rates first.
    pub figures: Vec<Compared>,
    /// Where requests failed: how many of each side's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// Where answers of both are not as long: how many bytes each side's have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<String>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
    /// The smallest change of a rate that would be claimed in 80 % of such comparisons: 0.05 is 5 %.
    pub detectable: Option<f64>,
    /// What the claims rest on, or why there are none.
    pub basis: String,
}

/// Compares two subjects of one run, in which they were measured in turns. `baseline` is the run's reference.
pub fn interleaved(run: &Run, baseline: &str, other: &str) -> Comparison {
    let cells = view::compute(run).cells;
    let own: Vec<&CellFigures> = cells.iter().filter(|cell| cell.subject == other).collect();
    let figures = Metric::claimed().flat_map(|metric| {
        let figure = move |cell: &&CellFigures| Some(of_cell(cell, metric, metric.ratio(cell)?));
        own.iter().filter_map(figure)
    });
    let figures: Vec<Compared> = figures.collect();
    let both = own.iter().filter_map(|own| {
        let is_beside = |base: &&CellFigures| {
            base.subject == baseline && base.workload == own.workload && place(base) == place(own)
        };
        Some((cells.iter().find(is_beside)?, *own))
    });
    let both: Vec<CellPair<'_>> = both.collect();
    let is_out = |cell: &&CellFigures| {
        let is_side = cell.subject == baseline || cell.subject == other;
        is_side && (cell.is_invalid() || cell.verdict.is_none())
    };
    let out = cells.iter().filter(is_out);
    let out = out.map(|cell| format!("{}: {}", cell.cell, why_out(cell)));
    let resolutions = claims::resolutions(&run.plan, &cells);
    let most = resolutions.iter().filter_map(|of| of.detectable);
    Comparison {
        schema: 1,
        baseline: baseline.to_owned(),
        other: other.to_owned(),
        failed: both.iter().filter_map(failures).collect(),
        lengths: both.iter().filter_map(lengths).collect(),
        left_out: out.collect(),
        detectable: most.reduce(f64::max),
        basis: basis(run.plan.blocks, &cells, &own, &figures),
        figures,
    }
}

/// A cell of the baseline and that of the other beside it.
type CellPair<'a> = (&'a CellFigures, &'a CellFigures);

/// What the claims of a run rest on, and what is in none.
fn basis(blocks: u32, cells: &[CellFigures], own: &[&CellFigures], figures: &[Compared]) -> String {
    let ratios = own
        .iter()
        .flat_map(|cell| cell.ratio.iter().chain(cell.ratios.values()));
    let by_others = ratios
        .clone()
        .any(|ratio| ratio.unclaimed == Some(Unclaimed::Disturbed));
    let is_any = figures.iter().any(|f| f.interval.is_some());
    let basis = match (is_any, claims::copy_differs(cells, Metric::RATE)) {
        (false, _) if by_others => <&str>::from(Unclaimed::Disturbed).to_owned(),
        (_, true) => {
            "a copy of the baseline came out different, too, so that nothing is claimed of rates"
                .to_owned()
        }
        (true, false) => format!(
            "{blocks} interleaved blocks; the intervals of a workload's rates hold together with 95 %, and so do all others"
        ),
        (false, false) if (blocks as usize) < BLOCKS_INTERVAL_MIN => format!(
            "{} {} too few to claim anything: it takes {BLOCKS_INTERVAL_MIN}",
            counted(blocks, "block"),
            if blocks == 1 { "is" } else { "are" }
        ),
        (false, false) => {
            "no figure has an interval: each is a bound, or cannot be used".to_owned()
        }
    };
    let out: BTreeSet<u32> = ratios.flat_map(|ratio| &ratio.left_out).copied().collect();
    let numbers: Vec<String> = out.into_iter().map(block_number).collect();
    match numbers.is_empty() {
        true => basis,
        false => format!(
            "{basis}; in no ratio: what others disturbed (block {})",
            numbers.join(", ")
        ),
    }
}

/// How many requests failed of both, where some did.
fn failures((base, own): &CellPair<'_>) -> Option<String> {
    let side = |cell: &CellFigures| {
        let all = cell.errors + cell.completed;
        let (failed, count) = (numbers::count(cell.errors), numbers::count(all));
        let share = numbers::percent(cell.errors as f64 / all as f64);
        match cell.errors {
            0 => format!("{} none of {count}", cell.subject),
            _ => format!("{} {failed} of {count} ({share})", cell.subject),
        }
    };
    let sides = format!("{}, {}", side(base), side(own));
    (base.errors + own.errors > 0).then(|| format!("failed on {}: {sides}", place(own)))
}

/// The part of an answer's bytes by which both sides may differ and still count as the same work: a number with another digit.
const LENGTHS_ALIKE: f64 = 0.01;

/// How many bytes an answer of both has, where that differs by more than it can by what is on its way when a window begins and ends.
fn lengths((base, own): &CellPair<'_>) -> Option<String> {
    // Of failed requests, too, there are bytes.
    let is_sound = |cell: &CellFigures| !cell.is_invalid() && cell.errors == 0;
    let bytes = |cell: &CellFigures| cell.bytes_per_answer.filter(|_| is_sound(cell));
    let (theirs, ours) = (bytes(base)?, bytes(own)?);
    let under_way = |cell: &CellFigures, windows: usize| {
        2.0 * f64::from(cell.connections) * windows as f64 / cell.completed.max(1) as f64
    };
    let by_chance = under_way(base, theirs.blocks) + under_way(own, ours.blocks);
    let (theirs, ours) = (theirs.median, ours.median);
    (libm::log(ours / theirs).abs() > LENGTHS_ALIKE + by_chance).then(|| {
        format!(
            "answers on {} are not as long: {} has {theirs:.0} bytes with the head, {} {ours:.0}",
            place(own),
            base.subject,
            own.subject
        )
    })
}

fn why_out(cell: &CellFigures) -> String {
    let codes: Vec<&str> = cell.findings.iter().map(|code| code.as_str()).collect();
    match (cell.trials.failed.first(), &codes[..]) {
        (Some(trial), _) => trial.reason.clone(),
        (None, []) => "not measured".to_owned(),
        (None, codes) => format!("invalid ({})", codes.join(", ")),
    }
}

/// What is not shown to differ, and how far it may.
fn undecided(rest: &[&Compared]) -> Option<String> {
    let farthest: Vec<f64> = rest.iter().filter_map(|of| of.farthest()).collect();
    let most = farthest.iter().copied().reduce(f64::max)?;
    let without = match rest.len() - farthest.len() {
        0 => String::new(),
        1 => "; one has no interval".to_owned(),
        more => format!("; {more} have no interval"),
    };
    let most = numbers::percent(most);
    Some(format!(
        "All else: no difference is shown, and up to {most} is possible{without}."
    ))
}

fn of_cell(cell: &CellFigures, metric: Metric, ratio: &RatioFigure) -> Compared {
    let (own, baseline) = ratio.sides();
    Compared {
        place: with_settings(&place(cell), &cell.settings),
        metric: metric.key,
        baseline,
        other: own,
        ratio: ratio.ratio,
        interval: ratio.interval(),
        conclusion: ratio.conclusion,
        bound: ratio.bound,
    }
}

fn place(cell: &CellFigures) -> String {
    match (&cell.program, &cell.search) {
        (Some(program), _) => format!("{}, n = {}", cell.workload, numbers::count(program.count)),
        (None, None) => Group::from_cell(cell).place(),
        (None, Some(search)) => {
            let (place, objective) = (Group::from_cell(cell).place(), search.objective_words());
            format!("{place} (highest rate that keeps {objective})")
        }
    }
}

/// Compares two runs that were not interleaved, each an entry of a log, by the entries of a `history` that tell how far
/// sessions of the same state lie apart.
pub fn apart(baseline: &Entry, other: &Entry, history: &[Entry]) -> Comparison {
    let (pairs, left_out) = in_both(baseline, other);
    // Of another machine the baseline is no session like the others, and nothing is claimed.
    let is_like = baseline.environment == other.environment;
    let is_further = |of: &&Entry| is_like && of.id != baseline.id && of.id != other.id;
    let further = history.iter().filter(is_further);
    let mut all: Vec<&Entry> = further.chain([baseline]).collect();
    all.sort_by_key(|entry| entry.started_unix_ms);
    let metrics: [(Metric, Value); 2] = [
        (Metric::RATE, |cell| cell.session),
        (Metric::CPU, |cell| cell.cpu_ns),
    ];
    let mut figures = Vec::new();
    let (mut degrees, mut resolutions) = (0, Vec::new());
    for (metric, value) in metrics {
        for &(base, cell) in &pairs {
            let sides = Session::from_cell(baseline, base, value)
                .zip(Session::from_cell(other, cell, value));
            let Some((from, own)) = sides else { continue };
            let like = sessions(&all, &baseline.environment, cell, value);
            let compared = Sides::of(from, own, &like).compared(pairs.len());
            let Some(compared) = compared else { continue };
            if metric.is_rate() {
                degrees = degrees.max(compared.degrees);
                resolutions.extend(compared.resolution);
            }
            figures.push(Compared {
                place: cell.id.clone(),
                metric: metric.key,
                baseline: from.figure,
                other: own.figure,
                ratio: compared.ratio.0,
                interval: compared.interval.map(|of| (of.low.0, of.high.0)),
                conclusion: compared.conclusion,
                bound: None,
            });
        }
    }
    let is_claimed = figures.iter().any(|f| f.interval.is_some());
    Comparison {
        schema: 1,
        baseline: baseline.run.clone(),
        other: other.run.clone(),
        figures,
        left_out,
        detectable: resolutions.into_iter().reduce(f64::max),
        basis: basis_apart(is_like, is_claimed, degrees),
        ..Comparison::default()
    }
}

/// The same of entries.
type EntryPair<'a> = (&'a CellEntry, &'a CellEntry);

/// The cells that both have a figure of, measured alike, and why others are left out.
fn in_both<'a>(baseline: &'a Entry, other: &'a Entry) -> (Vec<EntryPair<'a>>, Vec<String>) {
    let (mut pairs, mut left_out) = (Vec::new(), Vec::new());
    for own in other.cells() {
        let base = baseline.cells().find(|base| base.id == own.id);
        let why = match base {
            None => format!("only {} has it", other.run),
            Some(base) if base.series != own.series => {
                "measured otherwise (request, blocks, window, cores, or whether the generator slept, differ)".to_owned()
            }
            Some(base) if base.session.is_none() || own.session.is_none() => {
                "no figure of its own in one of the two".to_owned()
            }
            Some(base) => {
                pairs.push((base, own));
                continue;
            }
        };
        left_out.push(format!("{}: {why}", own.id));
    }
    (pairs, left_out)
}

fn basis_apart(same_machine: bool, is_claimed: bool, degrees: usize) -> String {
    match (same_machine, is_claimed) {
        (false, _) => "the two runs are of different machines or kernels".to_owned(),
        (true, true) => format!(
            "two sessions that were not interleaved, by how far sessions of one state lie apart in the history \
             ({degrees} degrees of freedom)"
        ),
        (true, false) => "measured at different times, and no history tells how far sessions lie apart; use --interleave, \
             or --runs with a folder of more runs"
            .to_owned(),
    }
}

/// The entry of a log that `other` stands against: the newest before it that measured another state of something that both
/// have; where there is none, the newest before it of all. `None`: there is none before it.
pub fn baseline_in<'a>(log: &'a [Entry], other: &Entry) -> Option<&'a Entry> {
    let is_before = |of: &&Entry| of.started_unix_ms < other.started_unix_ms && of.id != other.id;
    let mut before: Vec<&Entry> = log.iter().filter(is_before).collect();
    before.sort_by_key(|entry| entry.started_unix_ms);
    let is_other = |entry: &&&Entry| {
        let like = |cell: &CellEntry| other.cells().find(|own| own.series == cell.series);
        let differs = |cell: &CellEntry| like(cell).is_some_and(|own| own.state != cell.state);
        entry.environment == other.environment && entry.cells().any(differs)
    };
    let newest = before.last();
    before.iter().rev().find(is_other).or(newest).copied()
}

impl Compared {
    /// What it is a figure of.
    fn metric(&self) -> Metric {
        Metric::with_key(self.metric).expect("a metric of the registry")
    }

    /// By how much it is worse, as [`Metric::worse`] says.
    fn worse(&self) -> Option<(f64, f64)> {
        let (low, high) = self.interval?;
        Some(self.metric().worse(low, high))
    }

    /// How far the interval's nearer end is from no change, as a logarithm: what is sure of a claim.
    fn sure(&self) -> f64 {
        let distance = |of: f64| libm::log(of).abs();
        let ends = self.interval.filter(|_| self.conclusion.is_difference());
        ends.map_or(0.0, |(low, high)| distance(low).min(distance(high)))
    }

    /// Larger end of the interval, as a distance from no change.
    fn farthest(&self) -> Option<f64> {
        let (low, high) = self.interval?;
        Some((high - 1.0).abs().max((1.0 - low).abs()))
    }

    /// `rate −7.9 % (−9.6 to −6.1)`; where nothing is claimed, what is still possible: `−4.0 to +6.5 %`.
    fn words(&self) -> String {
        let (metric, change) = (self.metric(), self.change());
        match metric.is_rate() {
            true => format!("rate {change}"),
            false => format!("{} {change}", metric.compared),
        }
    }

    /// By how much it is another.
    fn change(&self) -> String {
        numbers::change_words(self.ratio, self.interval, self.bound)
    }
}

impl Comparison {
    /// Takes back what would be claimed where the two runs were measured by different methods: their figures are not
    /// of the same quantity.
    pub fn of_methods(mut self, baseline: u32, other: u32) -> Comparison {
        if baseline == other {
            return self;
        }
        for figure in &mut self.figures {
            (figure.interval, figure.conclusion, figure.bound) =
                (None, Conclusion::NotClaimed, None);
        }
        self.detectable = None;
        self.basis = format!(
            "measured by different methods ({baseline} and {other}), so that their figures are not of the same quantity"
        );
        self
    }

    /// The answer in short sentences: which is better, by how much where, what else there may be, which requests failed, and whether both did the
    /// same work.
    pub fn sentences(&self) -> Vec<String> {
        let mut lines = self.of_figures();
        lines.extend(self.failed.iter().map(|of| format!("Requests {of}.")));
        lines.extend(self.lengths.iter().map(|of| format!("Unequal work: {of}.")));
        lines
    }

    /// All of them in a line.
    pub fn sentence(&self) -> String {
        self.sentences().join(" ")
    }

    fn of_figures(&self) -> Vec<String> {
        let (baseline, other) = (&self.baseline, &self.other);
        if self.figures.is_empty() {
            let out = self.left_out.first();
            let why = out.map_or_else(String::new, |out| format!(" ({out})"));
            return vec![format!(
                "{baseline} and {other} could not be compared{why}: run it again."
            )];
        }
        if !self.has_intervals() {
            return vec![format!("No difference is claimed: {}.", self.basis)];
        }
        let (mut claimed, rest): (Vec<&Compared>, Vec<&Compared>) = self
            .figures
            .iter()
            .partition(|of| of.conclusion.is_difference());
        // Rates first, by which the verdict is.
        claimed.sort_by(|a, b| b.sure().total_cmp(&a.sure()));
        claimed.sort_by_key(|of| !of.metric().is_rate());
        let mut lines = vec![self.verdict(&claimed)];
        let places = distinct(claimed.iter().map(|of| &of.place));
        let more = (places.len() + 1).saturating_sub(CLAIMS_MAX);
        for place in &places[..places.len() - more] {
            let own = claimed.iter().filter(|of| of.place == **place);
            let words: Vec<String> = own.map(|of| of.words()).collect();
            lines.push(format!("{place}: {}.", few(&words)));
        }
        if more > 0 {
            let more = counted(more, "more place");
            lines.push(format!("Figures differ in {more}, too; they are below."));
        }
        lines.extend(undecided(&rest));
        lines
    }

    /// Which is better, by the rates first.
    fn verdict(&self, claimed: &[&Compared]) -> String {
        let (baseline, other) = (&self.baseline, &self.other);
        let rates = claimed.iter().filter(|of| of.metric().is_rate());
        let ways = distinct(rates.clone().map(|of| of.conclusion));
        let all = self
            .figures
            .iter()
            .filter(|of| of.metric().is_rate())
            .count();
        let places = match rates.count() {
            own if own < all => format!(" on {own} of {all}"),
            _ => String::new(),
        };
        match (&ways[..], claimed) {
            ([Conclusion::Higher], _) => format!("{other} is faster than {baseline}{places}."),
            ([Conclusion::Lower], _) => format!("{other} is slower than {baseline}{places}."),
            (_, []) => format!("No difference between {baseline} and {other} is shown."),
            _ => format!("{other} differs from {baseline}."),
        }
    }

    fn has_intervals(&self) -> bool {
        self.figures.iter().any(|figure| figure.interval.is_some())
    }

    /// What comes of it against a limit: 0.05 is 5 % worse. A figure without an interval is inconclusive; memory and starting, which
    /// each block measures once, fail it where they are surely worse, and leave it open to none.
    pub fn gate(&self, limit: f64) -> Gate {
        let of = |figure: &Compared| match figure.worse() {
            Some((least, _)) if least > limit => Gate::Failed,
            Some((_, most)) if most <= limit => Gate::Passed,
            _ if figure.metric().is_measured() => Gate::Passed,
            _ => Gate::Inconclusive,
        };
        let all = self.figures.iter().map(of).max();
        all.unwrap_or(Gate::Inconclusive)
    }

    /// Figures that are surely worse by more than the limit, in words.
    pub fn beyond(&self, limit: f64) -> Vec<String> {
        let over = |f: &&Compared| f.worse().is_some_and(|(least, _)| least > limit);
        self.figures
            .iter()
            .filter(over)
            .map(|figure| format!("{}: {}", figure.place, figure.words()))
            .collect()
    }

    /// The figures of each place as a table in Markdown, which is read on a terminal as well.
    pub fn table(&self) -> String {
        let clean = crate::escape::markdown;
        let row = |figure: &Compared| {
            let metric = figure.metric();
            let certainty = match figure.conclusion {
                Conclusion::Higher | Conclusion::Lower => "",
                Conclusion::NoDifferenceShown => "not shown, ",
                Conclusion::NotClaimed => "not claimed, ",
            };
            [
                metric.compared.to_owned(),
                metric.alone.text(figure.baseline),
                metric.alone.text(figure.other),
                format!("{certainty}{}", figure.change()),
            ]
        };
        let (baseline, other) = (clean(&self.baseline), clean(&self.other));
        let head = ["", &baseline, &other, "change (95 %, together)"];
        let of_place = |place: &String| {
            let own = self.figures.iter().filter(|figure| figure.place == *place);
            let table = markdown::filled(head, 0..0, own.map(row));
            format!("**{}**\n\n{table}", clean(place))
        };
        let places = distinct(self.figures.iter().map(|figure| &figure.place));
        let tables: Vec<String> = places.into_iter().map(of_place).collect();
        tables.join("\n\n")
    }

    /// What the claims rest on, and what they could have told; empty where there is none, which the sentences say.
    pub fn footing(&self) -> String {
        if !self.has_intervals() {
            return String::new();
        }
        let power = self.detectable.map_or_else(String::new, |least| {
            let least = numbers::percent(least);
            format!(" Changes in rate under about {least} would be missed.")
        });
        format!("{}.{power}", capitalised(&self.basis))
    }

    /// For a pull request: the sentence, the table, what it rests on.
    pub fn markdown(&self) -> String {
        let clean = crate::escape::markdown;
        let out = self.left_out.iter();
        let out = out.map(|out| format!("- left out: {}", clean(out)));
        let mut blocks = vec![
            clean(&self.sentence()),
            self.table(),
            clean(&self.footing()),
            out.collect::<Vec<_>>().join("\n"),
        ];
        blocks.retain(|block| !block.is_empty());
        blocks.join("\n\n") + "\n"
    }
}
