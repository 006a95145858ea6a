//! Whose which cores are: `--cores` and `[run] cores`, from what is typed to where processes run.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::{self, PRONY, command, prony, text};
use prony_engine::thread as own_thread;
use serde_json::{Value, json};

/// A server that writes down its own cores, and what else there is to ask.
const EXPERIMENT: &str = r#"title = "Cores"
[run]
blocks = 1
duration = "200ms"
warmup = "0ms"
CORES

[[subject]]
cmd = ["sh", "-c", "grep Cpus_allowed_list /proc/self/status > FOLDER/of-subject; exec PRONY serve --port {port}"]
name = "started"
MORE

[[workload]]
name = "hello"
request = { path = "/hello" }
connections = [1]
"#;

fn experiment(name: &str, cores: &str, more: &str) -> PathBuf {
    let folder = common::folder(name);
    let toml = EXPERIMENT
        .replace("CORES", cores)
        .replace("MORE", more)
        .replace("FOLDER", &folder.display().to_string())
        .replace("PRONY", PRONY);
    fs::write(folder.join("cores.toml"), toml).expect("an experiment");
    folder
}

/// Two cores that this process may use; `None`: it has one.
fn two() -> Option<(u32, u32)> {
    match own_thread::cores().expect("its cores").as_slice() {
        [first, second, ..] => Some((*first, *second)),
        _ => None,
    }
}

/// What a dry run with `more` prints to standard error, and its code.
fn said(folder: &Path, more: &[&str]) -> (Option<i32>, String) {
    let words = [&["run", "cores.toml", "--dry-run"], more].concat();
    let output = prony(folder, &words);
    (output.status.code(), text(&output.stderr))
}

fn plan(folder: &Path, more: &[&str]) -> Value {
    let words = [&["run", "cores.toml", "--dry-run", "--json"], more].concat();
    let output = prony(folder, &words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a plan")
}

#[test]
fn lists_that_are_none_are_refused_by_what_is_wrong_with_them() {
    let folder = experiment("cores-bad", "", "");
    for (typed, parts) in [
        ("0-3", &["`0-3` has 1 part", "a slash"][..]),
        ("0/", &["`0/` gives the generator no core"]),
        ("/0", &["`/0` gives the subject no core"]),
        (
            "0-1/1",
            &["core 1 is both the subject's and the generator's"],
        ),
        ("0/1/0", &["core 0 is both the subject's and the lab's"]),
        ("1-0/2", &["`1-0` runs backwards: `0-1`"]),
        ("a/b", &["`a` is neither a core nor a range", "0-3,8/4-7"]),
        ("0/4096", &["`4096` is no core"]),
        (
            "0/1022-1023",
            &[
                "--cores: cores 1022-1023 are not there: this machine has core",
                "lscpu",
            ],
        ),
    ] {
        let (code, err) = said(&folder, &["--cores", typed]);
        assert_eq!(code, Some(2), "{typed}: {err}");
        for part in parts {
            assert!(err.contains(part), "{typed}: {part}: {err}");
        }
    }
}

#[test]
fn a_file_is_told_at_its_line_what_this_machine_lacks() {
    let folder = experiment("cores-file", "cores = \"0/1023\"", "");
    let (code, err) = said(&folder, &[]);
    assert_eq!(code, Some(2), "{err}");
    for part in [
        "core 1023 is not there: this machine has core",
        "cores.toml:6:9",
        "`--cores` goes before what the file says",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    let folder = experiment("cores-file-bad", "cores = \"0-2/2\"", "");
    let (code, err) = said(&folder, &["--cores", "0/1"]);
    assert_eq!(code, Some(2), "{err}");
    for part in [
        "core 2 is both the subject's and the generator's",
        "cores.toml:6:9",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
}

#[test]
fn a_core_outside_of_the_affinity_is_not_used() {
    let Some((first, second)) = two() else {
        prony_testkit::skip("this process may use one core only");
        return;
    };
    let folder = experiment("cores-mask", "", "");
    own_thread::pin(&[first]).expect("one of its cores");
    let (code, err) = said(&folder, &["--cores", &format!("{second}/{first}")]);
    assert_eq!(code, Some(2), "{err}");
    let reason =
        format!("--cores: core {second} is there, but this process may use only core {first}");
    assert!(err.contains(&reason) && err.contains("taskset"), "{err}");
}

#[test]
fn a_flag_goes_before_the_file_and_a_dry_run_shows_both() {
    let Some((first, second)) = two() else {
        prony_testkit::skip("this process may use one core only");
        return;
    };
    let written = format!("cores = \"{first}/{second}\"");
    let folder = experiment("cores-flag", &written, "");
    let sides = |plan: &Value| {
        let cores = &plan["plan"]["cores"];
        (cores["subject"].clone(), cores["generator"].clone())
    };
    let of_file = plan(&folder, &[]);
    assert_eq!(sides(&of_file), (json!([first]), json!([second])));
    let flag = format!("{second}/{first}");
    let of_flag = plan(&folder, &["--cores", &flag]);
    assert_eq!(sides(&of_flag), (json!([second]), json!([first])));
    let repeats = json!(["run", "cores.toml", "--cores", flag]);
    assert_eq!(of_flag["plan"]["command"], repeats);
    let words = ["run", "cores.toml", "--dry-run", "--cores", &flag];
    let said = text(&prony(&folder, &words).stdout);
    let line = format!("  cores: subject {second}, generator {first}");
    assert!(said.contains(&line), "{said}");
}

/// Where the generator was seen, and the sampler that started it: their lists of cores.
#[derive(Default)]
struct Seen(Mutex<Option<(String, String)>>);

/// A server that looks, at each request, for the generator that sends it.
fn watching() -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let seen = Arc::new(Seen::default());
    let kept = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let kept = Arc::clone(&kept);
            // A client that goes away ends the thread, as it may.
            thread::spawn(move || drop(serve(stream, &kept)));
        }
    });
    (address, seen)
}

fn serve(stream: TcpStream, seen: &Seen) -> std::io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
        }
        {
            let mut seen = seen.0.lock().expect("no panic");
            *seen = seen.take().or_else(generator);
        }
        writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
    }
}

/// A field of `/proc/PID/status`.
fn status(pid: &str, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim_start_matches(':').trim().to_owned())
}

/// The cores of a generator below this process, and those of the process that started it.
fn generator() -> Option<(String, String)> {
    let own = std::process::id().to_string();
    let is_below = |pid: &str| {
        let above = |pid: &String| status(pid, "PPid");
        std::iter::successors(Some(pid.to_owned()), above).any(|pid| pid == own)
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().into_string().ok());
    let pid = pids.find(|pid| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.ends_with(b"\0__generate\0") && is_below(pid)
    })?;
    let cores = |pid: &str| status(pid, "Cpus_allowed_list");
    Some((cores(&pid)?, cores(&status(&pid, "PPid")?)?))
}

#[test]
fn subject_and_generator_run_on_the_cores_that_are_given_to_them() {
    let Some((first, second)) = two() else {
        prony_testkit::skip("this process may use one core only");
        return;
    };
    let (address, seen) = watching();
    let there = format!("[[subject]]\nurl = \"http://{address}\"\nname = \"there\"");
    let folder = experiment("cores-run", "", &there);
    let cores = format!("{second}/{first}");
    let words = ["run", "cores.toml", "--cores", &cores, "--out", "out"];
    let output = command(&folder, &words).output().expect("a run");
    // That a figure of so short a window is not valid on a busy machine is no fault.
    assert!(
        matches!(output.status.code(), Some(0 | 3)),
        "{}",
        text(&output.stderr)
    );
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
    let of_subject = read("of-subject");
    assert_eq!(of_subject.trim(), format!("Cpus_allowed_list:\t{second}"));
    let plan: Value = serde_json::from_str(&read("out/plan.json")).expect("the plan");
    let sides = (&plan["cores"]["subject"], &plan["cores"]["generator"]);
    assert_eq!(sides, (&json!([second]), &json!([first])));
    let seen = seen.0.lock().expect("no panic").clone();
    let (of_generator, of_sampler) = seen.expect("a generator was seen");
    assert_eq!(of_generator, first.to_string());
    // With two cores it is on the generator's; with more on another one, whose threads are the list.
    match plan["cores"].get("lab") {
        None => assert_eq!(of_sampler, of_generator),
        Some(lab) => assert!(
            of_sampler != of_generator && lab.as_array().is_some_and(|lab| !lab.is_empty()),
            "{of_sampler} of {lab}"
        ),
    }
    let trials = read("out/trials.jsonl");
    let trials = trials
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a trial"));
    let mut count = 0;
    for trial in trials {
        count += 1;
        assert_eq!(trial["isolation"]["pinned"], json!(true), "{trial}");
        for core in trial["cores"].as_array().expect("its cores") {
            let role = match core["core"].as_u64() {
                Some(number) if number == u64::from(second) => json!("subject"),
                Some(number) if number == u64::from(first) => json!("generator"),
                _ => Value::Null,
            };
            assert_eq!(core["role"], role, "{core}");
        }
    }
    assert_eq!(count, 2);
    let appendix = read("out/appendix.md");
    for (side, core) in [("subject", second), ("generator", first)] {
        let line = format!("| cores of the {side}");
        let found = appendix.lines().find(|said| said.starts_with(&line));
        let value = found.and_then(|said| said.split('|').nth(2)).map(str::trim);
        assert_eq!(value, Some(core.to_string().as_str()), "{appendix}");
    }
}
