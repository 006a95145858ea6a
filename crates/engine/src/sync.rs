//! Synchronisation between threads, from one place: std's, or loom's in a build with `--cfg loom`,
//! which runs the `loom_` tests through every order in which threads can take turns.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p prony-engine --release --lib loom_`
//!
//! Only what those tests model comes from here: `Wakes` of `remote`, and `mailbox`.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
