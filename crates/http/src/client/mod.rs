//! The HTTP client: one request or many at once, over a pool of connections.

mod body;
pub mod error;
pub mod tls;
pub mod transport;

pub use body::{Body, Pieces};
pub use error::{Error, Kind, Phase, TimeLimit};
pub use transport::{Chunk, Transport};

/// Bytes of a streamed request's body that are posted and not yet with the kernel before
/// no further piece is asked for.
pub const SENDING_BYTES_MAX: usize = 256 << 10;
