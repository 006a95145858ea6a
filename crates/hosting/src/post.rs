//! A worker's place of work, and serving at it: with a supervisor, or [`alone`].

use std::fmt;
use std::io::{self, Write};
use std::rc::Rc;

use prony_base::Nanos;
use prony_engine::{Config, Handle, ListenOptions};
use prony_http::{Handler, Server, ServerOptions, Source};

use crate::settings::Settings;

/// What an application is given when it is loaded.
#[derive(Clone, Debug)]
pub struct Post {
    /// The worker's event loop.
    pub handle: Handle,
    /// What the host was told, with the address that is listened on.
    pub settings: Rc<Settings>,
    /// The worker's number, from 0; whoever replaces it has the same.
    pub number: u32,
}

/// Why an application could not be loaded: what its author has to read, with file and
/// line where there is one; may have several lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError(pub String);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

/// Serves in this process until SIGTERM or SIGINT. Says on `out` where it listens.
///
/// # Errors
/// The address cannot be used, or the application cannot be loaded.
pub fn alone<H: Handler + 'static>(
    settings: Settings,
    load: impl FnOnce(&Post) -> Result<H, LoadError>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let config = Config {
        driver: settings.driver(),
        ..Config::default()
    };
    let served = prony_engine::run(&config, |handle| async move {
        let options = ListenOptions {
            backlog: settings.backlog,
            ..ListenOptions::default()
        };
        let listener = handle.listen(settings.address, &options)?;
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
        let application = load(&post).map_err(io::Error::other)?;
        writeln!(out, "listening on http://{address}")?;
        out.flush()?;
        let server = Server::new(&handle, server_options, application);
        server
            .run(Source::Listener(listener), std::future::pending())
            .await;
        Ok(())
    });
    served.map_err(io::Error::other)?
}

fn server_options(settings: &Settings) -> ServerOptions {
    let mut options = ServerOptions {
        idle_timeout: settings.idle_timeout_ns.map_or(Nanos::MAX, Nanos),
        stop_timeout: Nanos(settings.graceful_timeout_ns),
        ..ServerOptions::default()
    };
    options.limits.body_bytes_max = settings.body_max;
    options
}
