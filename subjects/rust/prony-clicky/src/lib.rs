//! A click counter that loses nothing: a small service on Prony's engine, runtime and server.
//!
//! [`settings`] reads the environment; [`counting`] has the counters, the batches and the
//! places where totals are kept; [`web`] has what is said over HTTP.
#![forbid(unsafe_code)]

pub mod counting;
pub mod settings;
pub mod web;
