//! One URL to one file: the request, the body piece by piece, further tries, and the end.
//!
//! Not for: which URLs at once (`pool`), what is shown (`show`), or what an answer means for
//! a file that is there in part (`range`).

use std::cell::{Cell, RefCell};
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;

use prony_base::{Instant, Nanos};
use prony_client::{Client, RequestBuilder, Response, Timing, Version};
use prony_engine::{Handle, mailbox};

use super::checksum::{Algorithm, Sum};
use super::fault::Fault;
use super::file::{LeftBytes, Naming, Output};
use super::name;
use super::plan::{Job, Options, To};
use super::range::{Mark, Meaning, PartHead, RangeRequest, meaning};

/// How long to wait before a retry that continues where a body broke off; it doubles.
const BACKOFF_FIRST: Nanos = Nanos::from_millis(200);
/// The longest such wait.
const BACKOFF_MAX: Nanos = Nanos::from_secs(10);
/// Bytes that are read at once of what is there, to hash them.
const READ_BYTES: usize = 256 << 10;

/// How far a download is, for the progress display.
#[derive(Default)]
pub struct Live {
    /// What it is called.
    pub name: RefCell<String>,
    /// Bytes that are there.
    pub bytes: Cell<u64>,
    /// Bytes that there will be.
    pub total: Cell<Option<u64>>,
    /// What was left for later, once it is over.
    pub left: LeftBytes,
}

/// What became of a URL.
#[derive(Default)]
pub struct DownloadReport {
    /// The URL that answered last.
    pub final_url: Option<String>,
    /// Its status.
    pub status: Option<u16>,
    /// Where the body went; None: nowhere, or to standard output.
    pub file: Option<PathBuf>,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes that an earlier run had left.
    pub resumed_from: u64,
    /// Bytes of bodies that came in this run, as they were sent: before a coding of
    /// --compressed was undone.
    pub received: u64,
    /// What the file hashes to.
    pub sum: Option<(Algorithm, String)>,
    /// Of the last exchange.
    pub timing: Option<Timing>,
    /// Of the last exchange.
    pub version: Option<Version>,
    /// Of the last exchange.
    pub address: Option<SocketAddr>,
    /// Tries after the first that went on with a body.
    pub retries: u32,
    /// From the start to the file's name.
    pub took: Nanos,
    /// What is worth knowing.
    pub notes: Vec<String>,
    /// Why it failed, if it did.
    pub fault: Option<Fault>,
}

/// What an exchange came to.
enum Step {
    /// All is there.
    Whole,
    /// A part of what is missing came.
    More,
    /// It is to be requested from its start.
    Again,
}

/// What a download has at hand.
pub struct Download {
    /// The loop.
    pub handle: Handle,
    /// The client.
    pub client: Client,
    /// What to fetch.
    pub job: Rc<Job>,
    /// What holds for all.
    pub options: Rc<Options>,
    /// How far it is.
    pub live: Rc<Live>,
}

/// A download under way.
struct Work {
    download: Download,
    started: Instant,
    output: Option<Output>,
    sum: Option<Sum>,
    report: DownloadReport,
}

impl Download {
    /// Fetches it.
    pub async fn run(self) -> DownloadReport {
        let started = self.handle.now();
        let algorithm = self.options.checksum.as_ref().map(|sum| sum.algorithm);
        let mut work = Work {
            download: self,
            started,
            output: None,
            sum: algorithm.map(Sum::new),
            report: DownloadReport::default(),
        };
        let ended = work.run().await;
        if let Err(fault) = ended {
            if let Some(output) = work.output.as_mut().filter(|_| fault.spoils_the_file()) {
                output.spoil();
            }
            work.report.fault = Some(fault);
        }
        work.report.took = work.download.handle.now().since(started);
        work.report
    }
}

impl Work {
    async fn run(&mut self) -> Result<(), Fault> {
        self.open().await?;
        let mut restarted = false;
        loop {
            let before = self.written();
            match self.exchange().await {
                Ok(Step::Whole) => break,
                Ok(Step::More) if self.written() > before => {}
                Ok(Step::Again) if !restarted => restarted = true,
                Ok(Step::More | Step::Again) => {
                    let why = "it sends no part that is missing".to_owned();
                    return Err(Fault::BadPart(why));
                }
                Err(fault) if self.may_try_again(&fault) => self.wait(&fault).await,
                Err(fault) => return Err(fault),
            }
        }
        self.check_sum()?;
        self.finish().await
    }

    fn written(&self) -> u64 {
        self.output.as_ref().map_or(0, Output::written)
    }

    /// Makes the file, before anything is sent where its name is known.
    async fn open(&mut self) -> Result<(), Fault> {
        let job = self.download.job.clone();
        match &job.to {
            To::Stdout => self.output = Some(Output::stdout()?),
            To::Device(path) => {
                self.report.file = Some(path.clone());
                self.output = Some(Output::device(path)?);
            }
            To::File(path) => self.open_part(path)?,
            To::Named { .. } => {}
        }
        let there = self.written();
        self.report.resumed_from = there;
        self.download.live.bytes.set(there);
        if there > 0 {
            self.hash_what_is_there().await?;
        } else if self.download.options.resume {
            let note = "there was nothing to resume: fetched from the start";
            self.report.notes.push(note.to_owned());
        }
        Ok(())
    }

    fn open_part(&mut self, path: &Path) -> Result<(), Fault> {
        let Download {
            options, job, live, ..
        } = &self.download;
        let how = (options.overwrite, options.resume);
        self.report.file = Some(path.to_owned());
        self.output = Some(Output::part(path, &job.shown, how, live.left.clone())?);
        Ok(())
    }

    /// The sum of a file that is gone on with begins with what is there.
    async fn hash_what_is_there(&mut self) -> Result<(), Fault> {
        let (Some(sum), Some(Output::Part(part))) = (&mut self.sum, &self.output) else {
            return Ok(());
        };
        let mut reader = part.reader()?;
        let mut some = vec![0; READ_BYTES];
        loop {
            match reader.read(&mut some) {
                Ok(0) => return Ok(()),
                Ok(count) => sum.update(&some[..count]),
                Err(error) => {
                    let path = self.report.file.clone().unwrap_or_default();
                    return Err(Fault::file("read", &path, error));
                }
            }
            // Other downloads go on meanwhile.
            self.download.handle.yield_now().await;
        }
    }

    /// One request, and its answer's body.
    async fn exchange(&mut self) -> Result<Step, Fault> {
        let mark = self.output.as_ref().and_then(Output::mark).cloned();
        let range_request = match &mark {
            Some(mark) => RangeRequest::From {
                offset: self.written(),
                total: mark.total,
            },
            None => RangeRequest::Whole,
        };
        let request = self.request(range_request, mark.as_ref());
        let mut response = request.send().await?;
        self.note_head(&response);
        let head = part_head(&response);
        let is_kept_coded = head.status == 206 && response.header("content-encoding").is_some();
        match meaning(&head, range_request) {
            Meaning::Whole => {
                let total = match self.download.options.compressed {
                    true if response.header("content-encoding").is_some() => None,
                    _ => response.content_length(),
                };
                self.begin(&response, range_request, total)?;
                self.body(&mut response).await?;
                Ok(Step::Whole)
            }
            Meaning::GoesOn { length, total } if !is_kept_coded => {
                self.download.live.total.set(total);
                self.check_length(total)?;
                let before = self.written();
                self.body(&mut response).await?;
                match self.written() - before {
                    came if came != length => Err(Fault::BadPart(format!(
                        "it announced a part of {length} bytes and sent {came}"
                    ))),
                    _ if total.is_none_or(|total| total == self.written()) => Ok(Step::Whole),
                    _ => Ok(Step::More),
                }
            }
            Meaning::GoesOn { .. } => {
                let why = "it sends a part in a coding of its own".to_owned();
                Err(Fault::BadPart(why))
            }
            Meaning::Complete => Ok(Step::Whole),
            Meaning::StartAgain(why) => {
                self.start_over(why, None)?;
                Ok(Step::Again)
            }
            Meaning::Wrong(why) => Err(Fault::BadPart(why)),
            Meaning::Refused => Err(Fault::Status(head.status)),
        }
    }

    fn request(&self, range_request: RangeRequest, mark: Option<&Mark>) -> RequestBuilder {
        let Download {
            client,
            job,
            options,
            handle,
            ..
        } = &self.download;
        let mut request = client.get(job.url.as_str());
        let is_given = |wanted: &str| {
            let mut names = options.headers.iter().map(|(name, _)| name);
            names.any(|name| name.eq_ignore_ascii_case(wanted))
        };
        let has_user = !job.url.username().is_empty()
            || job.url.password().is_some()
            || is_given("authorization");
        if let Some((user, password)) = options.user.as_ref().filter(|_| !has_user) {
            request = request.basic_auth(user, password);
        }
        for (name, value) in &options.headers {
            request = request.header(name, value);
        }
        if !options.compressed && !is_given("accept-encoding") {
            request = request.header("accept-encoding", "identity");
        }
        if let (RangeRequest::From { offset, .. }, Some(mark)) = (range_request, mark) {
            request = request
                .header("range", format!("bytes={offset}-"))
                .header("if-range", &mark.validator);
        }
        if let Some(timeout) = options.timeout {
            // Further tries have what the first ones left.
            let used = match self.report.retries {
                0 => Nanos::ZERO,
                _ => handle.now().since(self.started),
            };
            request = request.timeout(timeout - used.min(timeout));
        }
        request
    }

    fn note_head(&mut self, response: &Response) {
        self.report.final_url = Some(response.url().to_owned());
        self.report.status = Some(response.status());
        self.report.version = Some(response.version());
        self.report.address = Some(response.remote_addr());
        self.report.timing = Some(response.timing());
    }

    /// A body that is the whole file follows.
    fn begin(
        &mut self,
        response: &Response,
        range_request: RangeRequest,
        total: Option<u64>,
    ) -> Result<(), Fault> {
        if self.output.is_none() {
            let path = self.named(response)?;
            self.open_part(&path)?;
        }
        self.download.live.total.set(total);
        self.check_length(total)?;
        let mark = part_head(response).validator().map(|validator| Mark {
            url: self.download.job.shown.clone(),
            validator,
            total,
        });
        // What comes out of a coding has other places than what went in.
        let mark = mark.filter(|_| !self.download.options.compressed);
        let why = match range_request {
            RangeRequest::From { .. } => "the server has another version, or ignores ranges",
            RangeRequest::Whole => "",
        };
        self.start_over(why, mark)
    }

    /// The name of a file, as the server says it, or else the URL.
    fn named(&self, response: &Response) -> Result<PathBuf, Fault> {
        let To::Named { dir, otherwise } = &self.download.job.to else {
            return Ok(PathBuf::new());
        };
        let header = response.header("content-disposition");
        let name = header
            .and_then(name::of_header)
            .unwrap_or(otherwise.clone());
        let name = name.map_err(Fault::BadName)?;
        if let Some(checksum) = &self.download.options.checksum
            && checksum.expected(&name).is_err()
        {
            return Err(Fault::NotListed(name));
        }
        *self.download.live.name.borrow_mut() = name.clone();
        Ok(dir.join(name))
    }

    fn start_over(&mut self, why: &str, mark: Option<Mark>) -> Result<(), Fault> {
        let had = self.written();
        let Some(output) = &mut self.output else {
            return Ok(());
        };
        if !output.begin(mark)? {
            let why = "what was written cannot be taken back".to_owned();
            return Err(Fault::BadPart(why));
        }
        if had > 0 && !why.is_empty() {
            let note = format!("{why}: {had} bytes thrown away, fetched from the start");
            self.report.notes.push(note);
        }
        self.report.resumed_from = 0;
        self.report.bytes = 0;
        self.download.live.bytes.set(0);
        self.sum = self
            .download
            .options
            .checksum
            .as_ref()
            .map(|sum| Sum::new(sum.algorithm));
        Ok(())
    }

    fn check_length(&self, total: Option<u64>) -> Result<(), Fault> {
        match (total, self.download.options.bytes_max) {
            (Some(total), Some(max)) if total > max => Err(Fault::TooLong(max)),
            _ => Ok(()),
        }
    }

    async fn body(&mut self, response: &mut Response) -> Result<(), Fault> {
        let began = self.download.handle.now();
        let before = self.report.received;
        let ended = self.pieces(response, (began, before)).await;
        // What came of a coding without anything to write, too.
        self.report.received = before + response.received_bytes();
        ended?;
        self.report.timing = Some(response.timing());
        Ok(())
    }

    async fn pieces(
        &mut self,
        response: &mut Response,
        (began, before): (Instant, u64),
    ) -> Result<(), Fault> {
        while let Some(piece) = response.chunk().await? {
            let Some(output) = &mut self.output else {
                break;
            };
            let max = self.download.options.bytes_max.unwrap_or(u64::MAX);
            if output.written() + piece.len() as u64 > max {
                return Err(Fault::TooLong(max));
            }
            output.write(piece)?;
            if let Some(sum) = &mut self.sum {
                sum.update(piece);
            }
            self.download.live.bytes.set(output.written());
            let came = response.received_bytes();
            self.report.received = before + came;
            if let Some(rate) = self.download.options.rate_max {
                // At this rate, so many bytes have come by then.
                let due = came as f64 / rate as f64 * 1e9;
                self.download
                    .handle
                    .sleep_until(began + Nanos(due as u64))
                    .await;
            }
        }
        Ok(())
    }

    fn may_try_again(&self, fault: &Fault) -> bool {
        let may_begin_again = matches!(self.output, Some(Output::Part(_)));
        fault.is_passing()
            && self.report.retries < self.download.options.retries
            && (may_begin_again || self.written() == 0)
    }

    async fn wait(&mut self, fault: &Fault) {
        let doubled = BACKOFF_FIRST.0 << self.report.retries.min(10);
        self.report.retries += 1;
        self.report.notes.push(format!("tried again: {fault}"));
        let wait = Nanos(doubled).min(BACKOFF_MAX);
        self.download.handle.sleep(wait).await;
    }

    fn check_sum(&mut self) -> Result<(), Fault> {
        self.report.bytes = self.written();
        let (Some(sum), Some(checksum)) = (self.sum.take(), &self.download.options.checksum) else {
            return Ok(());
        };
        let found = sum.finish();
        let algorithm = checksum.algorithm;
        let file = self.report.file.as_deref().and_then(Path::file_name);
        let name = file.unwrap_or_default().to_string_lossy();
        let expected = checksum.expected(&name);
        let expected = expected.map_err(|_| Fault::NotListed(name.into_owned()))?;
        let fault = expected
            .filter(|&sum| sum != found)
            .map(|expected| Fault::Checksum {
                algorithm: algorithm.name(),
                expected: expected.to_owned(),
                found: found.clone(),
            });
        self.report.sum = Some((algorithm, found));
        fault.map_or(Ok(()), Err)
    }

    async fn finish(&mut self) -> Result<(), Fault> {
        let Some(Output::Part(part)) = &mut self.output else {
            return Ok(());
        };
        name_elsewhere(part.naming()?).await?;
        part.named();
        Ok(())
    }
}

/// Waits for the disk on a thread of its own, since others' bodies go on meanwhile.
async fn name_elsewhere(naming: Naming) -> Result<(), Fault> {
    let path = naming.path().to_owned();
    let (tell, mut hear) = mailbox(1);
    let spawned = thread::Builder::new()
        .name("prony-sync".into())
        .spawn(move || {
            // The waiting thread may have been interrupted.
            let _ = tell.send(naming.finish());
        });
    spawned.map_err(|error| Fault::file("name", &path, error))?;
    match hear.recv().await {
        Some(named) => named,
        None => {
            let error = std::io::Error::other("the thread that resolves it is gone");
            Err(Fault::file("name", &path, error))
        }
    }
}

fn part_head(response: &Response) -> PartHead<'_> {
    PartHead {
        status: response.status(),
        etag: response.header("etag"),
        last_modified: response.header("last-modified"),
        date: response.header("date"),
        accept_ranges: response.header("accept-ranges"),
        content_range: response.header("content-range"),
    }
}
