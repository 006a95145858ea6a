//! A server on several threads, one event loop each. The first one accepts, and gives each connection to the loop with the
//! fewest open; a server on one thread accepts by itself.
//!
//! Not for: what is served ([`LoopServer`]).

use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, anyhow, bail};
use prony_engine::{Accepted, Config, Handle, Listener, Receiver, mailbox};
use prony_http::{AcceptTarget, Counters, Source, distribute};

/// Connections on their way to one loop; more are closed at once.
const HANDED_OVER_MAX: usize = 65_536;

/// The part of a server that runs on one loop.
pub trait LoopServer: Send + 'static {
    /// Serves connections from `source` until `stop` is ready or the source has ended. `started` receives the counters before the
    /// first connection is served; where it fails, nothing is served.
    fn serve(
        self,
        handle: &Handle,
        source: Source,
        stop: impl Future<Output = ()>,
        started: impl FnOnce(Arc<Counters>) -> io::Result<()>,
    ) -> impl Future<Output = anyhow::Result<()>>;
}

/// Serves with each of `servers` on a loop of its own, the first on this thread, until `stop` is ready. Each has at most
/// `connections_max` connections open. `ready` receives the address once all loops serve.
///
/// # Errors
/// There is no server, a loop or a thread cannot be started, or one of them, `listen` or `ready` fails.
pub fn serve_on_loops<L: LoopServer>(
    config: &Config,
    connections_max: usize,
    servers: Vec<L>,
    listen: impl FnOnce(&Handle) -> anyhow::Result<Listener>,
    stop: impl AsyncFnOnce(&Handle),
    ready: impl FnOnce(SocketAddr) -> io::Result<()>,
) -> anyhow::Result<()> {
    let target = |sender, counters| {
        AcceptTarget::new(sender, counters).with_connections_max(connections_max)
    };
    let mut servers = servers.into_iter();
    let first = servers.next().context("there is at least one thread")?;
    let (mut threads, mut targets) = (Vec::new(), Vec::new());
    for server in servers {
        let (sender, connections) = mailbox(HANDED_OVER_MAX);
        let (thread, counters) = start_thread(config, server, connections)?;
        threads.push(thread);
        targets.push(target(sender, counters));
    }
    let served = prony_engine::run(config, |handle| async move {
        let listener = listen(&handle)?;
        let address = listener.local_addr();
        let stop = stop(&handle);
        if targets.is_empty() {
            let source = Source::Listener(listener);
            return first.serve(&handle, source, stop, |_| ready(address)).await;
        }
        let (sender, connections) = mailbox(HANDED_OVER_MAX);
        let (report, mut reports) = mailbox(1);
        let task_handle = handle.clone();
        let serving = handle.spawn(async move {
            let started = |counters| {
                drop(report.send(counters));
                Ok(())
            };
            let source = Source::HandedOver(connections);
            first.serve(&task_handle, source, pending(), started).await
        });
        let Some(counters) = reports.recv().await else {
            return serving.await;
        };
        targets.insert(0, target(sender, counters));
        ready(address)?;
        distribute(&handle, listener, targets, stop).await;
        serving.await
    });
    served.map_err(explain)??;
    for thread in threads {
        let ended = thread.join();
        ended.map_err(|_| anyhow!("a thread of the server panicked"))??;
    }
    Ok(())
}

/// Starts a thread with a loop for `server`, and waits for its counters.
fn start_thread(
    config: &Config,
    server: impl LoopServer,
    connections: Receiver<Accepted>,
) -> anyhow::Result<(JoinHandle<anyhow::Result<()>>, Arc<Counters>)> {
    let (report, reports) = mpsc::channel();
    let config = config.clone();
    let serve = |handle: Handle| async move {
        let started = |counters| {
            // The receiver goes away only when the server ends.
            let _ = report.send(counters);
            Ok(())
        };
        let source = Source::HandedOver(connections);
        server.serve(&handle, source, pending(), started).await
    };
    let thread = thread::Builder::new()
        .name("prony-serve".to_owned())
        .spawn(move || prony_engine::run(&config, serve).map_err(explain)?);
    let thread = thread.context("cannot start a thread")?;
    match reports.recv() {
        Ok(counters) => Ok((thread, counters)),
        Err(_) => match thread.join() {
            Ok(Err(error)) => Err(error),
            _ => bail!("a thread of the server ended before it served"),
        },
    }
}

fn explain(error: prony_engine::Error) -> anyhow::Error {
    anyhow!(error).context("the event loop cannot run")
}
