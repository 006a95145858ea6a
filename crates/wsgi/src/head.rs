//! The head of an answer, as an application gave it. Not for: checking it (`start`).

use prony_http::{OwnedHeaders, Status};

/// The head of an answer, as the application gave it.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// In latin-1; empty for the usual one.
    pub(crate) reason: Vec<u8>,
    pub(crate) headers: OwnedHeaders,
    /// Its Content-Length.
    pub(crate) length: Option<u64>,
}

impl Head {
    /// The status of the first line.
    pub(crate) fn status_line(&self) -> Status<'_> {
        match self.reason.is_empty() {
            true => self.status.into(),
            false => (self.status, &self.reason[..]).into(),
        }
    }

    /// Whether such an answer has a body, whatever was asked.
    pub(crate) fn has_body(&self) -> bool {
        !matches!(self.status, 204 | 205 | 304)
    }
}
