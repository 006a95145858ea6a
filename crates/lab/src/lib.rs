//! Experiments: plan, subjects, trials, samplers.
#![deny(unsafe_code)]

pub mod canary;
pub mod environment;
pub mod launch;
pub mod request;
pub mod run;
pub mod sample;
pub mod store;
pub mod supervise;
pub mod target;
pub mod trial;
pub mod verify;
