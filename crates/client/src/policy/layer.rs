//! The interface of what surrounds an exchange.

use prony_base::Nanos;

use crate::answer::Answered;
use crate::error::Error;
use crate::request::ClientRequest;
use crate::state::ClientState;

/// The next step after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing of this layer: the next one decides, and after the last the exchange is final.
    Pass,
    /// The same request again, after this time.
    Retry(Nanos),
    /// The request, which now has the target of a redirect.
    Redirect,
}

/// A rule that surrounds the exchanges of one request.
pub(super) trait Layer {
    /// Adds header lines for the next exchange.
    fn prepare(&self, client: &ClientState, request: &mut ClientRequest) {
        let _ = (client, request);
    }

    /// Looks at the last exchange, and decides what follows.
    ///
    /// # Errors
    /// The error that ends the request, in place of the result of the last exchange.
    fn after(
        &mut self,
        client: &ClientState,
        request: &mut ClientRequest,
        last: &mut Result<Answered, Error>,
    ) -> Result<Step, Error> {
        let _ = (client, request, last);
        Ok(Step::Pass)
    }

    /// Notes that a redirect is followed: what is counted for each target begins anew.
    fn redirected(&mut self) {}
}
