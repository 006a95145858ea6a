//! What the files of the kernel tell: a function of a tree of files, and of nothing else.
//!
//! Not for: what must be measured ([`super::measure`]).

use prony_record::MachineCheck;

use super::tree::{Ailment, Tree, healthy, unknown};

/// Connections that an experiment may ask for where it does not say how many, with what Prony keeps in reserve.
const CONNECTIONS: u64 = 20_200;
/// The shortest queue of connections that wait to be accepted: the kernel's own default.
const BACKLOG: u64 = 4_096;

/// One of them. Errors: why nothing is known.
type ReadCheck = fn(&Tree) -> Result<MachineCheck, String>;

/// Everything that is read, in the order to show; what cannot be read is unknown.
pub fn all(tree: &Tree) -> Vec<MachineCheck> {
    let checks: [(&str, ReadCheck); 11] = [
        ("governor", governor),
        ("turbo", turbo),
        ("smt", smt),
        ("clocksource", clocksource),
        ("irqbalance", interrupts),
        ("cpu quota", quota),
        ("io_uring switch", io_uring),
        ("ports", ports),
        ("descriptors", descriptors),
        ("somaxconn", backlog),
        ("battery", battery),
    ];
    let check =
        |(name, check): (&str, ReadCheck)| check(tree).unwrap_or_else(|why| unknown(name, why));
    checks.into_iter().map(check).collect()
}

/// How the frequency is chosen.
fn governor(tree: &Tree) -> Result<MachineCheck, String> {
    const FILE: &str = "cpufreq/scaling_governor";
    let ailment = Ailment {
        name: "governor",
        brief: "processors change their frequency with the load",
        effect: "a server under little load runs slower than one under much: latencies and CPU times are not those of one speed",
        remedy: "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    };
    let files = tree.processors_with(FILE);
    let Some(first) = files.first() else {
        let place = tree.place(&format!("/sys/devices/system/cpu/cpu0/{FILE}"));
        let why = "it is not there; on a virtual machine its host chooses";
        return Err(format!("{}: {why}", place.display()));
    };
    let value = tree.text(first)?;
    let mut other = Vec::new();
    for file in &files {
        let governor = tree.text(file)?;
        if governor != "performance" {
            other.push(governor);
        }
    }
    Ok(match other.first() {
        None => healthy(ailment.name, value),
        Some(which) => {
            let (some, all) = (other.len(), files.len());
            ailment.found(format!("{which} on {some} of {all} processors"))
        }
    })
}

/// The two files that switch turbo, and what each says where it is off.
pub(super) const TURBO: [(&str, &str); 2] = [
    ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
    ("/sys/devices/system/cpu/cpufreq/boost", "0"),
];

/// Frequencies above the nominal one.
fn turbo(tree: &Tree) -> Result<MachineCheck, String> {
    const NAME: &str = "turbo";
    let Some((file, off)) = TURBO.iter().find(|(file, _)| tree.has(file)) else {
        let tried = TURBO.map(|(file, _)| tree.place(file).display().to_string());
        let why = "neither is there; on a virtual machine its host chooses";
        return Err(format!("{}: {why}", tried.join(", ")));
    };
    let remedy = format!("echo {off} | sudo tee {file}");
    let ailment = Ailment {
        name: NAME,
        brief: "turbo is on",
        effect: "the frequency depends on how warm the processor is and on how many cores work: what is measured first runs faster",
        remedy: &remedy,
    };
    tree.text(file).map(|value| match value == *off {
        true => healthy(NAME, "off"),
        false => ailment.found(format!("on ({file} is {value})")),
    })
}

/// Two threads on one core.
fn smt(tree: &Tree) -> Result<MachineCheck, String> {
    const FILE: &str = "/sys/devices/system/cpu/smt/active";
    let ailment = Ailment {
        name: "smt",
        brief: "two threads share a core (SMT)",
        effect: "CPU time of a thread buys less while its sibling works: CPU a request rises with the load of others",
        remedy: "echo off | sudo tee /sys/devices/system/cpu/smt/control",
    };
    tree.number(FILE).map(|active| match active {
        0 => healthy(ailment.name, "off, or not seen from here"),
        _ => ailment.found("on"),
    })
}

/// Clocks that are read without a system call, or nearly so.
const FAST_CLOCKS: [&str; 6] = [
    "tsc",
    "kvm-clock",
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
    "xen",
    "timebase",
];

/// Where the time comes from.
fn clocksource(tree: &Tree) -> Result<MachineCheck, String> {
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    const NAME: &str = "clocksource";
    let current = tree.text(&format!("{FOLDER}/current_clocksource"))?;
    if FAST_CLOCKS.contains(&current.as_str()) {
        return Ok(healthy(NAME, current));
    }
    let offered = tree.text(&format!("{FOLDER}/available_clocksource"))?;
    let mut offered = offered.split_ascii_whitespace();
    let better = offered.find(|name| FAST_CLOCKS.contains(name));
    let remedy =
        better.map(|better| format!("echo {better} | sudo tee {FOLDER}/current_clocksource"));
    let ailment = Ailment {
        name: NAME,
        brief: "reading the clock is slow",
        effect: "each reading of the clock is a system call or an access to a slow device, by generator and subject alike",
        remedy: remedy.as_deref().unwrap_or_default(),
    };
    Ok(ailment.found(current))
}

/// A daemon that moves interrupts.
fn interrupts(tree: &Tree) -> Result<MachineCheck, String> {
    let ailment = Ailment {
        name: "irqbalance",
        brief: "interrupts are moved between cores (irqbalance)",
        effect: "interrupts of devices change the core in the middle of a run, and with it what they slow down",
        remedy: "sudo systemctl stop irqbalance",
    };
    tree.names("/proc").map(|names| {
        let is_process = |name: &&String| name.bytes().all(|byte| byte.is_ascii_digit());
        let name_of = |pid: &String| tree.text(&format!("/proc/{pid}/comm"));
        let mut names = names.iter().filter(is_process).map(name_of);
        match names.any(|name| name.is_ok_and(|name| name == "irqbalance")) {
            true => ailment.found("irqbalance runs"),
            false => healthy(
                ailment.name,
                "not among the processes that are seen from here",
            ),
        }
    })
}

/// How much CPU time the control groups of this process allow.
fn quota(tree: &Tree) -> Result<MachineCheck, String> {
    let ailment = Ailment {
        name: "cpu quota",
        brief: "CPU time is limited by a control group",
        effect: "once the share of a period is used up, all threads stand still until the next: rates are the quota's, and p99 is its period",
        remedy: "podman update --cpus=0 CONTAINER, or without a container: sudo systemctl set-property UNIT CPUQuota=",
    };
    let mut tightest: Option<(f64, String)> = None;
    let mut read_any = false;
    for file in quota_files(&tree.text("/proc/self/cgroup")?) {
        let Ok(limit) = cores_of(tree, &file) else {
            continue;
        };
        read_any = true;
        if let Some(cores) = limit
            && tightest.as_ref().is_none_or(|(least, _)| cores < *least)
        {
            tightest = Some((cores, file));
        }
    }
    Ok(match tightest {
        Some((cores, file)) => ailment.found(format!("{cores} cores, by {file}")),
        None if read_any => healthy(ailment.name, "none"),
        None => {
            let place = tree.place("/sys/fs/cgroup");
            return Err(format!(
                "{}: no limit of a control group can be read",
                place.display()
            ));
        }
    })
}

/// The files that may limit a process of these groups (`/proc/self/cgroup`), its own first. A control group limits all
/// that lie in it.
fn quota_files(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (mount, name) = match controllers {
            "" => ("", "cpu.max"),
            named if named.split(',').any(|one| one == "cpu") => ("/cpu", "cpu.cfs_quota_us"),
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            files.push(format!("/sys/fs/cgroup{mount}{path}/{name}"));
            let Some((above, _)) = path.rsplit_once('/') else {
                break;
            };
            path = above;
        }
    }
    files
}

/// How many cores `file` allows; `None`: it sets no limit.
fn cores_of(tree: &Tree, file: &str) -> Result<Option<f64>, String> {
    let text = tree.text(file)?;
    let (quota, period) = match file.strip_suffix("cpu.cfs_quota_us") {
        Some(folder) => (text, tree.text(&format!("{folder}cpu.cfs_period_us"))?),
        None => {
            let (quota, period) = text.split_once(' ').unwrap_or((&text, "100000"));
            (quota.to_owned(), period.to_owned())
        }
    };
    if quota == "max" || quota == "-1" {
        return Ok(None);
    }
    let number = |text: &str| {
        let number = text.trim().parse::<f64>().ok();
        number
            .filter(|number| *number > 0.0)
            .ok_or_else(|| format!("{file}: `{text}` is no time"))
    };
    Ok(Some(number(&quota)? / number(&period)?))
}

/// The kernel's switch; whether a ring can really be had is measured.
fn io_uring(tree: &Tree) -> Result<MachineCheck, String> {
    const FILE: &str = "/proc/sys/kernel/io_uring_disabled";
    let ailment = Ailment {
        name: "io_uring switch",
        brief: "io_uring is switched off",
        effect: "Prony runs on epoll, which costs the generator more CPU time a request: it is the limit sooner",
        remedy: "sudo sysctl -w kernel.io_uring_disabled=0",
    };
    tree.number(FILE).map(|value| match value {
        0 => healthy(ailment.name, "allowed"),
        1 => ailment.found("only for the group of kernel.io_uring_group, and for root"),
        _ => ailment.found("for nobody"),
    })
}

/// Local ports.
fn ports(tree: &Tree) -> Result<MachineCheck, String> {
    const FILE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
    let ailment = Ailment {
        name: "ports",
        // A run that asks for more says so where it is cut.
        brief: "",
        effect: "where trials have no network of their own, connections to one address end at this number",
        remedy: "sudo sysctl -w net.ipv4.ip_local_port_range='1024 65535'",
    };
    let text = tree.text(FILE)?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (Some(Ok(first)), Some(Ok(last))) = (numbers.next(), numbers.next()) else {
        return Err(format!(
            "{}: `{text}` is no range",
            tree.place(FILE).display()
        ));
    };
    let count = last.saturating_add(1).saturating_sub(first);
    let found = format!("{count} ({first} to {last})");
    Ok(ailment.judged(count < CONNECTIONS, found))
}

/// Open files of one process.
fn descriptors(tree: &Tree) -> Result<MachineCheck, String> {
    const FILE: &str = "/proc/self/limits";
    let ailment = Ailment {
        name: "descriptors",
        // As of ports.
        brief: "",
        effect: "connections end at this number, less 200; cells that ask for more are cut to it",
        remedy: "sudo prlimit --nofile=1048576:1048576 --pid $$",
    };
    let text = tree.text(FILE)?;
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max open files"));
    let hard = line.and_then(|line| line.split_ascii_whitespace().nth(1));
    let Some(hard) = hard else {
        return Err(format!(
            "{}: it says nothing of open files",
            tree.place(FILE).display()
        ));
    };
    let few = hard.parse::<u64>().is_ok_and(|hard| hard < CONNECTIONS);
    let found = format!("{hard} a process (hard limit)");
    Ok(ailment.judged(few, found))
}

/// The queue of connections that wait to be accepted.
fn backlog(tree: &Tree) -> Result<MachineCheck, String> {
    let ailment = Ailment {
        name: "somaxconn",
        brief: "few connections may wait to be accepted",
        effect: "connections that come together overflow the queue and wait a second for a second try",
        remedy: "sudo sysctl -w net.core.somaxconn=4096",
    };
    tree.number("/proc/sys/net/core/somaxconn")
        .map(|value| ailment.judged(value < BACKLOG, value.to_string()))
}

/// Whether the machine runs on its battery.
fn battery(tree: &Tree) -> Result<MachineCheck, String> {
    const FOLDER: &str = "/sys/class/power_supply";
    let ailment = Ailment {
        name: "battery",
        brief: "the machine runs on its battery",
        effect: "the processor is held at lower frequencies, which change as the battery empties",
        remedy: "plug it in",
    };
    let mut batteries = 0;
    for supply in tree.names(FOLDER)? {
        let of = |name: &str| tree.text(&format!("{FOLDER}/{supply}/{name}"));
        // A mouse has a battery, too.
        let of_device = of("scope").is_ok_and(|scope| scope == "Device");
        if of("type").is_ok_and(|kind| kind == "Battery") && !of_device {
            batteries += 1;
            if of("status")? == "Discharging" {
                return Ok(ailment.found(format!("{supply} is discharging")));
            }
        }
    }
    Ok(healthy(
        ailment.name,
        match batteries {
            0 => "none",
            _ => "not in use",
        },
    ))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
