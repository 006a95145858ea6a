//! What every fault is called and how a server answers it.

use prony_wire::encode::EncodeError;
use prony_wire::{Error, Limit};

const LIMITS: [Limit; 11] = [
    Limit::Body,
    Limit::ChunkLine,
    Limit::EmptyLines,
    Limit::Head,
    Limit::Headers,
    Limit::Interim,
    Limit::Method,
    Limit::Outstanding,
    Limit::RequestLine,
    Limit::Target,
    Limit::Trailer,
];

const FAULTS: [Error; 29] = [
    Error::BadChunkEnd,
    Error::BadChunkExtension,
    Error::BadChunkSize,
    Error::BadContentLength,
    Error::BadHeaderName,
    Error::BadHeaderValue,
    Error::BadHost,
    Error::BadMethod,
    Error::BadRequestLine,
    Error::BadStatusLine,
    Error::BadTarget,
    Error::BadTransferEncoding,
    Error::BadVersion,
    Error::BareCarriageReturn,
    Error::BareLineFeed,
    Error::ChunkSizeOverflow,
    Error::ConflictingContentLength,
    Error::ContentLengthOverflow,
    Error::FoldedHeader,
    Error::LengthAndTransferEncoding,
    Error::MissingHost,
    Error::RepeatedHost,
    Error::SpaceBeforeColon,
    Error::TransferEncodingInHttp10,
    Error::TruncatedBody,
    Error::TruncatedHead,
    Error::UnexpectedBytes,
    Error::UnsupportedTransferEncoding,
    Error::UnsupportedVersion,
];

#[test]
fn messages_and_statuses() {
    let limits = LIMITS.map(|limit| Error::Limit { limit, max: 7 });
    let lines: Vec<String> = FAULTS
        .iter()
        .chain(&limits)
        .map(|error| format!("{} {error}", error.status()))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    400 a chunk's data is not followed by CRLF
    400 a chunk extension holds a control byte
    400 a chunk size is not hexadecimal digits alone
    400 a Content-Length is not decimal digits alone
    400 a header line does not start with a name and a colon
    400 a header value holds a control byte
    400 the Host header is no host and port
    400 the method is no token
    400 the request line is not a method, a target and a version
    400 the status line is not a version, a status and a reason
    400 the request target is not one that this method can have
    400 the transfer codings do not end in one "chunked"
    400 the version is not of the form HTTP/1.1
    400 a CR is not followed by LF
    400 an LF is not preceded by CR
    400 a chunk size needs more than 64 bits
    400 several Content-Length values differ
    400 a Content-Length needs more than 64 bits
    400 a header is folded over several lines
    400 there are both Content-Length and Transfer-Encoding
    400 the request has no Host header
    400 there is more than one Host header
    400 white space precedes a header's colon
    400 an HTTP/1.0 request has a Transfer-Encoding
    400 the stream ended within a body
    400 the stream ended within a head
    400 bytes came that answer no request
    501 there is a transfer coding besides "chunked"
    505 the version is neither HTTP/1.0 nor HTTP/1.1
    413 the body has more bytes than body_bytes_max allows (7)
    400 a chunk-size line has more bytes than chunk_line_bytes_max allows (7)
    400 more empty lines precede the request than empty_lines_max allows (7)
    431 the head has more bytes than head_bytes_max allows (7)
    431 there are more header lines than headers_max allows (7)
    400 more interim responses came than interim_responses_max allows (7)
    501 the method has more bytes than method_bytes_max allows (7)
    400 more requests are outstanding than outstanding_max allows (7)
    414 the request line has more bytes than head_bytes_max allows (7)
    414 the request target has more bytes than target_bytes_max allows (7)
    431 the trailer section has more bytes than trailer_bytes_max allows (7)
    "#);
}

#[test]
fn messages_of_the_encoder() {
    let lines = [
        EncodeError::BadHeaderName,
        EncodeError::BadHeaderValue,
        EncodeError::BadStatus,
        EncodeError::BadTarget,
        EncodeError::BadFraming,
        EncodeError::FramingHeader,
        EncodeError::MissingHost,
        EncodeError::RepeatedHost,
    ]
    .map(|error| error.to_string());
    insta::assert_snapshot!(lines.join("\n"), @r#"
    the header name is no token
    the header value holds a control byte
    the status is not between 100 and 999
    the target is empty or not visible ASCII
    this message cannot have a body framed so
    Content-Length and Transfer-Encoding follow from the framing and cannot be given
    an HTTP/1.1 request needs a Host header
    there can be only one Host header
    "#);
}
