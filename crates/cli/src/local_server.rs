//! A server for a few requests beside the work of a command: its figures, its page.
//!
//! On an address of this machine alone it answers only requests that name this machine: a page of a stranger whose name resolves to
//! 127.0.0.1 (DNS rebinding) gets nothing. Who opens another address to others has named it to them as they like.
//!
//! Not for: `prony serve`, and what is measured.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, TcpListener};

use prony_base::Nanos;
use prony_engine::{Config, DriverChoice, Handle, ListenOptions, Receiver};
use prony_http::{Handler, Method, Request, Response, Server, ServerOptions, Source};

/// Connections at one time: so many that what hangs keeps nobody out.
const CONNECTIONS_MAX: usize = 1_000;
/// How long a request, the taking of its answer and the wait for the next may take.
const TIMEOUT: Nanos = Nanos::from_secs(5);
/// No request has a body.
const BODY_BYTES_MAX: u64 = 0;

/// Serves on the calling thread until the sender of `stop` is gone.
///
/// # Errors
/// There can be no event loop, or it cannot take in `listener`.
pub fn serve<H: Handler + 'static>(
    listener: TcpListener,
    mut stop: Receiver<Infallible>,
    handler: impl FnOnce(&Handle) -> H,
) -> io::Result<()> {
    let is_local = listener.local_addr()?.ip().is_loopback();
    let config = Config {
        driver: DriverChoice::Epoll,
        ..Config::default()
    };
    let mut options = ServerOptions {
        connections_max: CONNECTIONS_MAX,
        idle_timeout: TIMEOUT,
        header_timeout: TIMEOUT,
        write_timeout: TIMEOUT,
        ..ServerOptions::default()
    };
    options.limits.body_bytes_max = BODY_BYTES_MAX;
    let served = prony_engine::run(&config, |handle| async move {
        let listener = handle.listen_on(listener.into(), &ListenOptions::default())?;
        let handler = LocalHandler {
            is_local,
            handler: handler(&handle),
        };
        let server = Server::new(&handle, options, handler);
        let stopped = async { stop.recv().await.map_or((), |never| match never {}) };
        server.run(Source::Listener(listener), stopped).await;
        Ok(())
    });
    served.map_err(io::Error::other)?
}

/// The handler, for requests that name this machine.
struct LocalHandler<H> {
    is_local: bool,
    handler: H,
}

impl<H: Handler> Handler for LocalHandler<H> {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        let host = request.headers().get("host").unwrap_or_default();
        if self.is_local && !is_this_machine(&String::from_utf8_lossy(host)) {
            return response.text(421, "this is 127.0.0.1, and answers no other name\n");
        }
        if !matches!(request.method(), Method::Get | Method::Head) {
            return response.method_not_allowed("GET, HEAD");
        }
        self.handler.handle(request, response).await;
    }
}

/// Whether a Host header names this machine: with any port, which may be one that is forwarded.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    let is_loopback = |address: IpAddr| address.is_loopback();
    name.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_that_resolved_to_this_machine_was_answered() {
        for own in [
            "127.0.0.1",
            "127.0.0.1:9090",
            "127.8.8.8:80",
            "localhost:1",
            "LocalHost",
            "[::1]:9090",
            "[::1]",
        ] {
            assert!(is_this_machine(own), "{own}");
        }
        for foreign in [
            "",
            "rebound.example",
            "rebound.example:9090",
            "127.0.0.1.rebound.example:9090",
            "localhost.rebound.example",
            "192.0.2.1:9090",
            "0.0.0.0:9090",
            "[2001:db8::1]:80",
        ] {
            assert!(!is_this_machine(foreign), "{foreign}");
        }
    }
}
