//! A script's thread as the source of its requests.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use prony_base::{Nanos, counted};
use prony_load::{EncodedRequest, EndedRequest, Next, RequestSource};

use crate::machine::LuaState;
use crate::request::first;
use crate::value::LuaValue;
use crate::{ScriptRun, ScriptThread, lock};

/// Requests that `request` may return at once.
const DEPTH_MAX: u32 = 1_000;

/// The functions that the script defines, as they were after the first `init`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptPlan {
    is_dynamic: bool,
    /// There is a `delay`.
    pub has_delay: bool,
    /// There is a `response`.
    pub has_response: bool,
    /// Requests that `request` returns at once.
    pub depth: u32,
}

/// The functions that a script defines. Its `request` is called once for that, as in wrk.
///
/// # Errors
/// That failed, or returned no whole requests.
pub fn plan(lua: &mut LuaState) -> Result<ScriptPlan, String> {
    let mut has = |name: &str| {
        let has = lua.call("has", &[LuaValue::text(name)]);
        has.map(|is| is == LuaValue::Bool(true))
    };
    let (is_dynamic, has_delay, has_response) = (has("request")?, has("delay")?, has("response")?);
    let depth = lua.request(|bytes| {
        let (mut rest, mut depth) = (bytes, 0);
        while !rest.is_empty() || depth == 0 {
            rest = &rest[first(rest).map_err(malformed)?.length..];
            depth += 1;
        }
        match depth {
            1..=DEPTH_MAX => Ok(depth),
            _ => Err(format!(
                "it returned more than {DEPTH_MAX} requests at once"
            )),
        }
    })?;
    Ok(ScriptPlan {
        is_dynamic,
        has_delay,
        has_response,
        depth,
    })
}

fn malformed(why: &str) -> String {
    format!("it returned what is no whole request: {why}")
}

/// One connection, as the source sees it.
#[derive(Clone, Default)]
struct ScriptLane {
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
    run: Arc<ScriptRun>,
    plan: ScriptPlan,
    depth: usize,
    lanes: Vec<ScriptLane>,
}

impl ScriptSource {
    pub fn new(thread: Arc<ScriptThread>, run: Arc<ScriptRun>, slots: usize) -> ScriptSource {
        let plan = run.plan();
        let depth = plan.depth.max(1) as usize;
        let lane = ScriptLane {
            sent: depth,
            batch: vec![EncodedRequest::rewritten(); depth],
            ..ScriptLane::default()
        };
        ScriptSource {
            lanes: vec![lane; slots / depth],
            thread,
            run,
            plan,
            depth,
        }
    }

    /// Has the next requests of a connection made.
    fn make(&mut self, index: usize) -> Result<(), String> {
        let batch = &mut self.lanes[index].batch;
        lock(&self.thread.lua).request(|bytes| {
            let mut rest = bytes;
            for request in &mut *batch {
                let found = first(rest).map_err(malformed)?;
                request.set_bytes(found.method, found.closes, &rest[..found.length]);
                rest = &rest[found.length..];
            }
            match rest.is_empty() {
                true => Ok(()),
                false => Err(format!(
                    "it returned more than {}, as it did first",
                    counted(batch.len(), "request")
                )),
            }
        })
    }

    /// The next step of a slot; an error has the name of the call that failed.
    fn step(&mut self, index: usize, place: usize) -> Result<ScriptStep, (&'static str, String)> {
        let lane = &mut self.lanes[index];
        if lane.sent < self.depth && lane.sent == place {
            lane.sent += 1;
            lane.outstanding += 1;
            return Ok(ScriptStep::Send);
        }
        if lane.outstanding > 0 {
            return Ok(ScriptStep::Nothing);
        }
        match lane.waits {
            _ if !self.plan.has_delay => {}
            None => {
                lane.waits = Some(place);
                let delay = lock(&self.thread.lua).delay();
                return delay.map(ScriptStep::After).map_err(|why| ("delay()", why));
            }
            Some(other) if other != place => return Ok(ScriptStep::Nothing),
            Some(_) => lane.waits = None,
        }
        if self.plan.is_dynamic || !lane.is_made {
            self.make(index).map_err(|why| ("request()", why))?;
        }
        let lane = &mut self.lanes[index];
        lane.is_made = true;
        if self.depth > 1 {
            lane.sent = 0;
            return Ok(ScriptStep::Together);
        }
        lane.outstanding = 1;
        Ok(ScriptStep::Send)
    }
}

enum ScriptStep {
    Send,
    Nothing,
    After(f64),
    Together,
}

impl RequestSource for ScriptSource {
    fn next(&mut self, slot: usize) -> Next<'_> {
        if self.run.is_over() || self.thread.wish.stopped.load(Relaxed) {
            return Next::Stopped;
        }
        let (index, place) = (slot / self.depth, slot % self.depth);
        match self.step(index, place) {
            Ok(ScriptStep::Send) => Next::Send(&mut self.lanes[index].batch[place]),
            Ok(ScriptStep::Nothing) => Next::Nothing,
            Ok(ScriptStep::After(ms)) => Next::After(Nanos((ms * 1e6) as u64)),
            Ok(ScriptStep::Together) => Next::Together,
            Err((call, why)) => {
                self.run.fail(call, &why);
                Next::Stopped
            }
        }
    }

    fn ended(&mut self, slot: usize, _request: &EndedRequest<'_>) {
        let lane = &mut self.lanes[slot / self.depth];
        lane.outstanding = lane.outstanding.saturating_sub(1);
        if lane.outstanding == 0 {
            lane.sent = self.depth;
        }
    }
}
