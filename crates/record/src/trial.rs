//! What one trial recorded: one repetition of one cell, with processes of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::profile::GeneratorKind;
use crate::{ClientReport, CounterReport, LoadReport, ProfileReport, ProgramReport, RateSearch};

/// One line of `trials.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Schema version ([`crate::SCHEMA`]).
    pub schema: u32,
    /// The cell's `id`.
    pub cell: String,
    /// Block, from 0.
    pub block: u32,
    /// Place in the block's order, from 0.
    pub position: u32,
    /// Seed of this trial.
    pub seed: u64,
    /// Load generator; summaries have the trials of [`GeneratorKind::Prony`] alone.
    pub generator: GeneratorKind,
    /// Wall clock at the start, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Length of the measured window; 0 where there was none.
    pub window_ns: u64,
    /// What the generator measured.
    pub load: Option<LoadReport>,
    /// File of the latency histogram, relative to the run directory.
    pub histogram: Option<String>,
    /// What was done when.
    pub phases: Vec<PhaseSpan>,
    /// Every process of the trial.
    pub processes: Vec<ProcessRecord>,
    /// The kernel's network counters around the window.
    pub kernel: KernelCounters,
    /// Use of each core in the window.
    pub cores: Vec<CoreUse>,
    /// The machine's speed before and after.
    pub canary: Option<CanaryPair>,
    /// Checks of the subject's answers, in order.
    pub verification: Vec<CheckResult>,
    /// What held the trial apart from the rest of the machine.
    pub isolation: Isolation,
    /// Last lines of the subject's output, at most 20.
    pub log_tail: Vec<String>,
    /// Time between the two readings of the processes' clocks, which were aimed at
    /// the start and the end of the window; 0 where there was no window.
    #[serde(default)]
    pub sampled_ns: u64,
    /// CPU time that the supervisor, which samples, used in this time, nanoseconds; `None` where it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampler_cpu_ns: Option<u64>,
    /// Time from the start of the subject's process, of the slowest where there are several, until it gave its ready sign, nanoseconds;
    /// `None` where it did not, or where it was not recorded. Probed each millisecond, later at 2 % of the time it has taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_ns: Option<u64>,
    /// How long the first of the workload's requests took after it was ready, from before connecting until the answer was read, of
    /// the slowest where there are several, nanoseconds. Where the ready sign is an answer, that one came before it. `None` where no
    /// answer came, with a scenario, and where it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_answer_ns: Option<u64>,
    /// The same of a request that was sent when nothing had been asked for as long as the workload says
    /// ([`rest_ns`](crate::PlannedWorkload::rest_ns)); `None` where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_rest_ns: Option<u64>,
    /// Processes that were still there after the subject had been stopped, and were
    /// killed: `name (pid)`.
    #[serde(default)]
    pub left_behind: Vec<String>,
    /// What a reader of this record must know and no field says: what the samplers
    /// could not see, a log that was cut.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What a program that was run to its end recorded; a client is one, too.
    #[serde(default)]
    pub program: Option<ProgramReport>,
    /// The visits that its window is made of; empty where it is one piece.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visits: Vec<Visit>,
    /// What a trial of a client recorded beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientReport>,
    /// What became of the number that its requests raise.
    #[serde(default, alias = "tally", skip_serializing_if = "Option::is_none")]
    pub counter: Option<CounterReport>,
    /// What it found after its window, where its workload looks for a highest rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<RateSearch>,
    /// What was seen of the subject, in a trial that profiles it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileReport>,
}

/// One visit: a server had its turn while its neighbours were stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    /// Start of its window, from the start of the first one's.
    pub start_ns: u64,
    /// Length of its window.
    pub window_ns: u64,
    /// Requests answered in it.
    pub completed: u64,
    /// Requests and connects that failed in it.
    pub failed: u64,
    /// CPU time of the subject's processes in it.
    pub subject_cpu_ns: u64,
}

/// How a trial ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    /// The whole window was measured and the subject was alive at its end.
    Measured,
    /// It failed; what was measured until then is kept and is part of no summary.
    Failed {
        /// The phase that failed.
        phase: Phase,
        /// What went wrong, in one sentence.
        reason: String,
    },
    /// The user ended the run in the middle of it; it is done again on `--resume`.
    #[default]
    Interrupted,
}

/// A part of a trial, in the order in which they follow each other.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Namespaces, directories, cores.
    Prepare,
    /// Processes are started.
    Start,
    /// Waiting for the declared sign.
    Ready,
    /// Answers are checked.
    Verify,
    /// Load that is not measured.
    WarmUp,
    /// The window.
    Measure,
    /// The highest rate that keeps an objective is looked for.
    Search,
    /// What is in flight is answered.
    Drain,
    /// Processes are stopped.
    Stop,
}

/// When a phase was and how long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseSpan {
    /// Which.
    pub phase: Phase,
    /// Start, since the start of the trial.
    pub start_ns: u64,
    /// Length.
    pub length_ns: u64,
}

/// What a process is in a trial.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// What is measured (the process that was started, or a descendant of it).
    #[default]
    Subject,
    /// What drives it.
    Generator,
    /// The fixed other side.
    Peer,
    /// A data store behind the subject.
    Backing,
    /// A proxy before it.
    Front,
}

/// One process. Times and counts are of the window unless they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// Role.
    pub role: Role,
    /// Name as the kernel has it.
    pub name: String,
    /// Process id as Prony's supervisor saw it (its own process namespace, if it had one).
    pub pid: u32,
    /// Parent's process id.
    pub parent_pid: u32,
    /// Argument vector.
    pub command: Vec<String>,
    /// CPU time, all threads, those that ended in the window too.
    pub cpu_ns: u64,
    /// Memory marks.
    pub memory: MemoryMarks,
    /// Its threads.
    pub threads: Vec<ThreadRecord>,
    /// Voluntary context switches.
    pub switches_voluntary: u64,
    /// Involuntary context switches.
    pub switches_involuntary: u64,
    /// How it ended, over the whole trial; `None`: not seen to end.
    pub exit: Option<Exit>,
}

/// Memory of a process: what is resident, unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryMarks {
    /// Peak from the start to the end of the warm-up.
    pub startup_peak_bytes: u64,
    /// Peak of the window; the mark was reset after the warm-up.
    pub peak_bytes: Option<u64>,
    /// The size at the end of the window.
    pub end_bytes: u64,
    /// Peak of the address space, resident or not, from the start to the end of the window: this mark is never reset. `None`: an older
    /// record, or one of a process that was not looked at in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_peak_bytes: Option<u64>,
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// Thread id.
    pub tid: u32,
    /// Name.
    pub name: String,
    /// CPU time in the window.
    pub cpu_ns: u64,
    /// Time in the window in which it could run and did not (run-queue delay).
    pub delay_ns: u64,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Exit {
    /// By itself.
    Code {
        /// Exit status.
        code: i32,
    },
    /// By a signal.
    Signal {
        /// Its number.
        signal: i32,
        /// Whether Prony had asked it to stop by then.
        asked: bool,
    },
}

/// Counters of the network stack around the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelCounters {
    /// Whether only this trial's traffic is in them (`false`: host-wide).
    pub own_namespace: bool,
    /// `TcpExtListenOverflows` and the like at the start of the trial, before any connection.
    pub before: BTreeMap<String, u64>,
    /// The same after the drain.
    pub after: BTreeMap<String, u64>,
}

impl KernelCounters {
    /// How much `name` rose; 0 where the kernel does not have it.
    pub fn rise(&self, name: &str) -> u64 {
        let at = |counters: &BTreeMap<String, u64>| counters.get(name).copied().unwrap_or(0);
        at(&self.after).saturating_sub(at(&self.before))
    }
}

/// Use of one core in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreUse {
    /// Its number.
    pub core: u32,
    /// Whose core it is; `None`: nobody's.
    pub role: Option<Role>,
    /// Time that was not idle, by the kernel's ticks (a resolution of 10 ms).
    pub busy_ns: u64,
    /// Time that the hypervisor gave to others.
    pub steal_ns: u64,
    /// CPU time of the kernel's thread that does on this core what interrupts left to do (`ksoftirqd`), most of it
    /// network packets: work for the processes there that is in no process's clock. `None`: it cannot be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ksoftirqd_ns: Option<u64>,
}

/// A fixed piece of work, timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Canary {
    /// The computation.
    pub compute_ns: u64,
    /// The system calls.
    pub syscalls_ns: u64,
}

/// The canary before and after a trial, on the subject's core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CanaryPair {
    /// Before.
    pub before: Canary,
    /// After.
    pub after: Canary,
}

/// One check of a subject's answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Its name: `status`, `body`, `echo`, `keep-alive`, `pipelining`, `split`, `head` …
    pub name: String,
    /// What follows from failing it.
    pub level: CheckLevel,
    /// Whether it passed.
    pub passed: bool,
    /// The expected value and the one that came, where it did not pass.
    pub detail: String,
}

impl CheckResult {
    /// What came of a check.
    pub fn new(name: &str, level: CheckLevel, result: Result<(), String>) -> CheckResult {
        CheckResult {
            name: name.to_owned(),
            level,
            passed: result.is_ok(),
            detail: result.err().unwrap_or_default(),
        }
    }
}

/// What follows from failing a check.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckLevel {
    /// The cell is not measured.
    Must,
    /// The result is recorded and becomes a finding.
    Capability,
}

/// What held a trial apart from the rest of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Isolation {
    /// Its own network namespace.
    pub network_namespace: bool,
    /// Its own process namespace (else: a sub-reaper and a process group).
    pub process_namespace: bool,
    /// Pinned to the planned cores.
    pub pinned: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_older_records_is_read_and_written_as_it_was() {
        let older = r#"{"startup_peak_bytes":3,"peak_bytes":2,"end_bytes":1}"#;
        let marks: MemoryMarks = serde_json::from_str(older).expect("a record of before");
        assert_eq!(marks.virtual_peak_bytes, None);
        let written = serde_json::to_string(&marks).expect("JSON");
        assert_eq!(written, older);
    }
}
