//! Answers that need no waiting, and messages to the application's author about faults in one.

use prony_http::{Header, Response};
use pyo3::prelude::*;

use crate::environ::WsgiRequest;
use crate::failure::Failure;
use crate::head::Head;

const TEXT: Header<'_> = Header::new("content-type", b"text/plain; charset=utf-8");

/// Sends a whole answer.
pub(crate) fn send(response: &mut Response, head: &Head, body: &[u8]) {
    response.send(head.status_line(), &head.headers.as_headers(), body);
}

/// Answers 500.
#[cold]
pub(crate) fn apologize(response: &mut Response, failure: &Failure, development: bool) {
    if response.is_started() {
        return;
    }
    let text = match development {
        true => &failure.text,
        false => "Internal Server Error\n",
    };
    response.send(500, [TEXT], text.as_bytes());
}

/// The message about a body with so many bytes too many.
pub(crate) fn surplus_of(bytes: u64) -> String {
    format!("the body is longer than announced: {bytes} bytes were not sent")
}

/// Tells the application's author of a fault that is no error in Python.
#[cold]
pub(crate) fn complain(py: Python<'_>, parts: &WsgiRequest<'_>, what: &str) {
    let error = pyo3::exceptions::PyValueError::new_err(what.to_owned());
    Failure::tell(py, &error, &parts.name());
}
