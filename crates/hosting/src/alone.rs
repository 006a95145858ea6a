//! Serving in the host's own process ([`alone`]), and what workers do as it does.

use std::future::{Future as _, poll_fn};
use std::io::Write;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use prony_base::Nanos;
use prony_engine::{Config, Handle, ListenOptions, Listener};
use prony_http::{Budget, Handler, Server, ServerOptions, Source, Stopping};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::ending::{Ended, Error, LoadError};
use crate::post::Post;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::site::Site;

/// How long a host that ends keeps a connection at rest, for a request that may be on
/// its way.
pub(crate) const DRAIN_GRACE: Nanos = Nanos::from_millis(100);

/// Serves in this process until SIGTERM or SIGINT, and then answers what was begun; a
/// second one ends it at once. Says on `out` where it listens.
///
/// # Errors
/// The address cannot be used, or the application cannot be loaded.
pub fn alone<H: Handler + 'static>(
    settings: Settings,
    load: impl FnOnce(&Post) -> Result<H, LoadError>,
    out: &mut dyn Write,
) -> Result<Ended, Error> {
    raise_descriptor_limit();
    let signals = Signals::to_stop().map_err(|error| Error::System("listen for signals", error))?;
    let config = Config {
        driver: settings.driver(),
        ..Config::default()
    };
    prony_engine::run(&config, |handle| async move {
        let options = ListenOptions {
            backlog: settings.backlog,
            ..ListenOptions::default()
        };
        let wanted = settings.address;
        let listener = handle
            .listen(wanted, &options)
            .map_err(|error| Error::Listen(wanted, error))?;
        let address = listener.local_addr();
        let server_options = server_options(&settings);
        let post = Post {
            handle: handle.clone(),
            settings: Rc::new(Settings {
                address,
                ..settings
            }),
            number: 0,
        };
        let site = Site::new(load(&post)?, &post, None, Rc::default())?;
        let printed = writeln!(out, "listening on http://{address}");
        // Who does not read it does not want to know.
        let _ = printed.and_then(|()| out.flush());
        let server = Server::new(&handle, server_options, site);
        Ok(serve_until(&handle, server, listener, &signals).await)
    })?
}

async fn serve_until<H: Handler + 'static>(
    handle: &Handle,
    server: Server<H>,
    listener: Listener,
    signals: &Signals,
) -> Ended {
    let shutdown = server.shutdown_handle();
    let mut serving = pin!(server.run(Source::Listener(listener), std::future::pending()));
    let mut signalled = 0;
    let mut hearing = pin!(async {
        loop {
            signalled += signals.arrived(handle).await;
            if signalled > 1 {
                return;
            }
            shutdown.stop(Stopping {
                takes_backlog: true,
                idle_grace: DRAIN_GRACE,
            });
        }
    });
    poll_fn(|cx| {
        if hearing.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ended::AtOnce);
        }
        serving.as_mut().poll(cx).map(|()| Ended::Gracefully)
    })
    .await
}

/// As many connections as the machine allows: the soft limit is for programs that use
/// `select`.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Where that is forbidden, accepting waits for free descriptors.
    let _ = setrlimit(Resource::Nofile, raised);
}

pub(crate) fn server_options(settings: &Settings) -> ServerOptions {
    let mut options = ServerOptions {
        idle_timeout: settings.idle_timeout_ns.map_or(Nanos::MAX, Nanos),
        stop_timeout: Nanos(settings.graceful_timeout_ns),
        body_rate_min: settings.body_rate_min,
        body_memory: Budget::new(settings.body_memory),
        connections_max: settings.connections_max as usize,
        ..ServerOptions::default()
    };
    options.limits.body_bytes_max = settings.body_max;
    options
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::settings::Words;

    #[derive(clap::Parser)]
    struct Typed {
        #[command(flatten)]
        words: Words,
    }

    fn options(words: &[&str]) -> ServerOptions {
        let typed = Typed::parse_from([&["host", "module:app"], words].concat());
        let settings = typed.words.resolve(serde_json::Value::Null);
        server_options(&settings.expect("settings"))
    }

    #[test]
    fn a_server_has_the_limits_that_were_typed() {
        let usual = options(&[]);
        assert_eq!((usual.connections_max, usual.body_rate_min), (100_000, 500));
        let words = ["--connections-max", "7", "--body-rate-min", "0"];
        let typed = options(&words);
        assert_eq!((typed.connections_max, typed.body_rate_min), (7, 0));
        let typed = options(&["--graceful-timeout", "7s", "--idle-timeout", "0"]);
        assert_eq!(typed.stop_timeout, Nanos::from_secs(7));
        assert_eq!(typed.idle_timeout, Nanos::MAX);
    }
}
