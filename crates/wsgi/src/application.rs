//! The application as a handler of requests.

use std::rc::Rc;

use prony_hosting::{LoadError, Post};
use prony_http::{Handler, Request, Response};
use pyo3::prelude::*;

use crate::answer::{apologize, complain, send, surplus_of};
use crate::body::Block;
use crate::environ::WsgiRequest;
use crate::failure::{Failure, traceback};
use crate::file::FilePart;
use crate::head::Head;
use crate::pool::Pool;
use crate::python_settings::PythonSettings;
use crate::run::Run;
use crate::site::{Begun, Site};

/// An application, loaded.
pub(crate) struct Application {
    way: Way,
    development: bool,
}

/// Which threads run it.
enum Way {
    /// The loop's own.
    Here(Box<Site>),
    Pool(Pool),
}

/// Loads `module:app`.
///
/// # Errors
/// The module is not found or fails, or has no such callable; with file and line.
pub(crate) fn load(post: &Post) -> Result<Application, LoadError> {
    let settings = &post.settings;
    let python: PythonSettings = serde_json::from_value(settings.own.clone())
        .map_err(|error| LoadError(format!("settings of another version: {error}")))?;
    Python::attach(|py| {
        let loaded = || -> PyResult<Way> {
            let loading = py.import("prony_wsgi.loading")?;
            let path: Vec<_> = settings.path.iter().collect();
            let found = loading.call_method1("load", (settings.application.as_str(), path))?;
            let site = || Site::new(py, found.clone().unbind(), settings, &python);
            match python.threads {
                1 => Ok(Way::Here(Box::new(site()?))),
                threads => {
                    let sites: PyResult<Vec<Site>> = (0..threads).map(|_| site()).collect();
                    Ok(Way::Pool(Pool::start(py, sites?)?))
                }
            }
        };
        match loaded() {
            Ok(way) => Ok(Application {
                way,
                development: settings.development,
            }),
            Err(error) => Err(LoadError(explained(py, &error))),
        }
    })
}

/// The message about an application that cannot be loaded.
fn explained(py: Python<'_>, error: &PyErr) -> String {
    let kind = error.get_type(py);
    let is_ours = kind.name().is_ok_and(|name| name == "LoadError");
    match is_ours {
        true => error.value(py).to_string(),
        false => traceback(py, error),
    }
}

impl Handler for Application {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        let peer = response.peer_addr();
        let parts = WsgiRequest::new(request, peer);
        match &self.way {
            Way::Here(site) => self.run_here(site, &parts, response).await,
            Way::Pool(pool) => pool.answer(&parts, response, self.development).await,
        }
    }
}

/// The next step after the first part, which needs no waiting.
enum Next<'s> {
    Nothing,
    /// All is sent; then the iterable has its end.
    Rest(Run<'s>),
    Blocks(Run<'s>, Head, Option<u64>, Block),
    File(Run<'s>, Head, FilePart),
}

impl Application {
    /// Runs the application on this thread.
    async fn run_here(&self, site: &Site, parts: &WsgiRequest<'_>, response: &mut Response) {
        let next = Python::attach(|py| match site.begin(py, parts, None) {
            Ok((run, begun)) => first(py, run, begun, response),
            Err(error) => {
                let failure = Failure::tell(py, &error, &parts.name());
                apologize(response, &failure, self.development);
                failure.heed();
                Next::Nothing
            }
        });
        match next {
            Next::Nothing => {}
            Next::Rest(run) => finish(run, parts, response).await,
            Next::Blocks(mut run, head, length, block) => {
                pour(&mut run, head, length, block, parts, response).await;
                // Its end may take a while, and the client has no part in it.
                let _ = response.flush().await;
                Python::attach(|py| run.end(py));
            }
            Next::File(run, head, part) => {
                send_file(response, &head, part, parts).await;
                let _ = response.flush().await;
                Python::attach(|py| run.end(py));
            }
        }
    }
}

/// Answers as far as it can be done without waiting.
fn first<'s>(py: Python<'_>, run: Run<'s>, begun: Begun<'_>, response: &mut Response) -> Next<'s> {
    match begun {
        Begun::Whole {
            head,
            body,
            has_rest,
        } => {
            send(response, &head, body.as_bytes());
            run.give_back(head);
            if has_rest {
                return Next::Rest(run);
            }
            run.end(py);
            Next::Nothing
        }
        Begun::Blocks {
            head: Some(head),
            length,
            first,
        } => Next::Blocks(run, head, length, Block::from_body(first)),
        // Only `write` of a thread that is not the loop's sends a head.
        Begun::Blocks { head: None, .. } => Next::Nothing,
        Begun::File { head, part } => Next::File(run, head, part),
    }
}

/// Lets the iterable of an answer that is sent come to its end.
async fn finish(mut run: Run<'_>, parts: &WsgiRequest<'_>, response: &mut Response) {
    let _ = response.flush().await;
    Python::attach(|py| {
        let rest = match parts.is_head() {
            true => Ok(0),
            false => run.exhaust(py),
        };
        match rest {
            Ok(0) => {}
            Ok(surplus) => complain(py, parts, &surplus_of(surplus)),
            Err(error) => Failure::tell(py, &error, &parts.name()).heed(),
        }
        run.end(py);
    });
}

/// Sends an answer block by block.
async fn pour(
    run: &mut Run<'_>,
    head: Head,
    length: Option<u64>,
    mut block: Block,
    parts: &WsgiRequest<'_>,
    response: &mut Response,
) {
    let headers = head.headers.as_headers();
    let mut writer = response.stream(head.status_line(), &headers, length);
    if !writer.is_wanted() {
        let _ = writer.finish().await;
        return;
    }
    loop {
        let sent = match writer.write(block.as_bytes()).await {
            Ok(()) => writer.flush().await,
            failed => failed,
        };
        if let Err(error) = sent {
            if error.kind() == std::io::ErrorKind::InvalidInput {
                Python::attach(|py| complain(py, parts, &error.to_string()));
            }
            return;
        }
        let next = Python::attach(|py| {
            drop(block);
            match run.next(py) {
                Ok(next) => Ok(next.map(Block::from_body)),
                Err(error) => Err(Failure::tell(py, &error, &parts.name())),
            }
        });
        match next {
            Ok(Some(next)) => block = next,
            Ok(None) => {
                if let Err(error) = writer.finish().await {
                    Python::attach(|py| complain(py, parts, &error.to_string()));
                }
                return;
            }
            // Without its end, so that the client does not take it for whole.
            Err(failure) => return failure.heed(),
        }
    }
}

/// Sends a part of a file.
async fn send_file(response: &mut Response, head: &Head, part: FilePart, parts: &WsgiRequest<'_>) {
    let headers = head.headers.as_headers();
    let mut writer = response.stream(head.status_line(), &headers, Some(part.length));
    let file = Rc::new(part.file);
    let mut sent = Ok(());
    if writer.is_wanted() {
        sent = writer.write_file(&file, part.offset, part.length).await;
    }
    if sent.is_ok() {
        sent = writer.finish().await;
    }
    if let Err(error) = sent
        && error.kind() == std::io::ErrorKind::UnexpectedEof
    {
        Python::attach(|py| complain(py, parts, &error.to_string()));
    }
}
