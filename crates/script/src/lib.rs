//! wrk's Lua scripts as sources of the load generator: `setup`, `init`, `delay`, `request`, `response`, `done`.
//!
//! Each thread of a load has a Lua state of its own, and one more sets them up and receives the result of the run, as in wrk. A script
//! that fails, does not return, or takes too much memory ends the run; what it was to send or to take in is never counted as completed.
//!
//! Not for: HTTP/2, and what is printed.
//!
//! # Central types
//! - [`Scripted`]: a script that was set up: the [`ThreadSources`] of one run.
//! - [`ScriptSettings`]: what it is given.
//! - `LuaState`: one state of Lua; with `value` and `compiler`, the only code here that is `unsafe`.
//! - `CallWatch`: what ends calls that do not return.
//!
//! # Invariants
//! - A state is used by one thread at a time: behind a lock, which in a run nobody else takes.
//! - An error in a script ends the run, never the process.

mod compiler;
mod figures;
mod follow;
mod machine;
mod request;
mod source;
mod value;
mod watch;

use std::fs;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use prony_load::{AnswerFollowers, LoadResult, RequestSource, ThreadSources};

use follow::ScriptFollowers;
use machine::LuaState;
use source::{ScriptPlan, ScriptSource};
use value::LuaValue;
use watch::CallWatch;

/// The first byte of a compiled chunk, which can do what no text can.
const COMPILED: u8 = 0x1b;

/// The settings of a script.
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
    /// The value of `Host`.
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
    /// Its prints go to standard error, as standard output has something else.
    pub is_quiet: bool,
}

/// The state that all threads of a run share.
#[derive(Debug, Default)]
pub(crate) struct ScriptRun {
    is_over: AtomicBool,
    failure: Mutex<Option<String>>,
    /// Known once the first thread's `init` has returned.
    plan: OnceLock<ScriptPlan>,
}

impl ScriptRun {
    pub fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// Notes why the run ends; the first failure counts.
    pub fn fail(&self, call: &str, why: &str) {
        lock(&self.failure).get_or_insert_with(|| format!("{call}, which ended the run: {why}"));
        self.is_over.store(true, Relaxed);
    }

    pub fn plan(&self) -> ScriptPlan {
        self.plan.get().copied().unwrap_or_default()
    }
}

/// The wishes of a thread's script, beside what it returns.
#[derive(Debug)]
pub(crate) struct ThreadWish {
    pub stopped: AtomicBool,
    /// Where its connections go, and whether the script says so.
    address: Mutex<(SocketAddr, bool)>,
}

/// One thread: its state of Lua, and what it reported.
pub(crate) struct ScriptThread {
    pub lua: Mutex<LuaState>,
    pub wish: Arc<ThreadWish>,
}

/// A script that was set up, for one run.
pub struct Scripted {
    main: Mutex<LuaState>,
    threads: Arc<Mutex<Vec<Arc<ScriptThread>>>>,
    run: Arc<ScriptRun>,
    name: String,
    /// Ends with the script.
    _watch: CallWatch,
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
        if text.first() == Some(&COMPILED) {
            return Err(format!(
                "the script {name} is compiled: give its text, which errors can name lines of"
            ));
        }
        let watch = CallWatch::new(settings.call_max, name.clone());
        let make = |native| -> Result<LuaState, String> {
            let mut lua = LuaState::new(settings.memory_max, native, &prelude_arguments(settings))?;
            watch.over(lua.pulse());
            lua.run(&name, &text)
                .map_err(|why| format!("the script failed: {why}"))?;
            Ok(lua)
        };
        let threads: Arc<Mutex<Vec<Arc<ScriptThread>>>> = Arc::default();
        let peers = Arc::clone(&threads);
        let mut main = make(Box::new(move |what, given| of_main(&peers, what, given)))?;
        let run = ScriptRun::default();
        for number in 0..settings.threads {
            let at = number as usize % settings.addresses.len();
            let wish = Arc::new(ThreadWish {
                stopped: AtomicBool::new(false),
                address: Mutex::new((settings.addresses[at], false)),
            });
            let thread_wish = Arc::clone(&wish);
            let lua = make(Box::new(move |what, given| {
                of_thread(&thread_wish, what, given)
            }))?;
            let thread = Arc::new(ScriptThread {
                lua: Mutex::new(lua),
                wish,
            });
            lock(&threads).push(Arc::clone(&thread));
            let index = LuaValue::Number(number.into());
            main.call("setup", std::slice::from_ref(&index))
                .map_err(|why| failed("setup()", &why))?;
            begin(&mut lock(&thread.lua), index, settings, &run)?;
            // A run may be stopped only once it runs, as in wrk.
            thread.wish.stopped.store(false, Relaxed);
        }
        // Printed before what this program prints.
        machine::flush();
        Ok(Scripted {
            main: Mutex::new(main),
            threads,
            run: Arc::new(run),
            name,
            _watch: watch,
        })
    }

    /// Whether it has a `delay`.
    pub fn has_delay(&self) -> bool {
        self.run.plan().has_delay
    }

    /// Requests that `request()` returns at once: the depth of each connection.
    pub fn depth(&self) -> u32 {
        self.run.plan().depth
    }

    /// Addresses that threads go to, which the script may have chosen.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let threads = lock(&self.threads);
        let address = |thread: &Arc<ScriptThread>| lock(&thread.wish.address).0;
        threads.iter().map(address).collect()
    }

    /// The script has failed in the run, which is to end.
    pub fn has_failed(&self) -> bool {
        self.run.is_over()
    }

    /// Why the run ended, if the script failed in it.
    pub fn failure(&self) -> Option<String> {
        let why = lock(&self.run.failure).clone()?;
        Some(format!("{} failed in {why}", self.name))
    }

    /// Calls `done` with what came of the run.
    ///
    /// # Errors
    /// It failed: what is wrong, with file and line.
    pub fn done(&self, result: &LoadResult) -> Result<(), String> {
        let done = lock(&self.main).call("done", &figures::figures(result));
        machine::flush();
        done.map(|_| ())
            .map_err(|why| format!("{} failed in done(): {why}", self.name))
    }
}

fn failed(call: &str, why: &str) -> String {
    format!("the script failed in {call}: {why}")
}

/// Has `init` called in the state of a thread; what the first one's script then defines is the plan of all.
fn begin(
    lua: &mut LuaState,
    index: LuaValue,
    settings: &ScriptSettings,
    run: &ScriptRun,
) -> Result<(), String> {
    let args = settings.args.iter().skip(1).map(|arg| LuaValue::text(arg));
    lua.call("init", &[index, LuaValue::list(args)])
        .map_err(|why| failed("init()", &why))?;
    if run.plan.get().is_none() {
        let plan = source::plan(lua).map_err(|why| failed("request()", &why))?;
        let _ = run.plan.set(plan);
    }
    Ok(())
}

impl ThreadSources for Scripted {
    fn source(&self, thread: u32, slots: usize) -> Box<dyn RequestSource> {
        let thread = Arc::clone(&lock(&self.threads)[thread as usize]);
        Box::new(ScriptSource::new(thread, Arc::clone(&self.run), slots))
    }

    fn followers(&self) -> Option<(Arc<dyn AnswerFollowers>, &'static str)> {
        if !self.run.plan().has_response {
            return None;
        }
        let followers = ScriptFollowers {
            threads: lock(&self.threads).clone(),
            run: Arc::clone(&self.run),
        };
        Some((Arc::new(followers), "the script's response()"))
    }

    fn address(&self, thread: u32) -> Option<SocketAddr> {
        let thread = Arc::clone(&lock(&self.threads)[thread as usize]);
        let (address, is_given) = *lock(&thread.wish.address);
        is_given.then_some(address)
    }
}

/// The arguments of the prelude.
fn prelude_arguments(of: &ScriptSettings) -> LuaValue {
    let text = |text: &str| LuaValue::text(text);
    let headers = of
        .headers
        .iter()
        .map(|(name, value)| (text(name), text(value)));
    let addresses = of.addresses.iter().map(|one| text(&one.to_string()));
    LuaValue::named([
        ("scheme", text(&of.scheme)),
        ("host", text(&of.host)),
        ("port", of.port.as_deref().map_or(LuaValue::Nil, text)),
        ("authority", text(&of.authority)),
        ("path", text(&of.path)),
        ("method", text(&of.method)),
        (
            "url",
            of.args.first().map_or(LuaValue::Nil, |url| text(url)),
        ),
        ("headers", LuaValue::Table(headers.collect())),
        ("addresses", LuaValue::list(addresses)),
        ("compiles", LuaValue::Bool(compiler::ends_loops())),
        ("is_quiet", LuaValue::Bool(of.is_quiet)),
        (
            "body",
            of.body.clone().map_or(LuaValue::Nil, LuaValue::Text),
        ),
    ])
}

/// The functions that a script may call anywhere.
fn anywhere(what: &str, given: &[LuaValue]) -> Result<LuaValue, String> {
    let text = |at: usize| {
        given.get(at).cloned().and_then(|value| match value {
            LuaValue::Number(number) => Some(number.to_string()),
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
            Ok(LuaValue::list(
                found.map(|one| LuaValue::text(&one.to_string())),
            ))
        }
        "connect" => {
            let address = text(0).and_then(|text| text.parse::<SocketAddr>().ok());
            let address = address.ok_or("wrk.connect takes an address of wrk.lookup")?;
            Ok(LuaValue::Bool(
                TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok(),
            ))
        }
        other => Err(format!("there is no `{other}`")),
    }
}

fn of_thread(wish: &ThreadWish, what: &str, given: &[LuaValue]) -> Result<LuaValue, String> {
    match what {
        "stop" => wish.stopped.store(true, Relaxed),
        "address" => return Ok(LuaValue::text(&lock(&wish.address).0.to_string())),
        "move" => {
            let text = given.get(1).cloned().and_then(LuaValue::into_text);
            let address = text.and_then(|text| text.parse().ok());
            *lock(&wish.address) = (address.ok_or("it is no address")?, true);
        }
        _ => return anywhere(what, given),
    }
    Ok(LuaValue::Nil)
}

fn of_main(
    peers: &Mutex<Vec<Arc<ScriptThread>>>,
    what: &str,
    given: &[LuaValue],
) -> Result<LuaValue, String> {
    let thread = || {
        let number = match given.first() {
            Some(LuaValue::Number(number)) => *number as usize,
            _ => usize::MAX,
        };
        lock(peers)
            .get(number)
            .cloned()
            .ok_or("there is no such thread")
    };
    let name = || match given.get(1) {
        Some(LuaValue::Text(name)) => Ok(name.as_slice()),
        _ => Err("the name of a global is a string"),
    };
    match what {
        "get" => {
            let value = lock(&thread()?.lua).get(name()?)?;
            copied(&value, "taken from")?;
            Ok(value)
        }
        "set" => {
            let value = given.get(2).unwrap_or(&LuaValue::Nil);
            copied(value, "given to")?;
            lock(&thread()?.lua).set(name()?, value)?;
            Ok(LuaValue::Nil)
        }
        "stop" | "address" | "move" => of_thread(&thread()?.wish, what, given),
        _ => anywhere(what, given),
    }
}

/// Values go between states as copies.
fn copied(value: &LuaValue, how: &str) -> Result<(), String> {
    match value.not_copied() {
        Some(kind) => Err(format!("{kind} cannot be {how} a thread")),
        None => Ok(()),
    }
}
