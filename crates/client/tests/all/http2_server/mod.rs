//! A server of HTTP/2 on the engine, for the tests of the client's.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Method, Request, Response};
use prony_base::Nanos;
use prony_engine::{Handle, Received, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream by tokio's traits.
struct Io(Stream, Option<(Received, usize)>);

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let io = self.get_mut();
        let (received, used) = match io.1.take() {
            Some(left) => left,
            None => (ready!(io.0.poll_recv(cx))?, 0),
        };
        let count = (received.len() - used).min(out.remaining());
        out.put_slice(&received[used..used + count]);
        if used + count < received.len() {
            io.1 = Some((received, used + count));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.0.posted_bytes() > 64 << 10 {
            ready!(self.0.poll_flush(cx))?;
        }
        Poll::Ready(self.0.post(bytes.to_vec()).map(|()| bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.shutdown_write();
        Poll::Ready(Ok(()))
    }
}

/// What a server has seen, on all its connections.
#[derive(Default)]
pub struct Seen {
    pub connections: Cell<usize>,
    pub requests: Cell<usize>,
    pub at_once: Cell<usize>,
    pub at_once_max: Cell<usize>,
    /// Requests whose answer or body was reset by the client.
    pub cancelled: Cell<usize>,
    pub heads: RefCell<Vec<Request<()>>>,
}

/// How it behaves.
#[derive(Clone, Copy, Default)]
pub struct Manners {
    /// Streams at once that it allows.
    pub streams_max: Option<u32>,
    /// Says that it is going away after so many requests of a connection, in order.
    pub goes_after: Option<usize>,
}

fn add(cell: &Cell<usize>) -> usize {
    cell.set(cell.get() + 1);
    cell.get()
}

/// Serves a connection until its end.
pub async fn serve(handle: Handle, stream: Stream, manners: Manners, seen: Rc<Seen>) {
    add(&seen.connections);
    let mut builder = server::Builder::new();
    if let Some(most) = manners.streams_max {
        builder.max_concurrent_streams(most);
    }
    let Ok(mut connection) = builder.handshake::<_, Bytes>(Io(stream, None)).await else {
        return;
    };
    let mut count = 0;
    while let Some(accepted) = connection.accept().await {
        let Ok((request, respond)) = accepted else {
            return;
        };
        count += 1;
        if manners.goes_after == Some(count) {
            connection.graceful_shutdown();
        }
        add(&seen.requests);
        let (inner, seen) = (handle.clone(), seen.clone());
        handle
            .spawn(async move {
                seen.at_once_max
                    .set(seen.at_once_max.get().max(add(&seen.at_once)));
                if answer(inner, request, respond, &seen).await.is_err() {
                    add(&seen.cancelled);
                }
                seen.at_once.set(seen.at_once.get() - 1);
            })
            .detach();
    }
}

pub fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|place| (place * 7 + place / 251) as u8)
        .collect()
}

async fn answer(
    handle: Handle,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    seen: &Seen,
) -> Result<(), h2::Error> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let is_head = head.method == Method::HEAD;
    seen.heads.borrow_mut().push(Request::from_parts(head, ()));
    let (kind, number) = path[1..].split_once('/').unwrap_or((&path[1..], "0"));
    let number: usize = number.parse().unwrap_or(0);
    let plain = |status: u16| {
        let mut response = Response::new(());
        *response.status_mut() = status.try_into().expect("a status");
        response
    };
    match kind {
        "none" => drop(respond.send_response(plain(204), true)?),
        "echo" => return echo(body, respond.send_response(plain(200), false)?).await,
        "reset" => respond.send_reset(Reason::INTERNAL_ERROR),
        "to" | "early-to" => {
            if kind == "to" {
                read(body).await?;
            }
            let mut response = plain(number as u16);
            let location = "/echo".parse().expect("a value");
            response.headers_mut().insert("location", location);
            respond.send_response(response, true)?;
        }
        "gzip" => {
            let mut response = plain(200);
            let coding = "gzip".parse().expect("a value");
            response.headers_mut().insert("content-encoding", coding);
            let mut stream = respond.send_response(response, false)?;
            send(&mut stream, read(body).await?, true).await?;
        }
        "refused" if seen.requests.get() <= number => respond.send_reset(Reason::REFUSED_STREAM),
        "broken" => {
            let mut stream = respond.send_response(plain(200), false)?;
            send(&mut stream, pattern(1_000), false).await?;
            handle.yield_now().await;
            stream.send_reset(Reason::INTERNAL_ERROR);
        }
        "early" => {
            // An answer that does not wait for the body.
            let mut stream = respond.send_response(plain(413), false)?;
            // Dropping the body unread tells the client to stop.
            send(&mut stream, b"too much".to_vec(), true).await?;
        }
        "silent" => {
            std::future::poll_fn(|cx| respond.poll_reset(cx)).await?;
            add(&seen.cancelled);
        }
        "trailers" => {
            let mut stream = respond.send_response(plain(200), false)?;
            send(&mut stream, b"body".to_vec(), false).await?;
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", "4".parse().expect("a value"));
            stream.send_trailers(trailers)?;
        }
        _ if is_head => {
            let mut response = plain(200);
            let length = response.headers_mut();
            length.insert("content-length", "1000".parse().expect("a number"));
            respond.send_response(response, true)?;
        }
        _ => {
            let mut response = plain(200);
            let headers = response.headers_mut();
            headers.insert("x-path", path.parse().expect("a value"));
            handle.sleep(Nanos::from_millis(2)).await;
            let mut stream = respond.send_response(response, false)?;
            send(&mut stream, pattern(number), true).await?;
        }
    }
    Ok(())
}

async fn read(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut whole = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        whole.extend_from_slice(&data);
    }
    Ok(whole)
}

async fn echo(mut body: RecvStream, mut stream: SendStream<Bytes>) -> Result<(), h2::Error> {
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        send(&mut stream, data.to_vec(), false).await?;
    }
    stream.send_data(Bytes::new(), true)
}

async fn send(stream: &mut SendStream<Bytes>, bytes: Vec<u8>, ends: bool) -> Result<(), h2::Error> {
    let mut rest = Bytes::from(bytes);
    while !rest.is_empty() {
        stream.reserve_capacity(rest.len());
        let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
        match room {
            Some(room) => stream.send_data(rest.split_to(room?.min(rest.len())), false)?,
            None => return Err(Reason::CANCEL.into()),
        }
    }
    if ends {
        stream.send_data(Bytes::new(), true)?;
    }
    Ok(())
}
