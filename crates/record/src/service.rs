//! The surroundings of a server that is measured (backing services, a proxy in front,
//! several instances, the destination of its output), tables with rows of their own, and
//! numbers that a service keeps and that must come out right.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What stands around the subject of a cell. The default is a server alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Around {
    /// `id`s of the backing services that are started before it
    /// ([`crate::Plan::backings`]), in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backings: Vec<String>,
    /// `id` of the proxy that the generator asks instead of it ([`crate::Plan::fronts`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub front: Option<String>,
    /// Processes of the subject, each on a port of its own; at least 1. Connections are shared
    /// out over them, by the front where there is one.
    pub instances: u32,
    /// Threads of the generator; 0: as many as it has cores.
    pub generators: u32,
    /// The destination of the subject's standard output.
    pub output: Output,
    /// Name of the network between the generator and all servers ([`crate::Plan::networks`]); empty: loopback.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub network: String,
}

impl Default for Around {
    fn default() -> Around {
        Around {
            backings: Vec::new(),
            front: None,
            instances: 1,
            generators: 0,
            output: Output::File,
            network: String::new(),
        }
    }
}

impl Around {
    /// Whether it is a server alone.
    pub fn is_alone(&self) -> bool {
        *self == Around::default()
    }
}

/// The destination of a subject's standard output. Standard error always goes to the trial's log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// To the trial's log, a file.
    #[default]
    File,
    /// Through a pipe to a process that writes it to the log, on the subject's cores.
    Pipe,
    /// To a terminal (a pseudo-terminal), which a process reads and writes to the log, on the subject's cores.
    Terminal,
    /// Nowhere: `/dev/null`.
    Null,
}

/// One row of a workload that has rows of its own instead of all combinations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedRow {
    /// What the table calls it; unique in its workload.
    pub title: String,
    /// Subject's `id`.
    pub subject: String,
    /// Setting values by name; none for settings that it does not name.
    pub settings: BTreeMap<String, String>,
    /// Title of the row to which its ratios refer; `None`: to none.
    #[serde(alias = "beside")]
    pub baseline: Option<String>,
}

/// A number that the subject keeps and that every right answer raises, so that it can be
/// compared with the number of acknowledged requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedCounter {
    /// Path whose answer to GET is the number, in decimal.
    pub path: String,
    /// The amount by which one acknowledged request raises it.
    pub adds: u64,
    /// How the subject is ended before it is started anew and asked what it kept; `None`:
    /// it is not.
    pub ended_by: Option<Ended>,
}

/// How a subject is ended before it is asked what it kept.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// It is stopped as its `[stop]` says.
    #[default]
    Stopped,
    /// SIGKILL ends it while the load still runs.
    Killed,
}

/// What came of a [`PlannedCounter`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterReport {
    /// The number before the load.
    pub before: u64,
    /// What the answers of the whole run (warm-up, window and drain) that had the expected
    /// status and body must have added.
    pub acknowledged: u64,
    /// What the requests that were sent and not acknowledged may have added.
    pub unanswered: u64,
    /// The number after the load, once it had come to rest; `None`: nobody could be asked
    /// (the subject was killed).
    pub after: Option<u64>,
    /// The number that the subject had when it was started anew; `None`: it was not.
    pub kept: Option<u64>,
}

impl CounterReport {
    /// Acknowledged by the load and not counted, by the number after it.
    pub fn uncounted(&self) -> Option<u64> {
        self.after.map(|after| self.missing(after))
    }

    /// Acknowledged by the load and not there any more when the subject was started anew. What it had counted
    /// before the load (the checks of its answers) is no part of this, even where that is gone, too.
    pub fn lost(&self) -> Option<u64> {
        self.kept.map(|kept| self.missing(kept))
    }

    /// Counted beyond all that was ever sent.
    pub fn invented(&self) -> u64 {
        let sent = self.acknowledged.saturating_add(self.unanswered);
        let most = self.before.saturating_add(sent);
        let seen = self.after.max(self.kept).unwrap_or(0);
        seen.saturating_sub(most)
    }

    fn missing(&self, seen: u64) -> u64 {
        let of_load = seen.saturating_sub(self.before);
        self.acknowledged.saturating_sub(of_load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_and_what_is_too_much() {
        let counter = CounterReport {
            before: 10,
            acknowledged: 500,
            unanswered: 20,
            after: Some(515),
            kept: Some(490),
        };
        assert_eq!(counter.uncounted(), Some(0));
        assert_eq!(counter.lost(), Some(20));
        assert_eq!(counter.invented(), 0);
        let after = Some(531);
        assert_eq!(CounterReport { after, ..counter }.invented(), 1);
    }

    #[test]
    fn more_was_lost_than_had_been_acknowledged() {
        // A subject that keeps nothing: the clicks of the checks before the load are gone as well.
        let counter = CounterReport {
            before: 7,
            acknowledged: 500,
            unanswered: 0,
            after: Some(3),
            kept: Some(0),
        };
        assert_eq!(counter.lost(), Some(500));
        assert_eq!(counter.uncounted(), Some(500));
    }
}
