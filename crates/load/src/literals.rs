//! Fields of a request by HPACK (RFC 7541) that enter no table. No I/O.

use prony_wire::http2::{put_integer, put_string};

/// Place of `:authority` in the static table.
pub const AUTHORITY: u64 = 1;
/// Place of `:method`.
pub const METHOD: u64 = 2;
/// Place of `:path`.
pub const PATH: u64 = 4;
/// Fields that are HTTP/1.1's own, or have a name of their own here.
pub const LEFT_OUT: [&str; 7] = [
    "host",
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
    "te",
];

/// A literal that enters no table, with a name of the static one.
pub fn indexed_name(out: &mut Vec<u8>, name: u64, value: &[u8]) {
    put_integer(out, 0, 4, name);
    put_string(out, value);
}
