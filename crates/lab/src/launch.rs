//! The few system calls around starting processes that have no safe door:
//! leaving the namespaces of the caller, bringing up loopback, collecting ended
//! children with what they used, and reading the CPU clock of another process.
//!
//! Not for: deciding what is started or when ([`crate::supervise`] and
//! [`crate::trial`] do). This is the only module of the crate in which `unsafe`
//! is allowed.
//!
//! ```no_run
//! use prony_lab::launch::{self, Wanted};
//! // In a process with a single thread, before anything else:
//! let entered = launch::enter(Wanted { processes: true, network: true })?;
//! // The next child is the first process of the new process namespace and
//! // calls `launch::settle(&entered, || ())` before it starts anything.
//! # Ok::<(), prony_lab::launch::LaunchError>(())
//! ```
#![allow(unsafe_code)]

use std::collections::{BTreeMap, HashSet};
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use prony_base::{Instant, Nanos};
use prony_engine::thread::{self, Urgency};
pub use prony_program::children::{by_fork, die_with_parent, raise_open_files};
use prony_record::Exit;
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets, ClockId, UnshareFlags};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The namespaces that a process is to have of its own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// A process namespace (with a mount namespace for its `/proc`).
    pub processes: bool,
    /// A network namespace.
    pub network: bool,
}

impl Wanted {
    /// The namespaces that a machine is asked for, from most to least.
    pub const BY_STRENGTH: [Wanted; 4] = [
        Wanted::new(true, true),
        Wanted::new(true, false),
        Wanted::new(false, true),
        Wanted::new(false, false),
    ];

    const fn new(processes: bool, network: bool) -> Wanted {
        Wanted { processes, network }
    }

    fn any(self) -> bool {
        self.processes || self.network
    }
}

/// What [`enter`] did, for [`settle`] in the child.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Entered {
    /// The namespaces that the child is in.
    pub wanted: Wanted,
    /// Whether a user namespace was needed to be allowed them.
    pub by_user_namespace: bool,
}

/// A step of setting up that the system refused.
#[derive(Debug, Error)]
#[error("{step}: {source}")]
pub struct LaunchError {
    step: &'static str,
    source: io::Error,
}

/// Marks a failed system call with what it was for.
fn step<T, E: Into<io::Error>>(step: &'static str, result: Result<T, E>) -> Result<T, LaunchError> {
    result.map_err(|error| LaunchError {
        step,
        source: error.into(),
    })
}

/// The first port that servers are told in a network of their own, where all are free.
pub const SERVER_PORT: u16 = 8080;
/// How many ports, from that one on, are kept for servers there.
pub const SERVER_PORTS: u16 = 256;

/// A capability that harms nobody, and which every process has that Prony as root starts outside of a root file system.
/// The kernel lets nobody look into a process that has a capability which they do not have: without it `/proc/PID/root` of
/// one outside leads user 0 out of a root file system in the same trial, to the machine's own.
pub const OUTSIDE: CapabilitySet = CapabilitySet::BLOCK_SUSPEND;

/// Where a home folder is in a root file system: the one of the caller is outside.
const HOME: &str = "/tmp";

/// Capabilities that the first process of a namespace needs to furnish it.
const FURNISHING: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN);

/// Leaves the caller's namespaces for new ones: directly where the caller may,
/// otherwise through a user namespace in which the caller stays the same user.
///
/// The caller must have a single thread. Errors name the step that was refused;
/// after one the process may be half in, and is to be ended.
pub fn enter(wanted: Wanted) -> Result<Entered, LaunchError> {
    let mut entered = Entered {
        wanted,
        by_user_namespace: false,
    };
    if !wanted.any() {
        return Ok(entered);
    }
    let mut flags = UnshareFlags::empty();
    if wanted.processes {
        flags |= UnshareFlags::NEWPID | UnshareFlags::NEWNS;
    }
    if wanted.network {
        flags |= UnshareFlags::NEWNET;
    }
    if unshare(flags).is_ok() {
        return Ok(entered);
    }
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    step("user namespace", unshare(flags | UnshareFlags::NEWUSER))?;
    entered.by_user_namespace = true;
    // The kernel wants setgroups given up before an ordinary user maps a group.
    step("setgroups", std::fs::write("/proc/self/setgroups", "deny"))?;
    let map = |id: u32| format!("{id} {id} 1");
    step(
        "user map",
        std::fs::write("/proc/self/uid_map", map(user.as_raw())),
    )?;
    step(
        "group map",
        std::fs::write("/proc/self/gid_map", map(group.as_raw())),
    )?;
    step("capabilities", pass_on_capabilities())?;
    Ok(entered)
}

fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: what makes unshare unsafe is CLONE_FILES, with which a descriptor
    // of one thread stops being one in another; `flags` never has it.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Keeps the capabilities of a fresh user namespace over the next `exec`.
/// Without this a user that is not mapped to root loses them there.
fn pass_on_capabilities() -> rustix::io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    sets.inheritable |= FURNISHING;
    rustix::thread::set_capabilities(None, sets)?;
    for capability in FURNISHING.iter() {
        rustix::thread::configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// Furnishes the namespaces: `/proc` of the own process namespace,
/// the own network ([`furnish_network`]), and what `more` adds. Then gives up the
/// capabilities that this took, so that nothing started later has them; a thread that
/// `more` starts does so itself ([`give_up_capabilities`]).
///
/// For the first process in them, while it has a single thread.
pub fn settle<T>(entered: &Entered, more: impl FnOnce() -> T) -> Result<T, LaunchError> {
    if entered.wanted.processes {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        step("private mounts", rustix::mount::mount_change("/", private))?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        step(
            "mount /proc",
            rustix::mount::mount("proc", "/proc", "proc", flags, None),
        )?;
    }
    if entered.wanted.network {
        furnish_network()?;
    }
    let added = more();
    if entered.by_user_namespace {
        give_up_capabilities()?;
    }
    Ok(added)
}

/// Leaves the network namespace of the calling thread, and of no other, for a new one.
pub fn leave_network() -> Result<(), LaunchError> {
    step("network namespace", unshare(UnshareFlags::NEWNET))
}

/// Furnishes the network namespace of the calling thread: loopback up, more local ports,
/// but those of servers, and a longer accept queue.
pub fn furnish_network() -> Result<(), LaunchError> {
    step("loopback", loopback_up())?;
    let set = |name: &str, value: &str| std::fs::write(format!("/proc/sys/net/{name}"), value);
    step("local ports", set("ipv4/ip_local_port_range", "1024 65535"))?;
    step("somaxconn", set("core/somaxconn", "65535"))?;
    // One that asks whether the server listens already must not be given its port: it
    // would be connected with itself, and the server could not listen.
    let ports = format!("{SERVER_PORT}-{}", SERVER_PORT + SERVER_PORTS - 1);
    step(
        "reserved ports",
        set("ipv4/ip_local_reserved_ports", &ports),
    )
}

/// Gives up all capabilities of the calling thread, and of what it starts from now on.
pub fn give_up_capabilities() -> Result<(), LaunchError> {
    step("capabilities", drop_capabilities())
}

fn drop_capabilities() -> rustix::io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        },
    )
}

/// Brings up `lo` in the caller's network namespace.
fn loopback_up() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind(("0.0.0.0", 0))?;
    // SAFETY: an all-zero ifreq is a valid one: integers, and a union of them.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo\0") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads one ifreq, which lives across the call, and the
    // descriptor is open as long as `socket` is.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A child that ended and was collected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Its process id.
    pub pid: u32,
    /// How it ended; `asked` is false, for the caller to know better.
    pub exit: Exit,
    /// CPU time in user mode of its whole life, with that of the children it waited for.
    pub user: Nanos,
    /// CPU time in the kernel, likewise.
    pub system: Nanos,
    /// Largest resident set of its whole life, in bytes, or that of the largest child it
    /// waited for. Includes what it had before it executed its program ([`by_fork`]).
    pub peak_bytes: u64,
    /// Voluntary context switches, with those of the children it waited for.
    pub switches_voluntary: u64,
    /// Involuntary context switches, likewise.
    pub switches_involuntary: u64,
}

impl Ended {
    /// CPU time in both modes.
    pub fn cpu(&self) -> Nanos {
        self.user + self.system
    }
}

/// Collects one ended child, whichever; `None` when none has ended.
/// Orphans count as children of the first process of a namespace and of a sub-reaper.
pub fn reap() -> Option<Ended> {
    collect(-1, libc::WNOHANG)
}

/// Waits until the child `pid` has ended, however long, and collects it; `None` when it
/// is no child of the caller, or was collected before.
pub fn wait_for(pid: u32) -> Option<Ended> {
    let pid = libc::pid_t::try_from(pid).ok().filter(|&pid| pid > 0)?;
    loop {
        match collect(pid, 0) {
            None if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            ended => return ended,
        }
    }
}

fn collect(of: libc::pid_t, options: libc::c_int) -> Option<Ended> {
    let mut status: libc::c_int = 0;
    // SAFETY: an all-zero rusage is a valid one: integers only.
    let mut usage: libc::rusage = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: both pointers are to live values of the types that wait4 writes.
    let pid = unsafe { libc::wait4(of, &raw mut status, options, &raw mut usage) };
    if pid <= 0 {
        return None;
    }
    let time =
        |t: libc::timeval| Nanos::from_micros(t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64);
    let exit = if libc::WIFSIGNALED(status) {
        Exit::Signal {
            signal: libc::WTERMSIG(status),
            asked: false,
        }
    } else {
        Exit::Code {
            code: libc::WEXITSTATUS(status),
        }
    };
    Some(Ended {
        pid: pid as u32,
        exit,
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        peak_bytes: usage.ru_maxrss as u64 * 1024,
        switches_voluntary: usage.ru_nvcsw as u64,
        switches_involuntary: usage.ru_nivcsw as u64,
    })
}

/// Lets `command` be started, by `fork`, without the capabilities of the caller but for `kept`, and [`OUTSIDE`] where it is
/// not `rooted`, and without a way to others: programs that the file system gives more (set-user-ID, file capabilities) have
/// no more either.
///
/// For whatever is not Prony's own. Run by root, it is still root and may use root's files; it may no longer use
/// those of others, other processes, devices, mounts or networks.
pub fn without_capabilities(command: &mut Command, granted: CapabilitySet, rooted: bool) {
    let granted = match rooted {
        true => granted - OUTSIDE,
        false => granted | OUTSIDE,
    };
    // SAFETY: the closure makes system calls only, through rustix, which calls them directly, allocates nothing
    // and takes no lock: sound between fork and exec.
    unsafe { command.pre_exec(move || Ok(keep_only(granted)?)) };
}

/// Lets `command` be started in the folder `dir` (empty: the caller's), and in the root file system `root`, if any, by `fork`.
/// To be called before [`without_capabilities`], as entering takes one. Errors: a path that holds a zero byte.
fn place(command: &mut Command, root: Option<&Path>, dir: &Path) -> io::Result<()> {
    let Some(root) = root else {
        if !dir.as_os_str().is_empty() {
            command.current_dir(dir);
        }
        return Ok(());
    };
    let text = |path: &Path| CString::new(path.as_os_str().as_encoded_bytes());
    let root = text(root)?;
    let dir = text(if dir.as_os_str().is_empty() {
        Path::new("/")
    } else {
        dir
    })?;
    command.env("HOME", HOME);
    let enter = move || {
        rustix::process::chroot(root.as_c_str())?;
        Ok(rustix::process::chdir(dir.as_c_str())?)
    };
    // SAFETY: the closure makes two system calls, through rustix, of strings that end with a zero already: it allocates
    // nothing and takes no lock, which is sound between fork and exec.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// A command as it is executed.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Resolved {
    /// Argument vector; empty: nothing is started.
    pub command: Vec<String>,
    /// Environment added to what is passed ([`crate::passed`]).
    pub env: BTreeMap<String, String>,
    /// Folder that it runs in; empty: the caller's.
    pub dir: PathBuf,
    /// The root file system that it runs in; empty: the machine's own.
    pub root: PathBuf,
    /// Capabilities that it keeps.
    pub capabilities: Vec<String>,
}

impl Resolved {
    /// It, ready to be started by `fork` with nothing to read, in its folder and with its capabilities alone. Errors: it
    /// is empty, or a path holds a zero byte.
    pub fn command(
        &self,
        output: impl Into<Stdio>,
        errors: impl Into<Stdio>,
    ) -> io::Result<Command> {
        let (program, arguments) = self
            .command
            .split_first()
            .ok_or_else(|| io::Error::other("its command is empty"))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(&self.env)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        let root = Some(self.root.as_path()).filter(|path| !path.as_os_str().is_empty());
        place(&mut command, root, &self.dir)?;
        let granted = capabilities_named(&self.capabilities);
        without_capabilities(&mut command, granted, root.is_some());
        Ok(command)
    }
}

fn keep_only(granted: CapabilitySet) -> rustix::io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    rustix::thread::clear_ambient_capability_set()?;
    let had = rustix::thread::capabilities(None)?.permitted;
    // Root gets all of its bounding set by executing a program; who may not change that set is not root here.
    if had.contains(CapabilitySet::SETPCAP) {
        for number in 0..u64::BITS {
            let one = CapabilitySet::from_bits_retain(1 << number);
            if granted.contains(one) {
                continue;
            }
            match rustix::thread::remove_capability_from_bounding_set(one) {
                // This kernel has fewer.
                Err(rustix::io::Errno::INVAL) => break,
                result => result?,
            }
        }
    }
    let granted = granted & had;
    let sets = CapabilitySets {
        effective: granted,
        permitted: granted,
        inheritable: granted,
    };
    rustix::thread::set_capabilities(None, sets)?;
    for capability in granted.iter() {
        rustix::thread::configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// The capability of a name as `subject.toml` has it: `sys_nice`.
pub fn capability_named(name: &str) -> Option<CapabilitySet> {
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    CapabilitySet::from_name(&name.to_ascii_uppercase()).filter(|_| plain)
}

/// The capabilities of these names, without those that are none.
fn capabilities_named(names: &[String]) -> CapabilitySet {
    names
        .iter()
        .filter_map(|name| capability_named(name))
        .collect()
}

/// The users and privileges of this process and its children, for the record.
pub fn privileges() -> String {
    let user = rustix::process::geteuid();
    let mine =
        rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.permitted);
    match (user.is_root(), mine.is_empty()) {
        (true, false) => "Prony and its generator as root; subjects and builds as root without capabilities, but for \
                          block_suspend and those that a subject declares".to_owned(),
        (true, true) => "all as root without capabilities".to_owned(),
        (false, false) => format!("Prony as user {user} with capabilities; subjects and builds without them", user = user.as_raw()),
        (false, true) => format!("all as user {}", user.as_raw()),
    }
}

/// CPU time of a process, all its threads, those that ended too; exact to the
/// nanosecond, not to the tick. `None` when there is no such process.
pub fn cpu_clock(pid: u32) -> Option<Nanos> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both calls write one value of the type that they are given a live
    // pointer to, and neither keeps it.
    let ok = unsafe {
        libc::clock_getcpuclockid(pid as libc::pid_t, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    ok.then(|| Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64))
}

/// Makes orphaned descendants children of the calling process.
pub fn adopt_orphans() -> io::Result<()> {
    let lab = rustix::process::getpid();
    Ok(rustix::process::set_child_subreaper(Some(lab))?)
}

/// Raises the limits on locked memory, for the caller and what it starts, where the caller may: what root starts has
/// no capability that would lift them, and rings are counted.
pub fn raise_locked_memory() {
    let all = Rlimit {
        current: None,
        maximum: None,
    };
    // Refused to an ordinary user, whose limit then stays as it was.
    let _ = rustix::process::setrlimit(Resource::Memlock, all);
}

/// Sends `signal` to one process; false when there is none or it may not be signalled.
pub fn signal(pid: u32, signal: Signal) -> bool {
    Pid::from_raw(pid as i32).is_some_and(|pid| rustix::process::kill_process(pid, signal).is_ok())
}

/// The signal of a name without `SIG`: `TERM`, `INT`, `QUIT`, `HUP`, `USR1`, `USR2`, `KILL`.
pub fn signal_named(name: &str) -> Option<Signal> {
    Some(match name {
        "TERM" => Signal::TERM,
        "INT" => Signal::INT,
        "QUIT" => Signal::QUIT,
        "HUP" => Signal::HUP,
        "USR1" => Signal::USR1,
        "USR2" => Signal::USR2,
        "KILL" => Signal::KILL,
        _ => return None,
    })
}

/// Runs `action` with the calling thread on `cores` (and with it whatever it
/// starts), then puts the thread back. With no cores it just runs.
pub fn on_cores<T>(cores: &[u32], action: impl FnOnce() -> T) -> io::Result<T> {
    if cores.is_empty() {
        return Ok(action());
    }
    let before = rustix::thread::sched_getaffinity(None)?;
    pin(cores)?;
    let outcome = action();
    rustix::thread::sched_setaffinity(None, &before)?;
    Ok(outcome)
}

/// Keeps the calling thread, and what it starts from now on, to `cores`.
pub fn pin(cores: &[u32]) -> io::Result<()> {
    thread::pin(cores)
}

/// Lets the calling thread run as soon as it wakes, or as others do again. What it
/// starts is never urgent. Only for work of microseconds: it pushes others aside.
/// Errors: an ordinary user may not.
pub fn urgent(on: bool) -> io::Result<()> {
    thread::set_urgency(if on {
        Urgency::Fifo(1)
    } else {
        Urgency::Ordinary
    })
}

/// Sleeps until a moment of `CLOCK_MONOTONIC`; returns at once where it has passed.
pub fn sleep_until(moment: Instant) {
    let request = rustix::thread::Timespec {
        tv_sec: (moment.0 / 1_000_000_000) as i64,
        tv_nsec: (moment.0 % 1_000_000_000) as _,
    };
    let sleep = || rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &request);
    while sleep() == Err(rustix::io::Errno::INTR) {}
}

/// Every descendant of process `root`, from `/proc`, without `root`.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for pid in numbered("/proc") {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if let Some(stat) = crate::sample::parse::stat(&text) {
            parents.push((pid, stat.parent));
        }
    }
    descendants_among(root, &parents)
}

/// A process and its descendants.
pub fn family(pid: u32) -> Vec<u32> {
    let mut pids = vec![pid];
    pids.extend(descendants(pid));
    pids
}

/// The descendants by the lists of children that the kernel keeps, which costs a tenth where
/// many other processes run. While processes end it may miss one: for sampling, not for
/// killing. Where the kernel keeps no lists it is [`descendants`].
pub fn descendants_by_lists(root: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([root]);
    let mut from = vec![root];
    while let Some(pid) = from.pop() {
        for tid in numbered(&format!("/proc/{pid}/task")) {
            let list = format!("/proc/{pid}/task/{tid}/children");
            let Ok(children) = std::fs::read_to_string(list) else {
                if pid == root {
                    return descendants(root);
                }
                continue;
            };
            let children = children
                .split_ascii_whitespace()
                .filter_map(|word| word.parse().ok());
            for child in children {
                if seen.insert(child) {
                    found.push(child);
                    from.push(child);
                }
            }
        }
    }
    found
}

/// The descendants of `root` among `(process, parent)` pairs.
fn descendants_among(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([root]);
    let mut from = vec![root];
    while let Some(parent) = from.pop() {
        for &(pid, of) in parents {
            if of == parent && seen.insert(pid) {
                found.push(pid);
                from.push(pid);
            }
        }
    }
    found
}

/// Whether a thread of the process is neither stopped nor at its end.
pub fn moves(pid: u32) -> bool {
    numbered(&format!("/proc/{pid}/task"))
        .into_iter()
        .any(|tid| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat"));
            let stat = text.ok().and_then(|text| crate::sample::parse::stat(&text));
            stat.is_some_and(|stat| !matches!(stat.state, 'T' | 't' | 'Z' | 'X'))
        })
}

/// Held while a process is started, and for ever by who ends them all.
static STARTING: Mutex<()> = Mutex::new(());

/// Starts a process, unless this one is about to end: then it never returns.
pub fn start(command: &mut Command) -> io::Result<Child> {
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// Lets no thread of this process start another one from now on, so that who ends all
/// descendants does not miss one that is started meanwhile. For a process that is
/// about to end: nothing takes it back.
pub fn start_no_more() {
    std::mem::forget(STARTING.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Kills every descendant of the calling process and collects those that are its
/// children, until none is left; gives up after `rounds_max` looks of 1 ms each,
/// which only a process that the kernel cannot end (waiting for a device) outlasts.
pub fn kill_descendants(rounds_max: u32) -> bool {
    let lab = rustix::process::getpid().as_raw_nonzero().get() as u32;
    for _ in 0..rounds_max {
        while reap().is_some() {}
        let left = descendants(lab);
        if left.is_empty() {
            return true;
        }
        for pid in left {
            signal(pid, Signal::KILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    false
}

/// Whether `command` is an executable file in a folder of `path`, or at its own path.
pub fn on_path(command: &str, path: &str) -> bool {
    found_in(command, std::env::split_paths(path)).is_some()
}

/// The executable file `command` in one of `folders`, or at its own path.
pub fn found_in(command: &str, folders: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let is_executable = |file: &PathBuf| {
        std::fs::metadata(file)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if command.contains('/') {
        return Some(PathBuf::from(command)).filter(is_executable);
    }
    let mut files = folders.into_iter().map(|folder| folder.join(command));
    files.find(is_executable)
}

/// Folders for programs of the system, which an ordinary user's PATH often lacks.
pub const SYSTEM_FOLDERS: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// The numbered entries of a folder under `/proc`, rising.
pub fn numbered(folder: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut numbers: Vec<u32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_forked_descendant_is_found_and_a_stranger_is_not() {
        let parents = [(2, 1), (10, 2), (11, 10), (12, 11), (13, 1), (14, 13)];
        let mut found = descendants_among(2, &parents);
        found.sort_unstable();
        assert_eq!(found, [10, 11, 12]);
    }

    #[test]
    fn a_loop_of_parents_ends() {
        // Pids may be reused while /proc is read, so that a pair is out of date.
        assert_eq!(descendants_among(1, &[(2, 3), (3, 2), (2, 1)]), [2, 3]);
    }

    #[test]
    fn the_cpu_clock_of_this_process_is_its_own() {
        let before = prony_base::clock::process_cpu();
        let seen = cpu_clock(std::process::id()).expect("this process lives");
        assert!(seen >= before, "{seen} < {before}");
    }

    #[test]
    fn a_process_that_is_not_has_no_cpu_clock() {
        // One above the highest number that a kernel can be set to.
        assert_eq!(cpu_clock((1 << 22) + 1), None);
    }

    #[test]
    fn unknown_signals_have_no_number() {
        assert_eq!(signal_named("TERM"), Some(Signal::TERM));
        assert_eq!(signal_named("SIGTERM"), None);
    }
}
