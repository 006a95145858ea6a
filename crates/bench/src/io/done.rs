//! The results of downloads: of one run by one strategy, and of all runs of an order.

use std::collections::BTreeMap;

use prony_base::Nanos;
use prony_record::ProgramLine;

use super::transfer::Transfer;

/// The downloads of one run by one strategy.
#[derive(Debug, Default)]
pub(super) struct Downloads {
    pub(super) transfers: Vec<Transfer>,
    pub(super) calls: Calls,
}

/// Counts of calls by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls(pub(super) BTreeMap<&'static str, u64>);

impl Calls {
    pub(super) fn add(&mut self, name: &'static str, count: u64) {
        *self.0.entry(name).or_default() += count;
    }
}

/// One run, for a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Run {
    /// Downloads that failed.
    pub failed: u64,
    /// Mean of the times to make a socket, in nanoseconds.
    pub socket_ns: f64,
    /// Mean of the times to set a download up, in nanoseconds.
    pub setup_ns: f64,
    /// Mean length of a download, in nanoseconds.
    pub download_ns: f64,
    /// Bytes of the downloads that came to their end ÷ the sum of their lengths: the rate of one of mean length.
    pub bytes_per_s: f64,
    /// Length of the run.
    pub length: Nanos,
    /// Bytes of all bodies.
    pub bytes: u64,
    /// Mean of the memory seen, in bytes; `None`: it was not looked at, or the run was too short.
    pub pss_bytes: Option<f64>,
    /// CPU time, without that of looking at memory.
    pub cpu: Nanos,
}

/// The result of an order.
#[derive(Clone, Debug, Default)]
pub struct IoDone {
    /// The measurement over all runs.
    pub line: ProgramLine,
    /// Each run.
    pub runs: Vec<Run>,
    /// Failures in words, the first of each kind.
    pub failures: Vec<String>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}
