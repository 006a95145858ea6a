//! What is asked of latencies: `p99<10ms`.

use std::fmt;
use std::str::FromStr;

use prony_base::Nanos;
use prony_base::typed::duration;
use prony_record::{Histogram, LatencyNs, NEVER};
use prony_stats::quantile;

/// A figure of the latencies, and what it must stay below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    figure: LatencyFigure,
    below: Nanos,
}

/// A figure of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LatencyFigure {
    Mean,
    /// Above 0 and below 100.
    Percentile(f64),
    Max,
}

impl Objective {
    /// What the figure must stay below.
    pub fn below(&self) -> Nanos {
        self.below
    }

    /// The figure of latencies: `all`, of which `histogram` has those that ended. [`NEVER`] where it falls among those
    /// that did not; zero where there are none.
    pub fn of(&self, histogram: &Histogram, all: &LatencyNs) -> u64 {
        match self.figure {
            _ if all.count == all.infinite => all.max,
            LatencyFigure::Max => all.max,
            LatencyFigure::Mean if all.infinite > 0 => NEVER,
            LatencyFigure::Mean => all.mean as u64,
            LatencyFigure::Percentile(percent) => {
                let ended = all.count - all.infinite;
                let share = percent / 100.0 * all.count as f64 / ended as f64;
                // Within rounding of 1 is all that ended.
                match share <= 1.0 + f64::EPSILON * 8.0 {
                    true => quantile(histogram, share.min(1.0)).map_or(NEVER, |latency| latency.0),
                    false => NEVER,
                }
            }
        }
    }

    /// Requests from which a step tells the figure: a hundred beyond a percentile would be better, ten times fewer do.
    pub fn requests_min(&self) -> f64 {
        match self.figure {
            LatencyFigure::Percentile(percent) => 1_000.0 / (100.0 - percent),
            LatencyFigure::Mean | LatencyFigure::Max => 100.0,
        }
    }

    /// The name of the figure: `p99`.
    pub fn figure(&self) -> String {
        match self.figure {
            LatencyFigure::Mean => "mean".to_owned(),
            LatencyFigure::Max => "max".to_owned(),
            LatencyFigure::Percentile(percent) => format!("p{percent}"),
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} < {}", self.figure(), duration::typed(self.below))
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Objective, String> {
        let wrong = || {
            format!(
                "`{text}` is not an objective: write it as p99<10ms, p99.9<50ms, mean<2ms or max<1s"
            )
        };
        let (figure, below) = text.split_once('<').ok_or_else(wrong)?;
        let figure = match figure.trim() {
            "mean" => LatencyFigure::Mean,
            "max" => LatencyFigure::Max,
            figure => {
                let percent = figure.strip_prefix('p').ok_or_else(wrong)?;
                let percent: f64 = percent.parse().map_err(|_| wrong())?;
                if !(percent > 0.0 && percent < 100.0) {
                    return Err(format!(
                        "`{figure}` is no percentile: those between p0 and p100 are; the largest is `max`"
                    ));
                }
                LatencyFigure::Percentile(percent)
            }
        };
        let below = duration::parse_positive(below.trim())?;
        Ok(Objective { figure, below })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Latencies;

    fn figure(objective: &str, latencies: &[u64], never: u64) -> u64 {
        let mut all = Latencies::default();
        for latency in latencies {
            all.record(Nanos(*latency));
        }
        (0..never).for_each(|_| all.record_never());
        let objective: Objective = objective.parse().expect("an objective");
        objective.of(&all.histogram(), &all.summary())
    }

    #[test]
    fn an_objective_is_read_and_said() {
        for (text, said) in [
            ("p99<10ms", "p99 < 10ms"),
            (" p99.9 < 1.5s ", "p99.9 < 1500ms"),
            ("mean<200us", "mean < 200us"),
            ("max <1", "max < 1s"),
        ] {
            assert_eq!(text.parse::<Objective>().expect(text).to_string(), said);
        }
        for (text, why) in [
            ("p99", "not an objective"),
            ("p99>10ms", "not an objective"),
            ("rate<10", "not an objective"),
            ("pfoo<10ms", "not an objective"),
            ("p100<10ms", "the largest is `max`"),
            ("p-1<10ms", "no percentile"),
            ("pNaN<10ms", "no percentile"),
            ("p99<", "not a length of time"),
            ("p99<0ms", "no time at all"),
        ] {
            let error = text.parse::<Objective>().expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn its_figure_counts_what_never_ended() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(figure("p99<1s", &hundred, 0), 99);
        assert_eq!(figure("p50<1s", &hundred, 0), 50);
        assert_eq!(figure("max<1s", &hundred, 0), 100);
        assert_eq!(figure("mean<1s", &hundred, 0), 50);
        // The 100 that ended are 99 % of these.
        assert_eq!(figure("p99<1s", &hundred, 1), 100);
        assert_eq!(figure("p99<1s", &hundred, 2), NEVER);
        assert_eq!(figure("p50<1s", &hundred, 20), 60);
        assert_eq!(figure("mean<1s", &hundred, 1), NEVER);
        assert_eq!(figure("max<1s", &hundred, 1), NEVER);
        assert_eq!(figure("p50<1s", &[], 3), NEVER);
        assert_eq!(figure("p50<1s", &[], 0), 0);
    }
}
