//! HTTP/1.0 and HTTP/1.1 between bytes and values; frames and fields of HTTP/2 ([`http2`]); and small JSON messages ([`json`]).
//!
//! For: turning received bytes into requests or responses ([`RequestReader`],
//! [`ResponseReader`]) and values into bytes to send ([`encode`]); and the text of a URL into its parts (`url`).
//! Not for: sockets, time-outs, clocks or storing bodies. Nothing here does
//! I/O; the time of day is an argument ([`DateCache`]).
//!
//! # How to read
//!
//! One reader per connection and direction. Feed every received chunk exactly
//! once, and pull events until there are none:
//!
//! ```
//! use prony_wire::{Limits, RequestEvent, RequestReader};
//!
//! let mut reader = RequestReader::new(Limits::for_requests());
//! let mut rest: &[u8] = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";
//! let mut seen = Vec::new();
//! loop {
//!     let (used, event) = reader.next(rest)?;
//!     rest = &rest[used..];
//!     match event {
//!         Some(RequestEvent::Head(head)) => seen.push(head.target.to_owned()),
//!         Some(RequestEvent::Data(_bytes)) => {}
//!         Some(RequestEvent::End(end)) => assert!(end.keep_alive),
//!         None => break, // all of `rest` is used: receive more
//!     }
//! }
//! assert_eq!(seen, ["/hello"]);
//! # Ok::<(), prony_wire::Error>(())
//! ```
//!
//! - `None` means "need more bytes", and then everything given was used.
//! - A message is one `Head`, any number of `Data`, one `End`.
//! - A head that arrives in one chunk is not copied and nothing is allocated;
//!   only a head (or trailer section) split over chunks goes through a carry
//!   buffer, which `head_bytes_max` (`trailer_bytes_max`) bounds.
//! - The events do not depend on how the bytes were split into chunks, and the
//!   work is linear in their number, however small the chunks.
//! - The first error is final: every later call returns it again.
//! - At the end of the stream call `end_of_input`.
//!
//! # What is refused, what is forgiven
//!
//! See [`RequestReader`] and [`ResponseReader`]. Every size has a limit in
//! [`Limits`]; reaching one is [`Error::Limit`], which names it.
//!
//! # Central types
//! - [`RequestReader`]: received bytes to the events of requests, for a server.
//! - [`ResponseReader`]: the same of responses, for a client.
//! - [`Limits`]: the largest head, body, chunk and so on that either accepts.
#![forbid(unsafe_code)]

// What `json::message!` writes names this crate as its users do.
extern crate self as prony_wire;

mod authority;
mod body;
mod date;
pub mod encode;
mod error;
mod facts;
mod gather;
mod headers;
pub mod http2;
#[cfg(feature = "json")]
pub mod json;
mod last_head;
mod limits;
mod method;
mod range;
mod request;
mod response;
mod status;
#[cfg(feature = "url")]
pub mod url;

pub use authority::HostLines;
pub use body::{End, Framing};
pub use date::DateCache;
pub use error::{Error, Limit};
pub use headers::{Header, Headers, HeadersIter, OwnedHeaders};
pub use last_head::{LastHead, SharingReader};
pub use limits::{HEADERS_CAP, Limits};
pub use method::{Method, MethodName, Version};
pub use range::Range;
pub use request::{RequestEvent, RequestHead, RequestReader, WholeRequest, check_target};
pub use response::{EndOfInput, ResponseEvent, ResponseHead, ResponseReader, WholeResponse};
pub use status::{Status, reason};
