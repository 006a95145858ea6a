//! A script's thread as the source of its requests, and as what follows their answers.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use prony_base::Nanos;
use prony_load::{
    AnswerFollower, AnswerFollowers, EncodedRequest, Failure, LoadResult, Next, RequestSource,
};
use prony_wire::Headers;

use crate::machine::{Fields, Machine};
use crate::request::first;
use crate::value::Value;
use crate::{RunEnd, ScriptThread, lock};

/// Bytes of a body that `response` takes, at the most.
const BODY_BYTES_MAX: usize = 64 << 20;

/// What the script defines, as it was after the first `init`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadPlan {
    is_dynamic: bool,
    has_delay: bool,
    /// How many arguments `response` takes.
    pub response: Option<u8>,
}

/// What a script defines, and how many requests its `request` returns at once. It is called once for that, as in wrk.
pub fn plan(machine: &mut Machine) -> Result<(ThreadPlan, u32), String> {
    let mut has = |name: &str| {
        machine
            .call("has", &[Value::text(name)])
            .map(|is| is == Value::Bool(true))
    };
    let (is_dynamic, has_delay, has_response) = (has("request")?, has("delay")?, has("response")?);
    let response = match has_response
        .then(|| machine.call("wants", &[]))
        .transpose()?
    {
        Some(Value::Number(count)) => Some(count as u8),
        _ => None,
    };
    let depth = machine.request(|bytes| {
        let (mut rest, mut depth) = (bytes, 0);
        while !rest.is_empty() || depth == 0 {
            rest = &rest[first(rest).map_err(malformed)?.length..];
            depth += 1;
        }
        match depth {
            1..=1_000 => Ok(depth),
            _ => Err("it returned more than 1,000 requests at once".to_owned()),
        }
    })?;
    Ok((
        ThreadPlan {
            is_dynamic,
            has_delay,
            response,
        },
        depth,
    ))
}

fn malformed(why: &str) -> String {
    format!("request() returned what is no whole request: {why}")
}

/// One connection, as the source sees it.
#[derive(Clone, Default)]
struct Lane {
    outstanding: usize,
    /// Requests of the batch that were sent.
    sent: usize,
    /// The place that waits for the delay of the connection.
    waits: Option<usize>,
    is_made: bool,
    batch: Vec<EncodedRequest>,
}

/// The source of one thread.
pub struct ScriptSource {
    thread: Arc<ScriptThread>,
    end: Arc<RunEnd>,
    depth: usize,
    lanes: Vec<Lane>,
}

impl ScriptSource {
    pub fn new(
        thread: Arc<ScriptThread>,
        end: Arc<RunEnd>,
        slots: usize,
        depth: usize,
    ) -> ScriptSource {
        let lane = Lane {
            sent: depth,
            batch: vec![EncodedRequest::rewritten(); depth],
            ..Lane::default()
        };
        ScriptSource {
            lanes: vec![lane; slots / depth],
            thread,
            end,
            depth,
        }
    }

    /// Has the next requests of a connection made.
    fn make(&mut self, index: usize) -> Result<(), String> {
        let batch = &mut self.lanes[index].batch;
        lock(&self.thread.machine).request(|bytes| {
            let mut rest = bytes;
            for request in &mut *batch {
                let found = first(rest).map_err(malformed)?;
                request.set_bytes(found.method, found.closes, &rest[..found.length]);
                rest = &rest[found.length..];
            }
            match rest.is_empty() {
                true => Ok(()),
                false => Err(format!(
                    "request() returned more than {} requests, as it did first",
                    batch.len()
                )),
            }
        })
    }

    /// What a slot does next; an error has the name of the call that failed.
    fn step(&mut self, index: usize, place: usize) -> Result<Step, (&'static str, String)> {
        let lane = &mut self.lanes[index];
        if lane.sent < self.depth && lane.sent == place {
            lane.sent += 1;
            lane.outstanding += 1;
            return Ok(Step::Send);
        }
        if lane.outstanding > 0 {
            return Ok(Step::Nothing);
        }
        match lane.waits {
            _ if !self.thread.plan.has_delay => {}
            None => {
                lane.waits = Some(place);
                let delay = lock(&self.thread.machine).delay();
                return delay.map(Step::After).map_err(|why| ("delay()", why));
            }
            Some(other) if other != place => return Ok(Step::Nothing),
            Some(_) => lane.waits = None,
        }
        if self.thread.plan.is_dynamic || !lane.is_made {
            self.make(index).map_err(|why| ("request()", why))?;
        }
        let lane = &mut self.lanes[index];
        lane.is_made = true;
        if self.depth > 1 {
            lane.sent = 0;
            return Ok(Step::Together);
        }
        lane.outstanding = 1;
        Ok(Step::Send)
    }
}

enum Step {
    Send,
    Nothing,
    After(f64),
    Together,
}

impl RequestSource for ScriptSource {
    fn next(&mut self, slot: usize) -> Next<'_> {
        if self.end.is_over() || self.thread.state.stopped.load(Relaxed) {
            return Next::Stopped;
        }
        let (index, place) = (slot / self.depth, slot % self.depth);
        match self.step(index, place) {
            Ok(Step::Send) => Next::Send(&self.lanes[index].batch[place]),
            Ok(Step::Nothing) => Next::Nothing,
            Ok(Step::After(ms)) => Next::After(Nanos((ms * 1e6) as u64)),
            Ok(Step::Together) => Next::Together,
            Err((call, why)) => {
                self.end.fail(format!("{call}: {why}"));
                Next::Stopped
            }
        }
    }

    fn ended(&mut self, slot: usize, _outcome: Result<u16, Failure>) {
        let lane = &mut self.lanes[slot / self.depth];
        lane.outstanding = lane.outstanding.saturating_sub(1);
        if lane.outstanding == 0 {
            lane.sent = self.depth;
        }
    }
}

/// Hands answers to `response`.
pub struct Followers {
    pub threads: Vec<Arc<ScriptThread>>,
    pub end: Arc<RunEnd>,
    pub takes: u8,
}

impl std::fmt::Debug for Followers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Followers")
            .field("takes", &self.takes)
            .finish_non_exhaustive()
    }
}

impl AnswerFollowers for Followers {
    fn follower(
        &self,
        thread: u32,
        checker: Option<Box<dyn AnswerFollower>>,
        failed: u16,
    ) -> Box<dyn AnswerFollower> {
        Box::new(ScriptFollower {
            thread: Arc::clone(&self.threads[thread as usize]),
            end: Arc::clone(&self.end),
            takes: self.takes,
            checker,
            failed,
            fields: Fields::default(),
            body: Vec::new(),
            is_long: false,
        })
    }
}

struct ScriptFollower {
    thread: Arc<ScriptThread>,
    end: Arc<RunEnd>,
    takes: u8,
    checker: Option<Box<dyn AnswerFollower>>,
    failed: u16,
    fields: Fields,
    body: Vec<u8>,
    is_long: bool,
}

impl AnswerFollower for ScriptFollower {
    fn begin(&mut self) {
        self.fields.bytes.clear();
        self.fields.ends.clear();
        self.body.clear();
        self.is_long = false;
        if let Some(checker) = &mut self.checker {
            checker.begin();
        }
    }

    fn head(&mut self, headers: &Headers<'_>) {
        if self.takes >= 2 {
            for header in &mut headers.iter() {
                self.fields.bytes.extend_from_slice(header.name.as_bytes());
                let name = self.fields.bytes.len();
                self.fields.bytes.extend_from_slice(header.value);
                self.fields.ends.push((name, self.fields.bytes.len()));
            }
        }
        if let Some(checker) = &mut self.checker {
            checker.head(headers);
        }
    }

    fn body(&mut self, data: &[u8]) {
        self.is_long |= self.takes >= 3 && self.body.len() + data.len() > BODY_BYTES_MAX;
        if self.takes >= 3 && !self.is_long {
            self.body.extend_from_slice(data);
        }
        if let Some(checker) = &mut self.checker {
            checker.body(data);
        }
    }

    fn end(&mut self, status: u16) -> Option<u16> {
        let check = self
            .checker
            .as_mut()
            .and_then(|checker| checker.end(status));
        if self.end.is_over() || self.thread.state.stopped.load(Relaxed) {
            return check;
        }
        let called = match self.is_long {
            true => Err("a body has more than the 64 MiB that it takes".to_owned()),
            false => lock(&self.thread.machine).response(status, Some(&self.fields), &self.body),
        };
        match called {
            Ok(()) => check,
            Err(why) => {
                self.end.fail(format!("response(): {why}"));
                Some(self.failed)
            }
        }
    }
}

/// What `done` is given: the summary, latencies in microseconds, and requests a second of each thread in tenths of a second.
pub fn figures(result: &LoadResult) -> [Value; 3] {
    let report = &result.report;
    let number = |count: u64| Value::Number(count as f64);
    let failed = &report.counts.failed;
    let errors = Value::named([
        ("connect", number(report.counts.connect_failed.total())),
        ("read", number(failed.total() - failed.timeout)),
        ("write", number(0)),
        ("status", number(above_399(result))),
        ("timeout", number(failed.timeout)),
    ]);
    let summary = Value::named([
        ("duration", number(report.window_ns / 1_000)),
        ("requests", number(report.counts.completed)),
        ("bytes", number(report.received_bytes)),
        ("errors", errors),
    ]);
    let latencies = result.histogram.counts.iter();
    let latency = distribution(latencies.map(|&(ns, count)| ((ns + 500) / 1_000, count)));
    let threads = u64::from(report.threads.max(1));
    let slices = &report.slices;
    let a_second = |count: u64| count * 1_000_000_000 / slices.slice_ns.max(1) / threads;
    let rates = slices.completed.iter().filter(|count| **count > 0);
    [
        summary,
        latency,
        distribution(rates.map(|&count| (a_second(count), 1))),
    ]
}

fn above_399(result: &LoadResult) -> u64 {
    let errors = result.report.status.iter();
    let errors =
        errors.filter(|(status, _)| status.parse::<u16>().is_ok_and(|status| status > 399));
    errors.map(|(_, count)| count).sum()
}

/// Values and how often each occurred, in order, with their moments.
fn distribution(all: impl Iterator<Item = (u64, u64)>) -> Value {
    let mut counts = std::collections::BTreeMap::new();
    for (value, count) in all {
        *counts.entry(value).or_insert(0) += count;
    }
    let total = counts.values().sum::<u64>() as f64;
    let sum: f64 = counts
        .iter()
        .map(|(&value, &count)| value as f64 * count as f64)
        .sum();
    let mean = if total > 0.0 { sum / total } else { 0.0 };
    let squares: f64 = counts
        .iter()
        .map(|(&value, &count)| (value as f64 - mean).powi(2) * count as f64)
        .sum();
    let number = |count: Option<&u64>| Value::Number(count.copied().unwrap_or_default() as f64);
    Value::named([
        ("min", number(counts.keys().next())),
        ("max", number(counts.keys().next_back())),
        ("mean", Value::Number(mean)),
        (
            "stdev",
            Value::Number(if total > 1.0 {
                (squares / (total - 1.0)).sqrt()
            } else {
                0.0
            }),
        ),
        (
            "values",
            Value::list(counts.keys().map(|&value| Value::Number(value as f64))),
        ),
        (
            "counts",
            Value::list(counts.values().map(|&count| Value::Number(count as f64))),
        ),
    ])
}
