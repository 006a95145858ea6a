//! What a file of requests holds, and what is wrong with one.

use std::io;

/// Most bytes of a file but an access log, which is read line by line.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// A request as a file has it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ListedRequest {
    /// Where it begins: a line, from 1; of HAR the number of its entry.
    pub line: u64,
    /// Its method; empty: GET, or POST with a body.
    pub method: String,
    /// A URL, or a path with its query.
    pub url: String,
    /// Its headers in order.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: ListedBody,
    /// How often it is drawn beside the others, where it says so.
    pub weight: Option<u32>,
}

/// The body of a request in a file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum ListedBody {
    /// None.
    #[default]
    Empty,
    /// These bytes.
    Bytes(Vec<u8>),
    /// What another file holds, whose path counts from the file that names it.
    File(String),
}

/// What a file holds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RequestList {
    /// The requests; of an access log those that differ.
    pub requests: Vec<ListedRequest>,
    /// Of an access log: the place in `requests` of each line.
    pub sequence: Vec<u32>,
    /// Of an access log: when each was made, from the first on, in nanoseconds. Never falling.
    pub times_ns: Vec<u64>,
    /// Of an access log: lines that are no requests, and the first of them.
    pub left_out: Option<(u64, u64)>,
    /// Of an access log: requests other than GET and HEAD, whose bodies it does not have.
    pub without_body: u64,
}

/// What is wrong with a file of requests.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// It cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// It is in no format that is known.
    #[error(
        "the format is not recognised; say which it is with --format: urls, json-lines, vegeta, curl, har or access-log"
    )]
    Unknown,
    /// It has no request.
    #[error("there is no request in it")]
    Empty,
    /// It is larger than a file may be.
    #[error("it has more than {} MiB, and only an access log may", FILE_BYTES_MAX >> 20)]
    TooLarge,
    /// Something in it is wrong.
    #[error("{why}")]
    Line {
        /// Where, from 1.
        line: u64,
        /// What.
        why: String,
    },
}

impl ListError {
    /// The line, where it is one that is wrong.
    pub fn line(&self) -> Option<u64> {
        match self {
            ListError::Line { line, .. } => Some(*line),
            _ => None,
        }
    }
}

/// The error that something on this line is wrong.
///
/// # Errors
/// Always.
pub fn wrong<T>(line: u64, why: impl Into<String>) -> Result<T, ListError> {
    Err(ListError::Line {
        line,
        why: why.into(),
    })
}
