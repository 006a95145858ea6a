//! What may follow an exchange: a redirect, a retry; and what goes before: cookies and the
//! codings to ask for. Not for: the rules of each, which are values in their own modules.
//!
//! A request that needs none of it passes through [`send`] with a look at its status.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use prony_base::{Nanos, Random};
use url::Url;

use super::Client;
use super::connect::Span;
use super::error::{Error, Kind, Phase};
use super::redirect::{Again, Answer, Chain, Hop, RedirectPolicy};
use super::request::Request;
use super::response::{add, discard};
use super::retry::{Attempt, Decision, Outcome, RetryPolicy, is_busy};
use super::send::{Answered, exchange};

/// What decides how long retries wait.
pub(super) fn random(seed: Option<u64>) -> Random {
    Random::new(seed.unwrap_or_else(|| RandomState::new().hash_one("retries")))
}

/// Sends `request`, follows redirects and retries, and gives the last answer's head.
#[inline]
pub(super) async fn send(
    client: &Client,
    request: &mut Request,
    span: Span,
    whole: Nanos,
) -> Result<Answered, Error> {
    prepare(client, request);
    let first = exchange(client, request, span, whole).await;
    let is_final = match &first {
        Ok(answered) => {
            let status = answered.status;
            let leads_on = matches!(status, 301..=303 | 307 | 308);
            !(leads_on || client.has_cookies() || (is_busy(status) && retries(client, request) > 0))
        }
        Err(_) => retries(client, request) == 0,
    };
    match is_final {
        true => first,
        false => Box::pin(go_on(client, request, span, whole, first)).await,
    }
}

/// Further exchanges until one is final.
#[cold]
async fn go_on(
    client: &Client,
    request: &mut Request,
    span: Span,
    whole: Nanos,
    first: Result<Answered, Error>,
) -> Result<Answered, Error> {
    let mut chain = Chain::new(&request.target.url, request.method, cookie_changes(client));
    let (mut last, mut retries) = (first, 0);
    loop {
        if let Ok(answered) = &last {
            client.keep_cookies(&request.target.url, answered);
        }
        let wait = wait_before_retry(client, request, &mut last, retries);
        let wait = wait.filter(|&wait| client.handle().now() + wait < span.due);
        if let Some(wait) = wait {
            retries += 1;
            add(&client.counters().retried);
            if let Ok(answered) = last {
                discard(client, answered).await;
            }
            client.handle().sleep(wait).await;
        } else {
            let mut answered = last?;
            let Some(hop) = next_hop(client, request, &mut chain, &mut answered)? else {
                return Ok(answered);
            };
            discard(client, answered).await;
            retries = 0;
            turn_to(client, request, hop)?;
        }
        prepare(client, request);
        last = exchange(client, request, span, whole).await;
    }
}

fn policy(client: &Client, request: &Request) -> RetryPolicy {
    let own = request.options.as_ref().and_then(|options| options.retries);
    own.unwrap_or(client.settings().retries)
}

fn retries(client: &Client, request: &Request) -> u32 {
    policy(client, request).retries_max
}

fn cookie_changes(client: &Client) -> u64 {
    let jar = client.0.cookies.borrow();
    jar.as_ref().map_or(0, |jar| jar.changes())
}

/// How long to wait before the request is made again; None where it is not.
fn wait_before_retry(
    client: &Client,
    request: &mut Request,
    last: &mut Result<Answered, Error>,
    retries: u32,
) -> Option<Nanos> {
    let policy = policy(client, request);
    if retries >= policy.retries_max {
        return None;
    }
    let outcome = match last {
        Ok(answered) if is_busy(answered.status) => {
            answered.source.take_body(&mut request.body);
            Outcome::Status {
                status: answered.status,
                retry_after: answered.headers.get("retry-after"),
            }
        }
        Ok(_) => return None,
        Err(error) => outcome_of(error),
    };
    let attempt = Attempt {
        method: request.method,
        retries,
        body_is_there: request.body.rewind(),
    };
    let unix_seconds = client.unix_seconds();
    let mut random = client.0.random.borrow_mut();
    match policy.decide(&attempt, &outcome, unix_seconds, &mut random) {
        Decision::RetryAfter(wait) => Some(wait),
        Decision::GiveUp => None,
    }
}

fn outcome_of(error: &Error) -> Outcome<'static> {
    use super::error::TimeLimit::{FirstByte, Whole};
    match (error.phase(), error.kind()) {
        (_, Kind::TimedOut(Whole, _)) => Outcome::Final,
        (Phase::Resolve | Phase::Connect, _) => Outcome::NotConnected,
        (
            Phase::Send | Phase::Wait,
            Kind::Closed | Kind::Reset(_) | Kind::Io(_) | Kind::TimedOut(FirstByte, _),
        ) => Outcome::NoAnswer { was_sent: true },
        _ => Outcome::Final,
    }
}

/// Where the answer leads; None where it is the last.
fn next_hop(
    client: &Client,
    request: &mut Request,
    chain: &mut Chain,
    answered: &mut Answered,
) -> Result<Option<Hop>, Error> {
    let own = request
        .options
        .as_ref()
        .and_then(|options| options.redirects);
    let policy = own.unwrap_or(client.settings().redirects);
    if policy == RedirectPolicy::None {
        return Ok(None);
    }
    let is_temporary = matches!(answered.status, 301 | 302 | 307 | 308);
    if is_temporary {
        answered.source.take_body(&mut request.body);
    }
    let body = match !is_temporary || request.body.rewind() {
        true => Again::Possible,
        false => Again::Gone,
    };
    let answer = Answer {
        status: answered.status,
        location: answered.headers.get("location"),
        method: request.method,
        body,
        cookies: cookie_changes(client),
    };
    let next = chain.next(policy, &request.target.url, &answer);
    next.map_err(|error| {
        let error = Error::new(Phase::Redirect, Kind::Redirect(error));
        error.address(answered.peer)
    })
}

/// Makes the request of a hop out of the one before.
fn turn_to(client: &Client, request: &mut Request, hop: Hop) -> Result<(), Error> {
    add(&client.counters().redirected);
    if hop.keeps_credentials
        && !request.has("authorization")
        && let Some(value) = &request.target.authorization
    {
        let line = ("authorization".to_owned(), value.clone().into_bytes());
        request.headers.push(line);
    }
    request.headers.retain(|(name, _)| hop.keeps(name));
    if !hop.keeps_body {
        request.body = super::Body::Empty;
    }
    request.method = hop.method;
    let before = std::mem::replace(&mut request.target, client.target(hop.url.as_str())?);
    if request.target.authorization.is_some() {
        // The Location's own user and password are for where it leads; what was for the
        // place before is not.
        let is_old = |name: &str| name.eq_ignore_ascii_case("authorization");
        request.headers.retain(|(name, _)| !is_old(name));
    }
    // What a URL's user and password became is not in the URL any more.
    if let Some(value) = &before.authorization
        && hop.keeps_credentials
        && request.target.authorization.is_none()
        && !request.has("authorization")
    {
        let line = ("authorization".to_owned(), value.clone().into_bytes());
        request.headers.push(line);
    }
    Ok(())
}

/// Adds the header lines that the client has of its own for the next exchange.
#[inline]
fn prepare(client: &Client, request: &mut Request) {
    let own = request
        .options
        .as_ref()
        .and_then(|options| options.decode.as_ref());
    if own.is_some() || client.has_cookies() || !client.settings().decode.codings.is_empty() {
        add_lines(client, request);
    }
}

#[cold]
fn add_lines(client: &Client, request: &mut Request) {
    request.own_headers.clear();
    let asked = client.decode_settings(request);
    if let Some(value) = asked.and_then(|decode| decode.accept_encoding()) {
        request.own_headers.push(("accept-encoding", value));
    }
    if request.has("cookie") {
        return;
    }
    let seconds = client.unix_seconds();
    let mut jar = client.0.cookies.borrow_mut();
    let line = jar
        .as_mut()
        .and_then(|jar| jar.header(&request.target.url, seconds));
    if let Some(line) = line {
        request.own_headers.push(("cookie", line));
    }
}

impl Client {
    #[inline]
    fn has_cookies(&self) -> bool {
        self.settings().cookies.is_some()
    }

    fn unix_seconds(&self) -> u64 {
        (self.settings().unix_nanos)() / 1_000_000_000
    }

    /// The codings that a request asks for; None where the caller asks by himself, or for
    /// a part, of which no decoder could begin in the middle.
    pub(super) fn decode_settings<'a>(
        &'a self,
        request: &'a Request,
    ) -> Option<&'a super::decode::DecodeSettings> {
        let own = request
            .options
            .as_ref()
            .and_then(|options| options.decode.as_ref());
        let decode = own.unwrap_or(&self.settings().decode);
        let is_asked =
            !decode.codings.is_empty() && !request.has("accept-encoding") && !request.has("range");
        is_asked.then_some(decode)
    }

    fn keep_cookies(&self, url: &Url, answered: &Answered) {
        let mut jar = self.0.cookies.borrow_mut();
        let Some(jar) = jar.as_mut() else {
            return;
        };
        let seconds = self.unix_seconds();
        for line in answered.headers.as_headers().get_all("set-cookie") {
            jar.store(url, line, seconds);
        }
    }
}
