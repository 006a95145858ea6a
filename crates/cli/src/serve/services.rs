//! The reference server as an application of services: a variant that answers `/ping` and
//! `/hello` only, and shows what putting a server together so costs.
//!
//! Each loop has services of its own; the first one accepts for all.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};

use anyhow::anyhow;
use prony_engine::{Accepted, Handle, Receiver, mailbox};
use prony_http::{AcceptTarget, Counters, ServerOptions, Source, distribute};
use prony_ping::Fixed;
use prony_runtime::services::Failure;

use super::{HANDED_OVER_MAX, Setting, explain, join, start_thread, stopped};
use crate::{Ending, Streams};

/// Serves until a signal.
pub fn run(
    setting: &Setting,
    signals: &UnixStream,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Ending> {
    let mut targets = Vec::new();
    let mut workers = Vec::new();
    for _ in 1..setting.threads {
        let (sender, connections) = mailbox(HANDED_OVER_MAX);
        let server = setting.server.clone();
        let serve = |handle: Handle, report: mpsc::Sender<_>| async move {
            // The receiver is gone only when the server is ending.
            one_loop(&handle, server, connections, |counters| {
                drop(report.send(counters))
            })
            .await
        };
        let (worker, counters) = start_thread(&setting.config, serve)?;
        workers.push(worker);
        targets.push((sender, counters));
    }
    let served = prony_engine::run(&setting.config, |handle| async move {
        let listener = setting.listen(&handle)?;
        let address = listener.local_addr();
        let mut announced = Ok(());
        let mut announce = || {
            writeln!(streams.out, "listening on http://{address}")?;
            streams.out.flush()
        };
        let stop = stopped(&handle, signals);
        if targets.is_empty() {
            let source = Source::Listener(listener);
            let started = |_| announced = announce();
            let settings = fixed(setting.server.clone());
            let served = prony_ping::serve(&handle, settings, source, stop, started).await;
            served.map_err(failed)?;
            return Ok(announced?);
        }
        let (sender, connections) = mailbox(HANDED_OVER_MAX);
        let (tell, mut told) = mailbox(1);
        let (own, server) = (handle.clone(), setting.server.clone());
        let serving = handle.spawn(async move {
            one_loop(&own, server, connections, |counters| {
                drop(tell.send(counters))
            })
            .await
        });
        let Some(counters) = told.recv().await else {
            return serving.await;
        };
        targets.push((sender, counters));
        let targets = targets.into_iter();
        let targets = targets
            .map(|(sender, counters)| {
                AcceptTarget::new(sender, counters)
                    .with_connections_max(setting.server.connections_max)
            })
            .collect();
        announce()?;
        distribute(&handle, listener, targets, stop).await;
        serving.await
    });
    served.map_err(explain)??;
    join(workers)?;
    Ok(Ending::Done)
}

fn fixed(server: ServerOptions) -> Fixed {
    Fixed {
        server,
        ..Fixed::default()
    }
}

fn failed(failure: Failure) -> anyhow::Error {
    anyhow!("{failure}")
}

/// Serves the connections that the first loop hands over, until it does so no more.
async fn one_loop(
    handle: &Handle,
    server: ServerOptions,
    connections: Receiver<Accepted>,
    started: impl FnOnce(Arc<Counters>),
) -> anyhow::Result<()> {
    let source = Source::HandedOver(connections);
    let never = std::future::pending();
    let served = prony_ping::serve(handle, fixed(server), source, never, started).await;
    served.map_err(failed)
}
