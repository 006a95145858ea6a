//! A request from its start to its response: counts it once, and builds the [`Response`].

use std::rc::Rc;

use super::error::Error;
use super::policy;
use super::request::ClientRequest;
use super::response::{Counted, Decoding, Response};
use super::state::ClientState;
use super::timeouts::Span;

/// Sends `request`, follows its policies, and waits for the head of the last response.
///
/// Takes its arguments by value and works on them in place: an async function stores its
/// arguments, and each one around it would store them again.
pub(super) async fn send(
    client: Rc<ClientState>,
    mut request: Result<ClientRequest, Error>,
) -> Result<Response, Error> {
    let client = &client;
    let request = match &mut request {
        Ok(request) => request,
        Err(error) => return Err(error.take()),
    };
    let mut counted = Counted::start(client);
    let started = client.handle().now();
    let options = request.options.as_deref();
    let total = options.and_then(|options| options.timeout);
    let total = total.unwrap_or(client.settings().timeout);
    let due = started + total;
    let span = Span {
        started,
        due,
        total,
    };
    let answered = policy::send(client, request, span).await;
    let answered = answered.and_then(|answered| {
        let decoding = Decoding::new(client, request, &answered)?;
        Ok((answered, decoding))
    });
    match answered {
        Ok((answered, decoding)) => Ok(Response {
            decoding,
            counted,
            peer: answered.peer,
            source: answered.source,
            status: answered.status,
            version: answered.version,
            headers: answered.headers,
            trailers: None,
            started,
            timing: answered.timing,
            received_bytes: 0,
            on_progress: request
                .options
                .take()
                .and_then(|options| options.on_progress),
            target: request.target.clone(),
        }),
        Err(error) => {
            counted.failed();
            Err(error.url(request.url()))
        }
    }
}
