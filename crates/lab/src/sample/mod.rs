//! What the kernel knows about the processes of a trial, read around the
//! measured window: CPU time, run-queue delay, context switches, memory marks,
//! use of the cores, network counters.
//!
//! [`Sampler`] follows the processes; [`machine`] reads what belongs to the
//! machine; [`parse`] turns the texts of `/proc` into values. Nothing here starts
//! or stops anything.
//!
//! How exact it is. The CPU time of a process is its own clock: exact, with the
//! threads that ended. A thread's is its `schedstat`: exact, but for a thread that
//! is running it may lag by a scheduler tick. A process or thread that begins and
//! ends between two looks (100 ms) has no record; what such processes used shows up
//! as the time of reaped children of their parent, in steps of 10 ms, unless the
//! parent ignores SIGCHLD.

pub mod machine;
pub mod parse;
mod process;

use std::collections::BTreeMap;

use prony_record::{Exit, MemoryMarks, ProcessRecord, ProfiledThread, Role};

use crate::launch::{self, Ended, numbered};
use process::Watched;

/// Processes that are followed at the most.
pub const PROCESSES_MAX: usize = 512;
/// Threads that are followed at the most, all processes together.
pub const THREADS_MAX: usize = 2048;

/// Follows every descendant of the calling process.
///
/// [`look`](Sampler::look) often; [`reset_peaks`](Sampler::reset_peaks), then
/// [`begin`](Sampler::begin) at the start of the window,
/// [`end`](Sampler::end) at its end, and [`records`](Sampler::records) when all
/// have been stopped. Ended children are told to it by [`ended`](Sampler::ended).
#[derive(Debug, Default)]
pub struct Sampler {
    own: u32,
    /// Whether the process namespace is the caller's own, so that all in it are descendants.
    alone: bool,
    roles: BTreeMap<u32, Role>,
    watched: BTreeMap<u32, Watched>,
    /// Processes whose number was given to another one later.
    past: Vec<Watched>,
    in_window: bool,
    full: bool,
    /// What begins now is of no interest.
    closed: bool,
}

impl Sampler {
    /// A sampler of the calling process's descendants. `alone`: the caller is the
    /// first process of its process namespace.
    pub fn new(alone: bool) -> Sampler {
        Sampler {
            own: std::process::id(),
            alone,
            ..Sampler::default()
        }
    }

    /// Says which role a started process has; its descendants have the same.
    pub fn started(&mut self, pid: u32, role: Role) {
        self.roles.insert(pid, role);
        self.look();
    }

    /// From now on no process is followed that was not before.
    pub fn close(&mut self) {
        self.look();
        self.closed = true;
    }

    /// Whether a limit on what is followed was reached.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Finds new processes and threads and notes what each has used by now.
    pub fn look(&mut self) {
        let mut threads: usize = self.watched.values().map(Watched::thread_count).sum();
        let living = self.living();
        for (pid, watched) in &mut self.watched {
            if living.binary_search(pid).is_err() {
                watched.mark_gone();
            }
        }
        for pid in living {
            let Some(stat) = process::read_stat(pid) else {
                continue;
            };
            self.retire_reused(pid, stat.started_ticks);
            if !self.watched.contains_key(&pid) {
                if self.closed {
                    continue;
                }
                if self.watched.len() + self.past.len() >= PROCESSES_MAX {
                    self.full = true;
                    continue;
                }
                let role = self.role_of(pid, stat.parent);
                let watched = Watched::new(pid, role, &stat, self.in_window);
                self.watched.insert(pid, watched);
            }
            if let Some(watched) = self.watched.get_mut(&pid) {
                let room = THREADS_MAX.saturating_sub(threads);
                threads += watched.look(&stat, room, self.in_window);
                self.full |= threads >= THREADS_MAX;
            }
        }
    }

    /// Every descendant, rising.
    fn living(&self) -> Vec<u32> {
        if self.alone {
            let mut all = numbered("/proc");
            all.retain(|&pid| pid != self.own);
            return all;
        }
        let mut found = launch::descendants_by_lists(self.own);
        found.sort_unstable();
        found
    }

    fn role_of(&self, pid: u32, parent: u32) -> Role {
        let known = self.roles.get(&pid).copied();
        let inherited = || self.watched.get(&parent).map(Watched::role);
        known.or_else(inherited).unwrap_or(Role::Subject)
    }

    /// A number that names another process now: the one before it has ended.
    fn retire_reused(&mut self, pid: u32, started_ticks: u64) {
        let reused = |watched: &Watched| !watched.is(started_ticks);
        if self.watched.get(&pid).is_some_and(reused)
            && let Some(old) = self.watched.remove(&pid)
        {
            self.past.push(old);
        }
    }

    /// Ends the reckoning of the start-up: notes the peaks and resets the kernel's mark.
    pub fn reset_peaks(&mut self) {
        self.look();
        for watched in self.watched.values_mut() {
            watched.reset_peak();
        }
    }

    /// Marks the start of the window. The clocks of processes are read first, all
    /// in one go, because they move while the rest is read.
    pub fn begin(&mut self) {
        self.in_window = true;
        for watched in self.watched.values_mut() {
            watched.begin_clock();
        }
        for watched in self.watched.values_mut() {
            watched.begin_threads();
        }
    }

    /// Makes ready for another window after one that has ended: what is used in it is added. Shortly before
    /// [`begin`](Sampler::begin).
    pub fn again(&mut self) {
        for watched in self.watched.values_mut() {
            watched.thaw();
        }
        self.look();
        for watched in self.watched.values_mut() {
            watched.look_closely();
        }
    }

    /// CPU time that the processes of a role used in all windows so far.
    pub fn cpu_in_windows_ns(&self, role: Role) -> u64 {
        let all = self.past.iter().chain(self.watched.values());
        let own = all.filter(|watched| watched.role() == role);
        own.map(Watched::cpu_in_windows_ns).sum()
    }

    /// The living threads of a role: process and thread.
    pub fn threads_of(&self, role: Role) -> Vec<(u32, u32)> {
        let own = self.watched.values().filter(|one| one.role() == role);
        own.flat_map(Watched::living_threads).collect()
    }

    /// What each thread of a role did in the window, by its own clocks.
    pub fn profiled(&self, role: Role) -> Vec<ProfiledThread> {
        let all = self.past.iter().chain(self.watched.values());
        let own = all.filter(|one| one.role() == role);
        own.flat_map(Watched::profiled).collect()
    }

    /// Marks the end of the window, likewise. What came since the last
    /// [`look`](Sampler::look) is not seen: look shortly before.
    pub fn end(&mut self) {
        for watched in self.watched.values_mut() {
            watched.end_clock();
        }
        for watched in self.watched.values_mut() {
            watched.end_rest();
        }
        self.in_window = false;
    }

    /// Notes memory in the middle of the window, for processes that do not see its end.
    pub fn note_memory(&mut self) {
        for watched in self.watched.values_mut() {
            watched.note_memory();
        }
    }

    /// Tells of a child that ended, and whether it had been asked to.
    pub fn ended(&mut self, ended: &Ended, asked: bool) {
        if let Some(watched) = self.watched.get_mut(&ended.pid) {
            let exit = match ended.exit {
                Exit::Signal { signal, .. } => Exit::Signal { signal, asked },
                Exit::Code { code } => Exit::Code { code },
            };
            watched.ended(exit, ended.cpu().0, self.in_window);
        }
    }

    /// Name and number of a process as last seen: `nginx (7)`.
    pub fn name_of(&self, pid: u32) -> String {
        let comm = || std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        let name = match self.watched.get(&pid) {
            Some(watched) => watched.name().to_owned(),
            None => comm().map_or("?".to_owned(), |name| name.trim().to_owned()),
        };
        format!("{name} ({pid})")
    }

    /// Every process that was there in the window or was seen to end, and one record for
    /// what children used that came and went between two looks (its `pid` is 0).
    pub fn records(self) -> Vec<ProcessRecord> {
        let all: Vec<Watched> = self
            .past
            .into_iter()
            .chain(self.watched.into_values())
            .collect();
        let unseen: Vec<ProcessRecord> = all
            .iter()
            .filter_map(|parent| unseen_children(parent, &all))
            .collect();
        let mut records: Vec<ProcessRecord> = all
            .into_iter()
            .filter(Watched::is_of_interest)
            .map(Watched::into_record)
            .collect();
        records.sort_by_key(|record| (record.role, record.pid));
        records.extend(unseen);
        records
    }
}

/// What the reaped children of `parent` used in the window beyond what their own records hold.
fn unseen_children(parent: &Watched, all: &[Watched]) -> Option<ProcessRecord> {
    let reaped = parent.children_in_window_ns();
    let recorded: u64 = all
        .iter()
        .filter(|child| child.is_gone_child_of(parent))
        .map(Watched::whole_life_ns)
        .sum();
    let cpu_ns = reaped.saturating_sub(recorded);
    (cpu_ns > 0).then(|| ProcessRecord {
        role: parent.role(),
        name: format!("ended children of {}", parent.name()),
        parent_pid: parent.pid(),
        cpu_ns,
        memory: MemoryMarks::default(),
        ..ProcessRecord::default()
    })
}
