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

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use prony_record::{Exit, MemoryMarks, ProcessRecord, ProfiledThread, Role, ThreadRecord};

use crate::launch::{self, Ended, numbered};

/// Processes that are followed at the most.
pub const PROCESSES_MAX: usize = 512;
/// Threads that are followed at the most, all processes together.
pub const THREADS_MAX: usize = 2048;
/// Longest text of `/proc` that is read.
const TEXT_BYTES_MAX: usize = 8192;

/// Follows every descendant of the calling process.
///
/// [`look`](Sampler::look) often; [`reset_peaks`](Sampler::reset_peaks), then
/// [`begin`](Sampler::begin) at the start of the window,
/// [`end`](Sampler::end) at its end, and [`records`](Sampler::records) when all
/// have been stopped. [`ended`](Sampler::ended) reports children that have been reaped.
#[derive(Debug, Default)]
pub struct Sampler {
    lab_pid: u32,
    /// Whether the process namespace is the caller's own, so that all in it are descendants.
    alone: bool,
    roles: BTreeMap<u32, Role>,
    watched: BTreeMap<u32, Followed>,
    /// Processes whose number was given to another one later.
    past: Vec<Followed>,
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
            lab_pid: std::process::id(),
            alone,
            ..Sampler::default()
        }
    }

    /// Sets the role of a started process; its descendants have the same.
    pub fn started(&mut self, pid: u32, role: Role) {
        self.roles.insert(pid, role);
        self.look();
    }

    /// Follows no further processes from now on.
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
        let mut threads: usize = self.watched.values().map(|one| one.threads.len()).sum();
        let living = self.living();
        for (pid, watched) in &mut self.watched {
            if living.binary_search(pid).is_err() {
                watched.is_gone = true;
            }
        }
        for pid in living {
            let Some(stat) = read_stat(pid) else {
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
                let watched = Followed::new(pid, role, &stat, self.in_window);
                self.watched.insert(pid, watched);
            }
            if let Some(watched) = self.watched.get_mut(&pid) {
                let threads_left = THREADS_MAX.saturating_sub(threads);
                threads += watched.look(&stat, threads_left, self.in_window);
                self.full |= threads >= THREADS_MAX;
            }
        }
    }

    /// Every descendant, rising.
    fn living(&self) -> Vec<u32> {
        if self.alone {
            let mut all = numbered("/proc");
            all.retain(|&pid| pid != self.lab_pid);
            return all;
        }
        let mut found = launch::descendants_by_lists(self.lab_pid);
        found.sort_unstable();
        found
    }

    fn role_of(&self, pid: u32, parent: u32) -> Role {
        let known = self.roles.get(&pid).copied();
        let inherited = || self.watched.get(&parent).map(|one| one.role);
        known.or_else(inherited).unwrap_or(Role::Subject)
    }

    /// A number that names another process now: the one before it has ended.
    fn retire_reused(&mut self, pid: u32, started_ticks: u64) {
        let reused = |watched: &Followed| watched.started_ticks != started_ticks;
        if self.watched.get(&pid).is_some_and(reused)
            && let Some(old) = self.watched.remove(&pid)
        {
            self.past.push(old);
        }
    }

    /// Ends the accounting of start-up: records the peaks and resets the kernel's mark.
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
            watched.frozen = false;
        }
        self.look();
        for watched in self.watched.values_mut() {
            watched.look_closely();
        }
    }

    /// CPU time that the processes of a role used in all windows so far.
    pub fn cpu_in_windows_ns(&self, role: Role) -> u64 {
        let all = self.past.iter().chain(self.watched.values());
        let lab_pid = all.filter(|watched| watched.role == role);
        lab_pid.map(Followed::cpu_in_windows_ns).sum()
    }

    /// The living threads of a role: process and thread.
    pub fn threads_of(&self, role: Role) -> Vec<(u32, u32)> {
        let lab_pid = self.watched.values().filter(|one| one.role == role);
        lab_pid.flat_map(Followed::living_threads).collect()
    }

    /// What each thread of a role did in the window, by its own clocks.
    pub fn profiled(&self, role: Role) -> Vec<ProfiledThread> {
        let all = self.past.iter().chain(self.watched.values());
        let lab_pid = all.filter(|one| one.role == role);
        lab_pid.flat_map(Followed::profiled).collect()
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

    /// Records a child that was reaped, and whether the trial had stopped it.
    pub fn ended(&mut self, ended: &Ended, requested: bool) {
        if let Some(watched) = self.watched.get_mut(&ended.pid) {
            let exit = match ended.exit {
                Exit::Signal { signal, .. } => Exit::Signal {
                    signal,
                    asked: requested,
                },
                Exit::Code { code } => Exit::Code { code },
            };
            watched.ended(exit, ended.cpu().0, self.in_window);
        }
    }

    /// Name and number of a process as last seen: `nginx (7)`.
    pub fn name_of(&self, pid: u32) -> String {
        let comm = || std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        let name = match self.watched.get(&pid) {
            Some(watched) => watched.name.clone(),
            None => comm().map_or("?".to_owned(), |name| name.trim().to_owned()),
        };
        format!("{name} ({pid})")
    }

    /// Every process that was there in the window or was seen to end, and one record for
    /// what children used that came and went between two looks (its `pid` is 0).
    pub fn records(self) -> Vec<ProcessRecord> {
        let all: Vec<Followed> = self
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
            .filter(Followed::is_of_interest)
            .map(Followed::into_record)
            .collect();
        records.sort_by_key(|record| (record.role, record.pid));
        records.extend(unseen);
        records
    }
}

/// What the reaped children of `parent` used in the window beyond what their own records hold.
fn unseen_children(parent: &Followed, all: &[Followed]) -> Option<ProcessRecord> {
    let reaped = parent.children_in_window_ns();
    let recorded: u64 = all
        .iter()
        .filter(|child| child.is_gone_child_of(parent))
        .map(Followed::whole_life_ns)
        .sum();
    let cpu_ns = reaped.saturating_sub(recorded);
    (cpu_ns > 0).then(|| ProcessRecord {
        role: parent.role,
        name: format!("ended children of {}", parent.name),
        parent_pid: parent.pid,
        cpu_ns,
        memory: MemoryMarks::default(),
        ..ProcessRecord::default()
    })
}

// One process that is followed: what it had used at the start of the window and when it was last sampled. Descriptors are
// kept and read again from their start, which costs a third of opening them.

/// Reads the start of an open file of `/proc`; `None` when its process is gone.
fn read_again(file: &File) -> Option<String> {
    let mut buffer = [0; TEXT_BYTES_MAX];
    let length = file.read_at(&mut buffer, 0).ok()?;
    if length == 0 {
        return None;
    }
    Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

/// Reads `/proc/PID/stat`, unless the process is gone or only waits to be collected.
fn read_stat(pid: u32) -> Option<parse::Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse::stat(&text).filter(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// A counter at the start of the window and at the last look.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    start: u64,
    last: u64,
    /// What it rose by in windows before this one.
    before: u64,
}

impl Mark {
    fn rise(self) -> u64 {
        self.before + self.last.saturating_sub(self.start)
    }

    /// Ends a window: what comes from now on is in none, until the next one starts.
    fn keep(&mut self) {
        self.before = self.rise();
        self.start = self.last;
    }
}

#[derive(Debug)]
struct Thread {
    schedstat: File,
    name: String,
    cpu: Mark,
    delay: Mark,
    voluntary: Mark,
    involuntary: Mark,
    alive: bool,
}

impl Thread {
    fn open(folder: &str) -> Option<Thread> {
        Some(Thread {
            schedstat: File::open(format!("{folder}/schedstat")).ok()?,
            name: String::new(),
            cpu: Mark::default(),
            delay: Mark::default(),
            voluntary: Mark::default(),
            involuntary: Mark::default(),
            alive: true,
        })
    }

    fn look(&mut self) {
        match read_again(&self.schedstat)
            .as_deref()
            .and_then(parse::schedstat)
        {
            Some((cpu, delay)) => (self.cpu.last, self.delay.last) = (cpu, delay),
            None => self.alive = false,
        }
    }

    /// Reads what costs more and changes less: context switches and the name.
    fn look_closely(&mut self, folder: &str) {
        if let Ok(text) = std::fs::read_to_string(format!("{folder}/status")) {
            let status = parse::status(&text);
            (self.voluntary.last, self.involuntary.last) = (status.voluntary, status.involuntary);
        }
        if let Ok(name) = std::fs::read_to_string(format!("{folder}/comm")) {
            name.trim_end().clone_into(&mut self.name);
        }
    }

    fn marks(&mut self) -> [&mut Mark; 4] {
        [
            &mut self.cpu,
            &mut self.delay,
            &mut self.voluntary,
            &mut self.involuntary,
        ]
    }

    fn begin(&mut self) {
        for mark in self.marks() {
            mark.start = mark.last;
        }
    }
}

/// A process that is followed.
#[derive(Debug, Default)]
struct Followed {
    pid: u32,
    role: Role,
    started_ticks: u64,
    name: String,
    parent: u32,
    command: Vec<String>,
    cpu: Mark,
    children: Mark,
    memory: MemoryMarks,
    threads: BTreeMap<u32, Thread>,
    exit: Option<Exit>,
    /// Not there any more at the last look.
    is_gone: bool,
    /// The window is over: what comes later is not part of it.
    frozen: bool,
    /// It was there before the window ended.
    in_window: bool,
}

impl Followed {
    /// Begins to follow a process. One that is born in the window starts from zero.
    fn new(pid: u32, role: Role, stat: &parse::Stat, in_window: bool) -> Followed {
        Followed {
            pid,
            role,
            started_ticks: stat.started_ticks,
            name: stat.name.clone(),
            parent: stat.parent,
            in_window,
            ..Followed::default()
        }
    }

    /// Its threads, unless it is gone: process and thread.
    fn living_threads(&self) -> impl Iterator<Item = (u32, u32)> {
        let living = self
            .threads
            .iter()
            .filter(|(_, one)| one.alive && !self.is_gone);
        living.map(|(&tid, _)| (self.pid, tid))
    }

    /// What each of its threads did in the window.
    fn profiled(&self) -> impl Iterator<Item = ProfiledThread> {
        self.threads.iter().map(|(&tid, thread)| ProfiledThread {
            pid: self.pid,
            tid,
            name: thread.name.clone(),
            cpu_ns: thread.cpu.rise(),
            delay_ns: thread.delay.rise(),
            switches_voluntary: thread.voluntary.rise(),
            switches_involuntary: thread.involuntary.rise(),
            ..ProfiledThread::default()
        })
    }

    fn folder(&self, tid: u32) -> String {
        format!("/proc/{}/task/{tid}", self.pid)
    }

    /// Samples what it has used so far; follows up to `threads_left` new threads and returns how many.
    fn look(&mut self, stat: &parse::Stat, threads_left: usize, in_window: bool) -> usize {
        self.name.clone_from(&stat.name);
        self.parent = stat.parent;
        self.read_command();
        if !self.frozen {
            self.children.last = stat.children_cpu_ns;
            self.end_clock();
        }
        let mut new = 0;
        for tid in launch::numbered(&format!("/proc/{}/task", self.pid)) {
            if self.threads.contains_key(&tid) || new >= threads_left || self.frozen {
                continue;
            }
            let folder = self.folder(tid);
            if let Some(mut thread) = Thread::open(&folder) {
                thread.look_closely(&folder);
                self.threads.insert(tid, thread);
                new += 1;
            }
        }
        if in_window && !self.frozen {
            self.look_at_threads();
        }
        new
    }

    /// The command of a process changes when it executes another program.
    fn read_command(&mut self) {
        if let Ok(bytes) = std::fs::read(format!("/proc/{}/cmdline", self.pid))
            && !bytes.is_empty()
        {
            self.command = parse::command_line(&bytes);
        }
    }

    fn look_at_threads(&mut self) {
        for thread in self.threads.values_mut().filter(|thread| thread.alive) {
            thread.look();
        }
    }

    /// Reads context switches, as they are outside of windows.
    fn look_closely(&mut self) {
        let pid = self.pid;
        for (tid, thread) in &mut self.threads {
            thread.look_closely(&format!("/proc/{pid}/task/{tid}"));
        }
    }

    fn status(&self) -> Option<parse::Status> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        Some(parse::status(&text)).filter(|status| status.peak_bytes > 0)
    }

    fn reset_peak(&mut self) {
        if let Some(status) = self.status() {
            self.memory.startup_peak_bytes = status.peak_bytes;
            let reset = std::fs::write(format!("/proc/{}/clear_refs", self.pid), "5");
            self.memory.peak_bytes = reset.is_ok().then_some(0);
        }
        self.look_closely();
    }

    fn begin_clock(&mut self) {
        if let Some(cpu) = launch::cpu_clock(self.pid) {
            self.in_window = true;
            self.cpu.last = cpu.0;
        } else {
            self.is_gone = true;
        }
        self.cpu.start = self.cpu.last;
        self.children.start = self.children.last;
    }

    fn begin_threads(&mut self) {
        self.look_at_threads();
        for thread in self.threads.values_mut() {
            thread.begin();
        }
    }

    fn end_clock(&mut self) {
        match launch::cpu_clock(self.pid) {
            Some(cpu) => self.cpu.last = self.cpu.last.max(cpu.0),
            None => self.is_gone = true,
        }
    }

    /// Reads the rest at the end of the window and keeps it from then on.
    fn end_rest(&mut self) {
        self.look_at_threads();
        self.look_closely();
        self.note_memory();
        self.frozen = true;
        let threads = self.threads.values_mut().flat_map(Thread::marks);
        for mark in threads.chain([&mut self.cpu, &mut self.children]) {
            mark.keep();
        }
    }

    /// CPU time in all windows so far.
    fn cpu_in_windows_ns(&self) -> u64 {
        if self.in_window { self.cpu.rise() } else { 0 }
    }

    fn note_memory(&mut self) {
        let Some(status) = self.status() else {
            return;
        };
        // A process born in the window has had no mark to reset: its whole life is in it.
        if let Some(peak) = &mut self.memory.peak_bytes {
            *peak = status.peak_bytes;
        } else if self.memory.startup_peak_bytes == 0 {
            self.memory.peak_bytes = Some(status.peak_bytes);
        }
        self.memory.end_bytes = status.resident_bytes;
        self.memory.virtual_peak_bytes = Some(status.virtual_peak_bytes);
    }

    /// It ended after using `whole_cpu_ns` in its life, with the children that it waited for.
    fn ended(&mut self, exit: Exit, whole_cpu_ns: u64, in_window: bool) {
        self.exit = Some(exit);
        self.is_gone = true;
        if in_window && !self.frozen && self.children.last == 0 {
            self.cpu.last = self.cpu.last.max(whole_cpu_ns);
        }
    }

    /// CPU time of the children that it reaped in the window.
    fn children_in_window_ns(&self) -> u64 {
        if self.in_window {
            self.children.rise()
        } else {
            0
        }
    }

    /// Whether a record of it says anything: not of a helper that a script started and
    /// waited for before the window, nor of a generator's warm-up.
    fn is_of_interest(&self) -> bool {
        let ended_as_subject = self.role == Role::Subject && self.exit.is_some();
        self.in_window || !self.is_gone || ended_as_subject
    }

    /// Whether it is gone and `parent` was its parent, so that its time went into the parent's account.
    fn is_gone_child_of(&self, parent: &Followed) -> bool {
        self.is_gone && self.in_window && self.parent == parent.pid
    }

    /// What it and its reaped children used in their lives, as last seen.
    fn whole_life_ns(&self) -> u64 {
        self.cpu.last + self.children.last
    }

    fn into_record(self) -> ProcessRecord {
        let cpu_ns = self.cpu_in_windows_ns();
        let sum = |of: fn(&Thread) -> Mark| self.threads.values().map(|t| of(t).rise()).sum();
        let mut memory = self.memory;
        // A mark that was reset and never read again holds nothing.
        memory.peak_bytes = memory.peak_bytes.filter(|&peak| peak > 0);
        ProcessRecord {
            role: self.role,
            name: self.name,
            pid: self.pid,
            parent_pid: self.parent,
            command: self.command,
            cpu_ns,
            memory,
            switches_voluntary: sum(|thread| thread.voluntary),
            switches_involuntary: sum(|thread| thread.involuntary),
            threads: self
                .threads
                .iter()
                .map(|(&tid, thread)| thread_record(tid, thread))
                .collect(),
            exit: self.exit,
        }
    }
}

fn thread_record(tid: u32, thread: &Thread) -> ThreadRecord {
    ThreadRecord {
        tid,
        name: thread.name.clone(),
        cpu_ns: thread.cpu.rise(),
        delay_ns: thread.delay.rise(),
    }
}
