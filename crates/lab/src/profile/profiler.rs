//! Takes the samples and counts of one profile trial.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use prony_record::{ProfileReport, ProfiledThread};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::fold::{self, Stack};
use super::perf::{Found, Reach, Ring, SystemCalls};
use super::symbols::Symbols;

/// Different stacks that are kept at the most; samples of others count as lost.
const STACKS_MAX: usize = 200_000;
/// Rings at the most: each is a descriptor, and usual limits are 1024 of them.
const RINGS_MAX: usize = 768;
/// Message where all threads had ended before they could be profiled.
pub const TOO_BRIEF: &str = "it had ended before it could be looked into";

/// What one profile trial looks at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// Samples a second.
    pub rate_per_s: u32,
    /// The kind of samples; `None`: none.
    pub samples: Option<Reach>,
    /// Number of the tracepoint at which system calls are counted.
    pub tracepoint: Option<u64>,
    /// strace, which counts system calls in this trial and does nothing else.
    pub strace: Option<PathBuf>,
    /// What cannot be had, a sentence each.
    pub refused: Vec<String>,
}

/// Takes the samples and counts of one profile trial: [`open`](Profiler::open) shortly before the window,
/// [`begin`](Profiler::begin) at its start, [`drain`](Profiler::drain) several times a second, [`end`](Profiler::end) at its
/// end, [`report`](Profiler::report) when the subject need not live any more.
#[derive(Default)]
pub struct Profiler {
    pass: Pass,
    rings: Vec<Ring>,
    /// By thread.
    calls: BTreeMap<u32, SystemCalls>,
    counted: BTreeMap<u32, u64>,
    stacks: BTreeMap<Stack, u64>,
    symbols: Symbols,
    lost: u64,
    refused: Vec<String>,
    /// What strace counted.
    by_name: BTreeMap<String, u64>,
}

impl Profiler {
    /// One that has not looked at anything yet.
    pub fn new(pass: Pass) -> Profiler {
        Profiler {
            refused: pass.refused.clone(),
            pass,
            ..Profiler::default()
        }
    }

    /// What it is to look at.
    pub fn pass(&self) -> &Pass {
        &self.pass
    }

    /// A sentence about what could not be had.
    pub fn refuse(&mut self, sentence: String) {
        self.refused.push(sentence);
    }

    /// What strace counted, by name.
    pub fn counted_by_strace(&mut self, counts: BTreeMap<String, u64>) {
        self.by_name = counts;
    }

    /// Opens what is permitted for `threads` (process and thread), which run on `cores`. Those that they start later are
    /// looked at with them.
    ///
    /// One that has ended since it was listed has nothing left to be seen, and is no failure.
    pub fn open(&mut self, threads: &[(u32, u32)], cores: &[u32]) {
        let mut ended = 0;
        if let Some(reach) = self.pass.samples {
            ended = self.open_rings(threads, cores, reach);
        }
        if let Some(tracepoint) = self.pass.tracepoint {
            let mut failed = Failed::default();
            for &(_, tid) in threads {
                match SystemCalls::open(tid, tracepoint) {
                    Ok(calls) => drop(self.calls.insert(tid, calls)),
                    Err(error) => failed.note(error),
                }
            }
            ended = ended.max(failed.ended);
            self.refused
                .extend(failed.sentence("system calls are not counted"));
        }
        if ended > 0 && ended == threads.len() {
            self.refuse(TOO_BRIEF.to_owned());
        }
        self.remember(&processes(threads));
    }

    /// Returns how many threads had ended.
    fn open_rings(&mut self, threads: &[(u32, u32)], cores: &[u32], reach: Reach) -> usize {
        let mut failed = Failed::default();
        let wanted = threads.len() * cores.len();
        for &(_, tid) in threads {
            let mut opened = Vec::new();
            for &core in cores {
                if self.rings.len() + opened.len() >= RINGS_MAX {
                    failed.note(io::Error::other(format!("more than {RINGS_MAX} rings")));
                    break;
                }
                match Ring::open(tid, core, wanted, self.pass.rate_per_s, reach) {
                    Ok(ring) => opened.push(ring),
                    Err(error) => {
                        failed.note(error);
                        break;
                    }
                }
            }
            // A thread that is seen on some of its cores alone would be seen wrongly.
            if opened.len() == cores.len() {
                self.rings.extend(opened);
            }
        }
        let ended = failed.ended;
        self.refused.extend(failed.sentence("no samples are taken"));
        ended
    }

    /// Starts the window.
    pub fn begin(&mut self) {
        let calls = self.calls.values_mut().map(SystemCalls::enable);
        let enabled: io::Result<()> = calls
            .chain(self.rings.iter_mut().map(Ring::enable))
            .collect();
        if let Err(error) = enabled {
            self.refused
                .push(format!("not everything could be started: {error}"));
        }
    }

    /// Reads the samples that wait.
    pub fn drain(&mut self) {
        let mut found = Vec::new();
        for ring in &mut self.rings {
            found.extend(std::iter::from_fn(|| ring.next()));
        }
        for one in found {
            self.take(one);
        }
    }

    fn take(&mut self, found: Found) {
        match found {
            Found::Stack { pid, tid, chain } => self.note(pid, tid, &chain),
            Found::Lost(count) => self.lost += count,
        }
    }

    fn note(&mut self, pid: u32, tid: u32, chain: &[u64]) {
        let (kernel, user) = fold::split(chain);
        let stack = Stack {
            pid,
            tid,
            kernel,
            user,
        };
        let has_room = self.stacks.len() < STACKS_MAX;
        match self.stacks.get_mut(&stack) {
            Some(count) => *count += 1,
            None if has_room => drop(self.stacks.insert(stack, 1)),
            None => self.lost += 1,
        }
    }

    /// Keeps where the living have their code: more of it comes as a program loads it.
    pub fn remember(&mut self, pids: &[u32]) {
        for &pid in pids {
            self.symbols.remember(pid);
            self.symbols.remember_made(pid);
        }
    }

    /// Ends the window, and keeps where the living have their code. `threads`: those that are there now.
    pub fn end(&mut self, threads: &[(u32, u32)]) {
        let mut failed = Failed::default();
        for ring in &mut self.rings {
            if let Err(error) = ring.disable() {
                failed.note(error);
            }
        }
        for (&tid, calls) in &mut self.calls {
            match calls.end() {
                Ok(count) => drop(self.counted.insert(tid, count)),
                Err(error) => failed.note(error),
            }
        }
        self.refused.extend(failed.sentence("cannot be read"));
        self.drain();
        self.rings.clear();
        self.calls.clear();
        self.remember(&processes(threads));
    }

    /// What it saw in a window of `length_ns`, and the folded stacks. `threads`: what each did by its own clocks.
    pub fn report(
        mut self,
        mut threads: Vec<ProfiledThread>,
        length_ns: u64,
    ) -> (ProfileReport, String) {
        let mut samples: BTreeMap<u32, u64> = BTreeMap::new();
        for (stack, count) in &self.stacks {
            *samples.entry(stack.tid).or_default() += count;
        }
        for thread in &mut threads {
            thread.samples = samples.get(&thread.tid).copied().unwrap_or(0);
            thread.syscalls = self.counted.get(&thread.tid).copied();
            self.symbols.name_thread(thread.tid, &thread.name);
        }
        let folded = fold::folded(&self.stacks, &mut self.symbols);
        let syscalls_by = match (self.counted.is_empty(), self.by_name.is_empty()) {
            (false, _) => Some("perf"),
            (true, false) => Some("strace"),
            (true, true) => None,
        };
        let report = ProfileReport {
            rate_per_s: self.pass.samples.map_or(0, |_| self.pass.rate_per_s),
            length_ns,
            folded: None,
            samples: self.stacks.values().sum(),
            lost: self.lost,
            kernel: self.pass.samples == Some(Reach::Kernel),
            syscalls_by: syscalls_by.map(str::to_owned),
            syscalls: self.by_name,
            threads,
            refused: self.refused,
        };
        (report, folded)
    }
}

/// The processes that threads are of, each once.
fn processes(threads: &[(u32, u32)]) -> Vec<u32> {
    let mut pids: Vec<u32> = threads.iter().map(|&(pid, _)| pid).collect();
    pids.dedup();
    pids
}

/// Refusals of one kind: how many, and the first reason.
#[derive(Default)]
struct Failed {
    count: usize,
    first: Option<io::Error>,
    /// Threads that were there no more, which is none.
    ended: usize,
}

impl Failed {
    fn note(&mut self, error: io::Error) {
        if Errno::from_io_error(&error) == Some(Errno::SRCH) {
            self.ended += 1;
            return;
        }
        self.count += 1;
        self.first.get_or_insert(error);
    }

    fn sentence(self, what: &str) -> Option<String> {
        let (count, first) = (self.count, self.first?);
        let threads = prony_base::counted(count, "thread");
        Some(format!("of {threads} {what}: {first}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Means;
    use super::*;

    #[test]
    fn a_thread_that_has_ended_is_no_refusal_and_any_other_reason_is() {
        let mut failed = Failed::default();
        failed.note(io::Error::from_raw_os_error(Errno::SRCH.raw_os_error()));
        assert_eq!(failed.ended, 1);
        assert_eq!(
            Failed {
                ended: 1,
                ..Failed::default()
            }
            .sentence("x"),
            None
        );
        failed.note(io::Error::from_raw_os_error(Errno::MFILE.raw_os_error()));
        let message = failed.sentence("no samples are taken").expect("a refusal");
        assert!(
            message.starts_with("of 1 thread no samples are taken: "),
            "{message}"
        );
    }

    #[test]
    fn what_the_kernel_lost_is_added_up() {
        let means = Means::find(&std::env::var_os("PATH").unwrap_or_default());
        let pass = means.passes().into_iter().next().expect("a pass");
        let mut profiler = Profiler::new(pass);
        profiler.take(Found::Lost(2));
        profiler.take(Found::Lost(3));
        let chain = vec![1];
        profiler.take(Found::Stack {
            pid: 1,
            tid: 1,
            chain,
        });
        assert_eq!((profiler.lost, profiler.stacks.len()), (5, 1));
    }

    #[test]
    fn where_all_have_ended_that_alone_is_said() {
        // The kernel gives no process this number.
        let ended = [(i32::MAX.cast_unsigned(), i32::MAX.cast_unsigned())];
        let means = Means::find(&std::env::var_os("PATH").unwrap_or_default());
        for pass in means.passes() {
            let looks = pass.samples.is_some() || pass.tracepoint.is_some();
            let refused = pass.refused.clone();
            let mut profiler = Profiler::new(pass);
            profiler.open(&ended, &[0]);
            let message = looks.then(|| TOO_BRIEF.to_owned());
            let wanted: Vec<String> = refused.into_iter().chain(message).collect();
            assert_eq!(profiler.refused, wanted);
        }
    }
}
