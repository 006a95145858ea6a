//! Services: their dependencies and their life cycle.
//!
//! For: putting an application together from parts that start when what they
//! require runs and stop before it goes, on one loop. Not for: threads (each loop has
//! its own [`Services`]; what several share is an `Arc`), nor for configuration files.
//!
//! # A first application
//! A [`Service`] is a type with an asynchronous `start` and `stop`. A [`Definition`]
//! names it and says what it provides and needs, by interface: a pointer such as
//! `Rc<dyn Logger>`. The order of adding means nothing.
//!
//! ```
//! use std::rc::Rc;
//!
//! use prony_engine::Config;
//! use prony_runtime::services::{Context, Definition, Failure, Options, Service, Services};
//!
//! trait Logger {
//!     fn log(&self, line: &str);
//! }
//!
//! struct Console;
//!
//! impl Service for Console {}
//!
//! impl Logger for Console {
//!     fn log(&self, line: &str) {
//!         println!("{line}");
//!     }
//! }
//!
//! struct Shop {
//!     logger: Rc<dyn Logger>,
//! }
//!
//! impl Service for Shop {
//!     async fn start(&self, context: &Context) -> Result<(), Failure> {
//!         self.logger.log(&format!("{} opens", context.name()));
//!         Ok(())
//!     }
//!
//!     async fn stop(&self, _: &Context) -> Result<(), Failure> {
//!         self.logger.log("closed");
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! prony_engine::run(&Config::default(), |handle| async move {
//!     let services = Services::new(&handle, Options::default());
//!     services.add(Definition::construct("shop", |logger: Rc<dyn Logger>| Shop { logger }))?;
//!     services.add(Definition::new("console", Console).provides::<Rc<dyn Logger>>(|it| it))?;
//!     services.settle().await?;
//!     assert_eq!(services.running(), 2);
//!     services.stop_all().await;
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! })??;
//! # Ok(())
//! # }
//! ```
//!
//! # Two ways to get what is needed
//! **By constructor**, as above: the arguments of a closure are the needs, and it is
//! called for each start. Arguments may be optional or many; [`Inject`] has the table.
//! ```
//! # use std::rc::Rc;
//! # use prony_runtime::services::{Context, Definition, Live, Many, Service};
//! # trait Store {} trait Cache {} trait Plugin {}
//! # struct Shop; impl Service for Shop {}
//! # fn define() -> Definition<Shop> {
//! Definition::construct(
//!     "shop",
//!     |store: Rc<dyn Store>, cache: Live<Rc<dyn Cache>>, plugins: Many<Rc<dyn Plugin>>| Shop,
//! )
//! # }
//! ```
//! **By callback**: the service exists already, and its callbacks get what comes and goes.
//! ```
//! # use std::cell::RefCell;
//! # use std::rc::Rc;
//! # use prony_runtime::services::{Definition, Service};
//! # trait Store {} trait Plugin { fn name(&self) -> String; }
//! #[derive(Default)]
//! struct Shop {
//!     store: RefCell<Option<Rc<dyn Store>>>,
//!     plugins: RefCell<Vec<String>>,
//! }
//! # impl Service for Shop {}
//! # fn define() -> Definition<Shop> {
//! Definition::new("shop", Shop::default())
//!     .requires::<Rc<dyn Store>>(
//!         |shop, store, _properties| *shop.store.borrow_mut() = Some(store),
//!         |shop, _store| *shop.store.borrow_mut() = None,
//!     )
//!     .many::<Rc<dyn Plugin>>(
//!         |shop, plugin, _properties| shop.plugins.borrow_mut().push(plugin.name()),
//!         |shop, plugin| shop.plugins.borrow_mut().retain(|name| *name != plugin.name()),
//!     )
//! # }
//! ```
//! What is required or optional is one provider. Where several are installed, a
//! [`filter`](Definition::filter) says which; without one that is an error, whichever
//! of them happens to run. A service that runs keeps the provider that it has.
//!
//! # Factories
//! A factory [`makes`](Definition::makes) an instance for each service that asks:
//! ```
//! # use std::rc::Rc;
//! # use prony_runtime::services::{Definition, FactoryRequest, Service};
//! # trait Logger {}
//! # struct Loggers; impl Service for Loggers {}
//! # struct Named(String); impl Service for Named {} impl Logger for Named {}
//! # fn define() -> Definition<Loggers> {
//! Definition::new("loggers", Loggers).makes::<Rc<dyn Logger>, _>(|_factory, request: &FactoryRequest| {
//!     let logger = Named(format!("{}: ", request.name()));
//!     Definition::new(request.name(), logger).provides::<Rc<dyn Logger>>(|logger| logger)
//! })
//! # }
//! ```
//! Only the requester gets it. It stays while its requester is installed, and goes when
//! the factory does.
//!
//! # At run time
//! [`add`](Services::add), [`remove`](Services::remove), [`stop`](Services::stop),
//! [`start`](Services::start) and [`restart`](Services::restart) work at any time, from
//! services too. A service that asks, within its own start, for something that waits for
//! that start, waits until its time is over.
//!
//! A start or stop that fails, panics or is not over in time leaves its service
//! [failed](State::Failed) with a [`Reason`]; the others go on. It rests until it is asked to
//! start again. [`settle`](Services::settle) and [`check`](Services::check) say what keeps
//! services from running, with the path to the cause:
//! ```
//! # use std::rc::Rc;
//! # use prony_engine::Config;
//! # use prony_runtime::services::{Definition, Options, Service, Services};
//! # trait Cart {} trait Connection {}
//! # struct Shop; impl Service for Shop {}
//! # struct RedisCart; impl Service for RedisCart {} impl Cart for RedisCart {}
//! # prony_engine::run(&Config::default(), |handle| async move {
//! # let services = Services::new(&handle, Options::default());
//! services.add(Definition::construct("Shop", |_: Rc<dyn Cart>| Shop)).unwrap();
//! let redis = Definition::construct("RedisCart", |_: Rc<dyn Connection>| RedisCart);
//! services.add(redis.provides::<Rc<dyn Cart>>(|cart| cart)).unwrap();
//! assert_eq!(
//!     services.settle().await.unwrap_err().to_string(),
//!     "Shop -> dyn Cart -> RedisCart -> dyn Connection: nobody provides it"
//! );
//! # }).unwrap();
//! ```
//!
//! # Looking in
//! [`snapshot`](Services::snapshot) prints as a table, serialises, and
//! [draws](Snapshot::dot) itself for Graphviz. [`observe`](Services::observe) reports
//! changes as they happen; `tracing` gets them too.
//!
//! # What it costs
//! Bringing services up and down takes O(services + edges) steps, whatever the order:
//! [`Services::steps`] counts them. A start or stop that is ready at its first poll
//! costs no task, no allocation and mostly no clock: of types whose transitions are
//! quick, one in 128 is timed.

mod by_type;
mod context;
mod definition;
mod failure;
mod graph;
mod handle;
mod id;
mod index;
mod inject;
mod life;
mod list;
mod observe;
mod observers;
mod port;
mod problems;
mod properties;
mod pump;
mod recipe;
mod registry;
mod rule;
mod sampling;
mod snapshot;
mod state;
mod waits;

pub use context::{Context, FactoryRequest};
pub use definition::Definition;
pub use failure::Failure;
pub use handle::{ServiceError, Services};
pub use id::ServiceId;
pub use inject::{Constructor, Inject, Live, Many};
pub use life::Service;
pub use observe::Observation;
pub use observers::{Change, What};
pub use port::Port;
pub use problems::{Cause, Problem, Problems};
pub use properties::{Filter, PROPERTIES_MAX, Properties, Property, Text, Value};
pub use registry::{AddError, Options, PARTS_MAX};
pub use rule::Rule;
pub use snapshot::{NeedInfo, ServiceInfo, Snapshot};
pub use state::{Reason, State};
