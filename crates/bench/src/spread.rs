//! Many values of one figure as what a record keeps of them.

use hdrhistogram::Histogram as Hdr;
use prony_record::{Histogram, LatencyNs, SCHEMA, Spread};

/// Significant digits of the histograms.
const DIGITS: u8 = 3;
/// Largest time that is told apart, an hour; a longer one counts as this.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// Count, smallest, mean, median, deviation and largest of some values.
pub fn spread(mut values: Vec<f64>) -> Spread {
    values.sort_by(f64::total_cmp);
    let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
        return Spread::default();
    };
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let middle = values.len() / 2;
    let p50 = if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    };
    Spread {
        count: values.len() as u64,
        min,
        mean,
        p50,
        // Of a sample; of one value there is none.
        stdev: (squares / (count - 1.0).max(1.0)).sqrt(),
        max,
    }
}

/// Times, counted.
#[derive(Clone, Debug)]
pub struct Latencies(Hdr<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        let hdr = Hdr::new_with_bounds(1, LATENCY_MAX_NS, DIGITS);
        Latencies(hdr.expect("the bounds are constants that the library accepts"))
    }
}

impl Latencies {
    /// Counts one time.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns.max(1));
    }

    /// Counts all that another counted.
    pub fn add(&mut self, other: &Latencies) {
        self.0
            .add(&other.0)
            .expect("both have the same bounds, so that nothing is out of range");
    }

    /// What a record keeps of them.
    pub fn record_of(&self) -> (LatencyNs, Histogram) {
        let hdr = &self.0;
        let histogram = Histogram {
            schema: SCHEMA,
            unit: "ns".to_owned(),
            digits: DIGITS,
            counts: hdr
                .iter_recorded()
                .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
                .collect(),
        };
        (prony_load::summary(hdr), histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_says_what_its_values_are() {
        let of = spread(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!((of.count, of.min, of.max), (4, 1.0, 4.0));
        assert_eq!((of.mean, of.p50), (2.5, 2.5));
        assert!((of.stdev - 1.290_994).abs() < 1e-6);
        assert_eq!(spread(vec![7.0]).stdev, 0.0);
        assert_eq!(spread(Vec::new()), Spread::default());
    }

    #[test]
    fn latencies_of_threads_add_up() {
        let mut all = Latencies::default();
        let mut other = Latencies::default();
        all.record(1_000);
        other.record(3_000);
        other.record(u64::MAX);
        all.add(&other);
        let (latency, histogram) = all.record_of();
        assert_eq!((latency.count, histogram.total()), (3, 3));
        assert!((999..=1_001).contains(&latency.min));
        assert_eq!(Latencies::default().record_of().0, LatencyNs::default());
    }
}
