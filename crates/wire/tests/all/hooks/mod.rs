//! What fuzz targets and the replay of their corpora call.

pub mod http1;
pub mod http2;
pub mod json;
