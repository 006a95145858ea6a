//! Texts of `/proc` to values. Pure: each function takes the text and gives
//! `None` (or an empty collection) for what it cannot read.

use std::collections::BTreeMap;

/// Clock ticks a second in `/proc`: 100 on every Linux that Prony runs on (the
/// kernel converts to it whatever its own rate is).
pub const TICK_NS: u64 = 10_000_000;

/// `/proc/PID/stat`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Stat {
    /// Name, at most 15 bytes.
    pub name: String,
    /// State: `R`, `S`, `Z` …
    pub state: char,
    /// Parent's process id.
    pub parent: u32,
    /// CPU time of the children that it has waited for, and theirs; in steps of [`TICK_NS`].
    pub children_cpu_ns: u64,
    /// When it started, in ticks since boot: with the process id this names a process for ever.
    pub started_ticks: u64,
}

/// Reads `/proc/PID/stat`. The name may itself hold parentheses and spaces.
pub fn stat(text: &str) -> Option<Stat> {
    let open = text.find('(')?;
    let close = text.rfind(')')?;
    let name = text.get(open + 1..close)?.to_owned();
    let fields: Vec<&str> = text.get(close + 1..)?.split_ascii_whitespace().collect();
    let number = |index: usize| {
        fields
            .get(index)
            .and_then(|field| field.parse::<u64>().ok())
    };
    Some(Stat {
        name,
        state: fields.first()?.chars().next()?,
        parent: number(1)? as u32,
        children_cpu_ns: (number(13)? + number(14)?).saturating_mul(TICK_NS),
        started_ticks: number(19)?,
    })
}

/// `schedstat` of a thread: CPU time and run-queue delay, both in nanoseconds.
pub fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

/// What is used of `/proc/PID/status` and `/proc/PID/task/TID/status`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Status {
    /// Largest resident set since the mark was reset.
    pub peak_bytes: u64,
    /// Resident set now.
    pub resident_bytes: u64,
    /// Largest address space since it executed its program; no mark that can be reset.
    pub virtual_peak_bytes: u64,
    /// Voluntary context switches (of one thread, also in the file of a process).
    pub voluntary: u64,
    /// Involuntary ones, likewise.
    pub involuntary: u64,
}

/// Reads `status`. What is missing (a process that is ending has no memory) is zero.
pub fn status(text: &str) -> Status {
    let mut status = Status::default();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else {
            continue;
        };
        let first = rest.split_ascii_whitespace().next();
        let value = first.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        match name {
            "VmHWM" => status.peak_bytes = value.saturating_mul(1024),
            "VmRSS" => status.resident_bytes = value.saturating_mul(1024),
            "VmPeak" => status.virtual_peak_bytes = value.saturating_mul(1024),
            "voluntary_ctxt_switches" => status.voluntary = value,
            "nonvoluntary_ctxt_switches" => status.involuntary = value,
            _ => {}
        }
    }
    status
}

/// Times of one core since boot, from `/proc/stat`; in steps of [`TICK_NS`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CoreTimes {
    /// Time neither idle nor waiting for a device: user, nice, system and interrupts.
    pub busy_ns: u64,
    /// Given to others by the hypervisor.
    pub steal_ns: u64,
    /// CPU time of the core's `ksoftirqd`; `None`: it cannot be seen. Not in `/proc/stat`.
    pub ksoftirqd_ns: Option<u64>,
}

/// Reads `/proc/stat`: times by core number.
pub fn core_times(text: &str) -> BTreeMap<u32, CoreTimes> {
    text.lines().filter_map(core_line).collect()
}

fn core_line(line: &str) -> Option<(u32, CoreTimes)> {
    let mut words = line.split_ascii_whitespace();
    let core = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
    // user nice system idle iowait irq softirq steal; guest time is part of user.
    let busy = at(0) + at(1) + at(2) + at(5) + at(6);
    let times = CoreTimes {
        busy_ns: busy.saturating_mul(TICK_NS),
        steal_ns: at(7).saturating_mul(TICK_NS),
        ksoftirqd_ns: None,
    };
    Some((core, times))
}

/// Reads `/proc/net/snmp` or `/proc/net/netstat`: pairs of lines, names then
/// values, each named by its group and itself: `TcpExtListenOverflows`.
/// Values below zero (a limit that is not set) are left out.
pub fn network_counters(text: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (Some((group, names)), Some((of, values))) =
            (pair[0].split_once(':'), pair[1].split_once(':'))
        else {
            continue;
        };
        if group != of {
            continue;
        }
        let named = names.split_ascii_whitespace();
        for (name, value) in named.zip(values.split_ascii_whitespace()) {
            if let Ok(value) = value.parse() {
                counters.insert(format!("{group}{name}"), value);
            }
        }
    }
    counters
}

/// Reads `cmdline`: arguments that each end with a zero byte.
pub fn command_line(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let trimmed = text.trim_end_matches('\0');
    if trimmed.is_empty() {
        return Vec::new();
    }
    trimmed.split('\0').map(str::to_owned).collect()
}

/// The numbers of a list like `0-3,8`; what is no number, or a range of more than
/// 65536, is left out.
pub fn cpu_list(text: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>())
            && last.saturating_sub(first) < 1 << 16
        {
            numbers.extend(first..=last);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_is_read_whole() {
        let text = "77 (a) R (b) S 12 77 77 0 -1 4194304 100 5 0 0 7 3 11 2 20 0 4 0 5555 1 2 3";
        let read = stat(text).expect("a stat line");
        assert_eq!(read.name, "a) R (b");
        assert_eq!((read.state, read.parent), ('S', 12));
        assert_eq!(read.children_cpu_ns, 13 * TICK_NS);
        assert_eq!(read.started_ticks, 5555);
    }

    #[test]
    fn schedstat_is_cpu_then_delay() {
        assert_eq!(schedstat("5512345 9812 77\n"), Some((5_512_345, 9_812)));
        assert_eq!(schedstat(""), None);
    }

    #[test]
    fn status_is_read_in_bytes() {
        let text = "Name:\tx\nVmPeak:\t 4096 kB\nVmHWM:\t    2048 kB\nVmRSS:\t1024 kB\n\
                    voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n";
        let expected = Status {
            peak_bytes: 2048 * 1024,
            resident_bytes: 1024 * 1024,
            virtual_peak_bytes: 4096 * 1024,
            voluntary: 5,
            involuntary: 7,
        };
        assert_eq!(status(text), expected);
    }

    #[test]
    fn the_line_of_all_cores_is_no_core_and_idle_time_is_not_busy() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 1 2 3 400 500 6 7 8 0 0\nintr 5 6\n";
        let read = core_times(text);
        let expected = CoreTimes {
            busy_ns: 19 * TICK_NS,
            steal_ns: 8 * TICK_NS,
            ksoftirqd_ns: None,
        };
        assert_eq!(read, BTreeMap::from([(1, expected)]));
    }

    #[test]
    fn network_counters_carry_their_group() {
        let text =
            "Tcp: RtoMin MaxConn\nTcp: 200 -1\nTcpExt: ListenOverflows ListenDrops\nTcpExt: 3 4\n";
        let read = network_counters(text);
        assert_eq!(read.get("TcpExtListenOverflows"), Some(&3));
        assert_eq!(read.get("TcpRtoMin"), Some(&200));
        assert_eq!(read.get("TcpMaxConn"), None);
    }

    #[test]
    fn an_empty_argument_is_kept_and_a_kernel_thread_has_none() {
        assert_eq!(command_line(b"a\0\0b\0"), ["a", "", "b"]);
        assert!(command_line(b"").is_empty());
    }

    proptest! {
        #[test]
        fn no_text_makes_a_reader_panic(text in ".{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = stat(&text);
            let _ = schedstat(&text);
            let _ = status(&text);
            let _ = core_times(&text);
            let _ = network_counters(&text);
            let _ = command_line(&bytes);
        }
    }
}
