//! Threads that run the application, while the loop does the input and output.
//!
//! A request goes to the threads as a [`Job`]; its answer comes back through a mailbox as
//! [`Message`]s. A thread gives a block only when the one before is in the kernel's hands:
//! what a slow client holds in memory is one block.

use std::io::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crossbeam_channel as channel;
use prony_engine::mailbox;
use prony_http::{BodyWriter, Method, OwnedHeaders, Response, Version};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::answer::{apologize, complain, send, surplus_of};
use crate::body::{Block, Body};
use crate::environ::WsgiRequest;
use crate::failure::Failure;
use crate::file::FilePart;
use crate::head::Head;
use crate::outlet::{Message, Outlet, Sent, carried};
use crate::run::Run;
use crate::site::{Begun, Site};

/// A thread waits for the answer to each message but the first and the last.
const MESSAGES_MAX: usize = 4;
/// The time that all threads together may take to notice that the loop has ended. Their requests are
/// over by then, so that one that does not is stuck.
const PATIENCE: Duration = Duration::from_secs(1);

/// The threads.
pub(crate) struct Pool {
    /// None once they are to end.
    jobs: Option<channel::Sender<Job>>,
    threads: Vec<Py<PyAny>>,
}

/// A request, and where its answer goes.
struct Job {
    method: Method,
    path: String,
    query: String,
    version: Version,
    headers: OwnedHeaders,
    body: Vec<u8>,
    peer: Option<SocketAddr>,
    outlet: Outlet,
}

impl Pool {
    /// Starts a thread for each of `sites`.
    pub(crate) fn start(py: Python<'_>, sites: Vec<Site>) -> PyResult<Pool> {
        let (sender, receiver) = channel::unbounded();
        let class = py.import("threading")?.getattr("Thread")?;
        let mut threads = Vec::new();
        for (number, site) in sites.into_iter().enumerate() {
            let receiver = receiver.clone();
            let site = Mutex::new(Some(site));
            let work = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
                let site = site.lock().ok().and_then(|mut site| site.take());
                if let Some(site) = site {
                    serve(arguments.py(), &site, &receiver);
                }
            };
            let settings = PyDict::new(py);
            settings.set_item("target", PyCFunction::new_closure(py, None, None, work)?)?;
            settings.set_item("name", format!("prony-wsgi-{number}"))?;
            settings.set_item("daemon", true)?;
            let thread = class.call((), Some(&settings))?;
            thread.call_method0("start")?;
            threads.push(thread.unbind());
        }
        Ok(Pool {
            jobs: Some(sender),
            threads,
        })
    }

    /// Has a request answered by one of the threads.
    pub(crate) async fn answer(
        &self,
        parts: &WsgiRequest<'_>,
        response: &mut Response,
        development: bool,
    ) {
        let (sender, mut receiver) = mailbox(MESSAGES_MAX);
        let job = Job::new(parts, Outlet::new(sender));
        let taken = self
            .jobs
            .as_ref()
            .is_some_and(|jobs| jobs.send(job).is_ok());
        if !taken {
            return;
        }
        let (head, length) = match receiver.recv().await {
            Some(Message::Whole(head, body)) => return send(response, &head, &body),
            Some(Message::WholeFile(head, part)) => {
                if let Sent::Wrong(why) = file(response, &head, part).await {
                    say(parts, &why);
                }
                return;
            }
            Some(Message::Failed(failure)) => return apologize(response, &failure, development),
            Some(Message::Head(head, length)) => (head, length),
            _ => return,
        };
        let headers = head.headers.as_headers();
        let mut writer = response.stream(head.status_line(), &headers, length);
        while let Some(message) = receiver.recv().await {
            let (sent, reply) = match message {
                Message::Data(block, reply) => (data(&mut writer, block).await, reply),
                Message::End(reply) => {
                    let sent = Sent::from_result(writer.finish().await);
                    let _ = response.flush().await;
                    let _ = reply.send(sent);
                    return;
                }
                _ => return,
            };
            let goes_on = matches!(sent, Sent::Well | Sent::Unwanted);
            let _ = reply.send(sent);
            if !goes_on {
                return;
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.jobs = None;
        Python::attach(|py| {
            let due = Instant::now() + PATIENCE;
            for thread in &self.threads {
                let left = due.saturating_duration_since(Instant::now());
                // What is stuck is a daemon, which does not hold up the end.
                let _ = thread.call_method1(py, "join", (left.as_secs_f64(),));
            }
        });
    }
}

async fn data(writer: &mut BodyWriter<'_>, block: Block) -> Sent {
    if !writer.is_wanted() {
        return Sent::Unwanted;
    }
    match writer.write(block.as_bytes()).await {
        Ok(()) => Sent::from_result(writer.flush().await),
        failed => Sent::from_result(failed),
    }
}

async fn file(response: &mut Response, head: &Head, part: FilePart) -> Sent {
    let headers = head.headers.as_headers();
    let mut writer = response.stream(head.status_line(), &headers, Some(part.length));
    if writer.is_wanted() {
        let file = Rc::new(part.file);
        let sent = writer.write_file(&file, part.offset, part.length).await;
        if sent.is_err() {
            return Sent::from_result(sent);
        }
    }
    Sent::from_result(writer.finish().await)
}

/// Tells of what went wrong without waiting for the interpreter.
#[cold]
fn say(parts: &WsgiRequest<'_>, why: &str) {
    let text = format!("prony-wsgi: {} failed\n{why}\n", parts.name());
    // Where stderr is closed, there is nobody to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

impl Job {
    fn new(parts: &WsgiRequest<'_>, outlet: Outlet) -> Job {
        let mut headers = OwnedHeaders::default();
        headers.copy_from(&parts.headers);
        Job {
            method: parts.method,
            path: parts.path.to_owned(),
            query: parts.query.to_owned(),
            version: parts.version,
            headers,
            body: parts.body.to_vec(),
            peer: parts.peer,
            outlet,
        }
    }

    fn parts(&self) -> WsgiRequest<'_> {
        WsgiRequest {
            method: self.method,
            path: &self.path,
            query: &self.query,
            version: self.version,
            headers: self.headers.as_headers(),
            body: &self.body,
            peer: self.peer,
        }
    }
}

/// One thread's work.
fn serve(py: Python<'_>, site: &Site, jobs: &channel::Receiver<Job>) {
    while let Ok(job) = py.detach(|| jobs.recv()) {
        // Its client, or the time for it, is gone.
        if job.outlet.is_closed() {
            continue;
        }
        let parts = job.parts();
        if let Err(error) = perform(py, site, &parts, &job.outlet) {
            let failure = Failure::tell(py, &error, &parts.name());
            failure.heed();
            // A client that is gone needs no apology.
            let _ = job.outlet.put(Message::Failed(failure));
        }
    }
}

/// Has the application answer one request.
fn perform(py: Python<'_>, site: &Site, parts: &WsgiRequest<'_>, outlet: &Outlet) -> PyResult<()> {
    let (mut run, begun) = site.begin(py, parts, Some(outlet.clone()))?;
    let end = match begun {
        Begun::Whole {
            head,
            body,
            has_rest,
        } => {
            // A client that is gone does not keep the application from its end.
            let _ = outlet.put(Message::Whole(head, body.into_vec()));
            if has_rest && !parts.is_head() {
                match run.exhaust(py)? {
                    0 => {}
                    surplus => complain(py, parts, &surplus_of(surplus)),
                }
            }
            Sent::Well
        }
        Begun::File { head, part } => {
            outlet.put(Message::WholeFile(head, part))?;
            Sent::Well
        }
        Begun::Blocks {
            head,
            length,
            first,
        } => {
            if let Some(head) = head {
                outlet.head(head, length)?;
            }
            pour(py, &mut run, first, outlet)?
        }
    };
    if let Sent::Wrong(why) = end {
        complain(py, parts, &why);
    }
    run.end(py);
    Ok(())
}

/// Gives an answer block by block.
fn pour(py: Python<'_>, run: &mut Run<'_>, first: Body<'_>, outlet: &Outlet) -> PyResult<Sent> {
    let mut next = Some(first);
    while let Some(body) = next {
        if !body.as_bytes().is_empty() {
            match outlet.put_and_wait(py, |reply| Message::Data(carried(body), reply))? {
                Sent::Well => {}
                Sent::Unwanted => break,
                other => return Ok(other),
            }
        }
        next = run.next(py)?;
    }
    outlet.put_and_wait(py, Message::End)
}
