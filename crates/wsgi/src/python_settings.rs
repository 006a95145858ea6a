//! Settings that only this host has, which go to its workers with those that all hosts have.

use serde::{Deserialize, Serialize};

/// The settings of `prony-wsgi` beside [`prony_hosting::Settings`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PythonSettings {
    /// Threads that run the application.
    pub(crate) threads: u32,
}
