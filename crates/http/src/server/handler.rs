//! What answers requests.

use std::future::Future;

use crate::request::Request;
use crate::response::Response;

/// Answers requests. One handler serves all connections of a loop; the requests of one
/// connection are answered in order.
pub trait Handler {
    /// Answers `request` through `response`. A handler that awaits nothing costs no more than a
    /// plain call.
    fn handle(&self, request: &Request<'_>, response: &mut Response) -> impl Future<Output = ()>;
}
