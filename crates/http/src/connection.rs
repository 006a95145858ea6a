//! A client of one connection: send requests, read their responses in order.
//! Not for: a pool, redirects, TLS (`client` has them), or measuring (`prony-load` does that).

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::task::Poll;

use prony_base::{Instant, Nanos};
use prony_engine::{Handle, Received, Stream};
use prony_wire::encode::{self, EncodeError};
use prony_wire::{
    EndOfInput, Framing, Header, Limits, Method, OwnedHeaders, ResponseEvent, ResponseReader,
    Version,
};

use crate::wait::Alarm;

/// Limits of one client connection.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Sizes of heads and bodies; `outstanding_max` requests may be pipelined.
    pub limits: Limits,
    /// Bytes of a body that [`ClientConnection::receive`] collects.
    pub collected_bytes_max: usize,
    /// How long connecting may take.
    pub connect_timeout: Nanos,
    /// How long the server may send nothing, or take nothing of a request.
    pub read_timeout: Nanos,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            limits: Limits::for_responses(),
            collected_bytes_max: 16 << 20,
            connect_timeout: Nanos::from_secs(10),
            read_timeout: Nanos::from_secs(30),
        }
    }
}

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct ClientRequest<'a> {
    /// The method.
    pub method: Method,
    /// The target, such as `/hello?a=b`.
    pub target: &'a str,
    /// The version.
    pub version: Version,
    /// Header lines, without Content-Length, Transfer-Encoding and Connection.
    /// Host, where missing, is the address connected to.
    pub headers: Vec<Header<'a>>,
    /// The body.
    pub body: &'a [u8],
    /// Send the body in chunks of at most this many bytes.
    pub chunk_bytes: Option<usize>,
    /// Whether the server should keep the connection.
    pub keep_alive: bool,
}

impl<'a> ClientRequest<'a> {
    /// A request of this method without a body.
    pub fn new(method: Method, target: &'a str) -> ClientRequest<'a> {
        ClientRequest {
            method,
            target,
            version: Version::Http11,
            headers: Vec::new(),
            body: b"",
            chunk_bytes: None,
            keep_alive: true,
        }
    }

    /// A GET.
    pub fn get(target: &'a str) -> ClientRequest<'a> {
        ClientRequest::new(Method::Get, target)
    }

    /// A POST.
    pub fn post(target: &'a str, body: &'a [u8]) -> ClientRequest<'a> {
        ClientRequest {
            body,
            ..ClientRequest::new(Method::Post, target)
        }
    }

    /// Appends it as it is sent. `authority` is for a missing Host.
    ///
    /// # Errors
    /// [`EncodeError`] when it cannot be sent; then nothing is appended.
    pub fn encode(&self, authority: &str, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let framing = match self.chunk_bytes {
            Some(_) => Framing::Chunked,
            None if self.body.is_empty() && self.method != Method::Post => Framing::None,
            None => Framing::Length(self.body.len() as u64),
        };
        let has_host = self.headers.iter().any(|header| header.is("host"));
        let host = (!has_host).then(|| Header::new("host", authority.as_bytes()));
        encode::request(out, &self.method, self.target, self.version)
            .headers(host)
            .headers(self.headers.iter().copied())
            .keep_alive(self.keep_alive)
            .finish(framing)?;
        match self.chunk_bytes {
            None => out.extend_from_slice(self.body),
            Some(bytes) => {
                for piece in self.body.chunks(bytes.max(1)) {
                    encode::chunk(out, piece);
                }
                encode::last_chunk(out, [])?;
            }
        }
        Ok(())
    }
}

/// A response, with what was collected of its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientResponse {
    /// The status.
    pub status: u16,
    /// The header lines.
    pub headers: OwnedHeaders,
    /// The body; empty where it is read piece by piece.
    pub body: Vec<u8>,
    /// Whether the connection can carry another request.
    pub keep_alive: bool,
}

/// What a client was at when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Connecting.
    Connect,
    /// Sending a request.
    Send,
    /// Waiting for a response of which no byte has come.
    Wait,
    /// Reading a response's head.
    Head,
    /// Reading a response's body.
    Body,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Connect => "connecting",
            Phase::Send => "sending a request",
            Phase::Wait => "waiting for a response",
            Phase::Head => "reading a response's head",
            Phase::Body => "reading a response's body",
        })
    }
}

/// Why a request got no response. The connection is of no more use, except
/// after [`ClientErrorKind::Request`].
#[derive(Debug)]
pub struct ClientError {
    /// What the client was at.
    pub phase: Phase,
    /// What went wrong.
    pub kind: ClientErrorKind,
}

/// What can go wrong.
#[derive(Debug)]
pub enum ClientErrorKind {
    /// The connection broke, or none came about.
    Io(io::Error),
    /// Nothing came in the time allowed.
    Timeout(Nanos),
    /// The server closed the connection.
    Closed,
    /// The response breaks a rule or a limit.
    Wire(prony_wire::Error),
    /// The body has more bytes than `collected_bytes_max`, which is this.
    TooLong(usize),
    /// The request cannot be sent so.
    Request(EncodeError),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.phase)?;
        match &self.kind {
            ClientErrorKind::Io(error) => write!(f, "{error}"),
            ClientErrorKind::Timeout(length) => write!(f, "nothing happened for {length}"),
            ClientErrorKind::Closed => f.write_str("the server closed the connection"),
            ClientErrorKind::Wire(error) => write!(f, "{error}"),
            ClientErrorKind::TooLong(max) => {
                write!(
                    f,
                    "it has more bytes than collected_bytes_max allows ({max})"
                )
            }
            ClientErrorKind::Request(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ClientErrorKind::Io(error) => Some(error),
            ClientErrorKind::Wire(error) => Some(error),
            ClientErrorKind::Request(error) => Some(error),
            _ => None,
        }
    }
}

/// One connection to a server.
pub struct ClientConnection {
    handle: Handle,
    stream: Stream,
    authority: String,
    options: ClientOptions,
    reader: ResponseReader,
    /// Received bytes, read up to `used`.
    chunk: Option<Received>,
    used: usize,
    phase: Phase,
    ended: bool,
    alarm: Alarm,
}

/// What was read next, without its bytes.
enum Piece {
    Head(ClientResponse),
    /// Where in the chunk the data is.
    Data(Range<usize>),
    /// The response is whole; whether another can follow.
    End(bool),
}

impl ClientConnection {
    /// Connects.
    ///
    /// # Errors
    /// [`ClientError`] of phase [`Phase::Connect`].
    pub async fn connect(
        handle: &Handle,
        address: SocketAddr,
        options: ClientOptions,
    ) -> Result<ClientConnection, ClientError> {
        let failed = |kind| ClientError {
            phase: Phase::Connect,
            kind,
        };
        let limit = options.connect_timeout;
        let stream = match handle.timeout(limit, handle.connect(address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(failed(ClientErrorKind::Io(error))),
            Err(_elapsed) => return Err(failed(ClientErrorKind::Timeout(limit))),
        };
        Ok(ClientConnection {
            handle: handle.clone(),
            stream,
            authority: address.to_string(),
            reader: ResponseReader::new(options.limits),
            options,
            chunk: None,
            used: 0,
            phase: Phase::Wait,
            ended: false,
            alarm: Alarm::default(),
        })
    }

    /// Sends a request and reads its response.
    ///
    /// # Errors
    /// [`ClientError`], as of [`send`](ClientConnection::send) and
    /// [`receive`](ClientConnection::receive).
    pub async fn exchange(
        &mut self,
        request: &ClientRequest<'_>,
    ) -> Result<ClientResponse, ClientError> {
        self.send(request).await?;
        self.receive().await
    }

    /// Sends a request; its response is the next after those of the requests
    /// sent before.
    ///
    /// # Errors
    /// [`ClientError`] of phase [`Phase::Send`].
    pub async fn send(&mut self, request: &ClientRequest<'_>) -> Result<(), ClientError> {
        let mut out = self.handle.take_buffer();
        let encoded = request.encode(&self.authority, &mut out);
        encoded.map_err(|error| sending(ClientErrorKind::Request(error)))?;
        self.send_bytes(out, &[request.method]).await
    }

    /// Sends bytes that hold requests of these methods.
    ///
    /// # Errors
    /// [`ClientError`] of phase [`Phase::Send`].
    pub async fn send_bytes(
        &mut self,
        bytes: Vec<u8>,
        methods: &[Method],
    ) -> Result<(), ClientError> {
        for method in methods {
            let expected = self.reader.expect(method);
            expected.map_err(|error| sending(ClientErrorKind::Wire(error)))?;
        }
        if self.stream.posted_bytes() > 0 {
            self.flush().await?;
        }
        let posted = self.stream.post(bytes);
        posted.map_err(|error| sending(ClientErrorKind::Io(error)))
    }

    /// Waits until what was sent is in the kernel's hands.
    ///
    /// # Errors
    /// [`ClientError`] of phase [`Phase::Send`].
    pub async fn flush(&mut self) -> Result<(), ClientError> {
        let limit = self.options.read_timeout;
        let flushed = self.handle.timeout(limit, self.stream.flush()).await;
        match flushed {
            Ok(flushed) => flushed.map_err(|error| sending(ClientErrorKind::Io(error))),
            Err(_elapsed) => Err(sending(ClientErrorKind::Timeout(limit))),
        }
    }

    /// Ends this side: no request will follow.
    pub fn shutdown_write(&self) {
        self.stream.shutdown_write();
    }

    /// Reads the next response with its whole body. Interim responses are passed over.
    ///
    /// # Errors
    /// [`ClientError`] of any phase but [`Phase::Connect`] and [`Phase::Send`].
    pub async fn receive(&mut self) -> Result<ClientResponse, ClientError> {
        let mut response = self.receive_head().await?;
        while let Some(data) = self.receive_data().await? {
            let length = response.body.len() + data.len();
            response.body.extend_from_slice(data);
            if length > self.options.collected_bytes_max {
                let max = self.options.collected_bytes_max;
                return Err(self.failed(ClientErrorKind::TooLong(max)));
            }
        }
        response.keep_alive &= !self.ended;
        Ok(response)
    }

    /// Reads the next response's head. Read its body before the next head, with
    /// [`receive_data`](ClientConnection::receive_data).
    ///
    /// # Errors
    /// As of [`receive`](ClientConnection::receive).
    pub async fn receive_head(&mut self) -> Result<ClientResponse, ClientError> {
        self.phase = Phase::Wait;
        loop {
            match self.next_piece().await? {
                Piece::Head(response) => {
                    self.phase = Phase::Body;
                    return Ok(response);
                }
                // Of a response whose body was left unread.
                Piece::Data(_) | Piece::End(_) => {}
            }
        }
    }

    /// The next bytes of the body; None at its end.
    ///
    /// # Errors
    /// As of [`receive`](ClientConnection::receive).
    pub async fn receive_data(&mut self) -> Result<Option<&[u8]>, ClientError> {
        let place = match self.next_piece().await? {
            Piece::Data(place) => place,
            Piece::End(keep_alive) => {
                self.phase = Phase::Wait;
                self.ended |= !keep_alive;
                return Ok(None);
            }
            Piece::Head(_) => return Err(self.failed(ClientErrorKind::Closed)),
        };
        Ok(self.chunk.as_ref().and_then(|chunk| chunk.get(place)))
    }

    /// How many requests have had no response's head yet.
    pub fn outstanding(&self) -> usize {
        self.reader.outstanding()
    }

    async fn next_piece(&mut self) -> Result<Piece, ClientError> {
        loop {
            if let Some(piece) = self.read()? {
                return Ok(piece);
            }
            let received = self.receive_bytes().await?;
            if received.is_empty() {
                return self.at_end();
            }
            if self.phase == Phase::Wait {
                self.phase = Phase::Head;
            }
            self.chunk = Some(received);
            self.used = 0;
        }
    }

    /// What the chunk holds next.
    fn read(&mut self) -> Result<Option<Piece>, ClientError> {
        let empty: &[u8] = &[];
        let chunk = self.chunk.as_deref().unwrap_or(empty);
        loop {
            let (used, event) = match self.reader.next(&chunk[self.used..]) {
                Ok(next) => next,
                Err(error) => {
                    let kind = ClientErrorKind::Wire(error);
                    return Err(ClientError {
                        phase: self.phase,
                        kind,
                    });
                }
            };
            self.used += used;
            return Ok(match event {
                None => None,
                Some(ResponseEvent::Interim(_)) => continue,
                Some(ResponseEvent::Head(head)) => {
                    let mut headers = OwnedHeaders::default();
                    headers.copy_from(&head.headers);
                    Some(Piece::Head(ClientResponse {
                        status: head.status,
                        headers,
                        body: Vec::new(),
                        keep_alive: head.keep_alive,
                    }))
                }
                Some(ResponseEvent::Data(data)) => {
                    Some(Piece::Data(self.used - data.len()..self.used))
                }
                Some(ResponseEvent::End(end)) => Some(Piece::End(end.keep_alive)),
            });
        }
    }

    async fn receive_bytes(&mut self) -> Result<Received, ClientError> {
        let limit = self.options.read_timeout;
        let due = match limit {
            Nanos::MAX => Instant::NEVER,
            limit => self.handle.now() + limit,
        };
        let Self {
            stream,
            alarm,
            handle,
            ..
        } = self;
        let received = poll_fn(|cx| {
            if let Poll::Ready(received) = stream.poll_recv(cx) {
                return Poll::Ready(Some(received));
            }
            alarm.poll(handle, due, cx).map(|()| None)
        })
        .await;
        match received {
            Some(Ok(received)) => Ok(received),
            Some(Err(error)) => Err(self.failed(ClientErrorKind::Io(error))),
            None => Err(self.failed(ClientErrorKind::Timeout(limit))),
        }
    }

    fn at_end(&mut self) -> Result<Piece, ClientError> {
        match self.reader.end_of_input() {
            Ok(EndOfInput::Complete { .. }) => Ok(Piece::End(false)),
            Ok(EndOfInput::Idle { .. }) => Err(self.failed(ClientErrorKind::Closed)),
            Err(error) => Err(self.failed(ClientErrorKind::Wire(error))),
        }
    }

    fn failed(&self, kind: ClientErrorKind) -> ClientError {
        ClientError {
            phase: self.phase,
            kind,
        }
    }
}

fn sending(kind: ClientErrorKind) -> ClientError {
    ClientError {
        phase: Phase::Send,
        kind,
    }
}
