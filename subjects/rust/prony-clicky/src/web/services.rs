//! One loop's share of the service, put together from services of the runtime:
//!
//! ```text
//! settings ──> log ──────────────┐
//!     │         └──> counting ───┤
//!     └──────────────────────────┴──> http
//! ```
//!
//! They start in this order and stop in the other: what was accepted is answered, then the
//! log is written. Not for: threads and signals (`serve`).

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use prony_base::{Nanos, clock};
use prony_engine::{Handle, Task};
use prony_http::{Counters, Server, ServerOptions, Source};
use prony_runtime::coroutines::ManualEvent;
use prony_runtime::services::{Context, Definition, Failure, Options, Service, Services};
use prony_wire::Limits;

use super::answers::{ANY_ORIGIN, Answers, Common};
use super::log::{FLUSH_EVERY, Level, Log};
use super::metrics::Counts;
use crate::counting::Desk;
use crate::settings::Settings;

/// Bytes of a body: more than three are wrong already, and said to be so on a connection
/// that stays; from here on it is refused without being read.
const BODY_BYTES_MAX: u64 = 64;
/// A whole page of clicks is one request, and heads are small; a connection holds no more.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long what is under way may take at the stop.
const STOP_MAX: Nanos = Nanos::from_secs(4);

/// Serves connections from `source` until `stop` is ready or the source has ended.
/// `started` is told the server's counters once it serves.
///
/// # Errors
/// [`Failure`]: a service did not start, and why.
pub async fn serve(
    handle: &Handle,
    settings: Arc<Settings>,
    common: Arc<Common>,
    source: Source,
    stop: impl Future<Output = ()>,
    started: impl FnOnce(Arc<Counters>),
) -> Result<(), Failure> {
    let services = Services::new(handle, Options::default());
    let http = Http::new(source, common.clone());
    add_all(&services, settings, common, &http)?;
    services.settle().await?;
    if let Some(counters) = http.counters() {
        started(counters);
    }
    let (mut stop, mut over) = (pin!(stop), pin!(http.over.wait()));
    poll_fn(|cx| match stop.as_mut().poll(cx) {
        Poll::Pending => over.as_mut().poll(cx),
        ready => ready,
    })
    .await;
    services.stop_all().await;
    Ok(())
}

fn add_all(
    services: &Services,
    settings: Arc<Settings>,
    common: Arc<Common>,
    http: &Rc<Http>,
) -> Result<(), Failure> {
    let settings = Definition::new("settings", Known(settings));
    services.add(settings.provides::<Arc<Settings>>(|known| known.0.clone()))?;
    let log = Definition::construct("log", |settings: Arc<Settings>| Logging {
        settings,
        log: RefCell::default(),
        flushing: Cell::default(),
    });
    services.add(log.provides::<Rc<Logging>>(|logging| logging))?;
    let handle = services.handle().clone();
    let counting = Definition::construct("counting", move |_: Rc<Logging>| Counting {
        desk: Rc::new(common.tally.desk(&handle)),
    });
    services.add(counting.provides::<Rc<Desk>>(|counting| counting.desk.clone()))?;
    let http = Definition::shared("http", http.clone())
        .requires::<Rc<Logging>>(
            |http, log, _| *http.log.borrow_mut() = Some(log),
            |http, _| *http.log.borrow_mut() = None,
        )
        .requires::<Rc<Desk>>(
            |http, desk, _| *http.desk.borrow_mut() = Some(desk),
            |http, _| *http.desk.borrow_mut() = None,
        );
    services.add(http)?;
    Ok(())
}

/// The service that knows how everything is set.
struct Known(Arc<Settings>);

impl Service for Known {}

/// The service that has the loop's log.
struct Logging {
    settings: Arc<Settings>,
    log: RefCell<Option<Rc<Log>>>,
    flushing: Cell<Option<Task<()>>>,
}

impl Logging {
    fn log(&self) -> Result<Rc<Log>, Failure> {
        let log = self.log.borrow().clone();
        log.ok_or_else(|| Failure::new("the log is not open"))
    }
}

impl Service for Logging {
    async fn start(&self, context: &Context) -> Result<(), Failure> {
        let setting = &self.settings.log;
        let log = Log::open(setting, clock::unix_nanos)
            .map_err(|error| Failure::new(format!("cannot open {:?}: {error}", setting.place)))?;
        let log = Rc::new(log);
        let (handle, theirs) = (context.handle().clone(), log.clone());
        let flushing = context.handle().spawn(async move {
            while theirs.is_buffered() {
                handle.sleep(FLUSH_EVERY).await;
                theirs.flush();
            }
        });
        self.flushing.set(Some(flushing));
        *self.log.borrow_mut() = Some(log);
        Ok(())
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        self.flushing.take();
        if let Some(log) = self.log.borrow_mut().take() {
            log.flush();
        }
        Ok(())
    }
}

/// The service that has the loop's place to count. The counters themselves outlive it.
struct Counting {
    desk: Rc<Desk>,
}

impl Service for Counting {}

/// The service that answers.
struct Http {
    common: Arc<Common>,
    source: Cell<Option<Source>>,
    log: RefCell<Option<Rc<Logging>>>,
    desk: RefCell<Option<Rc<Desk>>>,
    counters: RefCell<Option<Arc<Counters>>>,
    serving: Cell<Option<Task<()>>>,
    stopping: Rc<ManualEvent>,
    over: Rc<ManualEvent>,
}

impl Http {
    fn new(source: Source, common: Arc<Common>) -> Rc<Http> {
        Rc::new(Http {
            common,
            source: Cell::new(Some(source)),
            log: RefCell::default(),
            desk: RefCell::default(),
            counters: RefCell::default(),
            serving: Cell::default(),
            stopping: Rc::default(),
            over: Rc::default(),
        })
    }

    /// What the server counts, once it has started.
    fn counters(&self) -> Option<Arc<Counters>> {
        self.counters.borrow().clone()
    }

    fn log(&self) -> Result<Rc<Log>, Failure> {
        let logging = self.log.borrow().clone();
        logging.ok_or_else(|| Failure::new("it has no log"))?.log()
    }

    fn answers(&self, handle: &Handle, log: &Rc<Log>) -> Result<Answers, Failure> {
        let desk = self.desk.borrow().clone();
        Ok(Answers {
            common: self.common.clone(),
            desk: desk.ok_or_else(|| Failure::new("it has nowhere to count"))?,
            log: log.clone(),
            counts: Arc::new(Counts::new(log.lost().clone())),
            handle: handle.clone(),
        })
    }
}

impl Service for Http {
    async fn start(&self, context: &Context) -> Result<(), Failure> {
        let handle = context.handle();
        let log = self.log()?;
        let answers = self.answers(handle, &log)?;
        let source = self.source.take();
        let source = source.ok_or_else(|| Failure::new("its listener was used up"))?;
        let counts = answers.counts.clone();
        let server = Server::new(handle, options(), answers);
        let counters = server.counters().clone();
        self.common.board.add(counters.clone(), counts);
        *self.counters.borrow_mut() = Some(counters);
        let stopping = self.stopping.clone();
        let stop = async move { stopping.wait().await };
        let over = self.over.clone();
        let serving = async move {
            server.run(source, stop).await;
            over.set();
        };
        self.serving.set(Some(handle.spawn(serving)));
        Ok(())
    }

    /// Answers what was accepted, then ends.
    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        self.stopping.set();
        if let Some(serving) = self.serving.take() {
            serving.await;
        }
        let log = self.log()?;
        log.line(
            Level::Info,
            format_args!("stopped: what was accepted is answered"),
        );
        Ok(())
    }
}

fn options() -> ServerOptions {
    ServerOptions {
        limits: Limits {
            body_bytes_max: BODY_BYTES_MAX,
            head_bytes_max: HEAD_BYTES_MAX,
            ..Limits::for_requests()
        },
        stop_timeout: STOP_MAX,
        headers: vec![ANY_ORIGIN],
        ..ServerOptions::default()
    }
}
