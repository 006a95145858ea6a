//! A load over its time, in columns of equal length.

use prony_record::{Histogram, NEVER};
use prony_stats::quantile;

use crate::figure::merged;

/// Columns that are kept at the most; with one more, each two become one.
const COLUMNS_MAX: usize = 240;
/// A rest that is shorter than this part of a column becomes part of the one before it.
const REST: u64 = 2;

/// A part of a load's time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadColumn {
    /// From the start of the window.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Requests answered in it.
    pub completed: u64,
    /// Errors in it.
    pub errors: u64,
    /// Latencies of the requests that ended in it.
    pub latency: Histogram,
    /// Of requests that failed or were never answered, how many.
    pub infinite: u64,
}

impl LoadColumn {
    /// Its length.
    pub fn length_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// Answers a second.
    pub fn rate_per_s(&self) -> f64 {
        self.completed as f64 * 1e9 / self.length_ns().max(1) as f64
    }

    /// A quantile of its latencies; `None` where there are none, infinite where it falls among those that never ended.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        quantile_of(&self.latency, self.infinite, q)
    }

    fn add(&mut self, other: &LoadColumn) {
        self.end_ns = self.end_ns.max(other.end_ns);
        self.completed += other.completed;
        self.errors += other.errors;
        self.infinite += other.infinite;
        self.latency = merged([&self.latency, &other.latency].into_iter());
    }
}

/// A quantile of latencies, with those that never ended above all others.
pub fn quantile_of(histogram: &Histogram, infinite: u64, q: f64) -> Option<f64> {
    let ended = histogram.total();
    let all = ended + infinite;
    if all == 0 {
        return None;
    }
    let share = q * all as f64 / ended.max(1) as f64;
    match ended > 0 && share <= 1.0 + 8.0 * f64::EPSILON {
        true => quantile(histogram, share.min(1.0)).map(|at| at.0 as f64),
        false => Some(NEVER as f64),
    }
}

/// All columns.
#[derive(Clone, Debug, Default)]
pub struct LoadSeries {
    columns: Vec<LoadColumn>,
}

impl LoadSeries {
    /// Adds what happened next.
    pub fn push(&mut self, column: LoadColumn) {
        let length = self.columns.first().map_or(0, LoadColumn::length_ns);
        match self.columns.last_mut() {
            Some(last) if last.length_ns() < length || column.length_ns() < length / REST => {
                last.add(&column);
            }
            _ => self.columns.push(column),
        }
        if self.columns.len() > COLUMNS_MAX {
            self.columns = self.merged(COLUMNS_MAX / 2 + 1);
        }
    }

    /// The columns.
    pub fn columns(&self) -> &[LoadColumn] {
        &self.columns
    }

    /// The same in at most so many columns.
    pub fn merged(&self, columns: usize) -> Vec<LoadColumn> {
        let each = self.columns.len().div_ceil(columns.max(1)).max(1);
        let merge = |parts: &[LoadColumn]| {
            let mut all = parts[0].clone();
            parts[1..].iter().for_each(|part| all.add(part));
            all
        };
        self.columns.chunks(each).map(merge).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_load_has_few_columns_and_every_request() {
        let mut series = LoadSeries::default();
        for second in 0..5_000_u64 {
            series.push(LoadColumn {
                start_ns: second * 1_000_000_000,
                end_ns: (second + 1) * 1_000_000_000,
                completed: 2,
                errors: 1,
                infinite: 1,
                latency: Histogram {
                    counts: vec![(second + 1, 1)],
                    ..Histogram::default()
                },
            });
        }
        let columns = series.columns();
        assert!(
            (100..=COLUMNS_MAX).contains(&columns.len()),
            "{}",
            columns.len()
        );
        assert_eq!(columns.iter().map(|of| of.completed).sum::<u64>(), 10_000);
        assert_eq!(series.merged(1)[0].latency.total(), 5_000);
        let length = columns[0].length_ns();
        assert!(
            columns[..columns.len() - 1]
                .iter()
                .all(|of| of.length_ns() == length)
        );
        assert!(
            columns
                .windows(2)
                .all(|two| two[0].end_ns == two[1].start_ns)
        );
        assert_eq!(columns.last().map(|of| of.end_ns), Some(5_000_000_000_000));
        // What came after the window is in the last column.
        let before = columns.len();
        series.push(LoadColumn {
            start_ns: 5_000_000_000_000,
            end_ns: 5_000_000_000_000,
            completed: 1,
            ..LoadColumn::default()
        });
        assert_eq!(series.columns().len(), before);
        assert!(series.merged(60).len() <= 60);
    }

    #[test]
    fn what_never_ended_is_above_all_else() {
        let histogram = Histogram {
            counts: vec![(10, 98)],
            ..Histogram::default()
        };
        assert_eq!(quantile_of(&histogram, 2, 0.5), Some(10.0));
        assert_eq!(quantile_of(&histogram, 2, 0.99), Some(NEVER as f64));
        assert_eq!(quantile_of(&Histogram::default(), 0, 0.5), None);
        assert_eq!(
            quantile_of(&Histogram::default(), 2, 0.5),
            Some(NEVER as f64)
        );
    }
}
