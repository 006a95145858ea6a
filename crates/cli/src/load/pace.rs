//! When requests start: the words for it, and the [`Pace`] that they mean.

use anyhow::bail;
use clap::{Args, ValueEnum};
use prony_base::Nanos;
use prony_base::typed::{duration, rate};
use prony_load::Objective;
use prony_record::{LatencyOrigin, Pace, StagePoint, Timestamps};

use super::words::{LoadWords, OriginWord, TimestampsWord};

/// Words on when requests start.
#[derive(Debug, Args)]
pub struct PaceWords {
    /// Open loop: start this many requests a second, over all connections: 1000, 0.5, 2.5k
    #[arg(short = 'R', long, value_name = "N", value_parser = rate::parse)]
    pub rate: Option<f64>,
    /// How --rate or --stages spaces requests: evenly, or as independent users would [default: constant]
    #[arg(long, value_name = "HOW")]
    pub arrival: Option<ArrivalWord>,
    /// Open loop with a rate that goes in straight lines from point to point: 0:100,30s:1000,60s:1000; times
    /// count from the start, warm-up included
    #[arg(long, value_name = "TIME:RATE,…", value_parser = stages)]
    pub stages: Option<Stages>,
    /// Look for the highest rate that keeps this: p99<10ms, p99.9<50ms, mean<2ms, max<1s. Steps of -d (default 2s) in
    /// an open loop, each begun drained, in six rounds: their median with its interval
    #[arg(long, value_name = "OBJECTIVE", value_parser = objective, conflicts_with_all = ["rate", "stages", "think", "requests", "warmup",
        "latency_from", "latency", "seconds", "trace", "allow_failures"])]
    pub find_max: Option<Objective>,
    /// Closed loop: wait this long between an answer and the connection's next request
    #[arg(long, value_name = "T", value_parser = duration::parse_positive)]
    pub think: Option<Nanos>,
}

/// How arrivals of a rate are spaced.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ArrivalWord {
    /// Evenly
    Constant,
    /// By a Poisson process: gaps are random and independent
    Poisson,
}

/// Points of time and rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages(pub Vec<(Nanos, f64)>);

fn stages(text: &str) -> Result<Stages, String> {
    rate::stages(text).map(Stages)
}

fn objective(text: &str) -> Result<Objective, String> {
    text.parse()
}

/// When requests are to start; an error where the words contradict each other.
pub fn pace(words: &LoadWords) -> anyhow::Result<Pace> {
    let given = &words.pace;
    let poisson = given.arrival == Some(ArrivalWord::Poisson);
    let pace = match (given.rate, &given.stages) {
        (Some(_), Some(_)) => bail!(
            "--rate is one rate and --stages are several: give one of them (0:1000 as --stages is a rate of 1000)"
        ),
        (Some(rate_per_s), None) if poisson => Pace::Poisson { rate_per_s },
        (Some(rate_per_s), None) => Pace::Constant { rate_per_s },
        (None, Some(stages)) => Pace::Stages {
            points: stages
                .0
                .iter()
                .map(|&(at, rate_per_s)| StagePoint {
                    at_ns: at.0,
                    rate_per_s,
                })
                .collect(),
            poisson,
        },
        // The search puts its own rates in place of this one.
        (None, None) if given.find_max.is_some() => match poisson {
            true => Pace::Poisson { rate_per_s: 1.0 },
            false => Pace::Constant { rate_per_s: 1.0 },
        },
        (None, None) => Pace::Closed {
            think_ns: given.think.unwrap_or_default().0,
        },
    };
    if pace.is_open() && given.think.is_some() {
        bail!(
            "--think is for a closed loop, in which requests follow answers: with --rate or --stages they start by a \
             schedule; leave one of the two out"
        );
    }
    if !pace.is_open() && given.arrival.is_some() {
        bail!("--arrival says how a rate is spaced: add --rate, --stages or --find-max");
    }
    if !pace.is_open() && words.queue.is_some() {
        bail!(
            "--queue bounds requests that wait for a connection, which none do in a closed loop: add --rate, --stages or --find-max"
        );
    }
    if words.requests.is_some() && words.warmup.is_some_and(|length| length.0 > 0) {
        bail!(
            "-n counts every request, and those of a --warmup would be among them: give -d instead of -n"
        );
    }
    Ok(pace)
}

/// The moment from which latency counts.
pub fn latency_from(words: &LoadWords, pace: &Pace) -> LatencyOrigin {
    match words.latency_from {
        Some(OriginWord::Intended) => LatencyOrigin::Intended,
        Some(OriginWord::Submitted) => LatencyOrigin::Submitted,
        None if pace.is_open() => LatencyOrigin::Intended,
        None => LatencyOrigin::Submitted,
    }
}

/// The source of arrival times, if the user names one.
pub fn timestamps(words: &LoadWords) -> Option<Timestamps> {
    words.timestamps.map(|who| match who {
        TimestampsWord::User => Timestamps::User,
        TimestampsWord::Probe => Timestamps::Probe,
        TimestampsWord::Kernel => Timestamps::Kernel,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use prony_load::pace::described;

    use super::*;
    use crate::words::{Command, Words};

    fn words(line: &str) -> LoadWords {
        let line = format!("prony load http://127.0.0.1:1/ {line}");
        match Words::try_parse_from(line.split_whitespace())
            .expect("words")
            .command
        {
            Command::Load(words) => *words,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn words_become_a_pace() {
        let read = |line: &str| pace(&words(line)).expect("a pace");
        assert_eq!(read(""), Pace::Closed { think_ns: 0 });
        assert_eq!(
            read("--think 10ms"),
            Pace::Closed {
                think_ns: 10_000_000
            }
        );
        assert_eq!(
            read("-R 2.5k"),
            Pace::Constant {
                rate_per_s: 2_500.0
            }
        );
        assert_eq!(
            read("--rate 0.5 --arrival poisson"),
            Pace::Poisson { rate_per_s: 0.5 }
        );
        let point = |at_s: u64, rate_per_s| StagePoint {
            at_ns: at_s * 1_000_000_000,
            rate_per_s,
        };
        let points = vec![point(0, 100.0), point(30, 1_000.0), point(60, 1_000.0)];
        assert_eq!(
            read("--stages 0:100,30s:1000,60s:1000"),
            Pace::Stages {
                points,
                poisson: false
            }
        );
    }

    #[test]
    fn latency_counts_from_the_schedule_where_there_is_one() {
        let from = |line: &str| {
            let words = words(line);
            latency_from(&words, &pace(&words).expect("a pace"))
        };
        assert_eq!(from(""), LatencyOrigin::Submitted);
        assert_eq!(from("--think 1ms"), LatencyOrigin::Submitted);
        assert_eq!(from("-R 10"), LatencyOrigin::Intended);
        assert_eq!(from("--stages 0:5"), LatencyOrigin::Intended);
        assert_eq!(
            from("-R 10 --latency-from submitted"),
            LatencyOrigin::Submitted
        );
    }

    #[test]
    fn words_that_contradict_each_other_are_refused() {
        for (line, why) in [
            ("-R 10 --stages 0:5", "give one of them"),
            ("-R 10 --think 1ms", "--think is for a closed loop"),
            ("--stages 0:5 --think 1ms", "--think is for a closed loop"),
            ("--arrival poisson", "add --rate, --stages or --find-max"),
            ("--queue 7", "add --rate, --stages or --find-max"),
            ("-n 5 --warmup 1s", "give -d instead of -n"),
        ] {
            let said = pace(&words(line)).unwrap_err().to_string();
            assert!(said.contains(why), "{line}: {said}");
        }
        for line in [
            "-R 0",
            "-R -5",
            "-R x",
            "--stages 5",
            "--queue 0",
            "-c 0",
            "-n 0",
            "--think 0",
        ] {
            let line = format!("prony load http://127.0.0.1:1/ {line}");
            assert!(
                Words::try_parse_from(line.split_whitespace()).is_err(),
                "{line}"
            );
        }
    }

    #[test]
    fn what_was_asked_for_is_said_in_words() {
        let said = |line: &str| described(&pace(&words(line)).expect("a pace"));
        assert_eq!(said(""), None);
        assert_eq!(
            said("--think 10ms").as_deref(),
            Some("10.0ms between answer and request")
        );
        assert_eq!(said("-R 1k").as_deref(), Some("1000 requests/s (constant)"));
        let stages = said("--stages 0:0.5,9s:20 --arrival poisson");
        assert_eq!(
            stages.as_deref(),
            Some("0.5 to 20 requests/s in 2 points (poisson)")
        );
        let times = Pace::Times {
            times_ns: vec![1, 2],
        };
        assert_eq!(described(&times).as_deref(), Some("at 2 recorded times"));
    }
}
