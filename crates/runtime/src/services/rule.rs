//! The rule of a need: the number of its providers.
//! Not for: which of them (`properties`, `graph`).

use serde::Serialize;

/// The number of providers of a need, and what happens when they come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// One; without it the service does not run.
    Required,
    /// One or none; comes and goes while the service runs.
    Optional,
    /// One or none; the service starts anew when it comes or goes.
    Fixed,
    /// Any number; each comes and goes while the service runs.
    Many,
}
