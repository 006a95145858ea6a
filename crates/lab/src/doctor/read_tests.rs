use std::fs;

use prony_record::MachineState::{Healthy, Spoils, Unknown};
use tempfile::TempDir;

use super::*;

/// A machine made up of files.
fn machine(files: &[(&str, &str)]) -> (TempDir, Tree) {
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::at(folder.path());
    for (path, text) in files {
        let place = tree.place(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, format!("{text}\n")).unwrap();
    }
    (folder, tree)
}

const CPU: &str = "/sys/devices/system/cpu";

fn governors(each: [&str; 2]) -> Vec<(String, String)> {
    let of = |at: usize| format!("{CPU}/cpu{at}/cpufreq/scaling_governor");
    vec![(of(0), each[0].to_owned()), (of(1), each[1].to_owned())]
}

/// A check, the files of an ailing machine, those of its healthy twin, and what is found on the first.
type Twins = (
    ReadCheck,
    &'static [(&'static str, &'static str)],
    &'static [(&'static str, &'static str)],
    &'static str,
);

const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 ";
const TWINS: [Twins; 15] = [
    (
        turbo,
        &[("/sys/devices/system/cpu/intel_pstate/no_turbo", "0")],
        &[("/sys/devices/system/cpu/intel_pstate/no_turbo", "1")],
        "on (/sys/devices/system/cpu/intel_pstate/no_turbo is 0)",
    ),
    (
        turbo,
        &[("/sys/devices/system/cpu/cpufreq/boost", "1")],
        &[("/sys/devices/system/cpu/cpufreq/boost", "0")],
        "on (/sys/devices/system/cpu/cpufreq/boost is 1)",
    ),
    (
        smt,
        &[("/sys/devices/system/cpu/smt/active", "1")],
        &[("/sys/devices/system/cpu/smt/active", "0")],
        "on",
    ),
    (
        clocksource,
        &[
            (
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                "hpet",
            ),
            (
                "/sys/devices/system/clocksource/clocksource0/available_clocksource",
                "hpet tsc",
            ),
        ],
        &[(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            "tsc",
        )],
        "hpet",
    ),
    (
        interrupts,
        &[("/proc/7/comm", "irqbalance"), ("/proc/uptime", "1 1")],
        &[("/proc/7/comm", "sshd"), ("/proc/fs/comm", "irqbalance")],
        "irqbalance runs",
    ),
    (
        quota,
        &[
            ("/proc/self/cgroup", "0::/a/b"),
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000"),
            ("/sys/fs/cgroup/a/cpu.max", "150000 100000"),
        ],
        &[
            ("/proc/self/cgroup", "0::/a/b"),
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000"),
        ],
        "1.5 cores, by /sys/fs/cgroup/a/cpu.max",
    ),
    // In a container the group is the root of what is seen.
    (
        quota,
        &[
            ("/proc/self/cgroup", "0::/"),
            ("/sys/fs/cgroup/cpu.max", "50000 100000"),
        ],
        &[
            ("/proc/self/cgroup", "0::/"),
            ("/sys/fs/cgroup/cpu.max", "max 100000"),
        ],
        "0.5 cores, by /sys/fs/cgroup/cpu.max",
    ),
    (
        quota,
        &[
            ("/proc/self/cgroup", "4:memory:/x\n3:cpuacct,cpu:/x"),
            ("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "200000"),
            ("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000"),
        ],
        &[
            ("/proc/self/cgroup", "3:cpu:/x"),
            ("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1"),
            ("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000"),
        ],
        "2 cores, by /sys/fs/cgroup/cpu/x/cpu.cfs_quota_us",
    ),
    (
        io_uring,
        &[("/proc/sys/kernel/io_uring_disabled", "2")],
        &[("/proc/sys/kernel/io_uring_disabled", "0")],
        "for nobody",
    ),
    (
        io_uring,
        &[("/proc/sys/kernel/io_uring_disabled", "1")],
        &[("/proc/sys/kernel/io_uring_disabled", "0")],
        "only for the group of kernel.io_uring_group, and for root",
    ),
    (
        ports,
        &[("/proc/sys/net/ipv4/ip_local_port_range", "50000\t60000")],
        &[("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999")],
        "10001 (50000 to 60000)",
    ),
    (
        backlog,
        &[("/proc/sys/net/core/somaxconn", "128")],
        &[("/proc/sys/net/core/somaxconn", "4096")],
        "128",
    ),
    (
        battery,
        &[
            ("/sys/class/power_supply/AC/type", "Mains"),
            ("/sys/class/power_supply/BAT0/type", "Battery"),
            ("/sys/class/power_supply/BAT0/status", "Discharging"),
        ],
        &[
            ("/sys/class/power_supply/BAT0/type", "Battery"),
            ("/sys/class/power_supply/BAT0/status", "Charging"),
        ],
        "BAT0 is discharging",
    ),
    // A mouse may be empty.
    (
        battery,
        &[
            ("/sys/class/power_supply/BAT1/type", "Battery"),
            ("/sys/class/power_supply/BAT1/scope", "System"),
            ("/sys/class/power_supply/BAT1/status", "Discharging"),
        ],
        &[
            ("/sys/class/power_supply/hid-1/type", "Battery"),
            ("/sys/class/power_supply/hid-1/scope", "Device"),
            ("/sys/class/power_supply/hid-1/status", "Discharging"),
        ],
        "BAT1 is discharging",
    ),
    (
        clocksource,
        &[
            (
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                "acpi_pm",
            ),
            (
                "/sys/devices/system/clocksource/clocksource0/available_clocksource",
                "acpi_pm",
            ),
        ],
        &[(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            "kvm-clock",
        )],
        "acpi_pm",
    ),
];

#[test]
fn each_ailment_is_told_and_its_healthy_twin_is_not() {
    for (check, ailing, healthy, found) in TWINS {
        let (_kept, tree) = machine(ailing);
        let result = check(&tree).unwrap();
        assert_eq!(
            (result.state, result.found.as_str()),
            (Spoils, found),
            "{}",
            result.name
        );
        assert!(!result.effect.is_empty(), "{}", result.name);
        // What only limits is no matter of a document that stays below.
        assert_eq!(
            result.brief.is_empty(),
            result.name == "ports",
            "{}",
            result.name
        );
        let (_kept, tree) = machine(healthy);
        let result = check(&tree).unwrap();
        assert_eq!(result.state, Healthy, "{}: {}", result.name, result.found);
        assert!(
            result.brief.is_empty() && result.remedy.is_empty(),
            "{}",
            result.name
        );
    }
}

#[test]
fn a_governor_of_one_processor_is_enough() {
    let of = |each| {
        let files = governors(each);
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        let (_kept, tree) = machine(&files);
        governor(&tree).unwrap()
    };
    let result = of(["performance", "powersave"]);
    assert_eq!(
        (result.state, result.found.as_str()),
        (Spoils, "powersave on 1 of 2 processors")
    );
    assert_eq!(of(["performance", "performance"]).state, Healthy);
}

#[test]
fn descriptors_are_told_by_the_hard_limit() {
    let of = |hard: &str| {
        let text = format!("{LIMITS}{hard}               files");
        let (_kept, tree) = machine(&[("/proc/self/limits", &text)]);
        descriptors(&tree).unwrap()
    };
    assert_eq!(of("4096").state, Spoils);
    assert_eq!(of("524288").state, Healthy);
    assert_eq!(of("unlimited").state, Healthy);
    assert_eq!(of("").state, Healthy, "the word after it is then `files`");
}

#[test]
fn the_clock_that_would_be_faster_is_named_where_there_is_one() {
    let (check, ailing, ..) = TWINS[3];
    let (_kept, tree) = machine(ailing);
    assert!(
        check(&tree)
            .unwrap()
            .remedy
            .starts_with("echo tsc | sudo tee ")
    );
    let (check, ailing, ..) = TWINS[14];
    let (_kept, tree) = machine(ailing);
    assert_eq!(check(&tree).unwrap().remedy, "");
}

#[test]
fn nothing_was_guessed_where_nothing_can_be_read() {
    let (folder, tree) = machine(&[]);
    let root = folder.path().display().to_string();
    for check in all(&tree) {
        assert_eq!(check.state, Unknown, "{}", check.name);
        let (name, why) = (&check.name, &check.found);
        assert!(why.starts_with(&root), "{name}: {why}");
        assert!(
            why.contains("not there") || why.contains("is there"),
            "{name}: {why}"
        );
    }
}

#[test]
fn what_the_kernel_never_writes_is_unknown_and_no_panic() {
    for text in [
        "",
        "x",
        "-1",
        "18446744073709551615 18446744073709551615",
        "max",
        "0 0",
        "\u{0}",
    ] {
        let files = [
            "/sys/devices/system/cpu/smt/active",
            "/proc/self/cgroup",
            "/proc/self/limits",
            "/proc/sys/kernel/io_uring_disabled",
            "/proc/sys/net/ipv4/ip_local_port_range",
            "/proc/sys/net/core/somaxconn",
            "/sys/fs/cgroup/cpu.max",
            "/sys/class/power_supply/BAT0/type",
        ];
        let (_kept, tree) = machine(&files.map(|file| (file, text)));
        let checks = all(&tree);
        let of = |name: &str| checks.iter().find(|check| check.name == name).unwrap();
        for name in [
            "smt",
            "io_uring switch",
            "somaxconn",
            "descriptors",
            "cpu quota",
        ] {
            assert_eq!(
                of(name).state,
                Unknown,
                "{name} of {text:?}: {}",
                of(name).found
            );
        }
    }
}

#[test]
fn the_groups_above_limit_as_well() {
    assert_eq!(
        quota_files("0::/a/b\n"),
        [
            "/sys/fs/cgroup/a/b/cpu.max",
            "/sys/fs/cgroup/a/cpu.max",
            "/sys/fs/cgroup/cpu.max"
        ]
    );
    assert_eq!(
        quota_files("1:name=systemd:/\n2:cpu,cpuacct:/"),
        ["/sys/fs/cgroup/cpu/cpu.cfs_quota_us"]
    );
    assert!(quota_files("nonsense").is_empty());
}
