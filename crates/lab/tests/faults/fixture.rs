//! What the tests stand on: plans with the test subjects, runs in a process of their
//! own, and the search for processes that are left.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use prony_lab::store::{self, Stored};
use prony_record::{
    Arrival, Cell, Cores, Plan, PlannedSubject, PlannedWorkload, ReadySign, RequestTemplate,
    SCHEMA, Source, StopRule, Trial,
};

/// The variable by which every process of one test is found.
const MARK: &str = "PRONY_TEST_MARK";

/// What holds the trials of a test apart.
pub type Isolation = &'static [&'static str];
pub const NAMESPACES: Isolation = &["processes", "network"];
pub const FALLBACK: Isolation = &[];
/// What a test needs and this machine lacks, by its name among the exceptions, and how that was seen.
pub type Missing = (&'static str, String);

/// A folder of one test, with the mark of its processes.
pub struct Fixture {
    pub folder: PathBuf,
    mark: String,
    isolation: Isolation,
    /// Words before the command that runs it as another user.
    pub user: Vec<String>,
}

impl Fixture {
    pub fn new(isolation: Isolation) -> Fixture {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("faults-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(format!("prony-{mark}"));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        Fixture {
            folder,
            mark,
            isolation,
            user: Vec::new(),
        }
    }

    pub fn dir(&self) -> PathBuf {
        self.folder.join("run")
    }

    /// The variable that marks the processes of this test.
    pub fn mark(&self) -> (String, String) {
        (MARK.to_owned(), self.mark.clone())
    }

    pub fn read(&self) -> Stored {
        store::read(&self.dir()).expect("a run directory")
    }

    /// Starts a run in a process of its own, as `prony run` is one.
    pub fn start(&self, plan: &Plan, more: &[&str]) -> Child {
        let file = self.folder.join("the.plan");
        std::fs::write(&file, serde_json::to_vec(plan).expect("a plan is JSON")).expect("a plan");
        let own = std::env::current_exe().expect("this binary");
        let mut words = self.user.clone();
        words.push(own.display().to_string());
        Command::new(&words[0])
            .args(&words[1..])
            .arg("__run")
            .arg(self.dir())
            .arg(&file)
            .args(self.isolation)
            .args(more)
            .env(MARK, &self.mark)
            .env("PATH", path())
            // Without it what the run starts would not have the mark, and nothing would be found to be left.
            .env("PRONY_PASS_ENV", MARK)
            // What a killed run leaves in the temporary folder goes with the test's.
            .env("TMPDIR", &self.folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this binary runs")
    }

    /// Does a whole run and reads it back.
    pub fn run(&self, plan: &Plan, more: &[&str]) -> Stored {
        let output = self.start(plan, more).wait_with_output().expect("a run");
        assert!(output.status.success(), "{output:?}");
        self.none_left();
        self.read()
    }

    /// Processes with this test's mark in their environment: number and command.
    pub fn left(&self) -> Vec<(u32, String)> {
        let mark = format!("{MARK}={}\0", self.mark);
        let folders = std::fs::read_dir("/proc").expect("/proc").flatten();
        let marked = folders.filter(|folder| {
            let environ = std::fs::read(folder.path().join("environ")).unwrap_or_default();
            environ
                .windows(mark.len())
                .any(|window| window == mark.as_bytes())
        });
        let named = |folder: std::fs::DirEntry| {
            let command = std::fs::read(folder.path().join("cmdline")).unwrap_or_default();
            let number = folder.file_name().to_str()?.parse().ok()?;
            Some((number, String::from_utf8_lossy(&command).replace('\0', " ")))
        };
        marked.filter_map(named).collect()
    }

    /// Waits until a process of this test has a command that `is_it` names.
    pub fn wait_for(&self, is_it: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.left().iter().any(|(_, command)| is_it(command)) {
            assert!(Instant::now() < deadline, "only {:#?}", self.left());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Nothing that this test started is left, within the time that killing takes.
    pub fn none_left(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let left = self.left();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "left: {left:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// PATH with the folder of the interpreter itself in front: a `python3` that is a shell's script has processes of its own, and a test that
/// kills "python3" kills one of those.
fn path() -> &'static str {
    static PATH: LazyLock<String> = LazyLock::new(|| {
        let path = std::env::var("PATH").unwrap_or_default();
        let asked = Command::new("python3")
            .args([
                "-c",
                "import os, sys; print(os.path.dirname(sys.executable))",
            ])
            .output();
        match asked {
            Ok(output) if output.status.success() => {
                let folder = String::from_utf8_lossy(&output.stdout);
                format!("{}:{path}", folder.trim_end())
            }
            _ => path,
        }
    });
    &PATH
}

/// Waits until a run prints a line that begins with `text`.
pub fn wait_line(child: &mut Child, text: &str) {
    let output = child.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(output).lines();
    let found = lines.any(|line| line.is_ok_and(|line| line.starts_with(text)));
    assert!(found, "no line `{text}`");
    // The rest is read away, so that the run does not end at a closed pipe.
    std::thread::spawn(move || lines.for_each(drop));
}

/// One of the subjects with a fault, with environment of its own.
pub fn subject(name: &str, env: &[(&str, &str)]) -> PlannedSubject {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/subjects")
        .join(name);
    let of_python = [
        "/usr/bin/env",
        "python3",
        "-B",
        "{dir}/server.py",
        "--host",
        "{host}",
        "--port",
        "{port}",
    ];
    let words = match folder.join("server.sh").exists() {
        true => &["/bin/sh", "{dir}/server.sh"][..],
        false => &of_python,
    };
    let mut environment = BTreeMap::from([("PYTHONPATH".to_owned(), "{dir}/..".to_owned())]);
    environment.extend(
        env.iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned())),
    );
    PlannedSubject {
        id: format!("test/{name}"),
        name: name.to_owned(),
        source: Source::Folder {
            dir: folder.display().to_string(),
        },
        start: words.iter().map(|&word| word.to_owned()).collect(),
        env: environment,
        ready: ReadySign {
            sign: prony_record::ReadyKind::Http,
            text: "/hello".to_owned(),
            timeout_ns: 20_000_000_000,
        },
        stop: StopRule {
            signal: "TERM".to_owned(),
            timeout_ns: 5_000_000_000,
        },
        threads: 1,
        ..PlannedSubject::default()
    }
}

/// The subject without a fault.
pub fn good() -> PlannedSubject {
    subject("slow-start", &[("SLOW_START_S", "0")])
}

fn workload() -> PlannedWorkload {
    PlannedWorkload {
        name: "ping".to_owned(),
        title: String::new(),
        request: RequestTemplate {
            method: "POST".to_owned(),
            path: "/ping".to_owned(),
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            body: r#"{"sequence":{random}}"#.to_owned(),
        },
        expect_status: 200,
        expect_content_type: Some("application/json".to_owned()),
        expect_body: Some(r#"{"sequence":{random}}"#.to_owned()),
        arrival: Arrival::Closed,
        connections: vec![4],
        timeout_ns: 2_000_000_000,
        ..PlannedWorkload::default()
    }
}

/// A plan of short trials, in the order of `subjects` in each block.
pub fn plan(subjects: Vec<PlannedSubject>, blocks: u32, duration_ms: u64) -> Plan {
    let cell = |subject: &PlannedSubject| Cell {
        id: format!("{} ping c=4", subject.id),
        subject: subject.id.clone(),
        workload: "ping".to_owned(),
        connections: 4,
        ..Cell::default()
    };
    let cells: Vec<Cell> = subjects.iter().map(cell).collect();
    let order = (0..u32::try_from(cells.len()).expect("few cells")).collect();
    Plan {
        schema: SCHEMA,
        seed: 7,
        blocks,
        duration_ns: duration_ms * 1_000_000,
        warmup_ns: 100_000_000,
        cores: cores(),
        reference: subjects.first().map(|subject| subject.id.clone()),
        subjects,
        workloads: vec![workload()],
        cells,
        order: vec![order; blocks as usize],
        ..Plan::default()
    }
}

/// One core each side where there are two.
pub fn cores() -> Cores {
    if std::thread::available_parallelism().is_ok_and(|count| count.get() >= 2) {
        Cores {
            subject: vec![0],
            generator: vec![1],
            ..Cores::default()
        }
    } else {
        Cores::default()
    }
}

/// The trials of a subject, by its folder's name.
pub fn trials_of<'a>(run: &'a Stored, name: &str) -> Vec<&'a Trial> {
    let cell = format!("test/{name} ping c=4");
    run.trials
        .iter()
        .filter(|trial| trial.cell == cell)
        .collect()
}
