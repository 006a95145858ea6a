//! Services with dependencies, typed events with priorities, coroutines: on the engine.
//!
//! For: applications of many parts on one thread, or on several threads with a loop each:
//! parts that start and stop in the order of what they require ([`services`]), that send
//! each other events ([`events`]), and that wait without blocking each other
//! ([`coroutines`]). Not for: HTTP (`prony-http`, which runs on the same loop) or sockets
//! (the [`Handle`](prony_engine::Handle) of the loop).
//!
//! # A whole program
//! ```
//! use std::rc::Rc;
//!
//! use prony_runtime::coroutines::AutoEvent;
//! use prony_runtime::services::{Definition, Service};
//! use prony_runtime::{Options, run};
//!
//! trait Prices {
//!     fn of(&self, article: &str) -> u64;
//! }
//!
//! struct Fixed;
//!
//! impl Service for Fixed {}
//!
//! impl Prices for Fixed {
//!     fn of(&self, article: &str) -> u64 {
//!         article.len() as u64
//!     }
//! }
//!
//! struct Shop {
//!     prices: Rc<dyn Prices>,
//! }
//!
//! impl Service for Shop {}
//!
//! /// An order of a customer.
//! struct Order(&'static str);
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sold = run(&Options::default(), |runtime| async move {
//!     let services = runtime.services();
//!     let shop = services.add(Definition::construct("shop", |prices: Rc<dyn Prices>| Shop { prices }))?;
//!     services.add(Definition::new("prices", Fixed).provides::<Rc<dyn Prices>>(|it| it))?;
//!     services.settle().await?;
//!
//!     let shop = services.instance::<Shop>(shop).ok_or("the shop is closed")?;
//!     let paid = Rc::new(AutoEvent::new());
//!     let till = paid.clone();
//!     let selling = runtime.events().on(move |order: &Order, _| {
//!         if shop.prices.of(order.0) > 3 {
//!             till.set();
//!         }
//!     });
//!     runtime.events().push(Order("nail"))?;
//!     paid.wait().await; // this coroutine alone waits
//!     drop(selling);
//!     println!("{}", runtime.snapshot());
//!     Ok::<_, Box<dyn std::error::Error>>(runtime.snapshot().events.counts.dispatched)
//! })??;
//! assert_eq!(sold, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Where to read on
//! | for | see |
//! |---|---|
//! | dependencies, factories, filters, start and stop, errors with their path | [`services`] |
//! | handlers, priorities, interceptors, bounds, back-pressure, other threads | [`events`] |
//! | tasks, scopes, generators, mutex, channel, events to wait for, intervals | [`coroutines`] |
//! | pinning, locked memory, SCHED_FIFO, deadlines | [`realtime`] |
//! | how everything stands, as text, JSON and Graphviz | [`Runtime::snapshot`] |
//! | a whole small application with HTTP | `crates/ping`, `cargo run -p prony-ping --example ping` |
//! | shorter examples | `crates/runtime/examples` |
//!
//! # Many threads
//! Each thread [`run`]s a runtime of its own; what is `Rc` stays there. Threads share
//! services as `Arc<dyn Trait + Send + Sync>`, which each provides to its own registry, and
//! send each other events through [inlets](events::Events::inlet):
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! use prony_runtime::services::{Definition, Service};
//! use prony_runtime::{Options, run};
//!
//! trait Counter: Send + Sync {
//!     fn add(&self, number: u64) -> u64;
//! }
//!
//! #[derive(Default)]
//! struct Shared(AtomicU64);
//!
//! impl Counter for Shared {
//!     fn add(&self, number: u64) -> u64 {
//!         self.0.fetch_add(number, Ordering::Relaxed) + number
//!     }
//! }
//!
//! /// Gives what all threads share to the services of one.
//! struct Door(Arc<dyn Counter>);
//!
//! impl Service for Door {}
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let shared: Arc<dyn Counter> = Arc::new(Shared::default());
//! let total = run(&Options::default(), |runtime| async move {
//!     let inlet = runtime.events().inlet::<u64>(16);
//!     let theirs = shared.clone();
//!     let other = std::thread::spawn(move || {
//!         run(&Options::default(), |runtime| async move {
//!             let door = Definition::new("counter", Door(theirs))
//!                 .provides::<Arc<dyn Counter>>(|door| door.0.clone());
//!             runtime.services().add(door)?;
//!             runtime.services().settle().await?;
//!             let counter = runtime.services().get::<Arc<dyn Counter>>().ok_or("no counter")?;
//!             for number in 1..=3 {
//!                 inlet.send_wait(counter.add(number)).await.map_err(|_| "nobody listens")?;
//!             }
//!             Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
//!         })
//!     });
//!     let mut totals = runtime.events().stream::<u64>(16);
//!     let last = loop {
//!         let (total, _) = totals.next().await;
//!         if total == 6 {
//!             break total;
//!         }
//!     };
//!     other.join().map_err(|_| "the other thread panicked")?.map_err(|error| error.to_string())??;
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(last)
//! })?;
//! assert_eq!(total.map_err(|error| error.to_string())?, 6);
//! # Ok(())
//! # }
//! ```
//!
//! # Central types
//! - [`Runtime`]: one loop with its services and events; [`run`] makes it.
//! - [`Services`](services::Services): the registry: adds, starts and stops services in the order of their dependencies.
//! - [`Events`](events::Events): the queue of typed events of one thread.
//!
//! # Inside
//! [`services`]: a pure graph decides what may start or stop, and users' code runs with nothing borrowed. [`events`]: runs of
//! one type and priority are kept in order; payloads lie inline, neither boxed nor locked on the owner's thread; a handler's
//! future is polled in place and becomes a task only if it waits. [`coroutines`]: waiters are served first come, first served, and
//! one that is dropped passes on what it was given.
//!
//! # Invariants
//! - First in, first out among events of equal priority, across all types.
//! - No service runs whose requirement does not. Each start that succeeded has one stop, dependents first.
//! - The cost is O(services + edges), which tests show by counting steps.
#![forbid(unsafe_code)]

pub mod coroutines;
pub mod events;
pub mod realtime;
mod runtime;
pub mod services;

pub use runtime::{LoopTurns, Options, Runtime, Snapshot, run};
