//! From a request as a file has it to the bytes that are sent: whose server, with which headers, with the body of another file.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use prony_record::PreparedRequest;

use super::RequestFormat;
use super::list::{ListedBody, ListedRequest};
use crate::fields::{FieldError, escaped_text, with_environment};
use crate::named_file::{self, FileReach};
use crate::prepare::{LoadUrl, LoadUrlError, RequestError, RequestParts, prepare};

/// A body file larger than this is refused: each connection sends it again and again. Of a file of requests all bodies
/// together: each of its requests has its own copy.
pub const BODY_BYTES_MAX: u64 = 1 << 30;

/// What the requests of a file have in common.
#[derive(Debug, Default)]
pub struct ListedContext<'a> {
    /// Folder of the file, which bodies in other files count from.
    pub folder: PathBuf,
    /// Where these may lie.
    pub reach: FileReach<'a>,
    /// Where they go, where that is said; else each URL says it.
    pub base: Option<&'a LoadUrl>,
    /// Headers in place of theirs.
    pub headers: &'a [(String, String)],
    /// Whether connections keep cookies: those of the file are then left out.
    pub keeps_cookies: bool,
    /// The body that each answer must have.
    pub expected: Option<&'a [u8]>,
    /// Bodies in files that were read so far, by the name that the requests have for them.
    pub bodies: BTreeMap<String, Vec<u8>>,
    /// Bytes of the bodies that requests have from files.
    pub body_bytes: u64,
}

/// Why a request of a file cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum ListedError {
    /// It cannot be encoded.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Its URL is none.
    #[error(transparent)]
    Url(#[from] LoadUrlError),
    /// It has a field that there is not.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// It is a path, and nothing says whose.
    #[error("`{0}` is a path: name the server, http://HOST:PORT, before --requests-file")]
    NoServer(String),
    /// Its body is in a file that cannot be had.
    #[error(transparent)]
    Body(#[from] BodyError),
}

/// Why a file is no body.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It cannot be read.
    #[error("cannot read the body from {path}: {reason}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why. It is in the text, and would stand there twice as a source.
        reason: io::Error,
    },
    /// It is too large.
    #[error("{path} has more than {BODY_BYTES_MAX} bytes; a body, or all of a file of requests, may have no more", path = .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

/// The bytes of a file that a user names as a body.
///
/// # Errors
/// It cannot be read, or has more than [`BODY_BYTES_MAX`] bytes.
pub fn body_of(path: &Path) -> Result<Vec<u8>, BodyError> {
    read_body(path, File::open(path))
}

fn read_body(path: &Path, file: io::Result<File>) -> Result<Vec<u8>, BodyError> {
    let path = path.to_owned();
    match file.and_then(|file| named_file::read(file, BODY_BYTES_MAX)) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(BodyError::TooLarge { path }),
        Err(reason) => Err(BodyError::Read { path, reason }),
    }
}

/// The method of a request that names none.
pub fn usual_method(body: &[u8]) -> &'static str {
    match body.is_empty() {
        true => "GET",
        false => "POST",
    }
}

/// `text` with what it takes from the environment.
///
/// # Errors
/// A variable that there is not.
pub fn from_environment(text: &str) -> Result<String, FieldError> {
    with_environment(text, &|name| env::var(name).ok())
}

impl ListedContext<'_> {
    /// One request of the file, and the server that it goes to.
    ///
    /// # Errors
    /// It cannot be sent as it is written.
    pub fn prepared(
        &mut self,
        one: &ListedRequest,
        format: RequestFormat,
    ) -> Result<(LoadUrl, PreparedRequest), ListedError> {
        let url = self.url(one)?;
        let path = literal(&url.path, format)?;
        let body = self.body(&one.body, format)?;
        let headers = self.headers(one, format)?;
        let parts = RequestParts {
            method: match one.method.as_str() {
                "" => usual_method(&body),
                method => method,
            },
            path: &path,
            authority: &url.authority,
            headers: &headers,
            body: &body,
        };
        let prepared = prepare(&parts, self.expected).map_err(|error| match error {
            // As it was written.
            RequestError::Path(_) => RequestError::Path(url.path.clone()),
            other => other,
        });
        let mut prepared = prepared?;
        prepared.weight = one.weight.unwrap_or_default();
        Ok((url, prepared))
    }

    fn url(&self, one: &ListedRequest) -> Result<LoadUrl, ListedError> {
        let is_path = one.url.starts_with('/');
        let path = match is_path {
            true => one.url.split('#').next().unwrap_or("/").to_owned(),
            false => LoadUrl::parse(&one.url)?.path,
        };
        match self.base {
            Some(base) => Ok(LoadUrl {
                path,
                ..base.clone()
            }),
            None if is_path => Err(ListedError::NoServer(one.url.clone())),
            None => Ok(LoadUrl::parse(&one.url)?),
        }
    }

    /// Its headers, and those in their place.
    fn headers(
        &self,
        one: &ListedRequest,
        format: RequestFormat,
    ) -> Result<Vec<(String, String)>, ListedError> {
        let is_given = |name: &str| {
            let mut given = self.headers.iter();
            given.any(|(of, _)| of.eq_ignore_ascii_case(name))
        };
        let is_kept = |name: &str| !self.keeps_cookies || !name.eq_ignore_ascii_case("cookie");
        let mut headers = Vec::new();
        for (name, value) in &one.headers {
            if is_kept(name) && !is_given(name) {
                headers.push((name.clone(), literal(value, format)?));
            }
        }
        headers.extend_from_slice(self.headers);
        Ok(headers)
    }

    fn body(&mut self, body: &ListedBody, format: RequestFormat) -> Result<Vec<u8>, ListedError> {
        Ok(match body {
            ListedBody::Empty => Vec::new(),
            ListedBody::Bytes(bytes) if format.has_fields() => bytes.clone(),
            ListedBody::Bytes(bytes) => escaped_text(bytes),
            ListedBody::File(name) => {
                let path = self.folder.join(name);
                if !self.bodies.contains_key(name) {
                    let body = read_body(&path, named_file::open(&path, self.reach))?;
                    self.bodies.insert(name.clone(), body);
                }
                let body = &self.bodies[name];
                self.body_bytes += body.len() as u64;
                if self.body_bytes > BODY_BYTES_MAX {
                    return Err(BodyError::TooLarge { path }.into());
                }
                escaped_text(body)
            }
        })
    }
}

/// A text of a file: with what it takes from the environment where it was written by hand, and else as it is.
fn literal(text: &str, format: RequestFormat) -> Result<String, FieldError> {
    match format.has_fields() {
        true => from_environment(text),
        false => Ok(String::from_utf8_lossy(&escaped_text(text.as_bytes())).into_owned()),
    }
}
