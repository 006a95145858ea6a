//! Work that has to be done in time: preparing a thread for it, and watching its deadlines.
//!
//! ```
//! use prony_base::Nanos;
//! use prony_runtime::realtime::{Deadlines, Settings};
//!
//! // What the system refuses is said, and the work goes on without.
//! let settings = Settings { priority: Some(20), ..Settings::default() };
//! for refused in settings.apply() {
//!     eprintln!("{refused}");
//! }
//! let mut deadlines = Deadlines::new(Nanos::from_millis(2));
//! for _ in 0..100 {
//!     deadlines.run(|| std::hint::black_box(2 + 2));
//! }
//! assert_eq!(deadlines.count(), 100);
//! assert!(deadlines.min() <= deadlines.max());
//! ```
//!
//! Not for: making a kernel real-time. `SCHED_FIFO` is throttled by default: after
//! `kernel.sched_rt_runtime_us` of each `sched_rt_period_us` the thread loses its core
//! for the rest, which is what [`Deadlines`] then shows.

use std::fmt;
use std::io;

use hdrhistogram::Histogram;
use prony_base::{Instant, Nanos, clock};
use prony_engine::thread::{self, Urgency};

/// The settings of a thread with deadlines.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Settings {
    /// The one core to run on.
    pub core: Option<u32>,
    /// Priority under `SCHED_FIFO`, from 1 to 99.
    pub priority: Option<u8>,
    /// Whether all memory is kept from being paged out.
    pub lock_memory: bool,
}

impl Settings {
    /// Applies them to the calling thread, each as far as the system lets it. What it
    /// refuses comes back.
    pub fn apply(&self) -> Vec<Refused> {
        let mut refused = Vec::new();
        let mut note = |what: String, advice, result: io::Result<()>| {
            if let Err(cause) = result {
                refused.push(Refused {
                    what,
                    cause: cause.to_string(),
                    advice,
                });
            }
        };
        if let Some(core) = self.core {
            let advice = "see `nproc` and the process's cpuset";
            note(format!("pin to core {core}"), advice, thread::pin(&[core]));
        }
        if self.lock_memory {
            let advice = "raise `ulimit -l`, or run as root";
            note("lock memory".to_owned(), advice, thread::lock_memory());
        }
        if let Some(priority) = self.priority {
            let what = format!("use SCHED_FIFO with priority {priority}");
            let advice = "raise `ulimit -r`, grant CAP_SYS_NICE, or run as root";
            note(what, advice, thread::set_urgency(Urgency::Fifo(priority)));
        }
        refused
    }
}

/// Something that the system did not allow.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    /// The action that failed, as in "cannot …".
    pub what: String,
    /// The error of the system.
    pub cause: String,
    /// Advice that would change it.
    pub advice: &'static str,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}; {}", self.what, self.cause, self.advice)
    }
}

/// Missed deadlines that are kept one by one; the others are counted.
pub const MISSED_MAX: usize = 10_000;
/// Significant decimal digits of the histogram.
pub const DIGITS: u8 = 3;
/// Longest length that the histogram distinguishes from longer ones.
const LONGEST: Nanos = Nanos::from_secs(3_600);

/// A run that took longer than it should.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Missed {
    /// Number of the run, from 0.
    pub run: u64,
    /// Its length.
    pub took: Nanos,
}

/// Watches how long the runs of a job take.
#[derive(Clone, Debug)]
pub struct Deadlines {
    limit: Nanos,
    count: u64,
    total: u128,
    min: Nanos,
    max: Nanos,
    missed: Vec<Missed>,
    missed_count: u64,
    lengths: Histogram<u64>,
}

impl Deadlines {
    /// A watch over runs that should take no longer than `limit`.
    ///
    /// # Panics
    /// Never: the bounds of the histogram are fixed.
    pub fn new(limit: Nanos) -> Deadlines {
        Deadlines {
            limit,
            count: 0,
            total: 0,
            min: Nanos(u64::MAX),
            max: Nanos(0),
            missed: Vec::new(),
            missed_count: 0,
            lengths: Histogram::new_with_bounds(1, LONGEST.0, DIGITS).expect("bounds in order"),
        }
    }

    /// Runs `job` and notes how long it took.
    pub fn run<T>(&mut self, job: impl FnOnce() -> T) -> T {
        let start = clock::monotonic();
        let done = job();
        self.note(start, clock::monotonic());
        done
    }

    /// Notes a run. Allocates nothing but for the first missed deadlines.
    pub fn note(&mut self, start: Instant, end: Instant) {
        let took = end.since(start);
        if took > self.limit {
            self.missed_count += 1;
            if self.missed.len() < MISSED_MAX {
                let run = self.count;
                self.missed.push(Missed { run, took });
            }
        }
        self.count += 1;
        self.total += u128::from(took.0);
        self.min = self.min.min(took);
        self.max = self.max.max(took);
        self.lengths.saturating_record(took.0.max(1));
    }

    /// The length that no run should exceed.
    pub fn limit(&self) -> Nanos {
        self.limit
    }

    /// Runs.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Shortest run; zero before the first.
    pub fn min(&self) -> Nanos {
        if self.count == 0 { Nanos(0) } else { self.min }
    }

    /// Arithmetic mean in nanoseconds; zero before the first run.
    pub fn mean_ns(&self) -> f64 {
        self.total as f64 / self.count.max(1) as f64
    }

    /// Longest run; zero before the first.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// The first [`MISSED_MAX`] runs that exceeded the limit.
    pub fn missed(&self) -> &[Missed] {
        &self.missed
    }

    /// The number of runs that exceeded it.
    pub fn missed_count(&self) -> u64 {
        self.missed_count
    }

    /// `(highest value of a bucket in nanoseconds, runs in it)`, rising.
    pub fn histogram(&self) -> impl Iterator<Item = (u64, u64)> {
        let buckets = self.lengths.iter_recorded();
        buckets.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missed_deadline_is_kept_with_its_run() {
        let mut deadlines = Deadlines::new(Nanos(100));
        for (run, length) in [50, 100, 101, 7, 5_000].into_iter().enumerate() {
            let start = Instant(run as u64 * 10_000);
            deadlines.note(start, start + Nanos(length));
        }
        let missed: Vec<_> = deadlines
            .missed()
            .iter()
            .map(|m| (m.run, m.took.0))
            .collect();
        assert_eq!(missed, [(2, 101), (4, 5_000)]);
        assert_eq!(deadlines.missed_count(), 2);
        assert_eq!((deadlines.min(), deadlines.max()), (Nanos(7), Nanos(5_000)));
        assert!((deadlines.mean_ns() - 1_051.6).abs() < 1e-9);
        let counts: u64 = deadlines.histogram().map(|(_, count)| count).sum();
        assert_eq!(counts, 5);
    }

    #[test]
    fn more_missed_deadlines_than_are_kept_are_counted() {
        let mut deadlines = Deadlines::new(Nanos(0));
        for _ in 0..=MISSED_MAX {
            deadlines.note(Instant(0), Instant(1));
        }
        assert_eq!(deadlines.missed().len(), MISSED_MAX);
        assert_eq!(deadlines.missed_count(), MISSED_MAX as u64 + 1);
    }

    #[test]
    fn before_the_first_run_all_is_zero() {
        let deadlines = Deadlines::new(Nanos(1));
        assert_eq!((deadlines.min(), deadlines.max()), (Nanos(0), Nanos(0)));
        assert_eq!(deadlines.mean_ns(), 0.0);
    }

    #[test]
    fn what_the_system_refuses_is_said_with_what_would_change_it() {
        let refused = Settings {
            core: Some(100_000),
            priority: Some(200),
            lock_memory: false,
        };
        let refused: Vec<_> = refused.apply().iter().map(Refused::to_string).collect();
        assert_eq!(refused.len(), 2);
        assert!(
            refused[0].starts_with("cannot pin to core 100000: "),
            "{}",
            refused[0]
        );
        assert!(refused[1].ends_with("or run as root"), "{}", refused[1]);
    }
}
