//! The experiment: one TOML file that says what is measured and how.
//!
//! Not for: what a machine can do of it ([`crate::plan`]), or what a folder of a
//! subject says ([`crate::subject`]).
#![doc = include_str!("../../../../docs/experiments.md")]

mod arrival;
mod client;
pub mod cores;
pub(crate) mod expect;
pub(crate) mod fields;
mod files;
mod find_max;
mod folder;
pub(crate) mod keys;
pub(crate) mod names;
mod published;
pub(crate) mod read;
mod require;
mod rows;
pub(crate) mod service;
mod sources;
pub(crate) mod spoken;
pub(crate) mod types;
pub(crate) mod words;
mod work;

pub use fields::{FILE_BYTES_MAX, Origin};
pub use names::{check_names, check_peers, check_settings};
pub use read::sha256;
pub use spoken::Spoken;
pub use types::{
    ALL_CORES, Aim, Baseline, ClientWork, Connections, Counter, Exclusion, Experiment, From,
    GENERATORS, INSTANCES, Network, Parts, Published, Quick, Row, Run, Search, Setting,
    SettingTopology, SubjectEntry, THREADS, Wanted, Work, Workload, WorkloadSource,
};

#[cfg(test)]
mod tests;
