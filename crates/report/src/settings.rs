//! Settings of cells: their usual values, and which cells agree in them.
//!
//! Not for: how a table shows them.

use std::collections::BTreeMap;

use prony_record::{Cell, Plan};

/// Name of the setting that says how many threads do the work.
pub const THREADS: &str = "threads";

/// Values of settings by name.
pub type Settings = BTreeMap<String, String>;

/// `prony, allocator=mimalloc`.
pub fn with_settings(name: &str, settings: &Settings) -> String {
    let of = |(setting, value): (&String, &String)| format!(", {setting}={value}");
    let settings: String = settings.iter().map(of).collect();
    format!("{name}{settings}")
}

/// Settings without one.
pub fn without(settings: &BTreeMap<String, String>, name: &str) -> BTreeMap<String, String> {
    let mut settings = settings.clone();
    settings.remove(name);
    settings
}

/// Whether every setting but the threads has its first value.
pub fn is_usual(plan: &Plan, settings: &BTreeMap<String, String>) -> bool {
    settings
        .iter()
        .all(|(name, value)| name == THREADS || first_value(plan, name) == Some(value))
}

/// Whether `reference` is what `cell` compares with: each setting of it has the value of
/// `cell`, or its first value where `cell` has no such setting. What only `cell` has does not
/// concern the reference.
pub fn settings_agree(plan: &Plan, cell: &Cell, reference: &Cell) -> bool {
    reference.settings.iter().all(|(name, value)| {
        let own = cell.settings.get(name);
        own.or_else(|| first_value(plan, name)) == Some(value)
    })
}

/// The first value of a setting, which is its usual one.
pub fn first_value<'a>(plan: &'a Plan, setting: &str) -> Option<&'a String> {
    let setting = plan.settings.iter().find(|s| s.name == setting)?;
    setting.values.first()
}
