//! Going down: the services that use one first, then the service, then what it used.
//! Not for: coming up (`up`).

use prony_base::Instant;

use super::{Action, Attachment, Beginning, Edge, Graph, NONE, Rule, ServiceId, State, Work};

impl Graph {
    #[inline]
    pub fn queue_leave(&mut self, service: u32) {
        let slot = &mut self.slots[service];
        if !slot.leave_queued && !matches!(slot.state, State::Leaving | State::Stopping) {
            slot.leave_queued = true;
            let id = ServiceId::new(service, slot.generation);
            self.actions.push_back(Action::on(Work::Leave, id));
        }
    }

    /// Begins to take a service down, after those that use it. True where none
    /// does, and it is to be stopped at once.
    #[inline]
    pub fn leave(&mut self, id: ServiceId) -> bool {
        let service = id.index();
        let Some(slot) = self.slots.get_mut(service) else {
            return false;
        };
        if slot.generation != id.generation() {
            return false;
        }
        slot.leave_queued = false;
        match slot.state {
            State::Waiting if !slot.wanted => {
                self.disarm(service);
                self.rest(service, State::Stopped);
            }
            State::Starting => slot.leave_after_start = true,
            State::Running => return self.leave_running(service),
            state @ (State::Stopped | State::Failed) if slot.removing => self.rest(service, state),
            _ => {}
        }
        false
    }

    #[inline]
    fn leave_running(&mut self, service: u32) -> bool {
        self.running
            .take(&mut self.slots, service, |slot| &mut slot.order);
        self.slots[service].state = State::Leaving;
        self.moving += 1;
        let mut edge = self.slots[service].dependents.first;
        if edge == NONE {
            return true;
        }
        while edge != NONE {
            let next = self.edges[edge].by_provider.next;
            self.send_away(edge);
            edge = next;
        }
        false
    }

    /// Gets the dependent at an edge off its provider, which leaves.
    #[inline]
    fn send_away(&mut self, edge: u32) {
        self.steps += 1;
        let Edge {
            need,
            dependent,
            attachment,
            ..
        } = self.edges[edge];
        if need == NONE {
            return self.remove(dependent);
        }
        let rule = self.needs[need].rule;
        match (rule, attachment) {
            (_, Attachment::Detached) if self.slots[dependent].state == State::Waiting => {
                self.slots[dependent].unmet += u32::from(rule == Rule::Required);
                self.unlink(edge);
                self.seek(need);
            }
            (Rule::Required | Rule::Fixed, _) => self.queue_leave(dependent),
            (_, Attachment::Attached) => {
                self.edges[edge].attachment = Attachment::Detaching;
                self.actions.push_back(Action::at(Work::Removed, edge));
            }
            (_, Attachment::Detaching | Attachment::Gone) => {}
            (_, Attachment::Detached | Attachment::Attaching) => {
                self.unlink(edge);
                self.seek(need);
            }
        }
    }

    #[inline]
    fn stop_if_alone(&mut self, service: u32) {
        let slot = &self.slots[service];
        if slot.state == State::Leaving && slot.dependents.is_empty() {
            let id = ServiceId::new(service, slot.generation);
            self.actions.push_back(Action::on(Work::Stop, id));
        }
    }

    /// Takes an edge out of its lists. Its provider stops when it was the last.
    #[inline]
    pub fn unlink(&mut self, edge: u32) {
        self.steps += 1;
        let Edge {
            need,
            provider,
            attachment,
            ..
        } = self.edges[edge];
        let dependents = &mut self.slots[provider].dependents;
        dependents.take(&mut self.edges, edge, |edge| &mut edge.by_provider);
        if need != NONE {
            let edges = &mut self.needs[need].edges;
            edges.take(&mut self.edges, edge, |edge| &mut edge.by_need);
        }
        if matches!(attachment, Attachment::Attaching | Attachment::Detaching) {
            self.edges[edge].attachment = Attachment::Gone;
        } else {
            self.edges.free(edge);
        }
        self.stop_if_alone(provider);
    }

    /// Takes a queued action that hands a provider to its dependent; None where that has
    /// gone meanwhile.
    pub fn take_added(&mut self, edge: u32) -> bool {
        self.take_queued(edge, Attachment::Attaching)
    }

    /// Takes a queued action that takes a leaving provider from its dependent.
    pub fn take_removed(&mut self, edge: u32) -> bool {
        self.take_queued(edge, Attachment::Detaching)
    }

    fn take_queued(&mut self, edge: u32, expected: Attachment) -> bool {
        let attachment = self.edges[edge].attachment;
        if attachment == expected {
            self.edges[edge].attachment = Attachment::Attached;
            return true;
        }
        if attachment == Attachment::Gone {
            self.edges.free(edge);
        }
        false
    }

    /// An optional provider has been taken from its dependent.
    pub fn removed(&mut self, edge: u32) {
        let need = self.edges[edge].need;
        self.unlink(edge);
        self.seek(need);
    }

    /// Takes the stop of a service in hand.
    #[inline]
    pub fn begin_stop(&mut self, id: ServiceId, now: Instant) -> Option<Beginning> {
        let slot = self.slots.get(id.index())?;
        let is_to_stop = slot.generation == id.generation()
            && slot.state == State::Leaving
            && slot.dependents.is_empty();
        if !is_to_stop {
            return None;
        }
        self.begin(id.index(), State::Stopping, now)
    }

    /// The next provider that is to be taken from a service which has stopped, and whether
    /// its callback is to be called.
    #[inline]
    pub fn next_bound(&mut self, from: &mut u32) -> Option<(u32, bool)> {
        while *from != NONE {
            let edge = self.needs[*from].edges.first;
            if edge != NONE {
                let is_attached = matches!(
                    self.edges[edge].attachment,
                    Attachment::Attached | Attachment::Detaching
                );
                return Some((edge, is_attached));
            }
            *from = self.needs[*from].next;
        }
        None
    }

    /// Disarms a service: its needs wait no more, and those that are bound are unbound.
    #[inline]
    fn disarm(&mut self, service: u32) {
        let mut need = self.slots[service].needs;
        while need != NONE {
            self.unlist(need);
            let mut edge = self.needs[need].edges.first;
            while edge != NONE {
                let next = self.edges[edge].by_need.next;
                self.unlink(edge);
                edge = next;
            }
            need = self.needs[need].next;
        }
    }

    /// A start has failed, or a service is down: it waits again where it is wanted,
    /// and else rests in `state`.
    #[inline]
    pub fn came_down(&mut self, service: u32, state: State) {
        self.moving -= 1;
        self.slots[service].leave_after_start = false;
        self.disarm(service);
        self.rest(service, state);
    }

    /// A service that waits cannot be started.
    pub fn fail_waiting(&mut self, service: u32) {
        self.disarm(service);
        self.rest(service, State::Failed);
    }

    #[inline]
    fn rest(&mut self, service: u32, state: State) {
        self.note_news(service);
        let slot = &mut self.slots[service];
        slot.state = state;
        if slot.removing {
            let id = ServiceId::new(service, slot.generation);
            // Nothing else may come before it: it is out of all lists.
            self.actions.push_back(Action::on(Work::Free, id));
        } else if slot.wanted && state == State::Stopped {
            self.arm(service);
        }
    }
}
