//! How a service is described before it is added: name, properties, what it
//! provides, what it needs.
//! Not for: what happens with it afterwards (`graph`, `pump`).

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use prony_base::Nanos;
use serde::Serialize;

use super::context::{Context, Request};
use super::inject::{Constructor, Source};
use super::life::{Begun, Failure, Kind, Service, Way};
use super::port::{AnyTable, Port, Spec, Table, short_type_name, spec};
use super::properties::{Filter, Properties, Property, Text, Value};

/// How many providers a need has, and what happens when they come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// One; without it the service does not run.
    Required,
    /// One or none; comes and goes while the service runs.
    Optional,
    /// One or none; the service starts anew when it comes or goes.
    Fixed,
    /// Any number; each comes and goes while the service runs.
    Many,
}

/// A service to be added, described in full. See the [module](super) for the two
/// ways in which it gets what it needs.
#[must_use = "a definition does nothing until it is added"]
pub struct Definition<S> {
    pub(super) name: Text,
    pub(super) properties: Vec<Property>,
    pub(super) filters: Vec<(Spec, Filter)>,
    pub(super) start_timeout: Option<Nanos>,
    pub(super) stop_timeout: Option<Nanos>,
    pub(super) wanted: bool,
    pub(super) parts: Parts<S>,
}

/// What of a definition lives on as the service's recipe.
pub(super) struct Parts<S> {
    instance: Instance<S>,
    source: Option<Box<dyn Source<S>>>,
    /// Those of what the constructor needs.
    tables: Box<[Rc<dyn AnyTable>]>,
    needs: Vec<Need<S>>,
    pub offers: Vec<Offer<S>>,
}

/// A need by callback.
struct Need<S> {
    rule: Rule,
    binder: Box<dyn Binder<S>>,
    /// That of the interface, from when the service is installed: whoever is handed a
    /// provider finds it there, without asking the registry for the table each time.
    table: Option<Rc<dyn AnyTable>>,
}

/// The service itself.
enum Instance<S> {
    /// There from the beginning.
    Given(Rc<S>),
    /// Made for each start.
    Made(RefCell<Option<Rc<S>>>),
}

/// What a service provides.
pub(super) struct Offer<S> {
    pub spec: Spec,
    pub how: How<S>,
}

pub(super) enum How<S> {
    Cast(Box<dyn Cast<S>>),
    Factory(Box<dyn Maker<S>>),
}

impl<S: Service> Definition<S> {
    fn empty(
        name: Text,
        instance: Instance<S>,
        source: Option<Box<dyn Source<S>>>,
    ) -> Definition<S> {
        Definition {
            name,
            properties: Vec::new(),
            filters: Vec::new(),
            start_timeout: None,
            stop_timeout: None,
            wanted: true,
            parts: Parts {
                instance,
                source,
                tables: Box::default(),
                needs: Vec::new(),
                offers: Vec::new(),
            },
        }
    }

    /// A service that is there already. It is started and stopped any number of
    /// times, and dropped when it is removed.
    pub fn new(name: impl Into<Text>, instance: S) -> Definition<S> {
        Definition::shared(name, Rc::new(instance))
    }

    /// Like [`new`](Definition::new), for a service that others hold too.
    pub fn shared(name: impl Into<Text>, instance: Rc<S>) -> Definition<S> {
        Definition::empty(name.into(), Instance::Given(instance), None)
    }

    /// A service that `constructor` makes for each start, from what it needs, and
    /// that is dropped after each stop. The arguments of the constructor are the
    /// needs: see [`Inject`](super::Inject).
    pub fn construct<A>(
        name: impl Into<Text>,
        constructor: impl Constructor<A, Made = S>,
    ) -> Definition<S> {
        let instance = Instance::Made(RefCell::new(None));
        Definition::empty(name.into(), instance, Some(constructor.into_source()))
    }

    /// Sets a property; an earlier one of this name is replaced.
    pub fn property(mut self, name: impl Into<Text>, value: impl Into<Value>) -> Definition<S> {
        let (name, value) = (name.into(), value.into());
        match self.properties.iter_mut().find(|one| one.name == name) {
            Some(property) => property.value = value,
            None => {
                if self.properties.capacity() == 0 {
                    self.properties.reserve_exact(2);
                }
                self.properties.push(Property { name, value });
            }
        }
        self
    }

    /// Provides an interface while the service runs; `cast` is nearly always
    /// `|service| service`.
    pub fn provides<P: Port>(self, cast: impl Fn(Rc<S>) -> P + 'static) -> Definition<S> {
        self.offer(spec::<P>(), How::Cast(Box::new(CastOf(cast, PhantomData))))
    }

    /// Makes a service on request for each one that requires `P` (or has it as an
    /// option) and finds no other provider: a logger for each service, named after
    /// it. What `make` returns must provide `P`; only the requester gets it. It is
    /// removed when its requester is, or when this service leaves.
    pub fn makes<P: Port, T: Service>(
        self,
        make: impl Fn(&Rc<S>, &Request) -> Definition<T> + 'static,
    ) -> Definition<S> {
        self.offer(
            spec::<P>(),
            How::Factory(Box::new(MakerOf(make, PhantomData))),
        )
    }

    fn offer(mut self, spec: Spec, how: How<S>) -> Definition<S> {
        self.parts.offers.reserve_exact(1);
        self.parts.offers.push(Offer { spec, how });
        self
    }

    /// Requires exactly one provider of `P`. `added` is called before each start
    /// of this service, `removed` after each stop.
    pub fn requires<P: Port>(
        self,
        added: impl Fn(&S, P, &Properties) + 'static,
        removed: impl Fn(&S, &P) + 'static,
    ) -> Definition<S> {
        self.need::<P>(Rule::Required, added, removed)
    }

    /// Uses a provider of `P` while there is one: `added` and `removed` are called
    /// as it comes and goes, also while this service runs.
    pub fn optional<P: Port>(
        self,
        added: impl Fn(&S, P, &Properties) + 'static,
        removed: impl Fn(&S, &P) + 'static,
    ) -> Definition<S> {
        self.need::<P>(Rule::Optional, added, removed)
    }

    /// Uses all providers of `P`, however many: `added` and `removed` are called
    /// for each as it comes and goes. Factories make none for this.
    pub fn many<P: Port>(
        self,
        added: impl Fn(&S, P, &Properties) + 'static,
        removed: impl Fn(&S, &P) + 'static,
    ) -> Definition<S> {
        self.need::<P>(Rule::Many, added, removed)
    }

    fn need<P: Port>(
        mut self,
        rule: Rule,
        added: impl Fn(&S, P, &Properties) + 'static,
        removed: impl Fn(&S, &P) + 'static,
    ) -> Definition<S> {
        let binder = Callbacks {
            added,
            removed,
            port: PhantomData::<fn() -> P>,
        };
        self.parts.needs.reserve_exact(1);
        self.parts.needs.push(Need {
            rule,
            binder: Box::new(binder),
            table: None,
        });
        self
    }

    /// Of the providers of `P`, those that `filter` accepts: for all needs of `P`
    /// that this definition states, by callback or by constructor.
    pub fn filter<P: Port>(mut self, filter: Filter) -> Definition<S> {
        self.filters.push((spec::<P>(), filter));
        self
    }

    /// How long a start may take before it counts as failed
    /// ([`Options::start_timeout`](super::Options) unless told).
    pub fn start_timeout(mut self, limit: Nanos) -> Definition<S> {
        self.start_timeout = Some(limit);
        self
    }

    /// How long a stop may take before it counts as failed
    /// ([`Options::stop_timeout`](super::Options) unless told).
    pub fn stop_timeout(mut self, limit: Nanos) -> Definition<S> {
        self.stop_timeout = Some(limit);
        self
    }

    /// Adds the service without wanting it to run: [`start`](super::Services::start) does.
    pub fn stopped(mut self) -> Definition<S> {
        self.wanted = false;
        self
    }
}

impl<S> Need<S> {
    #[inline]
    fn added(&self, service: &S, place: u32, properties: &Properties) {
        if let Some(table) = self.table.as_deref() {
            let link = Link {
                table,
                place,
                properties,
            };
            self.binder.added(service, &link);
        }
    }

    #[inline]
    fn removed(&self, service: &S, place: u32) {
        if let Some(table) = self.table.as_deref() {
            self.binder.removed(service, table, place);
        }
    }
}

impl<S: Service> Parts<S> {
    /// Each need: interface and rule, those of the constructor first.
    pub fn need(&self, which: usize) -> Option<(Spec, Rule)> {
        let arguments = self.arguments();
        if which < arguments {
            return self.source.as_ref()?.need(which);
        }
        let need = self.needs.get(which - arguments)?;
        Some((need.binder.spec(), need.rule))
    }

    /// Keeps the tables of all that is needed.
    pub fn keep_tables(&mut self, mut table: impl FnMut(&Spec) -> Rc<dyn AnyTable>) {
        if let Some(source) = &self.source {
            let needs = (0..source.count()).map_while(|which| source.need(which));
            self.tables = needs.map(|(spec, _)| table(&spec)).collect();
        }
        for need in &mut self.needs {
            need.table = Some(table(&need.binder.spec()));
        }
    }

    fn arguments(&self) -> usize {
        self.source.as_ref().map_or(0, |source| source.count())
    }
}

/// A service whose type is not known any more. Nothing of the registry is
/// borrowed while one of these runs, because user code runs in most of them.
pub(super) trait Recipe {
    /// Hands a provider to a need; makes the instance first where
    /// that is told of it.
    fn added(&self, bound: Bound, properties: &Properties, context: &Context);
    /// Takes it back.
    fn removed(&self, bound: Bound);
    /// True when the instance is made for each start.
    fn is_constructed(&self) -> bool;
    /// Makes the instance unless it is there.
    fn make(&self, context: &Context);
    /// Drops an instance that is made for each start.
    fn unmake(&self);
    /// Puts the pointer of offer number `which` into its table.
    fn publish(&self, which: u32, table: &dyn AnyTable, place: u32);
    /// Calls the factory at offer number `which`.
    fn make_for(&self, which: u32, request: &Request) -> Option<Box<dyn Blueprint>>;
    fn begin(&self, way: Way, context: Context) -> Begun;
    fn instance(&self) -> Option<Rc<dyn Any>>;
    fn type_name(&self) -> String;
}

/// Which need has which provider.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    /// The number of the need.
    pub which: u32,
    /// The provider's place in the table of the interface.
    pub place: u32,
}

/// A provider as it is handed to a dependent.
pub struct Link<'a> {
    pub(super) table: &'a dyn AnyTable,
    pub(super) place: u32,
    pub(super) properties: &'a Properties,
}

impl Link<'_> {
    /// The provider itself, while it is there.
    pub(super) fn pointer<P: Port>(&self) -> Option<P> {
        Table::<P>::of(self.table).get(self.place)
    }
}

/// The recipe of a service of a known type.
pub(super) struct Typed<S, K> {
    pub parts: Parts<S>,
    pub kind: Rc<K>,
}

impl<S: Service, K> Typed<S, K> {
    #[inline]
    fn current(&self) -> Option<Rc<S>> {
        match &self.parts.instance {
            Instance::Given(service) => Some(service.clone()),
            Instance::Made(service) => service.borrow().clone(),
        }
    }
}

impl<S: Service, K: Kind<S>> Recipe for Typed<S, K> {
    fn added(&self, bound: Bound, properties: &Properties, context: &Context) {
        let (which, place) = (bound.which as usize, bound.place);
        // One that was given has no constructor with needs of its own.
        if let Instance::Given(service) = &self.parts.instance {
            return self.parts.needs[which].added(service, place, properties);
        }
        match which.checked_sub(self.parts.arguments()) {
            None => {
                if let Some(source) = &self.parts.source {
                    let table = &*self.parts.tables[which];
                    let link = Link {
                        table,
                        place,
                        properties,
                    };
                    source.added(which, &link);
                }
            }
            Some(need) => {
                self.make(context);
                if let Some(service) = self.current() {
                    self.parts.needs[need].added(&service, place, properties);
                }
            }
        }
    }

    fn removed(&self, bound: Bound) {
        let (which, place) = (bound.which as usize, bound.place);
        if let Instance::Given(service) = &self.parts.instance {
            return self.parts.needs[which].removed(service, place);
        }
        match which.checked_sub(self.parts.arguments()) {
            None => {
                if let Some(source) = &self.parts.source {
                    source.removed(which, place);
                }
            }
            Some(need) => {
                if let Some(service) = self.current() {
                    self.parts.needs[need].removed(&service, place);
                }
            }
        }
    }

    fn is_constructed(&self) -> bool {
        self.parts.source.is_some()
    }

    fn make(&self, context: &Context) {
        if let (Some(source), Instance::Made(instance)) = (&self.parts.source, &self.parts.instance)
            && instance.borrow().is_none()
        {
            let made = source.make(context);
            *instance.borrow_mut() = Some(Rc::new(made));
        }
    }

    fn unmake(&self) {
        if let Instance::Made(instance) = &self.parts.instance {
            let instance = instance.borrow_mut().take();
            drop(instance);
        }
    }

    fn publish(&self, which: u32, table: &dyn AnyTable, place: u32) {
        if let How::Cast(cast) = &self.parts.offers[which as usize].how
            && let Some(service) = self.current()
        {
            cast.publish(service, table, place);
        }
    }

    fn make_for(&self, which: u32, request: &Request) -> Option<Box<dyn Blueprint>> {
        let How::Factory(maker) = &self.parts.offers[which as usize].how else {
            return None;
        };
        Some(maker.make(&self.current()?, request))
    }

    fn begin(&self, way: Way, context: Context) -> Begun {
        match self.current() {
            Some(service) => self.kind.begin(way, service, context),
            None => Begun::Panicked(Failure::new("the service was not made")),
        }
    }

    fn instance(&self) -> Option<Rc<dyn Any>> {
        Some(self.current()?)
    }

    fn type_name(&self) -> String {
        short_type_name::<S>()
    }
}

/// A definition whose type is not known any more.
pub(super) trait Blueprint {
    fn install(
        self: Box<Self>,
        services: &super::registry::Registry,
        order: super::registry::Order,
    ) -> Result<super::ServiceId, super::AddError>;
    fn provides(&self, interface: TypeId) -> bool;
    fn name(&self) -> &Text;
}

impl<S: Service> Blueprint for Definition<S> {
    fn install(
        self: Box<Self>,
        services: &super::registry::Registry,
        order: super::registry::Order,
    ) -> Result<super::ServiceId, super::AddError> {
        services.install(*self, Some(order))
    }

    fn provides(&self, interface: TypeId) -> bool {
        let offers =
            |offer: &Offer<S>| offer.spec.type_id == interface && matches!(offer.how, How::Cast(_));
        self.parts.offers.iter().any(offers)
    }

    fn name(&self) -> &Text {
        &self.name
    }
}

pub(super) trait Cast<S> {
    fn publish(&self, service: Rc<S>, table: &dyn AnyTable, place: u32);
}

/// The closures below hold nothing as a rule, and then a box of them is free.
struct CastOf<F, P>(F, PhantomData<fn() -> P>);

impl<S, P: Port, F: Fn(Rc<S>) -> P> Cast<S> for CastOf<F, P> {
    fn publish(&self, service: Rc<S>, table: &dyn AnyTable, place: u32) {
        Table::<P>::of(table).set(place, (self.0)(service));
    }
}

pub(super) trait Maker<S> {
    fn make(&self, factory: &Rc<S>, request: &Request) -> Box<dyn Blueprint>;
}

struct MakerOf<F, T>(F, PhantomData<fn() -> T>);

impl<S, T: Service, F: Fn(&Rc<S>, &Request) -> Definition<T>> Maker<S> for MakerOf<F, T> {
    fn make(&self, factory: &Rc<S>, request: &Request) -> Box<dyn Blueprint> {
        Box::new((self.0)(factory, request))
    }
}

trait Binder<S> {
    fn spec(&self) -> Spec;
    fn added(&self, service: &S, link: &Link<'_>);
    fn removed(&self, service: &S, table: &dyn AnyTable, place: u32);
}

struct Callbacks<P, A, R> {
    added: A,
    removed: R,
    port: PhantomData<fn() -> P>,
}

impl<S, P: Port, A: Fn(&S, P, &Properties), R: Fn(&S, &P)> Binder<S> for Callbacks<P, A, R> {
    fn spec(&self) -> Spec {
        spec::<P>()
    }

    fn added(&self, service: &S, link: &Link<'_>) {
        if let Some(pointer) = link.pointer() {
            (self.added)(service, pointer, link.properties);
        }
    }

    fn removed(&self, service: &S, table: &dyn AnyTable, place: u32) {
        if let Some(pointer) = Table::<P>::of(table).get(place) {
            (self.removed)(service, &pointer);
        }
    }
}
