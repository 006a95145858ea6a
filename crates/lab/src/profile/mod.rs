//! Profiles of subjects: where their CPU time goes, how often they call the kernel, who waits. In trials of their own
//! after all measured ones, since looking costs time.
//!
//! ```text
//! Means::find: what this machine permits ──> passes, one trial each
//!     samples, counters: perf_event_open ──> stacks ──> folded (names: /proc/PID/maps, ELF, kallsyms)
//!     system calls where perf may not count them: strace, in a trial of its own
//! ```
//!
//! The samples are of the kernel's CPU clock, which every machine has, also virtual ones without counters in hardware. Stacks
//! follow frame pointers: the innermost function of each is certain, its callers are where programs keep frame pointers,
//! and in the kernel always.
//!
//! Not for: reporting a profile (`prony-report`), or when it is taken ([`crate::trial`]).

mod fold;
mod maps;
mod perf;
mod profiler;
mod strace;
mod symbols;

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

use prony_base::Nanos;
use prony_record::PlannedProfile;

use crate::launch::found_in;
use perf::RATE_PER_S;
pub use perf::Reach;
pub use profiler::{Pass, Profiler, TOO_BRIEF};
pub use strace::{arguments as strace_arguments, counts as strace_counts};

/// Window of a profile trial: some thousand samples of a busy core.
const WINDOW: Nanos = Nanos::from_secs(3);
/// Message where system calls cannot be counted.
const UNCOUNTED: &str = "the tracepoint raw_syscalls:sys_enter cannot be had";
/// The kernel setting that restricts sampling.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// How cells are profiled, where that is asked for.
pub fn planned() -> PlannedProfile {
    PlannedProfile {
        window_ns: WINDOW.0,
        rate_per_s: RATE_PER_S,
    }
}

/// What a machine permits this process.
#[derive(Clone, Debug, PartialEq)]
pub struct Means {
    samples: Result<Reach, String>,
    tracepoint: Result<u64, String>,
    strace: Option<PathBuf>,
}

impl Means {
    /// Tries what this process may do; strace is looked for on `path` (the variable's value).
    pub fn find(path: &OsStr) -> Means {
        let strace = found_in("strace", std::env::split_paths(path));
        Means::new(&perf::try_sampling, &perf::try_counting, strace)
    }

    /// What follows from trying: `sample` takes whether samples are to be of the kernel, too; `count` gives the number of the
    /// tracepoint of system calls.
    pub fn new(
        sample: &dyn Fn(Reach) -> io::Result<()>,
        count: &dyn Fn() -> io::Result<u64>,
        strace: Option<PathBuf>,
    ) -> Means {
        let tried = |reach| sample(reach).map(|()| reach);
        let samples = tried(Reach::Kernel).or_else(|_| tried(Reach::User));
        Means {
            samples: samples.map_err(|error| error.to_string()),
            tracepoint: count().map_err(|error| error.to_string()),
            strace,
        }
    }

    /// The trials that it takes to profile a server, in their order: system calls that perf may not count are counted by
    /// strace, which slows a server down so much that nothing else is looked at meanwhile.
    pub fn passes(&self) -> Vec<Pass> {
        let first = self.only_pass();
        let second = self.strace.as_ref().filter(|_| self.tracepoint.is_err());
        let second = second.map(|strace| Pass {
            samples: None,
            strace: Some(strace.clone()),
            refused: Vec::new(),
            ..first.clone()
        });
        [first].into_iter().chain(second).collect()
    }

    /// The one trial that profiles a program or a client: strace could not be there before its first system call.
    pub fn only_pass(&self) -> Pass {
        Pass {
            rate_per_s: RATE_PER_S,
            samples: self.samples.clone().ok(),
            tracepoint: self.tracepoint.clone().ok(),
            strace: None,
            refused: self.refused(),
        }
    }

    /// What cannot be had here, why, and what would change it, a sentence each.
    pub fn refused(&self) -> Vec<String> {
        let mut all = Vec::new();
        let paranoid = std::fs::read_to_string(PARANOID).unwrap_or_default();
        let paranoid = match paranoid.trim() {
            "" => String::new(),
            level => format!(" (kernel.perf_event_paranoid is {level})"),
        };
        match &self.samples {
            Err(why) => all.push(format!(
                "no CPU samples, so that there is no flame graph: perf_event_open: {why}{paranoid}; root may take them, others \
                 with `sysctl kernel.perf_event_paranoid=2`"
            )),
            Ok(Reach::User) => all.push(format!(
                "CPU samples are of user mode alone{paranoid}; root may take those of the kernel, too, and others with \
                 `sysctl kernel.perf_event_paranoid=1`"
            )),
            Ok(Reach::Kernel) => {}
        }
        let counts = &self.tracepoint;
        all.extend(counts.as_ref().err().map(|why| match &self.strace {
            Some(_) => format!(
                "system calls of servers are counted by strace, in trials of their own that are slower still, and those of \
                 programs and clients not at all: {UNCOUNTED}: {why}"
            ),
            None => format!(
                "system calls are not counted: {UNCOUNTED} ({why}), and strace is not on the path (`apt-get install strace`)"
            ),
        }));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied() -> io::Error {
        io::Error::from_raw_os_error(13)
    }

    /// The sentences, whatever this machine's setting is.
    fn refused(means: &Means) -> String {
        let sentences = means.refused().join("\n");
        let level = std::fs::read_to_string(PARANOID).unwrap_or_default();
        sentences.replace(
            &format!(" (kernel.perf_event_paranoid is {})", level.trim()),
            "",
        )
    }

    #[test]
    fn what_root_may_takes_one_trial_and_refuses_nothing() {
        let means = Means::new(&|_| Ok(()), &|| Ok(7), Some("/usr/bin/strace".into()));
        let passes = means.passes();
        assert_eq!(passes.len(), 1);
        assert_eq!(passes[0].samples, Some(Reach::Kernel));
        assert_eq!((passes[0].tracepoint, &passes[0].strace), (Some(7), &None));
        assert_eq!(means.refused(), Vec::<String>::new());
    }

    #[test]
    fn who_may_sample_user_mode_alone_has_strace_count_in_a_second_trial() {
        let sample = |reach| match reach {
            Reach::Kernel => Err(denied()),
            Reach::User => Ok(()),
        };
        let means = Means::new(&sample, &|| Err(denied()), Some("/usr/bin/strace".into()));
        let passes = means.passes();
        assert_eq!(passes.len(), 2);
        assert_eq!(passes[0].samples, Some(Reach::User));
        assert_eq!((passes[0].tracepoint, &passes[0].strace), (None, &None));
        assert_eq!(passes[1].samples, None);
        assert!(passes[1].strace.is_some());
        insta::assert_snapshot!(refused(&means));
    }

    #[test]
    fn where_nothing_is_permitted_each_refusal_is_said_with_what_would_change_it() {
        let means = Means::new(&|_| Err(denied()), &|| Err(denied()), None);
        let passes = means.passes();
        assert_eq!(passes.len(), 1);
        assert_eq!((passes[0].samples, passes[0].tracepoint), (None, None));
        insta::assert_snapshot!(refused(&means));
    }
}
