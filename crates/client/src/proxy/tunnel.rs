//! A tunnel through a proxy: the exchange of CONNECT (RFC 9110, section 9.3.6).

use std::future::poll_fn;
use std::io;

use prony_engine::{Handle, SendBuf};
use prony_wire::encode;
use prony_wire::{Framing, Limits, Method, OwnedHeaders, Version};

use super::rules::Proxy;
use crate::body::Body;
use crate::error::{Error, Kind, RequestPhase};
use crate::h1::Connection;
use crate::origin::Origin;
use crate::timeouts::Timeouts;
use crate::transport::Transport;

/// Requests a tunnel to `origin` from the proxy at the other end of `transport` (CONNECT), and
/// returns the transport as that tunnel. The caller sets the time limit.
///
/// # Errors
/// In [`RequestPhase::Proxy`]: [`Kind::ProxyCredentials`] for 407, [`Kind::ProxyRefused`] for
/// any other status than 2xx, [`Kind::Closed`], [`Kind::Truncated`], [`Kind::Wire`],
/// and what broke the connection.
pub async fn tunnel(
    handle: &Handle,
    transport: Transport,
    proxy: &Proxy,
    origin: &Origin,
    (user_agent, limits): (&str, Limits),
) -> Result<Transport, Error> {
    let peer = transport
        .peer_addr()
        .map_err(|error| Error::io(RequestPhase::Proxy, error))?;
    let failed = |kind| Error::new(RequestPhase::Proxy, kind).address(peer);
    let mut head = handle.take_buffer();
    write_connect(&mut head, proxy, origin, user_agent).map_err(failed)?;
    let now = handle.now();
    let mut connection = Connection::new(handle, (transport, peer), limits, now);
    let (head, mut body) = (SendBuf::Owned(head), Body::Empty);
    let sent = connection.begin(&Method::Connect, head, &mut body, (Timeouts::NEVER, now));
    sent.map_err(|error| failed(error.into_kind()))?;
    let mut headers = OwnedHeaders::default();
    let answered = poll_fn(|cx| connection.poll_head(&mut headers, cx)).await;
    match answered.map_err(|error| failed(error.into_kind()))?.status {
        200..=299 => connection.into_transport().map_err(|_| {
            // A TLS server speaks second: bytes behind the head belong to nothing.
            failed(Kind::Io(io::Error::new(
                io::ErrorKind::InvalidData,
                "the proxy sent bytes behind its answer, before anything was asked",
            )))
        }),
        407 => Err(failed(Kind::ProxyCredentials)),
        other => Err(failed(Kind::ProxyRefused(other))),
    }
}

fn write_connect(
    out: &mut Vec<u8>,
    proxy: &Proxy,
    origin: &Origin,
    user_agent: &str,
) -> Result<(), Kind> {
    let host = match origin.host.contains(':') {
        true => format!("[{}]:{}", origin.host, origin.port),
        false => format!("{}:{}", origin.host, origin.port),
    };
    let mut head = encode::request(out, &Method::Connect, &host, Version::Http11);
    head = head.header("host", &host);
    if !user_agent.is_empty() {
        head = head.header("user-agent", user_agent);
    }
    if let Some(authorization) = proxy.authorization() {
        head = head.header("proxy-authorization", authorization);
    }
    head.finish(Framing::None).map_err(Kind::BadRequest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin;

    #[test]
    fn connect_names_host_port_and_credentials() {
        let proxy = Proxy::new("http://u:p@p:1").expect("fine");
        let url = origin::parse("https://[::1]/").expect("a URL");
        let origin = Origin::from_url(&url).expect("an origin");
        let mut out = Vec::new();
        write_connect(&mut out, &proxy, &origin, "prony").expect("fine");
        let wanted = "CONNECT [::1]:443 HTTP/1.1\r\nhost: [::1]:443\r\nuser-agent: prony\r\n\
                      proxy-authorization: Basic dTpw\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&out), wanted);
    }
}
