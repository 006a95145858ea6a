//! The answer of a run: of each question a ranking, and around it who leads and by how much, how sure that is, and what limited it.
//!
//! Servers, searches, programs, rows and clients say what their questions are; everything else is made here, for all of them. The terminal
//! (`text`), Markdown and the page show the same value. Not for: what may be claimed, which `claims` settles.

pub mod chart;
pub mod ranking;
pub mod text;

use prony_base::counted;
use prony_findings::{Code, Verdict};
use prony_record::{METHOD, Plan};
use prony_stats::BLOCKS_INTERVAL_MIN;
use serde::Serialize;

use crate::figures::CellFigures;
use crate::kinds::Kinds;
use crate::lists::{distinct, push_under};
use crate::metrics::Metric;
use crate::words::few;
use crate::{Run, claims, method, numbers};
use crate::{clients, machine, programs, rows, search, servers};
use ranking::{BASELINE, FOREMOST, Ranked, RankedQuestion, Ranking};

/// What a run answers.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answer {
    /// Who leads, and by how much.
    pub leads: Vec<String>,
    /// How sure that is.
    pub sure: Vec<String>,
    /// What limited it, or speaks against some of it.
    pub limits: Vec<String>,
    /// What came of what is required.
    pub required: Vec<String>,
    /// The rankings of the foremost questions.
    pub rankings: Vec<Ranking>,
    /// Those of all other questions.
    pub more: Vec<Ranking>,
}

/// Leaders that are named: of more their number is told.
const NAMED_MAX: usize = 3;

/// What each kind of work asks of its subjects.
pub fn questions<'a>(run: &'a Run, cells: &'a [CellFigures]) -> [Vec<RankedQuestion<'a>>; 5] {
    [
        servers::questions(cells),
        search::questions(run, cells),
        programs::questions(run, cells),
        rows::questions(run, cells),
        clients::questions(run, cells),
    ]
}

/// The answer that the figures allow.
pub fn answer(run: &Run, cells: &[CellFigures]) -> Answer {
    let ranked =
        |of: Vec<RankedQuestion<'_>>| of.iter().filter_map(Ranking::from_question).collect();
    let kinds: Vec<Vec<Ranking>> = questions(run, cells).into_iter().map(ranked).collect();
    let (rankings, more) = foremost(kinds);
    let mut leads: Vec<String> = method::mark(run.plan.method, METHOD).into_iter().collect();
    if rankings.is_empty() {
        leads.push(nothing(run, cells));
        return Answer {
            leads,
            ..Answer::default()
        };
    }
    let all = || rankings.iter().chain(&more);
    let limits = limits(run, cells, all());
    let is_compared = all().any(|of| !of.baseline.is_empty());
    let alone: Option<Vec<String>> = all().map(|of| alone(of, cells)).collect();
    // Where nobody is compared with anybody, a sentence each says it all.
    let (lines, rankings, more) = match alone {
        Some(lines) => (lines, Vec::new(), Vec::new()),
        None => (all_leads(&rankings, &more), rankings, more),
    };
    leads.extend(lines.into_iter().take(FOREMOST));
    Answer {
        leads,
        sure: sure(run, cells, is_compared),
        limits,
        required: Vec::new(),
        rankings,
        more,
    }
}

/// What is told of one subject alone; `None` where there are several.
fn alone(of: &Ranking, cells: &[CellFigures]) -> Option<String> {
    let ([row], []) = (&of.rows[..], &of.left_out[..]) else {
        return None;
    };
    let cell = cells.iter().find(|cell| cell.cell == row.cell)?;
    let metrics = [Metric::P50, Metric::P99, Metric::CPU];
    let metrics = metrics
        .into_iter()
        .filter(|own| cell.is_server() && own.shown.title != of.metric);
    let more = metrics.filter_map(|of| {
        let value = of.value(cell)?;
        Some(format!(", {} {}", of.compared, of.alone.text(value)))
    });
    let more: String = more.collect();
    Some(format!(
        "{}: {} {} {}{more}.",
        of.title, row.name, row.value, of.metric
    ))
}

impl Answer {
    /// Its sentences, to be changed.
    pub fn sentences_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let all = self.leads.iter_mut().chain(&mut self.sure);
        all.chain(&mut self.limits).chain(&mut self.required)
    }

    /// Its sentences, in the order in which they are read.
    pub fn sentences(&self) -> impl Iterator<Item = &String> {
        let all = self.leads.iter().chain(&self.sure).chain(&self.limits);
        all.chain(&self.required)
    }
}

/// The first questions of each kind in turn, and the others.
fn foremost(kinds: Vec<Vec<Ranking>>) -> (Vec<Ranking>, Vec<Ranking>) {
    let mut kinds: Vec<_> = kinds.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    loop {
        let before = all.len();
        all.extend(kinds.iter_mut().filter_map(Iterator::next));
        if all.len() == before {
            break;
        }
    }
    let more = all.split_off(all.len().min(FOREMOST));
    (all, more)
}

/// Who leads: a sentence each of few questions, of many how often who does.
fn all_leads(rankings: &[Ranking], more: &[Ranking]) -> Vec<String> {
    let is_decided = |of: &&Ranking| of.first().next().is_some();
    let contests: Vec<&Ranking> = rankings.iter().chain(more).filter(is_decided).collect();
    if more.is_empty() || contests.len() <= FOREMOST {
        return rankings.iter().map(lead).collect();
    }
    let mut by_name: Vec<(&str, Vec<&Ranking>)> = Vec::new();
    for ranking in &contests {
        if let [one] = ranking.first().collect::<Vec<_>>()[..] {
            push_under(&mut by_name, one.name.as_str(), *ranking);
        }
    }
    by_name.sort_by_key(|(_, own)| std::cmp::Reverse(own.len()));
    let led: usize = by_name.iter().map(|(_, own)| own.len()).sum();
    let often = by_name.iter().take(NAMED_MAX).enumerate();
    let often = often.map(|(at, (name, own))| {
        let leads = if at == 0 { " leads" } else { "" };
        format!("{name}{leads} on {}", own.len())
    });
    let often = often.collect::<Vec<_>>().join(", ");
    let (all, alone) = (contests.len(), contests.len() - led);
    let mut lines = vec![match (led, alone) {
        (0, _) => format!("Nobody leads alone on any of {all} questions."),
        (_, 0) => format!("Of {all} questions {often}."),
        (_, alone) => format!("Of {all} questions {often}; nobody alone on {alone}."),
    }];
    lines.extend(rankings.iter().map(lead).take(FOREMOST - 1));
    lines
}

/// Who leads, and by how much.
fn lead(of: &Ranking) -> String {
    let first: Vec<&Ranked> = of.first().collect();
    let title = &of.title;
    let next = of
        .rows
        .iter()
        .find(|row| row.place.is_some() && !row.is_first());
    match (&first[..], next) {
        _ if of.is_of_costs => farthest(of),
        ([], _) => unranked(of),
        ([one], Some(next)) if one.beside == BASELINE => format!(
            "{title}: {} leads; next is {}, {} beside it.",
            one.name, next.name, next.beside
        ),
        ([one], _) => format!(
            "{title}: {} leads, {} beside {}.",
            one.name, one.beside, of.baseline
        ),
        (_, next) => {
            let who = match first.len() <= NAMED_MAX {
                true => few(&first.iter().map(|row| row.name.clone()).collect::<Vec<_>>()),
                false => format!("{} of {}", first.len(), of.rows.len()),
            };
            let next = next.map_or_else(String::new, |next| match next.beside.as_str() {
                BASELINE => format!("; next is {}, the baseline", next.name),
                beside => format!("; next is {}, {beside} beside {}", next.name, of.baseline),
            });
            format!("{title}: {who} share the first place{next}.")
        }
    }
}

/// The row that is farthest from what all are compared with.
fn farthest(of: &Ranking) -> String {
    let far = |row: &&Ranked| row.claimed.map(|ratio| libm::log(ratio).abs());
    let claimed = of.rows.iter().filter(|row| far(row).is_some());
    let most = claimed.max_by(|a, b| far(a).unwrap_or(0.0).total_cmp(&far(b).unwrap_or(0.0)));
    let is_silent = |row: &Ranked| far(&row).is_none() && row.beside != BASELINE;
    // What is passed over may have changed more.
    let told = match of.rows.iter().any(is_silent) {
        true => " told",
        false => "",
    };
    match most {
        Some(most) => format!(
            "{}: the largest change{told} is {}, {}.",
            of.title, most.name, most.beside
        ),
        None if of.baseline.is_empty() => unranked(of),
        None => format!("{}: no difference is shown.", of.title),
    }
}

/// Who stands first where no order is claimed.
fn unranked(of: &Ranking) -> String {
    let title = &of.title;
    match of.rows.first() {
        Some(first) => {
            let value = &first.value;
            let figure = match of.is_named_in_title() {
                true => value.clone(),
                false => format!("{value} {}", of.metric),
            };
            let name = &first.name;
            format!("{title}: no order is claimed; {name} has the best figure, {figure}.")
        }
        None => format!("{title}: no figure can be used."),
    }
}

fn nothing(run: &Run, cells: &[CellFigures]) -> String {
    let failed = cells.iter().filter(|c| !c.trials.failed.is_empty()).count();
    let why = if failed > 0 {
        format!(
            "all {} that were tried failed; why is below",
            counted(failed, "cell")
        )
    } else if run.plan.not_run.is_empty() && cells.is_empty() {
        "the plan holds no cell".to_owned()
    } else if cells.is_empty() {
        "this machine can run none of what the experiment names".to_owned()
    } else {
        "no trial has ended yet".to_owned()
    };
    format!("Nothing was measured: {why}.")
}

/// What the subjects of a run are called.
fn noun(plan: &Plan) -> &'static str {
    let kinds = Kinds::from_plan(plan);
    match (kinds.servers, kinds.programs, kinds.clients) {
        (true, false, false) => "server",
        (false, true, false) => "program",
        (false, false, true) => "client",
        _ => "subject",
    }
}

/// How often all was measured, and what that is too little for.
fn sure(run: &Run, cells: &[CellFigures], is_compared: bool) -> Vec<String> {
    let plan = &run.plan;
    let measured = cells.iter().map(|cell| cell.trials.measured.len());
    let measured = measured.filter(|blocks| *blocks > 0);
    let least = measured.clone().min().unwrap_or(0);
    let blocks = measured.max().unwrap_or(0);
    let times = match (least, blocks) {
        (_, 1) => "once".to_owned(),
        (least, most) if least < most => format!("{least} to {most} times"),
        (_, n) => format!("{n} times"),
    };
    let length = match plan.duration_ns {
        0 => String::new(),
        ns => format!(" for {}", numbers::duration(ns)),
    };
    let mut lines = vec![format!("Each {} was measured {times}{length}.", noun(plan))];
    // Where nothing is ranked beside a baseline, nothing is told of rates.
    let resolutions = claims::resolutions(plan, cells);
    let detectable = resolutions
        .iter()
        .filter(|of| is_compared && of.comparisons > 0);
    let detectable: Vec<f64> = detectable.filter_map(|of| of.detectable).collect();
    let by = |of: fn(f64, f64) -> f64| detectable.iter().copied().reduce(of).unwrap_or(0.0);
    if claims::copy_differs(cells, Metric::RATE) {
        lines.push(
            "A copy of the baseline came out different, so nothing is claimed of rates.".to_owned(),
        );
    } else if !detectable.is_empty() {
        let (least, most) = (by(f64::min), by(f64::max));
        let under = match most > 1.2 * least {
            true => format!("{} to {}", about(least), about(most)),
            false => about(most),
        };
        lines.push(format!(
            "Differences under about {under} % would be missed."
        ));
    } else if blocks < BLOCKS_INTERVAL_MIN {
        lines.push(match plan.quick && plan.visits.is_some() {
            true => "A quick look: only large differences are ranked.".to_owned(),
            false => format!("A first look: a ranking takes {BLOCKS_INTERVAL_MIN} blocks."),
        });
    }
    lines
}

/// A share in whole per cent, or with a decimal where it is small.
fn about(share: f64) -> String {
    let percents = 100.0 * share;
    let decimals = usize::from(percents < 9.95);
    format!("{percents:.decimals$}")
}

/// What was the limit, what failed, and what the machine did.
fn limits<'a>(
    run: &Run,
    cells: &[CellFigures],
    rankings: impl Iterator<Item = &'a Ranking>,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut values = rankings.flat_map(|of| &of.rows).map(|row| &row.value);
    if values.any(|value| value.starts_with(['≥', '≤'])) {
        let is_limit = |code| {
            let mut bounds = cells.iter().filter(|c| c.verdict == Some(Verdict::Bound));
            bounds.any(|cell| cell.findings.contains(&code))
        };
        let who = match (is_limit(Code::P001), is_limit(Code::P020)) {
            (true, true) => "the generator, or the other side,",
            (false, true) => "the other side",
            _ => "the generator",
        };
        lines.push(format!("≥, ≤: {who} was the limit."));
    }
    let failed = cells.iter().filter(|c| c.findings.contains(&Code::P010));
    let failed = distinct(failed.map(|cell| cell.subject.clone()));
    if !failed.is_empty() {
        lines.push(format!("Trials failed of {}.", few(&failed)));
    }
    lines.extend(machine::sentence(&run.environment));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_change_of_rows_of_which_some_tell_nothing_is_the_largest_that_is_told() {
        let row = |name: &str, beside: &str, claimed: Option<f64>| Ranked {
            name: name.to_owned(),
            beside: beside.to_owned(),
            claimed,
            ..Ranked::default()
        };
        let mut ranking = Ranking {
            title: "Backends".to_owned(),
            baseline: "none".to_owned(),
            is_of_costs: true,
            rows: vec![
                row("none", BASELINE, None),
                row("file", "−10 %", Some(0.9)),
                row("Redis", "−50 %", Some(0.5)),
            ],
            ..Ranking::default()
        };
        let all = "Backends: the largest change is Redis, −50 %.";
        assert_eq!(lead(&ranking), all);
        ranking.rows.push(row("SQLite", "not told", None));
        let told = "Backends: the largest change told is Redis, −50 %.";
        assert_eq!(lead(&ranking), told);
    }
}
