//! What a service knows of where it lives, and what a factory is told.
//! Not for: the registry itself (`registry`).

use std::rc::{Rc, Weak};

use prony_engine::Handle;

use super::handle::Services;
use super::properties::{Properties, Text};
use super::registry::Registry;
use super::{ServiceId, properties::Value};

/// What is the same for all contexts of one registry.
pub(super) struct Shared {
    pub handle: Handle,
    pub registry: Weak<Registry>,
}

/// A service's view of where it lives: cheap to clone, may be kept. It does not
/// keep the registry alive.
#[derive(Clone)]
pub struct Context {
    pub(super) shared: Rc<Shared>,
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

    /// The registry; None once it has been dropped.
    pub fn services(&self) -> Option<Services> {
        self.shared.registry.upgrade().map(Services)
    }

    /// The service's name; empty once it has been removed.
    pub fn name(&self) -> Text {
        let services = self.services();
        let name = services.and_then(|services| services.name(self.id));
        name.unwrap_or_else(|| Text::from(""))
    }

    /// The service's properties; none once it has been removed.
    pub fn properties(&self) -> Properties {
        let services = self.services();
        let properties = services.and_then(|services| services.properties(self.id));
        properties.unwrap_or_default()
    }
}

/// Who asks a factory for an instance.
pub struct Request {
    pub(super) id: ServiceId,
    pub(super) name: Text,
    pub(super) properties: Properties,
}

impl Request {
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

    /// What the requester's property `name` says.
    pub fn property(&self, name: &str) -> Option<&Value> {
        self.properties.get(name)
    }
}
