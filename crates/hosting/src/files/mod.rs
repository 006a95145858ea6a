//! Static files: a directory, served below a path.
//!
//! GET and HEAD, with entity tags, conditions, ranges, and compressed forms of a file
//! that lie beside it (`x.css.br`, `x.css.zst`, `x.css.gz`; no older than it). A directory
//! shows its `index.html`. Names that begin with a dot are not there.
//!
//! Nothing outside of the directory is ever opened: the kernel resolves names beneath it
//! ([`openat2`](https://man7.org/linux/man-pages/man2/openat2.2.html)); a symbolic link
//! may lead elsewhere within the directory, by a relative path.
//!
//! Files up to 64 KiB are kept in memory, 16 MiB of them together, and a request costs
//! one `statx` that sees whether the file has changed; others are sent by the kernel. A
//! file that is replaced (written beside it and renamed, as tools should) is sent as it
//! was to who began to receive it. One that is cut short while it is sent ends the
//! connection before its announced length, so that the client knows. One that is
//! rewritten in place while it is sent is a mixture, as with every server that does not
//! copy it first.
//!
//! Not for: listing directories, compressing, uploads.

mod beneath;
mod coding;
mod conditions;
pub mod fuzz;
mod path;
mod refusal;
mod resource;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::rc::Rc;

use prony_http::{Header, Method, Request, Response};
use rustix::io::Errno;

use self::beneath::Beneath;
use self::conditions::{Validators, Verdict};
use self::refusal::Refusal;
use self::resource::{Cache, Form, Resource, SETTLED_AFTER_SECONDS};

/// Attempts to answer with a file that is replaced again and again meanwhile.
const TRIES_MAX: u32 = 4;
const TEXT: Header<'_> = Header::new("content-type", b"text/plain; charset=utf-8");

/// The files of one directory, for one loop.
#[derive(Debug)]
pub struct Files {
    /// Decoded, without a slash at its end.
    prefix: Vec<u8>,
    beneath: Beneath,
    cache: Cache,
}

/// A form of a file that is to be sent.
struct Chosen {
    resource: Rc<Resource>,
    index: usize,
}

impl Files {
    /// The files beneath `dir`, found below the path `prefix` (`/static`; empty: below
    /// the root, and then nothing else is served). Both it and the paths of requests may
    /// be percent-encoded.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn open(dir: &Path, prefix: &str) -> io::Result<Files> {
        Ok(Files {
            prefix: path::prefix(prefix),
            beneath: Beneath::open(dir)?,
            cache: Cache::new(SETTLED_AFTER_SECONDS),
        })
    }

    /// Whether a request's path is one of these files', be they there or not.
    #[inline]
    pub fn serves(&self, path: &str) -> bool {
        path::below(path, &self.prefix).is_some()
    }

    /// Answers a request whose path they [serve](Files::serves).
    pub async fn answer(&self, request: &Request<'_>, response: &mut Response) {
        if !matches!(request.method(), Method::Get | Method::Head) {
            return response.method_not_allowed("GET, HEAD");
        }
        let mut refusal = Refusal::Busy;
        for _ in 0..TRIES_MAX {
            match self.attempt(request, response).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(found) => {
                    refusal = found;
                    break;
                }
            }
        }
        refuse(refusal, request, response);
    }

    /// False if the file was replaced between two looks at it.
    async fn attempt(
        &self,
        request: &Request<'_>,
        response: &mut Response,
    ) -> Result<bool, Refusal> {
        let path = request.path();
        let below = path::below(path, &self.prefix).unwrap_or(path);
        if below.is_empty() {
            return Err(Refusal::Folder);
        }
        let name = path::name(below)?;
        let found = self.cache.look(&self.beneath, &name);
        // Not `x/` but `x/index.html` is a directory: no slash helps.
        let is_index = below.ends_with('/');
        let resource = found.map_err(|refusal| match refusal {
            Refusal::Folder if is_index => Refusal::NotFound,
            other => other,
        })?;
        let chosen = Chosen::choose(request, resource)?;
        let form = chosen.form();
        if form.coding.is_some() && !form.is_current(&self.beneath, &name) {
            self.cache.forget(&name);
            return Ok(false);
        }
        match chosen.judge(request) {
            Verdict::Whole => self.send(&name, &chosen, None, request, response).await,
            Verdict::Part(first, last) => {
                let part = Some((first, last));
                self.send(&name, &chosen, part, request, response).await
            }
            verdict => {
                chosen.send_no_content(verdict, response);
                Ok(true)
            }
        }
    }

    async fn send(
        &self,
        name: &[u8],
        chosen: &Chosen,
        part: Option<(u64, u64)>,
        request: &Request<'_>,
        response: &mut Response,
    ) -> Result<bool, Refusal> {
        let form = chosen.form();
        let total = form.stamp.size;
        let (status, offset, length, range) = match part {
            None => (200, 0, total, None),
            Some((first, last)) => {
                let range = format!("bytes {first}-{last}/{total}");
                (206, first, last - first + 1, Some(range))
            }
        };
        let headers = chosen.headers(range.as_deref());
        if let Some(content) = &form.content {
            // A part of what is in memory.
            let content = &content[offset as usize..(offset + length) as usize];
            response.send(status, headers, content);
            return Ok(true);
        }
        let file = match request.method() {
            Method::Head => None,
            _ => match form.open(&self.beneath, name)? {
                None => {
                    self.cache.forget(name);
                    return Ok(false);
                }
                opened => opened,
            },
        };
        let mut body = response.stream(status, headers, Some(length));
        if let Some(file) = file
            && body.write_file(&file, offset, length).await.is_err()
        {
            // The client is gone, or the file has become shorter: what is not finished
            // is reset.
            return Ok(true);
        }
        // As many bytes as announced, or HEAD.
        let _ = body.finish().await;
        Ok(true)
    }
}

impl Chosen {
    fn choose(request: &Request<'_>, resource: Rc<Resource>) -> Result<Chosen, Refusal> {
        let headers = request.headers();
        let forms = resource.forms.iter();
        let forms = forms.map(|form| (form.coding, form.stamp.size));
        let index = coding::choose(&headers, forms).ok_or(Refusal::NotAcceptable)?;
        Ok(Chosen { resource, index })
    }

    fn form(&self) -> &Form {
        &self.resource.forms[self.index]
    }

    fn judge(&self, request: &Request<'_>) -> Verdict {
        let form = self.form();
        let validators = Validators {
            etag: &form.etag,
            modified: form.modified,
            length: form.stamp.size,
        };
        let is_get = request.method() == Method::Get;
        conditions::judge(&request.headers(), is_get, &validators)
    }

    /// The headers that are the same in every answer about this form.
    fn validators(&self) -> impl Iterator<Item = Header<'_>> {
        let form = self.form();
        let varies = self.resource.forms.len() > 1;
        let vary = varies.then_some(Header::new("vary", b"accept-encoding"));
        let etag = Header::new("etag", form.etag.as_bytes());
        let modified = Header::new("last-modified", form.last_modified.as_bytes());
        [Some(etag), Some(modified), vary].into_iter().flatten()
    }

    fn headers<'h>(&'h self, range: Option<&'h str>) -> impl Iterator<Item = Header<'h>> {
        let content_type = self.resource.content_type.as_bytes();
        let coding = self.form().coding;
        let coding = coding.map(|coding| Header::new("content-encoding", coding.token.as_bytes()));
        let range = range.map(|range| Header::new("content-range", range.as_bytes()));
        let always = [
            Header::new("content-type", content_type),
            Header::new("accept-ranges", b"bytes"),
        ];
        let sometimes = [coding, range].into_iter().flatten();
        always.into_iter().chain(self.validators()).chain(sometimes)
    }

    fn send_no_content(&self, verdict: Verdict, response: &mut Response) {
        let head = [TEXT, Header::new("accept-ranges", b"bytes")];
        match verdict {
            Verdict::NotModified => response.send(304, self.validators(), b""),
            Verdict::Failed => response.send(
                412,
                [TEXT].into_iter().chain(self.validators()),
                b"the file is not in the state that the request asks for\n",
            ),
            _ => {
                let total = self.form().stamp.size;
                let range = format!("bytes */{total}");
                let range = Header::new("content-range", range.as_bytes());
                let text = format!("the range lies behind the end: there are {total} bytes\n");
                response.send(416, head.into_iter().chain([range]), text.as_bytes());
            }
        }
    }
}

/// Says why there is no file.
#[cold]
fn refuse(refusal: Refusal, request: &Request<'_>, response: &mut Response) {
    let (status, text) = match refusal {
        Refusal::Folder => return redirect(request, response),
        Refusal::BadPath => (
            400,
            "a % in the path is not followed by two hexadecimal digits\n",
        ),
        Refusal::NotFound => (404, "there is no such file\n"),
        Refusal::Forbidden => (403, "the file may not be read\n"),
        Refusal::NotAcceptable => {
            let vary = Header::new("vary", b"accept-encoding");
            let text = b"the file is not there in any of the codings asked for\n";
            return response.send(406, [TEXT, vary], text);
        }
        Refusal::Busy => (503, "the file cannot be read just now\n"),
        Refusal::Failed => (500, "the file cannot be read\n"),
    };
    response.text(status, text);
}

/// A directory's relative links need its slash.
fn redirect(request: &Request<'_>, response: &mut Response) {
    let mut place = format!("{}/", request.path());
    if !request.query().is_empty() {
        place.push('?');
        place.push_str(request.query());
    }
    let text = format!("the directory is at {place}\n");
    let location = Header::new("location", place.as_bytes());
    response.send(301, [TEXT, location], text.as_bytes());
}

impl From<Errno> for Refusal {
    /// What the kernel says about a name.
    fn from(error: Errno) -> Refusal {
        match error {
            Errno::ACCESS | Errno::PERM => Refusal::Forbidden,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN | Errno::INTR => {
                Refusal::Busy
            }
            Errno::IO => Refusal::Failed,
            // It is not there, a way to it is no directory or leads out, or it is
            // nothing that can be opened.
            _ => Refusal::NotFound,
        }
    }
}
