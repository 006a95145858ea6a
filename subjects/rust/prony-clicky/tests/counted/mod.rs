//! Clicks from a loop, here or in a process of its own that can be killed, counted on
//! both sides. Not for: HTTP.
//!
//! A test binary that has a test named `clicker` which calls [`click_if_asked`] can be
//! started again as a process that does nothing but click: see [`Clicker`].
#![allow(dead_code, reason = "each of the test files uses some of it")]

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use prony_base::Nanos;
use prony_clicky::counting::{
    Ack, Backend, CountingSetting, Desk, Name, OpenError, Refusal, Tally, Tell,
};
use prony_engine::{Config, Handle, run};

/// Clicks that a clicking process has on their way at once.
const AT_ONCE: usize = 64;

/// A setting that says what it has to say into a list.
pub fn quiet(backend: Backend) -> (CountingSetting, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let taken = lines.clone();
    let setting = CountingSetting {
        backend,
        sync: Nanos::from_millis(10),
        tell: Tell::new(move |line| taken.lock().expect("whole").push(line.to_owned())),
        ..CountingSetting::default()
    };
    (setting, lines)
}

/// Runs some work at a desk, on a loop of this thread.
pub fn at_desk<T>(tally: &Tally, work: impl AsyncFnOnce(&Handle, Rc<Desk>) -> T) -> T {
    let loop_of_work = run(&Config::default(), |handle| {
        let desk = Rc::new(tally.desk(&handle));
        async move { work(&handle, desk).await }
    });
    loop_of_work.expect("a loop")
}

/// Looks again and again, on a loop, until something is so.
pub async fn until(handle: &Handle, what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = handle.now() + Nanos::from_secs(30);
    while !is_so() {
        assert!(handle.now() < deadline, "not within 30 s: {what}");
        handle.sleep(Nanos::from_millis(2)).await;
    }
}

/// The total that is kept: what a service has that is started now.
pub fn kept(backend: &Backend) -> u64 {
    let (setting, _) = quiet(backend.clone());
    let tally = Tally::open(&setting).expect("it can be opened");
    let total = at_desk(&tally, async |_, desk| desk.total(&Name::ROOT));
    tally.close().expect("nothing is pending");
    total
}

/// What came of clicks: acknowledged, and of which nobody knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub acknowledged: u64,
    pub refused: u64,
    pub unsure: u64,
}

/// One click after the other, `AT_ONCE` at a time, until `enough` says so of what came.
pub async fn click(
    handle: &Handle,
    desk: &Rc<Desk>,
    enough: impl Fn(Counts) -> bool + Clone + 'static,
) -> Counts {
    let counts = Rc::new(Cell::new(Counts::default()));
    let tasks: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (handle, desk) = (handle.clone(), desk.clone());
            let (counts, enough) = (counts.clone(), enough.clone());
            handle.clone().spawn(async move {
                while !enough(counts.get()) {
                    let outcome = desk.click(&Name::ROOT, 1).await;
                    let mut now = counts.get();
                    match outcome {
                        Ok(_) => now.acknowledged += 1,
                        Err(Refusal::Unsure) => now.unsure += 1,
                        Err(_) => now.refused += 1,
                    }
                    counts.set(now);
                    handle.yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
    counts.get()
}

/// A process that clicks. On its standard output it says the total that it found, in a
/// line, then `s` before each click and `a` when it is acknowledged. When its standard
/// input ends it closes its tally and ends.
pub struct Clicker {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub found: u64,
    pub sent: u64,
    pub acknowledged: u64,
}

impl Clicker {
    /// Starts it; the test named `clicker` of this binary is what runs there.
    pub fn start(backend: &str, path: &Path, ack: Ack, pending_max: u64) -> Clicker {
        let this = std::env::current_exe().expect("this program");
        let mut process = Command::new(this)
            .args(["--exact", "clicker", "--nocapture", "--quiet"])
            .env("CLICKER_BACKEND", backend)
            .env("CLICKER_PATH", path)
            .env(
                "CLICKER_SYNCED",
                if ack == Ack::Synced { "yes" } else { "no" },
            )
            .env("CLICKER_PENDING_MAX", pending_max.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let input = process.stdin.take();
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let found = loop {
            let mut line = String::new();
            let bytes = output.read_line(&mut line).expect("its output");
            assert!(bytes > 0, "it ended before it said what it found");
            if let Some(total) = line.strip_prefix("found ") {
                break total.trim().parse().expect("a number");
            }
        };
        Clicker {
            process,
            input,
            output,
            found,
            sent: 0,
            acknowledged: 0,
        }
    }

    fn count(&mut self, bytes: &[u8]) {
        let of = |wanted: u8| bytes.iter().filter(|&&byte| byte == wanted).count() as u64;
        self.sent += of(b's');
        self.acknowledged += of(b'a');
    }

    /// Reads on until so many clicks are acknowledged.
    pub fn read_until(&mut self, acknowledged: u64) {
        while self.acknowledged < acknowledged {
            let mut byte = [0];
            self.output.read_exact(&mut byte).expect("it still clicks");
            self.count(&byte);
        }
    }

    /// Ends it by SIGKILL, and counts what it had said.
    pub fn kill(&mut self) {
        self.process.kill().expect("it can be killed");
        self.drain();
    }

    /// Ends it as one should, and counts what it had said.
    pub fn stop(&mut self) {
        self.input.take();
        self.drain();
    }

    fn drain(&mut self) {
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).expect("its output");
        // What the test runner says at its end has other letters, in lines of their own.
        let end = rest.iter().position(|byte| !b"sa".contains(byte));
        self.count(&rest[..end.unwrap_or(rest.len())]);
        self.process.wait().expect("it ended");
    }
}

/// Clicks until it is killed or its input ends, if this process was started for that.
pub fn click_if_asked() {
    let Ok(backend) = std::env::var("CLICKER_BACKEND") else {
        return;
    };
    let path = std::env::var_os("CLICKER_PATH").expect("a path");
    let path = Path::new(&path).to_owned();
    let (mut setting, _) = quiet(match backend.as_str() {
        "file" => Backend::File {
            path,
            // Written anew all the time, so that it is killed at that too.
            log_bytes_max: 2_000,
        },
        _ => Backend::Sqlite { path },
    });
    if std::env::var("CLICKER_SYNCED").as_deref() == Ok("yes") {
        setting.ack = Ack::Synced;
    }
    let pending_max = std::env::var("CLICKER_PENDING_MAX").expect("a number");
    setting.pending_max = pending_max.parse().expect("a number");
    let tally = Tally::open(&setting).unwrap_or_else(|error: OpenError| panic!("{error}"));
    let closing = tally.clone();
    let closer = std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        closing.close()
    });
    at_desk(&tally, async |handle, desk| {
        let out = std::io::stdout();
        writeln!(&out, "\nfound {}", desk.total(&Name::ROOT)).expect("somebody reads");
        let tasks: Vec<_> = (0..AT_ONCE)
            .map(|_| handle.spawn(click_and_tell(handle.clone(), desk.clone())))
            .collect();
        for task in tasks {
            task.await;
        }
    });
    closer.join().expect("whole").expect("everything is kept");
}

async fn click_and_tell(handle: Handle, desk: Rc<Desk>) {
    // Unbuffered: what is said is in the pipe, whatever happens to this process.
    let out = std::io::stdout().as_fd().try_clone_to_owned();
    let mut out = File::from(out.expect("a pipe"));
    let mut say = |byte: u8| out.write_all(&[byte]).expect("somebody reads");
    loop {
        say(b's');
        match desk.click(&Name::ROOT, 1).await {
            Ok(_) => say(b'a'),
            Err(Refusal::Closing) => return,
            Err(_) => {}
        }
        handle.yield_now().await;
    }
}
