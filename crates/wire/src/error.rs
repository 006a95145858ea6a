//! Every fault a reader can find, by name, and the status that answers it.

use std::fmt;

use crate::Limits;

/// A limit of [`Limits`] that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// `body_bytes_max`.
    Body,
    /// `chunk_line_bytes_max`.
    ChunkLine,
    /// `empty_lines_max`.
    EmptyLines,
    /// `head_bytes_max`.
    Head,
    /// `headers_max`.
    Headers,
    /// `interim_responses_max`.
    Interim,
    /// The longest method name, [`crate::MethodName::BYTES_MAX`].
    Method,
    /// `outstanding_max`.
    Outstanding,
    /// `head_bytes_max`, reached before the request line ended.
    RequestLine,
    /// `target_bytes_max`.
    Target,
    /// `trailer_bytes_max`.
    Trailer,
}

impl Limit {
    /// The field's name in [`Limits`] and what it bounds.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Limit::Body => ("body_bytes_max", "the body has more bytes"),
            Limit::ChunkLine => ("chunk_line_bytes_max", "a chunk-size line has more bytes"),
            Limit::EmptyLines => ("empty_lines_max", "more empty lines precede the request"),
            Limit::Head => ("head_bytes_max", "the head has more bytes"),
            Limit::Headers => ("headers_max", "there are more header lines"),
            Limit::Interim => ("interim_responses_max", "more interim responses came"),
            Limit::Method => ("method_bytes_max", "the method has more bytes"),
            Limit::Outstanding => ("outstanding_max", "more requests are outstanding"),
            Limit::RequestLine => ("head_bytes_max", "the request line has more bytes"),
            Limit::Target => ("target_bytes_max", "the request target has more bytes"),
            Limit::Trailer => ("trailer_bytes_max", "the trailer section has more bytes"),
        }
    }

    /// The error for this limit under `limits`.
    pub(crate) const fn reached(self, limits: &Limits) -> Error {
        let max = match self {
            Limit::Body => limits.body_bytes_max,
            Limit::ChunkLine => limits.chunk_line_bytes_max as u64,
            Limit::EmptyLines => limits.empty_lines_max as u64,
            Limit::Head | Limit::RequestLine => limits.head_bytes_max as u64,
            Limit::Headers => limits.headers_max as u64,
            Limit::Interim => limits.interim_responses_max as u64,
            Limit::Method => crate::MethodName::BYTES_MAX as u64,
            Limit::Outstanding => limits.outstanding_max as u64,
            Limit::Target => limits.target_bytes_max as u64,
            Limit::Trailer => limits.trailer_bytes_max as u64,
        };
        Error::Limit { limit: self, max }
    }
}

/// What is wrong with the bytes received. After it the connection is of no
/// more use: answer if there is something to answer, and close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// CRLF is missing after a chunk's data.
    BadChunkEnd,
    /// A control byte in a chunk extension.
    BadChunkExtension,
    /// A chunk size that is empty, signed, prefixed or not hexadecimal.
    BadChunkSize,
    /// A Content-Length that is empty, signed or not decimal.
    BadContentLength,
    /// A byte that no header name may have, or an empty name, or no colon.
    BadHeaderName,
    /// A control byte in a header value.
    BadHeaderValue,
    /// A Host that is no host and port.
    BadHost,
    /// A method that is no token.
    BadMethod,
    /// A request line that is not three words with single spaces.
    BadRequestLine,
    /// A status line that is not `HTTP/1.x NNN reason`.
    BadStatusLine,
    /// A target with a forbidden byte, in a form that its method excludes, or that names
    /// no server.
    BadTarget,
    /// Transfer codings that do not end in exactly one `chunked`.
    BadTransferEncoding,
    /// A version that is not written `HTTP/D.D`.
    BadVersion,
    /// A CR without LF.
    BareCarriageReturn,
    /// An LF without CR.
    BareLineFeed,
    /// A chunk size over 64 bits.
    ChunkSizeOverflow,
    /// Content-Length values that differ.
    ConflictingContentLength,
    /// A Content-Length over 64 bits.
    ContentLengthOverflow,
    /// A header line folded over several lines.
    FoldedHeader,
    /// Both Content-Length and Transfer-Encoding in a request.
    LengthAndTransferEncoding,
    /// One of [`Limits`] was reached.
    Limit {
        /// Which.
        limit: Limit,
        /// Its value.
        max: u64,
    },
    /// A request of HTTP/1.1 without Host, or of HTTP/2 without it and `:authority`.
    MissingHost,
    /// Host more than once.
    RepeatedHost,
    /// White space between a header's name and its colon.
    SpaceBeforeColon,
    /// Transfer-Encoding in an HTTP/1.0 request.
    TransferEncodingInHttp10,
    /// The stream ended within a body.
    TruncatedBody,
    /// The stream ended within a head.
    TruncatedHead,
    /// Bytes from the server while no request is outstanding.
    UnexpectedBytes,
    /// A transfer coding besides `chunked`.
    UnsupportedTransferEncoding,
    /// A version that is not HTTP/1; of a response, another than 1.0 and 1.1.
    UnsupportedVersion,
}

impl Error {
    /// The status with which a server answers this fault of a request.
    pub const fn status(self) -> u16 {
        match self {
            Error::Limit { limit, .. } => match limit {
                Limit::Body => 413,
                Limit::RequestLine | Limit::Target => 414,
                Limit::Head | Limit::Headers | Limit::Trailer => 431,
                Limit::Method => 501,
                Limit::ChunkLine | Limit::EmptyLines | Limit::Interim | Limit::Outstanding => 400,
            },
            Error::UnsupportedTransferEncoding => 501,
            Error::UnsupportedVersion => 505,
            _ => 400,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Error::BadChunkEnd => "a chunk's data is not followed by CRLF",
            Error::BadChunkExtension => "a chunk extension holds a control byte",
            Error::BadChunkSize => "a chunk size is not hexadecimal digits alone",
            Error::BadContentLength => "a Content-Length is not decimal digits alone",
            Error::BadHeaderName => "a header line does not start with a name and a colon",
            Error::BadHeaderValue => "a header value holds a control byte",
            Error::BadHost => "the Host header is no host and port",
            Error::BadMethod => "the method is no token",
            Error::BadRequestLine => "the request line is not a method, a target and a version",
            Error::BadStatusLine => "the status line is not a version, a status and a reason",
            Error::BadTarget => "the request target is not one that this method can have",
            Error::BadTransferEncoding => "the transfer codings do not end in one \"chunked\"",
            Error::BadVersion => "the version is not of the form HTTP/1.1",
            Error::BareCarriageReturn => "a CR is not followed by LF",
            Error::BareLineFeed => "an LF is not preceded by CR",
            Error::ChunkSizeOverflow => "a chunk size needs more than 64 bits",
            Error::ConflictingContentLength => "several Content-Length values differ",
            Error::ContentLengthOverflow => "a Content-Length needs more than 64 bits",
            Error::FoldedHeader => "a header is folded over several lines",
            Error::LengthAndTransferEncoding => {
                "there are both Content-Length and Transfer-Encoding"
            }
            Error::Limit { limit, .. } => limit.words().1,
            Error::MissingHost => "the request has no Host header",
            Error::RepeatedHost => "there is more than one Host header",
            Error::SpaceBeforeColon => "white space precedes a header's colon",
            Error::TransferEncodingInHttp10 => "an HTTP/1.0 request has a Transfer-Encoding",
            Error::TruncatedBody => "the stream ended within a body",
            Error::TruncatedHead => "the stream ended within a head",
            Error::UnexpectedBytes => "bytes came that answer no request",
            Error::UnsupportedTransferEncoding => "there is a transfer coding besides \"chunked\"",
            Error::UnsupportedVersion => "the version is neither HTTP/1.0 nor HTTP/1.1",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Limit { limit, max } => {
                let (name, words) = limit.words();
                write!(f, "{words} than {name} allows ({max})")
            }
            error => f.write_str(error.words()),
        }
    }
}

impl std::error::Error for Error {}
