//! Subjects in root file systems of their own, made here of this binary, a shell and the libraries that they load.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;

use prony_lab::build::{BuildContext, BuildOutcome, Failed, Ready, build};
use prony_lab::launch::Wanted;
use prony_lab::subject::Subject;
use prony_lab::supervise::SupervisedLauncher;
use prony_record::{Outcome, PlannedSetting, PlannedSubject};

use crate::fixture::{FALLBACK, Fixture, Isolation, NAMESPACES, good, plan, trials_of};

const SUBJECT: &str = r#"
name = "rooted"
language = "test"
role = "server"
summary = "A server that only its root file system has"
endpoints = ["/ping", "/hello"]
[root]
dir = "rootfs"
[build]
cmd = "cat /marker >{build}/seen && echo $HOME >>{build}/seen && test ! -e /etc && echo a >/tmp/a && ! echo b 2>&1 >/marker"
inputs = []
[start]
cmd = ["/bin/server", "__serve", "{port}"]
[ready]
http = "/hello"
[version]
cmd = "cat /marker"
"#;

/// Writes to the machine, each by what it has already or by nothing, and lists what it sees of it.
const PROBE: &str = r#"
try() { if (eval "$2") 2>/dev/null; then echo "$1"; fi; }
p=/proc/sys/kernel/core_pattern; v=$(cat $p)
try "pattern written" 'echo "$v" >$p'
for f in /proc/sys/kernel/threads-max /proc/sysrq-trigger /proc/irq/default_smp_affinity /proc/fs/* /proc/bus/pci/*/* \
    /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/uevent_helper /sys/power/state /sys/fs/cgroup/cgroup.procs; do
    if [ -f "$f" ]; then try "open for writing: $f" ': >>"$f"'; fi
done
echo /dev/*
echo /dev/pts/* /dev/shm/* /sys/firmware/* /sys/kernel/debug/*
try "kernel's secrets" 'test -n "$(cat /proc/keys /proc/timer_list /proc/kcore | head -c 1)"'
try "null" 'echo a >/dev/null && test -z "$(cat /dev/null)"'
try "full" 'echo a >/dev/full'
try "shared" 'echo a >/dev/shm/a && test "$(cat /dev/shm/a)" = a'
try "standard input" 'test "$(echo a | cat /dev/stdin)" = a'
try "states" 'cat /proc/self/stat /sys/devices/system/cpu/online >/dev/null'
"#;

/// What it prints where nothing of the machine can be written.
const HARMLESS: &str = "\
/dev/fd /dev/full /dev/null /dev/ptmx /dev/pts /dev/random /dev/shm /dev/stderr /dev/stdin /dev/stdout /dev/tty /dev/urandom /dev/zero
/dev/pts/ptmx /dev/shm/* /sys/firmware/* /sys/kernel/debug/*
null
shared
standard input
states
";

/// Name, what holds trials apart, and what is done.
pub const TESTS: [(&str, Isolation, fn()); 5] = [
    (
        "namespaces::user_0_without_capabilities_wrote_to_the_machine",
        NAMESPACES,
        user_0_without_capabilities_wrote_to_the_machine,
    ),
    (
        "namespaces::a_process_outside_led_out_of_a_root",
        NAMESPACES,
        a_process_outside_led_out_of_a_root,
    ),
    (
        "namespaces::mounts_below_what_is_masked_failed_every_root",
        NAMESPACES,
        mounts_below_what_is_masked_failed_every_root,
    ),
    (
        "namespaces::a_subject_is_built_and_measured_in_its_root",
        NAMESPACES,
        a_subject_is_built_and_measured_in_its_root,
    ),
    (
        "fallback::without_a_namespace_no_root_is_entered",
        FALLBACK,
        without_a_namespace_no_root_is_entered,
    ),
];

/// Whether one may be entered here; where not, the test is recorded as skipped.
fn may() -> bool {
    let may = prony_lab::root::allowed();
    if !may {
        prony_testkit::skip_without("root", "only root may enter a root file system");
    }
    may
}

/// Copies a program to `to` below `root`, and the libraries that it loads to where they are.
fn copy(program: &Path, root: &Path, to: &str) {
    let place = |from: &Path, to: &str| {
        let to = root.join(to.trim_start_matches('/'));
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        std::fs::copy(from, to).expect("a copy");
    };
    place(program, to);
    let listed = Command::new("ldd").arg(program).output().expect("ldd");
    let listed = String::from_utf8(listed.stdout).expect("paths");
    for library in listed
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
    {
        place(Path::new(library), library);
    }
}

fn fixture(isolation: Isolation) -> (Fixture, Subject) {
    let fixture = Fixture::new(isolation);
    let folder = fixture.folder.join("rooted");
    let root = folder.join("rootfs");
    std::fs::create_dir_all(&root).expect("a folder");
    let own = std::env::current_exe().expect("this binary");
    copy(&own, &root, "/bin/server");
    copy(
        &Path::new("/bin/sh").canonicalize().expect("a shell"),
        &root,
        "/bin/sh",
    );
    copy(
        &Path::new("/bin/cat").canonicalize().expect("cat"),
        &root,
        "/bin/cat",
    );
    std::fs::write(root.join("marker"), "inside\n").expect("a file");
    std::fs::write(folder.join("subject.toml"), SUBJECT).expect("a file");
    let subject = Subject::load(&folder).expect("a subject");
    (fixture, subject)
}

fn built(fixture: &Fixture, subject: &Subject, isolation: Isolation) -> Result<Ready, Failed> {
    let own = std::env::current_exe().expect("this binary");
    let wanted = Wanted {
        processes: isolation.contains(&"processes"),
        network: false,
    };
    let launcher = SupervisedLauncher::new(own.clone(), wanted);
    let context = BuildContext {
        cache: &fixture.folder.join("cache"),
        originals: None,
        prony: &own,
        builds_max: prony_lab::build::KEPT,
        cancel: &AtomicBool::new(false),
        only_kept: false,
    };
    match build(subject, &context, &launcher) {
        BuildOutcome::Ready(ready) => Ok(ready),
        BuildOutcome::Failed(failed) => Err(failed),
    }
}

/// The subject of a plan, in its root file system.
fn planned(subject: &Subject, ready: &Ready, start: &[&str]) -> PlannedSubject {
    PlannedSubject {
        id: "test/rooted".to_owned(),
        name: "rooted".to_owned(),
        source: subject.source.clone(),
        start: start.iter().map(|word| (*word).to_owned()).collect(),
        root_dir: ready.root_dir.clone(),
        build_dir: ready.dir.clone(),
        env: std::collections::BTreeMap::new(),
        ..good()
    }
}

/// It is built in its root file system, which nothing of the build or of the trial changes, and measured in it.
fn a_subject_is_built_and_measured_in_its_root() {
    if !may() {
        return;
    }
    let isolation = NAMESPACES;
    let (fixture, subject) = fixture(isolation);
    let ready = built(&fixture, &subject, isolation).expect("a build");
    assert_eq!(
        ready.version,
        format!(
            "inside, in a root file system of the folder {}/rooted/rootfs",
            fixture.folder.display()
        )
    );
    let seen = std::fs::read_to_string(Path::new(&ready.dir).join("seen")).expect("what it saw");
    assert_eq!(seen, "inside\n/tmp\n");
    assert_eq!(
        std::fs::read_to_string(Path::new(&ready.root_dir).join("marker"))
            .ok()
            .as_deref(),
        Some("inside\n")
    );
    assert!(!Path::new(&ready.root_dir).join("tmp/a").exists());
    // Making places for mounts in the cached copy leaves the folder that it was copied from as it was.
    let origin = fixture.folder.join("rooted/rootfs");
    assert!(!origin.join("proc").exists() && Path::new(&ready.root_dir).join("proc").exists());
    let start: Vec<&str> = subject.start.iter().map(String::as_str).collect();
    let planned = planned(&subject, &ready, &start);
    let run = fixture.run(&plan(vec![planned], 1, 300), &[]);
    let trials = trials_of(&run, "rooted");
    assert!(
        matches!(trials.as_slice(), [trial] if trial.outcome == Outcome::Measured),
        "{trials:#?}"
    );
    let load = trials[0].load.as_ref().expect("a report");
    assert!(load.completed > 0 && load.errors.is_empty(), "{load:#?}");
    let again = built(&fixture, &subject, isolation).expect("a build");
    assert!(again.cached && again.root_dir == ready.root_dir);
    std::fs::write(origin.join("more"), "").expect("a file");
    let other = built(&fixture, &subject, isolation).expect("a build");
    assert!(!other.cached && other.root_dir != ready.root_dir);
}

/// It rewrote the host's `/proc/sys/kernel/core_pattern`. The lab itself may still set what is of a trial's own network.
fn user_0_without_capabilities_wrote_to_the_machine() {
    const SETTING: &str = "net.ipv4.tcp_abort_on_overflow";
    if !may() {
        return;
    }
    let (fixture, mut subject) = fixture(NAMESPACES);
    let folder = fixture.folder.join("rooted/rootfs");
    std::fs::write(folder.join("probe"), PROBE).expect("a file");
    copy(
        &Path::new("/usr/bin/head").canonicalize().expect("head"),
        &folder,
        "/bin/head",
    );
    let build = subject.build.as_mut().expect("a build");
    build.cmd = "sh /probe >{build}/seen".to_owned();
    let ready = built(&fixture, &subject, NAMESPACES).expect("a build");
    let seen = std::fs::read_to_string(Path::new(&ready.dir).join("seen")).expect("what it saw");
    assert_eq!(seen, HARMLESS, "in a build");
    let start = format!(
        "echo set to $(cat /proc/sys/{}) >&2; sh /probe >&2; exec /bin/server __serve {{port}}",
        SETTING.replace('.', "/")
    );
    let planned = planned(&subject, &ready, &["/bin/sh", "-c", &start]);
    let mut plan = plan(vec![planned], 1, 300);
    plan.settings = vec![PlannedSetting {
        name: "overflow".to_owned(),
        values: vec!["1".to_owned()],
        sysctl: Some(SETTING.to_owned()),
        ..PlannedSetting::default()
    }];
    plan.cells[0].settings = [("overflow".to_owned(), "1".to_owned())].into();
    let run = fixture.run(&plan, &[]);
    let trials = trials_of(&run, "rooted");
    assert!(
        matches!(trials.as_slice(), [trial] if trial.outcome == Outcome::Measured),
        "{trials:#?}"
    );
    let logs = logs(&fixture);
    assert!(
        logs.contains(&format!("set to 1\n{HARMLESS}")),
        "in a trial: {logs}"
    );
}

/// `/proc/PID/root` of a backing without a root file system led a subject out of its own.
fn a_process_outside_led_out_of_a_root() {
    const SEARCH: &str = "for process in /proc/[0-9]*; do
            test ! -e $process/root/etc/passwd || echo out by $process
            test ! -e $process/root/marker || echo looked into one
        done >&2; exec /bin/server __serve \"$1\"";
    if !may() {
        return;
    }
    let (fixture, subject) = fixture(NAMESPACES);
    let ready = built(&fixture, &subject, NAMESPACES).expect("a build");
    let words = ["/bin/sh", "-c", SEARCH, "sh", "{port}"];
    let planned = planned(&subject, &ready, &words);
    let mut plan = plan(vec![planned], 1, 300);
    let outside = PlannedSubject {
        id: "test/outside".to_owned(),
        ..good()
    };
    plan.cells[0].around.backings = vec![outside.id.clone()];
    plan.backings.push(outside);
    let run = fixture.run(&plan, &[]);
    assert_eq!(trials_of(&run, "rooted")[0].outcome, Outcome::Measured);
    let logs = logs(&fixture);
    assert!(logs.contains("looked into one\n"), "into itself: {logs}");
    assert!(!logs.contains("out by"), "{logs}");
}

/// What all processes of the fixture's runs wrote.
fn logs(fixture: &Fixture) -> String {
    let logs = std::fs::read_dir(fixture.dir().join("logs")).expect("logs");
    let logs = logs.map(|entry| std::fs::read_to_string(entry.expect("a log").path()));
    logs.map(|text| text.expect("text")).collect()
}

/// A machine with UEFI has a mount in `/sys/firmware`: one there, and one that the machine covers itself, do no harm.
fn mounts_below_what_is_masked_failed_every_root() {
    const COVERED: &str = "cd /sys/firmware && for name in covered below; do
            mount -t tmpfs $name . && cd /sys/firmware && mkdir $name && mount -t tmpfs $name $name || exit 1
        done
        cd \"$1\" && exec \"$2\" namespaces::user_0_without_capabilities";
    if !may() {
        return;
    }
    let tested = Command::new("unshare")
        .args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            COVERED,
            "sh",
        ])
        .args([
            std::env::current_dir().expect("a folder"),
            std::env::current_exe().expect("this binary"),
        ])
        .output()
        .expect("unshare");
    let text = String::from_utf8_lossy(&tested.stdout);
    assert!(text.contains("1 passed"), "{text}");
}

/// Without a mount namespace nothing is mounted, and the reason is named.
fn without_a_namespace_no_root_is_entered() {
    if !may() {
        return;
    }
    let (fixture, subject) = fixture(FALLBACK);
    let failed = built(&fixture, &subject, FALLBACK).expect_err("no build");
    assert!(
        failed.reason.contains("a process namespace of its own"),
        "{failed:?}"
    );
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    assert!(
        !mounts.contains(&fixture.folder.display().to_string()),
        "{mounts}"
    );
}

/// `__serve PORT`: answers each connection in a thread of its own.
pub fn serve(words: &[String]) -> ExitCode {
    let port: u16 = words[0].parse().expect("a port");
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port");
    for stream in listener.incoming() {
        let stream = stream.expect("a connection");
        // A connection that breaks off is the other side's to count.
        std::thread::spawn(move || answer(stream));
    }
    ExitCode::SUCCESS
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let lower = head.to_ascii_lowercase();
        let length = lower
            .split("content-length:")
            .nth(1)
            .and_then(|rest| rest.lines().next()?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        let kind = if body.is_empty() {
            "text/plain"
        } else {
            "application/json"
        };
        if body.is_empty() {
            body = b"Hello, World!".to_vec();
        }
        let fields = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut whole = fields.into_bytes();
        if !head.starts_with("HEAD ") {
            whole.extend(body);
        }
        stream.write_all(&whole)?;
        if lower.contains("connection: close") {
            return Ok(());
        }
    }
}
