//! Coming up: needs are bound to providers that run, and what has all that it
//! requires is started.
//! Not for: installing (`install`) and going down (`down`).

use prony_base::Instant;

use super::{
    Action, Asked, Attachment, Beginning, Candidate, Edge, Graph, List, NONE, Rule, ServiceId,
    State, Work,
};

impl Graph {
    #[inline]
    pub(super) fn queue_start(&mut self, service: u32) {
        let slot = &mut self.slots[service];
        if slot.state == State::Waiting && slot.wanted && slot.unmet == 0 && !slot.start_queued {
            slot.start_queued = true;
            let id = ServiceId::new(service, slot.generation);
            self.actions.push_back(Action::on(Work::Start, id));
        }
    }

    /// Arms a service that does not run: it waits for what it needs.
    #[inline]
    pub fn arm(&mut self, service: u32) {
        let slot = &mut self.slots[service];
        (slot.state, slot.unmet) = (State::Waiting, 0);
        let mut need = slot.needs;
        let mut unmet = 0;
        while need != NONE {
            let at = &mut self.needs[need];
            unmet += u32::from(at.rule == Rule::Required);
            if at.asked == Asked::Refused {
                at.asked = Asked::No;
            }
            need = at.next;
        }
        self.slots[service].unmet = unmet;
        let mut need = self.slots[service].needs;
        while need != NONE {
            let next = self.needs[need].next;
            self.seek(need);
            need = next;
        }
        self.queue_start(service);
    }

    /// Wants a service to run.
    #[inline]
    pub fn want(&mut self, service: u32) {
        let slot = &mut self.slots[service];
        if slot.removing {
            return;
        }
        slot.wanted = true;
        if matches!(slot.state, State::Stopped | State::Failed) {
            self.arm(service);
        }
        self.note_news(service);
    }

    #[inline]
    fn is_armed(&self, service: u32) -> bool {
        matches!(
            self.slots[service].state,
            State::Waiting | State::Starting | State::Running
        )
    }

    /// Binds a need that waits where that is possible; else lets it wait.
    #[inline]
    pub(super) fn seek(&mut self, need: u32) {
        self.steps += 1;
        let at = &self.needs[need];
        if !self.is_armed(at.service) {
            return;
        }
        if at.rule == Rule::Many {
            return self.seek_many(need);
        }
        if !at.edges.is_empty() || at.asked != Asked::No {
            return;
        }
        if at.made != NONE {
            return self.seek_made(need);
        }
        let mut steps = 0;
        let candidate = self.candidate(need, &mut steps);
        self.steps += steps;
        if let Candidate::One(offer) = candidate {
            let provider = self.offers[offer].service;
            if self.slots[provider].state == State::Running {
                if self.offers[offer].factory {
                    return self.ask_factory(need);
                }
                return self.bind(need, offer);
            }
        }
        self.list(need);
    }

    fn seek_many(&mut self, need: u32) {
        if self.needs[need].listed {
            return;
        }
        self.list(need);
        let interface = self.needs[need].interface;
        let filter = self.needs[need].filter.clone();
        let equality = filter.as_ref().and_then(|filter| filter.equality());
        let offers: Vec<u32> = match equality {
            None => self.installed(interface).collect(),
            Some((name, value)) => {
                let group = self.interfaces[interface as usize].index.group(name, value);
                group.map_or_else(Vec::new, |group| group.offers.iter().copied().collect())
            }
        };
        for offer in offers {
            self.bind_one_of_many(need, offer);
        }
    }

    /// Binds a need for many to one offer, where that runs and is accepted.
    fn bind_one_of_many(&mut self, need: u32, offer: u32) {
        self.steps += 1;
        let at = &self.offers[offer];
        let runs = self.slots[at.service].state == State::Running;
        if runs && !at.factory && self.accepts(&self.needs[need], offer) {
            self.bind(need, offer);
        }
    }

    /// Binds a need to what a factory made for it, once that runs.
    #[inline]
    fn seek_made(&mut self, need: u32) {
        let made = self.needs[need].made;
        if self.slots[made].state != State::Running {
            return;
        }
        let interface = self.needs[need].interface;
        let offered = |&offer: &u32| self.offers[offer].interface == interface;
        let offer = self.offers_of(made).find(offered);
        if let Some(offer) = offer {
            self.bind(need, offer);
        }
    }

    fn ask_factory(&mut self, need: u32) {
        self.unlist(need);
        self.needs[need].asked = Asked::Queued;
        self.actions.push_back(Action::at(Work::Make, need));
    }

    /// The service for whose need a factory is to be asked; None where it has gone.
    pub fn take_make(&mut self, need: u32) -> Option<u32> {
        if self.needs[need].asked == Asked::Gone {
            self.needs.free(need);
            return None;
        }
        Some(self.needs[need].service)
    }

    /// A factory has not made what it was asked for. `again` where it may be asked
    /// again.
    pub fn not_made(&mut self, need: u32, again: bool) {
        self.needs[need].asked = if again { Asked::No } else { Asked::Refused };
        self.seek(need);
    }

    #[inline]
    fn bind(&mut self, need: u32, offer: u32) {
        self.steps += 1;
        if self.needs[need].rule != Rule::Many {
            self.unlist(need);
        }
        let provider = self.offers[offer].service;
        let dependents = &mut self.slots[provider].dependents;
        let at = &mut self.needs[need];
        let (service, rule) = (at.service, at.rule);
        at.version = self.interfaces[at.interface as usize].version;
        let edge = self.edges.insert(Edge {
            need,
            dependent: service,
            provider,
            offer,
            attachment: Attachment::Detached,
            by_provider: dependents.last_links(),
            by_need: at.edges.last_links(),
        });
        dependents.append(&mut self.edges, edge, |edge| &mut edge.by_provider);
        let edges = &mut at.edges;
        edges.append(&mut self.edges, edge, |edge| &mut edge.by_need);
        match (rule, self.slots[service].state) {
            (Rule::Required, _) => {
                self.slots[service].unmet -= 1;
                self.queue_start(service);
            }
            (Rule::Fixed, State::Starting | State::Running) => self.queue_leave(service),
            (_, State::Starting | State::Running) => {
                self.edges[edge].attachment = Attachment::Attaching;
                self.actions.push_back(Action::at(Work::Added, edge));
            }
            _ => {}
        }
    }

    #[inline]
    pub(super) fn list(&mut self, need: u32) {
        if self.needs[need].listed {
            return;
        }
        self.needs[need].listed = true;
        let (interface, rule) = (self.needs[need].interface, self.needs[need].rule);
        let interface = &mut self.interfaces[interface as usize];
        let filter = self.needs[need].filter.as_ref();
        if let Some((name, value)) = filter.and_then(|filter| filter.equality()) {
            return interface.index.add_need(name, value, need);
        }
        let list = match (rule, filter) {
            (Rule::Many, _) => &mut interface.many,
            (_, None) => &mut interface.plain,
            (_, Some(_)) => &mut interface.filtered,
        };
        list.push(&mut self.needs, need, |need| &mut need.links);
    }

    #[inline]
    pub(super) fn unlist(&mut self, need: u32) {
        if !self.needs[need].listed {
            return;
        }
        self.needs[need].listed = false;
        let (interface, rule) = (self.needs[need].interface, self.needs[need].rule);
        let interface = &mut self.interfaces[interface as usize];
        let filter = self.needs[need].filter.as_ref();
        if let Some((name, value)) = filter.and_then(|filter| filter.equality()) {
            return interface.index.take_need(name, value, need);
        }
        let list = match (rule, filter) {
            (Rule::Many, _) => &mut interface.many,
            (_, None) => &mut interface.plain,
            (_, Some(_)) => &mut interface.filtered,
        };
        list.take(&mut self.needs, need, |need| &mut need.links);
    }

    /// Takes the start of a service in hand; None where it is not to start after all.
    #[inline]
    pub fn begin_start(&mut self, id: ServiceId, now: Instant) -> Option<Beginning> {
        let service = id.index();
        let slot = self.slots.get_mut(service)?;
        if slot.generation != id.generation() {
            return None;
        }
        slot.start_queued = false;
        if slot.state != State::Waiting || !slot.wanted || slot.unmet > 0 {
            return None;
        }
        if slot.needs != NONE && self.has_become_ambiguous(service) {
            return None;
        }
        self.moving += 1;
        self.begin(service, State::Starting, now)
    }

    /// A start or stop begins.
    #[inline(always)]
    pub(super) fn begin(&mut self, service: u32, state: State, now: Instant) -> Option<Beginning> {
        let slot = &mut self.slots[service];
        (slot.state, slot.since) = (state, now);
        Some(Beginning {
            service,
            recipe: slot.recipe.clone()?,
            is_bare: slot.needs == NONE && !slot.constructed,
            is_timed: self.samplings[slot.type_number as usize].is_due(),
        })
    }

    /// Unbinds what has got a second candidate before its dependent was started.
    #[inline]
    fn has_become_ambiguous(&mut self, service: u32) -> bool {
        let mut need = self.slots[service].needs;
        let mut changed = false;
        while need != NONE {
            let at = &self.needs[need];
            let (next, edge) = (at.next, at.edges.first);
            let version = self.interfaces[at.interface as usize].version;
            let stale =
                at.rule != Rule::Many && edge != NONE && at.made == NONE && at.version != version;
            if stale {
                let mut steps = 0;
                match self.candidate(need, &mut steps) {
                    Candidate::One(_) => self.needs[need].version = version,
                    _ => {
                        self.slots[service].unmet +=
                            u32::from(self.needs[need].rule == Rule::Required);
                        self.unlink(edge);
                        self.list(need);
                        changed = true;
                    }
                }
                self.steps += steps;
            }
            need = next;
        }
        changed && self.slots[service].unmet > 0
    }

    /// The next provider that is to be handed to a starting service, and the need
    /// for it; `from` is the need to go on from.
    #[inline]
    pub fn next_detached(&mut self, from: &mut u32) -> Option<u32> {
        while *from != NONE {
            let mut edge = self.needs[*from].edges.first;
            while edge != NONE {
                if self.edges[edge].attachment == Attachment::Detached {
                    self.edges[edge].attachment = Attachment::Attached;
                    return Some(edge);
                }
                edge = self.edges[edge].by_need.next;
            }
            *from = self.needs[*from].next;
        }
        None
    }

    /// A service has started: binds the needs that wait for it.
    #[inline]
    pub fn came_up(&mut self, service: u32) {
        let slot = &mut self.slots[service];
        slot.state = State::Running;
        slot.starts += 1;
        let (asked_by, mut offer) = (slot.asked_by, slot.offers);
        let leaves = std::mem::take(&mut slot.leave_after_start);
        self.moving -= 1;
        self.note_news(service);
        self.running
            .push(&mut self.slots, service, |slot| &mut slot.order);
        if leaves {
            return self.queue_leave(service);
        }
        if asked_by != NONE {
            self.seek(asked_by);
        }
        while offer != NONE {
            let at = &self.offers[offer];
            let next = at.next;
            if !at.private {
                self.offer_to_waiting(offer);
            }
            offer = next;
        }
    }

    #[inline]
    fn offer_to_waiting(&mut self, offer: u32) {
        let (service, number) = (self.offers[offer].service, self.offers[offer].interface);
        let interface = &self.interfaces[number as usize];
        let (filtered, many) = (interface.filtered, interface.many);
        // Of three or more, no need without a filter can have the only one; of two,
        // a service that provides one of them can have the other.
        let (plain, indexed) = (interface.plain, !interface.index.is_empty());
        if interface.offers.len <= 2 {
            self.seek_all(plain);
        }
        self.seek_all(filtered);
        if indexed {
            self.seek_indexed(number, service);
        }
        let mut need = many.first;
        while need != NONE {
            let next = self.needs[need].links.next;
            self.bind_one_of_many(need, offer);
            need = next;
        }
    }

    #[inline]
    pub(super) fn seek_all(&mut self, list: List) {
        let mut need = list.first;
        while need != NONE {
            let next = self.needs[need].links.next;
            self.seek(need);
            need = next;
        }
    }

    /// Seeks for the needs with a filter by equality that `provider` may meet.
    pub(super) fn seek_indexed(&mut self, interface: u32, provider: u32) {
        let index = &self.interfaces[interface as usize].index;
        let waiting = index.waiting_for(&self.slots[provider].properties);
        for need in waiting {
            if self.needs[need].rule != Rule::Many {
                self.seek(need);
                continue;
            }
            let offered = |&offer: &u32| {
                self.offers[offer].interface == interface && !self.offers[offer].private
            };
            let offer = self.offers_of(provider).find(offered);
            if let Some(offer) = offer {
                self.bind_one_of_many(need, offer);
            }
        }
    }
}
