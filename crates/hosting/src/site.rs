//! The handler of a worker: the application, with static files and the access log around it.

use std::cell::Cell;
use std::rc::Rc;

use prony_engine::Handle;
use prony_http::{Handler, Request, Response};

use crate::access::AccessLog;
use crate::bell::Bell;
use crate::ending::LoadError;
use crate::files::Files;
use crate::post::Post;

/// An application and what surrounds it: static files come before it, and the access log
/// has a line for whatever was answered.
pub(crate) struct Site<H> {
    application: H,
    files: Option<Files>,
    log: Option<(Handle, AccessLog)>,
    requests: Cell<u64>,
    /// With this many the worker is spent.
    requests_max: u64,
    spent: Rc<Bell>,
}

impl<H> Site<H> {
    /// `spent` is rung once after `requests_max` requests.
    ///
    /// # Errors
    /// Static files or the access log cannot be opened.
    pub(crate) fn new(
        application: H,
        post: &Post,
        requests_max: Option<u64>,
        spent: Rc<Bell>,
    ) -> Result<Site<H>, LoadError> {
        let files =
            match &post.settings.static_files {
                None => None,
                Some((dir, url)) => Some(Files::open(dir, url).map_err(|error| {
                    LoadError(format!("--static: `{}`: {error}", dir.display()))
                })?),
            };
        let log = match &post.settings.access_log {
            None => None,
            Some(place) => {
                let log = AccessLog::open(&post.handle, place, post.number);
                let log = log.map_err(|error| {
                    LoadError(format!("--access-log: `{}`: {error}", place.display()))
                })?;
                Some((post.handle.clone(), log))
            }
        };
        Ok(Site {
            application,
            files,
            log,
            requests: Cell::new(0),
            requests_max: requests_max.unwrap_or(u64::MAX),
            spent,
        })
    }
}

impl<H: Handler> Site<H> {
    async fn answer(&self, request: &Request<'_>, response: &mut Response) {
        match &self.files {
            Some(files) if files.serves(request.path()) => files.answer(request, response).await,
            _ => self.application.handle(request, response).await,
        }
    }
}

impl<H: Handler> Handler for Site<H> {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        match &self.log {
            None => self.answer(request, response).await,
            Some((handle, log)) => {
                let begun = handle.now();
                self.answer(request, response).await;
                log.line(request, response, handle.now().since(begun));
            }
        }
        let requests = self.requests.get() + 1;
        self.requests.set(requests);
        if requests == self.requests_max {
            self.spent.ring();
        }
    }
}
