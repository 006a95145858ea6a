//! Values of the command line that several commands take: what an experiment's file may ask for, too.

use prony_base::Nanos;
use prony_base::typed::{duration, rate};
use prony_lab::experiment::cores as lists;
use prony_lab::reference;
use prony_record::Cores;

/// As many blocks as an experiment's file may ask for.
pub fn blocks() -> clap::builder::RangedI64ValueParser<u32> {
    let (least, most) = reference::whole_numbers("run.blocks").into_inner();
    clap::value_parser!(u32).range(least as i64..=most as i64)
}

/// A time that an experiment's file may give to spend.
pub fn budget(text: &str) -> Result<Nanos, String> {
    within(text, "budget", "run.budget")
}

/// Cores by role, as an experiment's file may give them.
pub fn cores(text: &str) -> Result<Cores, String> {
    lists::parse(text).map_err(|(message, help)| format!("{message}; {help}"))
}

/// No visits.
const OFF: &str = "off";

/// Visits that an experiment's file may ask for; zero for none.
pub fn visits(text: &str) -> Result<Nanos, String> {
    if text == OFF {
        return Ok(Nanos::ZERO);
    }
    within(text, "length of a visit", "run.visits").map_err(|wrong| format!("{wrong}, or {OFF}"))
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
    within(text, "window", "run.duration")
}

/// A warm-up that an experiment's file may ask for.
pub fn warmup(text: &str) -> Result<Nanos, String> {
    within(text, "warm-up", "run.warmup")
}

/// A length of time that the key `id` may have, else what is wrong with it as `what`.
fn within(text: &str, what: &str, id: &str) -> Result<Nanos, String> {
    let (length, range) = (duration::parse(text)?, reference::lengths(id));
    match range.contains(&length) {
        true => Ok(length),
        false => Err(format!(
            "`{text}` is not a valid {what}: it must be from {} to {}",
            duration::typed(*range.start()),
            duration::typed(*range.end())
        )),
    }
}

/// A number of things of which there must be one.
pub fn positive(text: &str) -> Result<u64, String> {
    match rate::count(text)? {
        0 => Err("it must be at least 1".to_owned()),
        count => Ok(count),
    }
}

/// A number of connections.
pub fn connections(text: &str) -> Result<u32, String> {
    let count = positive(text)?;
    u32::try_from(count).map_err(|_| format!("`{text}` is more connections than there can be"))
}
