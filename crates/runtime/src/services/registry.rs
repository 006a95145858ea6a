//! The registry behind [`Services`](super::Services): what is installed, and how
//! it gets in.
//! Not for: what is done with it (`pump`), what users call (`handle`).

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};

use prony_base::{Instant, Nanos};
use prony_engine::Handle;
use serde::Serialize;

use super::context::{Context, Shared};
use super::definition::{Definition, How, Parts, Recipe, Typed};
use super::graph::{ById, Graph, Offer};
use super::life::{Sampling, Service, caught, kind};
use super::list::NONE;
use super::observe::Observers;
use super::properties::{Filter, PROPERTIES_MAX, Properties, Text};
use super::pump::Waits;
use super::state::Rare;

/// Most needs, and most offers, that one definition may state.
pub const PARTS_MAX: usize = 1024;

/// Names one service for as long as it is installed; later it names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct ServiceId(u64);

impl ServiceId {
    // One word and not two halves, which would be stored apart and loaded together.
    pub(super) fn new(index: u32, generation: u32) -> ServiceId {
        ServiceId(u64::from(generation) << 32 | u64::from(index))
    }

    pub(super) fn index(self) -> u32 {
        self.0 as u32
    }

    pub(super) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl From<u64> for ServiceId {
    fn from(id: u64) -> ServiceId {
        ServiceId(id)
    }
}

impl From<ServiceId> for u64 {
    /// A number that names this service, and no other one.
    fn from(id: ServiceId) -> u64 {
        id.0
    }
}

impl From<ServiceId> for String {
    fn from(id: ServiceId) -> String {
        id.to_string()
    }
}

impl fmt::Display for ServiceId {
    /// Place and generation: `17` for the first service at place 17, then `17.1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.generation() {
            0 => write!(f, "{}", self.index()),
            generation => write!(f, "{}.{generation}", self.index()),
        }
    }
}

/// Limits of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Most services installed at a time, those made by factories included.
    pub services_max: u32,
    /// How long a start may take, unless its definition says otherwise.
    pub start_timeout: Nanos,
    /// How long a stop may take, unless its definition says otherwise.
    pub stop_timeout: Nanos,
    /// Most problems that one report names; of the rest it gives the number.
    pub problems_max: usize,
}

impl Default for Options {
    /// 65,536 services, 10 s for a start or a stop, 100 problems.
    fn default() -> Options {
        Options {
            services_max: 65_536,
            start_timeout: Nanos::from_secs(10),
            stop_timeout: Nanos::from_secs(10),
            problems_max: 100,
        }
    }
}

/// Why a definition was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddError {
    /// There are as many services as [`Options::services_max`] allows.
    TooMany {
        /// Its name.
        service: String,
        /// The limit.
        services_max: u32,
    },
    /// More properties than [`PROPERTIES_MAX`].
    TooManyProperties {
        /// Its name.
        service: String,
    },
    /// More needs or offers than [`PARTS_MAX`].
    TooManyParts {
        /// Its name.
        service: String,
    },
    /// One interface is provided or made twice.
    ProvidedTwice {
        /// Its name.
        service: String,
        /// The interface.
        interface: String,
    },
    /// A filter for an interface that is not needed.
    FilterWithoutNeed {
        /// Its name.
        service: String,
        /// The interface.
        interface: String,
    },
    /// A cast panicked.
    Panicked {
        /// Its name.
        service: String,
        /// The message of the panic.
        message: String,
    },
}

impl fmt::Display for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddError::TooMany {
                service,
                services_max,
            } => write!(
                f,
                "cannot add {service}: there are {services_max} services already, the limit services_max"
            ),
            AddError::TooManyProperties { service } => {
                write!(
                    f,
                    "cannot add {service}: more than {PROPERTIES_MAX} properties"
                )
            }
            AddError::TooManyParts { service } => {
                write!(
                    f,
                    "cannot add {service}: more than {PARTS_MAX} needs or offers"
                )
            }
            AddError::ProvidedTwice { service, interface } => {
                write!(f, "cannot add {service}: it provides {interface} twice")
            }
            AddError::FilterWithoutNeed { service, interface } => {
                write!(
                    f,
                    "cannot add {service}: it filters {interface}, which it does not need"
                )
            }
            AddError::Panicked { service, message } => {
                write!(
                    f,
                    "cannot add {service}: what it provides panicked: {message}"
                )
            }
        }
    }
}

impl std::error::Error for AddError {}

/// For whom a factory made a service.
#[derive(Clone, Copy)]
pub(super) struct Order {
    pub need: u32,
    pub factory: u32,
    pub interface: TypeId,
}

/// What is installed, and what drives it. Nothing in it is borrowed while code of
/// a service runs.
pub(super) struct Registry {
    pub graph: RefCell<Graph>,
    pub options: Options,
    pub shared: Rc<Shared>,
    pub observers: Observers,
    pub waits: Waits,
    pub pumping: Cell<bool>,
    pub scheduled: Cell<bool>,
    /// All services are being stopped, the last started first.
    pub closing: Cell<bool>,
    /// The clock as it was last read, and in which turn of the loop.
    pub clock: Cell<(u64, Instant)>,
    /// How services of each type are begun, and the number of the type.
    kinds: RefCell<ById<(Box<dyn Any>, u32)>>,
}

impl Registry {
    pub fn new(handle: &Handle, options: Options) -> Rc<Registry> {
        Rc::new_cyclic(|weak: &Weak<Registry>| Registry {
            graph: RefCell::default(),
            options,
            shared: Rc::new(Shared {
                handle: handle.clone(),
                registry: weak.clone(),
            }),
            observers: Observers::default(),
            waits: Waits::default(),
            pumping: Cell::new(false),
            scheduled: Cell::new(false),
            closing: Cell::new(false),
            clock: Cell::new((u64::MAX, Instant::ZERO)),
            kinds: RefCell::default(),
        })
    }

    #[inline]
    pub fn context(&self, id: ServiceId) -> Context {
        Context {
            shared: self.shared.clone(),
            id,
        }
    }

    /// The kind of services of a type, and its number.
    fn kind<S: Service, K: 'static>(&self, make: impl FnOnce() -> K) -> (Rc<K>, u32) {
        let mut kinds = self.kinds.borrow_mut();
        let number = kinds.len() as u32;
        let (kind, number) = kinds
            .entry(TypeId::of::<S>())
            .or_insert_with(|| (Box::new(Rc::new(make())), number));
        let kind: &Rc<K> = kind.downcast_ref().expect("kinds are kept by their type");
        (kind.clone(), *number)
    }

    /// Installs a service; it waits for what it requires, where it is wanted.
    pub fn install<S: Service>(
        &self,
        definition: Definition<S>,
        order: Option<Order>,
    ) -> Result<ServiceId, AddError> {
        self.check(&definition)?;
        let Definition {
            name,
            properties,
            filters,
            start_timeout,
            stop_timeout,
            wanted,
            mut parts,
        } = definition;
        let (kind, number) = self.kind::<S, _>(kind::<S>);
        let mut graph = self.graph.borrow_mut();
        parts.keep_tables(|spec| {
            let interface = graph.intern(spec);
            graph.interfaces[interface as usize].table.clone()
        });
        let recipe = Rc::new(Typed { parts, kind });
        if graph.samplings.len() <= number as usize {
            graph.samplings.push(Sampling::default());
        }
        let service = graph.insert(name, Properties::new(properties), recipe.clone());
        let id = graph.id(service);
        let slot = &mut graph.slots[service];
        slot.wanted = wanted;
        slot.kind = number;
        slot.since = self.now();
        if start_timeout.is_some() || stop_timeout.is_some() {
            slot.rare = Some(Box::new(Rare {
                start_timeout,
                stop_timeout,
                ..Rare::default()
            }));
        }
        add_needs(&mut graph, service, &recipe.parts, &filters);
        add_offers(&mut graph, service, &recipe.parts, order);
        if let Some(order) = order {
            graph.bind_to_factory(service, order.need, order.factory);
        }
        drop(graph);
        if !recipe.is_constructed() {
            self.publish_new(service, &*recipe)?;
        }
        self.note_added(id);
        if wanted {
            self.graph.borrow_mut().arm(service);
        }
        self.schedule();
        Ok(id)
    }

    fn publish_new(&self, service: u32, recipe: &dyn Recipe) -> Result<(), AddError> {
        caught(|| self.publish(service, recipe)).map_err(|message| {
            let mut graph = self.graph.borrow_mut();
            graph.remove(service);
            AddError::Panicked {
                service: graph.slots[service].name.to_string(),
                message: message.to_string(),
            }
        })
    }

    /// Puts what a service provides into the tables of its interfaces.
    pub fn publish(&self, service: u32, recipe: &dyn Recipe) {
        let mut offer = self.graph.borrow().slots[service].offers;
        while offer != NONE {
            let graph = self.graph.borrow();
            let at = &graph.offers[offer];
            let (which, place) = (at.which, at.place);
            offer = at.next;
            let table = graph.interfaces[at.interface as usize].table.clone();
            drop(graph);
            recipe.publish(which, &*table, place);
        }
    }

    /// Takes it out again.
    pub fn withdraw(&self, service: u32) {
        let mut offer = self.graph.borrow().slots[service].offers;
        while offer != NONE {
            let graph = self.graph.borrow();
            let at = &graph.offers[offer];
            let place = at.place;
            offer = at.next;
            let table = graph.interfaces[at.interface as usize].table.clone();
            drop(graph);
            table.clear(place);
        }
    }

    fn check<S: Service>(&self, definition: &Definition<S>) -> Result<(), AddError> {
        let service = || definition.name.to_string();
        let services_max = self.options.services_max;
        if self.graph.borrow().slots.len() >= services_max as usize {
            let service = service();
            return Err(AddError::TooMany {
                service,
                services_max,
            });
        }
        if definition.properties.len() > PROPERTIES_MAX {
            return Err(AddError::TooManyProperties { service: service() });
        }
        let parts = &definition.parts;
        if parts.offers.len() > PARTS_MAX || parts.need(PARTS_MAX).is_some() {
            return Err(AddError::TooManyParts { service: service() });
        }
        for (index, offer) in parts.offers.iter().enumerate() {
            let same =
                |other: &&super::definition::Offer<S>| other.spec.type_id == offer.spec.type_id;
            if parts.offers[..index].iter().any(|other| same(&other)) {
                let interface = (offer.spec.name)();
                let service = service();
                return Err(AddError::ProvidedTwice { service, interface });
            }
        }
        for (spec, _) in &definition.filters {
            let needs = (0..).map_while(|which| parts.need(which));
            if !needs
                .into_iter()
                .any(|(needed, _)| needed.type_id == spec.type_id)
            {
                let interface = (spec.name)();
                let service = service();
                return Err(AddError::FilterWithoutNeed { service, interface });
            }
        }
        Ok(())
    }
}

fn add_needs<S: Service>(
    graph: &mut Graph,
    service: u32,
    parts: &Parts<S>,
    filters: &[(super::port::Spec, Filter)],
) {
    let mut last = NONE;
    for (which, (spec, rule)) in (0..).map_while(|which| parts.need(which)).enumerate() {
        let interface = graph.intern(&spec);
        let filter = filters
            .iter()
            .find(|(filtered, _)| filtered.type_id == spec.type_id);
        let filter = filter.map(|(_, filter)| Rc::new(filter.clone()));
        last = graph.add_need(service, last, which as u32, (interface, rule), filter);
    }
}

fn add_offers<S>(graph: &mut Graph, service: u32, parts: &Parts<S>, order: Option<Order>) {
    let mut last = NONE;
    for (which, offer) in parts.offers.iter().enumerate() {
        let interface = graph.intern(&offer.spec);
        let factory = matches!(offer.how, How::Factory(_));
        let private = order.is_some_and(|order| order.interface == offer.spec.type_id);
        let offer = Offer::new(interface, which as u32, factory, private);
        last = graph.add_offer(service, last, offer);
    }
}

/// What the registry says of a service that is there.
impl Registry {
    pub fn name(&self, id: ServiceId) -> Option<Text> {
        let graph = self.graph.borrow();
        let service = graph.find(id)?;
        Some(graph.slots[service].name.clone())
    }

    pub fn properties(&self, id: ServiceId) -> Option<Properties> {
        let graph = self.graph.borrow();
        let service = graph.find(id)?;
        Some(graph.slots[service].properties.clone())
    }
}
