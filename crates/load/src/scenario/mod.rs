//! Users that do steps: each sends the requests of a scenario in their order, on a connection of its own, with cookies of its own,
//! and what it takes from one answer goes into its next requests.
//!
//! | file | what it is |
//! |---|---|
//! | `compiled.rs` | the scenario, checked: shared by all threads |
//! | `source.rs` | what each user sends next, and when; the source of a thread |
//! | `follower.rs` | what follows the answers on a user's connection: its checks, and what it takes |
//! | `memory.rs` | what a user keeps from one step to the next |
//! | `figures.rs` | the counts of steps and iterations |
//!
//! A user is in a slot. The worker asks the source what the slot waits for ([`UserTurn`](crate::source::UserTurn)), and sends, or waits
//! until the think time has passed. In a closed loop the slot's user begins again after its last step; in an open one each arrival is
//! another user.

pub mod compiled;
pub mod figures;
pub mod follower;
pub mod memory;
pub mod source;
pub mod take;
