//! The description of a service before it is added: name, properties, what it
//! provides, what it needs.
//! Not for: what happens with it afterwards (`graph`, `pump`).

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::mem::{replace, take};
use std::rc::Rc;

use prony_base::Nanos;

use super::context::{Context, FactoryRequest};
use super::failure::Failure;
use super::inject::{Constructor, Source};
use super::life::{Begun, Service, Transition, Transitions, Types, transitions};
use super::port::{AnyTable, Port, ProviderRef, Spec, Table, short_type_name, spec};
use super::properties::{Filter, Properties, Property, Text, Value};
use super::recipe::{Blueprint, Bound, Header, OfferSpec, Recipe};
use super::rule::Rule;

/// A service to be added, described in full. See the [module](super) for the two
/// ways in which it gets what it needs.
#[must_use = "a definition does nothing until it is added"]
pub struct Definition<S> {
    header: Header,
    parts: Parts<S>,
}

/// The parts of a definition that live on in the service's recipe.
struct Parts<S> {
    instance: Instance<S>,
    source: Option<Box<dyn Source<S>>>,
    /// The tables of the interfaces that the constructor needs.
    tables: Box<[Rc<dyn AnyTable>]>,
    needs: Vec<Need<S>>,
    offers: Vec<Offered<S>>,
}

/// A need by callback.
struct Need<S> {
    rule: Rule,
    binder: Box<dyn Binder<S>>,
    /// That of the interface, from when the service is installed: a callback gets the
    /// provider from it, without asking the registry for the table each time.
    table: Option<Rc<dyn AnyTable>>,
}

/// The service itself.
enum Instance<S> {
    /// There from the beginning.
    Given(Rc<S>),
    /// Made for each start.
    Made(RefCell<Option<Rc<S>>>),
}

/// An offer of a service.
struct Offered<S> {
    spec: Spec,
    how: How<S>,
}

enum How<S> {
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
            header: Header {
                name,
                wanted: true,
                ..Header::default()
            },
            parts: Parts::new(instance, source),
        }
    }

    /// A service that exists already. It is started and stopped any number of
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
        match self
            .header
            .properties
            .iter_mut()
            .find(|one| one.name == name)
        {
            Some(property) => property.value = value,
            None => {
                let properties = &mut self.header.properties;
                if properties.capacity() == 0 {
                    properties.reserve_exact(2);
                }
                properties.push(Property { name, value });
            }
        }
        self
    }

    /// Provides an interface while the service runs; `cast` is nearly always
    /// `|service| service`.
    pub fn provides<P: Port>(self, cast: impl Fn(Rc<S>) -> P + 'static) -> Definition<S> {
        self.with_offer(spec::<P>(), How::Cast(Box::new(CastOf(cast, PhantomData))))
    }

    /// Makes a service on request for each one that requires `P` (or has it as an
    /// option) and finds no other provider: a logger for each service, named after
    /// it. What `make` returns must provide `P`; only the requester gets it. It is
    /// removed when its requester is, or when this service leaves.
    pub fn makes<P: Port, T: Service>(
        self,
        make: impl Fn(&Rc<S>, &FactoryRequest) -> Definition<T> + 'static,
    ) -> Definition<S> {
        self.with_offer(
            spec::<P>(),
            How::Factory(Box::new(MakerOf(make, PhantomData))),
        )
    }

    fn with_offer(mut self, spec: Spec, how: How<S>) -> Definition<S> {
        self.parts.offers.reserve_exact(1);
        self.parts.offers.push(Offered { spec, how });
        self
    }

    /// Requires exactly one provider of `P`. `added` is called before each start
    /// of this service, `removed` after each stop.
    pub fn requires<P: Port>(
        self,
        added: impl Fn(&S, P, &Properties) + 'static,
        removed: impl Fn(&S, &P) + 'static,
    ) -> Definition<S> {
        self.with_need::<P>(Rule::Required, added, removed)
    }

    /// Uses a provider of `P` while there is one: `added` and `removed` are called
    /// as it comes and goes, also while this service runs.
    pub fn optional<P: Port>(
        self,
        added: impl Fn(&S, P, &Properties) + 'static,
        removed: impl Fn(&S, &P) + 'static,
    ) -> Definition<S> {
        self.with_need::<P>(Rule::Optional, added, removed)
    }

    /// Uses all providers of `P`, however many: `added` and `removed` are called
    /// for each as it comes and goes. Factories make none for this.
    pub fn many<P: Port>(
        self,
        added: impl Fn(&S, P, &Properties) + 'static,
        removed: impl Fn(&S, &P) + 'static,
    ) -> Definition<S> {
        self.with_need::<P>(Rule::Many, added, removed)
    }

    fn with_need<P: Port>(
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
        self.header.filters.push((spec::<P>(), filter));
        self
    }

    /// Sets the longest time of a start before it counts as failed
    /// ([`Options::start_timeout`](super::Options) unless this says otherwise).
    pub fn start_timeout(mut self, limit: Nanos) -> Definition<S> {
        self.header.start_timeout = Some(limit);
        self
    }

    /// Sets the longest time of a stop before it counts as failed
    /// ([`Options::stop_timeout`](super::Options) unless this says otherwise).
    pub fn stop_timeout(mut self, limit: Nanos) -> Definition<S> {
        self.header.stop_timeout = Some(limit);
        self
    }

    /// Adds the service without wanting it to run: [`start`](super::Services::start) does.
    pub fn stopped(mut self) -> Definition<S> {
        self.header.wanted = false;
        self
    }
}

impl<S> Need<S> {
    #[inline]
    fn added(&self, service: &S, place: u32, properties: &Properties) {
        if let Some(table) = self.table.as_deref() {
            let provider = ProviderRef {
                table,
                place,
                properties,
            };
            self.binder.added(service, &provider);
        }
    }

    #[inline]
    fn removed(&self, service: &S, place: u32) {
        if let Some(table) = self.table.as_deref() {
            self.binder.removed(service, table, place);
        }
    }
}

impl<S> Parts<S> {
    fn new(instance: Instance<S>, source: Option<Box<dyn Source<S>>>) -> Parts<S> {
        Parts {
            instance,
            source,
            tables: Box::default(),
            needs: Vec::new(),
            offers: Vec::new(),
        }
    }

    /// Each need: interface and rule, those of the constructor first.
    fn need(&self, which: usize) -> Option<(Spec, Rule)> {
        let arguments = self.arguments();
        if which < arguments {
            return self.source.as_ref()?.need(which);
        }
        let need = self.needs.get(which - arguments)?;
        Some((need.binder.spec(), need.rule))
    }

    /// Keeps the tables of all needs, which `next_table` yields in their order.
    fn keep_tables(&mut self, next_table: &mut dyn FnMut() -> Rc<dyn AnyTable>) {
        // Most services have no constructor with needs: an empty box is there already.
        if let arguments @ 1.. = self.arguments() {
            self.tables = (0..arguments).map(|_| next_table()).collect();
        }
        for need in &mut self.needs {
            need.table = Some(next_table());
        }
    }

    fn arguments(&self) -> usize {
        self.source.as_ref().map_or(0, |source| source.count())
    }
}

/// The recipe of a service of a known type.
struct Typed<S, T> {
    parts: Parts<S>,
    transitions: Rc<T>,
}

impl<S: Service, T> Typed<S, T> {
    #[inline]
    fn current(&self) -> Option<Rc<S>> {
        match &self.parts.instance {
            Instance::Given(service) => Some(service.clone()),
            Instance::Made(service) => service.borrow().clone(),
        }
    }
}

impl<S: Service, T: Transitions<S>> Recipe for Typed<S, T> {
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
                    let provider = ProviderRef {
                        table,
                        place,
                        properties,
                    };
                    source.added(which, &provider);
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

    fn make_for(&self, which: u32, request: &FactoryRequest) -> Option<Box<dyn Blueprint>> {
        let How::Factory(maker) = &self.parts.offers[which as usize].how else {
            return None;
        };
        Some(maker.make(&self.current()?, request))
    }

    fn begin(&self, transition: Transition, context: Context) -> Begun {
        match self.current() {
            Some(service) => self.transitions.begin(transition, service, context),
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

impl<S: Service> Blueprint for Definition<S> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn need(&self, which: usize) -> Option<(Spec, Rule)> {
        self.parts.need(which)
    }

    fn offer(&self, which: usize) -> Option<OfferSpec> {
        let offered = self.parts.offers.get(which)?;
        Some(OfferSpec {
            spec: offered.spec,
            factory: matches!(offered.how, How::Factory(_)),
        })
    }

    fn is_constructed(&self) -> bool {
        self.parts.source.is_some()
    }

    fn take_header(&mut self) -> Header {
        take(&mut self.header)
    }

    fn take_recipe(
        &mut self,
        types: &Types,
        next_table: &mut dyn FnMut() -> Rc<dyn AnyTable>,
    ) -> (Rc<dyn Recipe>, u32) {
        let empty = Parts::new(Instance::Made(RefCell::new(None)), None);
        let mut parts = replace(&mut self.parts, empty);
        parts.keep_tables(next_table);
        let (transitions, number) = types.get::<S, _>(transitions::<S>);
        (Rc::new(Typed { parts, transitions }), number)
    }
}

trait Cast<S> {
    fn publish(&self, service: Rc<S>, table: &dyn AnyTable, place: u32);
}

/// The closures below hold nothing as a rule, and then a box of them is free.
struct CastOf<F, P>(F, PhantomData<fn() -> P>);

impl<S, P: Port, F: Fn(Rc<S>) -> P> Cast<S> for CastOf<F, P> {
    fn publish(&self, service: Rc<S>, table: &dyn AnyTable, place: u32) {
        Table::<P>::of(table).set(place, (self.0)(service));
    }
}

trait Maker<S> {
    fn make(&self, factory: &Rc<S>, request: &FactoryRequest) -> Box<dyn Blueprint>;
}

struct MakerOf<F, T>(F, PhantomData<fn() -> T>);

impl<S, T: Service, F: Fn(&Rc<S>, &FactoryRequest) -> Definition<T>> Maker<S> for MakerOf<F, T> {
    fn make(&self, factory: &Rc<S>, request: &FactoryRequest) -> Box<dyn Blueprint> {
        Box::new((self.0)(factory, request))
    }
}

trait Binder<S> {
    fn spec(&self) -> Spec;
    fn added(&self, service: &S, provider: &ProviderRef<'_>);
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

    fn added(&self, service: &S, provider: &ProviderRef<'_>) {
        if let Some(pointer) = provider.pointer() {
            (self.added)(service, pointer, provider.properties);
        }
    }

    fn removed(&self, service: &S, table: &dyn AnyTable, place: u32) {
        if let Some(pointer) = Table::<P>::of(table).get(place) {
            (self.removed)(service, &pointer);
        }
    }
}
