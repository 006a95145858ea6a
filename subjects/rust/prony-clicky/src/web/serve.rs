//! The service as a process: its loops, each on a thread, the counters that they share,
//! and the signals that end it. Not for: what a loop does (`services`).

use std::future::Future;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use prony_base::{Nanos, clock};
use prony_engine::{Accepted, Config, Handle, ListenOptions, Listener, Receiver, Sender, mailbox};
use prony_http::{AcceptTarget, Counters, Source, distribute};
use prony_runtime::services::Failure;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::answers::Common;
use super::events::Listeners;
use super::limiter::Limiter;
use super::log::{Level, Log};
use super::services;
use crate::counting::{CountingSetting, OpenError, Tally, Tell};
use crate::settings::Settings;

/// Connections on their way to one loop; more are closed at once.
const HANDED_OVER_MAX: usize = 65_536;
/// Sizes the kernel's queues; not a limit.
const CONNECTIONS_HINT: u32 = 16_384;
/// How long to wait for an address or a log that another process has. Who was killed lets go
/// of its log when the kernel has ended it, and of its address some milliseconds later.
const IN_USE_MAX: Nanos = Nanos::from_secs(2);
/// How long to wait between two looks at a log.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// A wait for it that is told.
const WAIT_SHORTEST: Nanos = Nanos::from_millis(2);
/// The exit status of a second signal.
const IMPATIENT: i32 = 130;

/// Serves until SIGTERM or SIGINT, then answers what was accepted and keeps what was
/// counted. A second signal ends the process at once.
///
/// # Errors
/// What kept it from starting or from keeping everything, for people.
pub fn serve(settings: &Settings, out: &mut dyn Write) -> anyhow::Result<()> {
    let signals = signals()?;
    raise_descriptor_limit();
    let told = Arc::new(Told::new(settings)?);
    let counting = CountingSetting {
        tell: told.clone().tell(),
        ..settings.counting.clone()
    };
    let tell = counting.tell.clone();
    let tally = open(&counting).inspect_err(|_| told.announced())?;
    let common = Arc::new(Common {
        tally: tally.clone(),
        board: Default::default(),
        listeners: Arc::new(Listeners::new(settings.listeners_per_address)),
        limiter: settings.rate_limit.map(Limiter::new),
    });
    let loops = ServiceLoops {
        settings: Arc::new(settings.clone()),
        common,
        tell,
    };
    let served = loops.serve(&signals, |address| {
        writeln!(out, "listening on http://{address}")?;
        out.flush()?;
        told.announced();
        Ok(())
    });
    // Whatever ended the loops, what was counted is kept.
    let closed = tally.close();
    served?;
    Ok(closed?)
}

/// Opens the counters, and waits for a log that another process has.
fn open(setting: &CountingSetting) -> anyhow::Result<Tally> {
    let until = clock::monotonic() + IN_USE_MAX;
    loop {
        match Tally::open(setting) {
            Err(OpenError::Held { .. }) if clock::monotonic() < until => thread::sleep(LOOK_AGAIN),
            Err(error @ OpenError::Held { .. }) => bail!("{error}, for 2 s now"),
            opened => return Ok(opened?),
        }
    }
}

/// What the keeper tells, which has a thread of its own. Until it is said where the service
/// listens, which is the first line, it waits.
struct Told {
    state: Mutex<(Log, Option<Vec<String>>)>,
}

impl Told {
    fn new(settings: &Settings) -> anyhow::Result<Told> {
        let log = Log::open(&settings.log, clock::unix_nanos)
            .with_context(|| format!("cannot open the log ({:?})", settings.log.place))?;
        let state = Mutex::new((log, Some(Vec::new())));
        Ok(Told { state })
    }

    fn tell(self: Arc<Told>) -> Tell {
        Tell::new(move |line| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *state {
                // Few lines come before: one for each thing that is found at the start.
                (_, Some(waiting)) => waiting.push(line.to_owned()),
                (log, None) => write(log, line),
            }
        })
    }

    fn announced(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for line in state.1.take().unwrap_or_default() {
            write(&state.0, &line);
        }
    }
}

fn write(log: &Log, line: &str) {
    log.line(Level::Warn, format_args!("{line}"));
    log.flush();
}

/// The loops of the service.
#[derive(Clone)]
struct ServiceLoops {
    settings: Arc<Settings>,
    common: Arc<Common>,
    /// Where what is found at the start is said.
    tell: Tell,
}

type LoopThread = JoinHandle<anyhow::Result<()>>;

impl ServiceLoops {
    fn config(&self) -> Config {
        Config {
            driver: self.settings.driver,
            connections_hint: CONNECTIONS_HINT,
            ..Config::default()
        }
    }

    /// Serves on this thread and `threads - 1` others.
    fn serve(
        &self,
        signals: &UnixStream,
        announce: impl FnOnce(std::net::SocketAddr) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut targets = Vec::new();
        let mut threads = Vec::new();
        for _ in 1..self.settings.threads {
            let (sender, connections) = mailbox(HANDED_OVER_MAX);
            let (worker, counters) = self.start_loop(connections)?;
            threads.push(worker);
            targets.push((sender, counters));
        }
        let served = prony_engine::run(&self.config(), |handle| async move {
            if let Some(why) = handle.fallback() {
                self.tell.say(&format!("using epoll, not io_uring: {why}"));
            }
            let listener = self.listen(&handle).await?;
            let address = listener.local_addr();
            let stop = stopped(&handle, signals);
            let ready = || announce(address);
            match targets.is_empty() {
                true => self.alone(&handle, listener, stop, ready).await,
                false => self.lead(&handle, listener, targets, stop, ready).await,
            }
        });
        served.map_err(explain)??;
        for worker in threads {
            let ended = worker.join();
            ended.map_err(|_| anyhow!("a thread of the service panicked"))??;
        }
        Ok(())
    }

    async fn alone(
        &self,
        handle: &Handle,
        listener: Listener,
        stop: impl Future<Output = ()>,
        ready: impl FnOnce() -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut announced = Ok(());
        let source = Source::Listener(listener);
        self.one_loop(handle, source, stop, |_| announced = ready())
            .await?;
        Ok(announced?)
    }

    /// Accepts for all loops, of which one is here.
    async fn lead(
        &self,
        handle: &Handle,
        listener: Listener,
        mut targets: Vec<(Sender<Accepted>, Arc<Counters>)>,
        stop: impl Future<Output = ()>,
        ready: impl FnOnce() -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let (sender, connections) = mailbox(HANDED_OVER_MAX);
        let (tell, mut told) = mailbox(1);
        let (loops, own) = (self.clone(), handle.clone());
        let serving = handle.spawn(async move {
            let source = Source::HandedOver(connections);
            let started = |counters| drop(tell.send(counters));
            loops
                .one_loop(&own, source, std::future::pending(), started)
                .await
        });
        let Some(counters) = told.recv().await else {
            return serving.await;
        };
        targets.push((sender, counters));
        let targets = targets.into_iter();
        let targets = targets.map(|(sender, counters)| AcceptTarget::new(sender, counters));
        ready()?;
        distribute(handle, listener, targets.collect(), stop).await;
        serving.await
    }

    async fn one_loop(
        &self,
        handle: &Handle,
        source: Source,
        stop: impl Future<Output = ()>,
        started: impl FnOnce(Arc<Counters>),
    ) -> anyhow::Result<()> {
        let (settings, common) = (self.settings.clone(), self.common.clone());
        let served = services::serve(handle, settings, common, source, stop, started).await;
        served.map_err(|failure: Failure| anyhow!("{failure}"))
    }

    /// Starts a thread for a loop, and waits until it serves.
    fn start_loop(
        &self,
        connections: Receiver<Accepted>,
    ) -> anyhow::Result<(LoopThread, Arc<Counters>)> {
        let (tell, told) = mpsc::channel();
        let loops = self.clone();
        let work = move || {
            let config = loops.config();
            let ran = prony_engine::run(&config, |handle| async move {
                let source = Source::HandedOver(connections);
                // Whoever asked has gone only when the service ends anyway.
                let started = |counters| drop(tell.send(counters));
                loops
                    .one_loop(&handle, source, std::future::pending(), started)
                    .await
            });
            ran.map_err(explain)?
        };
        let worker = thread::Builder::new().name("loop".to_owned()).spawn(work);
        let worker = worker.context("cannot start a thread")?;
        match told.recv() {
            Ok(counters) => Ok((worker, counters)),
            Err(_) => match worker.join() {
                Ok(Err(error)) => Err(error),
                _ => bail!("a thread of the service ended before it served"),
            },
        }
    }

    async fn listen(&self, handle: &Handle) -> anyhow::Result<Listener> {
        let address = self.settings.address;
        let options = ListenOptions::default();
        let begun = handle.now();
        let listener = handle.listen_within(address, &options, IN_USE_MAX).await;
        let waited = handle.now().since(begun);
        let listener = listener.map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => {
                    ", for 2 s now; SERVER_ADDRESS names another port, and port 0 takes a free one"
                }
                io::ErrorKind::PermissionDenied => "; ports under 1024 are root's",
                io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
                _ => "",
            };
            anyhow!("cannot listen on {address}: {error}{advice}")
        })?;
        if waited >= WAIT_SHORTEST {
            self.tell.say(&format!(
                "{address} was in use, and let go after {:.0} ms",
                waited.as_secs_f64() * 1_000.0
            ));
        }
        Ok(listener)
    }
}

fn explain(error: prony_engine::Error) -> anyhow::Error {
    anyhow!(error).context("the event loop cannot run")
}

/// A pipe that SIGTERM and SIGINT write to; a second signal ends the process.
fn signals() -> anyhow::Result<UnixStream> {
    let (read, write) = UnixStream::pair().context("cannot make a pipe for signals")?;
    let before = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        let pipe = write
            .try_clone()
            .context("cannot make a pipe for signals")?;
        signal_hook::flag::register_conditional_shutdown(signal, IMPATIENT, before.clone())
            .and_then(|_| signal_hook::flag::register(signal, before.clone()))
            .and_then(|_| signal_hook::low_level::pipe::register(signal, pipe))
            .context("cannot listen for signals")?;
    }
    Ok(read)
}

/// Ready at the first signal.
async fn stopped(handle: &Handle, signals: &UnixStream) {
    // A pipe that cannot be waited for could only be ignored or obeyed at once.
    let _ = handle.readable(signals).await;
}

/// As many connections as the machine allows: the soft limit is for programs that use
/// `select`.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Where that is forbidden, accepting waits for free descriptors.
    let _ = setrlimit(Resource::Nofile, raised);
}
