//! From an experiment, its subjects and a machine to the [`Plan`](prony_record::Plan): what is run,
//! what is not and why, in which order, with how many connections.
//!
//! [`plan`] is a pure function. Around it, in this order: [`Experiment::load`](crate::experiment::Experiment::load),
//! [`load_all`](crate::subject::load_all), [`Facts::gather`], [`plan()`],
//! [`estimate`], then [`build`](crate::build) for each subject and [`settle`].
//!
//! Not for: starting anything.
//!
//! # Rules
//!
//! - A subject that needs what the machine lacks is not run; the others are.
//! - A reference that is not run has no replacement: there are no ratios then, and
//!   the plan says so. A substitute would change what the document claims.
//! - A subject whose endpoints lack a workload's path has no cell of it. It is
//!   named as not run only where it then has no cell at all.
//! - One cap on connections holds for all cells ([`crate::cap`]).
//! - A program that does not do a workload's work is named as not run, with the reason
//!   that its file gives.
//! - An experiment of programs alone has no generator: all cores are the programs', or all that
//!   are given to the subject. A client has the subject's cores, and its peer the generator's.
//! - A client's cell with more threads than connections, or than the client can use, is
//!   not run; nor is one whose peer or network cannot be had.
//! - A service that stands around a subject and cannot be had takes the cells that need it
//!   with it, and no others. What a row stands beside has no replacement either.
//! - A value of a setting that this machine cannot have (a library that it preloads, a command, a kernel setting) is
//!   named once, and takes all its cells with it.
//! - A setting that is about servers (services, output, `instances`, `generators`) concerns
//!   workloads of requests alone.
//! - `--only` selects cells by a part of the subject's or the cell's id, or by a
//!   pattern with `*` and `?`; several select what any of them selects.

mod cells;
pub(crate) mod check;
pub(crate) mod client;
mod copies;
mod cores;
mod estimate;
mod facts;
mod find_max;
mod fuzz;
mod inputs;
mod options;
mod program;
mod published;
mod resolve;
mod rows;
mod settle;
mod sizes;
mod threads;
mod topology;
mod values;
pub(crate) mod visits;

pub use crate::launch::on_path;
pub use check::check_services;
pub use cores::line as line_on_cores;
pub use estimate::{
    Beside, Trials, estimate, estimate_line, is_cross_checked, is_profiled, is_server, trials,
};
pub use facts::{Facts, KernelSetting};
pub(crate) use find_max::{length as search_length, longest as longest_search};
pub use fuzz::fuzz;
pub use options::{CELLS_MAX, Options, PlanError};
pub use published::{check_published, republish};
pub use resolve::{needs_systems, plan, processes};
pub use settle::{order, settle};
pub use visits::{in_window as visits_in, lines as lines_on_visits};

#[cfg(test)]
mod tests;
