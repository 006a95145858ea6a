//! The context that an application receives when it is loaded.

use std::rc::Rc;

use prony_engine::Handle;

use crate::settings::Settings;

/// Where an application works: a worker, or the host's own process.
#[derive(Clone, Debug)]
pub struct Post {
    /// The worker's event loop.
    pub handle: Handle,
    /// The settings of the host, with the address that is listened on.
    pub settings: Rc<Settings>,
    /// The worker's number, from 0; whoever replaces it has the same.
    pub number: u32,
}
