//! wrk's Lua scripts as sources of the load generator: `setup`, `init`, `delay`, `request`, `response`, `done`.
//!
//! Each thread of a load has a Lua state of its own, and one more sets them up and is told what came of the run, as in wrk. A script
//! that fails, does not return, or takes too much memory ends the run; what it was to send or to take in is never counted as completed.
//!
//! Not for: HTTP/2, and what is printed.
//!
//! # Central types
//! - [`Scripted`]: a script that was set up: the [`ThreadSources`] of one run.
//! - [`ScriptSettings`]: what it is given.
//! - `Machine`: one Lua state; with `value`, the only code here that is `unsafe`.
//!
//! # Invariants
//! - A state is used by one thread at a time: behind a lock, which in a run nobody else takes.
//! - An error in a script ends the run, never the process.

mod machine;
mod request;
mod source;
mod value;

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, process};

use prony_load::{AnswerFollowers, LoadResult, RequestSource, ThreadSources};

use machine::{Machine, Pulse};
use source::{Followers, ScriptSource, ThreadPlan};
use value::Value;

/// What a script is given.
#[derive(Clone, Debug)]
pub struct ScriptSettings {
    /// Its file.
    pub file: PathBuf,
    /// The URL, and what follows `--`.
    pub args: Vec<String>,
    /// `http` or `https`.
    pub scheme: String,
    /// The host, an IPv6 address without brackets.
    pub host: String,
    /// The port, where the URL has one.
    pub port: Option<String>,
    /// What `Host` says.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// Method of a request that the script does not make.
    pub method: String,
    /// Headers, likewise.
    pub headers: Vec<(String, String)>,
    /// Body, likewise.
    pub body: Option<Vec<u8>>,
    /// Threads of the run.
    pub threads: u32,
    /// Where their connections go; at least one.
    pub addresses: Vec<SocketAddr>,
    /// How long one call may take.
    pub call_max: Duration,
    /// Bytes that each state may have.
    pub memory_max: usize,
}

/// What all threads of a run share.
#[derive(Debug, Default)]
pub(crate) struct RunEnd {
    is_over: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl RunEnd {
    pub fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// Notes why the run ends; the first failure counts.
    pub fn fail(&self, why: String) {
        lock(&self.failure).get_or_insert(why);
        self.is_over.store(true, Relaxed);
    }
}

/// What a thread's script says beside what it returns.
#[derive(Debug)]
pub(crate) struct ThreadState {
    pub stopped: AtomicBool,
    address: Mutex<(SocketAddr, bool)>,
}

/// One thread: its state of Lua, and what it said.
pub(crate) struct ScriptThread {
    pub machine: Mutex<Machine>,
    pub state: Arc<ThreadState>,
    pub plan: ThreadPlan,
}

/// A script that was set up, for one run.
pub struct Scripted {
    main: Mutex<Machine>,
    threads: Arc<Mutex<Vec<Arc<ScriptThread>>>>,
    end: Arc<RunEnd>,
    name: String,
    depth: u32,
    /// Dropped before the states, whose calls it watches.
    watch: Option<(mpsc::Sender<Arc<Pulse>>, thread::JoinHandle<()>)>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scripted {
    /// Runs the script's file in a state for each thread and one more, then `setup` and `init` for each thread in turn.
    ///
    /// # Errors
    /// The file cannot be read, or the script failed: what is wrong, with file and line.
    pub fn new(settings: &ScriptSettings) -> Result<Scripted, String> {
        let name = settings.file.display().to_string();
        let text = fs::read(&settings.file)
            .map_err(|error| format!("cannot read the script {name}: {error}"))?;
        let watch = watch(settings.call_max, name.clone());
        let threads: Arc<Mutex<Vec<Arc<ScriptThread>>>> = Arc::default();
        let make = |native| -> Result<Machine, String> {
            let mut machine = Machine::new(settings.memory_max, native, &given(settings))?;
            let _ = watch.0.send(machine.pulse());
            machine
                .run(&name, &text)
                .map_err(|why| format!("the script failed: {why}"))?;
            Ok(machine)
        };
        let peers = Arc::clone(&threads);
        let mut main = make(Box::new(move |what, given| of_main(&peers, what, given)))?;
        let (mut plan, mut depth) = (ThreadPlan::default(), 1);
        for number in 0..settings.threads {
            let at = number as usize % settings.addresses.len();
            let state = Arc::new(ThreadState {
                stopped: AtomicBool::new(false),
                address: Mutex::new((settings.addresses[at], false)),
            });
            let own = Arc::clone(&state);
            let machine = make(Box::new(move |what, given| of_thread(&own, what, given)))?;
            let thread = |plan| ScriptThread {
                machine: Mutex::new(machine),
                state,
                plan,
            };
            lock(&threads).push(Arc::new(thread(plan.clone())));
            let index = Value::Number(number.into());
            let failed = |call: &str, why: String| format!("the script failed in {call}: {why}");
            main.call("setup", std::slice::from_ref(&index))
                .map_err(|why| failed("setup()", why))?;
            let args = settings.args.iter().skip(1).map(|arg| Value::text(arg));
            let thread = lock(&threads)[number as usize].clone();
            let mut machine = lock(&thread.machine);
            machine
                .call("init", &[index, Value::list(args)])
                .map_err(|why| failed("init()", why))?;
            if number == 0 {
                (plan, depth) =
                    source::plan(&mut machine).map_err(|why| failed("request()", why))?;
            }
            // Printed before what this program prints.
            let _ = machine.call("flush", &[]);
        }
        let all: Vec<_> = lock(&threads).drain(..).collect();
        for thread in all {
            let mut thread = Arc::into_inner(thread).ok_or("a thread is in use")?;
            thread.plan = plan.clone();
            thread.state.stopped.store(false, Relaxed);
            lock(&threads).push(Arc::new(thread));
        }
        let _ = main.call("flush", &[]);
        Ok(Scripted {
            main: Mutex::new(main),
            threads,
            end: Arc::default(),
            name,
            depth,
            watch: Some(watch),
        })
    }

    /// Requests that `request()` returns at once: the depth of each connection.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Addresses that the script gave threads, which may be load on another host.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let threads = lock(&self.threads);
        threads
            .iter()
            .map(|thread| lock(&thread.state.address).0)
            .collect()
    }

    /// Why the run ended, if the script failed in it.
    pub fn failure(&self) -> Option<String> {
        let why = lock(&self.end.failure).clone()?;
        Some(format!("the script {} failed in {why}", self.name))
    }

    /// Calls `done` with what came of the run.
    ///
    /// # Errors
    /// It failed: what is wrong, with file and line.
    pub fn done(&self, result: &LoadResult) -> Result<(), String> {
        let [summary, latency, requests] = source::figures(result);
        let done = lock(&self.main).call("done", &[summary, latency, requests]);
        done.map(|_| ())
            .map_err(|why| format!("the script {} failed in done(): {why}", self.name))
    }
}

impl ThreadSources for Scripted {
    fn source(&self, thread: u32, slots: usize) -> Box<dyn RequestSource> {
        let thread = Arc::clone(&lock(&self.threads)[thread as usize]);
        Box::new(ScriptSource::new(
            thread,
            Arc::clone(&self.end),
            slots,
            self.depth as usize,
        ))
    }

    fn followers(&self) -> Option<(Arc<dyn AnswerFollowers>, &'static str)> {
        let threads = lock(&self.threads).clone();
        let takes = threads.first().and_then(|first| first.plan.response)?;
        let followers = Followers {
            threads,
            end: Arc::clone(&self.end),
            takes,
        };
        Some((Arc::new(followers), "the script's response()"))
    }

    fn address(&self, thread: u32) -> Option<SocketAddr> {
        let (address, is_given) = *lock(&lock(&self.threads)[thread as usize].state.address);
        is_given.then_some(address)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        if let Some((pulses, thread)) = self.watch.take() {
            drop(pulses);
            let _ = thread.join();
        }
    }
}

/// What the prelude is given.
fn given(of: &ScriptSettings) -> Value {
    let text = |text: &str| Value::text(text);
    let headers = of
        .headers
        .iter()
        .map(|(name, value)| (text(name), text(value)));
    Value::named([
        ("scheme", text(&of.scheme)),
        ("host", text(&of.host)),
        ("port", of.port.as_deref().map_or(Value::Nil, text)),
        ("authority", text(&of.authority)),
        ("path", text(&of.path)),
        ("method", text(&of.method)),
        ("url", of.args.first().map_or(Value::Nil, |url| text(url))),
        ("headers", Value::Table(headers.collect())),
        ("body", of.body.clone().map_or(Value::Nil, Value::Text)),
    ])
}

/// What a script asks for anywhere.
fn anywhere(what: &str, given: &[Value]) -> Result<Value, String> {
    let text = |at: usize| {
        given.get(at).cloned().and_then(|value| match value {
            Value::Number(number) => Some(number.to_string()),
            other => other.into_text(),
        })
    };
    match what {
        "lookup" => {
            let host = text(0).ok_or("wrk.lookup takes a host and a service")?;
            let service = text(1).unwrap_or_else(|| "http".to_owned());
            let port = match service.as_str() {
                "http" => Ok(80),
                "https" => Ok(443),
                other => other.parse::<u16>(),
            };
            let port = port.map_err(|_| format!("`{service}` is no port, nor http or https"))?;
            let found = (host.as_str(), port).to_socket_addrs();
            let found = found.map_err(|error| format!("cannot resolve {host}: {error}"))?;
            Ok(Value::list(found.map(|one| Value::text(&one.to_string()))))
        }
        "connect" => {
            let address = text(0).and_then(|text| text.parse::<SocketAddr>().ok());
            let address = address.ok_or("wrk.connect takes an address of wrk.lookup")?;
            Ok(Value::Bool(
                TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok(),
            ))
        }
        "exit" => Err(format!(
            "it called os.exit({})",
            text(0).unwrap_or_default()
        )),
        other => Err(format!("there is no `{other}`")),
    }
}

fn of_thread(own: &ThreadState, what: &str, given: &[Value]) -> Result<Value, String> {
    match what {
        "stop" => own.stopped.store(true, Relaxed),
        "address" => return Ok(Value::text(&lock(&own.address).0.to_string())),
        "move" => {
            let text = given.get(1).cloned().and_then(Value::into_text);
            let address = text.and_then(|text| text.parse().ok());
            *lock(&own.address) = (address.ok_or("it is no address")?, true);
        }
        _ => return anywhere(what, given),
    }
    Ok(Value::Nil)
}

fn of_main(
    peers: &Mutex<Vec<Arc<ScriptThread>>>,
    what: &str,
    given: &[Value],
) -> Result<Value, String> {
    let thread = || {
        let number = match given.first() {
            Some(Value::Number(number)) => *number as usize,
            _ => usize::MAX,
        };
        lock(peers)
            .get(number)
            .cloned()
            .ok_or("there is no such thread")
    };
    let name = || match given.get(1) {
        Some(Value::Text(name)) => Ok(name.as_slice()),
        _ => Err("the name of a global is a string"),
    };
    match what {
        "get" => lock(&thread()?.machine).get(name()?),
        "set" => {
            let value = given.get(2).unwrap_or(&Value::Nil);
            if let Value::Other(kind) = value {
                return Err(format!("{kind} cannot be given to a thread"));
            }
            lock(&thread()?.machine).set(name()?, value)?;
            Ok(Value::Nil)
        }
        "stop" | "address" | "move" => of_thread(&thread()?.state, what, given),
        _ => anywhere(what, given),
    }
}

/// Watches calls on a thread of its own: one that takes longer than `longest` is ended, and where that cannot be, the process.
fn watch(longest: Duration, name: String) -> (mpsc::Sender<Arc<Pulse>>, thread::JoinHandle<()>) {
    let (send, receive) = mpsc::channel::<Arc<Pulse>>();
    let often = (longest / 8).clamp(Duration::from_millis(5), Duration::from_millis(250));
    let body = move || {
        let mut all: Vec<(Arc<Pulse>, u64, Instant)> = Vec::new();
        loop {
            match receive.recv_timeout(often) {
                Ok(pulse) => all.push((pulse, 0, Instant::now())),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
            for (pulse, seen, since) in &mut all {
                match pulse.running() {
                    Some(count)
                        if count == *seen
                            && since.elapsed() > longest * 2 + Duration::from_millis(500) =>
                    {
                        eprintln!(
                            "prony: the script {name} runs for ever in a loop that cannot be ended from outside; what was measured is lost"
                        );
                        process::exit(1);
                    }
                    Some(count) if count == *seen && since.elapsed() > longest => pulse.doom(count),
                    Some(count) if count == *seen => {}
                    running => (*seen, *since) = (running.unwrap_or_default(), Instant::now()),
                }
            }
        }
    };
    (send, thread::spawn(body))
}
