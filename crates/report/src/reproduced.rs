//! A run that was done again: how its machine differs, and what became of each claim of the first one.
//!
//! A claim is whatever the first run says to be higher or lower. The intervals of both runs decide:
//!
//! - **held**: the second run claims the same direction, and its interval reaches the first one's or lies beyond it;
//! - **held, smaller**: the same direction, and all of its interval is nearer to no difference than the first one's;
//! - **contradicted**: its interval excludes all that the first one's holds, and does not keep the direction;
//! - **not told**: anything else, and where the second run has no interval.
//!
//! Not for: measuring, or reading files.

use std::collections::BTreeMap;

use prony_record::{Environment, Fact};
use prony_stats::Conclusion;
use serde::Serialize;

use crate::markdown::filled;
use crate::metrics::Metric;
use crate::ratio::{OpenSide, RatioFigure};
use crate::{Run, numbers, sections, view};

/// What became of a claim.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CameTo {
    /// The opposite, or surely not so large and perhaps nothing.
    Contradicted,
    /// The second run cannot tell.
    NotTold,
    /// The same direction, surely smaller.
    HeldSmaller,
    /// The same direction, and no smaller as far as can be told.
    Held,
}

impl CameTo {
    /// As a reader is told.
    pub fn words(self) -> &'static str {
        match self {
            CameTo::Contradicted => "contradicted",
            CameTo::NotTold => "not told",
            CameTo::HeldSmaller => "held, smaller",
            CameTo::Held => "held",
        }
    }
}

/// A claim of the first run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// What it is about: a cell beside its baseline, a setting, a number of threads.
    pub what: String,
    /// `rate`, `p50`, `p99`, `cpu_subject` or `cpu_client`.
    pub metric: &'static str,
    /// The first run's ratio and interval.
    pub original: [f64; 3],
    /// The second run's; `None`: it has none.
    pub here: Option<[f64; 3]>,
    /// What became of it.
    pub came_to: CameTo,
    #[serde(skip)]
    words: [String; 2],
}

/// A first run and one that did it again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reproduction {
    /// Version of these figures.
    pub schema: u32,
    /// How the machines differ: what, there, here.
    pub differences: Vec<[String; 3]>,
    /// The claims, contradicted ones first.
    pub claims: Vec<Claim>,
}

/// Holds `again` against `original`.
pub fn reproduced(original: &Run, again: &Run) -> Reproduction {
    let here = ratios(again);
    let mut claims = Vec::new();
    for ((what, metric), was) in ratios(original) {
        if !was.is_difference() {
            continue;
        }
        let now = here.get(&(what.clone(), metric));
        let ends = |of: &RatioFigure| [of.ratio, of.low, of.high];
        claims.push(Claim {
            came_to: came_to(&was, now),
            original: ends(&was),
            here: now.map(ends),
            words: [
                numbers::change_of(&was),
                now.map_or_else(|| numbers::NOTHING.to_owned(), numbers::change_of),
            ],
            what,
            metric,
        });
    }
    claims.sort_by_key(|claim| claim.came_to);
    Reproduction {
        schema: 1,
        differences: differences(&original.environment, &again.environment),
        claims,
    }
}

/// All ratios of a run by what they are about. Copies of a baseline claim nothing.
fn ratios(run: &Run) -> BTreeMap<(String, &'static str), RatioFigure> {
    let computed = view::compute(run);
    let mut all = BTreeMap::new();
    let mut add = |what: String, metric: &'static str, ratio: &RatioFigure| {
        all.insert((what, metric), ratio.clone());
    };
    for cell in computed.cells.iter().filter(|cell| !cell.is_copy) {
        let own = Metric::claimed().filter_map(|of| Some((of.key, of.ratio(cell)?)));
        let client = cell.client.as_ref().and_then(|of| of.cpu_ratio.as_ref());
        for (metric, ratio) in own.chain(client.map(|ratio| ("cpu_client", ratio))) {
            let what = format!("{} against {}", cell.cell, ratio.reference_cell);
            add(what, metric, ratio);
        }
    }
    let rate = Metric::RATE.key;
    for of in computed.programs.iter().flat_map(|of| &of.effects) {
        let (name, place) = (&of.setting, of.workload.as_deref().unwrap_or("all works"));
        let values = format!("{name}={} against {name}={}", of.value, of.base);
        add(
            format!("{} on {place}: {values}", of.subject),
            rate,
            &of.ratio,
        );
    }
    for of in computed.programs.iter().flat_map(|of| &of.efficiencies) {
        let against = &of.ratio.reference_cell;
        add(
            format!("{} by thread against {against}", of.cell),
            rate,
            &of.ratio,
        );
    }
    for of in computed.clients.iter().flat_map(|of| &of.steps) {
        let against = &of.ratio.reference_cell;
        add(
            format!("{} against {against}: more {}", of.cell, of.what),
            rate,
            &of.ratio,
        );
    }
    all
}

/// What became of `was`, which is claimed.
fn came_to(was: &RatioFigure, now: Option<&RatioFigure>) -> CameTo {
    let Some(now) = now.filter(|now| now.interval().is_some()) else {
        return CameTo::NotTold;
    };
    let is_up = was.conclusion == Conclusion::Higher;
    // As if all were claimed to be higher: the end that is nearer to no difference comes first.
    let ends = |of: &RatioFigure| match is_up {
        true => (of.low, of.high),
        false => (1.0 / of.high, 1.0 / of.low),
    };
    let same_bound = if is_up {
        OpenSide::AtLeast
    } else {
        OpenSide::AtMost
    };
    let (nearest, _) = ends(was);
    let (low, high) = ends(now);
    // What is at least so much more may be any more.
    let high = if now.bound == Some(same_bound) {
        f64::INFINITY
    } else {
        high
    };
    match (low > 1.0, high < nearest) {
        (true, false) => CameTo::Held,
        (true, true) => CameTo::HeldSmaller,
        (false, true) => CameTo::Contradicted,
        (false, false) => CameTo::NotTold,
    }
}

/// What of two machines differs: what, there, here.
fn differences(there: &Environment, here: &Environment) -> Vec<[String; 3]> {
    let named = |e: &Environment| -> Vec<Fact> {
        let own = [
            sections::fact("method", e.method.to_string()),
            sections::fact("driver", e.driver.clone()),
        ];
        let tools = sections::tools(e).chain(e.facts.iter().cloned());
        let machine = sections::machine(e).into_iter().chain(own);
        machine.chain(tools).collect()
    };
    sections::differing(&named(there), &named(here))
}

/// The day of a moment, in UTC: `2026-03-01`.
pub fn day(unix_ms: u64) -> String {
    numbers::moment(unix_ms).chars().take(10).collect()
}

impl Reproduction {
    /// How many claims came to `what`.
    pub fn count(&self, what: CameTo) -> usize {
        self.claims
            .iter()
            .filter(|claim| claim.came_to == what)
            .count()
    }

    /// The answer, in a sentence.
    pub fn sentence(&self) -> String {
        if self.claims.is_empty() {
            return "The run in the bundle makes no claims: nothing to check.".to_owned();
        }
        let all = [
            CameTo::Held,
            CameTo::HeldSmaller,
            CameTo::NotTold,
            CameTo::Contradicted,
        ];
        let parts = all.map(|what| format!("{} {}", self.count(what), what.words()));
        let claims = numbers::counted(self.claims.len() as u64, "claim");
        format!("Of {claims} of the bundle: {}.", parts.join("; "))
    }

    /// How the machines differ, and the claims, as tables in Markdown.
    pub fn tables(&self) -> String {
        let shown = |text: &str| match text {
            "" => numbers::NOTHING.to_owned(),
            text => crate::escape::markdown(text),
        };
        let differ = self.differences.iter();
        let differ = differ.map(|row| row.each_ref().map(|text| shown(text)));
        let claims = self.claims.iter().map(|claim| {
            let [there, here] = claim.words.clone();
            let (what, metric) = (shown(&claim.what), shown(claim.metric));
            [what, metric, there, here, claim.came_to.words().to_owned()]
        });
        let differ = match self.differences.is_empty() {
            true => "The machine is the same, as far as is recorded.".to_owned(),
            false => filled(["what differs", "bundle", "here"], 0..0, differ),
        };
        if self.claims.is_empty() {
            return differ;
        }
        let claims = filled(["claim", "figure", "bundle", "here", "it"], 0..0, claims);
        format!("{differ}\n\n{claims}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six pairs whose logarithms lie `apart` around that of `ratio`.
    fn around(ratio: f64, apart: f64) -> RatioFigure {
        let steps = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5];
        let pairs = steps.map(|step: f64| (ratio * libm::exp(step * apart), 1.0));
        RatioFigure::from_pairs("baseline", pairs.to_vec()).expect("pairs")
    }

    #[test]
    fn the_intervals_of_both_decide() {
        for (was, now, right) in [
            (around(1.5, 0.01), around(1.5, 0.01), CameTo::Held),
            (around(1.5, 0.01), around(1.9, 0.01), CameTo::Held),
            (around(1.5, 0.01), around(1.2, 0.01), CameTo::HeldSmaller),
            (around(1.5, 0.01), around(1.0, 0.01), CameTo::Contradicted),
            (around(1.5, 0.01), around(0.8, 0.01), CameTo::Contradicted),
            (around(1.5, 0.01), around(1.2, 0.2), CameTo::NotTold),
            (around(0.5, 0.01), around(0.5, 0.01), CameTo::Held),
            (around(0.5, 0.01), around(0.3, 0.01), CameTo::Held),
            (around(0.5, 0.01), around(0.9, 0.01), CameTo::HeldSmaller),
            (around(0.5, 0.01), around(1.0, 0.01), CameTo::Contradicted),
            (around(0.5, 0.01), around(1.5, 0.01), CameTo::Contradicted),
            (around(0.5, 0.01), around(0.8, 0.3), CameTo::NotTold),
        ] {
            assert_eq!(
                came_to(&was, Some(&now)),
                right,
                "{} then {}",
                was.ratio,
                now.ratio
            );
        }
        let was = around(1.5, 0.01);
        assert_eq!(came_to(&was, None), CameTo::NotTold);
        // Five pairs have no interval.
        let few = RatioFigure::from_pairs("baseline", vec![(1.5, 1.0); 5]).expect("pairs");
        assert_eq!(came_to(&was, Some(&few)), CameTo::NotTold);
        let mut bound = around(1.2, 0.01);
        bound.bound = Some(OpenSide::AtLeast);
        assert_eq!(came_to(&was, Some(&bound)), CameTo::Held);
        let mut unclaimed = around(0.5, 0.01);
        unclaimed.unclaimed = Some(crate::ratio::Unclaimed::Copy);
        assert_eq!(came_to(&was, Some(&unclaimed)), CameTo::NotTold);
    }

    #[test]
    fn only_what_differs_of_two_machines_is_named() {
        let fact = |value: &str| Fact {
            name: "smt".to_owned(),
            value: value.to_owned(),
        };
        let there = Environment {
            cpus: 2,
            kernel: "Linux 6".to_owned(),
            facts: vec![fact("on")],
            ..Environment::default()
        };
        assert!(differences(&there, &there).is_empty());
        let mut here = there.clone();
        (here.cpus, here.facts) = (4, Vec::new());
        let told = |a: &str, b: &str, c: &str| [a, b, c].map(str::to_owned);
        assert_eq!(
            differences(&there, &here),
            [told("processors", "2", "4"), told("smt", "on", "")]
        );
        assert_eq!(day(1_795_457_888_083), "2026-11-23");
    }
}
