//! The public face of the registry: [`Services`].
//! Not for: how it is done (`registry`, `pump`, `graph`).

use std::any::TypeId;
use std::fmt;
use std::rc::Rc;

use prony_engine::Handle;

use super::context::Context;
use super::definition::Definition;
use super::graph::Graph;
use super::id::ServiceId;
use super::life::Service;
use super::observe::Observation;
use super::observers::Change;
use super::port::{Port, Table};
use super::problems::{Asking, Problems};
use super::properties::{Properties, Text};
use super::registry::{AddError, Options, Registry};
use super::snapshot::Snapshot;
use super::state::{Reason, State};
use super::waits::Awaited;

/// The services of one loop. Cheap to clone; stays on its thread. When the last
/// clone is dropped, all services are dropped as they are: [`stop_all`](Services::stop_all)
/// comes first.
#[derive(Clone)]
pub struct Services(Rc<Registry>);

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Services({})", self.len())
    }
}

/// The reason why a service is not in the state that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceError {
    /// It has been removed.
    Unknown(ServiceId),
    /// Its start or stop failed.
    Failed {
        /// Its name.
        service: String,
        /// Why.
        reason: Reason,
    },
    /// It does not run, and nothing is under way that would change that.
    Waiting {
        /// Its name.
        service: String,
        /// For what it waits.
        why: String,
    },
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServiceError::Unknown(id) => write!(f, "there is no service {id} any more"),
            ServiceError::Failed { service, reason } => write!(f, "{service}: {reason}"),
            ServiceError::Waiting { service, why } => write!(f, "{service} does not run: {why}"),
        }
    }
}

impl std::error::Error for ServiceError {}

impl Services {
    /// A registry for the services of a loop.
    pub fn new(handle: &Handle, options: Options) -> Services {
        Services(Registry::new(handle, options))
    }

    /// Adds a service. It starts by itself, soon, when all that it requires runs:
    /// what is added without an `await` between is looked at together.
    ///
    /// # Errors
    /// [`AddError`]: a limit, or a definition that contradicts itself.
    pub fn add<S: Service>(&self, mut definition: Definition<S>) -> Result<ServiceId, AddError> {
        self.0.add(&mut definition, None)
    }

    /// Wants a service to run, also one that has failed; ready when it does.
    ///
    /// # Errors
    /// [`ServiceError`]: its start failed, or it waits for something and nothing is
    /// under way any more. It still starts when that comes.
    pub async fn start(&self, id: ServiceId) -> Result<(), ServiceError> {
        {
            let mut graph = self.0.graph.borrow_mut();
            let service = graph.find(id).ok_or(ServiceError::Unknown(id))?;
            graph.want(service);
        }
        let running = |graph: &Graph| {
            let Some(service) = graph.find(id) else {
                return Some(false);
            };
            match graph.slots[service].state {
                State::Running => Some(true),
                State::Failed => Some(false),
                State::Waiting | State::Stopped if graph.is_quiet() => Some(false),
                _ => None,
            }
        };
        match self.0.until(Awaited::One(id), running).await {
            true => Ok(()),
            false => Err(self.not_started(id)),
        }
    }

    // The errors are made outside of the waiting: they are large, and results that
    // have room for them would be carried through it.
    #[cold]
    fn not_started(&self, id: ServiceId) -> ServiceError {
        let graph = self.0.graph.borrow();
        match graph.find(id) {
            None => ServiceError::Unknown(id),
            Some(service) if graph.slots[service].state == State::Failed => {
                failure(&graph, service)
            }
            Some(service) => waiting(&graph, service),
        }
    }

    /// Stops a service after those that require it, which then wait for it; ready
    /// when it has stopped. One that does not run stays as it is.
    ///
    /// # Errors
    /// [`ServiceError`]: its stop failed. It does not run any more even so.
    pub async fn stop(&self, id: ServiceId) -> Result<(), ServiceError> {
        {
            let mut graph = self.0.graph.borrow_mut();
            let service = graph.find(id).ok_or(ServiceError::Unknown(id))?;
            graph.slots[service].wanted = false;
            if matches!(graph.slots[service].state, State::Stopped | State::Failed) {
                return Ok(());
            }
            graph.queue_leave(service);
        }
        let stopped = |graph: &Graph| {
            let Some(service) = graph.find(id) else {
                return Some(true);
            };
            match graph.slots[service].state {
                State::Stopped => Some(true),
                State::Failed => Some(false),
                // It is wanted again meanwhile.
                _ if graph.slots[service].wanted => Some(true),
                _ => None,
            }
        };
        match self.0.until(Awaited::One(id), stopped).await {
            true => Ok(()),
            false => self.not_stopped(id),
        }
    }

    /// A service that failed to start is stopped as well as one can be.
    #[cold]
    fn not_stopped(&self, id: ServiceId) -> Result<(), ServiceError> {
        let graph = self.0.graph.borrow();
        let error = graph.find(id).map(|service| failure(&graph, service));
        match error {
            Some(
                error @ ServiceError::Failed {
                    reason:
                        Reason::StopFailed(_) | Reason::StopPanicked(_) | Reason::StopTimedOut(_),
                    ..
                },
            ) => Err(error),
            _ => Ok(()),
        }
    }

    /// Stops a service and starts it again; those that require it go and come with it.
    ///
    /// # Errors
    /// As [`start`](Services::start).
    pub async fn restart(&self, id: ServiceId) -> Result<(), ServiceError> {
        // A stop that fails has stopped the service too.
        if let Err(error @ ServiceError::Unknown(_)) = self.stop(id).await {
            return Err(error);
        }
        self.start(id).await
    }

    /// Stops a service, and drops it; ready when it is gone.
    ///
    /// # Errors
    /// As [`stop`](Services::stop). It is gone even so.
    pub async fn remove(&self, id: ServiceId) -> Result<(), ServiceError> {
        let stopped = self.stop(id).await;
        if matches!(stopped, Err(ServiceError::Unknown(_))) {
            return stopped;
        }
        {
            let mut graph = self.0.graph.borrow_mut();
            if let Some(service) = graph.find(id) {
                graph.remove(service);
            }
        }
        self.0
            .until(Awaited::One(id), |graph| {
                graph.find(id).is_none().then_some(())
            })
            .await;
        stopped
    }

    /// Waits until everything that can be started has been, and nothing is under way.
    ///
    /// # Errors
    /// [`Problems`]: what keeps services that are wanted from running.
    pub async fn settle(&self) -> Result<(), Problems> {
        self.0
            .until(Awaited::All, |graph| graph.is_quiet().then_some(()))
            .await;
        self.report(Asking::Idle)
    }

    /// Checks what keeps services from running, as things are; also what would keep those
    /// that run from being started anew. Before anything has started, it says what
    /// will go wrong. O(services + needs).
    ///
    /// # Errors
    /// [`Problems`], where there are any.
    pub fn check(&self) -> Result<(), Problems> {
        self.report(Asking::All)
    }

    fn report(&self, asking: Asking) -> Result<(), Problems> {
        let problems = self
            .0
            .graph
            .borrow()
            .problems(asking, self.0.options.problems_max);
        if problems.problems.is_empty() && problems.more == 0 {
            return Ok(());
        }
        Err(problems)
    }

    /// Stops all services, the last started first, those of others' requirements
    /// after those others; ready when none runs. They stay installed.
    pub async fn stop_all(&self) {
        {
            let mut graph = self.0.graph.borrow_mut();
            for service in graph.slots.all() {
                let slot = &mut graph.slots[service];
                slot.wanted = false;
                if slot.state == State::Waiting {
                    graph.queue_leave(service);
                }
            }
        }
        self.0.closing.set(true);
        let registry = self.0.clone();
        let stopped =
            move |graph: &Graph| (graph.is_quiet() && !registry.closing.get()).then_some(());
        self.0.until(Awaited::All, stopped).await;
    }

    /// The provider of an interface, where exactly one runs.
    pub fn get<P: Port>(&self) -> Option<P> {
        let graph = self.0.graph.borrow();
        let interface = graph.interface(TypeId::of::<P>())?;
        let runs = |&offer: &u32| {
            let offer = &graph.offers[offer];
            !offer.factory && graph.slots[offer.service].state == State::Running
        };
        let mut running = graph.installed(interface).filter(runs);
        let (only, None) = (running.next()?, running.next()) else {
            return None;
        };
        let table = &*graph.interfaces[interface as usize].table;
        Table::<P>::of(table).get(graph.offers[only].place)
    }

    /// The service itself, where it is of type `S` and there: one that is
    /// constructed is there only while it runs.
    pub fn instance<S: Service>(&self, id: ServiceId) -> Option<Rc<S>> {
        let graph = self.0.graph.borrow();
        let service = graph.find(id)?;
        let recipe = graph.slots[service].recipe.clone()?;
        drop(graph);
        recipe.instance()?.downcast().ok()
    }

    /// The state of a service; None once it has been removed.
    pub fn state(&self, id: ServiceId) -> Option<State> {
        self.0.state(id)
    }

    /// The reason of a service's last failure, unless it has run since.
    pub fn reason(&self, id: ServiceId) -> Option<Reason> {
        let graph = self.0.graph.borrow();
        let service = graph.find(id)?;
        graph.slots[service].rare.as_ref()?.reason.clone()
    }

    /// The name of a service.
    pub fn name(&self, id: ServiceId) -> Option<Text> {
        self.0.name(id)
    }

    /// The properties of a service.
    pub fn properties(&self, id: ServiceId) -> Option<Properties> {
        self.0.properties(id)
    }

    /// The service of this name that was installed first of those there are. It
    /// looks at all of them.
    pub fn find(&self, name: &str) -> Option<ServiceId> {
        let graph = self.0.graph.borrow();
        let mut places = graph.slots.all();
        let named = |place: &u32| {
            let slot = &graph.slots[*place];
            slot.recipe.is_some() && &*slot.name == name
        };
        places.find(named).map(|place| graph.id(place))
    }

    /// Services that are installed.
    pub fn len(&self) -> usize {
        self.0.graph.borrow().slots.len()
    }

    /// True when no service is installed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Services that run.
    pub fn running(&self) -> usize {
        self.0.graph.borrow().running.len as usize
    }

    /// The number of looks at a need, an offer or an edge so far: what resolving
    /// dependencies costs, whatever the machine.
    pub fn steps(&self) -> u64 {
        self.0.graph.borrow().steps
    }

    /// Calls `observer` for each change in the life of a service, until what this
    /// returns is dropped. An observer may call everything here.
    pub fn observe(&self, observer: impl Fn(&Change) + 'static) -> Observation {
        self.0.observe(Rc::new(observer))
    }

    /// Takes a snapshot of all services. O(services + edges).
    pub fn snapshot(&self) -> Snapshot {
        let at = self.0.shared.handle.now();
        self.0.graph.borrow().snapshot(at)
    }

    /// The loop.
    pub fn handle(&self) -> &Handle {
        &self.0.shared.handle
    }
}

impl Context {
    /// The registry; None once it has been dropped.
    pub fn services(&self) -> Option<Services> {
        let registry = self.shared.registry.upgrade()?;
        registry.downcast().ok().map(Services)
    }

    /// The service's name; empty once it has been removed.
    pub fn name(&self) -> Text {
        let services = self.services();
        let name = services.and_then(|services| services.name(self.id));
        name.unwrap_or_default()
    }

    /// The service's properties; none once it has been removed.
    pub fn properties(&self) -> Properties {
        let services = self.services();
        let properties = services.and_then(|services| services.properties(self.id));
        properties.unwrap_or_default()
    }
}

fn failure(graph: &Graph, service: u32) -> ServiceError {
    let slot = &graph.slots[service];
    let reason = slot.rare.as_ref().and_then(|rare| rare.reason.clone());
    ServiceError::Failed {
        service: slot.name.to_string(),
        reason: reason.unwrap_or_else(|| Reason::StartFailed("for no reason".to_owned())),
    }
}

fn waiting(graph: &Graph, service: u32) -> ServiceError {
    let problems = graph.problems(Asking::One(service), 1).problems;
    let problem = problems.first().map(|problem| problem.to_string());
    ServiceError::Waiting {
        service: graph.slots[service].name.to_string(),
        why: problem.unwrap_or_else(|| graph.why_not_running(service)),
    }
}
