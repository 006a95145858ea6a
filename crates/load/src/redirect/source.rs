//! Sends the hops of redirects in the slots of the requests that led to them; everything else comes from another [`RequestSource`].

use std::cell::RefCell;
use std::rc::Rc;

use prony_base::{Instant, Nanos};
use prony_record::LoadSpec;

use super::chain::HopChain;
use super::figures::HopFigures;
use crate::interval::StepTotals;
use crate::scenario::figures::ScenarioFigures;
use crate::source::{EncodedRequest, EndedRequest, Next, RequestSource, UserTurn};
use crate::window::LoadPhase;

/// Where the chain of a slot is.
#[derive(Clone, Copy, Debug)]
enum ChainState {
    /// It has none.
    Free,
    /// A request of it is outstanding. Its latency counts from then; `None`: from what this request's does.
    Sends { began: Option<Instant> },
    /// A hop is due then.
    Waits { began: Instant, due: Instant },
}

/// `source`, which has so many slots, with redirects followed where `spec` says so.
pub fn following(
    source: Box<dyn RequestSource>,
    spec: &LoadSpec,
    slots: usize,
) -> Box<dyn RequestSource> {
    match spec.follow_max {
        None => source,
        Some(hops_max) => Box::new(FollowingSource::new(source, spec, hops_max, slots)),
    }
}

/// The source of one thread.
struct FollowingSource {
    inner: Box<dyn RequestSource>,
    has_users: bool,
    chains: Vec<Rc<RefCell<HopChain>>>,
    states: Vec<ChainState>,
    /// The hop of each slot that was sent last.
    hops: Vec<Option<EncodedRequest>>,
    /// Chains that have begun and not ended.
    active: usize,
    figures: HopFigures,
}

impl FollowingSource {
    /// `inner` with its redirects followed, up to `hops_max` in a row, for so many slots.
    fn new(
        inner: Box<dyn RequestSource>,
        spec: &LoadSpec,
        hops_max: u32,
        slots: usize,
    ) -> FollowingSource {
        let keeps_cookies = spec.cookies || spec.scenario.is_some();
        let chain = || {
            let chain = HopChain::new(hops_max, spec.tls.is_some(), keeps_cookies);
            Rc::new(RefCell::new(chain))
        };
        let mut chains = Vec::new();
        chains.resize_with(slots, chain);
        let mut hops = Vec::new();
        hops.resize_with(slots, || None);
        FollowingSource {
            has_users: inner.has_users(),
            inner,
            chains,
            states: vec![ChainState::Free; slots],
            hops,
            active: 0,
            figures: HopFigures::default(),
        }
    }

    /// The chain of `slot` has ended.
    fn free(&mut self, slot: usize) {
        self.states[slot] = ChainState::Free;
        self.active -= 1;
    }
}

impl RequestSource for FollowingSource {
    fn next(&mut self, slot: usize) -> Next<'_> {
        let waits = match self.states[slot] {
            ChainState::Waits { began, .. } => Some(began),
            ChainState::Free | ChainState::Sends { .. } => None,
        };
        let hop =
            waits.and_then(|began| Some((began, self.chains[slot].borrow_mut().take_next()?)));
        if let Some((began, mut hop)) = hop {
            self.states[slot] = ChainState::Sends { began: Some(began) };
            self.figures.followed += 1;
            self.inner.hop_sent(slot);
            hop.chain = Some(Rc::clone(&self.chains[slot]));
            return Next::Send(self.hops[slot].insert(hop));
        }
        match self.inner.next(slot) {
            Next::Send(request) => {
                self.states[slot] = ChainState::Sends { began: None };
                self.active += 1;
                self.chains[slot].borrow_mut().restart();
                request.chain = Some(Rc::clone(&self.chains[slot]));
                Next::Send(request)
            }
            other => other,
        }
    }

    fn ended(&mut self, slot: usize, request: &EndedRequest<'_>) {
        let ChainState::Sends { began } = self.states[slot] else {
            return;
        };
        let began = began.unwrap_or(request.origin);
        let has_next = self.chains[slot].borrow().has_next();
        match request.outcome {
            Ok(answer) if has_next => {
                self.states[slot] = ChainState::Waits {
                    began,
                    due: answer.times.done(),
                };
                return self.inner.led_on(slot, request);
            }
            Ok(answer) if answer.expected && request.phases.end == LoadPhase::Measured => {
                self.figures.whole.record(answer.times.done().since(began));
            }
            Ok(_) | Err(_) => {}
        }
        self.chains[slot].borrow_mut().restart();
        self.free(slot);
        self.inner.ended(slot, request);
    }

    fn has_users(&self) -> bool {
        true
    }

    fn steps_so_far(&self) -> Vec<StepTotals> {
        self.inner.steps_so_far()
    }

    fn turn(&self, slot: usize) -> UserTurn {
        match self.states[slot] {
            ChainState::Waits { due, .. } => UserTurn::GoesOn(due),
            _ if self.has_users => self.inner.turn(slot),
            ChainState::Sends { .. } => UserTurn::GoesOn(Instant::NEVER),
            ChainState::Free => UserTurn::Free(Instant::ZERO),
        }
    }

    fn users(&self) -> usize {
        match self.has_users {
            true => self.inner.users(),
            false => self.active,
        }
    }

    fn stopped(&mut self, slot: usize) {
        if matches!(self.states[slot], ChainState::Waits { .. }) {
            self.figures.unfinished += 1;
            self.free(slot);
        }
        self.inner.stopped(slot);
    }

    fn abandoned(&mut self, slot: usize, origin: LoadPhase, so_far: Nanos) {
        self.inner.abandoned(slot, origin, so_far);
    }

    fn finish(&mut self) -> Option<ScenarioFigures> {
        self.inner.finish()
    }

    fn finish_hops(&mut self) -> Option<HopFigures> {
        let waits = |state: &&ChainState| matches!(state, ChainState::Waits { .. });
        self.figures.unfinished += self.states.iter().filter(waits).count() as u64;
        Some(std::mem::take(&mut self.figures))
    }
}
