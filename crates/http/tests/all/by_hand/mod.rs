//! One connection that a test drives itself: the test decides which bytes are sent when, a closed
//! connection stays closed, and no request is repeated. Not for: testing the client.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;

use prony_base::Nanos;
use prony_engine::{Handle, Received, Stream};
use prony_wire::encode::{self, EncodeError};
use prony_wire::{
    EndOfInput, Framing, Header, Limits, Method, OwnedHeaders, ResponseEvent, ResponseReader,
    Version,
};

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct RawRequest<'a> {
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

impl<'a> RawRequest<'a> {
    /// A request of this method without a body.
    pub fn new(method: Method, target: &'a str) -> RawRequest<'a> {
        RawRequest {
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
    pub fn get(target: &'a str) -> RawRequest<'a> {
        RawRequest::new(Method::Get, target)
    }

    /// A POST.
    pub fn post(target: &'a str, body: &'a [u8]) -> RawRequest<'a> {
        RawRequest {
            body,
            ..RawRequest::new(Method::Post, target)
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

/// A response with its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawResponse {
    /// The status.
    pub status: u16,
    /// The header lines.
    pub headers: OwnedHeaders,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the connection can carry another request.
    pub keep_alive: bool,
}

/// Why a request got no response. The connection is of no more use.
#[derive(Debug)]
pub enum Failure {
    /// The connection broke, or none was established.
    Io(io::Error),
    /// Nothing was received, or taken of a request, in this time.
    Timeout(Nanos),
    /// The server closed the connection.
    Closed,
    /// The response breaks a rule or a limit.
    Wire(prony_wire::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Io(error) => write!(f, "{error}"),
            Failure::Timeout(length) => write!(f, "nothing was received for {length}"),
            Failure::Closed => f.write_str("the server closed the connection"),
            Failure::Wire(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Failure {}

/// One connection to a server.
pub struct Connection {
    handle: Handle,
    stream: Stream,
    /// How long the server may send nothing, or take nothing of a request: 30 s.
    pub time_max: Nanos,
    authority: String,
    reader: ResponseReader,
    /// Received bytes, read up to `used`.
    chunk: Option<Received>,
    used: usize,
    /// No byte of the response has been received.
    is_unanswered: bool,
    ended: bool,
}

/// The next part of a response.
enum Event {
    Head(RawResponse),
    /// A part of the body, as a range of the chunk.
    Data(Range<usize>),
    /// The response is complete; whether another can follow.
    End(bool),
}

impl Connection {
    /// Connects.
    pub async fn connect(handle: &Handle, address: SocketAddr) -> Result<Connection, Failure> {
        let time_max = Nanos::from_secs(10);
        let stream = match handle.timeout(time_max, handle.connect(address)).await {
            Ok(connected) => connected.map_err(Failure::Io)?,
            Err(_elapsed) => return Err(Failure::Timeout(time_max)),
        };
        Ok(Connection {
            handle: handle.clone(),
            stream,
            time_max: Nanos::from_secs(30),
            authority: address.to_string(),
            reader: ResponseReader::new(Limits::for_responses()),
            chunk: None,
            used: 0,
            is_unanswered: true,
            ended: false,
        })
    }

    /// Sends a request and reads its response.
    pub async fn exchange(&mut self, request: &RawRequest<'_>) -> Result<RawResponse, Failure> {
        let mut out = self.handle.take_buffer();
        let encoded = request.encode(&self.authority, &mut out);
        encoded.expect("a request that can be sent");
        self.send_bytes(out, &[request.method]).await?;
        self.receive().await
    }

    /// Sends bytes that hold requests of these methods.
    pub async fn send_bytes(&mut self, bytes: Vec<u8>, methods: &[Method]) -> Result<(), Failure> {
        for method in methods {
            self.reader.expect(method).map_err(Failure::Wire)?;
        }
        if self.stream.posted_bytes() > 0 {
            let flushed = self
                .handle
                .timeout(self.time_max, self.stream.flush())
                .await;
            flushed
                .map_err(|_elapsed| Failure::Timeout(self.time_max))?
                .map_err(Failure::Io)?;
        }
        self.stream.post(bytes).map_err(Failure::Io)
    }

    /// Ends this side: no request will follow.
    pub fn shutdown_write(&self) {
        self.stream.shutdown_write();
    }

    /// Whether no byte of the response that is due has been received.
    pub fn is_unanswered(&self) -> bool {
        self.is_unanswered
    }

    /// Reads the next response with its whole body. Skips interim responses.
    pub async fn receive(&mut self) -> Result<RawResponse, Failure> {
        self.is_unanswered = true;
        let mut response = RawResponse::default();
        loop {
            match self.next_event().await? {
                Event::Head(head) => response = head,
                Event::Data(place) => {
                    let data = self.chunk.as_ref().and_then(|chunk| chunk.get(place));
                    response.body.extend_from_slice(data.unwrap_or_default());
                }
                Event::End(keep_alive) => {
                    self.ended |= !keep_alive;
                    response.keep_alive &= !self.ended;
                    return Ok(response);
                }
            }
        }
    }

    async fn next_event(&mut self) -> Result<Event, Failure> {
        loop {
            if let Some(event) = self.read()? {
                return Ok(event);
            }
            let received = match self.handle.timeout(self.time_max, self.stream.recv()).await {
                Ok(received) => received.map_err(Failure::Io)?,
                Err(_elapsed) => return Err(Failure::Timeout(self.time_max)),
            };
            if received.is_empty() {
                return self.at_end();
            }
            self.chunk = Some(received);
            self.used = 0;
        }
    }

    /// Reads the next part of the response from the chunk.
    fn read(&mut self) -> Result<Option<Event>, Failure> {
        let empty: &[u8] = &[];
        let chunk = self.chunk.as_deref().unwrap_or(empty);
        loop {
            let (used, event) = match self.reader.next(&chunk[self.used..]) {
                Ok(next) => next,
                Err(error) => return Err(Failure::Wire(error)),
            };
            self.used += used;
            self.is_unanswered &= used == 0;
            return Ok(match event {
                None => None,
                Some(ResponseEvent::Interim(_)) => continue,
                Some(ResponseEvent::Head(head)) => {
                    let mut headers = OwnedHeaders::default();
                    headers.copy_from(&head.headers);
                    Some(Event::Head(RawResponse {
                        status: head.status,
                        headers,
                        body: Vec::new(),
                        keep_alive: head.keep_alive,
                    }))
                }
                Some(ResponseEvent::Data(data)) => {
                    Some(Event::Data(self.used - data.len()..self.used))
                }
                Some(ResponseEvent::End(end)) => Some(Event::End(end.keep_alive)),
            });
        }
    }

    fn at_end(&mut self) -> Result<Event, Failure> {
        match self.reader.end_of_input() {
            Ok(EndOfInput::Complete { .. }) => Ok(Event::End(false)),
            Ok(EndOfInput::Idle { .. }) => Err(Failure::Closed),
            Err(error) => Err(Failure::Wire(error)),
        }
    }
}
