//! The way to a connection: name, TCP, proxy, TLS. Not for: whether to make one (`pool`).

use std::cell::Cell;
use std::net::SocketAddr;

use prony_base::Instant;
use prony_engine::Stream;

use super::Client;
use super::error::{Error, Kind, Phase, TimeLimit};
use super::h1::Connection;
use super::pool::{Host, Slot};
use super::resolve::race;
use super::response::Timing;
use super::settings::HttpVersion;
use super::tls::{Offer, TlsStream};
use super::transport::Transport;

/// When a request began, and when it has to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub started: Instant,
    pub due: Instant,
}

/// Makes a connection in `slot`; says in `timing` when what was done.
///
/// # Errors
/// With the phase that failed or was under way when the time was over.
#[cold]
pub(super) async fn connect(
    client: &Client,
    slot: Slot,
    version: HttpVersion,
    span: Span,
    timing: &mut Timing,
) -> Result<Box<Connection>, Error> {
    let (handle, settings) = (client.handle(), client.settings());
    let host = slot.host.clone();
    let step = handle.now() + settings.connect_timeout;
    let phase = Cell::new(Phase::Resolve);
    let way = establish(client, &host, version, span, &phase, timing);
    let made = match handle.timeout_at(step.min(span.due), Box::pin(way)).await {
        Ok(made) => made?,
        Err(_elapsed) => {
            let kind = match span.due <= step {
                true => Kind::TimedOut(TimeLimit::Whole, span.due.since(span.started)),
                false => Kind::TimedOut(TimeLimit::Connect, settings.connect_timeout),
            };
            return Err(Error::new(phase.get(), kind));
        }
    };
    client
        .counters()
        .connected
        .set(client.counters().connected.get() + 1);
    Ok(Connection::new(
        handle,
        slot,
        made,
        settings.limits,
        handle.now(),
    ))
}

async fn establish(
    client: &Client,
    host: &Host,
    _version: HttpVersion,
    span: Span,
    phase: &Cell<Phase>,
    timing: &mut Timing,
) -> Result<(Transport, SocketAddr), Error> {
    let handle = client.handle();
    let now = || Some(handle.now().since(span.started));
    let origin = &host.origin;
    let resolved = client.resolver().resolve(&origin.host, origin.port).await;
    let addresses = resolved.map_err(|error| Error::new(Phase::Resolve, Kind::Resolve(error)))?;
    timing.resolved = now();
    phase.set(Phase::Connect);
    let (stream, peer) = reach(client, &addresses).await?;
    timing.connected = now();
    if !host.origin.secure {
        return Ok((Transport::Plain(stream), peer));
    }
    phase.set(Phase::Tls);
    let failed = |error| Error::new(Phase::Tls, Kind::Tls(error)).address(peer);
    let config = client.tls().map_err(failed)?;
    let plain = Transport::Plain(stream);
    let secured = TlsStream::handshake(handle, plain, &host.origin.host, &config, Offer::Http1);
    let secured = secured.await.map_err(failed)?;
    timing.secured = now();
    Ok((Transport::Tls(Box::new(secured)), peer))
}

async fn reach(client: &Client, addresses: &[SocketAddr]) -> Result<(Stream, SocketAddr), Error> {
    let (handle, delay) = (client.handle(), client.settings().happy_eyeballs_delay);
    let raced = race(handle, addresses, delay, |address| handle.connect(address)).await;
    raced.map_err(|mut failures| match (failures.len(), failures.pop()) {
        (1, Some((address, error))) => Error::io(Phase::Connect, error).address(address),
        (_, last) => {
            failures.extend(last);
            Error::new(Phase::Connect, Kind::AllAddresses(failures))
        }
    })
}
