//! The service that answers requests.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use prony_engine::Task;
use prony_http::{Counters, Handler, Header, Method, Request, Response, Server, Source};
use prony_runtime::coroutines::ManualEvent;
use prony_runtime::services::{Context, Failure, Service};
use prony_wire::json;

use super::{Level, Logger, Settings};

const TEXT: Header<'_> = Header::new("content-type", b"text/plain");
const JSON: Header<'_> = Header::new("content-type", b"application/json");

json::message! {
    /// What is sent, and sent back.
    struct Ping {
        sequence: u64,
    }
}

/// Answers requests while it runs.
pub struct Http {
    source: Cell<Option<Source>>,
    settings: RefCell<Option<Rc<dyn Settings>>>,
    logger: RefCell<Option<Rc<dyn Logger>>>,
    counters: RefCell<Option<Arc<Counters>>>,
    serving: Cell<Option<Task<()>>>,
    stopping: Rc<ManualEvent>,
    over: Rc<ManualEvent>,
}

impl Http {
    /// One that will serve what comes from `source`.
    pub fn new(source: Source) -> Rc<Http> {
        Rc::new(Http {
            source: Cell::new(Some(source)),
            settings: RefCell::default(),
            logger: RefCell::default(),
            counters: RefCell::default(),
            serving: Cell::default(),
            stopping: Rc::default(),
            over: Rc::default(),
        })
    }

    pub fn set_settings(&self, settings: Option<Rc<dyn Settings>>) {
        self.settings.replace(settings);
    }

    pub fn set_logger(&self, logger: Option<Rc<dyn Logger>>) {
        self.logger.replace(logger);
    }

    /// What the server counts, once it has started.
    pub fn counters(&self) -> Option<Arc<Counters>> {
        self.counters.borrow().clone()
    }

    /// Waits until it serves no more: it was stopped, or its source has ended.
    pub async fn over(&self) {
        self.over.wait().await;
    }

    fn log(&self, level: Level, line: &str) {
        if let Some(logger) = &*self.logger.borrow() {
            logger.log(level, line);
        }
    }
}

impl Service for Http {
    async fn start(&self, context: &Context) -> Result<(), Failure> {
        let settings = self.settings.borrow().clone();
        let settings = settings.ok_or_else(|| Failure::new("it has no settings"))?;
        let logger = self.logger.borrow().clone();
        let logger = logger.ok_or_else(|| Failure::new("it has no logger"))?;
        let source = self.source.take();
        let source = source.ok_or_else(|| Failure::new("its listener was used up"))?;
        let handle = context.handle();
        let server = Server::new(handle, settings.server(), Answers { logger });
        *self.counters.borrow_mut() = Some(Arc::clone(server.counters()));
        let stopping = self.stopping.clone();
        let stop = async move { stopping.wait().await };
        let over = self.over.clone();
        let serving = async move {
            server.run(source, stop).await;
            over.set();
        };
        self.serving.set(Some(handle.spawn(serving)));
        self.log(Level::Info, "serving");
        Ok(())
    }

    /// Answers what was accepted, then ends.
    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        self.stopping.set();
        if let Some(serving) = self.serving.take() {
            serving.await;
        }
        self.log(Level::Info, "every request that was accepted is answered");
        Ok(())
    }
}

struct Answers {
    logger: Rc<dyn Logger>,
}

impl Handler for Answers {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        match (request.path(), request.method()) {
            ("/ping", Method::Post) => ping(request.body(), response),
            ("/ping", _) => response.method_not_allowed("POST"),
            ("/hello", Method::Get | Method::Head) => {
                response.send(200, [TEXT], b"Hello, World!");
            }
            ("/hello", _) => response.method_not_allowed("GET, HEAD"),
            _ => response.text(404, "there is /ping and /hello\n"),
        }
        if self.logger.logs(Level::Debug) {
            self.logger.log(Level::Debug, request.target());
        }
    }
}

fn ping(body: &[u8], response: &mut Response) {
    match json::from_slice::<Ping>(body) {
        Ok(ping) => response.send(200, [JSON], &json::to_vec(&ping)),
        Err(error) => response.text(400, &format!("{error}\n")),
    }
}
