//! What only trying tells: how late a sleeping thread wakes, what is stolen and who else works, what the clock costs, how
//! fast loopback is, how long a file takes to be synced. In brief this takes a fifth of a second, in full some four.
//!
//! Everything that is judged is a pure function of what was measured. Not for: the machine's speed as such; a figure here
//! says when it would spoil another one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use prony_base::{Nanos, clock};
use prony_engine::Config;
use prony_record::MachineCheck;

use super::tree::{Ailment, Tree, healthy, unknown};
use crate::launch;
use crate::sample::parse::{self, CoreTimes};

/// How long each sleep lasts whose end is timed.
const SLEEP: Nanos = Nanos::from_millis(1);
/// Sleeps in brief and in full.
const SLEEPS_IN_BRIEF: usize = 100;
const SLEEPS_IN_FULL: usize = 1_200;
/// Lateness that spoils: of the median, and of the 99th percentile.
const LATE_MEDIAN: Nanos = Nanos::from_micros(200);
const LATE_P99: Nanos = Nanos::from_millis(1);
/// A part of the time that spoils when it is stolen, and the least time: less is the step of the kernel's clocks.
const STOLEN_PART: f64 = 0.01;
const COUNTED_MIN: Nanos = Nanos::from_millis(30);
/// Cores that others may use before it spoils.
const OTHERS_CORES: f64 = 0.05;
/// Neighbours that are named.
const NAMED_MAX: usize = 3;
/// Cost of a reading of the clock that spoils, and readings whose time is taken together.
const CLOCK_COST_NS: f64 = 200.0;
const READINGS: u32 = 20_000;
/// How long loopback is tried, and the round trip that spoils.
const LOOPBACK_LENGTH: Nanos = Nanos::from_millis(700);
const ROUND_TRIP: Nanos = Nanos::from_micros(200);
/// Syncs that are tried, for how long at the most, and the one that spoils.
const SYNCS: usize = 40;
const SYNC_LENGTH: Nanos = Nanos::from_secs(2);
const SYNC: Nanos = Nanos::from_millis(20);

/// What is measured in a fifth of a second.
pub fn in_brief(tree: &Tree) -> Vec<MachineCheck> {
    asleep(tree, SLEEPS_IN_BRIEF)
}

/// What is measured in some four seconds; `folder` is where a file is synced.
pub fn in_full(tree: &Tree, folder: &Path) -> Vec<MachineCheck> {
    let mut checks = asleep(tree, SLEEPS_IN_FULL);
    checks.push(ring());
    checks.push(loopback());
    checks.push(sync(folder));
    checks
}

/// Wake-ups, what happens meanwhile, and the clock.
fn asleep(tree: &Tree, sleeps: usize) -> Vec<MachineCheck> {
    let before = Usage::read(tree);
    let start = clock::monotonic();
    let late = lateness(sleeps);
    let length = clock::monotonic().since(start);
    let after = Usage::read(tree);
    let mut checks = vec![wake_up(&late, tree.number("/proc/self/timerslack_ns").ok())];
    match (before, after) {
        (Ok(before), Ok(after)) => {
            checks.push(steal(&before, &after, length));
            checks.push(neighbours(&before, &after, length));
        }
        (Err(why), _) | (_, Err(why)) => {
            checks.extend(["steal", "neighbours"].map(|name| unknown(name, why.clone())));
        }
    }
    checks.push(clock_cost(cost_of_clock()));
    checks
}

/// How late each of `count` sleeps ended, rising.
fn lateness(count: usize) -> Vec<Nanos> {
    let one = |_| {
        let due = clock::monotonic() + SLEEP;
        launch::sleep_until(due);
        clock::monotonic().since(due)
    };
    let mut late: Vec<Nanos> = (0..count).map(one).collect();
    late.sort_unstable();
    late
}

/// The value below which `part` of them lie; of none: no time.
fn percentile(rising: &[Nanos], part: f64) -> Nanos {
    let at = (rising.len() as f64 * part) as usize;
    rising
        .get(at)
        .or(rising.last())
        .copied()
        .unwrap_or_default()
}

fn wake_up(late: &[Nanos], slack_ns: Option<u64>) -> MachineCheck {
    let ailment = Ailment {
        name: "wake-up",
        brief: "sleeping threads wake late",
        effect: "requests of an open loop start that much late, and a server that slept answers that much later",
        remedy: "sudo cpupower idle-set -D 10; and stop what else runs: ps -eo pcpu,pid,comm --sort=-pcpu | head",
    };
    let (median, p99) = (percentile(late, 0.5), percentile(late, 0.99));
    let slack = slack_ns.map(|ns| format!(" (timer slack {})", Nanos(ns)));
    let found = format!(
        "a sleep of {SLEEP} ends {median} late in the median, {p99} in the 99th percentile{}",
        slack.unwrap_or_default()
    );
    ailment.judged(median > LATE_MEDIAN || p99 > LATE_P99, found)
}

/// What was used until a moment.
#[derive(Clone, Debug, Default)]
struct Usage {
    cores: BTreeMap<u32, CoreTimes>,
    /// Name and CPU time of each process that is seen.
    processes: BTreeMap<u32, (String, Nanos)>,
    /// CPU time of this process.
    lab: Nanos,
}

impl Usage {
    fn read(tree: &Tree) -> Result<Usage, String> {
        let cores = parse::core_times(&tree.text("/proc/stat")?);
        if cores.is_empty() {
            let place = tree.place("/proc/stat");
            return Err(format!("{}: it tells of no processor", place.display()));
        }
        let pids = tree.names("/proc")?.into_iter();
        let process = |name: String| {
            let pid = name.parse().ok()?;
            let text = tree.text(&format!("/proc/{name}/stat")).ok()?;
            Some((pid, (parse::stat(&text)?.name, cpu_of(&text)?)))
        };
        Ok(Usage {
            cores,
            processes: pids.filter_map(process).collect(),
            lab: clock::process_cpu(),
        })
    }

    fn sum(&self, of: impl Fn(&CoreTimes) -> u64) -> u64 {
        self.cores.values().map(of).sum()
    }
}

/// CPU time of a process by the text of its `stat`, in steps of 10 ms: that of its threads, ended ones as well.
fn cpu_of(stat: &str) -> Option<Nanos> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Nanos((ticks()? + ticks()?).saturating_mul(parse::TICK_NS)))
}

fn steal(before: &Usage, after: &Usage, length: Nanos) -> MachineCheck {
    let ailment = Ailment {
        name: "steal",
        brief: "the host gives this machine's CPU time to others",
        effect: "all threads stand still for that long, at moments that differ from trial to trial: rates fall and p99 rises",
        remedy: "use a machine with processors of its own, or measure at another hour; --visits 200ms disturbs all alike",
    };
    let of = |usage: &Usage| usage.sum(|core| core.steal_ns);
    let stolen = Nanos(of(after).saturating_sub(of(before)));
    let all_time = length.0.max(1) as f64 * after.cores.len().max(1) as f64;
    let part = stolen.0 as f64 / all_time;
    let found = format!("{:.1} % of the CPU time in {length}", part * 100.0);
    ailment.judged(part > STOLEN_PART && stolen >= COUNTED_MIN, found)
}

/// CPU time of all that is not this process. What is seen of processes only gives names: those of other containers are
/// not seen, and work as well.
fn neighbours(before: &Usage, after: &Usage, length: Nanos) -> MachineCheck {
    let busy = after
        .sum(|core| core.busy_ns)
        .saturating_sub(before.sum(|core| core.busy_ns));
    let lab = after.lab.0.saturating_sub(before.lab.0);
    let others = Nanos(busy.saturating_sub(lab));
    let cores = others.0 as f64 / length.0.max(1) as f64;
    let all = after.cores.len();
    let mut used: Vec<(Nanos, String)> = after
        .processes
        .iter()
        .filter(|(pid, _)| **pid != std::process::id())
        .filter_map(|(pid, (name, cpu))| {
            // One that began meanwhile has used all of its time since.
            let start = before
                .processes
                .get(pid)
                .map_or(Nanos::ZERO, |(_, cpu)| *cpu);
            let used = Nanos(cpu.0.saturating_sub(start.0));
            (used > Nanos::ZERO).then(|| (used, format!("{name} ({pid})")))
        })
        .collect();
    used.sort_by(|a, b| b.cmp(a));
    let named: Vec<String> = used
        .into_iter()
        .take(NAMED_MAX)
        .map(|(_, name)| name)
        .collect();
    let brief = format!("others use {cores:.1} of {all} cores");
    let ailment = Ailment {
        name: "neighbours",
        brief: &brief,
        effect: "generator and subject wait for a core: rates fall, latencies rise, and not alike from trial to trial",
        remedy: "stop them: ps -eo pcpu,pid,comm --sort=-pcpu | head",
    };
    let mut found = format!("others used {cores:.2} of {all} cores in {length}");
    if !named.is_empty() {
        found.push_str(&format!(": {}", named.join(", ")));
    }
    ailment.judged(cores > OTHERS_CORES && others >= COUNTED_MIN, found)
}

/// Nanoseconds that a reading of the clock takes: of several rounds the fastest.
fn cost_of_clock() -> f64 {
    let round = |_| {
        let start = clock::monotonic();
        for _ in 0..READINGS {
            black_box(clock::monotonic());
        }
        clock::monotonic().since(start).0 as f64 / f64::from(READINGS)
    };
    (0..5).map(round).fold(f64::INFINITY, f64::min)
}

fn clock_cost(ns: f64) -> MachineCheck {
    let ailment = Ailment {
        name: "clock",
        brief: "reading the clock is slow",
        effect: "a request is timed by some five readings, which the generator's CPU time contains",
        remedy: "cat /sys/devices/system/clocksource/clocksource0/available_clocksource",
    };
    let found = format!("a reading takes {ns:.0} ns");
    ailment.judged(ns > CLOCK_COST_NS, found)
}

/// Whether a loop gets io_uring: the kernel's switch is not all that can forbid it.
fn ring() -> MachineCheck {
    let tried = prony_engine::run(&Config::default(), |handle| async move {
        handle.fallback().map(str::to_owned)
    });
    or_refused(tried.map_err(|error| error.to_string()))
}

/// `Ok(None)`: it was had; `Ok(Some(why))`: it was refused.
fn or_refused(tried: Result<Option<String>, String>) -> MachineCheck {
    let ailment = Ailment {
        name: "io_uring",
        brief: "io_uring is refused",
        effect: "Prony runs on epoll, which costs the generator more CPU time a request: it is the limit sooner",
        remedy: "in a container: podman run --security-opt seccomp=unconfined; else: sudo sysctl -w kernel.io_uring_disabled=0",
    };
    match tried {
        Ok(None) => healthy(ailment.name, "a ring was made"),
        Ok(Some(why)) => ailment.found(why),
        Err(why) => unknown(ailment.name, why),
    }
}

/// One byte to and fro between two threads.
fn loopback() -> MachineCheck {
    match round_trips(LOOPBACK_LENGTH) {
        Ok(rising) => ceiling(&rising),
        Err(error) => unknown("loopback", format!("no connection to itself: {error}")),
    }
}

/// The lengths of the round trips, rising.
fn round_trips(length: Nanos) -> io::Result<Vec<Nanos>> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    for stream in [&near, &far] {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    }
    let echo = thread::spawn(move || {
        let mut byte = [0];
        // It ends with the connection.
        while far.read_exact(&mut byte).is_ok() && far.write_all(&byte).is_ok() {}
    });
    let end = clock::monotonic() + length;
    let mut all = Vec::new();
    let mut sent = clock::monotonic();
    while sent < end {
        let mut byte = [1];
        near.write_all(&byte)?;
        near.read_exact(&mut byte)?;
        let came = clock::monotonic();
        all.push(came.since(sent));
        sent = came;
    }
    drop(near);
    let _ = echo.join();
    all.sort_unstable();
    Ok(all)
}

fn ceiling(rising: &[Nanos]) -> MachineCheck {
    let ailment = Ailment {
        name: "loopback",
        brief: "a round trip on loopback is slow",
        effect: "with few connections it is the wake-ups of the kernel that are measured, not the servers",
        remedy: "sudo cpupower idle-set -D 10",
    };
    let sum = rising.iter().fold(Nanos::ZERO, |sum, one| sum + *one);
    if sum == Nanos::ZERO {
        return unknown(ailment.name, "no byte came back");
    }
    let a_second = rising.len() as f64 / sum.as_secs_f64();
    let (median, p99) = (percentile(rising, 0.5), percentile(rising, 0.99));
    let found = format!(
        "at most {a_second:.0} round trips a second on one connection (median {median}, 99th percentile {p99})"
    );
    ailment.judged(median > ROUND_TRIP, found)
}

/// A small file, written and synced again and again.
fn sync(folder: &Path) -> MachineCheck {
    match syncs(folder) {
        Ok(rising) => synced(&rising),
        Err(error) => unknown("disk sync", format!("{}: {error}", folder.display())),
    }
}

fn syncs(folder: &Path) -> io::Result<Vec<Nanos>> {
    fs::create_dir_all(folder)?;
    let path = folder.join(format!(".sync-{}", std::process::id()));
    let tried = || -> io::Result<Vec<Nanos>> {
        let mut file = File::create(&path)?;
        let end = clock::monotonic() + SYNC_LENGTH;
        let mut all = Vec::new();
        while all.len() < SYNCS && clock::monotonic() < end {
            let start = clock::monotonic();
            file.write_all(&[0; 4096])?;
            file.sync_data()?;
            all.push(clock::monotonic().since(start));
        }
        all.sort_unstable();
        Ok(all)
    };
    let result = tried();
    // A file that was not made cannot be removed.
    let _ = fs::remove_file(&path);
    result
}

fn synced(rising: &[Nanos]) -> MachineCheck {
    let ailment = Ailment {
        name: "disk sync",
        brief: "syncing a file is slow",
        effect: "a server that syncs what it keeps is measured by this disk; each trial's record is synced, too, outside of its window",
        remedy: "keep run directories and data on a local SSD: prony run … --out DIR",
    };
    let (median, p99) = (percentile(rising, 0.5), percentile(rising, 0.99));
    let found = format!("4 KiB take {median} in the median, {p99} in the 99th percentile");
    ailment.judged(median > SYNC, found)
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
