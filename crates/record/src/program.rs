//! What a program that runs to its end recorded: what the kernel says of the fresh
//! process, and the lines of JSON that it printed itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ClientFigures, Histogram, Spread};

/// A program's run, from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// Time from just before it was started until it was seen to have ended.
    pub wall_ns: u64,
    /// CPU time in user mode, of it and of the children that it waited for.
    pub user_ns: u64,
    /// CPU time in the kernel, likewise.
    pub system_ns: u64,
    /// Peak resident memory of the largest of its processes.
    pub peak_bytes: u64,
    /// What it printed, a value a line, in order.
    pub lines: Vec<ProgramLine>,
}

/// One line of JSON that a program prints on its standard output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramLine {
    /// What was counted, in the plural: `coroutines`, `events`, `services`.
    pub measure: String,
    /// Threads that did the work at the same time, each the whole of it.
    pub threads: u32,
    /// How many in all, over all threads.
    pub count: u64,
    /// Time that the work took by the program's own clock, from the making of the first
    /// queue to the end of the last one.
    pub elapsed_ns: u64,
    /// Bytes that were worked through, over all threads; 0: not a measure of bytes.
    pub bytes: u64,
    /// Sum over the results, by which a reader sees that the work was done; may be empty.
    pub checksum: String,
    /// Lengths of repeated runs, where those are what is measured.
    pub durations: Option<Durations>,
    /// What a client counted, where the program is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientFigures>,
    /// Further figures by name, each with its unit last: `connect_ns`, `pss_bytes`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, Spread>,
    /// Further counts by name: `syscalls`, `voluntary_switches`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tallies: BTreeMap<String, u64>,
}

/// Lengths of repeated runs of one job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Durations {
    /// Runs.
    pub count: u64,
    /// Shortest.
    pub min_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Longest.
    pub max_ns: u64,
    /// What no run should exceed; 0: none was set.
    pub deadline_ns: u64,
    /// Every run that exceeded it, or as many as `missed_max` of the program allowed.
    pub missed: Vec<Missed>,
    /// How many exceeded it.
    pub missed_count: u64,
    /// All lengths.
    pub histogram: Histogram,
}

/// A run that exceeded its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Missed {
    /// Number of the run, from 0.
    pub run: u64,
    /// Its length.
    pub ns: u64,
}
