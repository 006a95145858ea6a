//! Performs the graph's actions: runs constructors, callbacks, starts
//! and stops, and reports the results to the graph.
//! Not for: deciding anything (`graph`).
//!
//! One action after another, never one within another: code of a service that asks
//! for more only queues it. Of very many actions, some thousand are done at a time,
//! and then the loop gets its turn.

use std::cell::{RefCell, RefMut};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use prony_base::{Instant, Nanos};

use super::context::{Context, FactoryRequest};
use super::failure::{Failure, caught};
use super::graph::{Action, Candidate, Graph, Work};
use super::id::ServiceId;
use super::life::{Begun, Going, Guarded, Transition};
use super::list::NONE;
use super::observers::is_traced;
use super::properties::Properties;
use super::recipe::{Blueprint, Bound, Recipe};
use super::registry::{AddError, MadeFor, Registry};
use super::rule::Rule;
use super::state::{Rare, Reason, State};
use super::waits::Awaited;

/// Actions that are done before the loop gets its turn.
const ACTIONS_PER_TURN: usize = 4096;

/// A call of a factory: the factory, the number of its offer, the request, and the need that
/// it is for.
type FactoryCall = (Rc<dyn Recipe>, u32, FactoryRequest, MadeFor);

impl Registry {
    /// Installs a service, and arms it where it is wanted to run.
    ///
    /// # Errors
    /// [`AddError`].
    pub fn add<B: Blueprint + ?Sized>(
        &self,
        blueprint: &mut B,
        made_for: Option<MadeFor>,
    ) -> Result<ServiceId, AddError> {
        let (id, wanted) = self.install(blueprint, made_for)?;
        self.note_added(id);
        if wanted {
            self.graph.borrow_mut().arm(id.index());
        }
        self.schedule();
        Ok(id)
    }

    /// Waits until `done` gives a value; it is called after each change that concerns it.
    pub async fn until<T>(&self, of: Awaited, mut done: impl FnMut(&Graph) -> Option<T>) -> T {
        // Mostly so at once, and then nothing is kept for waiting.
        self.pump();
        if let Some(value) = done(&self.graph.borrow()) {
            return value;
        }
        self.wait_until(of, done).await
    }

    async fn wait_until<T>(&self, of: Awaited, mut done: impl FnMut(&Graph) -> Option<T>) -> T {
        let wait: Rc<RefCell<Option<Waker>>> = Rc::default();
        let mut is_woken = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut is_woken, true) {
                self.pump();
                if let Some(value) = done(&self.graph.borrow()) {
                    return Poll::Ready(value);
                }
            }
            if wait.replace(Some(cx.waker().clone())).is_none() {
                self.waits.add(of, Rc::downgrade(&wait));
                if let Awaited::One(id) = of {
                    self.graph.borrow_mut().await_news(id);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Schedules a run of the queued actions, as a task of the loop.
    pub fn schedule(&self) {
        if self.scheduled.replace(true) || self.pumping.get() {
            return;
        }
        let registry = self.this.clone();
        let handle = self.shared.handle.clone();
        let work = async move {
            while let Some(registry) = registry.upgrade() {
                registry.scheduled.set(false);
                registry.pump();
                if !registry.scheduled.get() {
                    return;
                }
                drop(registry);
                handle.yield_now().await;
            }
        };
        self.shared.handle.spawn(work).detach();
    }

    /// Performs queued actions, some thousand at a time.
    pub fn pump(&self) {
        if self.pumping.replace(true) {
            return;
        }
        let mut done = 0;
        while done < ACTIONS_PER_TURN
            && let Some((graph, action)) = self.next_action()
        {
            done += 1;
            self.perform(graph, action);
        }
        self.pumping.set(false);
        if done == ACTIONS_PER_TURN {
            self.scheduled.set(false);
            self.schedule();
        } else {
            self.wake_waiting(done > 0);
        }
    }

    /// Wakes the futures that the news concern; after a change, once all is quiet, the others.
    fn wake_waiting(&self, has_changed: bool) {
        if self.waits.is_empty() {
            return;
        }
        let mut graph = self.graph.borrow_mut();
        let is_quiet = has_changed && graph.is_quiet();
        let news = graph.take_news();
        drop(graph);
        self.waits.wake_ones(&news);
        if is_quiet {
            self.waits.wake_all();
        }
    }

    #[inline]
    fn next_action(&self) -> Option<(RefMut<'_, Graph>, Action)> {
        let mut graph = self.graph.borrow_mut();
        let mut action = graph.next();
        if action.is_none() && self.closing.get() {
            self.close_next(&mut graph);
            action = graph.next();
        }
        action.map(|action| (graph, action))
    }

    /// Makes the last that was started leave, as long as all are to be stopped.
    fn close_next(&self, graph: &mut Graph) {
        let last = graph.running.last;
        if last != NONE {
            graph.slots[last].wanted = false;
            graph.queue_leave(last);
        } else if graph.moving == 0 {
            self.closing.set(false);
        }
    }

    /// Performs one action. The graph is handed on borrowed, because most begin with it.
    #[inline]
    fn perform(&self, graph: RefMut<'_, Graph>, action: Action) {
        match action.what {
            Work::Start => self.start(graph, action.service()),
            Work::Leave => self.leave(graph, action.service()),
            Work::Stop => self.stop(graph, action.service()),
            _ => {
                drop(graph);
                self.perform_rare(action);
            }
        }
    }

    fn perform_rare(&self, action: Action) {
        match action.what {
            Work::Free => self.free(action.service()),
            Work::Added => self.added(action.place()),
            Work::Removed => self.removed(action.place()),
            Work::Make => self.make(action.place()),
            Work::Start | Work::Leave | Work::Stop => {}
        }
    }

    fn start<'a>(&'a self, mut graph: RefMut<'a, Graph>, id: ServiceId) {
        let Some(beginning) = graph.begin_start(id, self.now()) else {
            return;
        };
        let (service, recipe) = (beginning.service, beginning.recipe);
        let began = beginning.is_timed.then(|| self.read_clock());
        let is_observed = self.is_observed();
        if is_observed {
            drop(graph);
            self.note_state(id, State::Starting);
            graph = self.graph.borrow_mut();
        }
        let context = self.context(id);
        let handed_over = match beginning.is_bare {
            true => {
                drop(graph);
                Ok(())
            }
            false => caught(|| self.hand_over(graph, service, &*recipe, &context)),
        };
        let begun = match handed_over {
            Ok(()) if is_observed => self.begin_in_span(id, Transition::Start, &*recipe, context),
            Ok(()) => recipe.begin(Transition::Start, context),
            Err(panic) => Begun::Panicked(panic),
        };
        if matches!(begun, Begun::Done(Ok(()))) {
            return self.up(id, service, began.map(|began| self.took(began)));
        }
        self.begun(id, Transition::Start, begun, &recipe, began);
    }

    fn took(&self, began: Instant) -> Nanos {
        self.read_clock().since(began)
    }

    /// Gives a service all that it needs, makes it, and puts out what it provides.
    #[inline]
    fn hand_over<'a>(
        &'a self,
        mut graph: RefMut<'a, Graph>,
        service: u32,
        recipe: &dyn Recipe,
        context: &Context,
    ) {
        let mut from = graph.slots[service].needs;
        while let Some(edge) = graph.next_detached(&mut from) {
            let (bound, properties) = (bound(&graph, edge), properties(&graph, edge));
            drop(graph);
            recipe.added(bound, &properties, context);
            graph = self.graph.borrow_mut();
        }
        let constructed = graph.slots[service].constructed;
        drop(graph);
        if constructed {
            recipe.make(context);
            self.publish(service, recipe);
        }
    }

    fn stop(&self, mut graph: RefMut<'_, Graph>, id: ServiceId) {
        let Some(beginning) = graph.begin_stop(id, self.now()) else {
            return;
        };
        let (service, recipe) = (beginning.service, beginning.recipe);
        let began = beginning.is_timed.then(|| self.read_clock());
        drop(graph);
        let context = self.context(id);
        let begun = if self.is_observed() {
            self.note_state(id, State::Stopping);
            self.begin_in_span(id, Transition::Stop, &*recipe, context)
        } else {
            recipe.begin(Transition::Stop, context)
        };
        if matches!(begun, Begun::Done(Ok(()))) {
            let took = began.map(|began| self.took(began));
            return self.down(id, service, None, took, &*recipe);
        }
        self.begun(id, Transition::Stop, begun, &recipe, began);
    }

    #[cold]
    fn begin_in_span(
        &self,
        id: ServiceId,
        transition: Transition,
        recipe: &dyn Recipe,
        context: Context,
    ) -> Begun {
        self.span(id, transition)
            .in_scope(|| recipe.begin(transition, context))
    }

    /// Goes on after the first poll of a start or stop that did not just succeed.
    #[cold]
    fn begun(
        &self,
        id: ServiceId,
        transition: Transition,
        begun: Begun,
        recipe: &Rc<dyn Recipe>,
        began: Option<Instant>,
    ) {
        let outcome = match begun {
            Begun::Done(Ok(())) => Ok(()),
            Begun::Done(Err(failure)) => Err(failed(transition, &failure)),
            Begun::Panicked(message) => Err(panicked(transition, &message)),
            Begun::Pending(going) => {
                let began = began.unwrap_or_else(|| self.read_clock());
                return self.go_on(id, transition, going, began, recipe.clone());
            }
        };
        let took = began.map(|began| self.took(began));
        self.ended(id, transition, outcome, took, &**recipe);
    }

    /// Spawns a start or stop that is not ready as a task, for its time.
    fn go_on(
        &self,
        id: ServiceId,
        transition: Transition,
        going: Going,
        began: Instant,
        recipe: Rc<dyn Recipe>,
    ) {
        let limit = self.timeout(id, transition);
        let registry = self.this.clone();
        let handle = self.shared.handle.clone();
        let span = self.span(id, transition);
        let guarded = Guarded::new(Box::pin(tracing::Instrument::instrument(going, span)));
        let work = async move {
            let outcome = match handle.timeout(limit, guarded).await {
                Ok(Ok(Ok(()))) => Ok(()),
                Ok(Ok(Err(failure))) => Err(failed(transition, &failure)),
                Ok(Err(message)) => Err(panicked(transition, &message)),
                Err(_) if transition == Transition::Start => {
                    Err(Box::new(Reason::StartTimedOut(limit)))
                }
                Err(_) => Err(Box::new(Reason::StopTimedOut(limit))),
            };
            let Some(registry) = registry.upgrade() else {
                return;
            };
            let task = registry.rare(id, |rare| rare.task.take()).flatten();
            if let Some(task) = task {
                task.detach();
            }
            let took = registry.read_clock().since(began);
            registry.ended(id, transition, outcome, Some(took), &*recipe);
            registry.pump();
            // There may have been no action left, and yet this is what a future awaits.
            registry.wake_waiting(true);
        };
        let task = self.shared.handle.spawn(work);
        self.rare(id, |rare| rare.task = Some(task));
    }

    fn timeout(&self, id: ServiceId, transition: Transition) -> Nanos {
        let graph = self.graph.borrow();
        let rare = graph
            .find(id)
            .and_then(|service| graph.slots[service].rare.as_ref());
        match transition {
            Transition::Start => rare
                .and_then(|rare| rare.start_timeout)
                .unwrap_or(self.options.start_timeout),
            Transition::Stop => rare
                .and_then(|rare| rare.stop_timeout)
                .unwrap_or(self.options.stop_timeout),
        }
    }

    fn rare<T>(&self, id: ServiceId, work: impl FnOnce(&mut Rare) -> T) -> Option<T> {
        let mut graph = self.graph.borrow_mut();
        let service = graph.find(id)?;
        Some(work(graph.slots[service].rare.get_or_insert_default()))
    }

    /// A start or stop is over that did not succeed at its first poll.
    #[cold]
    fn ended(
        &self,
        id: ServiceId,
        transition: Transition,
        outcome: Result<(), Box<Reason>>,
        took: Option<Nanos>,
        recipe: &dyn Recipe,
    ) {
        let mut graph = self.graph.borrow_mut();
        let Some(service) = graph.find(id) else {
            return;
        };
        // What succeeds at once does so in the turn in which it began.
        graph.slots[service].since = self.now();
        drop(graph);
        let reason = match (transition, outcome) {
            (Transition::Start, Ok(())) => return self.up(id, service, took),
            (_, outcome) => outcome.err(),
        };
        if let (Transition::Start, Some(took)) = (transition, took) {
            self.graph.borrow_mut().note_start(service, took);
        }
        let stop_took = took.filter(|_| transition == Transition::Stop);
        self.down(id, service, reason, stop_took, recipe);
    }

    /// A start has succeeded.
    #[inline]
    fn up(&self, id: ServiceId, service: u32, took: Option<Nanos>) {
        let mut graph = self.graph.borrow_mut();
        if let Some(took) = took {
            graph.note_start(service, took);
        }
        let slot = &mut graph.slots[service];
        if let Some(rare) = &mut slot.rare {
            rare.reason = None;
        }
        graph.came_up(service);
        drop(graph);
        self.note_state(id, State::Running);
    }

    /// A service is down, or has failed to come up: takes back what it was given,
    /// and lets it rest.
    #[inline]
    fn down(
        &self,
        id: ServiceId,
        service: u32,
        reason: Option<Box<Reason>>,
        stop_took: Option<Nanos>,
        recipe: &dyn Recipe,
    ) {
        let mut graph = self.take_back(service, recipe);
        if let Some(took) = stop_took {
            graph.note_stop(service, took);
        }
        if graph.slots[service].constructed {
            drop(graph);
            self.unmake(id, service, recipe);
            graph = self.graph.borrow_mut();
        }
        if let Some(reason) = reason {
            drop(graph);
            return self.failed(id, service, *reason);
        }
        graph.came_down(service, State::Stopped);
        drop(graph);
        self.note_whatever_state(id);
    }

    /// Drops an instance that was made for one start.
    fn unmake(&self, id: ServiceId, service: u32, recipe: &dyn Recipe) {
        self.withdraw(service);
        if let Err(panic) = caught(|| recipe.unmake()) {
            tracing::warn!(%panic, %id, "a service panicked when it was dropped");
        }
    }

    #[cold]
    fn failed(&self, id: ServiceId, service: u32, reason: Reason) {
        self.note_failed(id, &reason);
        self.rare(id, |rare| rare.reason = Some(reason));
        self.graph.borrow_mut().came_down(service, State::Failed);
        self.note_whatever_state(id);
    }

    #[inline]
    fn note_whatever_state(&self, id: ServiceId) {
        if self.is_observed()
            && let Some(state) = self.state(id)
        {
            self.note_state(id, state);
        }
    }

    /// Takes back what a service was given.
    #[inline]
    fn take_back(&self, service: u32, recipe: &dyn Recipe) -> RefMut<'_, Graph> {
        let graph = self.graph.borrow_mut();
        let from = graph.slots[service].needs;
        if from == NONE {
            return graph;
        }
        drop(graph);
        // The need that is looked at, and the edge whose callback was called last.
        let mut at = (from, NONE);
        // Panics are caught once for all that is taken back: mostly there is none.
        while let Err(panic) = caught(|| self.take_back_from(&mut at, recipe)) {
            tracing::warn!(%panic, "a callback of a service panicked");
        }
        self.graph.borrow_mut()
    }

    fn take_back_from(&self, (from, called): &mut (u32, u32), recipe: &dyn Recipe) {
        let mut graph = self.graph.borrow_mut();
        while let Some((edge, was_attached)) = graph.next_bound(from) {
            // One whose callback panicked is not called again.
            if was_attached && *called != edge {
                *called = edge;
                let bound = bound(&graph, edge);
                drop(graph);
                recipe.removed(bound);
                graph = self.graph.borrow_mut();
            }
            graph.unlink(edge);
            *called = NONE;
        }
    }

    #[inline]
    fn leave<'a>(&'a self, mut graph: RefMut<'a, Graph>, id: ServiceId) {
        let stop = match self.is_observed() {
            false => graph.leave(id),
            true => {
                let before = graph.state(id);
                let stop = graph.leave(id);
                let state = graph.state(id).filter(|&after| before != Some(after));
                if let Some(state) = state {
                    drop(graph);
                    self.note_state(id, state);
                    graph = self.graph.borrow_mut();
                }
                stop
            }
        };
        if stop {
            self.stop(graph, id);
        }
    }

    fn free(&self, id: ServiceId) {
        let found = self.graph.borrow().find(id);
        let Some(service) = found else {
            return;
        };
        let name = self.is_observed().then(|| self.name(id)).flatten();
        loop {
            let offer = self.graph.borrow_mut().take_offer(service);
            let Some((table, place)) = offer else {
                break;
            };
            table.clear(place);
        }
        let freed = self.graph.borrow_mut().free(service);
        if let Err(panic) = caught(|| drop(freed)) {
            tracing::warn!(%panic, %id, "a service panicked when it was dropped");
        }
        self.note_removed(id, name);
    }

    fn added(&self, edge: u32) {
        self.notify_dependent(edge, Graph::take_added, |recipe, bound, service| {
            let properties = properties(&self.graph.borrow(), edge);
            recipe.added(bound, &properties, &self.context(service));
        });
    }

    fn removed(&self, edge: u32) {
        let was_attached = self.notify_dependent(edge, Graph::take_removed, |recipe, bound, _| {
            recipe.removed(bound);
        });
        if was_attached {
            self.graph.borrow_mut().removed(edge);
        }
    }

    /// Calls a dependent that runs, because of the provider at an edge.
    fn notify_dependent(
        &self,
        edge: u32,
        take: impl FnOnce(&mut Graph, u32) -> bool,
        call: impl FnOnce(&dyn Recipe, Bound, ServiceId),
    ) -> bool {
        let mut graph = self.graph.borrow_mut();
        if !take(&mut graph, edge) {
            return false;
        }
        let bound = bound(&graph, edge);
        let dependent = graph.edges[edge].dependent;
        let id = graph.id(dependent);
        let recipe = graph.slots[dependent].recipe.clone();
        drop(graph);
        if let Some(recipe) = recipe
            && let Err(panic) = caught(|| call(&*recipe, bound, id))
        {
            tracing::warn!(%panic, "a callback of a service panicked");
        }
        true
    }

    /// Asks a factory for what a service needs.
    fn make(&self, need: u32) {
        let Some((recipe, offer, request, made_for)) = self.prepare_call(need) else {
            return;
        };
        let made = caught(|| recipe.make_for(offer, &request));
        let factory = self.graph.borrow().slots[made_for.factory].name.clone();
        let outcome = match made {
            Err(panic) => Err(format!("the factory {factory} panicked: {panic}")),
            Ok(None) => Err(format!("the factory {factory} was not made")),
            Ok(Some(blueprint)) => self.install_made(blueprint, made_for, factory.as_str()),
        };
        if let Err(why) = outcome {
            self.not_made(request.id(), need, why);
        }
    }

    fn prepare_call(&self, need: u32) -> Option<FactoryCall> {
        let mut graph = self.graph.borrow_mut();
        let service = graph.take_make(need)?;
        let id = graph.id(service);
        let mut steps = 0;
        let candidate = graph.candidate(need, &mut steps);
        graph.steps += steps;
        let offer = match candidate {
            Candidate::One(offer) => &graph.offers[offer],
            _ => {
                graph.not_made(need, true);
                return None;
            }
        };
        let (which, factory) = (offer.which, offer.service);
        let wanted = matches!(
            graph.slots[service].state,
            State::Waiting | State::Starting | State::Running
        );
        if !offer.factory || !wanted || graph.slots[factory].state != State::Running {
            graph.not_made(need, true);
            return None;
        }
        let slot = &graph.slots[service];
        let request = FactoryRequest {
            id,
            name: slot.name.clone(),
            properties: slot.properties.clone(),
        };
        let made_for = MadeFor {
            need,
            factory,
            interface: graph.interfaces[graph.needs[need].interface as usize].type_id,
        };
        Some((
            graph.slots[factory].recipe.clone()?,
            which,
            request,
            made_for,
        ))
    }

    fn install_made(
        &self,
        mut blueprint: Box<dyn Blueprint>,
        made_for: MadeFor,
        factory: &str,
    ) -> Result<(), String> {
        if !blueprint.provides(made_for.interface) {
            let graph = self.graph.borrow();
            let interface = &graph.interfaces[graph.needs[made_for.need].interface as usize].name;
            return Err(format!(
                "the factory {factory} made {}, which does not provide {interface}",
                blueprint.header().name
            ));
        }
        let added = self.add(&mut *blueprint, Some(made_for));
        added.map(drop).map_err(|error| error.to_string())
    }

    fn not_made(&self, id: ServiceId, need: u32, why: String) {
        let mut graph = self.graph.borrow_mut();
        graph.not_made(need, false);
        let service = graph.needs[need].service;
        let required = graph.needs[need].rule == Rule::Required;
        if !required || graph.slots[service].state != State::Waiting {
            drop(graph);
            tracing::warn!(%id, why, "an optional service was not made");
            return;
        }
        graph.fail_waiting(service);
        drop(graph);
        let reason = Reason::NotMade(why);
        self.note_failed(id, &reason);
        self.rare(id, |rare| rare.reason = Some(reason));
    }

    fn span(&self, id: ServiceId, transition: Transition) -> tracing::Span {
        if !is_traced() {
            return tracing::Span::none();
        }
        let name = self.name(id).unwrap_or_else(|| "".into());
        match transition {
            Transition::Start => tracing::debug_span!("start", service = %name, %id),
            Transition::Stop => tracing::debug_span!("stop", service = %name, %id),
        }
    }
}

#[inline]
fn bound(graph: &Graph, edge: u32) -> Bound {
    let edge = &graph.edges[edge];
    Bound {
        which: graph.needs[edge.need].which,
        place: graph.offers[edge.offer].place,
    }
}

/// The properties of the provider at an edge.
#[inline]
fn properties(graph: &Graph, edge: u32) -> Properties {
    graph.slots[graph.edges[edge].provider].properties.clone()
}

fn failed(transition: Transition, failure: &Failure) -> Box<Reason> {
    Box::new(match transition {
        Transition::Start => Reason::StartFailed(failure.to_string()),
        Transition::Stop => Reason::StopFailed(failure.to_string()),
    })
}

fn panicked(transition: Transition, message: &Failure) -> Box<Reason> {
    Box::new(match transition {
        Transition::Start => Reason::StartPanicked(message.to_string()),
        Transition::Stop => Reason::StopPanicked(message.to_string()),
    })
}
