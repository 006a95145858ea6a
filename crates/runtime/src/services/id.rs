//! The number of a service.
//! Not for: finding the service (`graph`).

use std::fmt;

use serde::Serialize;

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
