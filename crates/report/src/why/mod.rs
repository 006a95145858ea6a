//! The section "Why": what profiles say of where the subjects' time went.
//!
//! A profile comes from a trial of its own, in which looking slowed the server down: no figure, claim or finding knows it
//! ([`measured`] takes these trials away before anything is computed). Not for: taking profiles.

mod flame;
mod shares;
mod threads;
mod words;

use std::borrow::Cow;

use prony_record::{Outcome, Trial, layout};
use serde::Serialize;

use crate::lists::push_new;
use crate::part::Captioned;
use crate::words::{capitalised, paragraphs};
use crate::{Run, numbers};
use shares::{Seen, seen};

/// Flame graphs that the document itself shows; of more it has links.
const SHOWN_MAX: usize = 4;

/// The section.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// How the profiles came about, and what they cannot say.
    pub before: Vec<String>,
    /// One for each cell that was profiled.
    pub profiles: Vec<Profile>,
    /// By thread.
    pub threads: Option<Captioned>,
    /// What could not be had, and profile trials that failed.
    pub after: Vec<String>,
}

/// What is said of one cell.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    /// The cell.
    pub cell: String,
    /// Where its time went.
    pub sentence: String,
    /// The picture, in the run directory; empty where there is none.
    pub file: String,
    /// Whether the document shows the picture, and not only a link to it.
    pub shown: bool,
    /// The picture itself.
    #[serde(skip)]
    pub svg: String,
}

impl Why {
    /// Every picture: its path in the run directory, and its text.
    pub fn pictures(&self) -> impl Iterator<Item = (String, String)> {
        let drawn = self.profiles.iter().filter(|of| !of.svg.is_empty());
        drawn.map(|profile| (profile.file.clone(), profile.svg.clone()))
    }

    /// Every picture as an address that holds it, one a profile; empty where a profile has none.
    pub fn addresses(&self) -> Vec<String> {
        let address = |profile: &Profile| match profile.svg.as_str() {
            "" => String::new(),
            svg => flame::address(svg),
        };
        self.profiles.iter().map(address).collect()
    }
}

/// `run` without the trials that profile.
pub fn measured(run: &Run) -> Cow<'_, Run> {
    if !run.trials.iter().any(|trial| trial.generator.is_profile()) {
        return Cow::Borrowed(run);
    }
    let mut own = run.clone();
    own.trials.retain(|trial| !trial.generator.is_profile());
    own.profiles.clear();
    Cow::Owned(own)
}

/// The section; `None` where nothing was profiled.
pub fn why(run: &Run) -> Option<Why> {
    let trials = run.trials.iter().filter(|t| t.generator.is_profile());
    let trials: Vec<&Trial> = trials.collect();
    if trials.is_empty() {
        return None;
    }
    let cells = run.plan.cells.iter();
    let seen: Vec<Seen<'_>> = cells.filter_map(|c| seen(&c.id, &trials)).collect();
    let graphs = seen.iter().filter(|of| of.folded(run).is_some()).count();
    let profiles = seen.iter().enumerate().map(|(at, seen)| {
        let folded = seen.folded(run);
        let svg = folded.map_or_else(String::new, |folded| flame::svg(seen.cell, folded));
        let file = match svg.is_empty() {
            true => String::new(),
            false => format!("{}/flame-{}.svg", layout::PICTURES, at + 1),
        };
        Profile {
            cell: seen.cell.to_owned(),
            sentence: words::sentence(seen, folded.unwrap_or_default()),
            shown: graphs <= SHOWN_MAX,
            file,
            svg,
        }
    });
    Some(Why {
        profiles: profiles.collect(),
        before: before(run),
        threads: threads::table(&seen),
        after: after(&trials),
    })
}

fn before(run: &Run) -> Vec<String> {
    let planned = run.plan.profile.clone().unwrap_or_default();
    let mut lines = paragraphs("profiles");
    lines[0] = lines[0]
        .replace("{window}", &numbers::duration(planned.window_ns))
        .replace("{rate}", &planned.rate_per_s.to_string());
    lines
}

/// Refusals, each once, and trials that failed.
fn after(trials: &[&Trial]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for trial in trials {
        let refused = trial.profile.iter().flat_map(|profile| &profile.refused);
        for sentence in refused {
            push_new(&mut lines, format!("{}.", capitalised(sentence)));
        }
        if let Outcome::Failed { reason, .. } = &trial.outcome {
            lines.push(format!("{} has no profile: {reason}.", trial.cell));
        }
    }
    lines
}

#[cfg(test)]
pub(crate) mod tests;
