//! Values of the command line that several commands take: what an experiment's file may ask for, too.

use prony_base::Nanos;
use prony_base::typed::duration;
use prony_lab::experiment::{BLOCKS, BUDGET, DURATION, VISITS};

/// As many blocks as an experiment's file may ask for.
pub fn blocks() -> clap::builder::RangedI64ValueParser<u32> {
    let (least, most) = (*BLOCKS.start() as i64, *BLOCKS.end() as i64);
    clap::value_parser!(u32).range(least..=most)
}

/// A time that an experiment's file may give to spend.
pub fn budget(text: &str) -> Result<Nanos, String> {
    let length = duration::parse(text)?;
    match BUDGET.contains(&length) {
        true => Ok(length),
        false => Err(format!(
            "`{text}` is not a valid budget: it must be from {} to {}",
            duration::typed(*BUDGET.start()),
            duration::typed(*BUDGET.end())
        )),
    }
}

/// No visits.
const OFF: &str = "off";

/// Visits that an experiment's file may ask for; zero for none.
pub fn visits(text: &str) -> Result<Nanos, String> {
    if text == OFF {
        return Ok(Nanos::ZERO);
    }
    let length = duration::parse(text)?;
    match VISITS.contains(&length) {
        true => Ok(length),
        false => Err(format!(
            "`{text}` is not a valid length of a visit: it must be from {} to {}, or {OFF}",
            duration::typed(*VISITS.start()),
            duration::typed(*VISITS.end())
        )),
    }
}

/// Visits as [`visits`] reads them.
pub fn visits_typed(length: Nanos) -> String {
    match length {
        Nanos::ZERO => OFF.to_owned(),
        length => duration::typed(length),
    }
}

/// A window that an experiment's file may ask for.
pub fn window(text: &str) -> Result<Nanos, String> {
    let length = duration::parse(text)?;
    match DURATION.contains(&length) {
        true => Ok(length),
        false => Err(format!(
            "`{text}` is not a valid window: it must be from {} to {}",
            duration::typed(*DURATION.start()),
            duration::typed(*DURATION.end())
        )),
    }
}
