//! How much of everything a reader takes before it refuses.

/// The most header lines that any configuration can allow in a request or a trailer section,
/// because the parser's table of headers is on the stack. A response with more has its table
/// on the heap.
pub const HEADERS_CAP: usize = 128;

/// The limits of one reader. Reaching one is [`crate::Error::Limit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a head, from its first line to its empty line.
    pub head_bytes_max: usize,
    /// Header lines of a head or trailer section; but in a response's head, at most
    /// [`HEADERS_CAP`].
    pub headers_max: usize,
    /// Bytes of a request target.
    pub target_bytes_max: usize,
    /// Bytes of a body after chunked coding is taken off; `u64::MAX`: any.
    pub body_bytes_max: u64,
    /// Bytes of a chunk-size line with its extensions, without CRLF.
    pub chunk_line_bytes_max: usize,
    /// Bytes of a trailer section, with its empty line.
    pub trailer_bytes_max: usize,
    /// Interim responses (1xx) before one final response.
    pub interim_responses_max: u32,
    /// Empty lines forgiven before a request line.
    pub empty_lines_max: u32,
    /// Requests that may be outstanding on a response reader.
    pub outstanding_max: usize,
}

impl Limits {
    /// What a server allows by default: heads of 16 KiB, bodies of 16 MiB.
    pub const fn for_requests() -> Limits {
        Limits {
            head_bytes_max: 16 * 1024,
            headers_max: 100,
            target_bytes_max: 8 * 1024,
            body_bytes_max: 16 * 1024 * 1024,
            chunk_line_bytes_max: 256,
            trailer_bytes_max: 4 * 1024,
            interim_responses_max: 16,
            empty_lines_max: 4,
            outstanding_max: 1024,
        }
    }

    /// What a client allows by default: heads of 300 KiB and 5,000 lines, as curl does; 1,000
    /// interim responses; and bodies of any length, because readers hand bodies through and
    /// keep nothing of them. A head that is longer than what was received at once is kept
    /// only until it is read.
    pub const fn for_responses() -> Limits {
        Limits {
            head_bytes_max: 300 * 1024,
            headers_max: 5_000,
            interim_responses_max: 1_000,
            body_bytes_max: u64::MAX,
            ..Limits::for_requests()
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::for_requests()
    }
}
