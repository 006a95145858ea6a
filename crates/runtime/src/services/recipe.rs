//! Services and definitions whose types are erased: what the graph holds, and what the
//! registry installs.
//! Not for: how users state them (`definition`).

use std::any::{Any, TypeId};
use std::rc::Rc;

use prony_base::Nanos;

use super::context::{Context, FactoryRequest};
use super::life::{Begun, Transition, Types};
use super::port::{AnyTable, Spec};
use super::properties::{Filter, Properties, Property, Text};
use super::rule::Rule;

/// A service whose type is erased. Nothing of the registry is borrowed while one of these
/// runs, because users' code runs in most of them.
pub(super) trait Recipe {
    /// Hands a provider to a need; makes the instance first where a callback receives it.
    fn added(&self, bound: Bound, properties: &Properties, context: &Context);
    /// Takes it back.
    fn removed(&self, bound: Bound);
    /// Makes the instance unless it is there.
    fn make(&self, context: &Context);
    /// Drops an instance that is made for each start.
    fn unmake(&self);
    /// Publishes the pointer of offer number `which` in its table.
    fn publish(&self, which: u32, table: &dyn AnyTable, place: u32);
    /// Calls the factory at offer number `which`.
    fn make_for(&self, which: u32, request: &FactoryRequest) -> Option<Box<dyn Blueprint>>;
    /// Polls its start or its stop once.
    fn begin(&self, transition: Transition, context: Context) -> Begun;
    /// The service itself, where it is there.
    fn instance(&self) -> Option<Rc<dyn Any>>;
    /// The type of the service, without its modules.
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

/// The part of a definition that is the same for all types.
#[derive(Default)]
pub(super) struct Header {
    pub name: Text,
    pub properties: Vec<Property>,
    pub filters: Vec<(Spec, Filter)>,
    pub start_timeout: Option<Nanos>,
    pub stop_timeout: Option<Nanos>,
    pub wanted: bool,
}

/// An interface that a definition provides, or of which it makes instances.
pub(super) struct OfferSpec {
    pub spec: Spec,
    pub factory: bool,
}

/// A definition whose type is erased. Installing it empties it: first
/// [`take_header`](Blueprint::take_header), last [`take_recipe`](Blueprint::take_recipe).
pub(super) trait Blueprint {
    fn header(&self) -> &Header;
    /// Need number `which`, those of the constructor first.
    fn need(&self, which: usize) -> Option<(Spec, Rule)>;
    /// Offer number `which`.
    fn offer(&self, which: usize) -> Option<OfferSpec>;
    /// True when the instance is made for each start.
    fn is_constructed(&self) -> bool;
    /// Moves the header out.
    fn take_header(&mut self) -> Header;
    /// Moves all the rest out, as a recipe that keeps the table of the interface of each
    /// need, which `next_table` yields in the order of needs; and the number of its type.
    fn take_recipe(
        &mut self,
        types: &Types,
        next_table: &mut dyn FnMut() -> Rc<dyn AnyTable>,
    ) -> (Rc<dyn Recipe>, u32);

    /// Whether a service made from it provides `interface`.
    fn provides(&self, interface: TypeId) -> bool {
        (0..)
            .map_while(|which| self.offer(which))
            .any(|offer| offer.spec.type_id == interface && !offer.factory)
    }
}
