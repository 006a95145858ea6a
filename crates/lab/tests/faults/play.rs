//! What this binary is when it is not the test: the generator, and one run.

use std::io::{Write, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use prony_base::Instant;
use prony_lab::launch::Wanted;
use prony_lab::profile::Means;
use prony_lab::run::{self, Event, Options, Wrk};
use prony_lab::supervise::Interrupt;
use prony_load::Observer;
use prony_record::{Environment, GeneratorEvent, LoadSpec, Plan, SCHEMA, Turn, Turned};
use serde::Deserialize as _;

struct Printer {
    input: serde_json::Deserializer<serde_json::de::IoRead<std::io::Stdin>>,
}

impl Printer {
    fn print(event: &GeneratorEvent) {
        let line = serde_json::to_string(event).expect("an event is JSON");
        writeln!(stdout(), "{line}").expect("the trial reads");
    }
}

impl Observer for Printer {
    fn connected(&mut self, start: Instant, end: Instant) {
        Printer::print(&GeneratorEvent::Connected {
            window_start_ns: start.0,
            window_end_ns: end.0,
        });
    }

    fn turn(&mut self) -> Option<Turn> {
        Turn::deserialize(&mut self.input).ok()
    }

    fn turned(&mut self, turned: &Turned) {
        Printer::print(&GeneratorEvent::Turned(*turned));
    }
}

/// The cores on which process `pid` may run.
fn cores_of(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let cores = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    cores.unwrap_or_default().trim().to_owned()
}

/// `__generate`: says on standard error where it runs, and where the sampler, which started it.
pub fn generate() -> ExitCode {
    let mut input = serde_json::Deserializer::from_reader(stdin());
    let spec = LoadSpec::deserialize(&mut input).expect("a specification");
    // Only now: the sampler is on the generator's cores while it starts the generator, and then writes this.
    let pids = [std::process::id(), std::os::unix::process::parent_id()];
    let [own, sampler] = pids.map(cores_of);
    eprintln!("generator on {own}, sampler on {sampler}");
    match prony_load::run(&spec, &mut Printer { input }) {
        Ok(outcome) => {
            Printer::print(&GeneratorEvent::Finished {
                report: outcome.report,
                histogram: outcome.histogram,
                search: None,
            });
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// `__allocate MIB`: uses so much memory and prints its own peak in KiB.
pub fn allocate(words: &[String]) -> ExitCode {
    let mib: usize = words[0].parse().expect("a number");
    let memory = vec![1_u8; mib << 20];
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    std::hint::black_box(&memory);
    let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = mark.and_then(|mark| mark.split_ascii_whitespace().next());
    println!("{}", number.expect("a mark"));
    ExitCode::SUCCESS
}

/// What a run profiles with: `profile` is what this machine permits, `no-perf` the same where perf is refused, and
/// `no-strace` where strace is not there either.
fn profile(has: &dyn Fn(&str) -> bool) -> Option<Means> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let refused = || std::io::Error::from_raw_os_error(13);
    let strace = std::env::split_paths(&path)
        .map(|folder| folder.join("strace"))
        .find(|file| file.is_file() && !has("no-strace"));
    match (has("profile"), has("no-perf")) {
        (false, _) => None,
        (true, false) => Some(Means::find(&path)),
        (true, true) => Some(Means::new(&|_| Err(refused()), &|| Err(refused()), strace)),
    }
}

/// `__run DIR PLAN [resume] [processes] [network] [wrk] [profile] [no-perf] [no-strace]`: one run; prints a line as each
/// trial begins and ends. SIGINT ends it in good order.
pub fn run(words: &[String]) -> ExitCode {
    let has = |word: &str| words.iter().any(|given| given == word);
    let plan: Plan =
        serde_json::from_slice(&std::fs::read(&words[1]).expect("a plan")).expect("a plan");
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&flag)).expect("a handler");
    let options = Options {
        dir: PathBuf::from(&words[0]),
        resume: has("resume"),
        prony: std::env::current_exe().expect("this binary"),
        wanted: Wanted {
            processes: has("processes"),
            network: has("network"),
        },
        driver: "epoll".to_owned(),
        wrk: std::env::var_os("PATH")
            .filter(|_| has("wrk"))
            .and_then(|path| Wrk::find(&path)),
        profile: profile(&has),
        again: true,
        check_only: false,
        interrupt: Interrupt::by_flag(flag),
    };
    let environment = Environment {
        schema: SCHEMA,
        ..Environment::default()
    };
    let mut tell = |event: Event<'_>| match event {
        Event::Started { cell, block, .. } => println!("started {block} {}", cell.id),
        Event::Phase(phase) => println!("phase {phase:?}"),
        Event::Ended { trial, .. } => println!("ended {} {}", trial.block, trial.cell),
        Event::Begun { .. } | Event::LeftOut { .. } => {}
    };
    match run::run(&plan, environment, &options, &mut tell) {
        Ok(outcome) => {
            println!("done {outcome:?}");
            ExitCode::from(if outcome.interrupted { 130 } else { 0 })
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
