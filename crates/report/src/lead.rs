//! Who is the fastest of some programs or clients, where intervals say it, and how that is put into words.
//!
//! Not for: servers, of which `against` tells; what may be claimed, which `claims` settles.

use crate::figures::CellFigures;
use crate::numbers;
use crate::ratio::RatioFigure;
use crate::words::listed;

/// Who leads.
pub enum Lead<'a> {
    /// One that is shown to be faster than the reference.
    Faster {
        /// Its name.
        name: String,
        /// Its rate over the reference's.
        ratio: &'a RatioFigure,
        /// Others whose intervals overlap with its own.
        beside: Vec<String>,
        /// Others that may be faster still, but have no interval, as their blocks stand in two groups.
        untold: Vec<(String, &'a RatioFigure)>,
        /// The reference's name.
        reference: String,
    },
    /// Nobody is shown to be: of these it is not shown that they are slower.
    NoneFaster {
        /// The reference's name.
        reference: String,
        /// Their names.
        alike: Vec<String>,
    },
    /// The reference.
    Reference {
        /// Its name.
        reference: String,
        /// Who comes next.
        next: String,
        /// The rate of that one over the reference's.
        ratio: &'a RatioFigure,
    },
}

/// Who leads, where intervals say it; `name` is what a cell is called.
pub fn leader<'a>(
    cells: &[&'a CellFigures],
    name: &dyn Fn(&CellFigures) -> String,
) -> Option<Lead<'a>> {
    let reference = name(cells.iter().find(|c| c.is_reference)?);
    let with = |c: &&&'_ CellFigures| c.ratio.is_some() && !c.is_copy;
    let all = cells.iter().filter(with);
    let all = all.filter_map(|c| Some((name(c), c.ratio.as_ref()?)));
    let (others, without): (Vec<(String, &RatioFigure)>, Vec<_>) =
        all.partition(|(_, ratio)| ratio.is_interval());
    let higher = || others.iter().filter(|(_, r)| r.conclusion == "higher");
    if let Some((first, best)) = higher().max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)) {
        let beside = higher().filter(|(other, r)| other != first && r.high >= best.low);
        let untold = |(_, r): &(String, &RatioFigure)| r.high >= best.low;
        return Some(Lead::Faster {
            name: first.clone(),
            ratio: best,
            beside: beside.map(|(other, _)| other.clone()).collect(),
            untold: without.into_iter().filter(untold).collect(),
            reference,
        });
    }
    let alike = others.iter().filter(|(_, r)| r.conclusion != "lower");
    let alike: Vec<String> = alike.map(|(name, _)| name.clone()).collect();
    if !alike.is_empty() {
        return Some(Lead::NoneFaster { reference, alike });
    }
    let mut others = others.into_iter();
    let first = others.next()?;
    let (next, ratio) = others.fold(first, |a, b| if b.1.ratio > a.1.ratio { b } else { a });
    Some(Lead::Reference {
        reference,
        next,
        ratio,
    })
}

impl Lead<'_> {
    /// The reference's name.
    pub fn reference(&self) -> &str {
        match self {
            Lead::Faster { reference, .. }
            | Lead::NoneFaster { reference, .. }
            | Lead::Reference { reference, .. } => reference,
        }
    }

    /// As a part of a sentence.
    pub fn words(&self) -> String {
        match self {
            Lead::Faster {
                name,
                ratio,
                beside,
                untold,
                reference,
            } => {
                let beside = match beside.is_empty() {
                    true => String::new(),
                    false => format!(" (the interval of {} overlaps)", listed(beside)),
                };
                let than = by_how_much(ratio);
                if untold.is_empty() {
                    return format!(
                        "fastest is {name} with {than} the rate of {reference}{beside}"
                    );
                }
                let of = |(other, r): &(String, &RatioFigure)| {
                    let [low, high] = [r.low, r.high].map(numbers::ratio);
                    format!("{other} had {low}–{high} times the rate of {reference}")
                };
                let untold: Vec<String> = untold.iter().map(of).collect();
                format!(
                    "{} in blocks that stand in two groups, so that nothing is claimed of it; of the others the fastest is {name} with \
                     {than}{beside}",
                    listed(&untold)
                )
            }
            Lead::NoneFaster { reference, alike } => format!(
                "none is shown to be faster than {reference}, and {} not to be slower",
                listed(alike)
            ),
            Lead::Reference {
                reference,
                next,
                ratio,
            } => format!(
                "fastest is {reference}, and the nearest to it is {next}, {}",
                numbers::change_of(ratio)
            ),
        }
    }
}

/// `4.26 (3.72–4.89) times`; under twice `28 % (4.2–58) more than`.
fn by_how_much(of: &RatioFigure) -> String {
    let bound = if of.bound == "at-least" {
        "at least "
    } else {
        ""
    };
    let shown = [of.ratio, of.low, of.high];
    if of.ratio >= 2.0 {
        let [ratio, low, high] = shown.map(numbers::ratio);
        return format!("{bound}{ratio} ({low}–{high}) times");
    }
    let [ratio, low, high] = shown.map(|r| numbers::change(r).trim_start_matches('+').to_owned());
    format!("{bound}{ratio} % ({low}–{high}) more than")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(subject: &str, ratio: Option<(f64, f64, f64)>, is_interval: bool) -> CellFigures {
        let ratio = ratio.map(|(low, ratio, high)| RatioFigure {
            ratio,
            low,
            high,
            blocks: 6,
            spread: if is_interval { "interval" } else { "range" },
            conclusion: match is_interval {
                false => "not-claimed",
                true if low > 1.0 => "higher",
                true => "lower",
            },
            ..RatioFigure::default()
        });
        CellFigures {
            subject: subject.to_owned(),
            is_reference: ratio.is_none(),
            ratio,
            ..CellFigures::default()
        }
    }

    fn said(others: &[CellFigures]) -> String {
        let reference = cell("tokio", None, true);
        let all: Vec<&CellFigures> = others.iter().chain([&reference]).collect();
        let lead = leader(&all, &|cell| cell.subject.clone());
        lead.map_or_else(String::new, |lead| lead.words())
    }

    #[test]
    fn who_has_no_interval_is_not_passed_over() {
        let beaten = cell("cpp", Some((2.13, 2.19, 2.24)), true);
        let fastest = cell("ours", Some((4.69, 4.76, 4.87)), false);
        assert_eq!(
            said(&[fastest, beaten.clone()]),
            "ours had 4.69–4.87 times the rate of tokio in blocks that stand in two groups, so that nothing is claimed of it; of the others \
             the fastest is cpp with 2.19 (2.13–2.24) times"
        );
        let slower = cell("ours", Some((1.5, 1.7, 2.1)), false);
        assert_eq!(
            said(&[slower, beaten]),
            "fastest is cpp with 2.19 (2.13–2.24) times the rate of tokio"
        );
    }
}
