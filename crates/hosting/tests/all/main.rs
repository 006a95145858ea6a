//! The tests of this crate in one program: each program is linked for itself, which takes longer than its tests do.

#[path = "../../../http/tests/all/by_hand/mod.rs"]
mod by_hand;
mod common;
mod corpus;
mod renewal;
mod workers;
