//! What a profile trial saw of its subject. Its trial is in no figure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The load generator of a trial, and what the trial is for.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum GeneratorKind {
    /// Prony's own; its trials are those of the figures.
    #[default]
    Prony,
    /// wrk, as a cross-check.
    Wrk,
    /// Prony's own, while the subject is profiled.
    Profile,
    /// Prony's own, while strace counts the subject's system calls.
    ProfileStrace,
}

impl GeneratorKind {
    /// The word that records have for it.
    pub fn name(self) -> &'static str {
        match self {
            GeneratorKind::Prony => "prony",
            GeneratorKind::Wrk => "wrk",
            GeneratorKind::Profile => "profile",
            GeneratorKind::ProfileStrace => "profile-strace",
        }
    }

    /// Whether its trials look into the subject, and are in no figure.
    pub fn is_profile(self) -> bool {
        matches!(self, GeneratorKind::Profile | GeneratorKind::ProfileStrace)
    }
}

/// How cells are profiled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedProfile {
    /// Length of the window of a profile trial.
    pub window_ns: u64,
    /// Samples that are asked for in each second that a core runs the subject.
    pub rate_per_s: u32,
}

/// What a profile trial saw of the subject, from the start of its window to the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileReport {
    /// Samples that were asked for in each second that a core ran the subject; 0: none were taken.
    pub rate_per_s: u32,
    /// Time between the two readings of the threads' clocks.
    pub length_ns: u64,
    /// File of the folded stacks, relative to the run directory: a line for each stack, frames from the outermost to
    /// the innermost with `;` between them, a space, and its samples. The outermost is the thread's name; frames of
    /// the kernel end in `_[k]`, those that a compiler made at run time in `_[j]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folded: Option<String>,
    /// Samples in that file.
    pub samples: u64,
    /// Samples that were not: the kernel had no room for them, or the program that reads them none.
    pub lost: u64,
    /// Whether the time in the kernel is among the samples; otherwise they are of time in user mode alone.
    pub kernel: bool,
    /// How system calls were counted: `perf` or `strace`; `None`: they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscalls_by: Option<String>,
    /// System calls by name, where strace counted them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub syscalls: BTreeMap<String, u64>,
    /// The subject's threads.
    pub threads: Vec<ProfiledThread>,
    /// What could not be had, and why, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

/// One thread of the subject, in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfiledThread {
    /// Process id, as the supervisor saw it.
    pub pid: u32,
    /// Thread id, likewise.
    pub tid: u32,
    /// Name.
    pub name: String,
    /// CPU time.
    pub cpu_ns: u64,
    /// Time in which it could run and did not.
    pub delay_ns: u64,
    /// Samples.
    pub samples: u64,
    /// System calls, with those of the threads and processes that it started in the window; `None`: not counted by thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscalls: Option<u64>,
    /// Voluntary context switches.
    pub switches_voluntary: u64,
    /// Involuntary context switches.
    pub switches_involuntary: u64,
}
