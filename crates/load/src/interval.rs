//! What a run has counted, second by second, while it goes on: for outputs and for whoever watches.
//!
//! Each thread copies its counts at the end of each second of the window, on its control loop, and the thread that called
//! [`run`](crate::run) adds them up and takes the differences. Nothing of it is on a request's way, and nothing at all happens unless
//! [`Observer::wants_intervals`](crate::Observer::wants_intervals) says so. What is copied is half a megabyte a thread and second.

use std::collections::VecDeque;
use std::sync::mpsc;

use prony_base::Nanos;
use prony_record::{Counts, Failures};

use crate::latencies::Latencies;
use crate::recorder::add_counts;

/// A second.
pub const INTERVAL: Nanos = Nanos::from_secs(1);

/// What a step of a scenario has come to in the window, as the report counts it in the end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StepTotals {
    /// Requests answered.
    pub completed: u64,
    /// Of those, with a status that was not expected.
    pub unexpected_status: u64,
    /// Requests that failed.
    pub failed: u64,
}

/// Counts of the run so far.
#[derive(Clone, Debug, Default)]
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
    /// Adds those of another thread at the same moment.
    fn add(&mut self, other: &LoadTotals) {
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
        let after = of.drain_failed + of.abandoned;
        of.failed.total() + of.unexpected_status + after + of.connect_failed.total()
    }

    /// Answers of the window, failed requests, and those failed attempts to connect that are among the errors.
    pub fn ended(&self) -> u64 {
        let of = &self.counts;
        let after = of.drained + of.drain_failed + of.abandoned;
        of.completed + of.failed.total() + after + of.connect_failed.total()
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
            completed: now.counts.completed - before.counts.completed,
            failed: failed(&now).saturating_sub(failed(before)),
            errors: now.errors().saturating_sub(before.errors()),
            ended: now.ended().saturating_sub(before.ended()),
            received_bytes: now.received_bytes - before.received_bytes,
            sent_bytes: now.sent_bytes - before.sent_bytes,
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
    /// Of each thread, what has come and is not used yet.
    waiting: Vec<VecDeque<LoadTotals>>,
    /// Of each thread that has ended, its last.
    ended: Vec<Option<Box<LoadTotals>>>,
    before: LoadTotals,
    next: u64,
}

impl Intervals {
    /// Of `threads` threads, and where each sends its readings: one for each second in turn.
    pub fn new(threads: u32) -> (mpsc::Sender<ThreadReading>, Intervals) {
        let (send, readings) = mpsc::channel();
        let mut waiting = Vec::new();
        waiting.resize_with(threads as usize, VecDeque::new);
        let mut ended = Vec::new();
        ended.resize_with(threads as usize, || None);
        let intervals = Intervals {
            readings,
            waiting,
            ended,
            before: LoadTotals::default(),
            next: 0,
        };
        (send, intervals)
    }

    /// The next interval of which all threads that have not ended have sent their readings.
    pub fn next(&mut self) -> Option<LoadInterval> {
        for (number, thread, totals) in self.readings.try_iter() {
            match number {
                LAST_READING => self.ended[thread as usize] = Some(Box::new(totals)),
                _ => self.waiting[thread as usize].push_back(totals),
            }
        }
        let mut threads = self.waiting.iter().zip(&self.ended);
        let is_known = threads.all(|(waiting, ended)| !waiting.is_empty() || ended.is_some());
        // Where all have ended, what is left is the rest.
        if !is_known || self.waiting.iter().all(VecDeque::is_empty) {
            return None;
        }
        let mut all = LoadTotals::default();
        for (waiting, ended) in self.waiting.iter_mut().zip(&self.ended) {
            match (waiting.pop_front(), ended) {
                (Some(totals), _) => all.add(&totals),
                (None, Some(last)) => all.add(last),
                (None, None) => {}
            }
        }
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
        let (_send, mut intervals) = Intervals::new(2);
        let mut one = totals(3, &[10, 20, 30]);
        (one.counts.sent, one.counts.in_flight, one.counts.drained) = (4, 1, 1);
        let rest = intervals.rest(INTERVAL, [one.clone(), one].into_iter());
        let counts = rest.expect("a second").total.counts;
        assert_eq!((counts.sent, counts.in_flight), (8, 2));
        assert_eq!(counts.sent, counts.completed + counts.in_flight);
    }

    #[test]
    fn steps_of_all_threads_are_added_and_told_by_the_second() {
        let (send, mut intervals) = Intervals::new(2);
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
        let (send, mut intervals) = Intervals::new(2);
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
        let (send, mut intervals) = Intervals::new(2);
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
