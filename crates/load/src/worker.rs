//! One thread of a run: its event loop, its connections, its counts.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use prony_base::{Instant, Nanos, clock};
use prony_engine::{Handle, Stream, Task};
use prony_record::LoadSpec;

use crate::coalescing;
use crate::connection;
use crate::recorder::{Failure, Recorder, SLICE};
use crate::source::{Cycle, Request, RequestSource};
use crate::window::{Part, Window};

/// Connections that one thread opens at the same time, so that a usual listen
/// backlog (128 and more) holds them.
const CONNECTING_MAX: usize = 64;

/// What the threads of a run share.
#[derive(Debug, Default)]
pub struct Shared {
    /// The run is to end now.
    pub stop: AtomicBool,
    /// Requests completed in the window so far.
    pub completed: AtomicU64,
    /// Requests and connects failed in the window so far.
    pub failed: AtomicU64,
}

/// What one thread is to do.
#[derive(Clone, Debug)]
pub struct Share {
    /// Number of the thread, from 0.
    pub thread: u32,
    /// Its connections.
    pub connections: usize,
    /// Requests that it may send.
    pub requests_max: u64,
    /// Number of its first connection among those of the run.
    pub first: usize,
    /// Where to: connection `n` of the run goes to address `n` modulo their number; at
    /// least one.
    pub addresses: Vec<SocketAddr>,
    /// Time-out of a request.
    pub timeout: Nanos,
    /// Status codes that are expected; empty: 200 to 399.
    pub expected_status: Vec<u16>,
}

impl Share {
    /// Where connection `index` of this thread goes, always the same.
    pub fn address(&self, index: usize) -> SocketAddr {
        self.addresses[(self.first + index) % self.addresses.len()]
    }
}

/// The request that is outstanding on a connection.
#[derive(Default)]
struct Slot {
    /// The connection while one request is outstanding on it.
    stream: Option<Rc<Stream>>,
    /// When its request was sent.
    sent: Instant,
    /// The time-out has struck; what fails next fails for that.
    expired: bool,
}

/// A thread at work. Shared by its tasks, never leaves the thread.
pub struct Worker {
    pub(crate) handle: Handle,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) share: Share,
    window: Arc<Window>,
    source: RefCell<Cycle>,
    slots: RefCell<Vec<Slot>>,
    requests_left: Cell<u64>,
    exact: bool,
    coalescing_longest: Cell<Nanos>,
}

/// What a thread counted.
pub struct Counted {
    /// Its counts.
    pub recorder: Recorder,
    /// Its CPU time in the window.
    pub cpu: Nanos,
    /// The longest wait for more completions that was in force.
    pub coalescing: Nanos,
    /// When its last connection had nothing left to do.
    pub finished: Instant,
}

/// Opens the connections of `share`, at most [`CONNECTING_MAX`] at a time. A
/// failed one is `None`; its failure and all lengths are in the recorder.
pub async fn connect_all(
    handle: &Handle,
    share: &Share,
    recorder: &Rc<RefCell<Recorder>>,
) -> Vec<Option<Stream>> {
    let next = Rc::new(Cell::new(0));
    let mut none = Vec::new();
    none.resize_with(share.connections, || None);
    let opened = Rc::new(RefCell::new(none));
    let lanes: Vec<Task<()>> = (0..CONNECTING_MAX.min(share.connections))
        .map(|_| {
            let (handle, recorder) = (handle.clone(), Rc::clone(recorder));
            let (next, opened) = (Rc::clone(&next), Rc::clone(&opened));
            let share = share.clone();
            handle.clone().spawn(async move {
                while next.get() < share.connections {
                    let index = next.replace(next.get() + 1);
                    let (address, timeout) = (share.address(index), share.timeout);
                    let stream = connection::open(&handle, address, timeout, &recorder).await;
                    opened.borrow_mut()[index] = stream.ok();
                }
            })
        })
        .collect();
    for lane in lanes {
        lane.await;
    }
    opened.take()
}

impl Worker {
    /// A thread about to work through `window`.
    pub fn new(
        handle: Handle,
        spec: &LoadSpec,
        share: Share,
        window: Arc<Window>,
        recorder: Recorder,
    ) -> Worker {
        let mut slots = Vec::new();
        slots.resize_with(share.connections, Slot::default);
        Worker {
            handle,
            recorder: RefCell::new(recorder),
            source: RefCell::new(Cycle::new(&spec.requests, share.connections)),
            requests_left: Cell::new(share.requests_max),
            slots: RefCell::new(slots),
            exact: spec.exact,
            coalescing_longest: Cell::default(),
            share,
            window,
        }
    }

    /// Drives `streams` until the window is over and everything is answered or has failed.
    pub async fn work(
        self: Rc<Worker>,
        streams: Vec<Option<Stream>>,
        shared: Arc<Shared>,
    ) -> Counted {
        let cpu = Rc::new(Cell::new((None, None)));
        let conductor = self
            .handle
            .spawn(Rc::clone(&self).conduct(shared, Rc::clone(&cpu)));
        let connections: Vec<Task<()>> = streams
            .into_iter()
            .enumerate()
            .map(|(index, stream)| {
                self.handle
                    .spawn(connection::drive(Rc::clone(&self), index, stream))
            })
            .collect();
        for connection in connections {
            connection.await;
        }
        let finished = self.handle.now();
        drop(conductor);
        let (start, end) = cpu.get();
        let now = clock::thread_cpu();
        let cpu = end.unwrap_or(now) - start.unwrap_or(now);
        let empty = Recorder::new(self.window.start());
        let mut recorder = self.recorder.replace(empty);
        recorder.close_slices(finished.min(self.window.end()));
        Counted {
            recorder,
            cpu,
            coalescing: self.coalescing_longest.get(),
            finished,
        }
    }

    /// Reads the CPU clock at both ends of the window, strikes the time-outs,
    /// sets how long turns may wait for more, hears that the run is to stop, and says how far it has come.
    async fn conduct(
        self: Rc<Worker>,
        shared: Arc<Shared>,
        cpu: Rc<Cell<(Option<Nanos>, Option<Nanos>)>>,
    ) {
        let tick = Nanos((self.share.timeout.0 / 8).clamp(1_000_000, SLICE.0));
        let mut said = (0, 0);
        loop {
            let now = self.handle.now();
            if shared.stop.load(Relaxed) {
                self.window.cut(now);
            }
            let (mut start, mut end) = cpu.get();
            if now >= self.window.start() {
                start.get_or_insert_with(clock::thread_cpu);
            }
            if now >= self.window.end() {
                end.get_or_insert_with(clock::thread_cpu);
            }
            cpu.set((start, end));
            self.strike_timeouts(now).await;
            self.coalesce();
            said = self.say_how_far(&shared, said);
            let moments = [now + tick, self.window.start(), self.window.end()];
            let next = moments.into_iter().filter(|&moment| moment > now).min();
            self.handle.sleep_until(next.unwrap_or(now + tick)).await;
        }
    }

    /// Sets how long a turn may wait for more answers, by the latency so far.
    fn coalesce(&self) {
        if self.exact {
            return;
        }
        let median = self.recorder.borrow().median_latency();
        let (answers, wait) = coalescing::rule(self.share.connections, median);
        self.handle.set_coalescing(answers, wait);
        let in_force = self.handle.stats().coalescing;
        self.coalescing_longest
            .set(in_force.max(self.coalescing_longest.get()));
    }

    fn say_how_far(&self, shared: &Shared, said: (u64, u64)) -> (u64, u64) {
        let (completed, failed) = self.recorder.borrow().so_far();
        shared.completed.fetch_add(completed - said.0, Relaxed);
        shared.failed.fetch_add(failed - said.1, Relaxed);
        (completed, failed)
    }

    /// Resets every connection whose answer is overdue. Its task finds the slot expired.
    async fn strike_timeouts(&self, now: Instant) {
        let timeout = self.share.timeout;
        let is_overdue =
            |slot: &Slot| slot.stream.is_some() && !slot.expired && now.since(slot.sent) >= timeout;
        if !self.slots.borrow().iter().any(is_overdue) {
            return;
        }
        // An answer that is here already, and which only this thread has not looked at, was
        // not late: the kernel is asked, and the connections' tasks have their turn.
        self.handle.yield_now().await;
        for slot in self.slots.borrow_mut().iter_mut() {
            if is_overdue(slot)
                && let Some(stream) = &slot.stream
            {
                slot.expired = true;
                stream.reset();
            }
        }
    }

    /// What the moment `at` belongs to.
    pub(crate) fn part(&self, at: Instant) -> Part {
        self.window.part(at)
    }

    /// Whether a request may still start at `now`.
    pub(crate) fn may_start(&self, now: Instant) -> bool {
        self.requests_left.get() > 0 && self.part(now) != Part::Drain
    }

    /// When no request may start any more.
    pub(crate) fn end(&self) -> Instant {
        self.window.end()
    }

    /// Connection `index` is about to send: its next request, counted, or `None` once nothing may start.
    pub(crate) fn start(&self, index: usize, now: Instant) -> Option<Request> {
        if !self.may_start(now) {
            return None;
        }
        self.requests_left.set(self.requests_left.get() - 1);
        let request = self.source.borrow_mut().next(index).clone();
        self.recorder
            .borrow_mut()
            .sent(self.part(now), request.bytes.len());
        self.slots.borrow_mut()[index].sent = now;
        Some(request)
    }

    /// Connection `index` is `stream` from now on; its time-out counts.
    pub(crate) fn occupy(&self, index: usize, stream: &Rc<Stream>) {
        self.slots.borrow_mut()[index] = Slot {
            stream: Some(Rc::clone(stream)),
            sent: Instant::NEVER,
            expired: false,
        };
    }

    /// Connection `index` is gone. Tells whether its time-out had struck.
    pub(crate) fn vacate(&self, index: usize) -> bool {
        std::mem::take(&mut self.slots.borrow_mut()[index]).expired
    }

    /// Whether `status` counts as expected.
    pub(crate) fn expects(&self, status: u16) -> bool {
        let expected = &self.share.expected_status;
        if expected.is_empty() {
            (200..400).contains(&status)
        } else {
            expected.contains(&status)
        }
    }

    /// Records that the request which was sent on a connection failed now.
    pub(crate) fn failed(&self, failure: Failure) {
        let part = self.part(self.handle.now());
        self.recorder.borrow_mut().failed(part, failure);
    }
}

#[cfg(test)]
mod tests {
    use prony_engine::Config;
    use prony_record::{LoadTarget, PreparedRequest};

    use super::*;
    use crate::recorder::Answer;

    /// A worker of `connections` on a loop of epoll, which can wait for more on every kernel.
    fn with_worker(connections: usize, exact: bool, test: fn(&Worker)) {
        let address = SocketAddr::from(([127, 0, 0, 1], 9));
        let spec = LoadSpec {
            target: LoadTarget {
                url: String::new(),
                address: address.to_string(),
            },
            further: Vec::new(),
            threads: 1,
            connections: connections as u32,
            warmup_ns: 0,
            duration_ns: 0,
            requests_max: None,
            timeout_ns: 0,
            requests: vec![PreparedRequest {
                method: "GET".to_owned(),
                bytes: Vec::new(),
                expect: None,
            }],
            expected_status: Vec::new(),
            driver: "epoll".to_owned(),
            exact,
            ..LoadSpec::default()
        };
        let share = Share {
            thread: 0,
            connections,
            requests_max: 0,
            first: 0,
            addresses: vec![address],
            timeout: Nanos::ZERO,
            expected_status: Vec::new(),
        };
        let config = Config {
            driver: spec.driver.parse().unwrap(),
            ..Config::default()
        };
        let done = prony_engine::run(&config, move |handle| async move {
            let window = Arc::new(Window::new(handle.now(), Nanos::ZERO, Nanos::ZERO));
            let recorder = Recorder::new(window.start());
            test(&Worker::new(handle, &spec, share, window, recorder));
        });
        done.unwrap();
    }

    /// So many answers took so long.
    fn answered(worker: &Worker, times: u32, latency: Nanos) {
        let done = Instant::ZERO + latency;
        for _ in 0..times {
            let answer = Answer {
                sent: Instant::ZERO,
                first_byte: done,
                done,
                status: 200,
                expected: true,
            };
            worker
                .recorder
                .borrow_mut()
                .completed(Part::Measured, &answer);
        }
    }

    fn in_force(worker: &Worker) -> Nanos {
        worker.coalesce();
        worker.handle.stats().coalescing
    }

    #[test]
    fn a_loop_waits_for_more_answers_as_the_latency_so_far_allows_and_the_longest_wait_is_told() {
        with_worker(200, false, |worker| {
            assert_eq!(in_force(worker), Nanos::ZERO);
            answered(worker, 1, Nanos::from_millis(1));
            let wait = in_force(worker);
            let median = worker.recorder.borrow().median_latency();
            assert_eq!(wait, coalescing::rule(200, median).1);
            assert!(wait > Nanos::from_micros(30), "{wait}");
            answered(worker, 9, Nanos::from_micros(400));
            let shorter = in_force(worker);
            assert!(shorter > Nanos::ZERO && shorter < wait, "{shorter}");
            answered(worker, 90, Nanos::from_secs(1));
            assert_eq!(in_force(worker), Nanos::ZERO);
            assert_eq!(worker.coalescing_longest.get(), wait);
        });
    }

    #[test]
    fn a_loop_that_is_to_be_exact_never_waits_for_more() {
        with_worker(200, true, |worker| {
            answered(worker, 1, Nanos::from_millis(1));
            assert_eq!(in_force(worker), Nanos::ZERO);
            assert_eq!(worker.coalescing_longest.get(), Nanos::ZERO);
        });
    }
}
