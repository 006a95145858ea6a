//! What belongs to the machine and not to a process: use of the cores and the
//! counters of the network stack.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

use prony_record::{CoreUse, Cores, KernelCounters, Role};

use super::parse::{self, CoreTimes};

/// The counters of the calling thread's network namespace, by names like
/// `TcpExtListenOverflows`.
pub fn network_counters() -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for file in [
        "/proc/thread-self/net/snmp",
        "/proc/thread-self/net/netstat",
    ] {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        counters.extend(parse::network_counters(&text));
    }
    counters
}

/// The counters before and after, without those that stayed zero.
pub fn kernel_counters(
    own_namespace: bool,
    mut before: BTreeMap<String, u64>,
    mut after: BTreeMap<String, u64>,
) -> KernelCounters {
    let moved = |other: &BTreeMap<String, u64>, name: &str| other.get(name).is_some_and(|&n| n > 0);
    let seen_after = after.clone();
    after.retain(|name, value| *value > 0 || moved(&before, name));
    before.retain(|name, value| *value > 0 || moved(&seen_after, name));
    KernelCounters {
        own_namespace,
        before,
        after,
    }
}

/// The open clocks of the kernel's threads `ksoftirqd`, by core.
static KSOFTIRQD: OnceLock<BTreeMap<u32, File>> = OnceLock::new();

/// Opens the clocks of the kernel's threads, for [`core_times`]. Once, and before `/proc` becomes that of a process
/// namespace, in which there are none of them; descriptors that are open stay good there.
pub fn open_kernel_threads() {
    KSOFTIRQD.get_or_init(|| {
        let clock = |pid: u32| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            let core = name.trim_end().strip_prefix("ksoftirqd/")?.parse().ok()?;
            // A process may call itself so; only a thread of the kernel has no command.
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let file = File::open(format!("/proc/{pid}/schedstat")).ok()?;
            command.is_empty().then_some((core, file))
        };
        let pids = crate::launch::numbered("/proc").into_iter();
        pids.filter_map(clock).collect()
    });
}

/// Times of every core since boot.
pub fn core_times() -> BTreeMap<u32, CoreTimes> {
    let mut times = parse::core_times(&std::fs::read_to_string("/proc/stat").unwrap_or_default());
    for (core, file) in KSOFTIRQD.get().into_iter().flatten() {
        let mut buffer = [0; 128];
        let length = file.read_at(&mut buffer, 0).unwrap_or(0);
        let read = std::str::from_utf8(&buffer[..length]).ok();
        if let (Some(times), Some((cpu, _))) =
            (times.get_mut(core), read.and_then(parse::schedstat))
        {
            times.ksoftirqd_ns = Some(cpu);
        }
    }
    times
}

/// What each core did between two readings of [`core_times`], and whose it is.
pub fn core_use(
    before: &BTreeMap<u32, CoreTimes>,
    after: &BTreeMap<u32, CoreTimes>,
    cores: &Cores,
) -> Vec<CoreUse> {
    let of = |core: u32, times: &CoreTimes| {
        let start = before.get(&core).copied().unwrap_or_default();
        CoreUse {
            core,
            role: role_of(core, cores),
            busy_ns: times.busy_ns.saturating_sub(start.busy_ns),
            steal_ns: times.steal_ns.saturating_sub(start.steal_ns),
            ksoftirqd_ns: times
                .ksoftirqd_ns
                .zip(start.ksoftirqd_ns)
                .map(|(end, start)| end.saturating_sub(start)),
        }
    };
    after.iter().map(|(&core, times)| of(core, times)).collect()
}

fn role_of(core: u32, cores: &Cores) -> Option<Role> {
    if cores.subject.contains(&core) {
        Some(Role::Subject)
    } else if cores.generator.contains(&core) {
        Some(Role::Generator)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_belongs_to_the_role_that_is_pinned_to_it() {
        let cores = Cores {
            subject: vec![0],
            generator: vec![1],
            lab: vec![2],
        };
        let at = |busy_ns| CoreTimes {
            busy_ns,
            steal_ns: 1,
            ksoftirqd_ns: (busy_ns > 5).then_some(busy_ns),
        };
        let before = BTreeMap::from([(0, at(5)), (1, at(5)), (2, at(5))]);
        let after = BTreeMap::from([(0, at(15)), (1, at(6)), (2, at(5))]);
        let used = core_use(&before, &after, &cores);
        // What was not seen at the start has not risen.
        assert!(used.iter().all(|used| used.ksoftirqd_ns.is_none()));
        let roles: Vec<_> = used.iter().map(|u| (u.role, u.busy_ns)).collect();
        let expected = [
            (Some(Role::Subject), 10),
            (Some(Role::Generator), 1),
            (None, 0),
        ];
        assert_eq!(roles, expected);
    }

    #[test]
    fn what_the_kernel_did_for_a_core_was_in_no_clock() {
        open_kernel_threads();
        let seen = core_times();
        let kernel = std::path::Path::new("/proc/2/comm");
        if std::fs::read_to_string(kernel).is_ok_and(|name| name.trim_end() == "kthreadd") {
            assert!(
                seen.values().all(|core| core.ksoftirqd_ns.is_some()),
                "{seen:?}"
            );
        } else {
            assert!(
                seen.values().all(|core| core.ksoftirqd_ns.is_none()),
                "{seen:?}"
            );
        }
        let cores = Cores::default();
        let mut later = seen.clone();
        for core in later.values_mut() {
            core.ksoftirqd_ns = core.ksoftirqd_ns.map(|ns| ns + 7);
        }
        for used in core_use(&seen, &later, &cores) {
            assert_eq!(used.ksoftirqd_ns, seen[&used.core].ksoftirqd_ns.map(|_| 7));
        }
    }

    #[test]
    fn a_counter_that_moved_is_kept_on_both_sides() {
        let map = |overflows, drops| {
            BTreeMap::from([
                ("Overflows".to_owned(), overflows),
                ("Drops".to_owned(), drops),
            ])
        };
        let counters = kernel_counters(true, map(0, 0), map(3, 0));
        assert_eq!(counters.rise("Overflows"), 3);
        assert_eq!(counters.before.get("Overflows"), Some(&0));
        assert!(!counters.after.contains_key("Drops"));
    }
}
