//! The load generator: drives one HTTP server and counts every request once.
//!
//! [`run`] takes a resolved [`LoadSpec`] and blocks until the run has ended;
//! an [`Observer`] is told when the measured window begins and how far the run has
//! got. One thread is one event loop, and one loop serves whatever a load is made of, which is four values:
//!
//! | value | what it decides | file |
//! |---|---|---|
//! | pace | when requests start: closed with or without think time, constant, Poisson, stages, recorded times | `pace.rs` |
//! | origin | what latency counts from: the intended start, or the submission | `origin.rs` |
//! | source | what each slot sends ([`RequestSource`]): requests, or users' steps | `source.rs`, `mixed.rs`, `scenario/` |
//! | protocol | how requests and answers share a connection, in the clear or under TLS | `protocol.rs`, `http1.rs`, `http2.rs`, `secure.rs` |
//!
//! ```text
//! connect all ──> warm-up ──> window ──> drain
//!                 WarmUp        Measured   Drain: no arrival any more; what waits is sent, the rest answered or times out
//! ```
//!
//! A *slot* is one request outstanding. In an open pace an arrival takes an idle slot or waits for one, first in,
//! first out (`slots.rs`); in a closed loop a slot sends again once its last request has ended. A request has five
//! times: intended, submitted, first byte, last byte, processed. The engine stamps the middle three where they
//! happen. A thread with many connections may wait a little for more completions (`coalescing.rs`); the report says
//! how long.
//!
//! [`find_max`] looks for the highest rate that keeps an [`Objective`], by a run for each rate that it tries.
//!
//! Not for: verifying a server's answers in depth (the lab does), choosing what
//! to send (a [`RequestSource`] does), printing.
//!
//! # Central types
//! - [`LoadSpec`]: a load, resolved: target, requests, pace, connections, threads, window.
//! - [`RequestSource`]: decides what each slot sends next.
//! - [`LoadReport`]: every count and latency of a run. It is refused where its requests do not balance: sent = completed +
//!   failed by kind + in flight at the end.
#![forbid(unsafe_code)]

mod answer_fields;
mod arrivals;
mod checks;
mod coalescing;
mod coded;
mod connection;
mod control;
mod cookies;
mod expect;
mod expected;
mod failure;
mod fields;
mod filled;
mod find_max;
mod follow;
pub mod form;
mod hdr;
mod hpack;
mod http1;
mod http2;
mod interval;
mod json_check;
mod latencies;
mod literals;
mod mixed;
pub mod named_file;
mod objective;
mod origin;
mod outstanding;
pub mod pace;
pub mod prepare;
mod protocol;
mod reach;
mod recorder;
mod redirect;
pub mod requests;
mod require;
mod rows;
mod run;
pub mod scenario;
mod scheduler;
mod secure;
#[cfg(test)]
mod sim_http2_tests;
#[cfg(test)]
mod sim_redirect_tests;
#[cfg(test)]
mod sim_scenario_tests;
#[cfg(test)]
mod sim_tests;
mod slots;
mod slow;
mod source;
mod sum;
pub mod target;
mod thread_spec;
mod trace;
mod users;
mod window;
mod worker;

pub use checks::{BODY_BYTES_MAX as CHECKED_BODY_BYTES_MAX, Checks, FailedAnswer, ObservedAnswer};
pub use coded::{accepted_codings, decoded};
pub use cookies::LaneCookies;
pub use failure::{Failure, ProtocolFault};
pub use fields::{
    FieldError, around_fields, check_fields, escaped_text, has_fields, names_in, with_environment,
};
pub use find_max::{find_max, find_max_after, longest_length, usual_length};
pub use follow::{AnswerEnd, AnswerFollower, AnswerFollowers};
pub use hdr::{IntervalLog, percentiles_text};
pub use hpack::request_fields;
pub use interval::{IntervalSum, LoadInterval, LoadTotals, StepTotals, ToldTotals};
pub use latencies::Latencies;
pub use mixed::{check_requests, first_requests};
pub use objective::Objective;
pub use prony_record::{LoadReport, LoadSpec};
pub use redirect::chain::LedRequest;
pub use require::{Requirements, StopConditions, check_step_name};
pub use run::{LoadError, LoadResult, Observer, SourceOf, run, run_by, run_part, run_with};
pub use source::{Cycle, EncodedRequest, EndedRequest, Next, RequestSource, UserTurn};
pub use sum::{PartResult, WholeLoad};
pub use thread_spec::ThreadSources;
pub use trace::RequestTimes;
