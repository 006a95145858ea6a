//! The client for programs that have no loop: it runs one of its own, on one thread.
//!
//! For: the same requests, answers and errors, waited for by the calling thread; any
//! number of threads share one [`Client`]. Not for: tasks on an engine's loop, which it
//! would stop; they use [`super::Client`].
//!
//! ```no_run
//! use prony_client::blocking;
//!
//! let text = blocking::get("http://127.0.0.1:8080/hello")?.text()?;
//! println!("{text}");
//! # Ok::<(), prony_client::Error>(())
//! ```

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};

use prony_base::Nanos;
use prony_engine::{Config, Receiver, Sender, mailbox, run};
use prony_wire::{Headers, Method, OwnedHeaders};

use super::body::Pieces;
use super::cookies::CookieJar;
use super::error::{Error, Kind, RequestPhase};
use super::request::Progress;
use super::settings::{HttpVersion, Settings};
use super::timing::{Timing, Version};
use super::{Counts, RequestBuilder as Async};

/// Requests that may wait for the loop's thread to see them.
const JOBS_MAX: usize = 65_536;

/// Bytes of a body that the loop hands over at once, as far as they are there.
const PIECE_BYTES: usize = 256 << 10;

type Job = Box<dyn FnOnce(&super::Client) + Send>;

/// A client with a thread of its own. Cheap to clone; clones share it. When the last
/// clone and the last answer are gone, the thread ends.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    collected_bytes_max: u64,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("blocking::Client")
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.jobs.take());
        let this_thread = thread::current().id();
        // A callback on the loop's thread may hold the last clone; a thread cannot join itself.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != this_thread
        {
            // A panic on the loop was reported to those who waited for its answers.
            let _ = thread.join();
        }
    }
}

/// A GET by a client of its own. For more than one, make a [`Client`] and keep it.
///
/// # Errors
/// As of [`RequestBuilder::send`].
pub fn get(url: &str) -> Result<Response, Error> {
    Client::new(Settings::default())?.get(url).send()
}

impl Client {
    /// A client with these settings, its thread started.
    ///
    /// # Errors
    /// [`RequestPhase::Request`]: no thread, or no loop on it.
    pub fn new(settings: Settings) -> Result<Client, Error> {
        Client::on_thread(settings, Config::default(), || ())
    }

    /// The same, with the settings of its loop, and `start`, which is called first on the
    /// new thread: to name it, to pin it, or to count it.
    ///
    /// # Errors
    /// As of [`new`](Client::new).
    pub fn on_thread(
        settings: Settings,
        config: Config,
        start: impl FnOnce() + Send + 'static,
    ) -> Result<Client, Error> {
        let failed = |error| Error::new(RequestPhase::Request, Kind::Io(error));
        let collected_bytes_max = settings.collected_bytes_max;
        let (jobs, job) = mailbox::<Job>(JOBS_MAX);
        let (tell, hear) = mpsc::channel();
        let work = move || {
            start();
            let report = tell.clone();
            let ran = run(&config, async move |handle| {
                let client = super::Client::new(&handle, settings);
                // The calling thread waits for this.
                let _ = report.send(Ok(()));
                work_off(job, &client).await;
            });
            if let Err(error) = ran {
                let _ = tell.send(Err(io::Error::other(error.to_string())));
            }
        };
        let spawned = thread::Builder::new()
            .name("prony-client".into())
            .spawn(work);
        let inner = Inner {
            jobs: Some(jobs),
            thread: Some(spawned.map_err(failed)?),
            collected_bytes_max,
        };
        match hear.recv() {
            Ok(Ok(())) => Ok(Client(Arc::new(inner))),
            Ok(Err(error)) => Err(failed(error)),
            Err(_gone) => Err(Error::new(RequestPhase::Request, Kind::LoopGone)),
        }
    }

    /// A GET.
    pub fn get(&self, url: &str) -> RequestBuilder {
        self.request(Method::Get, url)
    }

    /// A HEAD.
    pub fn head(&self, url: &str) -> RequestBuilder {
        self.request(Method::Head, url)
    }

    /// A POST.
    pub fn post(&self, url: &str) -> RequestBuilder {
        self.request(Method::Post, url)
    }

    /// A PUT.
    pub fn put(&self, url: &str) -> RequestBuilder {
        self.request(Method::Put, url)
    }

    /// A request of any method.
    pub fn request(&self, method: Method, url: &str) -> RequestBuilder {
        let url = url.to_owned();
        RequestBuilder {
            client: self.clone(),
            make: Box::new(move |client| client.request(method, &url)),
        }
    }

    /// The counts so far.
    ///
    /// # Errors
    /// [`Kind::LoopGone`].
    pub fn counts(&self) -> Result<Counts, Error> {
        let (tell, hear) = mpsc::channel();
        self.hand_over(Box::new(move |client| {
            // The caller may be gone.
            let _ = tell.send(client.counts());
        }))?;
        hear.recv().map_err(|_gone| loop_gone())
    }

    /// A copy of the cookies that it has now, to look at or to
    /// [save](CookieJar::save); None where cookies are off.
    ///
    /// # Errors
    /// [`Kind::LoopGone`].
    pub fn cookies(&self) -> Result<Option<CookieJar>, Error> {
        let (tell, hear) = mpsc::channel();
        self.hand_over(Box::new(move |client| {
            // The caller may be gone.
            let _ = tell.send(client.cookies());
        }))?;
        hear.recv().map_err(|_gone| loop_gone())
    }

    fn hand_over(&self, job: Job) -> Result<(), Error> {
        match self.0.jobs.as_ref().map(|jobs| jobs.send(job)) {
            Some(Ok(())) => Ok(()),
            Some(Err(prony_engine::SendError::Full(_))) => {
                Err(Error::new(RequestPhase::Queue, Kind::QueueFull(JOBS_MAX)))
            }
            Some(Err(prony_engine::SendError::Closed(_))) | None => Err(loop_gone()),
        }
    }
}

fn loop_gone() -> Error {
    Error::new(RequestPhase::Request, Kind::LoopGone)
}

async fn work_off(mut jobs: Receiver<Job>, client: &super::Client) {
    while let Some(job) = jobs.recv().await {
        job(client);
    }
}

/// Puts a request together, as [`super::RequestBuilder`] does.
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder {
    client: Client,
    make: Box<dyn FnOnce(&super::Client) -> Async + Send>,
}

impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("blocking::RequestBuilder")
    }
}

impl RequestBuilder {
    /// Changes it as the builder of the loop's own client can: `change` runs on the loop's
    /// thread, when the request is sent.
    pub fn with(self, change: impl FnOnce(Async) -> Async + Send + 'static) -> Self {
        let make = self.make;
        RequestBuilder {
            client: self.client,
            make: Box::new(move |client| change(make(client))),
        }
    }

    /// Adds a header line.
    pub fn header(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let (name, value) = (name.to_owned(), value.as_ref().to_owned());
        self.with(move |request| request.header(&name, value))
    }

    /// Sets the body.
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        self.with(move |request| request.body(body))
    }

    /// Sets the body to pieces, which are requested on the loop's thread and may wait only
    /// as tasks do. `length` in bytes where it is known.
    pub fn body_stream(self, pieces: impl Pieces + Send + 'static, length: Option<u64>) -> Self {
        self.with(move |request| request.body_stream(pieces, length))
    }

    /// User and password.
    pub fn basic_auth(self, user: &str, password: &str) -> Self {
        let (user, password) = (user.to_owned(), password.to_owned());
        self.with(move |request| request.basic_auth(&user, &password))
    }

    /// A bearer token.
    pub fn bearer_auth(self, token: &str) -> Self {
        let token = token.to_owned();
        self.with(move |request| request.bearer_auth(&token))
    }

    /// How long the request may take in all.
    pub fn timeout(self, length: Nanos) -> Self {
        self.with(move |request| request.timeout(length))
    }

    /// How long the first byte of the answer may take.
    pub fn first_byte_timeout(self, length: Nanos) -> Self {
        self.with(move |request| request.first_byte_timeout(length))
    }

    /// The version of HTTP.
    pub fn version(self, version: HttpVersion) -> Self {
        self.with(move |request| request.version(version))
    }

    /// Called on the loop's thread whenever bytes of a body have moved.
    pub fn on_progress(self, tell: impl Fn(Progress) + Send + 'static) -> Self {
        self.with(move |request| request.on_progress(tell))
    }

    /// Sends it and waits for the head of the answer.
    ///
    /// # Errors
    /// As of [`super::RequestBuilder::send`], and [`Kind::LoopGone`].
    pub fn send(self) -> Result<Response, Error> {
        self.start()?.wait()
    }

    /// Sends it; its answer is waited for later. Start several to have them at once.
    ///
    /// # Errors
    /// [`Kind::LoopGone`].
    pub fn start(self) -> Result<Started, Error> {
        let (tell, hear) = mpsc::channel();
        let (want, wanted) = mailbox(1);
        let make = self.make;
        self.client.hand_over(Box::new(move |client| {
            let request = make(client);
            let task = serve(request, tell, wanted);
            client.handle().spawn(task).detach();
        }))?;
        Ok(Started {
            client: self.client,
            hear,
            want,
        })
    }
}

/// What the loop's thread reports of one request.
enum BlockingEvent {
    Head(Box<Head>),
    /// Bytes of the body.
    Piece(Vec<u8>),
    End(Timing, Option<Box<OwnedHeaders>>),
    Failed(Error),
}

struct Head {
    status: u16,
    version: Version,
    headers: OwnedHeaders,
    url: String,
    peer: SocketAddr,
    timing: Timing,
}

/// One request on the loop, for a thread that waits elsewhere: the head when it comes,
/// pieces as they are wanted. Ends when the caller is gone.
async fn serve(request: Async, tell: mpsc::Sender<BlockingEvent>, mut wanted: Receiver<()>) {
    let answer = {
        let mut sending = pin!(request.send());
        let mut left = pin!(wanted.recv());
        poll_fn(|cx| match sending.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            // Nothing is wanted before the head: the caller is gone.
            Poll::Pending => left.as_mut().poll(cx).map(|_| None),
        })
        .await
    };
    let mut response = match answer {
        None => return,
        Some(Err(error)) => {
            let _ = tell.send(BlockingEvent::Failed(error));
            return;
        }
        Some(Ok(response)) => response,
    };
    let head = Head {
        status: response.status(),
        version: response.version(),
        headers: response.headers.clone(),
        url: response.url().to_owned(),
        peer: response.remote_addr(),
        timing: response.timing(),
    };
    let _ = tell.send(BlockingEvent::Head(Box::new(head)));
    while wanted.recv().await.is_some() {
        let event = next_piece(&mut response).await;
        let is_last = !matches!(event, BlockingEvent::Piece(_));
        // Who does not listen any more wants nothing any more.
        let _ = tell.send(event);
        if is_last {
            return;
        }
    }
}

/// The available bytes of the body; it waits for at least one piece.
async fn next_piece(response: &mut super::Response) -> BlockingEvent {
    let mut piece = match response.chunk().await {
        Ok(Some(bytes)) => bytes.to_vec(),
        Ok(None) => return BlockingEvent::End(response.timing(), response.trailers.take()),
        Err(error) => return BlockingEvent::Failed(error),
    };
    let mut cx = Context::from_waker(Waker::noop());
    while piece.len() < PIECE_BYTES {
        let next = pin!(response.chunk()).poll(&mut cx);
        match next {
            Poll::Ready(Ok(Some(bytes))) => piece.extend_from_slice(bytes),
            // The end, an error, or a wait: reported when the next piece is wanted.
            _ => break,
        }
    }
    BlockingEvent::Piece(piece)
}

/// A request under way. Dropping it cancels the request.
pub struct Started {
    client: Client,
    hear: mpsc::Receiver<BlockingEvent>,
    want: Sender<()>,
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("blocking::Started")
    }
}

impl Started {
    /// Waits for the head of the answer.
    ///
    /// # Errors
    /// As of [`RequestBuilder::send`].
    pub fn wait(self) -> Result<Response, Error> {
        match self.hear.recv() {
            Ok(BlockingEvent::Head(head)) => Ok(Response {
                head,
                hear: self.hear,
                want: self.want,
                trailers: None,
                is_over: false,
                rest: Vec::new(),
                rest_from: 0,
                client: self.client,
            }),
            Ok(BlockingEvent::Failed(error)) => Err(error),
            Ok(_) | Err(_) => Err(loop_gone()),
        }
    }
}

/// An answer whose head has come. Its body is read by [`chunk`](Response::chunk),
/// [`bytes`](Response::bytes), [`text`](Response::text), or as an [`io::Read`]. Dropped
/// before its end, the request is cancelled.
pub struct Response {
    head: Box<Head>,
    hear: mpsc::Receiver<BlockingEvent>,
    want: Sender<()>,
    trailers: Option<Box<OwnedHeaders>>,
    is_over: bool,
    /// The bytes that [`io::Read`] has not returned yet, from `rest_from` on.
    rest: Vec<u8>,
    rest_from: usize,
    client: Client,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "blocking::Response({} of {})",
            self.head.status, self.head.url
        )
    }
}

impl Response {
    /// The status.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The version of HTTP that it came in.
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// The header lines.
    pub fn headers(&self) -> Headers<'_> {
        self.head.headers.as_headers()
    }

    /// The value of the first header line of this name, whatever the case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.head.headers.get(name)
    }

    /// The lines after the body, once that was read to its end and if there were any.
    pub fn trailers(&self) -> Option<Headers<'_>> {
        self.trailers.as_ref().map(|lines| lines.as_headers())
    }

    /// The URL that it came from, after redirects the last one.
    pub fn url(&self) -> &str {
        &self.head.url
    }

    /// The address that it came from.
    pub fn remote_addr(&self) -> SocketAddr {
        self.head.peer
    }

    /// When the parts of the request were over.
    pub fn timing(&self) -> Timing {
        self.head.timing
    }

    /// The next bytes of the body; None at its end.
    ///
    /// # Errors
    /// As of [`super::Response::chunk`], and [`Kind::LoopGone`].
    pub fn chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if self.is_over {
            return Ok(None);
        }
        // Full or closed: the answer to the last one says why.
        let _ = self.want.send(());
        let event = self.hear.recv();
        self.is_over = !matches!(event, Ok(BlockingEvent::Piece(_)));
        match event {
            Ok(BlockingEvent::Piece(piece)) => Ok(Some(piece)),
            Ok(BlockingEvent::End(timing, trailers)) => {
                self.head.timing = timing;
                self.trailers = trailers;
                Ok(None)
            }
            Ok(BlockingEvent::Failed(error)) => Err(error),
            Ok(BlockingEvent::Head(_)) | Err(_) => Err(loop_gone()),
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// As of [`chunk`](Response::chunk); [`Kind::BodyTooLong`] when it has more than
    /// `collected_bytes_max` bytes.
    pub fn bytes(mut self) -> Result<Vec<u8>, Error> {
        let max = self.client.0.collected_bytes_max;
        let mut out = Vec::new();
        while let Some(piece) = self.chunk()? {
            if (out.len() + piece.len()) as u64 > max {
                let error = Error::new(RequestPhase::Body, Kind::BodyTooLong(max));
                return Err(error.url(self.url()).address(self.remote_addr()));
            }
            match out.is_empty() {
                true => out = piece,
                false => out.extend_from_slice(&piece),
            }
        }
        Ok(out)
    }

    /// The whole body as text; bytes that are no UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// As of [`bytes`](Response::bytes).
    pub fn text(self) -> Result<String, Error> {
        let bytes = self.bytes()?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

impl io::Read for Response {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.rest_from == self.rest.len() {
            let next = self.chunk().map_err(io::Error::other)?;
            self.rest = next.unwrap_or_default();
            self.rest_from = 0;
        }
        let rest = &self.rest[self.rest_from..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.rest_from += count;
        Ok(count)
    }
}
