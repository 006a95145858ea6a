//! How a connection comes to its server: to an address or a Unix socket, and through a proxy's tunnel.
//! Not for: TLS and what follows (`connection`), or time-outs, which the caller sets.

use std::io;
use std::path::Path;

use prony_base::Nanos;
use prony_engine::{Handle, Stream};
use prony_wire::{Limits, Method, ResponseEvent, ResponseReader};

use crate::failure::Failure;
use crate::thread_spec::ThreadSpec;

/// The pause before a Unix socket is tried again whose backlog is full, which the kernel does not report.
const BACKLOG_PAUSE: Nanos = Nanos::from_millis(1);

/// Connects connection `index` of a thread.
pub async fn reach(
    handle: &Handle,
    thread_spec: &ThreadSpec,
    index: usize,
) -> Result<Stream, Failure> {
    let stream = match &thread_spec.unix {
        Some(path) => connect_unix(handle, path).await,
        None => {
            let options = thread_spec.connect_options(index, handle.driver());
            handle
                .connect_with(thread_spec.address(index), &options)
                .await
        }
    };
    let stream = stream.map_err(|error| Failure::from(&error))?;
    if let Some(place) = &thread_spec.tunnel {
        open_tunnel(&stream, place).await?;
    }
    Ok(stream)
}

async fn connect_unix(handle: &Handle, path: &Path) -> io::Result<Stream> {
    loop {
        match handle.connect_unix(path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                handle.sleep(BACKLOG_PAUSE).await;
            }
            other => return other,
        }
    }
}

/// Asks the proxy at the other end of `stream` for a tunnel to `place`.
async fn open_tunnel(stream: &Stream, place: &str) -> Result<(), Failure> {
    let head = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n");
    let posted = stream.post(head.into_bytes());
    posted.map_err(|error| Failure::from(&error))?;
    let mut reader = ResponseReader::new(Limits::for_responses());
    reader
        .expect(&Method::Connect)
        .map_err(|_| Failure::Proxy)?;
    loop {
        let received = stream.recv().await.map_err(|error| Failure::from(&error))?;
        if received.is_empty() {
            return Err(Failure::Proxy);
        }
        let mut rest = &received[..];
        while !rest.is_empty() {
            let (used, event) = reader.next(rest).map_err(|_| Failure::Proxy)?;
            rest = &rest[used..];
            match event {
                Some(ResponseEvent::Head(head)) if (200..300).contains(&head.status) => {
                    // Nobody has spoken at the other end before us.
                    return rest.is_empty().then_some(()).ok_or(Failure::Proxy);
                }
                Some(ResponseEvent::Head(_)) => return Err(Failure::Proxy),
                Some(_) => {}
                None => break,
            }
        }
    }
}
