//! Experiments: plan, subjects, trials, samplers.
#![deny(unsafe_code)]

pub mod build;
pub mod cap;
pub mod contract;
pub mod counts;
pub mod diagnosis;
pub mod experiment;
pub mod plan;
pub mod printed;
pub mod subject;
#[doc(hidden)]
pub use plan::fuzz as fuzz_experiment;

pub mod canary;
pub mod doctor;
pub mod environment;
pub mod launch;
pub mod network;
pub mod passed;
pub mod profile;
pub mod request;
pub mod run;
pub mod sample;
pub mod store;
pub mod sums;
pub mod supervise;
pub mod sysctl;
pub mod target;
pub mod trial;
pub mod verify;
