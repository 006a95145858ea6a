//! How many connections a machine can hold, and which limit says so.
//!
//! All compared cells have one cap: the smallest limit on the way minus
//! [`RESERVE`], which the processes need for what is not a measured connection.
//!
//! Not for: changing a limit. Reading them is one function, [`Limits::read`].
//!
//! ```
//! use prony_lab::cap::{Limits, cap};
//! let limits = Limits { open_files: 4_096, ..Limits::example() };
//! let cap = cap(&limits, 20_000, false);
//! assert_eq!(cap.connections_max, 3_896);
//! assert!(cap.limited_by.contains("open files"));
//! ```

use std::collections::BTreeMap;
use std::fs;

use prony_record::ConnectionCap;
use rustix::process::{Resource, getrlimit};

/// Taken from the smallest limit: descriptors and ports for other things.
pub const RESERVE: u64 = 200;
/// Memory that a connection may take at both ends, kernel and programs together.
/// A guess on the safe side: sockets with empty queues take some 10 KB, and the
/// heaviest programs measured some 40 KB.
pub const BYTES_PER_CONNECTION: u64 = 64 << 10;
/// Ports that a network of a trial's own has: 1024 to 65535.
const PORTS_OF_OWN_NETWORK: (u64, u64) = (1_024, 65_535);

/// The limits of a machine that bear on connections.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Limits {
    /// Hard limit on open files of one process (generator and subject alike).
    pub open_files: u64,
    /// Open files of the whole system; both ends are here.
    pub open_files_system: u64,
    /// First and last local port of the network that trials run in.
    pub ports: (u64, u64),
    /// Memory that could be had, in bytes.
    pub memory_available_bytes: u64,
    /// Tracked connections at the most, where the host's network is used and tracks them.
    pub tracked_connections: Option<u64>,
    /// `net.core.somaxconn`: bounds the queue, not the number. Listed only.
    pub somaxconn: u64,
    /// `kernel.threads-max`: bounds subjects with a thread a connection. Listed only.
    pub threads_max: u64,
}

impl Limits {
    /// Limits of an ordinary machine, for tests and examples.
    pub fn example() -> Limits {
        Limits {
            open_files: 1_048_576,
            open_files_system: 9_000_000,
            ports: PORTS_OF_OWN_NETWORK,
            memory_available_bytes: 8 << 30,
            tracked_connections: None,
            somaxconn: 4_096,
            threads_max: 63_000,
        }
    }

    /// Reads the limits of this machine. `own_network`: trials run in networks of
    /// their own, with all unprivileged ports. What cannot be read does not limit.
    pub fn read(own_network: bool) -> Limits {
        let ports = || {
            let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
            let mut numbers = text.split_whitespace().map(str::parse);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        };
        let tracked = number_in("/proc/sys/net/netfilter/nf_conntrack_max");
        Limits {
            open_files: getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX),
            open_files_system: number_in("/proc/sys/fs/file-max").unwrap_or(u64::MAX),
            ports: match own_network {
                true => PORTS_OF_OWN_NETWORK,
                false => ports().unwrap_or((32_768, 60_999)),
            },
            memory_available_bytes: memory_available().unwrap_or(u64::MAX),
            tracked_connections: tracked.filter(|_| !own_network),
            somaxconn: number_in("/proc/sys/net/core/somaxconn").unwrap_or(0),
            threads_max: number_in("/proc/sys/kernel/threads-max").unwrap_or(0),
        }
    }

    /// Connections that each limit allows, by its name; those that do not cap apart.
    fn by_name(&self) -> Vec<(String, u64)> {
        let (first, last) = self.ports;
        let ports = (last + 1).saturating_sub(first);
        let memory = self.memory_available_bytes / 2 / BYTES_PER_CONNECTION;
        let mut all = vec![
            ("open files of the generator".to_owned(), self.open_files),
            ("open files of the subject".to_owned(), self.open_files),
            (
                "open files of the system, both ends".to_owned(),
                self.open_files_system / 2,
            ),
            (format!("local ports {first} to {last}"), ports),
            ("half of the available memory".to_owned(), memory),
        ];
        if let Some(tracked) = self.tracked_connections {
            all.push(("tracked connections (nf_conntrack_max)".to_owned(), tracked));
        }
        all
    }
}

/// The cap on connections of a machine with `limits` and an experiment that asks
/// for `asked_max` at the most.
/// `through_front`: some of them go through a proxy, which opens one of its own for each.
pub fn cap(limits: &Limits, asked_max: u32, through_front: bool) -> ConnectionCap {
    let mut capping = limits.by_name();
    if through_front {
        let pairs = [
            (
                "open files of the front, two a connection",
                limits.open_files / 2,
            ),
            (
                "open files of the system, four ends",
                limits.open_files_system / 4,
            ),
        ];
        capping.extend(pairs.map(|(name, count)| (name.to_owned(), count)));
    }
    let (name, smallest) = capping
        .iter()
        .min_by_key(|(_, count)| *count)
        .map_or(("", u64::MAX), |(name, count)| (name.as_str(), *count));
    let allowed = smallest.saturating_sub(RESERVE).max(1);
    let (connections, limited_by) = if allowed < u64::from(asked_max) {
        (
            allowed as u32,
            format!("{name}: {smallest}, minus {RESERVE}"),
        )
    } else {
        (
            asked_max,
            format!("the experiment, which asks for no more than {asked_max}"),
        )
    };
    let mut listed: BTreeMap<String, u64> = capping.into_iter().collect();
    listed.insert("the experiment's own max".to_owned(), u64::from(asked_max));
    listed.insert(
        "net.core.somaxconn (bounds the queue only)".to_owned(),
        limits.somaxconn,
    );
    listed.insert(
        "kernel.threads-max (bounds threads only)".to_owned(),
        limits.threads_max,
    );
    ConnectionCap {
        connections_max: connections,
        limited_by,
        limits: listed,
    }
}

fn number_in(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// `MemAvailable`, or less where a control group allows less.
fn memory_available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    let group = number_in("/sys/fs/cgroup/memory.max").unwrap_or(u64::MAX);
    Some((kilobytes * 1_024).min(group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_smallest_limit_caps_and_is_named() {
        let roomy = cap(&Limits::example(), 20_000, false);
        assert_eq!(roomy.connections_max, 20_000);
        assert!(
            roomy.limited_by.starts_with("the experiment"),
            "{}",
            roomy.limited_by
        );
        let host = Limits {
            ports: (32_768, 60_999),
            ..Limits::example()
        };
        let ports = cap(&host, 30_000, false);
        assert_eq!(ports.connections_max, 28_032);
        assert_eq!(
            ports.limited_by,
            "local ports 32768 to 60999: 28232, minus 200"
        );
        let small = Limits {
            memory_available_bytes: 1 << 30,
            ..Limits::example()
        };
        assert_eq!(cap(&small, 20_000, false).connections_max, 7_992);
    }

    #[test]
    fn a_short_accept_queue_is_listed_and_does_not_cap() {
        let limits = Limits {
            somaxconn: 128,
            threads_max: 500,
            ..Limits::example()
        };
        let cap = cap(&limits, 20_000, false);
        assert_eq!(cap.connections_max, 20_000);
        assert_eq!(
            cap.limits["net.core.somaxconn (bounds the queue only)"],
            128
        );
    }

    #[test]
    fn this_machine_has_limits() {
        let limits = Limits::read(false);
        assert!(
            limits.open_files > 0 && limits.ports.1 > limits.ports.0,
            "{limits:?}"
        );
        // No system has so few, and one that cannot be read does not limit.
        assert!(
            limits.threads_max > 100 && limits.open_files_system > 100,
            "{limits:?}"
        );
        assert_eq!(Limits::read(true).ports, (1_024, 65_535));
    }

    proptest! {
        #[test]
        fn a_cap_is_within_every_limit_and_at_least_one(
            open_files: u64, system: u64, first in 0_u64..70_000, last in 0_u64..70_000,
            memory: u64, tracked: Option<u64>, requested in 1_u32..1_000_000,
        ) {
            let limits = Limits {
                open_files, open_files_system: system, ports: (first, last),
                memory_available_bytes: memory, tracked_connections: tracked,
                somaxconn: 1, threads_max: 1,
            };
            let connections = u64::from(cap(&limits, requested, false).connections_max);
            prop_assert!(connections >= 1 && connections <= u64::from(requested));
            for (_, limit) in limits.by_name() {
                prop_assert!(connections == 1 || connections + RESERVE <= limit);
            }
        }
    }
}
