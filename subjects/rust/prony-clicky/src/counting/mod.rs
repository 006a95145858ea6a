//! Counters that lose nothing: totals in memory, one thread that keeps them, and the
//! places where they are kept. Not for: HTTP (`web`), the environment (`settings`).
//!
//! A service opens one [`Tally`]; each of its loops has a [`Desk`] of it. A click is added
//! there and answered at once ([`Desk::add`]), or when it is durable
//! ([`Desk::add_synced`]). The stores are a log in a file, Redis and SQLite ([`Backend`]);
//! a thread of its own talks to them, so that no loop waits for a disk or another machine.
//!
//! ```
//! use prony_clicky::counting::{CountingSetting, Name, Tally};
//! use prony_engine::{Config, run};
//!
//! let tally = Tally::open(&CountingSetting::default()).unwrap();
//! let total = run(&Config::default(), |handle| {
//!     let desk = tally.desk(&handle);
//!     async move { desk.add(&Name::ROOT, 500) }
//! });
//! assert_eq!(total.unwrap(), Ok(500));
//! tally.close().unwrap();
//! ```

mod counters;
mod desk;
mod keeper;
mod name;
mod setting;
mod shared;
pub mod store;
mod tally;

pub use desk::{CHANGES_EVERY, Desk};
pub use keeper::CloseError;
pub use name::{BadName, NAME_BYTES_MAX, Name};
pub use setting::{Ack, Backend, CountingSetting, TOTAL_MAX, Tell};
pub use shared::{Health, Numbers, Refusal};
pub use store::OpenError;
pub use tally::Tally;
