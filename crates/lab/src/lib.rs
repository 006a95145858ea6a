//! The laboratory: reads an experiment, builds its subjects, runs its trials, and records what they measured.
//!
//! One way, from file to record: [`experiment`] and [`subject`] read and check the files (errors with their place: [`diagnosis`]);
//! [`plan`] resolves them to cells and an order of trials, without I/O; [`build`] builds the subjects, with a cache; [`run`]
//! starts each trial in a process of its own ([`supervise`]), which runs it ([`trial`]) while [`sample`] reads processes, threads,
//! cores and network counters; [`store`] appends the record and syncs it before the next trial begins.
//!
//! Beside that way: [`verify`] checks a server's answers before it is measured, [`contract`] what each subject must do;
//! [`scenario`] reads the file of what users do; [`doctor`] looks for what spoils figures on this machine; [`profile`] looks into subjects in trials of their own; [`folder`] opens the files of a run that may be a
//! stranger's; [`printed`]
//! reads what programs print; [`mod@reference`] describes the keys of both files; [`network`] joins two namespaces by a link of limited rate; [`sysctl`] sets a kernel setting for a trial.
//!
//! Not for: the load itself (`prony-load`), figures and comparisons (`prony-stats`), documents (`prony-report`).
//!
//! # Central types
//! - [`Experiment`](experiment::Experiment): an experiment file, checked.
//! - [`Plan`](prony_record::Plan), made by [`plan::plan`]: every cell and trial, resolved.
//! - [`Journal`](store::Journal): the writing side of a run directory.
//!
//! # A trial
//! In a trial of a server each process is a service of a `prony-runtime`: the subject after its databases, a proxy after the subject,
//! the load last. They start in that order and stop in the reverse. A program has a fresh parent of its own, so that its peak
//! memory is its own; a client is a program beside a peer whose counts are read before and after it. With visits the trials of one
//! group are alive together and measured in turns, the others stopped.
//!
//! # Invariants
//! - A raw record is written and synced before the next trial begins.
//! - No process that Prony started outlives it, however Prony ends. None is stopped with a request in flight.
//! - `unsafe` is only in `launch.rs`, which starts processes.
#![deny(unsafe_code)]

pub mod build;
pub mod cap;
pub mod contract;
pub mod counts;
pub mod diagnosis;
pub mod experiment;
pub mod plan;
pub mod printed;
pub mod reference;
pub mod subject;
#[doc(hidden)]
pub use plan::fuzz as fuzz_experiment;

pub mod canary;
pub mod doctor;
pub mod environment;
mod exchange;
pub mod folder;
pub mod launch;
pub mod network;
pub mod passed;
mod preload;
pub mod profile;
pub mod root;
pub mod run;
pub mod sample;
pub mod scenario;
mod sending;
pub mod store;
pub mod sums;
pub mod supervise;
pub mod sysctl;
pub mod trial;
pub mod verify;
mod walk;
