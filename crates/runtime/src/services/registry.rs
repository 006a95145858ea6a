//! The registry behind [`Services`](super::Services): what is installed, and how
//! it gets in.
//! Not for: what is done with it (`pump`), what users call (`handle`).

use std::any::TypeId;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};

use prony_base::{Instant, Nanos};
use prony_engine::Handle;

use super::context::{Context, RegistryRef};
use super::failure::caught;
use super::graph::{Graph, Offer};
use super::id::ServiceId;
use super::life::Types;
use super::list::NONE;
use super::observers::Observers;
use super::port::Spec;
use super::properties::{Filter, PROPERTIES_MAX, Properties, Text};
use super::recipe::{Blueprint, Header, OfferSpec, Recipe};
use super::sampling::Sampling;
use super::state::{Rare, State};
use super::waits::Waits;

/// Most needs, and most offers, that one definition may state.
pub const PARTS_MAX: usize = 1024;

/// Limits of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Most services installed at a time, those made by factories included.
    pub services_max: u32,
    /// The longest time of a start, unless its definition has another.
    pub start_timeout: Nanos,
    /// The longest time of a stop, unless its definition has another.
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

/// The reason why a definition was not installed.
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

/// The need for which a factory made a service.
#[derive(Clone, Copy)]
pub(super) struct MadeFor {
    pub need: u32,
    pub factory: u32,
    pub interface: TypeId,
}

/// The installed services, and the state of driving them. Nothing in it is borrowed while code of
/// a service runs.
pub(super) struct Registry {
    pub graph: RefCell<Graph>,
    pub options: Options,
    pub shared: Rc<RegistryRef>,
    pub observers: Observers,
    pub waits: Waits,
    pub pumping: Cell<bool>,
    pub scheduled: Cell<bool>,
    /// All services are being stopped, the last started first.
    pub closing: Cell<bool>,
    /// The clock as it was last read, and in which turn of the loop.
    pub clock: Cell<(u64, Instant)>,
    types: Types,
    /// Itself, for what goes on after a call.
    pub this: Weak<Registry>,
}

impl Registry {
    pub fn new(handle: &Handle, options: Options) -> Rc<Registry> {
        Rc::new_cyclic(|this: &Weak<Registry>| Registry {
            graph: RefCell::default(),
            options,
            shared: Rc::new(RegistryRef {
                handle: handle.clone(),
                registry: this.clone(),
            }),
            observers: Observers::default(),
            waits: Waits::default(),
            pumping: Cell::new(false),
            scheduled: Cell::new(false),
            closing: Cell::new(false),
            clock: Cell::new((u64::MAX, Instant::ZERO)),
            types: Types::default(),
            this: this.clone(),
        })
    }

    #[inline]
    pub fn context(&self, id: ServiceId) -> Context {
        Context {
            shared: self.shared.clone(),
            id,
        }
    }

    /// Time, exact to a turn of the loop.
    #[inline]
    pub fn now(&self) -> Instant {
        let (turn, time) = self.clock.get();
        if turn == self.shared.handle.turns() {
            return time;
        }
        self.read_clock()
    }

    pub fn read_clock(&self) -> Instant {
        let time = self.shared.handle.now();
        self.clock.set((self.shared.handle.turns(), time));
        time
    }

    /// Installs a service, and publishes what one that exists already provides. It is not
    /// armed yet; the flag is whether it is to be.
    pub fn install<B: Blueprint + ?Sized>(
        &self,
        blueprint: &mut B,
        made_for: Option<MadeFor>,
    ) -> Result<(ServiceId, bool), AddError> {
        self.check(blueprint)?;
        let Header {
            name,
            properties,
            filters,
            start_timeout,
            stop_timeout,
            wanted,
        } = blueprint.take_header();
        let constructed = blueprint.is_constructed();
        let mut graph = self.graph.borrow_mut();
        let service = graph.insert(name, Properties::new(properties), constructed);
        add_needs(&mut graph, service, blueprint, &filters);
        add_offers(&mut graph, service, blueprint, made_for);
        let mut next = graph.slots[service].needs;
        let (recipe, number) = blueprint.take_recipe(&self.types, &mut || {
            let need = &graph.needs[next];
            next = need.next;
            graph.interfaces[need.interface as usize].table.clone()
        });
        if graph.samplings.len() <= number as usize {
            graph.samplings.push(Sampling::default());
        }
        graph.set_recipe(service, recipe.clone());
        let slot = &mut graph.slots[service];
        slot.wanted = wanted;
        slot.type_number = number;
        slot.since = self.now();
        if start_timeout.is_some() || stop_timeout.is_some() {
            slot.rare = Some(Box::new(Rare {
                start_timeout,
                stop_timeout,
                ..Rare::default()
            }));
        }
        if let Some(made_for) = made_for {
            graph.bind_to_factory(service, made_for.need, made_for.factory);
        }
        let id = graph.id(service);
        drop(graph);
        if !constructed {
            self.publish_new(service, &*recipe)?;
        }
        Ok((id, wanted))
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

    /// Publishes what a service provides in the tables of its interfaces.
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

    fn check<B: Blueprint + ?Sized>(&self, blueprint: &B) -> Result<(), AddError> {
        let header = blueprint.header();
        let service = || header.name.to_string();
        let services_max = self.options.services_max;
        if self.graph.borrow().slots.len() >= services_max as usize {
            let service = service();
            return Err(AddError::TooMany {
                service,
                services_max,
            });
        }
        if header.properties.len() > PROPERTIES_MAX {
            return Err(AddError::TooManyProperties { service: service() });
        }
        if blueprint.offer(PARTS_MAX).is_some() || blueprint.need(PARTS_MAX).is_some() {
            return Err(AddError::TooManyParts { service: service() });
        }
        for (index, OfferSpec { spec, .. }) in offers(blueprint).enumerate() {
            let mut before = offers(blueprint).take(index);
            if before.any(|other| other.spec.type_id == spec.type_id) {
                let interface = (spec.name)();
                let service = service();
                return Err(AddError::ProvidedTwice { service, interface });
            }
        }
        for (spec, _) in &header.filters {
            let mut needs = (0..).map_while(|which| blueprint.need(which));
            if !needs.any(|(needed, _)| needed.type_id == spec.type_id) {
                let interface = (spec.name)();
                let service = service();
                return Err(AddError::FilterWithoutNeed { service, interface });
            }
        }
        Ok(())
    }
}

fn offers<B: Blueprint + ?Sized>(blueprint: &B) -> impl Iterator<Item = OfferSpec> + '_ {
    (0..).map_while(|which| blueprint.offer(which))
}

fn add_needs<B: Blueprint + ?Sized>(
    graph: &mut Graph,
    service: u32,
    blueprint: &B,
    filters: &[(Spec, Filter)],
) {
    let mut last = NONE;
    for (which, (spec, rule)) in (0..).map_while(|which| blueprint.need(which)).enumerate() {
        let interface = graph.intern(&spec);
        let filter = filters
            .iter()
            .find(|(filtered, _)| filtered.type_id == spec.type_id);
        let filter = filter.map(|(_, filter)| Rc::new(filter.clone()));
        last = graph.add_need(service, last, which as u32, (interface, rule), filter);
    }
}

fn add_offers<B: Blueprint + ?Sized>(
    graph: &mut Graph,
    service: u32,
    blueprint: &B,
    made_for: Option<MadeFor>,
) {
    let mut last = NONE;
    for (which, OfferSpec { spec, factory }) in offers(blueprint).enumerate() {
        let interface = graph.intern(&spec);
        let private = made_for.is_some_and(|made_for| made_for.interface == spec.type_id);
        let offer = Offer::new(interface, which as u32, factory, private);
        last = graph.add_offer(service, last, offer);
    }
}

/// Name, properties and state of a service that is installed.
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

    pub fn state(&self, id: ServiceId) -> Option<State> {
        self.graph.borrow().state(id)
    }
}
