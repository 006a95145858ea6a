//! `prony load --ssh` with agents that are processes of this machine: a program called `ssh` runs what it is told, in place of the real
//! one, with a home of its own for each host. And with the real one, where `sshd` is installed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use prony_testkit::{free_port, write_program};
use serde_json::Value;

use crate::common::{Ended, PRONY, folder, text, wait_for_port};
use crate::load_sources::Server;

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nHello";

/// What `ssh` is here: `down` cannot be reached, `denied` wants another key, `other` is another kind of machine; every other host is this machine.
const SSH: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do shift; done
host=$2 home=$(dirname "$0")/home-$2
case $host in
down) echo "ssh: connect to host down port 22: Connection refused" >&2; exit 255 ;;
denied) echo "me@denied: Permission denied (publickey)." >&2; exit 255 ;;
esac
mkdir -p "$home/bin"
printf '#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo sparc\n' > "$home/bin/uname"; chmod 755 "$home/bin/uname"
[ $host = other ] && PATH=$home/bin:$PATH
echo "Welcome to $host"
echo $$ > "$(dirname "$0")/pid-$host"
HOME=$home XDG_CACHE_HOME= exec sh -c "$3"
"#;

/// A folder with that `ssh`.
fn hosts(name: &str) -> PathBuf {
    let folder = folder(name);
    write_program(&folder.join("ssh"), SSH);
    folder
}

fn command(folder: &Path, words: &[&str]) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(PRONY);
    command
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", folder.display()))
        .arg("load")
        .args(words);
    command
}

fn load(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command(folder, words).output().expect("prony runs");
    (status.code(), format!("{}{}", text(&stdout), text(&stderr)))
}

fn report(file: &Path) -> Value {
    let bytes = fs::read(file).expect("the report");
    serde_json::from_slice(&bytes).expect("JSON")
}

/// That a run ended well; a machine on which an agent began late was busy with something else.
fn done(code: Option<i32>, said: &str) {
    assert!(
        code == Some(0) || code == Some(3) && said.contains("began late"),
        "{code:?}: {said}"
    );
}

/// Sum of a number over all agents.
fn sum(report: &Value, pointer: &str) -> u64 {
    let agents = report["agents"].as_array().expect("agents");
    let each = agents
        .iter()
        .map(|agent| agent.pointer(pointer).and_then(Value::as_u64));
    each.map(|number| number.expect("a number")).sum()
}

#[test]
fn counts_of_all_agents_are_the_servers_and_their_histograms_add_up() {
    let folder = hosts("agents-counts");
    let server = Server::start(HELLO);
    let json = folder.join("report.json");
    let words = [
        "--ssh",
        "a,b,a",
        "-n",
        "900",
        "-c",
        "12",
        "-R",
        "3000",
        "--arrival",
        "poisson",
        "--json",
        "report.json",
        &server.url,
        "-H",
        "X-Number: {counter}",
    ];
    let (code, said) = load(&folder, &words);
    done(code, &said);
    let report = report(&json);
    let requests = server.requests();
    assert_eq!(report["counts"]["sent"], 900, "{said}");
    assert_eq!(requests.len(), 900);
    let mut numbers: Vec<u64> = requests.iter().map(|request| number(request)).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=900).collect::<Vec<_>>());
    let names: Vec<_> = report["agents"]
        .as_array()
        .expect("agents")
        .iter()
        .map(|of| of["name"].clone())
        .collect();
    assert_eq!(names, ["a", "b", "a#2"]);
    for pointer in ["/counts/sent", "/counts/completed", "/latency_ns/count"] {
        assert_eq!(
            Some(sum(&report, pointer)),
            report.pointer(pointer).and_then(Value::as_u64),
            "{pointer}"
        );
    }
    // The quantiles of the whole are those of the sum of the agents' buckets.
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for agent in report["agents"].as_array().expect("agents") {
        for bucket in agent["histogram"]["counts"].as_array().expect("buckets") {
            *all.entry(bucket[0].as_u64().expect("a value")).or_default() +=
                bucket[1].as_u64().expect("a count");
        }
        let began = agent["began_after_ns"].as_i64().expect("when it began");
        let within = agent["clock_within_ns"]
            .as_u64()
            .expect("how well it is known");
        assert!(
            began.unsigned_abs() < 1_000_000_000 && within < 1_000_000_000,
            "{said}"
        );
    }
    let count: u64 = all.values().sum();
    let mut seen = 0;
    let middle = all.iter().find(|(_, of)| {
        seen += **of;
        seen * 2 >= count
    });
    assert_eq!(
        report["latency_ns"]["p50"].as_u64(),
        middle.map(|(value, _)| *value),
        "{said}"
    );
    assert!(said.contains("They began within"), "{said}");
}

fn number(request: &str) -> u64 {
    let line = request
        .lines()
        .find_map(|line| line.strip_prefix("X-Number: "));
    line.expect("the field").parse().expect("a number")
}

#[test]
fn rows_of_a_file_are_used_once_over_all_agents() {
    let folder = hosts("agents-rows");
    let server = Server::start(HELLO);
    let rows: String = (0..500).map(|n| format!("{n}\n")).collect();
    fs::write(folder.join("rows.csv"), format!("n\n{rows}")).expect("a file");
    let url = format!("{}/{{n}}", server.url);
    let words = [
        "--ssh",
        "a,b,c,d",
        "-c",
        "8",
        "-t",
        "8",
        "--data",
        "rows.csv",
        "--data-order",
        "once",
        "-d",
        "60s",
        &url,
    ];
    let (code, said) = load(&folder, &words);
    done(code, &said);
    let mut seen: Vec<u32> = server
        .lines()
        .iter()
        .map(|line| line.trim_start_matches("GET /").parse().expect("a row"))
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..500).collect::<Vec<_>>());
}

#[test]
fn a_host_that_cannot_be_an_agent_is_told_of_in_one_line() {
    let folder = hosts("agents-refused");
    let server = Server::start(HELLO);
    for (host, why) in [
        (
            "down",
            "agent down: ssh: connect to host down port 22: Connection refused",
        ),
        (
            "denied",
            "agent denied: me@denied: Permission denied (publickey).",
        ),
        (
            "other",
            "agent other: it is Linux/sparc, and this program is for Linux/",
        ),
    ] {
        let (code, said) = load(
            &folder,
            &[
                "--ssh",
                &format!("a,{host}"),
                "-c",
                "4",
                "-d",
                "1s",
                &server.url,
            ],
        );
        assert_eq!(code, Some(3), "{said}");
        assert!(
            said.lines()
                .any(|line| line.starts_with(&format!("prony: {why}"))),
            "{host}: {said}"
        );
    }
    assert!(server.requests().is_empty());
    let (code, said) = load(&folder, &["--ssh", "a,b", "-c", "1", &server.url]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = load(
        &folder,
        &["--ssh", "a", "-c", "2", "-d", "1s", "http://127.0.0.1:1/"],
    );
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("agent a: no connection to 127.0.0.1:1 could be opened"),
        "{said}"
    );
}

/// The process of the agent on `host` is there once its load has begun, which the server sees.
#[test]
fn an_agent_that_is_killed_is_named_and_what_was_measured_is_kept() {
    let folder = hosts("agents-killed");
    let json = folder.join("report.json");
    let of = folder.clone();
    let kills = std::sync::Once::new();
    let seen = std::sync::atomic::AtomicUsize::new(0);
    // After a while, in the middle of the load.
    let server = Server::answering(move |_| {
        if seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 3_000 {
            kills.call_once(|| kill(&of, "b"));
        }
        HELLO
    });
    let words = [
        "--ssh",
        "a,b",
        "-c",
        "8",
        "-d",
        "600s",
        "-R",
        "1000",
        "--json",
        "report.json",
        &server.url,
    ];
    let (code, said) = load(&folder, &words);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("b was lost: "), "{said}");
    let report = report(&json);
    let sent = report["counts"]["sent"].as_u64().expect("a count");
    // Of the one that was killed there is what it had told.
    let got = server.requests().len() as u64;
    assert!(
        sent <= got && sent + 2_000 >= got && sent > 1_000,
        "{sent} of {got}"
    );
    assert_eq!(sum(&report, "/counts/sent"), sent);
    assert!(report["agents"][0].get("lost").is_none(), "{said}");
    // The rate is that of the time until then, and not of the ten minutes that were asked for.
    let rate = report["rate_per_s"].as_f64().expect("a rate");
    assert!((200.0..1_100.0).contains(&rate), "{said}");
}

/// Ctrl-C reaches the controller alone: what all have done until then is whole.
#[test]
fn an_interrupted_load_has_what_all_agents_did() {
    let folder = hosts("agents-interrupted");
    let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
    let seen = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::answering(move |_| {
        if seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 500 {
            let _ = begun.try_send(());
        }
        HELLO
    });
    let words = [
        "--ssh",
        "a,b",
        "-c",
        "4",
        "-d",
        "600s",
        "-R",
        "1000",
        "--json",
        "report.json",
        &server.url,
    ];
    let mut controller = command(&folder, &words);
    controller
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let mut controller = controller.spawn().expect("prony runs");
    has_begun
        .recv_timeout(Duration::from_secs(60))
        .expect("requests");
    let group = format!("-{}", controller.id());
    let told = Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(told.expect("kill runs").success());
    assert_eq!(controller.wait().expect("it has ended").code(), Some(130));
    let report = report(&folder.join("report.json"));
    assert_eq!(report["counts"]["sent"], server.requests().len());
    assert_eq!(report["counts"]["abandoned"], 0, "{report}");
}

fn kill(folder: &Path, host: &str) {
    let id = fs::read_to_string(folder.join(format!("pid-{host}"))).expect("its id");
    let killed = Command::new("kill").args(["-9", id.trim()]).status();
    assert!(killed.expect("kill runs").success());
}

#[test]
fn agents_end_with_their_controller() {
    let folder = hosts("agents-alone");
    let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
    let server = Server::answering(move |_| {
        let _ = begun.try_send(());
        HELLO
    });
    let words = ["--ssh", "a,b", "-c", "4", "-d", "600s", &server.url];
    let mut controller = command(&folder, &words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("prony runs");
    has_begun
        .recv_timeout(Duration::from_secs(60))
        .expect("a request");
    controller.kill().expect("it is there");
    controller.wait().expect("it has ended");
    for host in ["a", "b"] {
        let id = fs::read_to_string(folder.join(format!("pid-{host}"))).expect("its id");
        let place = Path::new("/proc").join(id.trim());
        // Nobody waits for an orphan but init: what is left of it is no process that runs.
        let deadline = Instant::now() + Duration::from_secs(60);
        while fs::read_to_string(place.join("stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(
                Instant::now() < deadline,
                "the agent on {host} is still there"
            );
            thread::yield_now();
        }
    }
}

/// A server of SSH on this machine, for whoever has the key, and the words by which `ssh` reaches it.
struct Sshd {
    folder: PathBuf,
    port: u16,
    _server: Ended,
}

impl Sshd {
    fn start(folder: &Path, sshd: &Path) -> Sshd {
        let key = |name: &str| {
            let words = ["-q", "-t", "ed25519", "-N", "", "-f", name];
            let made = Command::new("ssh-keygen")
                .args(words)
                .current_dir(folder)
                .status();
            assert!(made.expect("ssh-keygen runs").success());
        };
        ["host", "user", "stranger"].into_iter().for_each(key);
        fs::copy(folder.join("user.pub"), folder.join("authorized")).expect("the key");
        let port = free_port();
        // As root it wants a folder that its package makes when it is started as a service.
        let _ = fs::create_dir_all("/run/sshd");
        let at = |name: &str| folder.join(name).display().to_string();
        let settings = [
            format!("HostKey={}", at("host")),
            format!("AuthorizedKeysFile={}", at("authorized")),
            format!("PidFile={}", at("pid")),
            "ListenAddress=127.0.0.1".to_owned(),
            "StrictModes=no".to_owned(),
            "UsePAM=no".to_owned(),
            "AcceptEnv=XDG_CACHE_HOME".to_owned(),
        ];
        let mut command = Command::new(sshd);
        command.args(["-D", "-e", "-f", "/dev/null", "-p", &port.to_string()]);
        command.args(settings.iter().flat_map(|of| ["-o", of.as_str()]));
        let errors = fs::File::create(folder.join("sshd.log")).expect("a file");
        let server = Ended::start(command.stderr(errors));
        wait_for_port(port);
        let sshd = Sshd {
            folder: folder.to_owned(),
            port,
            _server: server,
        };
        sshd.reach("user", "host");
        sshd
    }

    /// Has `ssh` use this key, and know the host by that one.
    fn reach(&self, key: &str, host_key: &str) {
        let (folder, port) = (self.folder.display(), self.port);
        let public =
            fs::read_to_string(self.folder.join(format!("{host_key}.pub"))).expect("a key");
        let known = format!("[127.0.0.1]:{port} {public}");
        fs::write(self.folder.join("known"), known).expect("a file");
        let config = format!(
            "Host gen*\n HostName 127.0.0.1\n Port {port}\n IdentityFile {folder}/{key}\n IdentitiesOnly yes\n \
             UserKnownHostsFile {folder}/known\n GlobalKnownHostsFile /dev/null\n StrictHostKeyChecking yes\n \
             SetEnv XDG_CACHE_HOME={folder}/cache\n"
        );
        fs::write(self.folder.join("config"), config).expect("a file");
        let real = prony_testkit::find("ssh").expect("it comes with sshd");
        let text = format!(
            "#!/bin/sh\nexec {} -F {folder}/config \"$@\"\n",
            real.display()
        );
        write_program(&self.folder.join("ssh"), &text);
    }
}

#[test]
fn the_real_ssh_brings_the_program_once_and_says_what_is_wrong() {
    let Some(sshd) = prony_testkit::need("sshd") else {
        return;
    };
    let folder = folder("agents-sshd");
    let sshd = Sshd::start(&folder, &sshd);
    let server = Server::start(HELLO);
    let words = [
        "--ssh",
        "gen1,gen2",
        "-n",
        "400",
        "-c",
        "4",
        "--json",
        "report.json",
        &server.url,
    ];
    for time in ["first", "again"] {
        let (code, said) = load(&folder, &words);
        let log = fs::read_to_string(folder.join("sshd.log")).unwrap_or_default();
        if log.contains("account is locked") {
            prony_testkit::skip("an account that sshd lets in without PAM");
            return;
        }
        done(code, &format!("{time}: {said}{log}"));
        assert_eq!(server.requests().len(), 400, "{time}");
        assert_eq!(
            sum(&report(&folder.join("report.json")), "/counts/completed"),
            400,
            "{time}"
        );
    }
    sshd.reach("stranger", "host");
    let (code, said) = load(&folder, &words);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("Permission denied (publickey"), "{said}");
    sshd.reach("user", "stranger");
    let (code, said) = load(&folder, &words);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("Host key verification failed."), "{said}");
    assert!(server.requests().is_empty());
}
