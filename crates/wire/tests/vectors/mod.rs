//! Bytes and what the readers must say of them. A row: name, input, lines
//! (see `prony_wire::fuzz::requests`). The last line is the stream's end or
//! the fault. `reads.rs` and `guard_page.rs` both run every row.

use prony_wire::Method;

/// Name, input, lines.
pub type Row = (&'static str, &'static [u8], &'static [&'static str]);
/// Name, methods expected, input, lines.
pub type ResponseRow = (
    &'static str,
    &'static [Method],
    &'static [u8],
    &'static [&'static str],
);

const CONNECT: &[Method] = &[Method::Connect];
const GET: &[Method] = &[Method::Get];
const HEAD: &[Method] = &[Method::Head];

#[rustfmt::skip]
pub const REQUESTS: &[Row] = &[
    ("nothing", b"", &["idle"]),
    ("get", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &["GET / HTTP/1.1 None keep Host=a", "end keep", "idle"]),
    ("two pipelined", b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /2 HTTP/1.1\r\nHost: a\r\n\r\n",
        &["GET /1 HTTP/1.1 None keep Host=a", "end keep",
          "HEAD /2 HTTP/1.1 None keep Host=a", "end keep", "idle"]),
    ("length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        &["POST / HTTP/1.1 Length(5) keep Host=a Content-Length=5", "data hello", "end keep", "idle"]),
    ("length of zero", b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n",
        &["POST / HTTP/1.1 Length(0) keep host=a content-length=0", "end keep", "idle"]),
    ("equal lengths in lines and a list",
        b"POST / HTTP/1.1\r\nHost:a\r\nContent-Length:1\r\nContent-Length: 1, 01\r\n\r\nx",
        &["POST / HTTP/1.1 Length(1) keep Host=a Content-Length=1 Content-Length=1, 01",
          "data x", "end keep", "idle"]),
    ("a body, then a request", b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhiGET / HTTP/1.0\r\n\r\n",
        &["PUT / HTTP/1.1 Length(2) keep Host=a Content-Length=2", "data hi", "end keep",
          "GET / HTTP/1.0 None close", "end close", "idle"]),
    ("chunked", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\nA\r\n, world!!!\r\n0\r\n\r\n",
        &["POST / HTTP/1.1 Chunked keep Host=a Transfer-Encoding=Chunked", "data hello, world!!!", "end keep", "idle"]),
    ("chunked with trailers and an extension",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n01;a=\"b;c\"\r\nx\r\n000\r\nX: y\r\nZ:\r\n\r\n",
        &["POST / HTTP/1.1 Chunked keep Host=a Transfer-Encoding=chunked", "data x", "end keep X=y Z=", "idle"]),
    ("chunked, then a request",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.0\r\n\r\n",
        &["POST / HTTP/1.1 Chunked keep Host=a Transfer-Encoding=chunked", "end keep",
          "GET / HTTP/1.0 None close", "end close", "idle"]),
    ("HTTP/1.0 closes", b"GET / HTTP/1.0\r\n\r\n", &["GET / HTTP/1.0 None close", "end close", "idle"]),
    ("HTTP/1.0 keeps alive", b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
        &["GET / HTTP/1.0 None keep Connection=Keep-Alive", "end keep", "idle"]),
    ("HTTP/1.1 closes, the rest is ignored", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n\x00junk",
        &["GET / HTTP/1.1 None close Host=a Connection=close", "end close", "idle"]),
    ("close among tokens", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade,\tClose ,x\r\n\r\n",
        &["GET / HTTP/1.1 None close Host=a Connection=upgrade,\\tClose ,x", "end close", "idle"]),
    ("close in the second line wins",
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n",
        &["GET / HTTP/1.1 None close Host=a Connection=keep-alive Connection=close", "end close", "idle"]),
    ("closed is not close", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: closed\r\n\r\n",
        &["GET / HTTP/1.1 None keep Host=a Connection=closed", "end keep", "idle"]),
    ("expects continue", b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
        &["PUT / HTTP/1.1 Length(1) keep waits Host=a Expect=100-Continue Content-Length=1", "data x", "end keep", "idle"]),
    ("expects continue without a body", b"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
        &["GET / HTTP/1.1 None keep Host=a Expect=100-continue", "end keep", "idle"]),
    ("empty lines before", b"\r\n\r\nGET / HTTP/1.0\r\n\r\n", &["GET / HTTP/1.0 None close", "end close", "idle"]),
    ("empty line after", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n",
        &["GET / HTTP/1.1 None keep Host=a", "end keep", "idle"]),
    ("asterisk", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        &["OPTIONS * HTTP/1.1 None keep Host=a", "end keep", "idle"]),
    ("authority", b"CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:443\r\n\r\n",
        &["CONNECT a.b:443 HTTP/1.1 None keep Host=a.b:443", "end keep", "idle"]),
    ("absolute", b"GET http://a/b?c=/d HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
        &["GET http://a/b?c=/d HTTP/1.1 None keep Host=[::1]:80", "end keep", "idle"]),
    ("another method", b"X-M!x / HTTP/1.0\r\n\r\n", &["X-M!x / HTTP/1.0 None close", "end close", "idle"]),
    ("get in small letters is another method", b"get / HTTP/1.0\r\n\r\n",
        &["get / HTTP/1.0 None close", "end close", "idle"]),
    ("values", b"GET / HTTP/1.0\r\nA:\r\nB: \t \r\nC:d\r\nE: \xc3\xa9 f \r\nG: a:b\r\n\r\n",
        &["GET / HTTP/1.0 None close A= B= C=d E=\\xc3\\xa9 f G=a:b", "end close", "idle"]),
    ("host is empty", b"GET / HTTP/1.1\r\nHost:\r\n\r\n", &["GET / HTTP/1.1 None keep Host=", "end keep", "idle"]),
    // Cut off.
    ("cut after CR", b"\r", &["TruncatedHead"]),
    ("cut in the method", b"GE", &["TruncatedHead"]),
    ("cut before the empty line", b"GET / HTTP/1.1\r\nHost: a\r\n", &["TruncatedHead"]),
    ("cut in a body", b"PUT / HTTP/1.0\r\nContent-Length: 3\r\n\r\nhi",
        &["PUT / HTTP/1.0 Length(3) close Content-Length=3", "data hi", "TruncatedBody"]),
    ("cut before trailers end", b"PUT / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n",
        &["PUT / HTTP/1.1 Chunked keep Host= Transfer-Encoding=chunked", "TruncatedBody"]),
];

/// Requests that are refused with the first event, and the fault.
#[rustfmt::skip]
pub const REFUSED: &[Row] = &[
    // Lines.
    ("bare LF ends the request line", b"GET / HTTP/1.0\n\r\n", &["BareLineFeed"]),
    ("bare LF ends a header", b"GET / HTTP/1.0\r\nA: b\n\r\n", &["BareLineFeed"]),
    ("bare LF ends the head", b"GET / HTTP/1.0\r\nA: b\r\n\n", &["BareLineFeed"]),
    ("bare LF first", b"\nGET / HTTP/1.0\r\n\r\n", &["BareLineFeed"]),
    ("bare CR in the request line", b"GET / HTTP/1.0\rA: b\r\n\r\n", &["BareCarriageReturn"]),
    ("bare CR in a value", b"GET / HTTP/1.0\r\nA: b\rc: d\r\n\r\n", &["BareCarriageReturn"]),
    ("bare CR in a name", b"GET / HTTP/1.0\r\nA\rB: c\r\n\r\n", &["BareCarriageReturn"]),
    ("bare CR first", b"\rGET / HTTP/1.0\r\n\r\n", &["BareCarriageReturn"]),
    ("two CR before LF", b"GET / HTTP/1.0\r\r\n\r\n", &["BareCarriageReturn"]),
    // The request line.
    ("TLS", b"\x16\x03\x01\x02\x00\x01", &["BadMethod"]),
    ("space first", b" GET / HTTP/1.0\r\n\r\n", &["BadMethod"]),
    ("no token", b"G(T / HTTP/1.0\r\n\r\n", &["BadMethod"]),
    ("a tab for a space", b"GET\t/ HTTP/1.0\r\n\r\n", &["BadMethod"]),
    ("one word", b"GET\r\n\r\n", &["BadRequestLine"]),
    ("HTTP/0.9", b"GET /\r\n\r\n", &["BadRequestLine"]),
    ("two spaces", b"GET  / HTTP/1.0\r\n\r\n", &["BadRequestLine"]),
    ("two spaces before the version", b"GET /  HTTP/1.0\r\n\r\n", &["BadRequestLine"]),
    ("a space after the version", b"GET / HTTP/1.0 \r\n\r\n", &["BadRequestLine"]),
    ("a space in the target", b"GET /a b HTTP/1.0\r\n\r\n", &["BadRequestLine"]),
    ("HTTP/2.0", b"GET / HTTP/2.0\r\n\r\n", &["UnsupportedVersion"]),
    ("HTTP/2's preface", b"PRI * HTTP/2.0\r\n\r\n", &["UnsupportedVersion"]),
    ("HTTP/1.2", b"GET / HTTP/1.2\r\n\r\n", &["UnsupportedVersion"]),
    ("HTTP/1.10", b"GET / HTTP/1.10\r\n\r\n", &["BadVersion"]),
    ("http/1.1", b"GET / http/1.1\r\n\r\n", &["BadVersion"]),
    ("a method of 24 bytes", b"ABCDEFGHIJKLMNOPQRSTUVWX / HTTP/1.0\r\n\r\n",
        &["Limit { limit: Method, max: 23 }"]),
    ("fragment", b"GET /a#b HTTP/1.0\r\n\r\n", &["BadTarget"]),
    ("control byte in the target", b"GET /\x01 HTTP/1.0\r\n\r\n", &["BadTarget"]),
    ("DEL in the target", b"GET /\x7f HTTP/1.0\r\n\r\n", &["BadTarget"]),
    ("UTF-8 in the target", b"GET /\xc3\xa9 HTTP/1.0\r\n\r\n", &["BadTarget"]),
    ("no UTF-8 in the target", b"GET /\xff HTTP/1.0\r\n\r\n", &["BadTarget"]),
    ("no slash", b"GET a HTTP/1.0\r\n\r\n", &["BadTarget"]),
    ("asterisk for GET", b"GET * HTTP/1.0\r\n\r\n", &["BadTarget"]),
    ("path for CONNECT", b"CONNECT /a HTTP/1.0\r\n\r\n", &["BadTarget"]),
    ("no scheme", b"GET ://a HTTP/1.0\r\n\r\n", &["BadTarget"]),
    // Header lines.
    ("space before the colon", b"GET / HTTP/1.0\r\nA : b\r\n\r\n", &["SpaceBeforeColon"]),
    ("tab before the colon", b"GET / HTTP/1.0\r\nA\t: b\r\n\r\n", &["SpaceBeforeColon"]),
    ("space in a name", b"GET / HTTP/1.0\r\nA B: c\r\n\r\n", &["BadHeaderName"]),
    ("no name", b"GET / HTTP/1.0\r\n: b\r\n\r\n", &["BadHeaderName"]),
    ("no colon", b"GET / HTTP/1.0\r\nA\r\n\r\n", &["BadHeaderName"]),
    ("NUL in a name", b"GET / HTTP/1.0\r\nA\x00: b\r\n\r\n", &["BadHeaderName"]),
    ("UTF-8 in a name", b"GET / HTTP/1.0\r\n\xc3\xa9: b\r\n\r\n", &["BadHeaderName"]),
    ("folded", b"GET / HTTP/1.0\r\nA: b\r\n c\r\n\r\n", &["FoldedHeader"]),
    ("folded with a tab", b"GET / HTTP/1.0\r\nA: b\r\n\tc: d\r\n\r\n", &["FoldedHeader"]),
    ("space before the first header", b"GET / HTTP/1.0\r\n A: b\r\n\r\n", &["FoldedHeader"]),
    ("NUL in a value", b"GET / HTTP/1.0\r\nA: b\x00c\r\n\r\n", &["BadHeaderValue"]),
    ("DEL in a value", b"GET / HTTP/1.0\r\nA: \x7f\r\n\r\n", &["BadHeaderValue"]),
    ("vertical tab in a value", b"GET / HTTP/1.0\r\nA: \x0bb\r\n\r\n", &["BadHeaderValue"]),
    // Host.
    ("no Host", b"GET / HTTP/1.1\r\n\r\n", &["MissingHost"]),
    ("no Host for an absolute target", b"GET http://a/ HTTP/1.1\r\n\r\n", &["MissingHost"]),
    ("two Hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", &["RepeatedHost"]),
    ("two Hosts in HTTP/1.0", b"GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n", &["RepeatedHost"]),
    ("space in Host", b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", &["BadHost"]),
    ("user in Host", b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", &["BadHost"]),
    ("path in Host", b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", &["BadHost"]),
    // Lengths.
    ("both lengths", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        &["LengthAndTransferEncoding"]),
    ("both lengths, the other order", b"POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: x\r\ncontent-length: 3\r\n\r\n",
        &["LengthAndTransferEncoding"]),
    ("lengths differ", b"POST / HTTP/1.0\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", &["ConflictingContentLength"]),
    ("lengths in a list differ", b"POST / HTTP/1.0\r\nContent-Length: 3, 4\r\n\r\n", &["ConflictingContentLength"]),
    ("length is empty", b"POST / HTTP/1.0\r\nContent-Length:\r\n\r\n", &["BadContentLength"]),
    ("length in a list is empty", b"POST / HTTP/1.0\r\nContent-Length: 3,\r\n\r\n", &["BadContentLength"]),
    ("length with plus", b"POST / HTTP/1.0\r\nContent-Length: +3\r\n\r\n", &["BadContentLength"]),
    ("length with minus", b"POST / HTTP/1.0\r\nContent-Length: -3\r\n\r\n", &["BadContentLength"]),
    ("length in hexadecimal", b"POST / HTTP/1.0\r\nContent-Length: 0x3\r\n\r\n", &["BadContentLength"]),
    ("length with a space", b"POST / HTTP/1.0\r\nContent-Length: 3 3\r\n\r\n", &["BadContentLength"]),
    ("length with a fraction", b"POST / HTTP/1.0\r\nContent-Length: 3.0\r\n\r\n", &["BadContentLength"]),
    ("length of 2^64", b"POST / HTTP/1.0\r\nContent-Length: 18446744073709551616\r\n\r\n", &["ContentLengthOverflow"]),
    ("length over the limit", b"POST / HTTP/1.0\r\nContent-Length: 16777217\r\n\r\n",
        &["Limit { limit: Body, max: 16777216 }"]),
    // Codings.
    ("coding in HTTP/1.0", b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", &["TransferEncodingInHttp10"]),
    ("coding is unknown", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", &["BadTransferEncoding"]),
    ("coding is identity", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", &["BadTransferEncoding"]),
    ("coding is empty", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", &["BadTransferEncoding"]),
    ("coding with a parameter", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n", &["BadTransferEncoding"]),
    ("coding is chunked twice", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", &["BadTransferEncoding"]),
    ("coding is chunked twice in lines",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", &["BadTransferEncoding"]),
    ("chunked is not last", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", &["BadTransferEncoding"]),
    ("chunked and an empty member", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n", &["BadTransferEncoding"]),
    ("coding before chunked", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
        &["UnsupportedTransferEncoding"]),
];

/// Chunked bodies of requests, after `fuzz`'s chunked head, and what follows
/// the head's line.
#[rustfmt::skip]
pub const CHUNKED: &[Row] = &[
    ("size is empty", b"\r\nx", &["BadChunkSize"]),
    ("size is an extension", b";a\r\n", &["BadChunkSize"]),
    ("size with plus", b"+1\r\nx\r\n", &["BadChunkSize"]),
    ("size with minus", b"-1\r\nx\r\n", &["BadChunkSize"]),
    ("size with 0x", b"0x1\r\nx\r\n", &["BadChunkSize"]),
    ("size with a space before", b" 1\r\nx\r\n", &["BadChunkSize"]),
    ("size with a space after", b"1 \r\nx\r\n", &["BadChunkSize"]),
    ("size with a space before the extension", b"1 ;a\r\nx\r\n", &["BadChunkSize"]),
    ("size is no digit", b"g\r\n", &["BadChunkSize"]),
    ("size of 2^64", b"10000000000000000\r\n", &["ChunkSizeOverflow"]),
    ("size of 2^64 - 1", b"ffffffffffffffff\r\n", &["Limit { limit: Body, max: 16777216 }"]),
    ("sizes add to more than 2^64", b"1\r\nx\r\nffffffffffffffff\r\n",
        &["data x", "Limit { limit: Body, max: 16777216 }"]),
    ("many zeros before", b"00000000000000000000001\r\nx\r\n0\r\n\r\n", &["data x", "end keep", "idle"]),
    ("bare LF after the size", b"1\nx\r\n", &["BareLineFeed"]),
    ("bare LF after an extension", b"1;a\nx\r\n", &["BareLineFeed"]),
    ("bare CR after the size", b"1\rx", &["BareCarriageReturn"]),
    ("NUL in an extension", b"1;\x00\r\n", &["BadChunkExtension"]),
    ("no CRLF after data", b"1\r\nxy\r\n", &["data x", "BadChunkEnd"]),
    ("bare LF after data", b"1\r\nx\n", &["data x", "BadChunkEnd"]),
    ("bare CR after data", b"1\r\nx\rx", &["data x", "BareCarriageReturn"]),
    ("bare LF in trailers", b"0\r\nA: b\n\r\n", &["BareLineFeed"]),
    ("bare CR in trailers", b"0\r\nA: b\rc\r\n\r\n", &["BareCarriageReturn"]),
    ("bare LF for trailers", b"0\r\n\n", &["BareLineFeed"]),
    ("folded trailer", b"0\r\nA: b\r\n c\r\n\r\n", &["FoldedHeader"]),
    ("folded first trailer", b"0\r\n A: b\r\n\r\n", &["FoldedHeader"]),
    ("trailer with a space before the colon", b"0\r\nA : b\r\n\r\n", &["SpaceBeforeColon"]),
    ("trailer without a colon", b"0\r\nA\r\n\r\n", &["BadHeaderName"]),
    ("NUL in a trailer", b"0\r\nA: \x00\r\n\r\n", &["BadHeaderValue"]),
    ("cut before a size", b"", &["TruncatedBody"]),
    ("cut in data", b"2\r\nx", &["data x", "TruncatedBody"]),
    ("cut after data", b"1\r\nx", &["data x", "TruncatedBody"]),
    ("cut before the last CRLF", b"0\r\n", &["TruncatedBody"]),
];

/// Requests under `fuzz::SMALL`.
#[rustfmt::skip]
pub const LIMITED: &[Row] = &[
    ("head of 192 bytes", b"GET / HTTP/1.0\r\na: 111111111111111111111111111111111111111111111111111111111111111111111111111111\r\nb: 22222222222222222222222222222222222222222222222222222222222222222222222222222222222222\r\n\r\n",
        &["GET / HTTP/1.0 None close a=111111111111111111111111111111111111111111111111111111111111111111111111111111 b=22222222222222222222222222222222222222222222222222222222222222222222222222222222222222", "end close", "idle"]),
    ("head of 193 bytes", b"GET / HTTP/1.0\r\na: 111111111111111111111111111111111111111111111111111111111111111111111111111111\r\nb: 222222222222222222222222222222222222222222222222222222222222222222222222222222222222222\r\n\r\n",
        &["Limit { limit: Head, max: 192 }"]),
    ("request line without end", &[b'A'; 300], &["Limit { limit: RequestLine, max: 192 }"]),
    ("target of 48 bytes", b"GET /12345678901234567890123456789012345678901234567 HTTP/1.0\r\n\r\n",
        &["GET /12345678901234567890123456789012345678901234567 HTTP/1.0 None close", "end close", "idle"]),
    ("target of 49 bytes", b"GET /123456789012345678901234567890123456789012345678 HTTP/1.0\r\n\r\n",
        &["Limit { limit: Target, max: 48 }"]),
    ("6 headers", b"GET / HTTP/1.0\r\na:\r\nb:\r\nc:\r\nd:\r\ne:\r\nf:\r\n\r\n",
        &["GET / HTTP/1.0 None close a= b= c= d= e= f=", "end close", "idle"]),
    ("7 headers", b"GET / HTTP/1.0\r\na:\r\nb:\r\nc:\r\nd:\r\ne:\r\nf:\r\ng:\r\n\r\n",
        &["Limit { limit: Headers, max: 6 }"]),
    ("two empty lines", b"\r\n\r\nGET / HTTP/1.0\r\n\r\n", &["Limit { limit: EmptyLines, max: 1 }"]),
    ("one empty line each", b"\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n\r\nGET / HTTP/1.0\r\n\r\n",
        &["GET / HTTP/1.1 None keep Host=", "end keep", "GET / HTTP/1.0 None close", "end close", "idle"]),
    ("length of 65", b"PUT / HTTP/1.0\r\nContent-Length: 65\r\n\r\n", &["Limit { limit: Body, max: 64 }"]),
    ("chunks of 65", b"PUT / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n40\r\n",
        &["PUT / HTTP/1.1 Chunked keep Host= Transfer-Encoding=chunked", "data x", "Limit { limit: Body, max: 64 }"]),
    ("chunk line of 12", b"PUT / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n0;3456789012\r\n\r\n",
        &["PUT / HTTP/1.1 Chunked keep Host= Transfer-Encoding=chunked", "end keep", "idle"]),
    ("chunk line of 13", b"PUT / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n0;34567890123\r\n\r\n",
        &["PUT / HTTP/1.1 Chunked keep Host= Transfer-Encoding=chunked", "Limit { limit: ChunkLine, max: 12 }"]),
    ("trailers of 48 bytes", b"PUT / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n0\r\na: 45678901234567890123456789012345678901234\r\n\r\n",
        &["PUT / HTTP/1.1 Chunked keep Host= Transfer-Encoding=chunked", "end keep a=45678901234567890123456789012345678901234", "idle"]),
    ("trailers of 49 bytes", b"PUT / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n0\r\na: 456789012345678901234567890123456789012345\r\n\r\n",
        &["PUT / HTTP/1.1 Chunked keep Host= Transfer-Encoding=chunked", "Limit { limit: Trailer, max: 48 }"]),
    ("7 trailers", b"PUT / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n0\r\na:\r\nb:\r\nc:\r\nd:\r\ne:\r\nf:\r\ng:\r\n\r\n",
        &["PUT / HTTP/1.1 Chunked keep Host= Transfer-Encoding=chunked", "Limit { limit: Headers, max: 6 }"]),
];

/// Responses under `fuzz::SMALL`.
#[rustfmt::skip]
pub const RESPONSES: &[ResponseRow] = &[
    ("nothing", &[], b"", &["idle 0"]),
    ("no answer", GET, b"", &["idle 1"]),
    ("length", GET, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        &["HTTP/1.1 200 \"OK\" Length(5) keep Content-Length=5", "data hello", "end keep", "idle 0"]),
    ("chunked", GET, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nA: b\r\n\r\n",
        &["HTTP/1.1 200 \"OK\" Chunked keep Transfer-Encoding=chunked", "data hi", "end keep A=b", "idle 0"]),
    ("size padded with white space", GET, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 \t;a\r\nhi\r\n0  \r\n\r\n",
        &["HTTP/1.1 200 \"OK\" Chunked keep Transfer-Encoding=chunked", "data hi", "end keep", "idle 0"]),
    ("size with a space within", GET, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 2\r\n",
        &["HTTP/1.1 200 \"OK\" Chunked keep Transfer-Encoding=chunked", "BadChunkSize"]),
    ("until close", GET, b"HTTP/1.1 200 OK\r\n\r\nhello",
        &["HTTP/1.1 200 \"OK\" UntilClose close", "data hello", "complete 0"]),
    ("until close, nothing", GET, b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n",
        &["HTTP/1.0 200 \"OK\" UntilClose close Connection=keep-alive", "complete 0"]),
    ("until close, unanswered", &[Method::Get, Method::Get], b"HTTP/1.0 200 OK\r\n\r\nx",
        &["HTTP/1.0 200 \"OK\" UntilClose close", "data x", "complete 1"]),
    ("until close over the limit", GET, b"HTTP/1.0 200 OK\r\n\r\n12345678901234567890123456789012345678901234567890123456789012345",
        &["HTTP/1.0 200 \"OK\" UntilClose close", "data 1234567890123456789012345678901234567890123456789012345678901234",
          "Limit { limit: Body, max: 64 }"]),
    ("HTTP/1.0 keeps alive", GET, b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
        &["HTTP/1.0 200 \"OK\" Length(0) keep Connection=keep-alive Content-Length=0", "end keep", "idle 0"]),
    ("HTTP/1.0 closes", GET, b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        &["HTTP/1.0 200 \"OK\" Length(0) close Content-Length=0", "end close", "idle 0"]),
    ("HEAD has no body", HEAD, b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n",
        &["HTTP/1.1 200 \"OK\" None keep Content-Length=500", "end keep", "idle 0"]),
    ("HEAD chunked has no body", HEAD, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        &["HTTP/1.1 200 \"OK\" None keep Transfer-Encoding=chunked", "end keep", "idle 0"]),
    ("204 has no body", GET, b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
        &["HTTP/1.1 204 \"No Content\" None keep Content-Length=5", "end keep", "idle 0"]),
    ("304 has no body", GET, b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
        &["HTTP/1.1 304 \"Not Modified\" None keep Transfer-Encoding=chunked", "end keep", "idle 0"]),
    ("HEAD, then GET", &[Method::Head, Method::Get],
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        &["HTTP/1.1 200 \"OK\" None keep Content-Length=1", "end keep",
          "HTTP/1.1 200 \"OK\" Length(1) keep Content-Length=1", "data x", "end keep", "idle 0"]),
    ("interim", GET, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        &["interim HTTP/1.1 100 \"Continue\" None keep", "interim HTTP/1.1 103 \"Early Hints\" None keep Link=x",
          "HTTP/1.1 200 \"OK\" Length(0) keep Content-Length=0", "end keep", "idle 0"]),
    ("3 interim", GET, b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 100 C\r\n\r\n",
        &["interim HTTP/1.1 100 \"C\" None keep", "interim HTTP/1.1 100 \"C\" None keep",
          "Limit { limit: Interim, max: 2 }"]),
    ("interim, then cut off", GET, b"HTTP/1.1 100 C\r\n\r\n", &["interim HTTP/1.1 100 \"C\" None keep", "TruncatedHead"]),
    ("switching protocols", GET, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\x00\x01",
        &["HTTP/1.1 101 \"Switching Protocols\" UntilClose close Upgrade=x", "data \\x00\\x01", "complete 0"]),
    ("tunnel", CONNECT, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxyz",
        &["HTTP/1.1 200 \"OK\" UntilClose close Content-Length=1", "data xyz", "complete 0"]),
    ("204 to CONNECT is a tunnel, too", CONNECT, b"HTTP/1.1 204 No Content\r\n\r\nx",
        &["HTTP/1.1 204 \"No Content\" UntilClose close", "data x", "complete 0"]),
    ("no tunnel", CONNECT, b"HTTP/1.1 403 No\r\nContent-Length: 1\r\n\r\nx",
        &["HTTP/1.1 403 \"No\" Length(1) keep Content-Length=1", "data x", "end keep", "idle 0"]),
    ("both lengths: chunked decides", GET,
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        &["HTTP/1.1 200 \"OK\" Chunked close Content-Length=9 Transfer-Encoding=chunked", "data x", "end close", "idle 0"]),
    ("chunked in HTTP/1.0", GET,
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        &["HTTP/1.0 200 \"OK\" Chunked close Connection=keep-alive Transfer-Encoding=chunked", "end close", "idle 0"]),
    ("identity says nothing", GET, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\nx",
        &["HTTP/1.1 200 \"OK\" Length(1) close Transfer-Encoding=identity Content-Length=1", "data x", "end close", "idle 0"]),
    ("equal lengths", GET, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        &["HTTP/1.1 200 \"OK\" Length(1) keep Content-Length=1 Content-Length=1", "data x", "end keep", "idle 0"]),
    ("no reason", GET, b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
        &["HTTP/1.1 200 \"\" Length(0) keep Content-Length=0", "end keep", "idle 0"]),
    ("reason that is no ASCII", GET, b"HTTP/1.1 200 \xc3\xa9\r\nContent-Length: 0\r\n\r\n",
        &["HTTP/1.1 200 \"\" Length(0) keep Content-Length=0", "end keep", "idle 0"]),
    ("status of 999", GET, b"HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n",
        &["HTTP/1.1 999 \"X\" Length(0) keep Content-Length=0", "end keep", "idle 0"]),
    ("folded", GET, b"HTTP/1.1 204 X\r\nA: b\r\n c\r\n\r\n",
        &["HTTP/1.1 204 \"X\" None keep A=b c", "end keep", "idle 0"]),
    ("folded with tabs and spaces", GET, b"HTTP/1.1 204 X\r\nA: b \t\r\n\t  c:d\r\n \r\n\te\r\nF:\r\n g\r\nH:\r\n \r\n\r\n",
        &["HTTP/1.1 204 \"X\" None keep A=b c:d e F=g H=", "end keep", "idle 0"]),
    ("folded before the length", GET, b"HTTP/1.1 200 OK\r\nContent-Length:\r\n 1\r\n\r\nxHTTP",
        &["HTTP/1.1 200 \"OK\" Length(1) keep Content-Length=1", "data x", "end keep", "UnexpectedBytes"]),
    // Refused.
    ("unasked", &[], b"HTTP/1.1 200 OK\r\n\r\n", &["UnexpectedBytes"]),
    ("too many answers", GET, b"HTTP/1.1 204 X\r\n\r\nHTTP/1.1 204 X\r\n\r\n",
        &["HTTP/1.1 204 \"X\" None keep", "end keep", "UnexpectedBytes"]),
    ("bytes after the last response", &[Method::Get, Method::Get], b"HTTP/1.0 204 X\r\n\r\nH",
        &["HTTP/1.0 204 \"X\" None close", "end close", "UnexpectedBytes"]),
    ("five requests", &[Method::Get; 5], b"", &["Limit { limit: Outstanding, max: 4 }"]),
    ("empty line first", GET, b"\r\nHTTP/1.1 200 OK\r\n\r\n", &["BadStatusLine"]),
    ("something else", GET, b"SSH-2.0-OpenSSH_9.6\r\n\r\n", &["BadStatusLine"]),
    ("HTTP/2.0", GET, b"HTTP/2.0 200 OK\r\n\r\n", &["UnsupportedVersion"]),
    ("status of 099", GET, b"HTTP/1.1 099 X\r\n\r\n", &["BadStatusLine"]),
    ("status of 20", GET, b"HTTP/1.1 20 OK\r\n\r\n", &["BadStatusLine"]),
    ("status of 2000", GET, b"HTTP/1.1 2000 OK\r\n\r\n", &["BadStatusLine"]),
    ("bare LF", GET, b"HTTP/1.1 200 OK\nA: b\r\n\r\n", &["BareLineFeed"]),
    ("bare CR", GET, b"HTTP/1.1 200 OK\rA: b\r\n\r\n", &["BareCarriageReturn"]),
    ("folded before the first header", GET, b"HTTP/1.1 200 OK\r\n A: b\r\n\r\n", &["FoldedHeader"]),
    ("folded within a name", GET, b"HTTP/1.1 200 OK\r\nA\r\n : b\r\n\r\n", &["SpaceBeforeColon"]),
    ("folded within a length", GET, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\n", &["BadContentLength"]),
    ("folded trailer of a response", GET, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n",
        &["HTTP/1.1 200 \"OK\" Chunked keep Transfer-Encoding=chunked", "FoldedHeader"]),
    ("space before the colon", GET, b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", &["SpaceBeforeColon"]),
    ("lengths differ", GET, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", &["ConflictingContentLength"]),
    ("length is negative", GET, b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", &["BadContentLength"]),
    ("length over the limit", GET, b"HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n", &["Limit { limit: Body, max: 64 }"]),
    ("another coding", GET, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", &["UnsupportedTransferEncoding"]),
    ("chunked is not last", GET, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", &["BadTransferEncoding"]),
    ("head without end", GET, b"HTTP/1.1 200 OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO",
        &["Limit { limit: Head, max: 192 }"]),
    ("7 headers", GET, b"HTTP/1.1 200 OK\r\na:\r\nb:\r\nc:\r\nd:\r\ne:\r\nf:\r\ng:\r\n\r\n", &["Limit { limit: Headers, max: 6 }"]),
    ("cut in a head", GET, b"HTTP/1.1 200 OK\r\n", &["TruncatedHead"]),
    ("cut in a body", GET, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx",
        &["HTTP/1.1 200 \"OK\" Length(2) keep Content-Length=2", "data x", "TruncatedBody"]),
    ("cut in chunked coding", GET, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
        &["HTTP/1.1 200 \"OK\" Chunked keep Transfer-Encoding=chunked", "data x", "TruncatedBody"]),
];

/// A reader over some bytes cut at some places, as `lines` of each row.
pub type Read = Box<dyn Fn(&[u8], &[usize]) -> Vec<String>>;

/// Every row above: name, input, lines, and how to read it.
pub fn all() -> Vec<(&'static str, Vec<u8>, Vec<&'static str>, Read)> {
    use prony_wire::{Limits, fuzz};
    let requests = |limits: Limits| -> Read {
        Box::new(move |input, cuts| {
            let lines = fuzz::requests(limits, input, cuts);
            assert_eq!(
                fuzz::whole_requests(limits, input, cuts),
                lines,
                "taken whole"
            );
            lines
        })
    };
    let mut rows = Vec::new();
    for &(name, input, lines) in REQUESTS.iter().chain(REFUSED) {
        rows.push((
            name,
            input.to_vec(),
            lines.to_vec(),
            requests(Limits::for_requests()),
        ));
    }
    for &(name, input, lines) in LIMITED {
        rows.push((name, input.to_vec(), lines.to_vec(), requests(fuzz::SMALL)));
    }
    for &(name, body, lines) in CHUNKED {
        let head = "POST / HTTP/1.1 Chunked keep Host=a Transfer-Encoding=chunked";
        let lines = [&[head], lines].concat();
        let input = [fuzz::CHUNKED_REQUEST, body].concat();
        rows.push((name, input, lines, requests(Limits::for_requests())));
    }
    for &(name, methods, input, lines) in RESPONSES {
        let read: Read =
            Box::new(move |input, cuts| fuzz::responses(fuzz::SMALL, methods, input, cuts));
        rows.push((name, input.to_vec(), lines.to_vec(), read));
    }
    rows
}
