//! A connection until its handshake is complete: bytes in, bytes out.
//! Not for: what follows (`session`), and time limits, which the caller sets.

use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{CommonState, ExtractedSecrets, HandshakeKind, ProtocolVersion};

use crate::error::TlsError;
use crate::server::ServerTls;
use crate::session::{Kernel, TlsSession};
use crate::settings::{Offer, TlsConfig};

/// Bytes of an unfinished handshake that are kept at most: its messages may have 64 KiB.
const INCOMING_BYTES_MAX: usize = 256 << 10;
/// Bytes of a peer that does not speak TLS that an error quotes.
const FIRST_BYTES_MAX: usize = 24;

/// A connection whose handshake is not complete.
pub struct Handshaking {
    role: HandshakeRole,
    /// Received and not used up.
    incoming: Vec<u8>,
    /// Data that came with the end of the handshake.
    plain: Vec<u8>,
    has_received: bool,
    shows_certificate: bool,
}

enum HandshakeRole {
    Client(Box<UnbufferedClientConnection>),
    Server(Box<UnbufferedServerConnection>),
}

/// How far a handshake has come.
pub enum Advanced {
    /// More bytes are to come.
    More(Handshaking),
    /// It is complete.
    Done(Box<TlsSession>, HandshakeFacts),
}

/// The parameters that a handshake has agreed on.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HandshakeFacts {
    /// It went on from an earlier session.
    pub is_resumed: bool,
    /// The version, such as `TLS 1.3`.
    pub version: &'static str,
    /// The cipher suite, as its registry names it.
    pub cipher: String,
    /// The protocol that was chosen (ALPN), such as `h2`; empty for none.
    pub protocol: Vec<u8>,
}

impl Handshaking {
    /// A client's handshake with `host`, a name or an address. Its first bytes are written to `out`.
    ///
    /// # Errors
    /// [`TlsError::BadServerName`] where `host` is neither.
    pub fn client(
        config: &TlsConfig,
        host: &str,
        offer: Offer,
        out: &mut Vec<u8>,
    ) -> Result<Handshaking, TlsError> {
        let shows_certificate = config.shows_certificate();
        let connection =
            UnbufferedClientConnection::new(config.client_config(offer), config.name_for(host)?)
                .map_err(|error| TlsError::new(error, shows_certificate))?;
        let mut handshaking = Handshaking {
            role: HandshakeRole::Client(Box::new(connection)),
            incoming: Vec::new(),
            plain: Vec::new(),
            has_received: false,
            shows_certificate,
        };
        handshaking.pump(out)?;
        Ok(handshaking)
    }

    /// A server's handshake.
    ///
    /// # Errors
    /// None that a configuration which was built has.
    pub fn server(config: &ServerTls) -> Result<Handshaking, TlsError> {
        let connection = UnbufferedServerConnection::new(Arc::clone(&config.0))
            .map_err(|error| TlsError::new(error, false))?;
        Ok(Handshaking {
            role: HandshakeRole::Server(Box::new(connection)),
            incoming: Vec::new(),
            plain: Vec::new(),
            has_received: false,
            shows_certificate: false,
        })
    }

    /// Takes in what was received; appends what is to be sent to `out`, also where it fails: then that is the alert.
    ///
    /// # Errors
    /// [`TlsError`] by name.
    pub fn advance(mut self, received: &[u8], out: &mut Vec<u8>) -> Result<Advanced, TlsError> {
        if !std::mem::replace(&mut self.has_received, true) && !begins_as_tls(received) {
            let first = &received[..received.len().min(FIRST_BYTES_MAX)];
            return Err(TlsError::NotTls(first.to_vec()));
        }
        self.incoming.extend_from_slice(received);
        if self.incoming.len() > INCOMING_BYTES_MAX {
            return Err(TlsError::Protocol(
                "the peer's handshake is too long".to_owned(),
            ));
        }
        match self.pump(out)? {
            false => Ok(Advanced::More(self)),
            true => self.complete(),
        }
    }

    /// Lets `rustls` go as far as it can; whether the handshake is complete.
    fn pump(&mut self, out: &mut Vec<u8>) -> Result<bool, TlsError> {
        let (incoming, plain) = (&mut self.incoming, &mut self.plain);
        let pumped = match &mut self.role {
            HandshakeRole::Client(client) => pump(&mut **client, incoming, out, plain),
            HandshakeRole::Server(server) => pump(&mut **server, incoming, out, plain),
        };
        pumped.map_err(|error| TlsError::new(error, self.shows_certificate))
    }

    fn complete(self) -> Result<Advanced, TlsError> {
        let facts = match &self.role {
            HandshakeRole::Client(client) => facts(client),
            HandshakeRole::Server(server) => facts(server),
        };
        let split = match self.role {
            HandshakeRole::Client(client) => {
                client.dangerous_into_kernel_connection().map(of_client)
            }
            HandshakeRole::Server(server) => {
                server.dangerous_into_kernel_connection().map(of_server)
            }
        };
        let (secrets, kernel) =
            split.map_err(|error| TlsError::new(error, self.shows_certificate))?;
        let session = TlsSession::new(
            secrets,
            kernel,
            (self.incoming, self.plain),
            self.shows_certificate,
        )?;
        Ok(Advanced::Done(Box::new(session), facts))
    }
}

type Split<Data> = (ExtractedSecrets, KernelConnection<Data>);

fn of_client((secrets, kernel): Split<ClientConnectionData>) -> (ExtractedSecrets, Kernel) {
    (secrets, Kernel::Client(kernel))
}

fn of_server((secrets, kernel): Split<ServerConnectionData>) -> (ExtractedSecrets, Kernel) {
    (secrets, Kernel::Server(kernel))
}

fn facts(connection: &CommonState) -> HandshakeFacts {
    let suite = connection.negotiated_cipher_suite();
    HandshakeFacts {
        is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        version: match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
            _ => "TLS",
        },
        cipher: suite.map_or_else(String::new, |suite| {
            suite.suite().as_str().unwrap_or("?").to_owned()
        }),
        protocol: connection.alpn_protocol().unwrap_or_default().to_vec(),
    }
}

/// The side of `rustls` that a connection is, which its types tell apart.
trait RustlsSide: std::ops::Deref {
    type Data;

    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data>;

    fn is_handshaking(&self) -> bool;

    /// Whether it has records to be sent.
    fn wants_write(&self) -> bool;
}

impl RustlsSide for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }

    fn is_handshaking(&self) -> bool {
        CommonState::is_handshaking(self)
    }

    fn wants_write(&self) -> bool {
        CommonState::wants_write(self)
    }
}

impl RustlsSide for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }

    fn is_handshaking(&self) -> bool {
        CommonState::is_handshaking(self)
    }

    fn wants_write(&self) -> bool {
        CommonState::wants_write(self)
    }
}

/// Lets `rustls` take what is in `incoming`. What it wants sent is appended to `out`, data to `plain`. True once the
/// handshake is complete and nothing is left to send.
fn pump<S: RustlsSide>(
    side: &mut S,
    incoming: &mut Vec<u8>,
    out: &mut Vec<u8>,
    plain: &mut Vec<u8>,
) -> Result<bool, rustls::Error> {
    loop {
        let UnbufferedStatus { discard, state } = side.process(incoming);
        let goes_on = match state {
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                encode(out, |room| data.encode(room));
                true
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                true
            }
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    plain.extend_from_slice(record?.payload);
                }
                true
            }
            Ok(_) => false,
            Err(error) => {
                // What it wants to say to the peer about it: the alert. It still knows what it has read of these bytes, and
                // would read on, into another fault, once it has said it.
                incoming.drain(..discard);
                while side.wants_write() {
                    let UnbufferedStatus { discard, state } = side.process(incoming);
                    let Ok(ConnectionState::EncodeTlsData(mut data)) = state else {
                        break;
                    };
                    encode(out, |room| data.encode(room));
                    incoming.drain(..discard);
                }
                return Err(error);
            }
        };
        incoming.drain(..discard);
        if !goes_on {
            return Ok(!side.is_handshaking());
        }
    }
}

/// Appends what `write` writes, once it has room enough.
fn encode(out: &mut Vec<u8>, mut write: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>) {
    let from = out.len();
    if let Err(EncodeError::InsufficientSize(needed)) = write(&mut []) {
        out.resize(from + needed.required_size, 0);
        // With the room that it asked for it has no error left.
        let written = write(&mut out[from..]).unwrap_or_default();
        out.truncate(from + written);
    }
}

/// The first byte of every TLS record is its type, of which there are five.
fn begins_as_tls(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|first| (20..=24).contains(first))
}
