//! When requests start: a [`Pace`] as the arrivals of one thread, one after the other, and in words.
//!
//! Arrivals follow from the pace and the seed alone, never from answers or from the clock: the schedule is the
//! same however slow the server or the generator is. A closed loop has none.
//!
//! Evenly spaced arrivals are those at which the whole numbers are reached by the expected number of arrivals,
//! Λ(t) = ∫ rate; thread *i* of *n* has each *n*-th from the *i*-th on, so that all threads together are evenly
//! spaced, too. A Poisson process is one of rate 1 whose time is stretched by Λ (Cinlar, *Introduction to
//! Stochastic Processes*, 1975, section 4.7); each thread draws its own of an n-th of the rate, and together
//! they are one of the whole rate.

use prony_base::{Nanos, Random};
use prony_record::{Pace, StagePoint};

/// What is wrong with a pace.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PaceError {
    /// A rate that is none.
    #[error("{0} is no rate: requests a second, above 0 and at most 1e9")]
    Rate(String),
    /// No point at all.
    #[error("stages need at least one point, such as 0:100")]
    NoPoint,
    /// Time goes back.
    #[error(
        "stages are in the order of their times, and no two have the same; {0} follows a later or equal one"
    )]
    Order(Nanos),
    /// Rates of nothing but zero.
    #[error("all stages have the rate 0: there is no request to send")]
    NoRate,
    /// A list of times that falls.
    #[error("recorded times never fall; number {0} does")]
    Times(usize),
}

/// Most requests a second that can be asked for: one a nanosecond.
const RATE_MAX: f64 = 1e9;

/// Says what is wrong with `pace`, if anything.
pub fn check(pace: &Pace) -> Result<(), PaceError> {
    match pace {
        Pace::Closed { .. } => Ok(()),
        Pace::Constant { rate_per_s } | Pace::Poisson { rate_per_s } => {
            if *rate_per_s > 0.0 && *rate_per_s <= RATE_MAX {
                Ok(())
            } else {
                Err(PaceError::Rate(rate_per_s.to_string()))
            }
        }
        Pace::Stages { points, .. } => check_stages(points),
        Pace::Times { times_ns } => match times_ns.windows(2).position(|two| two[1] < two[0]) {
            Some(place) => Err(PaceError::Times(place + 2)),
            None => Ok(()),
        },
    }
}

fn check_stages(points: &[StagePoint]) -> Result<(), PaceError> {
    if points.is_empty() {
        return Err(PaceError::NoPoint);
    }
    if let Some(two) = points.windows(2).find(|two| two[1].at_ns <= two[0].at_ns) {
        return Err(PaceError::Order(Nanos(two[1].at_ns)));
    }
    let is_rate = |point: &&StagePoint| !(0.0..=RATE_MAX).contains(&point.rate_per_s);
    if let Some(point) = points.iter().find(is_rate) {
        return Err(PaceError::Rate(point.rate_per_s.to_string()));
    }
    if points.iter().all(|point| point.rate_per_s == 0.0) {
        return Err(PaceError::NoRate);
    }
    Ok(())
}

/// A rate as it is read: `1000 requests/s`, `0.5 requests/s`.
fn a_second(rate_per_s: f64) -> String {
    format!("{rate_per_s} requests/s")
}

/// A pace in words, as the head of an output names it; `None` for a closed loop without think time, which is the usual one.
pub fn described(pace: &Pace) -> Option<String> {
    let spaced = |poisson: bool| if poisson { "poisson" } else { "constant" };
    match pace {
        Pace::Closed { think_ns: 0 } => None,
        Pace::Closed { think_ns } => {
            Some(format!("{} between answer and request", Nanos(*think_ns)))
        }
        Pace::Constant { rate_per_s } => {
            Some(format!("{} ({})", a_second(*rate_per_s), spaced(false)))
        }
        Pace::Poisson { rate_per_s } => {
            Some(format!("{} ({})", a_second(*rate_per_s), spaced(true)))
        }
        Pace::Stages { points, poisson } => {
            let rates = || points.iter().map(|point| point.rate_per_s);
            let (least, most) = (rates().reduce(f64::min)?, rates().reduce(f64::max)?);
            let points = prony_base::counted(points.len(), "point");
            Some(format!(
                "{least} to {} in {points} ({})",
                a_second(most),
                spaced(*poisson)
            ))
        }
        Pace::Times { times_ns } => Some(format!(
            "at {}",
            prony_base::counted(times_ns.len(), "recorded time")
        )),
    }
}

/// The arrivals of one thread.
#[derive(Clone, Debug)]
pub struct Schedule {
    course: Course,
    draw: Draw,
    threads: u64,
}

#[derive(Clone, Debug)]
enum Draw {
    /// Number of the next arrival among those of all threads.
    Even(u64),
    /// Arrivals of all threads expected until this thread's last one.
    Poisson(Box<Random>, f64),
    /// Recorded times, and the place of the next one.
    Times(Vec<u64>, usize),
}

impl Schedule {
    /// The arrivals that thread `thread` of `threads` has by `pace`; `None` in a closed loop.
    pub fn new(pace: &Pace, seed: u64, thread: u32, threads: u32) -> Option<Schedule> {
        let flat = |rate_per_s| {
            vec![StagePoint {
                at_ns: 0,
                rate_per_s,
            }]
        };
        let (points, is_poisson) = match pace {
            Pace::Closed { .. } => return None,
            Pace::Constant { rate_per_s } => (flat(*rate_per_s), false),
            Pace::Poisson { rate_per_s } => (flat(*rate_per_s), true),
            Pace::Stages { points, poisson } => (points.clone(), *poisson),
            Pace::Times { times_ns } => {
                return Some(Schedule {
                    course: Course::new(&[]),
                    draw: Draw::Times(times_ns.clone(), thread as usize),
                    threads: u64::from(threads),
                });
            }
        };
        let random = || Random::of(seed, &format!("arrivals of thread {thread}"));
        let draw = if is_poisson {
            Draw::Poisson(Box::new(random()), 0.0)
        } else {
            Draw::Even(u64::from(thread))
        };
        Some(Schedule {
            course: Course::new(&points),
            draw,
            threads: u64::from(threads),
        })
    }

    /// The next arrival, from the beginning of the load; `None` where there is none any more. Never falls.
    pub fn draw(&mut self) -> Option<Nanos> {
        match &mut self.draw {
            Draw::Even(number) => {
                let at = self.course.reached(*number as f64);
                *number += self.threads;
                at
            }
            Draw::Poisson(random, expected) => {
                // 1 - u is never 0, so that the logarithm is finite.
                *expected += -(1.0 - random.unit()).ln() * self.threads as f64;
                self.course.reached(*expected)
            }
            Draw::Times(times, place) => {
                let at = times.get(*place).copied().map(Nanos);
                *place = place.saturating_add(self.threads as usize);
                at
            }
        }
    }

    /// From `at` on, for good, arrivals come at `rate_per_s` over all threads; those drawn before stay. Recorded
    /// times have no rate that could be changed.
    pub fn set_rate(&mut self, at: Nanos, rate_per_s: f64) {
        self.course.change(at, rate_per_s);
    }
}

/// The expected number of arrivals as time goes by.
#[derive(Clone, Debug)]
struct Course {
    stretches: Vec<Stretch>,
    /// The one in which the last number asked for was reached; they never fall.
    current: usize,
}

/// A straight line of the rate.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Seconds.
    from: f64,
    /// Arrivals expected before it.
    before: f64,
    /// Arrivals a second at its beginning.
    rate: f64,
    /// By how much that grows in a second.
    slope: f64,
    /// Arrivals expected in it; infinite for the last one, unless its rate is zero.
    within: f64,
}

impl Course {
    fn new(points: &[StagePoint]) -> Course {
        let mut stretches = Vec::with_capacity(points.len());
        let mut before = 0.0;
        for (place, point) in points.iter().enumerate() {
            let from = point.at_ns as f64 / 1e9;
            let (slope, within) = match points.get(place + 1) {
                None if point.rate_per_s == 0.0 => (0.0, 0.0),
                None => (0.0, f64::INFINITY),
                Some(next) => {
                    let length = next.at_ns as f64 / 1e9 - from;
                    let mean = f64::midpoint(point.rate_per_s, next.rate_per_s);
                    ((next.rate_per_s - point.rate_per_s) / length, mean * length)
                }
            };
            stretches.push(Stretch {
                from,
                before,
                rate: point.rate_per_s,
                slope,
                within,
            });
            before += within;
        }
        Course {
            stretches,
            current: 0,
        }
    }

    /// When so many arrivals are expected to have come.
    fn reached(&mut self, number: f64) -> Option<Nanos> {
        loop {
            let stretch = self.stretches.get(self.current)?;
            let left = (number - stretch.before).max(0.0);
            if left < stretch.within {
                return Some(stretch.time_of(left));
            }
            self.current += 1;
        }
    }

    fn change(&mut self, at: Nanos, rate_per_s: f64) {
        let from = at.0 as f64 / 1e9;
        let is_begun = |stretch: &&Stretch| stretch.from <= from;
        let Some(last) = self.stretches.iter().rfind(is_begun).copied() else {
            return;
        };
        let length = from - last.from;
        let within = last.rate * length + last.slope * length * length / 2.0;
        self.stretches.retain(|stretch| stretch.from < from);
        if let Some(cut) = self.stretches.last_mut()
            && cut.from == last.from
        {
            cut.within = within;
        }
        self.stretches.push(Stretch {
            from,
            before: last.before + within,
            rate: rate_per_s,
            slope: 0.0,
            within: if rate_per_s > 0.0 { f64::INFINITY } else { 0.0 },
        });
        self.current = self.current.min(self.stretches.len() - 1);
    }
}

impl Stretch {
    /// When so many have come since its beginning, by rate × t + slope × t² / 2 solved for t in the form that
    /// divides by no small difference.
    fn time_of(&self, number: f64) -> Nanos {
        if number == 0.0 {
            return Nanos((self.from * 1e9).round() as u64);
        }
        let square = self.rate * self.rate + 2.0 * self.slope * number;
        let seconds = 2.0 * number / (self.rate + square.max(0.0).sqrt());
        Nanos(((self.from + seconds) * 1e9).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(pace: &Pace, thread: u32, threads: u32, until: Nanos) -> Vec<u64> {
        let mut schedule = Schedule::new(pace, 7, thread, threads).unwrap();
        std::iter::from_fn(|| schedule.draw())
            .take_while(|&at| at < until)
            .map(|at| at.0)
            .collect()
    }

    fn all(pace: &Pace, threads: u32, until: Nanos) -> Vec<u64> {
        let mut all: Vec<u64> = (0..threads)
            .flat_map(|thread| drawn(pace, thread, threads, until))
            .collect();
        all.sort_unstable();
        all
    }

    const SECOND: Nanos = Nanos::from_secs(1);

    #[test]
    fn a_closed_loop_has_no_schedule() {
        assert!(Schedule::new(&Pace::default(), 1, 0, 1).is_none());
    }

    #[test]
    fn a_constant_rate_is_evenly_spaced_over_all_threads_together() {
        let pace = Pace::Constant {
            rate_per_s: 1_000.0,
        };
        let expected: Vec<u64> = (0..1_000).map(|n| n * 1_000_000).collect();
        for threads in [1, 2, 3, 7] {
            assert_eq!(all(&pace, threads, SECOND), expected, "{threads} threads");
        }
    }

    #[test]
    fn a_fraction_of_a_request_a_second_is_a_rate() {
        let pace = Pace::Constant { rate_per_s: 0.4 };
        assert_eq!(all(&pace, 2, SECOND * 6), [0, 2_500_000_000, 5_000_000_000]);
    }

    #[test]
    fn stages_are_straight_lines_between_their_points() {
        let point = |seconds: u64, rate_per_s| StagePoint {
            at_ns: seconds * 1_000_000_000,
            rate_per_s,
        };
        let pace = Pace::Stages {
            points: vec![
                point(0, 0.0),
                point(10, 100.0),
                point(12, 0.0),
                point(13, 0.0),
                point(14, 50.0),
            ],
            poisson: false,
        };
        let arrivals = all(&pace, 3, SECOND * 16);
        let between = |from: u64, to: u64| {
            let range = from * 1_000_000_000..to * 1_000_000_000;
            arrivals.iter().filter(|at| range.contains(at)).count()
        };
        // The areas under the lines: 500, 100, 0, 25, and 50 a second.
        assert_eq!(between(0, 10), 500);
        assert_eq!(between(10, 12), 100);
        assert_eq!(between(12, 13), 0);
        assert_eq!(between(13, 14), 25);
        assert_eq!(between(14, 16), 100);
        // In the first half of a ramp from zero lies a quarter of it.
        assert_eq!(between(0, 5), 125);
    }

    #[test]
    fn recorded_times_are_shared_out_and_none_is_lost() {
        let times_ns = vec![0, 0, 5, 9, 9, 100];
        let pace = Pace::Times {
            times_ns: times_ns.clone(),
        };
        assert_eq!(all(&pace, 4, SECOND), times_ns);
    }

    #[test]
    fn a_rate_that_is_changed_holds_from_then_on() {
        let pace = Pace::Constant { rate_per_s: 100.0 };
        let mut schedule = Schedule::new(&pace, 1, 0, 1).unwrap();
        for _ in 0..100 {
            schedule.draw();
        }
        schedule.set_rate(SECOND, 1_000.0);
        let next: Vec<u64> = (0..3).map(|_| schedule.draw().unwrap().0).collect();
        assert_eq!(next, [1_000_000_000, 1_001_000_000, 1_002_000_000]);
        schedule.set_rate(Nanos(1_002_500_000), 0.0);
        // That of 1.0025 was on its way by a half; no more come.
        assert_eq!(schedule.draw(), None);
    }

    /// Kolmogorov's distance of the gaps from an exponential distribution of mean 1, times the root of their number.
    fn distance(gaps: &mut [f64]) -> f64 {
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let far = gaps.iter().enumerate().map(|(place, gap)| {
            let (below, above) = (place as f64 / n, (place + 1) as f64 / n);
            let expected = 1.0 - (-gap).exp();
            (expected - below).abs().max((above - expected).abs())
        });
        far.fold(0.0, f64::max) * n.sqrt()
    }

    /// 1.628 is the 1 % point of Kolmogorov's distribution; of 20 seeds one may be beyond it.
    #[test]
    fn gaps_of_a_poisson_process_are_exponential_and_independent() {
        let mut rejected = [0; 3];
        for seed in 0..20 {
            let rate = 50_000.0;
            let pace = Pace::Poisson { rate_per_s: rate };
            let threads = 1 + (seed % 3) as u32;
            let mut times: Vec<u64> = (0..threads)
                .flat_map(|thread| {
                    let mut schedule = Schedule::new(&pace, seed, thread, threads).unwrap();
                    let until = SECOND * 2;
                    std::iter::from_fn(move || schedule.draw())
                        .take_while(move |&at| at < until)
                        .map(|at| at.0)
                })
                .collect();
            times.sort_unstable();
            let n = times.len() as f64;
            // The number in two seconds is Poisson, too: 100,000 ± 2.6 × 316.
            rejected[0] += usize::from((n - 2.0 * rate).abs() > 2.576 * (2.0 * rate).sqrt());
            let mut gaps: Vec<f64> = times
                .windows(2)
                .map(|two| (two[1] - two[0]) as f64 / 1e9 * rate)
                .collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
            let lagged: f64 = gaps
                .windows(2)
                .map(|two| (two[0] - mean) * (two[1] - mean))
                .sum();
            let correlation = lagged / n / variance;
            assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "seed {seed}");
            rejected[1] += usize::from(correlation.abs() * n.sqrt() > 2.576);
            rejected[2] += usize::from(distance(&mut gaps) > 1.628);
        }
        assert!(rejected.iter().all(|&times| times <= 1), "{rejected:?}");
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_one_others() {
        let pace = Pace::Poisson {
            rate_per_s: 1_000.0,
        };
        let first = |seed| Schedule::new(&pace, seed, 0, 1).unwrap().draw();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn what_is_no_pace_is_refused_with_the_reason() {
        let point = |at_ns, rate_per_s| StagePoint { at_ns, rate_per_s };
        let stages = |points: &[StagePoint]| Pace::Stages {
            points: points.to_vec(),
            poisson: false,
        };
        for (pace, wrong) in [
            (Pace::Constant { rate_per_s: 0.0 }, "0 is no rate"),
            (
                Pace::Constant {
                    rate_per_s: f64::NAN,
                },
                "NaN is no rate",
            ),
            (Pace::Poisson { rate_per_s: -1.0 }, "-1 is no rate"),
            (stages(&[]), "at least one point"),
            (stages(&[point(5, 1.0), point(5, 2.0)]), "5ns follows"),
            (stages(&[point(0, 0.0)]), "all stages have the rate 0"),
            (stages(&[point(0, -3.0)]), "-3 is no rate"),
            (
                Pace::Times {
                    times_ns: vec![1, 3, 2],
                },
                "number 3 does",
            ),
        ] {
            let said = check(&pace).unwrap_err().to_string();
            assert!(said.contains(wrong), "{said}");
        }
        assert_eq!(check(&stages(&[point(0, 0.0), point(9, 1.0)])), Ok(()));
    }

    proptest! {
        #[test]
        fn arrivals_never_fall_and_are_as_many_as_the_area_says(
            rates in prop::collection::vec(0_u32..2_000, 1..6), threads in 1_u32..5, poisson in any::<bool>(),
        ) {
            let points: Vec<StagePoint> = rates.iter().enumerate()
                .map(|(place, &rate)| StagePoint { at_ns: place as u64 * 1_000_000_000, rate_per_s: f64::from(rate) })
                .collect();
            let until = Nanos::from_secs(points.len() as u64 - 1);
            let area: f64 = rates.windows(2).map(|two| f64::from(two[0] + two[1]) / 2.0).sum();
            let pace = Pace::Stages { points, poisson };
            let mut count = 0;
            for thread in 0..threads {
                let arrivals = drawn(&pace, thread, threads, until);
                prop_assert!(arrivals.is_sorted());
                count += arrivals.len();
            }
            let slack = if poisson { 6.0 * area.sqrt() + 12.0 } else { 1.0 };
            prop_assert!((count as f64 - area).abs() <= slack, "{} for {}", count, area);
        }
    }
}
