//! The way to a connection: name, TCP, proxy, TLS. Not for: whether to make one (`pool`).

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};

use prony_base::Instant;
use prony_engine::Stream;

use super::Client;
use super::error::{Error, Kind, Phase, TimeLimit};
use super::h1::Connection;
use super::pool::{Host, Slot};
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
    let addresses = resolve(host)?;
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

fn resolve(host: &Host) -> Result<Vec<SocketAddr>, Error> {
    let name = &host.origin.host;
    let address: IpAddr = match name.as_str() {
        "localhost" => IpAddr::from([127, 0, 0, 1]),
        name => name
            .parse()
            .map_err(|_| Error::new(Phase::Resolve, Kind::NameNotFound(name.to_owned())))?,
    };
    Ok(vec![SocketAddr::new(address, host.origin.port)])
}

async fn reach(client: &Client, addresses: &[SocketAddr]) -> Result<(Stream, SocketAddr), Error> {
    let mut failures = Vec::new();
    for &address in addresses {
        match client.handle().connect(address).await {
            Ok(stream) => return Ok((stream, address)),
            Err(error) => failures.push((address, error)),
        }
    }
    Err(match (failures.len(), failures.pop()) {
        (1, Some((address, error))) => Error::io(Phase::Connect, error).address(address),
        (_, last) => {
            failures.extend(last);
            Error::new(Phase::Connect, Kind::AllAddresses(failures))
        }
    })
}
