//! The way of an answer from a thread that runs the application to the loop that sends it.

use crossbeam_channel as channel;
use prony_engine::Sender;
use pyo3::exceptions::PyConnectionResetError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::body::{Block, Body};
use crate::failure::Failure;
use crate::file::FilePart;
use crate::head::Head;

/// Blocks from this size on are sent from where Python has them.
const COPIED_BYTES_MAX: usize = 64 << 10;

/// A message from a thread to the loop.
pub(crate) enum Message {
    Whole(Head, Vec<u8>),
    /// The answer is a file: no thread waits for the client.
    WholeFile(Head, FilePart),
    Head(Head, Option<u64>),
    Data(Block, channel::Sender<Sent>),
    /// The answer is whole.
    End(channel::Sender<Sent>),
    Failed(Failure),
}

/// The outcome of sending.
pub(crate) enum Sent {
    Well,
    /// It was to HEAD: no more of it is needed.
    Unwanted,
    /// The client is gone.
    Gone,
    /// It is not as long as announced.
    Wrong(String),
}

/// Where the answer to a request goes.
#[derive(Clone)]
pub(crate) struct Outlet(Sender<Message>);

impl Sent {
    pub(crate) fn from_result(sent: std::io::Result<()>) -> Sent {
        use std::io::ErrorKind::{InvalidInput, UnexpectedEof};
        match sent {
            Ok(()) => Sent::Well,
            Err(error) if matches!(error.kind(), InvalidInput | UnexpectedEof) => {
                Sent::Wrong(error.to_string())
            }
            Err(_) => Sent::Gone,
        }
    }
}

impl Outlet {
    pub(crate) fn new(sender: Sender<Message>) -> Outlet {
        Outlet(sender)
    }

    /// Whether nobody takes what is put any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    pub(crate) fn put(&self, message: Message) -> PyResult<()> {
        self.0
            .send(message)
            .map_err(|_| PyConnectionResetError::new_err("the client is gone"))
    }

    /// Puts what `message` makes, and waits until it was dealt with.
    pub(crate) fn put_and_wait(
        &self,
        py: Python<'_>,
        message: impl FnOnce(channel::Sender<Sent>) -> Message,
    ) -> PyResult<Sent> {
        let (reply, answer) = channel::bounded(1);
        self.put(message(reply))?;
        Ok(py.detach(move || answer.recv().unwrap_or(Sent::Gone)))
    }

    /// Sends a head.
    pub(crate) fn head(&self, head: Head, length: Option<u64>) -> PyResult<()> {
        self.put(Message::Head(head, length))
    }

    /// Sends what the application gave to `write`.
    pub(crate) fn write(&self, py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<()> {
        let body = Body::Python(data.clone());
        match self.put_and_wait(py, |reply| Message::Data(carried(body), reply))? {
            Sent::Well | Sent::Unwanted => Ok(()),
            Sent::Gone => Err(PyConnectionResetError::new_err("the client is gone")),
            Sent::Wrong(why) => Err(pyo3::exceptions::PyValueError::new_err(why)),
        }
    }
}

/// A block on its way to the loop.
pub(crate) fn carried(body: Body<'_>) -> Block {
    match body.as_bytes().len() {
        0..COPIED_BYTES_MAX => Block::Own(body.into_vec()),
        _ => Block::from_body(body),
    }
}
