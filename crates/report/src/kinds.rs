//! Which kinds of subjects a plan has: what a document speaks of follows from it.
//!
//! Not for: what it says of each.

use prony_record::{Plan, Work};

use crate::programs;

/// The kinds; several may be in one plan. A plan without any workload is one of servers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Kinds {
    /// Servers, driven by the generator.
    pub servers: bool,
    /// Programs that are run to their end.
    pub programs: bool,
    /// Clients against a peer.
    pub clients: bool,
}

impl Kinds {
    /// The kinds of a plan.
    pub fn from_plan(plan: &Plan) -> Kinds {
        let programs = programs::any(plan);
        let any = |of: fn(Work<'_>) -> bool| plan.workloads.iter().any(|w| of(w.work()));
        let clients = any(|work| matches!(work, Work::Client(_)));
        Kinds {
            servers: any(|work| work == Work::Server) || !programs && !clients,
            programs,
            clients,
        }
    }

    /// Whether it has programs and nothing else.
    pub fn only_programs(self) -> bool {
        self.programs && !self.servers && !self.clients
    }
}
