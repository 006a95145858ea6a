//! Services: their dependencies and their life cycle.

mod context;
mod definition;
mod graph;
mod handle;
mod index;
mod inject;
mod life;
mod list;
mod observe;
mod port;
mod problems;
mod properties;
mod pump;
mod registry;
mod state;

pub use context::{Context, Request};
pub use definition::{Definition, Rule};
pub use handle::{ServiceError, Services};
pub use inject::{Constructor, Inject, Live, Many};
pub use life::{Failure, Service};
pub use observe::{Change, Observation, What};
pub use port::Port;
pub use problems::{Cause, Problem, Problems};
pub use properties::{Filter, PROPERTIES_MAX, Properties, Property, Text, Value};
pub use registry::{AddError, Options, PARTS_MAX, ServiceId};
pub use state::{Reason, State};
