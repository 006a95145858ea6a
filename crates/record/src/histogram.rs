//! A latency histogram as it is stored: exact counts at the resolution of the
//! recorder, readable without any library.

use serde::{Deserialize, Serialize};

/// Counts of values, each bucket named by the highest value that falls into it.
///
/// INVARIANT: `counts` is sorted by value, without duplicates or zero counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Schema version ([`crate::SCHEMA`]).
    pub schema: u32,
    /// Unit of the values: always `ns`.
    pub unit: String,
    /// Significant decimal digits that the buckets keep.
    pub digits: u8,
    /// `[highest value of the bucket, how many]`, rising.
    pub counts: Vec<(u64, u64)>,
}

impl Histogram {
    /// How many values were counted. Saturates: a file may say anything.
    pub fn total(&self) -> u64 {
        let counts = self.counts.iter().map(|&(_, count)| count);
        counts.fold(0, u64::saturating_add)
    }
}
