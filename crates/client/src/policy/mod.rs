//! Layers around the exchanges of a request: content codings, a proxy's refusal, cookies, retries
//! and redirects, as layers of one interface ([`Layer`]). Not for: the rules of each, which are
//! values in modules of their own (`cookies`, `decode`, `proxy`, `redirect`, `retry`).
//!
//! A request that needs none of it passes through [`send`] with a look at its status.

mod layer;
mod layers;

use prony_base::Nanos;

use layer::{Layer, Step};
use layers::{Codings, Cookies, ProxyRefusal, Redirects, Retries, retry_policy};

use super::answer::{Answered, discard};
use super::error::Error;
use super::request::ClientRequest;
use super::retry::is_busy;
use super::send::exchange;
use super::state::{ClientState, add};
use super::timeouts::Span;

/// Sends `request`, retries it and follows redirects, and returns the last response's head.
///
/// # Errors
/// The error that ended the last exchange, or a redirect that cannot be followed.
#[inline]
pub(super) async fn send(
    client: &ClientState,
    request: &mut ClientRequest,
    span: Span,
) -> Result<Answered, Error> {
    prepare(client, request);
    let first = exchange(client, request, span).await;
    match is_final(client, request, &first) {
        true => first,
        false => Box::pin(go_on(client, request, span, first)).await,
    }
}

/// Whether no layer has anything to do after the first exchange.
#[inline]
fn is_final(
    client: &ClientState,
    request: &ClientRequest,
    first: &Result<Answered, Error>,
) -> bool {
    let retries = || retry_policy(client, request).retries_max;
    match first {
        Ok(answered) => {
            let status = answered.status;
            let has_rule = matches!(status, 301..=303 | 307 | 308 | 407);
            !(has_rule || client.has_cookies() || (is_busy(status) && retries() > 0))
        }
        Err(_) => retries() == 0,
    }
}

/// Further exchanges until one is final.
#[cold]
async fn go_on(
    client: &ClientState,
    request: &mut ClientRequest,
    span: Span,
    first: Result<Answered, Error>,
) -> Result<Answered, Error> {
    let (mut proxy, mut cookies) = (ProxyRefusal, Cookies);
    let (mut retries, mut redirects) = (Retries::default(), Redirects::new(client, request));
    let mut layers: [&mut dyn Layer; 4] = [&mut proxy, &mut cookies, &mut retries, &mut redirects];
    let mut last = first;
    loop {
        let wait = match next_step(&mut layers, client, request, span, &mut last)? {
            Step::Pass => return last,
            Step::Retry(wait) => {
                add(&client.counters().retried);
                Some(wait)
            }
            Step::Redirect => {
                add(&client.counters().redirected);
                layers.iter_mut().for_each(|layer| layer.redirected());
                None
            }
        };
        if let Ok(answered) = last {
            discard(client, answered).await;
        }
        if let Some(wait) = wait {
            client.handle().sleep(wait).await;
        }
        prepare(client, request);
        last = exchange(client, request, span).await;
    }
}

/// The step of the first layer that has one for the last exchange. A retry that would be later
/// than the request's deadline is none.
fn next_step(
    layers: &mut [&mut dyn Layer],
    client: &ClientState,
    request: &mut ClientRequest,
    span: Span,
    last: &mut Result<Answered, Error>,
) -> Result<Step, Error> {
    let in_time = |wait: Nanos| client.handle().now() + wait < span.due;
    for layer in layers {
        match layer.after(client, request, last)? {
            Step::Pass => {}
            Step::Retry(wait) if !in_time(wait) => {}
            step => return Ok(step),
        }
    }
    Ok(Step::Pass)
}

/// Adds the client's own header lines for the next exchange.
#[inline]
fn prepare(client: &ClientState, request: &mut ClientRequest) {
    let options = request.options.as_ref();
    let decode = options.and_then(|options| options.decode.as_ref());
    if decode.is_some() || client.has_cookies() || !client.settings().decode.codings.is_empty() {
        add_lines(client, request);
    }
}

#[cold]
fn add_lines(client: &ClientState, request: &mut ClientRequest) {
    request.own_headers.clear();
    Codings.prepare(client, request);
    Cookies.prepare(client, request);
}
