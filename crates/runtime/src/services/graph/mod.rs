//! The graph of services: their bindings, and what is to be done next. Services, their needs and
//! offers, and the edges between them, without running any of their code.
//!
//! For: `pump`, which asks for the [next](Graph::next) action, does it, and
//! reports the result to the graph. Not for: time, futures, user code.
//!
//! # How it goes
//! A service that waits counts its unmet requirements. A provider that comes up
//! walks the needs that wait for its interface and binds them, each by an edge; the
//! last one queues the start. A provider that is to leave asks the services at its
//! edges to leave first; when its last edge is gone, its stop is queued. Each step
//! touches an edge once, so that all costs O(services + edges). Chains of any
//! length use the queue, never the stack.
//!
//! # Rules
//! - Only a running provider is bound; a need for one is bound only while exactly
//!   one provider is *installed* for it, so that timing decides nothing.
//! - An edge with a queued action outlives its lists, until the action is taken.

mod down;
mod install;
mod up;

use std::any::TypeId;
use std::collections::VecDeque;
use std::rc::Rc;

use prony_base::{Instant, Nanos};

use crate::services::by_type::ByType;
use crate::services::id::ServiceId;
use crate::services::index::Index;
use crate::services::list::{Arena, Links, List, NONE};
use crate::services::port::{AnyTable, Spec};
use crate::services::properties::{Filter, Properties, Text};
use crate::services::recipe::Recipe;
use crate::services::rule::Rule;
use crate::services::sampling::Sampling;
use crate::services::state::{Rare, State};

/// Transitions shorter than this are quick: see [`Sampling`].
const QUICK: Nanos = Nanos(2_000);

/// A service.
pub(super) struct Slot {
    pub generation: u32,
    pub state: State,
    /// Its owner wants it to run.
    pub wanted: bool,
    pub removing: bool,
    /// The instance is made for each start.
    pub constructed: bool,
    start_queued: bool,
    leave_queued: bool,
    /// It has to stop as soon as its start is over.
    pub leave_after_start: bool,
    /// A future awaits news of it.
    awaited: bool,
    pub unmet: u32,
    /// The number of its type.
    pub type_number: u32,
    /// The first of its needs and of its offers, which are chained.
    pub needs: u32,
    pub offers: u32,
    /// Edges to its dependents.
    pub dependents: List,
    /// Among those that run, in the order of their starts.
    order: Links,
    /// The need for which a factory made it.
    pub asked_by: u32,
    /// The edge to the factory that made it.
    pub factory_edge: u32,
    pub starts: u32,
    pub name: Text,
    pub properties: Properties,
    pub recipe: Option<Rc<dyn Recipe>>,
    /// The time at which it came into its state.
    pub since: Instant,
    /// The lengths of its last timed start and stop.
    pub start_took: Option<Nanos>,
    pub stop_took: Option<Nanos>,
    pub rare: Option<Box<Rare>>,
}

/// A start or stop that begins.
pub(super) struct Beginning {
    pub service: u32,
    pub recipe: Rc<dyn Recipe>,
    /// There is nothing to hand over to it, and nothing to make, before its start.
    pub is_bare: bool,
    pub is_timed: bool,
}

/// A need of a service.
pub(super) struct Need {
    pub service: u32,
    pub interface: u32,
    /// Its number in the recipe.
    pub which: u32,
    pub next: u32,
    pub rule: Rule,
    /// In a list of its interface, among those that wait.
    listed: bool,
    asked: Asked,
    links: Links,
    pub edges: List,
    /// The service that a factory made for it.
    pub made: u32,
    /// The version of the installed providers when it was bound.
    version: u32,
    pub filter: Option<Rc<Filter>>,
}

/// Whether a factory has been asked for a need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    No,
    /// The action is queued.
    Queued,
    /// Its service has been freed; so is the need when its queued action is taken.
    Gone,
    /// It made nothing of use; it is asked again when the service starts anew.
    Refused,
}

/// An offer of a service.
pub(super) struct Offer {
    pub service: u32,
    pub interface: u32,
    pub which: u32,
    pub next: u32,
    /// Its place in the interface's table.
    pub place: u32,
    pub factory: bool,
    /// Made by a factory for one need, and seen by no other.
    pub private: bool,
    links: Links,
}

impl Offer {
    pub fn new(interface: u32, which: u32, factory: bool, private: bool) -> Offer {
        Offer {
            service: NONE,
            interface,
            which,
            next: NONE,
            place: NONE,
            factory,
            private,
            links: Links::default(),
        }
    }
}

/// A need that is met by a provider; without a need, a service and its factory.
pub(super) struct Edge {
    pub need: u32,
    pub dependent: u32,
    pub provider: u32,
    pub offer: u32,
    pub attachment: Attachment,
    by_provider: Links,
    by_need: Links,
}

/// The progress of handing a provider to its dependent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attachment {
    /// Not handed over yet: the dependent does not run.
    Detached,
    /// To be handed over; the action is queued.
    Attaching,
    Attached,
    /// To be taken back because the provider leaves; the action is queued.
    Detaching,
    /// Out of all lists; freed when its queued action is taken.
    Gone,
}

pub(super) struct Interface {
    pub type_id: TypeId,
    pub name: Text,
    pub table: Rc<dyn AnyTable>,
    /// All installed providers that anybody may have.
    pub offers: List,
    /// Needs that wait, by kind of filter; those for many wait always.
    plain: List,
    filtered: List,
    many: List,
    index: Index,
    /// The number of changes of `offers`.
    version: u32,
    /// Places of the table: those that were used and are free, and their number.
    free_places: Vec<u32>,
    places: u32,
}

impl Interface {
    fn take_place(&mut self) -> u32 {
        self.free_places.pop().unwrap_or_else(|| {
            self.places += 1;
            self.places - 1
        })
    }
}

/// An action outside of the graph. Two words, so that queueing it is two
/// stores and taking it two loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Action {
    pub what: Work,
    /// The service, or the place of the edge or need.
    of: u64,
}

/// A full word: one that is stored as a byte and loaded with its padding waits for
/// the store to reach the cache, which cost 20 ns a cycle of stop and start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Work {
    Start,
    Leave,
    Stop,
    Free,
    /// Tell the dependent, which runs, of the provider at an edge.
    Added,
    Removed,
    /// Ask a factory for an instance for a need.
    Make,
}

impl Action {
    fn on(what: Work, id: ServiceId) -> Action {
        Action {
            what,
            of: id.into(),
        }
    }

    fn at(what: Work, place: u32) -> Action {
        let of = u64::from(place);
        Action { what, of }
    }

    pub fn service(self) -> ServiceId {
        self.of.into()
    }

    /// The place of the edge or need.
    pub fn place(self) -> u32 {
        self.of as u32
    }
}

/// The result of looking for the one provider of a need among those installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    None,
    One(u32),
    Ambiguous(u32, u32),
}

#[derive(Default)]
pub(super) struct Graph {
    pub slots: Arena<Slot>,
    pub needs: Arena<Need>,
    pub offers: Arena<Offer>,
    pub edges: Arena<Edge>,
    pub interfaces: Vec<Interface>,
    /// By the number of a type of services.
    pub samplings: Vec<Sampling>,
    by_type: ByType<u32>,
    actions: VecDeque<Action>,
    /// Running services, in the order of their starts.
    pub running: List,
    /// Services that start, leave or stop at the moment.
    pub moving: usize,
    /// The number of looks at a need, an offer or an edge: the cost of work.
    pub steps: u64,
    /// Awaited services of which there are news.
    news: Vec<u32>,
}

impl Graph {
    #[inline]
    pub fn id(&self, service: u32) -> ServiceId {
        ServiceId::new(service, self.slots[service].generation)
    }

    /// The place of a service that is still there.
    #[inline]
    pub fn find(&self, id: ServiceId) -> Option<u32> {
        let slot = self.slots.get(id.index())?;
        (slot.generation == id.generation() && slot.recipe.is_some()).then_some(id.index())
    }

    pub fn state(&self, id: ServiceId) -> Option<State> {
        let service = self.find(id)?;
        Some(self.slots[service].state)
    }

    /// Takes note of a start that was timed.
    pub fn note_start(&mut self, service: u32, took: Nanos) {
        let slot = &mut self.slots[service];
        slot.start_took = Some(took);
        self.samplings[slot.type_number as usize].was_quick(took < QUICK);
    }

    /// Takes note of a stop that was timed.
    pub fn note_stop(&mut self, service: u32, took: Nanos) {
        let slot = &mut self.slots[service];
        slot.stop_took = Some(took);
        self.samplings[slot.type_number as usize].was_quick(took < QUICK);
    }

    #[inline]
    pub fn next(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Keeps the next news of a service for [`take_news`](Graph::take_news).
    pub fn await_news(&mut self, id: ServiceId) {
        if let Some(service) = self.find(id) {
            self.slots[service].awaited = true;
        }
    }

    /// The awaited services of which there are news; they are awaited no more.
    pub fn take_news(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.news)
    }

    /// There are news of a service: its state, whether it is wanted, that it is gone.
    #[inline]
    fn note_news(&mut self, service: u32) {
        if self.slots[service].awaited {
            self.slots[service].awaited = false;
            self.news.push(service);
        }
    }

    /// True when no action is queued and no start or stop is under way.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.actions.is_empty() && self.moving == 0
    }

    pub fn interface(&self, type_id: TypeId) -> Option<u32> {
        self.by_type.get(&type_id).copied()
    }

    /// Calls `visit` for the places of all needs of a service, in their order.
    pub fn needs_of(&self, service: u32) -> impl Iterator<Item = u32> + '_ {
        let first = Some(self.slots[service].needs).filter(|&need| need != NONE);
        std::iter::successors(first, |&need| {
            Some(self.needs[need].next).filter(|&next| next != NONE)
        })
    }

    pub fn offers_of(&self, service: u32) -> impl Iterator<Item = u32> + '_ {
        let first = Some(self.slots[service].offers).filter(|&offer| offer != NONE);
        std::iter::successors(first, |&offer| {
            Some(self.offers[offer].next).filter(|&next| next != NONE)
        })
    }

    /// All providers of an interface that anybody may have.
    pub fn installed(&self, interface: u32) -> impl Iterator<Item = u32> + '_ {
        let first =
            Some(self.interfaces[interface as usize].offers.first).filter(|&offer| offer != NONE);
        std::iter::successors(first, |&offer| {
            Some(self.offers[offer].links.next).filter(|&next| next != NONE)
        })
    }

    /// The edges at a need.
    pub fn edges_of(&self, need: u32) -> impl Iterator<Item = u32> + '_ {
        let first = Some(self.needs[need].edges.first).filter(|&edge| edge != NONE);
        std::iter::successors(first, |&edge| {
            Some(self.edges[edge].by_need.next).filter(|&next| next != NONE)
        })
    }

    pub fn accepts(&self, need: &Need, offer: u32) -> bool {
        let provider = self.offers[offer].service;
        provider != need.service
            && need
                .filter
                .as_ref()
                .is_none_or(|filter| filter.accepts(&self.slots[provider].properties))
            && !(self.offers[offer].factory && self.is_made_by(need.service, provider))
    }

    /// Whether `factory` made the service, so that it cannot be asked for what the
    /// service needs itself.
    fn is_made_by(&self, service: u32, factory: u32) -> bool {
        let edge = self.slots[service].factory_edge;
        edge != NONE && self.edges[edge].provider == factory
    }

    /// The provider for a need of one, decided on what is installed.
    #[inline(always)]
    pub fn candidate(&self, need: u32, steps: &mut u64) -> Candidate {
        let need = &self.needs[need];
        let interface = &self.interfaces[need.interface as usize];
        if need.filter.is_none() && interface.offers.len == 1 {
            return self.sole(need, interface.offers.first, steps);
        }
        self.among_several(need, steps)
    }

    #[inline(never)]
    fn among_several(&self, need: &Need, steps: &mut u64) -> Candidate {
        let equality = need.filter.as_ref().and_then(|filter| filter.equality());
        let Some((name, value)) = equality else {
            return self.only(need, self.installed(need.interface), steps);
        };
        let index = &self.interfaces[need.interface as usize].index;
        match index.group(name, value) {
            Some(group) => self.only(need, group.offers.iter().copied(), steps),
            None => Candidate::None,
        }
    }

    /// The common case: one provider, and no filter.
    #[inline]
    fn sole(&self, need: &Need, offer: u32, steps: &mut u64) -> Candidate {
        *steps += 1;
        let at = &self.offers[offer];
        let made = at.factory && self.is_made_by(need.service, at.service);
        match at.service == need.service || made {
            true => Candidate::None,
            false => Candidate::One(offer),
        }
    }

    fn only(&self, need: &Need, offers: impl Iterator<Item = u32>, steps: &mut u64) -> Candidate {
        let mut found = Candidate::None;
        for offer in offers {
            *steps += 1;
            if !self.accepts(need, offer) {
                continue;
            }
            match found {
                Candidate::One(first) => return Candidate::Ambiguous(first, offer),
                _ => found = Candidate::One(offer),
            }
        }
        found
    }
}
