//! What a service receives about the place where it lives, and what a factory receives
//! about the service that needs an instance.
//! Not for: the registry itself (`registry`), whose type is not known here, so that what
//! services are given depends on nothing that runs them.

use std::any::Any;
use std::rc::{Rc, Weak};

use prony_engine::Handle;

use super::id::ServiceId;
use super::properties::{Properties, Text, Value};

/// The part that all contexts of one registry share.
pub(super) struct RegistryRef {
    pub handle: Handle,
    /// A `Registry`, which the public face (`handle`) knows.
    pub registry: Weak<dyn Any>,
}

/// A service's access to its loop and registry: cheap to clone, may be kept. It does
/// not keep the registry alive.
#[derive(Clone)]
pub struct Context {
    pub(super) shared: Rc<RegistryRef>,
    pub(super) id: ServiceId,
}

impl Context {
    /// This service.
    pub fn id(&self) -> ServiceId {
        self.id
    }

    /// The loop on which it runs.
    pub fn handle(&self) -> &Handle {
        &self.shared.handle
    }
}

/// A service's request to a factory for an instance.
pub struct FactoryRequest {
    pub(super) id: ServiceId,
    pub(super) name: Text,
    pub(super) properties: Properties,
}

impl FactoryRequest {
    /// The requester.
    pub fn id(&self) -> ServiceId {
        self.id
    }

    /// The requester's name.
    pub fn name(&self) -> &Text {
        &self.name
    }

    /// The requester's properties.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The value of the requester's property `name`.
    pub fn property(&self, name: &str) -> Option<&Value> {
        self.properties.get(name)
    }
}
