//! What a run has counted, second by second, while it goes on: for outputs and for whoever watches.
//!
//! Each thread copies its counts at the end of each second of the window, on its control loop, and the thread that called
//! [`run`](crate::run) adds them up and takes the differences. Nothing of it is on a request's way, and nothing at all happens unless
//! [`Observer::wants_intervals`](crate::Observer::wants_intervals) says so. What is copied is half a megabyte a thread and second.

use std::collections::VecDeque;
use std::sync::mpsc;

use prony_base::Nanos;
use prony_record::{Counts, Failures};
use serde::{Deserialize, Serialize};

use crate::latencies::{Buckets, COUNT_MAX, Latencies};
use crate::recorder::add_counts;

/// A second.
pub const INTERVAL: Nanos = Nanos::from_secs(1);

/// What a step of a scenario has come to in the window, as the report counts it in the end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct StepTotals {
    /// Requests answered.
    pub completed: u64,
    /// Of those, with a status that was not expected.
    pub unexpected_status: u64,
    /// Requests that failed.
    pub failed: u64,
}

/// Counts of the run so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoadTotals {
    /// Every request.
    pub counts: Counts,
    /// Answers of the window by status code, only those that came, rising.
    pub status: Vec<(u16, u64)>,
    /// Latencies of the requests whose origin lies in the window.
    pub latency: Latencies,
    /// How late the generator sent these.
    pub lateness: Latencies,
    /// Bytes received in the window.
    pub received_bytes: u64,
    /// Bytes sent in the window.
    pub sent_bytes: u64,
    /// Connections that are open now.
    pub connections_open: u64,
    /// Requests that are outstanding now.
    pub outstanding: u64,
    /// Requests that wait for an idle connection now.
    pub waiting: u64,
    /// Of each step of a scenario; empty without one.
    pub steps: Vec<StepTotals>,
}

impl LoadTotals {
    /// The counts without the histograms.
    fn bare(&self) -> LoadTotals {
        LoadTotals {
            status: self.status.clone(),
            steps: self.steps.clone(),
            latency: Latencies::default(),
            lateness: Latencies::default(),
            ..*self
        }
    }

    /// What is to be told of them where `told` was told before.
    pub fn beyond(&self, told: &ToldTotals) -> ToldTotals {
        ToldTotals {
            so_far: self.bare(),
            latency: Buckets::from(&self.latency).since(&told.latency),
            lateness: Buckets::from(&self.lateness).since(&told.lateness),
        }
    }

    /// Whether these may be of a later moment than `before`: nothing is less, and nothing beyond what can be counted.
    pub fn follows(&self, before: &LoadTotals) -> bool {
        let of = |totals: &LoadTotals| {
            let counts = totals.counts;
            let bytes = [totals.received_bytes, totals.sent_bytes];
            let counts = [
                counts.sent,
                counts.completed,
                totals.errors(),
                totals.ended(),
            ];
            counts.into_iter().chain(bytes)
        };
        let steps = self.steps.iter();
        let steps = steps.flat_map(|of| [of.completed, of.unexpected_status, of.failed]);
        let status = self.status.iter().map(|(_, count)| *count);
        let counts = &self.counts;
        let others = [
            counts.warmup_completed,
            counts.warmup_failed,
            counts.acknowledged,
            counts.sent_in_drain,
            counts.in_flight,
            self.connections_open,
            self.outstanding,
            self.waiting,
        ];
        let mut others = steps.chain(status).chain(others);
        let mut both = of(self).zip(of(before));
        both.all(|(now, then)| then <= now && now <= COUNT_MAX)
            && others.all(|count| count <= COUNT_MAX)
    }

    /// Adds those of another thread at the same moment.
    pub fn add(&mut self, other: &LoadTotals) {
        add_counts(&mut self.counts, &other.counts);
        for &(code, count) in &other.status {
            match self.status.binary_search_by_key(&code, |&(code, _)| code) {
                Ok(at) => self.status[at].1 += count,
                Err(at) => self.status.insert(at, (code, count)),
            }
        }
        self.latency.add(&other.latency);
        self.lateness.add(&other.lateness);
        let steps = self.steps.len().max(other.steps.len());
        self.steps.resize(steps, StepTotals::default());
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            mine.completed += theirs.completed;
            mine.unexpected_status += theirs.unexpected_status;
            mine.failed += theirs.failed;
        }
        for (mine, theirs) in [
            (&mut self.received_bytes, other.received_bytes),
            (&mut self.sent_bytes, other.sent_bytes),
            (&mut self.connections_open, other.connections_open),
            (&mut self.outstanding, other.outstanding),
            (&mut self.waiting, other.waiting),
        ] {
            *mine += theirs;
        }
    }

    /// Requests of the window that failed or were never answered, answers with an unexpected status, and failed attempts to
    /// connect.
    pub fn errors(&self) -> u64 {
        let of = &self.counts;
        let after = of.drain_failed.saturating_add(of.abandoned);
        let parts = [
            of.failed.total(),
            of.unexpected_status,
            after,
            of.connect_failed.total(),
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Answers of the window, failed requests, and those failed attempts to connect that are among the errors.
    pub fn ended(&self) -> u64 {
        let of = &self.counts;
        let after = [of.drained, of.drain_failed, of.abandoned];
        let parts = [of.completed, of.failed.total(), of.connect_failed.total()];
        parts.into_iter().chain(after).fold(0, u64::saturating_add)
    }
}

/// What a part of a load tells each second: its counts so far, and the latencies that are new. Added up, what it has told.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ToldTotals {
    /// The counts of the run so far, without its histograms.
    pub so_far: LoadTotals,
    /// Latencies.
    pub latency: Buckets,
    /// How late the generator sent these.
    pub lateness: Buckets,
}

impl ToldTotals {
    /// Goes on to what is told `next`.
    pub fn go_on(&mut self, next: &ToldTotals) {
        self.so_far = next.so_far.bare();
        self.latency.add(&next.latency);
        self.lateness.add(&next.lateness);
    }

    /// All that was told.
    pub fn totals(&self) -> LoadTotals {
        LoadTotals {
            latency: Latencies::from(self.latency.clone()),
            lateness: Latencies::from(self.lateness.clone()),
            ..self.so_far.bare()
        }
    }
}

/// What happened in one second of the window, or in what is left at its end.
#[derive(Clone, Debug, Default)]
pub struct LoadInterval {
    /// Its number, from 0.
    pub number: u64,
    /// When it began, from the start of the window.
    pub start: Nanos,
    /// When it ended. Of the last interval this is the end of the window, and answers that came after it are in it.
    pub end: Nanos,
    /// Requests answered in it.
    pub completed: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Errors of it: [`LoadTotals::errors`].
    pub errors: u64,
    /// Requests that ended in it, well or not: [`LoadTotals::ended`].
    pub ended: u64,
    /// Bytes received in it.
    pub received_bytes: u64,
    /// Bytes sent in it.
    pub sent_bytes: u64,
    /// Latencies of requests that ended in it.
    pub latency: Latencies,
    /// How late the generator sent these.
    pub lateness: Latencies,
    /// What ended in it of each step of a scenario; empty without one.
    pub steps: Vec<StepTotals>,
    /// The run so far, at its end.
    pub total: LoadTotals,
}

impl LoadInterval {
    /// What `now` has beyond `before`.
    fn between(
        number: u64,
        span: (Nanos, Nanos),
        before: &LoadTotals,
        now: LoadTotals,
    ) -> LoadInterval {
        let failed = |of: &LoadTotals| of.counts.failed.total();
        LoadInterval {
            number,
            start: span.0,
            end: span.1,
            completed: now.counts.completed.saturating_sub(before.counts.completed),
            failed: failed(&now).saturating_sub(failed(before)),
            errors: now.errors().saturating_sub(before.errors()),
            ended: now.ended().saturating_sub(before.ended()),
            received_bytes: now.received_bytes.saturating_sub(before.received_bytes),
            sent_bytes: now.sent_bytes.saturating_sub(before.sent_bytes),
            latency: now.latency.since(&before.latency),
            lateness: now.lateness.since(&before.lateness),
            steps: steps_between(&before.steps, &now.steps),
            total: now,
        }
    }

    /// Failures of the run so far by kind, attempts to connect included.
    pub fn failures(&self) -> (Failures, Failures) {
        (self.total.counts.failed, self.total.counts.connect_failed)
    }
}

/// What `now` has beyond `before`, of which the first reading has nothing.
fn steps_between(before: &[StepTotals], now: &[StepTotals]) -> Vec<StepTotals> {
    let none = StepTotals::default();
    let of = |(place, now): (usize, &StepTotals)| {
        let before = before.get(place).unwrap_or(&none);
        StepTotals {
            completed: now.completed.saturating_sub(before.completed),
            unexpected_status: now
                .unexpected_status
                .saturating_sub(before.unexpected_status),
            failed: now.failed.saturating_sub(before.failed),
        }
    };
    now.iter().enumerate().map(of).collect()
}

/// The number of a thread's last reading, which holds for all seconds that follow: it has ended.
pub const LAST_READING: u64 = u64::MAX;

/// The counts of one thread at the end of the second with this number, or [`LAST_READING`].
pub type ThreadReading = (u64, u32, LoadTotals);

/// Puts the readings of all threads together.
pub struct Intervals {
    readings: mpsc::Receiver<ThreadReading>,
    first: u32,
    /// Of each thread, what was told.
    told: Vec<ToldTotals>,
    sum: IntervalSum,
}

impl Intervals {
    /// Of so many threads, of which `first` is the first, and where each sends its readings: one for each second in turn.
    pub fn new(first: u32, count: u32) -> (mpsc::Sender<ThreadReading>, Intervals) {
        let (send, readings) = mpsc::channel();
        let mut told = Vec::new();
        told.resize_with(count as usize, ToldTotals::default);
        let intervals = Intervals {
            readings,
            first,
            told,
            sum: IntervalSum::new(count),
        };
        (send, intervals)
    }

    /// The next interval of which all threads that have not ended have sent their readings.
    pub fn next(&mut self) -> Option<LoadInterval> {
        for (number, thread, totals) in self.readings.try_iter() {
            let place = (thread - self.first) as usize;
            let told = &mut self.told[place];
            let new = totals.beyond(told);
            told.go_on(&new);
            match number {
                LAST_READING => self.sum.end(place, new),
                _ => self.sum.add(place, &new),
            }
        }
        self.sum.close_next()
    }

    /// See [`IntervalSum::rest`].
    pub fn rest(
        &mut self,
        length: Nanos,
        all: impl Iterator<Item = LoadTotals>,
    ) -> Option<LoadInterval> {
        self.sum.rest(length, all)
    }
}

/// The seconds of several who count: of threads, or of agents.
#[derive(Debug)]
pub struct IntervalSum {
    /// Of the next second and those after it, what was told of them.
    open: VecDeque<ToldTotals>,
    /// Of each who counts, how many seconds were told of.
    told: Vec<u64>,
    /// Of each that has ended, its last counts, which hold for all seconds that follow.
    ended: Vec<Option<LoadTotals>>,
    before: LoadTotals,
    next: u64,
}

impl IntervalSum {
    /// Of `count` who count.
    pub fn new(count: u32) -> IntervalSum {
        IntervalSum {
            open: VecDeque::new(),
            told: vec![0; count as usize],
            ended: vec![None; count as usize],
            before: LoadTotals::default(),
            next: 0,
        }
    }

    /// What `who` tells of its next second.
    pub fn add(&mut self, who: usize, told: &ToldTotals) {
        let second = self.second(self.told[who]);
        second.so_far.add(&told.so_far);
        second.latency.add(&told.latency);
        second.lateness.add(&told.lateness);
        self.told[who] += 1;
    }

    /// `who` has ended, and tells of what was left.
    pub fn end(&mut self, who: usize, told: ToldTotals) {
        let is_new = told.latency != Buckets::default() || told.lateness != Buckets::default();
        if is_new {
            let second = self.second(self.told[who].max(self.next));
            second.latency.add(&told.latency);
            second.lateness.add(&told.lateness);
        }
        self.ended[who] = Some(told.so_far);
    }

    fn second(&mut self, number: u64) -> &mut ToldTotals {
        let place = number.saturating_sub(self.next) as usize;
        if place >= self.open.len() {
            self.open.resize_with(place + 1, ToldTotals::default);
        }
        &mut self.open[place]
    }

    /// The next second of which all that have not ended have told.
    pub fn close_next(&mut self) -> Option<LoadInterval> {
        let mut all = self.told.iter().zip(&self.ended);
        let is_known = all.all(|(told, ended)| *told > self.next || ended.is_some());
        // Where all have told of no more, what is left is the rest.
        if !is_known || self.told.iter().all(|told| *told <= self.next) {
            return None;
        }
        let mut second = self.open.pop_front().unwrap_or_default();
        for (told, ended) in self.told.iter().zip(&self.ended) {
            if let Some(last) = ended.as_ref().filter(|_| *told <= self.next) {
                second.so_far.add(last);
            }
        }
        let mut all = LoadTotals {
            latency: self.before.latency.clone(),
            lateness: self.before.lateness.clone(),
            ..second.so_far.bare()
        };
        all.latency.add_buckets(&second.latency);
        all.lateness.add_buckets(&second.lateness);
        let start = INTERVAL * self.next;
        Some(self.close((start, start + INTERVAL), all))
    }

    /// What is left of a window of `length` and after it; `all` are the counts of each thread at its end. `None` where nothing is.
    pub fn rest(
        &mut self,
        length: Nanos,
        all: impl Iterator<Item = LoadTotals>,
    ) -> Option<LoadInterval> {
        let mut sum = LoadTotals::default();
        all.for_each(|totals| sum.add(&totals));
        let start = INTERVAL * self.next;
        let new = sum.ended() > self.before.ended()
            || !sum.latency.since(&self.before.latency).is_empty();
        (new || length > start).then(|| self.close((start, length.max(start)), sum))
    }

    fn close(&mut self, span: (Nanos, Nanos), all: LoadTotals) -> LoadInterval {
        let number = self.next;
        self.next += 1;
        let interval = LoadInterval::between(number, span, &self.before, all);
        self.before = interval.total.clone();
        interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(completed: u64, latencies: &[u64]) -> LoadTotals {
        let mut totals = LoadTotals::default();
        totals.counts.completed = completed;
        totals.status = vec![(200, completed)];
        for latency in latencies {
            totals.latency.record(Nanos(*latency));
        }
        totals
    }

    #[test]
    fn what_was_in_flight_at_the_end_was_in_no_interval() {
        let (_send, mut intervals) = Intervals::new(0, 2);
        let mut one = totals(3, &[10, 20, 30]);
        (one.counts.sent, one.counts.in_flight, one.counts.drained) = (4, 1, 1);
        let rest = intervals.rest(INTERVAL, [one.clone(), one].into_iter());
        let counts = rest.expect("a second").total.counts;
        assert_eq!((counts.sent, counts.in_flight), (8, 2));
        assert_eq!(counts.sent, counts.completed + counts.in_flight);
    }

    #[test]
    fn steps_of_all_threads_are_added_and_told_by_the_second() {
        let (send, mut intervals) = Intervals::new(0, 2);
        let with = |completed, failed| LoadTotals {
            steps: vec![
                StepTotals {
                    completed,
                    failed,
                    ..StepTotals::default()
                };
                2
            ],
            ..totals(completed * 2, &[])
        };
        let say = |second, thread, totals| send.send((second, thread, totals)).unwrap();
        say(0, 0, with(3, 0));
        say(0, 1, with(4, 1));
        say(1, 0, with(5, 0));
        say(1, 1, with(9, 3));
        let mut told = || {
            let steps = intervals.next().expect("a second").steps;
            steps.iter().map(|of| (of.completed, of.failed)).collect()
        };
        let both: [Vec<(u64, u64)>; 2] = [told(), told()];
        assert_eq!(both, [vec![(7, 1); 2], vec![(7, 2); 2]]);
        let rest = intervals.rest(INTERVAL * 2, [with(6, 0), with(9, 3)].into_iter());
        assert_eq!(rest.expect("one more").steps[1].completed, 1);
    }

    #[test]
    fn a_thread_that_has_ended_stands_for_itself_in_the_seconds_of_the_others() {
        let (send, mut intervals) = Intervals::new(0, 2);
        let say = |second, thread, totals| send.send((second, thread, totals)).unwrap();
        say(0, 0, totals(3, &[10, 20, 30]));
        say(LAST_READING, 1, totals(1, &[100]));
        say(1, 0, totals(5, &[10, 20, 30, 40, 50]));
        let seconds: Vec<u64> = (0..2)
            .map(|_| intervals.next().expect("one has ended").completed)
            .collect();
        assert_eq!(seconds, [4, 2]);
        say(LAST_READING, 0, totals(6, &[10, 20, 30, 40, 50, 60]));
        assert!(intervals.next().is_none(), "the rest is told by its own");
    }

    #[test]
    fn a_second_is_over_when_all_threads_have_said_so_and_its_counts_are_differences() {
        let (send, mut intervals) = Intervals::new(0, 2);
        let say = |second, thread, totals| send.send((second, thread, totals)).unwrap();
        say(0, 0, totals(3, &[10, 20, 30]));
        say(1, 0, totals(4, &[10, 20, 30, 40]));
        assert!(intervals.next().is_none());
        say(0, 1, totals(1, &[100]));
        let first = intervals.next().expect("both have said");
        assert_eq!((first.number, first.completed), (0, 4));
        assert_eq!((first.start, first.end), (Nanos::ZERO, INTERVAL));
        assert_eq!(first.latency.summary().max, 100);
        assert!(intervals.next().is_none());
        say(1, 1, totals(1, &[100]));
        let second = intervals.next().expect("both have said");
        assert_eq!((second.number, second.completed), (1, 1));
        let latency = second.latency.summary();
        assert_eq!((latency.count, latency.min, latency.max), (1, 40, 40));
        assert_eq!(second.total.status, [(200, 5)]);
        // One more is answered after the window, and one never.
        let mut last = totals(1, &[100]);
        last.latency.record_never();
        let rest = [totals(5, &[10, 20, 30, 40, 50]), last];
        let rest = intervals.rest(INTERVAL * 2, rest.into_iter());
        let rest = rest.expect("something is left");
        assert_eq!(
            (rest.completed, rest.start, rest.end),
            (1, INTERVAL * 2, INTERVAL * 2)
        );
        let latency = rest.latency.summary();
        assert_eq!((latency.count, latency.infinite, latency.min), (2, 1, 50));
        let same = [rest.total].into_iter();
        assert!(intervals.rest(INTERVAL * 2, same).is_none());
    }
}
