//! Runs an agent: lines come in from whatever carries them, and the load runs on threads of its own.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use prony_base::{Instant, Nanos, clock};
use prony_load::{LoadInterval, Observer, PartResult, target};
use prony_record::{LoadSpec, LoadTarget};

use crate::agent::{Agent, LoadOrder, LoadSaid};
use crate::message::Greeting;

/// How often an agent looks whether something is due.
const TICK: Duration = Duration::from_millis(100);
/// An open pace is told so long before it begins, so that its first arrival is not late though the thread that tells it is.
const HEAD_START: Nanos = Nanos::from_millis(10);
/// A closed loop begins when it is told: the end of the sleep before that is waited for awake.
const AWAKE: Nanos = Nanos::from_micros(200);
/// From so long before on it is waited in one piece.
const LAST_SLEEP: Nanos = Nanos::from_millis(200);
/// Longest line: the counts of a long load.
pub const LINE_BYTES_MAX: usize = 1 << 30;
/// A line that takes longer says so this often.
const ALIVE_EVERY: Nanos = Nanos::from_secs(1);
/// No load begins later than this after it was said when.
const GO_MAX: Nanos = Nanos::from_secs(60);

/// What happens to an agent.
enum AgentEvent {
    /// A line came, at this moment.
    Line(Vec<u8>, Instant),
    /// A line is coming, and is long.
    Alive,
    /// No line comes any more.
    Closed,
    /// The load says something.
    Said(LoadSaid),
}

/// Serves one controller, whose lines come from `input` and whose answers go to `output`, until one of them has ended.
///
/// # Errors
/// Why it was ended before it had a result.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    greeting: Greeting,
) -> Result<(), String> {
    // A controller that does not read for a while holds up nothing here.
    let (lines, to_write) = mpsc::channel();
    let writer = thread::spawn(move || write_lines(output, &to_write));
    let ended = answer(input, &lines, greeting);
    drop(lines);
    if ended.is_ok() {
        // All has been said when it is written. Of another end nobody may be there who reads.
        let _ = writer.join();
    }
    ended
}

/// Writes lines until there are no more, or nobody reads them.
pub fn write_lines(mut output: impl Write, lines: &mpsc::Receiver<Vec<u8>>) {
    for line in lines {
        if output
            .write_all(&line)
            .and_then(|()| output.flush())
            .is_err()
        {
            return;
        }
    }
}

fn answer(
    input: impl Read + Send + 'static,
    lines: &mpsc::Sender<Vec<u8>>,
    greeting: Greeting,
) -> Result<(), String> {
    let (send, events) = mpsc::channel();
    let to_main = send.clone();
    thread::spawn(move || {
        read_lines(input, |read| match read {
            LineRead::Line(line, at) => to_main.send(AgentEvent::Line(line, at)).is_ok(),
            LineRead::Some => to_main.send(AgentEvent::Alive).is_ok(),
        });
        let _ = to_main.send(AgentEvent::Closed);
    });
    let mut agent = Agent::new(greeting, true, clock::monotonic());
    let mut load: Option<RunningLoad> = None;
    loop {
        match events.recv_timeout(TICK) {
            Ok(AgentEvent::Line(line, at)) => agent.received(&line, at),
            Ok(AgentEvent::Alive) => agent.is_heard(clock::monotonic()),
            Ok(AgentEvent::Closed) if agent.is_done() => return Ok(()),
            Ok(AgentEvent::Closed) => agent.closed(),
            Ok(AgentEvent::Said(said)) => agent.said(said, clock::monotonic()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        agent.tick(clock::monotonic());
        for order in agent.orders() {
            match order {
                LoadOrder::Connect { spec, is_owned } => {
                    let send = send.clone();
                    let say = move |said| send.send(AgentEvent::Said(said)).is_ok();
                    load = Some(RunningLoad::start(spec, is_owned, say));
                }
                order => load.iter().for_each(|load| load.obey(&order)),
            }
        }
        for line in agent.outgoing() {
            if lines.send(line).is_err() && !agent.is_done() {
                agent.closed();
            }
        }
        if let Some(why) = agent.ended() {
            let why = why.to_owned();
            if let Some(load) = load.take() {
                load.obey(&LoadOrder::Stop);
                load.join();
            }
            return Err(why);
        }
    }
}

/// What was read.
pub enum LineRead {
    /// A line, which came at this moment.
    Line(Vec<u8>, Instant),
    /// A part of a line that has taken a second so far, or another one.
    Some,
}

/// Calls `take` with what is read of `input`, until there is no more or it returns false. Whatever is no whole line at the end is left out.
pub fn read_lines(input: impl Read, mut take: impl FnMut(LineRead) -> bool) {
    let mut input = BufReader::with_capacity(256 << 10, input);
    let (mut line, mut since) = (Vec::new(), clock::monotonic());
    loop {
        let Ok(bytes @ [_, ..]) = input.fill_buf() else {
            return;
        };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(bytes.len(), |end| end + 1);
        line.extend_from_slice(&bytes[..length]);
        input.consume(length);
        let now = clock::monotonic();
        if line.len() > LINE_BYTES_MAX {
            return;
        }
        let goes_on = match end {
            Some(_) => take(LineRead::Line(std::mem::take(&mut line), now)),
            None if now.since(since) < ALIVE_EVERY => continue,
            None => take(LineRead::Some),
        };
        since = now;
        if !goes_on {
            return;
        }
    }
}

/// A load on threads of its own.
struct RunningLoad {
    go: mpsc::Sender<Instant>,
    shared: Arc<LoadWishes>,
    thread: thread::JoinHandle<()>,
}

/// What is wished of a load while it runs.
#[derive(Default)]
struct LoadWishes {
    stop: AtomicBool,
    /// Bits of a rate; 0: none.
    rate: AtomicU64,
}

impl RunningLoad {
    fn start(
        spec: Box<LoadSpec>,
        is_owned: bool,
        say: impl Fn(LoadSaid) -> bool + Send + 'static,
    ) -> RunningLoad {
        let shared = Arc::new(LoadWishes::default());
        let (go, gone) = mpsc::channel();
        let wishes = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let mut relay = Relay {
                say: &say,
                gone,
                wishes,
                is_open: spec.pace.is_open(),
                warmup: Nanos(spec.warmup_ns),
                told: (0, 0),
            };
            // A thread that panics has an end, too, which it prints itself.
            let work = || measured(&spec, is_owned, &mut relay);
            let ended = panic::catch_unwind(AssertUnwindSafe(work));
            let broken = |_| Err("its load ended by a fault in prony".to_owned());
            say(LoadSaid::Ended(ended.unwrap_or_else(broken)));
        });
        RunningLoad { go, shared, thread }
    }

    fn obey(&self, order: &LoadOrder) {
        match order {
            // A load that is over hears nothing any more.
            LoadOrder::Go(at) => drop(self.go.send(*at)),
            LoadOrder::Rate(rate) => self.shared.rate.store(rate.to_bits(), Relaxed),
            LoadOrder::Stop => self.shared.stop.store(true, Relaxed),
            LoadOrder::Connect { .. } => {}
        }
    }

    fn join(self) {
        drop(self.go);
        // A panic was printed where it happened, and there is no result either way.
        let _ = self.thread.join();
    }
}

/// What came of the part of a load that is this agent's, in words where nothing did.
fn measured(
    spec: &LoadSpec,
    is_owned: bool,
    observer: &mut dyn Observer,
) -> Result<Box<PartResult>, String> {
    if spec.unix.is_some() || !spec.sources.is_empty() {
        return Err("a socket file and addresses to come from are of one machine".to_owned());
    }
    let targets = std::iter::once(&spec.target).chain(&spec.further);
    let addresses: Vec<IpAddr> = targets.filter_map(address).collect();
    let host = &spec.target.url;
    target::check(host, &addresses, is_owned).map_err(|error| error.to_string())?;
    let part = prony_load::run_part(spec, observer);
    part.map(Box::new).map_err(|error| error.to_string())
}

fn address(target: &LoadTarget) -> Option<IpAddr> {
    Some(target.address.parse::<SocketAddr>().ok()?.ip())
}

/// Tells the controller how the load goes, and the load what the controller wishes.
struct Relay<'a> {
    say: &'a dyn Fn(LoadSaid) -> bool,
    gone: mpsc::Receiver<Instant>,
    wishes: Arc<LoadWishes>,
    is_open: bool,
    warmup: Nanos,
    /// What was completed and failed when it was last told.
    told: (u64, u64),
}

impl Observer for Relay<'_> {
    fn begin(&mut self, opened: usize) -> Option<Instant> {
        (self.say)(LoadSaid::Ready(opened as u64));
        let at = loop {
            match self.gone.recv_timeout(TICK) {
                Ok(at) => break at,
                Err(RecvTimeoutError::Timeout) if !self.wishes.stop.load(Relaxed) => {}
                Err(_) => return None,
            }
        };
        let early = if self.is_open {
            HEAD_START
        } else {
            Nanos::ZERO
        };
        let moment = Instant(at.0.saturating_sub(early.0));
        if moment.since(clock::monotonic()) > GO_MAX {
            return None;
        }
        while moment.since(clock::monotonic()) > LAST_SLEEP {
            if self.wishes.stop.load(Relaxed) {
                return None;
            }
            thread::sleep(TICK);
        }
        wait_until(moment);
        Some(at)
    }

    fn connected(&mut self, start: Instant, _end: Instant) {
        let begun = Instant(start.0.saturating_sub(self.warmup.0));
        (self.say)(LoadSaid::Begun(begun));
    }

    fn progress(&mut self, completed: u64, failed: u64) -> bool {
        if (completed, failed) != self.told {
            self.told = (completed, failed);
            (self.say)(LoadSaid::SoFar(completed, failed));
        }
        !self.wishes.stop.load(Relaxed)
    }

    fn wants_intervals(&self) -> bool {
        true
    }

    fn interval(&mut self, interval: &LoadInterval) {
        let totals = Box::new(interval.total.clone());
        (self.say)(LoadSaid::Second(interval.number, totals));
    }

    fn rate(&mut self) -> Option<f64> {
        let bits = self.wishes.rate.swap(0, Relaxed);
        (bits != 0).then(|| f64::from_bits(bits))
    }
}

/// Sleeps until shortly before `moment`, and is awake then.
fn wait_until(moment: Instant) {
    let left = moment.since(clock::monotonic());
    if left > AWAKE {
        thread::sleep(Duration::from_nanos(left.0 - AWAKE.0));
    }
    while clock::monotonic() < moment {
        std::hint::spin_loop();
    }
}

/// Name of this machine.
pub fn machine() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// Cores that this process may use.
pub fn cores() -> u32 {
    thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}
