//! The layers: how the client applies the rules of codings, proxies, cookies, retries and
//! redirects to its requests.

use super::layer::{Layer, Step};
use crate::answer::Answered;
use crate::body::Body;
use crate::error::{Error, Kind, RequestPhase, TimeLimit};
use crate::redirect::{Again, Answer, Chain, Hop, RedirectPolicy};
use crate::request::ClientRequest;
use crate::retry::{Attempt, AttemptOutcome, Decision, RetryPolicy, is_busy};
use crate::state::ClientState;

/// Requests content codings.
pub(super) struct Codings;

impl Layer for Codings {
    fn prepare(&self, client: &ClientState, request: &mut ClientRequest) {
        let requested = request.decode_settings(client.settings());
        if let Some(value) = requested.and_then(|decode| decode.accept_encoding()) {
            request.own_headers.push(("accept-encoding", value));
        }
    }
}

/// Turns a proxy's own refusal, a status of 407, into an error.
pub(super) struct ProxyRefusal;

impl Layer for ProxyRefusal {
    fn after(
        &mut self,
        client: &ClientState,
        request: &mut ClientRequest,
        last: &mut Result<Answered, Error>,
    ) -> Result<Step, Error> {
        let proxies = &client.settings().proxies;
        match last {
            Ok(answered)
                if answered.status == 407
                    && proxies.forward(&request.target.host.origin).is_some() =>
            {
                let error = Error::new(RequestPhase::Proxy, Kind::ProxyCredentials);
                Err(error.address(answered.peer))
            }
            _ => Ok(Step::Pass),
        }
    }
}

/// Sends and keeps cookies.
pub(super) struct Cookies;

impl Layer for Cookies {
    fn prepare(&self, client: &ClientState, request: &mut ClientRequest) {
        if request.has("cookie") {
            return;
        }
        let seconds = client.unix_seconds();
        let mut jar = client.cookies.borrow_mut();
        let line = jar
            .as_mut()
            .and_then(|jar| jar.header(&request.target.url, seconds));
        if let Some(line) = line {
            request.own_headers.push(("cookie", line));
        }
    }

    fn after(
        &mut self,
        client: &ClientState,
        request: &mut ClientRequest,
        last: &mut Result<Answered, Error>,
    ) -> Result<Step, Error> {
        let mut jar = client.cookies.borrow_mut();
        if let (Ok(answered), Some(jar)) = (last, jar.as_mut()) {
            let seconds = client.unix_seconds();
            for line in answered.headers.as_headers().get_all("set-cookie") {
                jar.store(&request.target.url, line, seconds);
            }
        }
        Ok(Step::Pass)
    }
}

fn cookie_changes(client: &ClientState) -> u64 {
    let jar = client.cookies.borrow();
    jar.as_ref().map_or(0, |jar| jar.changes())
}

/// The request's own retry policy, or else the client's.
pub(super) fn retry_policy(client: &ClientState, request: &ClientRequest) -> RetryPolicy {
    let retries = request.options.as_ref().and_then(|options| options.retries);
    retries.unwrap_or(client.settings().retries)
}

/// Retries failures and busy servers.
#[derive(Default)]
pub(super) struct Retries {
    /// Retries so far, of the current target.
    count: u32,
}

impl Layer for Retries {
    fn after(
        &mut self,
        client: &ClientState,
        request: &mut ClientRequest,
        last: &mut Result<Answered, Error>,
    ) -> Result<Step, Error> {
        let policy = retry_policy(client, request);
        if self.count >= policy.retries_max {
            return Ok(Step::Pass);
        }
        let outcome = match last {
            Ok(answered) if is_busy(answered.status) => {
                answered.source.take_body(&mut request.body);
                AttemptOutcome::Status {
                    status: answered.status,
                    retry_after: answered.headers.get("retry-after"),
                }
            }
            Ok(_) => return Ok(Step::Pass),
            Err(error) => outcome_of(error),
        };
        let attempt = Attempt {
            method: request.method,
            retries: self.count,
            body_is_there: request.body.rewind(),
        };
        let unix_seconds = client.unix_seconds();
        let mut random = client.random.borrow_mut();
        match policy.decide(&attempt, &outcome, unix_seconds, &mut random) {
            Decision::RetryAfter(wait) => {
                self.count += 1;
                Ok(Step::Retry(wait))
            }
            Decision::GiveUp => Ok(Step::Pass),
        }
    }

    fn redirected(&mut self) {
        self.count = 0;
    }
}

fn outcome_of(error: &Error) -> AttemptOutcome<'static> {
    use TimeLimit::{FirstByte, Whole};
    match (error.phase(), error.kind()) {
        (_, Kind::TimedOut(Whole, _)) => AttemptOutcome::Final,
        (RequestPhase::Resolve | RequestPhase::Connect, _) => AttemptOutcome::NotConnected,
        (
            RequestPhase::Send | RequestPhase::Wait,
            Kind::Closed | Kind::Reset(_) | Kind::Io(_) | Kind::TimedOut(FirstByte, _),
        ) => AttemptOutcome::NoAnswer { was_sent: true },
        _ => AttemptOutcome::Final,
    }
}

/// Follows redirects.
pub(super) struct Redirects {
    chain: Chain,
}

impl Redirects {
    /// A chain of redirects that begins at the target of `request`.
    pub fn new(client: &ClientState, request: &ClientRequest) -> Redirects {
        let changes = cookie_changes(client);
        Redirects {
            chain: Chain::new(&request.target.url, request.method, changes),
        }
    }

    /// Where a response leads; None where the request ends with it.
    fn next_hop(
        &mut self,
        client: &ClientState,
        request: &mut ClientRequest,
        answered: &mut Answered,
    ) -> Result<Option<Hop>, Error> {
        let options = request.options.as_ref();
        let redirects = options.and_then(|options| options.redirects);
        let policy = redirects.unwrap_or(client.settings().redirects);
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
        let next = self.chain.next(policy, &request.target.url, &answer);
        next.map_err(|error| {
            let error = Error::new(RequestPhase::Redirect, Kind::Redirect(error));
            error.address(answered.peer)
        })
    }
}

impl Layer for Redirects {
    fn after(
        &mut self,
        client: &ClientState,
        request: &mut ClientRequest,
        last: &mut Result<Answered, Error>,
    ) -> Result<Step, Error> {
        let Ok(answered) = last else {
            return Ok(Step::Pass);
        };
        match self.next_hop(client, request, answered)? {
            Some(hop) => follow(client, request, hop).map(|()| Step::Redirect),
            None => Ok(Step::Pass),
        }
    }
}

/// Makes the request of a hop out of the one before it.
fn follow(client: &ClientState, request: &mut ClientRequest, hop: Hop) -> Result<(), Error> {
    if hop.keeps_credentials
        && !request.has("authorization")
        && let Some(value) = &request.target.authorization
    {
        let line = ("authorization".to_owned(), value.clone().into_bytes());
        request.headers.push(line);
    }
    request.headers.retain(|(name, _)| hop.keeps(name));
    if !hop.keeps_body {
        request.body = Body::Empty;
    }
    request.method = hop.method;
    let before = std::mem::replace(&mut request.target, client.target(hop.url.as_str())?);
    if request.target.authorization.is_some() {
        // User and password in the Location replace the credentials of the place before.
        let is_old = |name: &str| name.eq_ignore_ascii_case("authorization");
        request.headers.retain(|(name, _)| !is_old(name));
    }
    // A URL's user and password were moved from it into its target.
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
