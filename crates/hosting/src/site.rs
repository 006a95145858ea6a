//! What answers a request in a worker: the application, with what surrounds it.

use std::cell::Cell;
use std::rc::Rc;

use prony_http::{Handler, Request, Response};

use crate::bell::Bell;

/// An application and what surrounds it.
pub(crate) struct Site<H> {
    application: H,
    requests: Cell<u64>,
    /// With this many the worker is spent.
    requests_max: u64,
    spent: Rc<Bell>,
}

impl<H> Site<H> {
    /// `spent` is rung once after `requests_max` requests.
    pub(crate) fn new(application: H, requests_max: Option<u64>, spent: Rc<Bell>) -> Site<H> {
        Site {
            application,
            requests: Cell::new(0),
            requests_max: requests_max.unwrap_or(u64::MAX),
            spent,
        }
    }
}

impl<H: Handler> Handler for Site<H> {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        self.application.handle(request, response).await;
        let requests = self.requests.get() + 1;
        self.requests.set(requests);
        if requests == self.requests_max {
            self.spent.ring();
        }
    }
}
