//! `prony serve`: the reference server. What it answers is in `serve/app.rs`.
//!
//! One loop on each thread. With several threads the first one accepts, and gives
//! each connection to the loop with the fewest open.

mod app;
mod payload;
mod services;
mod stall;
mod tls;

use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use prony_base::Nanos;
use prony_base::typed::duration;
use prony_engine::{
    Accepted, Config, DriverChoice, Handle, ListenOptions, Listener, Receiver, Sender, mailbox,
};
use prony_http::{AcceptTarget, Budget, Counters, Server, ServerOptions, Source, distribute};
use signal_hook::consts::{SIGINT, SIGTERM};

use self::app::{App, Board};
use self::payload::Payload;
use crate::{Ending, Streams};
use prony_base::typed::size;

/// Connections on their way to one loop; more are closed at once.
const HANDED_OVER_MAX: usize = 65_536;
/// Orders to stall on their way to one loop; more are refused.
const ORDERS_MAX: usize = 64;
/// Sizes the kernel's queues; not a limit.
const CONNECTIONS_HINT: u32 = 16_384;

/// `prony serve`
#[derive(Debug, Args)]
#[command(after_help = app::ENDPOINTS)]
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
}

/// Serves until SIGTERM or SIGINT, then answers what was accepted.
pub fn run(options: &ServeOptions, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let setting = options.resolve()?;
    let signals = signals()?;
    prony_program::children::raise_open_files();
    if options.services == "on" {
        return services::run(&setting, &signals, streams);
    }
    let board = Arc::new(Board::default());
    let (orders, receivers) = (0..setting.threads).map(|_| mailbox(ORDERS_MAX)).unzip();
    let mut loops = Loops::start(&setting, &board, orders, receivers)?;
    let first = loops.first.take().context("there is at least one thread")?;
    let setting = &setting;
    let served = prony_engine::run(&setting.config, |handle| async move {
        if let Some(why) = handle.fallback() {
            writeln!(streams.err, "prony: using epoll, not io_uring: {why}")?;
        }
        let listener = setting.listen(&handle)?;
        let address = listener.local_addr();
        first
            .serve(
                &handle,
                listener,
                loops.targets,
                stopped(&handle, &signals),
                || {
                    if let Some(files) = setting.made.as_ref().map(tls::MadeFiles::files) {
                        let (certificate, key) = (&files.certificate, &files.key);
                        writeln!(streams.out, "certificate {}", certificate.display())?;
                        writeln!(streams.out, "key {}", key.display())?;
                    }
                    writeln!(streams.out, "listening on {}://{address}", setting.scheme())?;
                    streams.out.flush()
                },
            )
            .await?;
        Ok::<_, anyhow::Error>(loops.workers)
    });
    join(served.map_err(explain)??)?;
    Ok(Ending::Done)
}

/// What was typed, checked.
struct Setting {
    address: SocketAddr,
    listen: ListenOptions,
    threads: u32,
    config: Config,
    server: ServerOptions,
    payload: Option<Arc<Payload>>,
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
            payload: self.payload()?.map(Arc::new),
            made: made.flatten(),
        })
    }

    fn payload(&self) -> anyhow::Result<Option<Payload>> {
        let payload = match (
            self.payload.filter(|&length| length > 0),
            &self.payload_file,
        ) {
            (Some(length), _) => Payload::made(length)?,
            (None, Some(path)) => Payload::of(path)?,
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

fn explain(error: prony_engine::Error) -> anyhow::Error {
    anyhow!(error).context("the event loop cannot run")
}

/// What one loop serves with.
struct ServerLoop {
    server: ServerOptions,
    board: Arc<Board>,
    orders: Vec<Sender<stall::Order>>,
    payload: Option<Arc<Payload>>,
    received: Receiver<stall::Order>,
    /// None where this is the only loop.
    connections: Option<Receiver<Accepted>>,
}

impl ServerLoop {
    /// Starts a server; yields where its connections come from, if not from a
    /// listener of its own.
    fn start(self, handle: &Handle) -> (Server<App>, Option<Source>) {
        handle
            .spawn(stall::obey(handle.clone(), self.received))
            .detach();
        // Where a loop cannot have the file, it says so when it is asked for it.
        let payload = self.payload.map(|payload| payload.for_loop());
        let app = App::new(self.board.clone(), self.orders, payload);
        let counts = app.counts();
        let server = Server::new(handle, self.server, app);
        self.board.add(Arc::clone(server.counters()), counts);
        (server, self.connections.map(Source::HandedOver))
    }

    /// Serves on the first loop, which listens as well.
    async fn serve(
        self,
        handle: &Handle,
        listener: Listener,
        targets: Vec<(Sender<Accepted>, Option<Arc<Counters>>)>,
        stop: impl Future<Output = ()>,
        ready: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let connections_max = self.server.connections_max;
        let (server, source) = self.start(handle);
        let Some(source) = source else {
            ready()?;
            server.run(Source::Listener(listener), stop).await;
            return Ok(());
        };
        let targets = targets.into_iter().map(|(sender, counters)| {
            let counters = counters.unwrap_or_else(|| Arc::clone(server.counters()));
            AcceptTarget::new(sender, counters).with_connections_max(connections_max)
        });
        let targets = targets.collect();
        ready()?;
        let serving = handle.spawn(server.run(source, std::future::pending()));
        distribute(handle, listener, targets, stop).await;
        serving.await;
        Ok(())
    }
}

/// The loops of a server: the first for this thread, the others running.
struct Loops {
    first: Option<ServerLoop>,
    /// Of each loop: where its connections go, and what it counts (not known
    /// yet for the first).
    targets: Vec<(Sender<Accepted>, Option<Arc<Counters>>)>,
    workers: Vec<LoopThread>,
}

impl Loops {
    /// Starts a thread for each loop but the first, and waits until they run.
    fn start(
        setting: &Setting,
        board: &Arc<Board>,
        orders: Vec<Sender<stall::Order>>,
        receivers: Vec<Receiver<stall::Order>>,
    ) -> anyhow::Result<Loops> {
        let mut loops = Loops {
            first: None,
            targets: Vec::new(),
            workers: Vec::new(),
        };
        for received in receivers {
            let (sender, connections) = mailbox(HANDED_OVER_MAX);
            let server_loop = ServerLoop {
                server: setting.server.clone(),
                board: Arc::clone(board),
                orders: orders.clone(),
                payload: setting.payload.clone(),
                received,
                connections: (setting.threads > 1).then_some(connections),
            };
            if loops.first.is_none() {
                loops.first = Some(server_loop);
                loops.targets.push((sender, None));
            } else {
                let serve = |handle: Handle, report: mpsc::Sender<_>| async move {
                    let (server, source) = server_loop.start(&handle);
                    // The first thread waits for this.
                    let _ = report.send(Arc::clone(server.counters()));
                    if let Some(source) = source {
                        server.run(source, std::future::pending()).await;
                    }
                    Ok(())
                };
                let (worker, counters) = start_thread(&setting.config, serve)?;
                loops.workers.push(worker);
                loops.targets.push((sender, Some(counters)));
            }
        }
        Ok(loops)
    }
}

/// A thread with a loop of a server.
type LoopThread = JoinHandle<anyhow::Result<()>>;

/// Starts a thread for a loop, on which `serve` tells once it serves what it counts, and waits for that.
fn start_thread<F>(
    config: &Config,
    serve: impl FnOnce(Handle, mpsc::Sender<Arc<Counters>>) -> F + Send + 'static,
) -> anyhow::Result<(LoopThread, Arc<Counters>)>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let (report, reported) = mpsc::channel();
    let config = config.clone();
    let work =
        move || prony_engine::run(&config, |handle| serve(handle, report)).map_err(explain)?;
    let thread = thread::Builder::new()
        .name("prony-serve".to_owned())
        .spawn(work);
    let thread = thread.context("cannot start a thread")?;
    match reported.recv() {
        Ok(counters) => Ok((thread, counters)),
        Err(_) => match thread.join() {
            Ok(Err(error)) => Err(error),
            _ => bail!("a thread of the server ended before it served"),
        },
    }
}

/// Waits for the loops of other threads.
fn join(threads: Vec<LoopThread>) -> anyhow::Result<()> {
    for thread in threads {
        let ended = thread.join();
        ended.map_err(|_| anyhow!("a thread of the server panicked"))??;
    }
    Ok(())
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

/// Ready at the first signal.
async fn stopped(handle: &Handle, signals: &UnixStream) {
    // A pipe that cannot be waited for could only be ignored or obeyed at once.
    let _ = handle.readable(signals).await;
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
