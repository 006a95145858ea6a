//! The histogram of latencies that all of Prony's generators and clients share: three significant digits, up to
//! an hour, and a place for what never ended.

use std::collections::BTreeMap;

use hdrhistogram::Histogram as Hdr;
use prony_base::Nanos;
use prony_record::{Histogram, LatencyNs, NEVER, SCHEMA};
use serde::{Deserialize, Serialize};

/// Significant digits.
const DIGITS: u8 = 3;
/// More is never counted, so that the counts of many threads can be added.
pub const COUNT_MAX: u64 = 1 << 52;
/// Largest latency that is told apart; a longer one counts as this.
const LATENCY_MAX: Nanos = Nanos::from_secs(3_600);

/// Latencies, counted. The first one takes a quarter of a megabyte; recording another allocates nothing and takes a
/// few nanoseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Buckets", into = "Buckets")]
pub struct Latencies {
    finite: Option<Hdr<u64>>,
    infinite: u64,
}

/// Latencies by bucket: the highest value of each that has any, and how many it has; and how many are infinite. They go to other
/// machines as they are, where a bucket is the same one. They take as much room as there are buckets, and no more.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Buckets {
    counts: BTreeMap<u64, u64>,
    infinite: u64,
}

impl Buckets {
    /// Adds those of `other`.
    pub fn add(&mut self, other: &Buckets) {
        for (&value, &count) in &other.counts {
            let mine = self.counts.entry(value).or_default();
            *mine = mine.saturating_add(count);
        }
        self.infinite = self.infinite.saturating_add(other.infinite);
    }

    /// Those that it has beyond `before`.
    pub fn since(&self, before: &Buckets) -> Buckets {
        let new = self.counts.iter().map(|(value, &count)| {
            let old = before.counts.get(value).copied().unwrap_or_default();
            (*value, count.saturating_sub(old))
        });
        Buckets {
            counts: new.filter(|(_, count)| *count > 0).collect(),
            infinite: self.infinite.saturating_sub(before.infinite),
        }
    }
}

impl From<&Latencies> for Buckets {
    fn from(latencies: &Latencies) -> Buckets {
        let buckets = latencies.finite.iter().flat_map(Hdr::iter_recorded);
        let counts = buckets.map(|of| (of.value_iterated_to(), of.count_at_value()));
        Buckets {
            counts: counts.collect(),
            infinite: latencies.infinite,
        }
    }
}

impl From<Latencies> for Buckets {
    fn from(latencies: Latencies) -> Buckets {
        Buckets::from(&latencies)
    }
}

impl From<Buckets> for Latencies {
    fn from(buckets: Buckets) -> Latencies {
        let mut latencies = Latencies::default();
        latencies.add_buckets(&buckets);
        latencies
    }
}

fn empty() -> Hdr<u64> {
    Hdr::new_with_bounds(1, LATENCY_MAX.0, DIGITS)
        .expect("the bounds are constants that the library accepts")
}

impl Latencies {
    /// Counts one; zero counts as a nanosecond.
    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        let finite = self.finite.get_or_insert_with(empty);
        finite.saturating_record(latency.0.max(1));
    }

    /// Counts one that never ended.
    pub fn record_never(&mut self) {
        self.infinite += 1;
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.finite.is_none() && self.infinite == 0
    }

    /// Adds those of `other`.
    pub fn add(&mut self, other: &Latencies) {
        if let Some(theirs) = &other.finite {
            let mine = self.finite.get_or_insert_with(empty);
            mine.add(theirs)
                .expect("all histograms have the same bounds");
        }
        self.infinite += other.infinite;
    }

    /// Adds those of `buckets`, wherever they are from.
    pub fn add_buckets(&mut self, buckets: &Buckets) {
        for (&value, &count) in &buckets.counts {
            let finite = self.finite.get_or_insert_with(empty);
            finite.saturating_record_n(value.max(1), count.min(COUNT_MAX));
        }
        let infinite = self.infinite.saturating_add(buckets.infinite);
        self.infinite = infinite.min(COUNT_MAX);
    }

    /// Those counted since it was `before`, an earlier copy of it; none where it is no copy.
    pub fn since(&self, before: &Latencies) -> Latencies {
        let mut finite = self.finite.clone();
        if let (Some(mine), Some(theirs)) = (&mut finite, &before.finite)
            && mine.subtract(theirs).is_err()
        {
            finite = None;
        }
        Latencies {
            finite: finite.filter(|finite| !finite.is_empty()),
            infinite: self.infinite.saturating_sub(before.infinite),
        }
    }

    /// How many took longer than `limit`, those that never ended among them. A latency counts as the highest value of its bucket.
    pub fn above(&self, limit: Nanos) -> u64 {
        let finite = self.finite.iter().flat_map(|finite| finite.iter_recorded());
        let longer = finite.filter(|bucket| bucket.value_iterated_to() > limit.0);
        self.infinite + longer.map(|bucket| bucket.count_at_value()).sum::<u64>()
    }

    /// How many were counted, those that never ended among them.
    pub fn count(&self) -> u64 {
        self.finite.as_ref().map_or(0, Hdr::len) + self.infinite
    }

    /// Those that ended, as the library has them; `None` where none did.
    pub(crate) fn finite(&self) -> Option<&Hdr<u64>> {
        self.finite.as_ref()
    }

    /// Median of those that ended; zero where none did.
    pub fn median(&self) -> Nanos {
        let finite = self.finite.as_ref();
        Nanos(finite.map_or(0, |finite| finite.value_at_quantile(0.5)))
    }

    /// Longest of those that ended; zero where none did.
    pub fn longest(&self) -> Nanos {
        Nanos(self.finite.as_ref().map_or(0, Hdr::max))
    }

    /// These, with those added that would have been seen had one been sent every `interval`: for each that took
    /// longer, one that began an interval later, another two later, and so on (G. Tene's correction of coordinated
    /// omission, which wrk's output has). Hypothetical.
    pub fn corrected(&self, interval: Nanos) -> Latencies {
        let correct = |finite: &Hdr<u64>| finite.clone_correct(interval.0.max(1));
        Latencies {
            finite: self.finite.as_ref().map(correct),
            infinite: self.infinite,
        }
    }

    /// What a record keeps of them; all zero where nothing was recorded.
    pub fn summary(&self) -> LatencyNs {
        let infinite = self.infinite;
        let Some(finite) = &self.finite else {
            let at = if infinite > 0 { NEVER } else { 0 };
            return LatencyNs {
                count: infinite,
                infinite,
                min: at,
                p50: at,
                p75: at,
                p90: at,
                p99: at,
                p99_9: at,
                p99_99: at,
                max: at,
                ..LatencyNs::default()
            };
        };
        let at = |quantile| value_at(finite, infinite, quantile);
        LatencyNs {
            count: finite.len() + infinite,
            min: finite.min(),
            mean: finite.mean(),
            stdev: finite.stdev(),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: if infinite > 0 { NEVER } else { finite.max() },
            infinite,
        }
    }

    /// Those that ended, bucket by bucket.
    pub fn histogram(&self) -> Histogram {
        let counts = self.finite.iter().flat_map(|finite| finite.iter_recorded());
        let counts = counts
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect();
        Histogram {
            schema: SCHEMA,
            unit: "ns".to_owned(),
            digits: DIGITS,
            counts,
        }
    }
}

/// The value that at least this part of all do not exceed.
fn value_at(finite: &Hdr<u64>, infinite: u64, quantile: f64) -> u64 {
    // A bucket is named by its highest value, which may lie above the largest
    // value that was seen; a percentile never does.
    if infinite == 0 {
        return finite.value_at_quantile(quantile).min(finite.max());
    }
    let ended = finite.len() as f64;
    let rank = (quantile * (ended + infinite as f64)).ceil();
    if rank > ended {
        return NEVER;
    }
    // The middle of the rank's own step, which no rounding moves to its neighbour's.
    let within = finite.value_at_quantile((rank - 0.5) / ended);
    within.min(finite.max())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_never_ended_stands_above_everything() {
        let mut latencies = Latencies::default();
        for micros in 1..=98 {
            latencies.record(Nanos::from_micros(micros));
        }
        latencies.record_never();
        latencies.record_never();
        let summary = latencies.summary();
        assert_eq!((summary.count, summary.infinite), (100, 2));
        assert_eq!(
            (summary.p50, summary.p99, summary.max),
            (50_015, NEVER, NEVER)
        );
        assert!(summary.mean > 49_000.0 && summary.mean < 50_000.0);
    }

    #[test]
    fn nothing_but_what_never_ended_has_no_finite_figure() {
        let mut latencies = Latencies::default();
        latencies.record_never();
        let summary = latencies.summary();
        assert_eq!((summary.count, summary.infinite), (1, 1));
        let (low, high) = (
            [summary.min, summary.p50, summary.p75, summary.p90],
            [summary.p99, summary.p99_9, summary.p99_99, summary.max],
        );
        assert_eq!([low, high], [[NEVER; 4]; 2]);
        assert!(latencies.histogram().counts.is_empty());
    }

    #[test]
    fn a_stall_is_corrected_by_the_requests_that_it_kept_back() {
        let mut latencies = Latencies::default();
        for _ in 0..9_500 {
            latencies.record(Nanos::from_millis(1));
        }
        latencies.record(Nanos::from_millis(501));
        let corrected = latencies.corrected(Nanos::from_millis(1)).summary();
        assert_eq!(corrected.count, 10_001);
        // The 1 % point of 10,000 of which 500 are spread over half a second lies at four fifths of that.
        let p99 = corrected.p99 as f64 / 1e6;
        assert!((p99 - 400.0).abs() < 5.0, "{p99}");
    }

    proptest! {
        #[test]
        fn percentiles_keep_three_digits_whatever_never_ended(
            mut values in prop::collection::vec(1_u64..10_000_000_000, 1..300), never in 0_u64..30,
        ) {
            let mut latencies = Latencies::default();
            for &value in &values {
                latencies.record(Nanos(value));
            }
            for _ in 0..never {
                latencies.record_never();
            }
            values.sort_unstable();
            let summary = latencies.summary();
            for (quantile, shown) in [(0.5, summary.p50), (0.9, summary.p90), (0.99, summary.p99)] {
                let rank = (quantile * (values.len() as u64 + never) as f64).ceil() as usize;
                match values.get(rank - 1) {
                    None => prop_assert_eq!(shown, NEVER),
                    Some(&exact) => {
                        let (shown, exact) = (shown as f64, exact as f64);
                        prop_assert!((shown - exact).abs() <= exact * 0.001 + 1.0, "{} for {}", shown, exact);
                    }
                }
            }
        }
    }
}
