//! `prony serve`: the reference server ([`prony_ping::reference`]), or with `--services` the same put together from services.

mod tls;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use prony_base::Nanos;
use prony_base::typed::{duration, size};
use prony_engine::{Config, DriverChoice, Handle, ListenOptions, Listener};
use prony_http::{Budget, ServerOptions};
use prony_ping::reference::{ENDPOINTS, Payload, reference};
use prony_ping::{LoopServer, ServicesServer, serve_on_loops};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::spin::Spin;
use crate::{Ending, Streams};

/// Sizes the kernel's queues; not a limit.
const CONNECTIONS_HINT: u32 = 16_384;

/// `prony serve`
#[derive(Debug, Args)]
#[command(after_help = ENDPOINTS)]
pub struct ServeOptions {
    /// Address to listen on; 0.0.0.0 for all of this machine's
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    host: String,
    /// Port to listen on; 0 takes a free one, which is printed
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    port: u16,
    /// Threads to use, one event loop each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Connections that the kernel may hold before they are accepted
    /// (it lowers this to net.core.somaxconn)
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    backlog: u32,
    /// Close a connection that is idle for this long; 0: never
    #[arg(long, value_name = "T", default_value = "75s", value_parser = duration::parse)]
    idle_timeout: Nanos,
    /// Connections open at once, divided equally over all threads; others wait until one ends, as --backlog says.
    /// Fewer if the process may not have so many descriptors
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    connections_max: u32,
    /// Minimum bytes a second of a request's body, from 30 s after its head on; slower ones are refused (408); 0: none
    #[arg(long, value_name = "SIZE", default_value = "500", value_parser = size::parse)]
    body_rate_min: u64,
    /// Memory for the bodies of all unanswered requests; a request whose body does not fit is refused (503)
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size::parse_positive)]
    body_memory: u64,
    /// Build the server from services (settings, loggers, http) of the runtime; it then answers /ping and /hello only
    #[arg(long, value_name = "off|on", default_value = "off", default_missing_value = "on", num_args = 0..=1, value_parser = ["off", "on"])]
    services: String,
    /// Serve this many bytes at /testpayload, generated at the start and always the same: 200MiB, 1GiB; 0: none
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    payload: Option<u64>,
    /// Serve this file at /testpayload, as it is at the start
    #[arg(long, value_name = "FILE", conflicts_with = "payload")]
    payload_file: Option<PathBuf>,
    /// Speak HTTP/1.1 only; else HTTP/2 as well, to clients that begin with it or choose it under TLS (ALPN)
    #[arg(long)]
    no_http2: bool,
    #[command(flatten)]
    tls: tls::ServeTlsWords,
    /// Driver of the event loops: auto, ring or epoll [default: $PRONY_DRIVER, else auto]
    #[arg(long, value_name = "DRIVER")]
    driver: Option<DriverChoice>,
    /// Look for requests before sleeping: for up to a time, `auto` (50us) where that pays, `off`, or `always`, as without a
    /// value: more requests a second from few connections, for more CPU time
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_value = "off", default_missing_value = "always", value_parser = Spin::parse)]
    spin: Spin,
}

/// Serves until SIGTERM or SIGINT, then answers what was accepted.
pub fn run(options: &ServeOptions, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let mut setting = options.resolve()?;
    let signals = signals()?;
    prony_program::children::raise_open_files();
    let server = &setting.server;
    if options.services == "on" {
        let servers = (0..setting.threads).map(|_| ServicesServer(server.clone()));
        let servers = servers.collect();
        return serve(&setting, servers, &signals, streams.out, &mut io::sink());
    }
    let servers = reference(setting.threads, server, setting.payload.take());
    serve(&setting, servers, &signals, streams.out, streams.err)
}

/// Serves with `servers`, one on each thread. That there is no io_uring is a note for `err`.
fn serve<L: LoopServer>(
    setting: &Setting,
    servers: Vec<L>,
    signals: &UnixStream,
    out: &mut dyn io::Write,
    err: &mut dyn io::Write,
) -> anyhow::Result<Ending> {
    let listen = |handle: &Handle| {
        if let Some(why) = handle.fallback() {
            writeln!(err, "prony: using epoll, not io_uring: {why}")?;
        }
        setting.listen(handle)
    };
    let stop = async |handle: &Handle| {
        // A pipe that cannot be waited for could only be ignored or obeyed at once.
        let _ = handle.readable(signals).await;
    };
    let ready = |address| {
        if let Some(files) = setting.made.as_ref().map(tls::MadeFiles::files) {
            let (certificate, key) = (&files.certificate, &files.key);
            writeln!(out, "certificate {}", certificate.display())?;
            writeln!(out, "key {}", key.display())?;
        }
        writeln!(out, "listening on {}://{address}", setting.scheme())?;
        out.flush()
    };
    let connections_max = setting.server.connections_max;
    serve_on_loops(
        &setting.config,
        connections_max,
        servers,
        listen,
        stop,
        ready,
    )?;
    Ok(Ending::Done)
}

/// The checked options.
struct Setting {
    address: SocketAddr,
    listen: ListenOptions,
    threads: u32,
    config: Config,
    server: ServerOptions,
    payload: Option<Payload>,
    /// The certificate that was made, if it was.
    made: Option<tls::MadeFiles>,
}

impl ServeOptions {
    fn resolve(&self) -> anyhow::Result<Setting> {
        let place = (self.host.as_str(), self.port);
        let mut found = place.to_socket_addrs().with_context(|| {
            format!(
                "`{}` is not the address of a host: give one such as 127.0.0.1, 0.0.0.0 or ::1",
                self.host
            )
        })?;
        let Some(address) = found.next() else {
            bail!("`{}` has no address", self.host);
        };
        let idle_timeout = match self.idle_timeout {
            Nanos::ZERO => Nanos::MAX,
            length => length,
        };
        let secured = self.tls.resolve(&self.host, !self.no_http2)?;
        if secured.is_some() && self.services == "on" {
            bail!("a server of --services speaks plain HTTP only: leave --tls out");
        }
        let (tls, made) = secured.unzip();
        Ok(Setting {
            address,
            listen: ListenOptions {
                backlog: self.backlog,
                ..ListenOptions::default()
            },
            threads: self.threads,
            config: Config {
                driver: self.driver()?,
                connections_hint: CONNECTIONS_HINT,
                spin: self.spin.is_always(),
                look_before_sleep: self.spin.look_before_sleep(),
                ..Config::default()
            },
            server: ServerOptions {
                idle_timeout,
                connections_max: self.connections_max.div_ceil(self.threads) as usize,
                body_rate_min: self.body_rate_min,
                body_memory: Budget::new(self.body_memory),
                tls,
                http2: !self.no_http2,
                ..ServerOptions::default()
            },
            payload: self.payload()?,
            made: made.flatten(),
        })
    }

    fn payload(&self) -> anyhow::Result<Option<Payload>> {
        let payload = match (
            self.payload.filter(|&length| length > 0),
            &self.payload_file,
        ) {
            (Some(length), _) => Payload::made(length)?,
            (None, Some(path)) => Payload::from_file(path)?,
            (None, None) => return Ok(None),
        };
        if self.services == "on" {
            bail!("a server of --services has no /testpayload: leave --payload out");
        }
        Ok(Some(payload))
    }

    fn driver(&self) -> anyhow::Result<DriverChoice> {
        match self.driver {
            Some(driver) => Ok(driver),
            None => crate::driver::chosen()?.parse().map_err(anyhow::Error::msg),
        }
    }
}

impl Setting {
    fn scheme(&self) -> &'static str {
        match self.server.tls {
            None => "http",
            Some(_) => "https",
        }
    }

    fn listen(&self, handle: &Handle) -> anyhow::Result<Listener> {
        let Setting {
            address, listen, ..
        } = self;
        handle.listen(*address, listen).map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => format!(
                    "stop what listens there (`ss -ltnp 'sport = :{}'` names it), or give another --port; 0 takes a free one",
                    address.port()
                ),
                io::ErrorKind::PermissionDenied => {
                    "ports under 1024 are root's: give another --port".to_owned()
                }
                io::ErrorKind::AddrNotAvailable => {
                    "this machine has no such address: give another --host, such as 127.0.0.1 or 0.0.0.0".to_owned()
                }
                _ => return anyhow!(error).context(format!("cannot listen on {address}")),
            };
            anyhow!("cannot listen on {address}: {error}; {advice}")
        })
    }
}

/// A pipe that SIGTERM and SIGINT write to; a second signal ends the process.
fn signals() -> anyhow::Result<UnixStream> {
    crate::signals::interruption()?;
    let (read, write) = UnixStream::pair().context("cannot make a pipe for signals")?;
    for signal in [SIGTERM, SIGINT] {
        let write = write
            .try_clone()
            .context("cannot copy the pipe for signals")?;
        signal_hook::low_level::pipe::register(signal, write)
            .context("cannot listen for signals")?;
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        options: ServeOptions,
    }

    fn server(words: &[&str]) -> ServerOptions {
        let typed = Typed::parse_from([&["serve"], words].concat());
        typed.options.resolve().expect("a setting").server
    }

    #[test]
    fn limits_are_those_that_were_typed() {
        let usual = server(&[]);
        assert_eq!((usual.connections_max, usual.body_rate_min), (100_000, 500));
        let words = ["--connections-max", "7", "--threads", "2"];
        assert_eq!(server(&words).connections_max, 4);
        let words = ["--body-rate-min", "2KiB", "--connections-max", "7"];
        let typed = server(&words);
        assert_eq!((typed.connections_max, typed.body_rate_min), (7, 2048));
        assert_eq!(server(&["--body-rate-min", "0"]).body_rate_min, 0);
    }
}
