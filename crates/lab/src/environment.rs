//! The machine: what a reader must know of it to read the figures. Reading is in
//! [`collect`]; everything that turns text into values is pure.
//!
//! Not for: judging it (the findings do).

use std::path::Path;

use prony_base::clock;
use prony_record::{Environment, Fact};
use sha2::{Digest as _, Sha256};

use crate::sample::parse::cpu_list;
use crate::sums::hex;
use crate::supervise::Offer;

/// Settings of the kernel that bear on the figures.
const KERNEL_SETTINGS: [&str; 6] = [
    "kernel.io_uring_disabled",
    "kernel.numa_balancing",
    "kernel.sched_autogroup_enabled",
    "fs.file-max",
    "fs.nr_open",
    "vm.swappiness",
];

/// Settings of a network namespace.
const NETWORK_SETTINGS: [&str; 12] = [
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.core.default_qdisc",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_notsent_lowat",
];

/// Adds what is read of the machine to what is `given`: the versions of Prony, the code, the driver, software, checks and further facts.
/// What cannot be read is left empty or out: nothing here fails.
pub fn collect(given: Environment) -> Environment {
    let cpuinfo = read("/proc/cpuinfo");
    let release = rustix::system::uname();
    let text = |words: &std::ffi::CStr| words.to_string_lossy().into_owned();
    let online = cpu_list(&read("/sys/devices/system/cpu/online")).len();
    let cpus = if online > 0 {
        online
    } else {
        processors(&cpuinfo)
    };
    let siblings = read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    let mut facts = facts();
    facts.extend(crate::passed::facts());
    facts.extend(fact("who runs what", &crate::launch::privileges()));
    facts.extend(given.facts);
    Environment {
        schema: prony_record::SCHEMA,
        method: prony_record::METHOD,
        started_unix_ms: clock::unix_nanos() / 1_000_000,
        machine: machine(&read("/etc/machine-id")),
        cpu_model: cpu_model(&cpuinfo).unwrap_or_else(|| text(release.machine())),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        threads_per_core: u32::try_from(cpu_list(&siblings).len().max(1)).unwrap_or(1),
        memory_bytes: memory_bytes(&read("/proc/meminfo")),
        kernel: format!("{} {}", text(release.sysname()), text(release.release())),
        distribution: distribution(&read("/etc/os-release")),
        virtualisation: virtualisation(&cpuinfo),
        facts,
        ..given
    }
}

/// The machine's id, hashed for this use alone, as its manual page (machine-id(5)) asks for: it is not to
/// leave the machine. Empty where there is none.
fn machine(id: &str) -> String {
    if id.is_empty() {
        return String::new();
    }
    let digest = Sha256::digest(format!("prony run directory\n{id}"));
    hex(&digest[..8])
}

/// A file's text without the white space at its end; empty when it cannot be read.
fn read(path: impl AsRef<Path>) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_end().to_owned()
}

/// The settings of the network that the caller is in (its own namespace's values).
pub fn network_facts() -> Vec<Fact> {
    kernel_settings(&NETWORK_SETTINGS)
}

/// A fact, unless it is empty; tabs between values become single spaces.
fn fact(name: &str, value: &str) -> Option<Fact> {
    let value = value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    (!value.is_empty()).then(|| Fact {
        name: name.to_owned(),
        value,
    })
}

/// What holds trials apart on this machine, and the settings of the network that they
/// run in where that is not the host's: for [`collect`].
pub fn isolation_facts(offer: &Offer) -> Vec<Fact> {
    let processes = if offer.isolation.process_namespace {
        "a process namespace each"
    } else {
        "process groups and sub-reapers"
    };
    let network = if offer.isolation.network_namespace {
        "a network namespace each"
    } else {
        "the host's network"
    };
    let mut facts = Vec::from_iter(fact(
        "trials are held apart by",
        &format!("{processes}, {network}"),
    ));
    if let Some(refused) = offer.refused.first() {
        facts.extend(fact("refused by this machine", refused));
    }
    if offer.isolation.network_namespace {
        let inside = offer.facts.iter();
        facts.extend(
            inside.filter_map(|inner| fact(&format!("{} in trials", inner.name), &inner.value)),
        );
    }
    facts
}

/// What bears on the figures beside processor, memory and kernel.
fn facts() -> Vec<Fact> {
    const DEVICES: &str = "/sys/devices/system";
    let files = [
        ("cpu governor", "cpu/cpu0/cpufreq/scaling_governor"),
        ("cpu frequency driver", "cpu/cpu0/cpufreq/scaling_driver"),
        ("turbo off (intel_pstate)", "cpu/intel_pstate/no_turbo"),
        ("boost (cpufreq)", "cpu/cpufreq/boost"),
        ("smt", "cpu/smt/control"),
        (
            "clocksource",
            "clocksource/clocksource0/current_clocksource",
        ),
    ];
    let files = files.iter();
    let mut facts: Vec<Fact> = files
        .filter_map(|(name, path)| fact(name, &read(format!("{DEVICES}/{path}"))))
        .collect();
    let huge_pages = read("/sys/kernel/mm/transparent_hugepage/enabled");
    facts.extend(fact("transparent huge pages", &huge_pages));
    facts.extend(kernel_settings(&KERNEL_SETTINGS));
    facts.extend(mitigations());
    facts.extend(open_files(&read("/proc/self/limits")));
    facts.extend(network_facts());
    facts
}

/// Kernel settings by their names, without those that this kernel has not.
fn kernel_settings(names: &[&str]) -> Vec<Fact> {
    let setting = |name: &&str| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        fact(name, &read(path))
    };
    names.iter().filter_map(setting).collect()
}

/// One fact for all mitigations that are on.
fn mitigations() -> Option<Fact> {
    let folder = Path::new("/sys/devices/system/cpu/vulnerabilities");
    let mut active: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .filter(|entry| is_mitigated(&read(entry.path())))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    active.sort_unstable();
    let value = if active.is_empty() {
        "none active".to_owned()
    } else {
        active.join(" ")
    };
    fact("mitigations", &value)
}

/// Whether the text of a vulnerability says that something is done about it.
fn is_mitigated(text: &str) -> bool {
    text.starts_with("Mitigation")
}

/// The limits on open files from `/proc/PID/limits`.
fn open_files(text: &str) -> Option<Fact> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let mut words = line.split_ascii_whitespace();
    let (soft, hard) = (words.next()?, words.next()?);
    fact("open files (soft, hard)", &format!("{soft} {hard}"))
}

/// The value of the first line `name : value` of `/proc/cpuinfo`.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name && !value.trim().is_empty()).then(|| value.trim())
    })
}

/// The processor's name. x86 writes it out; arm64 gives the maker's number for the
/// implementer and the part, of which the usual ones are put into words.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    if let Some(name) = field(cpuinfo, "model name").or_else(|| field(cpuinfo, "Model")) {
        return Some(name.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
    }
    let implementer = field(cpuinfo, "CPU implementer")?;
    let part = field(cpuinfo, "CPU part")?;
    let known = arm_core(implementer, part);
    Some(known.map_or_else(
        || format!("arm64 implementer {implementer} part {part}"),
        str::to_owned,
    ))
}

fn arm_core(implementer: &str, part: &str) -> Option<&'static str> {
    Some(match (implementer, part) {
        ("0x41", "0xd08") => "ARM Cortex-A72",
        ("0x41", "0xd0b") => "ARM Cortex-A76",
        ("0x41", "0xd0c") => "ARM Neoverse N1",
        ("0x41", "0xd40") => "ARM Neoverse V1",
        ("0x41", "0xd49") => "ARM Neoverse N2",
        ("0x41", "0xd4f") => "ARM Neoverse V2",
        ("0xc0", "0xac3") => "Ampere-1",
        ("0x61", _) => "Apple silicon",
        _ => return None,
    })
}

/// How many processors `/proc/cpuinfo` lists.
fn processors(cpuinfo: &str) -> usize {
    let is_one = |line: &&str| {
        line.split(':')
            .next()
            .is_some_and(|key| key.trim() == "processor")
    };
    cpuinfo.lines().filter(is_one).count()
}

/// `MemTotal` of `/proc/meminfo`.
fn memory_bytes(meminfo: &str) -> u64 {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let number = line.and_then(|rest| rest.split_ascii_whitespace().next());
    number
        .and_then(|text| text.parse::<u64>().ok())
        .unwrap_or(0)
        .saturating_mul(1024)
}

/// `PRETTY_NAME` of `/etc/os-release`, without its quotes.
fn distribution(os_release: &str) -> String {
    let line = os_release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    line.unwrap_or("").trim_matches(['"', '\'']).to_owned()
}

fn virtualisation(cpuinfo: &str) -> String {
    let mut seen = Vec::new();
    let product = read("/sys/class/dmi/id/product_name");
    let vendor = read("/sys/class/dmi/id/sys_vendor");
    let flagged = field(cpuinfo, "flags")
        .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    if let Some(name) = hypervisor(&vendor, &product, &read("/sys/hypervisor/type"), flagged) {
        seen.push(name);
    }
    let cgroup = read("/proc/1/cgroup");
    let marker = |path: &str| Path::new(path).exists();
    if let Some(name) = container(&cgroup, marker("/.dockerenv"), marker("/run/.containerenv")) {
        seen.push(name.to_owned());
    }
    seen.join(", ")
}

/// The hypervisor by what the firmware calls the machine; `a hypervisor` where only the
/// processor says that there is one.
fn hypervisor(vendor: &str, product: &str, kind: &str, flagged: bool) -> Option<String> {
    let text = format!("{vendor} {product}").to_lowercase();
    let known = [
        ("kvm", "KVM"),
        ("qemu", "KVM/QEMU"),
        ("vmware", "VMware"),
        ("virtualbox", "VirtualBox"),
        ("firecracker", "Firecracker"),
        ("amazon ec2", "Amazon EC2"),
        ("google", "Google Compute Engine"),
        ("microsoft corporation virtual", "Hyper-V"),
        ("openstack", "OpenStack"),
        ("hetzner", "Hetzner Cloud"),
        ("digitalocean", "DigitalOcean"),
        ("xen", "Xen"),
    ];
    if let Some((_, name)) = known.iter().find(|(word, _)| text.contains(word)) {
        return Some((*name).to_owned());
    }
    if !kind.is_empty() {
        return Some(kind.to_owned());
    }
    flagged.then(|| "a hypervisor".to_owned())
}

fn container(cgroup: &str, docker: bool, podman: bool) -> Option<&'static str> {
    if podman {
        Some("in a Podman container")
    } else if docker || cgroup.contains("docker") {
        Some("in a Docker container")
    } else if cgroup.contains("kubepods") {
        Some("in a Kubernetes pod")
    } else if cgroup.contains("/lxc") {
        Some("in an LXC container")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const X86: &str = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD  EPYC 9B14\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\nmodel name\t: AMD EPYC 9B14\n";
    const ARM: &str = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n\nprocessor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
    const PI: &str = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n";

    #[test]
    fn the_model_is_read_on_x86_and_on_arm() {
        assert_eq!(cpu_model(X86).as_deref(), Some("AMD EPYC 9B14"));
        assert_eq!(cpu_model(ARM).as_deref(), Some("ARM Neoverse N1"));
        assert_eq!(
            cpu_model(PI).as_deref(),
            Some("Raspberry Pi 4 Model B Rev 1.4")
        );
        let unknown = ARM.replace("0xd0c", "0xfff");
        let named = cpu_model(&unknown);
        assert_eq!(named.as_deref(), Some("arm64 implementer 0x41 part 0xfff"));
        assert_eq!(cpu_model(""), None);
        assert_eq!((processors(X86), processors(ARM)), (2, 2));
    }

    #[test]
    fn what_holds_trials_apart_is_told_with_what_was_refused() {
        let mut offer = Offer {
            refused: vec!["mount /proc: Operation not permitted".to_owned()],
            facts: Vec::from_iter(fact("net.core.somaxconn", "65535")),
            ..Offer::default()
        };
        let text = |offer: &Offer| {
            let facts = isolation_facts(offer);
            facts
                .iter()
                .map(|fact| format!("{}: {}\n", fact.name, fact.value))
                .collect::<String>()
        };
        assert_eq!(
            text(&offer),
            "trials are held apart by: process groups and sub-reapers, the host's network\n\
             refused by this machine: mount /proc: Operation not permitted\n"
        );
        offer.refused.clear();
        offer.isolation.network_namespace = true;
        offer.isolation.process_namespace = true;
        assert_eq!(
            text(&offer),
            "trials are held apart by: a process namespace each, a network namespace each\n\
             net.core.somaxconn in trials: 65535\n"
        );
    }

    #[test]
    fn a_list_of_processors() {
        assert_eq!(cpu_list("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(cpu_list("0"), [0]);
        assert!(cpu_list("").is_empty());
        assert!(cpu_list("3-1,x").is_empty());
    }

    #[test]
    fn memory_and_distribution() {
        assert_eq!(
            memory_bytes("MemFree: 1 kB\nMemTotal:       16 kB\n"),
            16 * 1024
        );
        let text = "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n";
        assert_eq!(distribution(text), "Debian GNU/Linux 13 (trixie)");
    }

    #[test]
    fn limits_on_open_files() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 524288               files\n";
        let limits = open_files(text).expect("the line is there");
        assert_eq!(limits.value, "1024 524288");
    }

    #[test]
    fn hypervisors_and_containers() {
        let of = |vendor, product, flagged| hypervisor(vendor, product, "", flagged);
        assert_eq!(of("QEMU", "Standard PC", true).as_deref(), Some("KVM/QEMU"));
        assert_eq!(of("Dell Inc.", "PowerEdge", false), None);
        assert_eq!(of("", "", true).as_deref(), Some("a hypervisor"));
        assert_eq!(container("0::/", false, false), None);
        assert_eq!(
            container("0::/", true, false),
            Some("in a Docker container")
        );
    }

    #[test]
    fn only_what_is_done_counts_as_a_mitigation() {
        assert!(is_mitigated("Mitigation: PTE Inversion"));
        assert!(!is_mitigated("Not affected"));
        assert!(!is_mitigated("Vulnerable"));
    }

    #[test]
    fn this_machine_has_processors_memory_and_a_kernel() {
        let environment = collect(Environment::default());
        assert!(environment.cpus > 0 && environment.memory_bytes > 0);
        assert!(environment.kernel.starts_with("Linux "));
        assert!(
            environment
                .facts
                .iter()
                .any(|fact| fact.name == "net.core.somaxconn")
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_a_reader_panic(text in "[ -~\\n]{0,200}") {
            let _ = cpu_model(&text);
            let _ = cpu_list(&text);
            let _ = memory_bytes(&text);
            let _ = distribution(&text);
            let _ = open_files(&text);
        }
    }
}
