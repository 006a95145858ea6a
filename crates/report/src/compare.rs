//! Two states of something beside each other: by what is it faster, slower or dearer, and how sure is that?
//!
//! [`interleaved`] reads the claims of one run in which both were measured in turns; [`apart`] compares two runs of
//! different sessions, by what a history tells of how far sessions lie apart, and claims nothing without one. Both give the
//! same [`Comparison`], which has a sentence, a table, Markdown for a pull request and a gate.
//!
//! Not for: running anything, reading files.

use std::collections::BTreeSet;

use prony_base::counted;
use prony_stats::BLOCKS_INTERVAL_MIN;
use serde::Serialize;

use crate::Run;
use crate::claims::{self};
use crate::figures::CellFigures;
use crate::groups::Group;
use crate::log::between::{Session, Sides, Value, sessions};
use crate::log::{CellEntry, Entry};
use crate::markdown;
use crate::metrics::Metric;
use crate::numbers;
use crate::ratio::{BY_OTHERS, RatioFigure};
use crate::settings::with_settings;
use crate::view;
use crate::words::listed;

/// Claims that the sentence names before it says how many more there are.
const CLAIMS_MAX: usize = 3;

/// One figure of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Where: `hello with 20 connections`.
    pub place: String,
    /// The key of a metric that is compared, as in `summary.json`: `rate`, `p50`, `p99`, `cpu_subject`.
    pub metric: &'static str,
    /// Requests a second, or nanoseconds: the baseline's.
    pub baseline: Option<f64>,
    /// The other's.
    pub other: Option<f64>,
    /// The other over the baseline.
    pub ratio: f64,
    /// Ends of the interval, which hold together with those of the same metric; `None`: nothing is claimed.
    pub interval: Option<(f64, f64)>,
    /// `not-claimed`, `no-difference-shown`, `higher` or `lower`.
    pub conclusion: &'static str,
    /// `at-least` or `at-most`, where a figure is a bound; else empty.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub bound: &'static str,
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
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    let mut figures = Vec::new();
    let mut left_out = Vec::new();
    let own: Vec<&CellFigures> = cells.iter().filter(|c| c.subject == other).collect();
    for metric in Metric::claimed() {
        figures.extend(own.iter().filter_map(|cell| {
            let ratio = metric.ratio(cell)?;
            Some(of_cell(cell, metric, ratio))
        }));
    }
    let base = |cell: &CellFigures| {
        let is_base = |of: &&CellFigures| of.subject == baseline && is_beside(of, cell);
        cells.iter().find(is_base)
    };
    let both = own.iter().filter_map(|cell| Some((base(cell)?, *cell)));
    let failed = both.clone().filter_map(|(base, own)| failures(base, own));
    let lengths = both.filter_map(|(base, own)| lengths(base, own));
    let (failed, lengths) = (failed.collect(), lengths.collect());
    for cell in cells
        .iter()
        .filter(|c| c.subject == baseline || c.subject == other)
    {
        if cell
            .verdict
            .is_none_or(|v| v == prony_findings::Verdict::Invalid)
        {
            left_out.push(format!("{}: {}", cell.cell, why_out(cell)));
        }
    }
    let resolutions = claims::resolutions(&run.plan, &cells);
    let most = resolutions.iter().filter_map(|of| of.detectable);
    let basis = basis(run.plan.blocks, &cells, &own, &figures);
    Comparison {
        schema: 1,
        baseline: baseline.to_owned(),
        other: other.to_owned(),
        figures,
        failed,
        lengths,
        left_out,
        detectable: most.reduce(f64::max),
        basis,
    }
}

/// What the claims of a run rest on, and what is in none.
fn basis(blocks: u32, cells: &[CellFigures], own: &[&CellFigures], figures: &[Compared]) -> String {
    let copy = cells.iter().any(|cell| {
        let differs = |r: &RatioFigure| matches!(r.conclusion, "higher" | "lower");
        cell.is_copy && cell.ratio.as_ref().is_some_and(differs)
    });
    let ratios = || {
        own.iter()
            .flat_map(|cell| cell.ratio.iter().chain(cell.ratios.values()))
    };
    let by_others = ratios().any(|ratio| ratio.unclaimed == BY_OTHERS);
    let out: BTreeSet<u32> = ratios()
        .flat_map(|ratio| &ratio.left_out)
        .copied()
        .collect();
    let is_any = figures.iter().any(|f| f.interval.is_some());
    let mut basis = match (is_any, copy) {
        (false, _) if by_others => BY_OTHERS.to_owned(),
        (_, true) => {
            "a copy of the baseline came out different, too, so that nothing is claimed of rates"
                .to_owned()
        }
        (true, false) => format!(
            "{blocks} interleaved blocks; the intervals of a workload's rates hold together with 95 %, and so do all others"
        ),
        (false, false) if (blocks as usize) < BLOCKS_INTERVAL_MIN => format!(
            "{} {} too few to claim anything: it takes {BLOCKS_INTERVAL_MIN}",
            counted(blocks as usize, "block"),
            if blocks == 1 { "is" } else { "are" }
        ),
        (false, false) => {
            "no figure has an interval: each is a bound, or cannot be used".to_owned()
        }
    };
    if !out.is_empty() {
        let numbers: Vec<String> = out.iter().map(ToString::to_string).collect();
        basis += &format!(
            "; in no ratio: what others disturbed (block {})",
            numbers.join(", ")
        );
    }
    basis
}

fn is_beside(one: &CellFigures, other: &CellFigures) -> bool {
    one.workload == other.workload && place(one) == place(other)
}

/// How many requests failed of both, where some did.
fn failures(base: &CellFigures, own: &CellFigures) -> Option<String> {
    let said = |cell: &CellFigures| {
        let all = cell.errors + cell.completed;
        match cell.errors {
            0 => format!("none of {}", numbers::count(all)),
            failed => format!(
                "{} of {} ({})",
                numbers::count(failed),
                numbers::count(all),
                numbers::percent(failed as f64 / all as f64)
            ),
        }
    };
    (base.errors + own.errors > 0).then(|| {
        let (theirs, ours) = (said(base), said(own));
        let (baseline, other) = (&base.subject, &own.subject);
        format!(
            "failed on {}: {baseline} {theirs}, {other} {ours}",
            place(own)
        )
    })
}

/// The part of an answer's bytes by which both sides may differ and still count as the same work: a number with another digit.
const LENGTHS_ALIKE: f64 = 0.01;

/// How many bytes an answer of both has, where that differs by more than it can by what is on its way when a window begins and ends.
fn lengths(base: &CellFigures, own: &CellFigures) -> Option<String> {
    // Of failed requests, too, there are bytes.
    if [base, own]
        .iter()
        .any(|of| of.is_invalid() || of.errors > 0)
    {
        return None;
    }
    let of = |cell: &CellFigures| cell.bytes_per_answer.as_ref().map(|bytes| bytes.median);
    let under_way = |cell: &CellFigures| {
        let windows = cell.bytes_per_answer.as_ref().map_or(1, |of| of.blocks);
        2.0 * f64::from(cell.connections) * windows as f64 / cell.completed.max(1) as f64
    };
    let by_chance = under_way(base) + under_way(own);
    let (theirs, ours) = (of(base)?, of(own)?);
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
    let failed = cell.trials.failed.first().map(|trial| trial.reason.clone());
    let codes: Vec<String> = cell.findings.iter().map(ToString::to_string).collect();
    failed.unwrap_or_else(|| match codes.is_empty() {
        true => "not measured".to_owned(),
        false => format!("invalid ({})", codes.join(", ")),
    })
}

fn of_cell(cell: &CellFigures, metric: Metric, ratio: &RatioFigure) -> Compared {
    let (own, baseline) = ratio.sides();
    let told = ratio.is_interval() && ratio.unclaimed.is_empty();
    Compared {
        place: with_settings(&place(cell), &cell.settings),
        metric: metric.key,
        baseline: Some(baseline),
        other: Some(own),
        ratio: ratio.ratio,
        interval: told.then_some((ratio.low, ratio.high)),
        conclusion: ratio.conclusion,
        bound: ratio.bound,
    }
}

fn place(cell: &CellFigures) -> String {
    match &cell.program {
        Some(program) => format!("{}, n = {}", cell.workload, numbers::count(program.count)),
        None => {
            let place = Group::of(cell).place();
            match &cell.search {
                Some(search) => {
                    let objective = search.objective_words();
                    format!("{place} (highest rate that keeps {objective})")
                }
                None => place,
            }
        }
    }
}

/// Compares two runs that were not interleaved, each an entry of a log, by the entries of a `history` that tell how far
/// sessions of the same state lie apart.
pub fn apart(baseline: &Entry, other: &Entry, history: &[Entry]) -> Comparison {
    let (pairs, left_out) = in_both(baseline, other);
    let same_machine = baseline.environment == other.environment;
    let further = history
        .iter()
        .filter(|e| e.environment == other.environment && e.id != baseline.id && e.id != other.id);
    let mut all: Vec<&Entry> = further.chain([baseline]).collect();
    all.sort_by_key(|entry| entry.started_unix_ms);
    let mut figures = Vec::new();
    let mut degrees = 0;
    let mut resolution: Option<f64> = None;
    let metrics: [(Metric, Value); 2] = [
        (Metric::RATE, |cell| cell.session),
        (Metric::CPU, |cell| cell.cpu_ns),
    ];
    for (metric, value) in metrics {
        for &(base, cell) in &pairs {
            let (Some(before), Some(after)) = (value(base), value(cell)) else {
                continue;
            };
            let at = |entry, cell, figure| Session {
                entry,
                cell,
                figure,
            };
            let (from, own) = (at(baseline, base, before), at(other, cell, after));
            // Of another machine the baseline is no session like the others, and nothing is claimed.
            let like = match same_machine {
                true => sessions(all.iter().copied(), &other.environment, cell, value),
                false => vec![from],
            };
            let compared = Sides::of(from, own, &like).compared(pairs.len());
            let Some(compared) = compared else { continue };
            if metric.is_rate() {
                degrees = degrees.max(compared.degrees);
                let least = compared.resolution.filter(|_| same_machine);
                resolution = resolution.into_iter().chain(least).reduce(f64::max);
            }
            let interval = compared.interval.filter(|_| same_machine);
            let interval = interval.map(|of| (of.low.0, of.high.0));
            figures.push(Compared {
                place: cell.id.clone(),
                metric: metric.key,
                baseline: Some(before),
                other: Some(after),
                ratio: compared.ratio.0,
                interval,
                conclusion: concluded(interval),
                bound: "",
            });
        }
    }
    let is_claimed = figures.iter().any(|f| f.interval.is_some());
    Comparison {
        schema: 1,
        baseline: baseline.run.clone(),
        other: other.run.clone(),
        figures,
        failed: Vec::new(),
        lengths: Vec::new(),
        left_out,
        detectable: resolution,
        basis: basis_apart(same_machine, is_claimed, degrees),
    }
}

/// The cells that both have a figure of, measured alike, and why others are left out.
fn in_both<'a>(
    baseline: &'a Entry,
    other: &'a Entry,
) -> (Vec<(&'a CellEntry, &'a CellEntry)>, Vec<String>) {
    let mut pairs = Vec::new();
    let mut left_out = Vec::new();
    for own in other.cells() {
        match baseline.cells().find(|base| base.id == own.id) {
            None => left_out.push(format!("{}: only {} has it", own.id, other.run)),
            Some(base) if base.series != own.series => left_out.push(format!(
                "{}: measured otherwise (request, blocks, window or cores differ)",
                own.id
            )),
            Some(base) if base.session.is_none() || own.session.is_none() => {
                left_out.push(format!(
                    "{}: no figure of its own in one of the two",
                    own.id
                ));
            }
            Some(base) => pairs.push((base, own)),
        }
    }
    (pairs, left_out)
}

fn concluded(interval: Option<(f64, f64)>) -> &'static str {
    match interval {
        None => "not-claimed",
        Some((low, _)) if low > 1.0 => "higher",
        Some((_, high)) if high < 1.0 => "lower",
        Some(_) => "no-difference-shown",
    }
}

fn basis_apart(same_machine: bool, is_claimed: bool, degrees: usize) -> String {
    match (same_machine, is_claimed) {
        (false, _) => "the two runs are of different machines or kernels, so that nothing is claimed".to_owned(),
        (true, true) => format!(
            "two sessions that were not interleaved, by how far sessions of one state lie apart in the history \
             ({degrees} degrees of freedom)"
        ),
        (true, false) => "the two runs were not interleaved, and no history tells how far sessions of the same code lie apart: \
             nothing is claimed (--runs names a folder with more runs, --interleave measures both in turns)"
            .to_owned(),
    }
}

/// The entry of a log that `other` stands against: the newest before it that measured another state of something that both
/// have; where there is none, the newest before it of all. `None`: there is none before it.
pub fn baseline_in<'a>(log: &'a [Entry], other: &Entry) -> Option<&'a Entry> {
    let before = log
        .iter()
        .filter(|entry| entry.started_unix_ms < other.started_unix_ms && entry.id != other.id);
    let mut before: Vec<&Entry> = before.collect();
    before.sort_by_key(|entry| entry.started_unix_ms);
    let is_other = |entry: &&&Entry| {
        let like = |cell: &CellEntry| {
            let own = other.cells().find(|own| own.series == cell.series);
            own.is_some_and(|own| own.state != cell.state)
        };
        entry.environment == other.environment && entry.cells().any(like)
    };
    let newest = before.last().copied();
    before.iter().rev().find(is_other).copied().or(newest)
}

impl Compared {
    /// What it is a figure of.
    fn of(&self) -> Metric {
        Metric::with_key(self.metric).expect("a metric of the registry")
    }

    /// By how much it is worse, as [`Metric::worse`] says.
    fn worse(&self) -> Option<(f64, f64)> {
        let (low, high) = self.interval?;
        Some(self.of().worse(low, high))
    }

    fn is_claimed(&self) -> bool {
        matches!(self.conclusion, "higher" | "lower")
    }

    /// How far the interval's nearer end is from no change, as a logarithm: what is sure of a claim.
    fn sure(&self) -> f64 {
        let distance = |of: f64| libm::log(of).abs();
        let ends = self.interval.filter(|_| self.is_claimed());
        ends.map_or(0.0, |(low, high)| distance(low).min(distance(high)))
    }

    /// Larger end of the interval, as a distance from no change.
    fn farthest(&self) -> Option<f64> {
        let (low, high) = self.interval?;
        Some((high - 1.0).abs().max((1.0 - low).abs()))
    }

    /// `7.9 % slower on hello with 100 connections (95 %: 6.1 to 9.6)`.
    fn words(&self) -> String {
        self.words_at(&format!(" on {}", self.place))
    }

    /// The same, with these words for where it is.
    fn words_at(&self, place: &str) -> String {
        let is_higher = self.ratio >= 1.0;
        let [more, less] = self.of().more_less;
        let how = if is_higher { more } else { less };
        let percent = |ratio: f64| {
            let part = (ratio - 1.0).abs() * 100.0;
            let decimals = usize::from(part < 9.95);
            format!("{part:.decimals$}")
        };
        let Some((low, high)) = self.interval else {
            return format!("{} % {how}{place}", percent(self.ratio));
        };
        let (near, far) = if is_higher { (low, high) } else { (high, low) };
        match self.bound {
            "" => format!(
                "{} % {how}{place} (95 %: {} to {})",
                percent(self.ratio),
                percent(near),
                percent(far)
            ),
            // What a bound leaves open is how much more; how much there is at least is the nearer end.
            _ => format!(
                "at least {} % {how}{place} ({} % as measured, which is a bound)",
                percent(near),
                percent(self.ratio)
            ),
        }
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
            (figure.interval, figure.conclusion, figure.bound) = (None, "not-claimed", "");
        }
        self.detectable = None;
        self.basis = format!(
            "the two runs were measured by different methods ({baseline} and {other}), so that their figures are not of the same \
             quantity and nothing is claimed"
        );
        self
    }

    /// The answer, in a sentence or two, which requests failed, and whether both did the same work.
    pub fn sentence(&self) -> String {
        let failed = self.failed.iter().map(|of| format!(" Requests {of}."));
        let lengths = self
            .lengths
            .iter()
            .map(|of| format!(" Unequal work: {of}."));
        self.of_figures() + &failed.chain(lengths).collect::<String>()
    }

    fn of_figures(&self) -> String {
        let mut claimed: Vec<&Compared> = self.figures.iter().filter(|f| f.is_claimed()).collect();
        claimed.sort_by(|a, b| b.sure().total_cmp(&a.sure()));
        let rest = self.figures.iter().filter(|f| !f.is_claimed());
        let within = rest.clone().filter_map(Compared::farthest).reduce(f64::max);
        // A figure without an interval (a bound, a figure that cannot be used) lies within nothing.
        let without = rest.clone().filter(|f| f.interval.is_none()).count();
        let (with, without) = match without {
            0 => ("", String::new()),
            1 => (" with an interval", ", and one has none".to_owned()),
            more => (" with an interval", format!(", and {more} have none")),
        };
        let within =
            within.map(|most| format!("{with} lies within {}{without}", numbers::percent(most)));
        if self.figures.is_empty() {
            return "Nothing is there to be compared.".to_owned();
        }
        if !self.figures.iter().any(|f| f.interval.is_some()) {
            return format!("No change is claimed: {}.", self.basis);
        }
        if claimed.is_empty() {
            return match within {
                Some(within) => format!(
                    "No difference between {} and {} is shown: every figure{within}.",
                    self.baseline, self.other
                ),
                None => format!("No change is claimed: {}.", self.basis),
            };
        }
        // Where all are of one place, that is said once.
        let place = &claimed[0].place;
        let is_one = self.figures.iter().all(|figure| figure.place == *place);
        let words = |figure: &&Compared| match is_one {
            true => figure.words_at(""),
            false => figure.words(),
        };
        let mut words: Vec<String> = claimed.iter().take(CLAIMS_MAX).map(words).collect();
        let more = claimed.len().saturating_sub(CLAIMS_MAX);
        if more > 0 {
            words.push(format!("{more} more below"));
        }
        let rest = match within {
            Some(within) => format!("; every other figure{within}"),
            None => String::new(),
        };
        let beside = match is_one {
            true => format!("On {place}, beside {}", self.baseline),
            false => format!("Beside {}", self.baseline),
        };
        format!("{beside}, {} is {}{rest}.", self.other, listed(&words))
    }

    /// What comes of it against a limit: 0.05 is 5 % worse. A figure without an interval is inconclusive; memory and starting, which
    /// each block measures once, fail it where they are surely worse, and leave it open to none.
    pub fn gate(&self, limit: f64) -> Gate {
        let of = |figure: &Compared| match figure.worse() {
            Some((least, _)) if least > limit => Gate::Failed,
            Some((_, most)) if most <= limit => Gate::Passed,
            _ if figure.of().measured => Gate::Passed,
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
            .map(Compared::words)
            .collect()
    }

    /// The figures as a table in Markdown, which is read on a terminal as well.
    pub fn table(&self) -> String {
        let row = |figure: &Compared| {
            let metric = figure.of();
            let value =
                |of: Option<f64>| of.map_or_else(|| numbers::NOTHING.to_owned(), metric.alone);
            let ends = figure.interval.map_or_else(
                || numbers::NOTHING.to_owned(),
                |(low, high)| format!("{} to {}", numbers::change(low), numbers::change(high)),
            );
            vec![
                crate::escape::markdown(&figure.place),
                metric.compared.to_owned(),
                value(figure.baseline),
                value(figure.other),
                format!("{} %", numbers::change(figure.ratio)),
                ends,
                match figure.conclusion {
                    "higher" | "lower" => "yes",
                    "no-difference-shown" => "not shown",
                    _ => numbers::NOTHING,
                }
                .to_owned(),
            ]
        };
        let rows: Vec<Vec<String>> = self.figures.iter().map(row).collect();
        let (baseline, other) = (
            crate::escape::markdown(&self.baseline),
            crate::escape::markdown(&self.other),
        );
        markdown::words(
            &[
                "where",
                "figure",
                &baseline,
                &other,
                "change",
                "95 %, together",
                "differs",
            ],
            &rows,
        )
    }

    /// What the claims rest on, and what they could have told.
    pub fn footing(&self) -> String {
        let power = self.detectable.map_or_else(String::new, |least| {
            format!(
                " A change in rate of {} or more would be claimed in 80 % of such comparisons.",
                numbers::percent(least)
            )
        });
        let mut chars = self.basis.chars();
        let basis: String = chars
            .next()
            .into_iter()
            .flat_map(char::to_uppercase)
            .chain(chars)
            .collect();
        format!("{basis}.{power}")
    }

    /// For a pull request: the sentence, the table, what it rests on.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "{}\n\n{}\n\n{}\n",
            crate::escape::markdown(&self.sentence()),
            self.table(),
            crate::escape::markdown(&self.footing())
        );
        for out in &self.left_out {
            text.push_str(&format!("\n- left out: {}", crate::escape::markdown(out)));
        }
        if !self.left_out.is_empty() {
            text.push('\n');
        }
        text
    }
}
