//! Why a request, or an attempt to connect, failed.

use std::io;

use prony_record::Failures;
use prony_tls::TlsError;
use prony_wire::http2::FieldFault;

/// Why a request, or an attempt to connect, failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// The connection was refused.
    Refused,
    /// The connection was reset.
    Reset,
    /// The server closed before the answer was whole.
    Closed,
    /// No answer in time.
    Timeout,
    /// The server broke a rule of its protocol, or passed a limit.
    Protocol(ProtocolFault),
    /// The answer was not the expected one.
    WrongAnswer,
    /// Any other error of the system.
    System,
    /// The server's certificate was not accepted.
    Certificate,
    /// The handshake of TLS was cut, or what came was none.
    Handshake,
    /// The server ended the connection with an alert of TLS.
    Alert,
    /// HTTP/2: the server refused the stream, and has done nothing for it.
    RefusedStream,
    /// HTTP/2: the server reset the stream.
    StreamReset,
    /// HTTP/2: the server left (GOAWAY) and will not answer this stream.
    GoneAway,
    /// The answer came whole, and failed a check.
    Check,
    /// The proxy did not open a tunnel.
    Proxy,
}

/// Which rule of its protocol a server broke.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ProtocolFault {
    /// What came is no answer of HTTP/1.
    #[error("{0}")]
    Http1(prony_wire::Error),
    /// What came first is not HTTP/2.
    #[error("the server does not speak HTTP/2 there")]
    NotHttp2,
    /// A frame or an answer of HTTP/2, or a change of protocols.
    #[error("{0}")]
    Rule(&'static str),
    /// The fields of an answer of HTTP/2.
    #[error("of an answer's fields: {0}")]
    Fields(FieldFault),
    /// A block of fields, with which the connection is of no use.
    #[error("a block of fields is not as HPACK has it")]
    Block,
    /// The records of TLS, of which TLS itself says more.
    #[error("the records of TLS are broken")]
    Records,
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Failure::Refused,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Failure::Reset,
            io::ErrorKind::UnexpectedEof => Failure::Closed,
            io::ErrorKind::TimedOut => Failure::Timeout,
            _ => Failure::System,
        }
    }
}

/// Of a handshake.
impl From<&TlsError> for Failure {
    fn from(error: &TlsError) -> Failure {
        match error {
            error if error.is_about_trust() => Failure::Certificate,
            TlsError::Alert(_)
            | TlsError::ClientCertificateRequired
            | TlsError::ClientCertificateRefused(_) => Failure::Alert,
            TlsError::Io(error) => Failure::from(&**error),
            _ => Failure::Handshake,
        }
    }
}

impl Failure {
    /// What `error` is on a connection whose handshake is complete.
    pub fn after_handshake(error: &TlsError) -> Failure {
        match Failure::from(error) {
            Failure::Handshake => Failure::Protocol(ProtocolFault::Records),
            other => other,
        }
    }

    /// Counts it under its kind.
    pub fn count(self, failures: &mut Failures) {
        let counter = match self {
            Failure::Refused => &mut failures.refused,
            Failure::Reset => &mut failures.reset,
            Failure::Closed => &mut failures.closed,
            Failure::Timeout => &mut failures.timeout,
            Failure::Protocol(_) => &mut failures.protocol,
            Failure::WrongAnswer => &mut failures.wrong_answer,
            Failure::System => &mut failures.system,
            Failure::Certificate => &mut failures.certificate,
            Failure::Handshake => &mut failures.handshake,
            Failure::Alert => &mut failures.alert,
            Failure::RefusedStream => &mut failures.refused_stream,
            Failure::StreamReset => &mut failures.stream_reset,
            Failure::GoneAway => &mut failures.gone_away,
            Failure::Check => &mut failures.check,
            Failure::Proxy => &mut failures.proxy,
        };
        *counter += 1;
    }
}

/// Why no connection could be opened, by the first failure.
pub fn reason(failure: Option<Failure>) -> String {
    let text = match failure {
        Some(Failure::Refused) => "connection refused; nothing listens there",
        Some(Failure::Timeout) => "no answer in time",
        Some(Failure::Reset) => "connection reset",
        Some(Failure::Closed) => "the server closed the connection",
        Some(Failure::Proxy) => "the proxy did not open a tunnel",
        Some(Failure::GoneAway) => "the server leaves at once (GOAWAY), before any request",
        Some(Failure::Protocol(ProtocolFault::NotHttp2)) => {
            "the server does not speak HTTP/2 there"
        }
        Some(Failure::Protocol(fault)) => return format!("the server broke the protocol: {fault}"),
        _ => {
            "the system refused; is the limit on open files (`ulimit -n`) or on local ports reached?"
        }
    };
    text.to_owned()
}
