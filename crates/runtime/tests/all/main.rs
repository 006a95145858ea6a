//! The tests of this crate in one program: each program is linked for itself, which takes longer than its tests do.
//! `soak` counts allocations and `services_tracing` has a subscriber: they are programs of their own.

mod coroutines;
mod coroutines_schedules;
mod events;
mod events_model;
mod services;
mod services_random;
