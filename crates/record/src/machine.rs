//! What of a machine spoils measurements: one entry for each thing that was looked at.

use serde::{Deserialize, Serialize};

/// One thing that was looked at.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct MachineCheck {
    /// Its name: `governor`.
    pub name: String,
    /// What came of it.
    pub state: MachineState,
    /// What was read or measured, with its units; why nothing could be, where the state is unknown.
    pub found: String,
    /// The ailment in a few words, for the head of a document; empty where it is healthy, or bears on a run only where that says
    /// so itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub brief: String,
    /// What that does to figures; empty where it is healthy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub effect: String,
    /// The shell command that mends it; empty where it is healthy or none is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

/// What came of looking at a thing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MachineState {
    /// It could not be read or measured.
    #[default]
    Unknown,
    /// It spoils measurements.
    Spoils,
    /// It does not spoil them.
    Healthy,
}
