//! The ping service: a whole small application on the runtime.
//!
//! Three kinds of services, each known to the others only by what it provides:
//!
//! ```text
//! settings  ──dyn Settings──┐
//!                           ├──> http: answers POST /ping and GET /hello
//! loggers ──a dyn Logger────┘    (its own logger, named after it, made on request)
//! ```
//!
//! [`serve`] puts them together, runs until it is told to stop, and then stops them in
//! reverse order: what was accepted is answered before `http` has stopped. Start with
//! `crates/ping/examples/ping.rs`, which is its shortest use; `prony serve --services` is
//! the same application behind the command's options.
//!
//! The server of `prony serve` without `--services`, which needs no services and answers more, is in [`mod@reference`]. Both run on
//! one thread or on several ([`serve_on_loops`]).
#![forbid(unsafe_code)]

mod http;
mod logger;
mod loops;
pub mod reference;
mod settings;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use prony_engine::Handle;
use prony_http::{Counters, ServerOptions, Source};
use prony_runtime::services::{Definition, FactoryRequest, Failure, Options, Services};

use self::http::Http;
use self::logger::Loggers;
pub use self::logger::{Level, Logger};
pub use self::loops::{LoopServer, serve_on_loops};
pub use self::settings::{Fixed, Settings};

/// Serves connections from `source` until `stop` is ready or the source has ended. `started` is told the server's
/// counters once it serves.
///
/// # Errors
/// [`Failure`]: a service did not start, and why.
pub async fn serve(
    handle: &Handle,
    settings: Fixed,
    source: Source,
    stop: impl Future<Output = ()>,
    started: impl FnOnce(Arc<Counters>),
) -> Result<(), Failure> {
    let services = Services::new(handle, Options::default());
    let settings =
        Definition::new("settings", settings).provides::<Rc<dyn Settings>>(|settings| settings);
    let loggers = Definition::construct("loggers", |settings: Rc<dyn Settings>| {
        Loggers::new(settings.level())
    })
    .makes::<Rc<dyn Logger>, _>(|loggers, request: &FactoryRequest| {
        Definition::new(request.name(), loggers.named(request.name()))
            .provides::<Rc<dyn Logger>>(|logger| logger)
    });
    let http = Http::new(source);
    let server = http.clone();
    let http = Definition::shared("http", http)
        .requires::<Rc<dyn Settings>>(
            |http, settings, _| http.set_settings(Some(settings)),
            |http, _| http.set_settings(None),
        )
        .requires::<Rc<dyn Logger>>(
            |http, logger, _| http.set_logger(Some(logger)),
            |http, _| http.set_logger(None),
        );
    services.add(http)?;
    services.add(loggers)?;
    services.add(settings)?;
    services.settle().await?;
    if let Some(counters) = server.counters() {
        started(counters);
    }
    let (mut stop, mut over) = (pin!(stop), pin!(server.over()));
    poll_fn(|cx| match stop.as_mut().poll(cx) {
        Poll::Pending => over.as_mut().poll(cx),
        ready => ready,
    })
    .await;
    services.stop_all().await;
    Ok(())
}

/// The application on one loop of several, with the usual log.
pub struct ServicesServer(pub ServerOptions);

impl LoopServer for ServicesServer {
    async fn serve(
        self,
        handle: &Handle,
        source: Source,
        stop: impl Future<Output = ()>,
        started: impl FnOnce(Arc<Counters>) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let settings = Fixed {
            server: self.0,
            ..Fixed::default()
        };
        let mut announced = Ok(());
        let started = |counters| announced = started(counters);
        let served = serve(handle, settings, source, stop, started).await;
        served.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        Ok(announced?)
    }
}

#[cfg(test)]
mod tests;
