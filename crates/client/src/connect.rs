//! Connects: name resolution, TCP, proxy, TLS. Not for: whether to make a connection (`pool`).

use std::cell::Cell;
use std::net::SocketAddr;

use prony_engine::Stream;

use super::connections::{Host, Http1, Slot};
use super::error::{Error, Kind, RequestPhase, TimeLimit};
use super::h1::Connection;
use super::http2::Http2;
use super::origin::Origin;
use super::proxy::tunnel;
use super::resolve::race;
use super::settings::HttpVersion;
use super::state::{ClientState, add};
use super::timeouts::Span;
use super::timing::Timing;
use super::tls::{Offer, TlsStream};
use super::transport::Transport;

/// A new connection.
pub(super) enum Made {
    /// For one request at a time.
    Http1(Box<Http1>),
    /// For many; with the slot that counts it.
    Http2(Http2, Slot),
}

/// Makes a connection in `slot`; `timing` gets when each step was done.
///
/// # Errors
/// With the phase that failed, or that was in progress when the time-out passed.
#[cold]
pub(super) async fn connect(
    client: &ClientState,
    slot: Slot,
    version: HttpVersion,
    span: Span,
    timing: &mut Timing,
) -> Result<Made, Error> {
    let (handle, settings) = (client.handle(), client.settings());
    let host = slot.host.clone();
    let step = handle.now() + settings.connect_timeout;
    let phase = Cell::new(RequestPhase::Resolve);
    let way = async {
        let (transport, peer) = establish(client, &host, version, span, &phase, timing).await?;
        add(&client.counters().connected);
        if speaks_http2(&transport, version, peer)? {
            let begun = Http2::begin(handle, transport, &settings.limits, &host.shared);
            return Ok(Begun::Http2(begun.await?));
        }
        Ok(Begun::Http1(transport, peer))
    };
    match handle.timeout_at(step.min(span.due), Box::pin(way)).await {
        Ok(Ok(Begun::Http2(http2))) => Ok(Made::Http2(http2, slot)),
        Ok(Ok(Begun::Http1(transport, peer))) => {
            let now = handle.now();
            let connection = Connection::new(handle, (transport, peer), settings.limits, now);
            Ok(Made::Http1(Http1::new(slot, connection, now)))
        }
        Ok(Err(error)) => Err(error),
        Err(_elapsed) => {
            let kind = match span.due <= step {
                true => Kind::TimedOut(TimeLimit::Whole, span.due.since(span.started)),
                false => Kind::TimedOut(TimeLimit::Connect, settings.connect_timeout),
            };
            Err(Error::new(phase.get(), kind))
        }
    }
}

/// A connection that speaks its protocol: where the connect time-out ends.
enum Begun {
    Http1(Transport, SocketAddr),
    Http2(Http2),
}

/// Whether HTTP/2 is spoken: by ALPN under TLS, by prior knowledge without.
fn speaks_http2(
    transport: &Transport,
    version: HttpVersion,
    peer: SocketAddr,
) -> Result<bool, Error> {
    let is_http2 = match transport {
        Transport::Plain(_) => version == HttpVersion::Http2,
        Transport::Tls(tls) => tls.is_http2(),
    };
    match version {
        HttpVersion::Http2 if !is_http2 => {
            let kind = Kind::Http2("the server does not offer HTTP/2 (ALPN)".to_owned());
            Err(Error::new(RequestPhase::Tls, kind).address(peer))
        }
        _ => Ok(is_http2),
    }
}

async fn establish(
    client: &ClientState,
    host: &Host,
    version: HttpVersion,
    span: Span,
    phase: &Cell<RequestPhase>,
    timing: &mut Timing,
) -> Result<(Transport, SocketAddr), Error> {
    let (handle, settings) = (client.handle(), client.settings());
    let now = || Some(handle.now().since(span.started));
    let (origin, proxy) = (&host.origin, settings.proxies.for_origin(&host.origin));
    let first = proxy.map_or(origin, |proxy| proxy.origin());
    let resolved = client.resolver().resolve(&first.host, first.port).await;
    let addresses =
        resolved.map_err(|error| Error::new(RequestPhase::Resolve, Kind::Resolve(error)))?;
    timing.resolved = now();
    phase.set(RequestPhase::Connect);
    let (stream, peer) = reach(client, &addresses).await?;
    timing.connected = now();
    let mut transport = Transport::Plain(stream);
    if let Some(proxy) = proxy {
        phase.set(RequestPhase::Proxy);
        if first.secure {
            transport = secure(client, (transport, peer), first, Offer::Http1).await?;
        }
        if origin.secure {
            let manners = (settings.user_agent.as_str(), settings.limits);
            transport = tunnel(handle, transport, proxy, origin, manners).await?;
        }
    }
    if origin.secure {
        phase.set(RequestPhase::Tls);
        let offer = match version {
            HttpVersion::Http10 | HttpVersion::Http11 => Offer::Http1,
            HttpVersion::Http2 => Offer::Http2,
            HttpVersion::Auto => Offer::Either,
        };
        transport = secure(client, (transport, peer), origin, offer).await?;
        timing.secured = now();
    }
    Ok((transport, peer))
}

async fn secure(
    client: &ClientState,
    (transport, peer): (Transport, SocketAddr),
    origin: &Origin,
    offer: Offer,
) -> Result<Transport, Error> {
    let failed = |error| Error::new(RequestPhase::Tls, Kind::Tls(error)).address(peer);
    let config = client.tls().map_err(failed)?;
    let secured = TlsStream::handshake(client.handle(), transport, &origin.host, &config, offer);
    let secured = secured.await.map_err(failed)?;
    Ok(Transport::Tls(Box::new(secured)))
}

async fn reach(
    client: &ClientState,
    addresses: &[SocketAddr],
) -> Result<(Stream, SocketAddr), Error> {
    let (handle, delay) = (client.handle(), client.settings().happy_eyeballs_delay);
    let raced = race(handle, addresses, delay, |address| handle.connect(address)).await;
    raced.map_err(|mut failures| match (failures.len(), failures.pop()) {
        (1, Some((address, error))) => Error::io(RequestPhase::Connect, error).address(address),
        (_, last) => {
            failures.extend(last);
            Error::new(RequestPhase::Connect, Kind::AllAddresses(failures))
        }
    })
}
