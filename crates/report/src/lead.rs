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
    let others: Vec<(String, &RatioFigure)> = cells
        .iter()
        .filter(with)
        .filter_map(|c| Some((name(c), c.ratio.as_ref()?)))
        .filter(|(_, ratio)| ratio.is_interval())
        .collect();
    let higher = || others.iter().filter(|(_, r)| r.conclusion == "higher");
    if let Some((first, best)) = higher().max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)) {
        let beside = higher().filter(|(other, r)| other != first && r.high >= best.low);
        return Some(Lead::Faster {
            name: first.clone(),
            ratio: best,
            beside: beside.map(|(other, _)| other.clone()).collect(),
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
                reference,
            } => {
                let beside = match beside.is_empty() {
                    true => String::new(),
                    false => format!(" (the interval of {} overlaps)", listed(beside)),
                };
                let than = by_how_much(ratio);
                format!("fastest is {name} with {than} the rate of {reference}{beside}")
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
