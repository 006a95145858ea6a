//! An application as one thread runs it, with what that thread keeps between requests.
//! Not for: sending (`application`, `pool`).

use std::cell::RefCell;

use prony_http::Method;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::body::Body;
use crate::environ::{Environs, WsgiRequest};
use crate::file::{FilePart, FileWrapper, block};
use crate::head::Head;
use crate::outlet::Outlet;
use crate::places::Places;
use crate::python_settings::PythonSettings;
use crate::run::Run;
use crate::start::{StartResponse, is_only_ours};
use prony_hosting::Settings;
use pyo3::exceptions::{PyAssertionError, PyValueError};

/// Bytes of a list's blocks that are put together and sent as one.
const JOINED_BYTES_MAX: usize = 64 << 10;

/// As many of a thread's `start_response` wait to be taken again: more are in use only
/// while so many answers come in blocks at once.
const SPARES_MAX: usize = 8;

/// An application, on one thread.
pub(crate) struct Site {
    application: Py<PyAny>,
    environs: Environs,
    pub(crate) places: Places,
    spares: RefCell<Vec<Start>>,
}

/// A `start_response`: the object, and its method as the application sees it.
pub(crate) struct Start {
    pub(crate) object: Py<StartResponse>,
    function: Py<PyAny>,
}

/// The state of an application when its first bytes are there.
pub(crate) enum Begun<'py> {
    /// All of an answer.
    Whole {
        head: Head,
        body: Body<'py>,
        /// The iterable has to be run to its end and closed, after this is sent.
        has_rest: bool,
    },
    /// An answer that comes in blocks.
    Blocks {
        /// None where `write` has sent it.
        head: Option<Head>,
        length: Option<u64>,
        first: Body<'py>,
    },
    /// An answer whose body is a part of a file.
    File { head: Head, part: FilePart },
}

impl Site {
    pub(crate) fn new(
        py: Python<'_>,
        application: Py<PyAny>,
        settings: &Settings,
        python_settings: &PythonSettings,
    ) -> PyResult<Site> {
        Ok(Site {
            application,
            environs: Environs::new(py, settings, python_settings)?,
            places: Places::new(py)?,
            spares: RefCell::default(),
        })
    }

    /// Calls the application, and goes on until its first bytes are there.
    pub(crate) fn begin<'s, 'py>(
        &'s self,
        py: Python<'py>,
        parts: &WsgiRequest<'_>,
        outlet: Option<Outlet>,
    ) -> PyResult<(Run<'s>, Begun<'py>)> {
        let environ = self.environs.make(py, parts)?;
        let start = self.take_start(py, outlet)?;
        let function = start.function.bind(py).clone();
        let object = start.object.clone_ref(py);
        let mut run = Run::new(self, self.places.take(py)?, start);
        let application = self.application.bind(py);
        let returned = run.place().call2(application, &environ, &function)?;
        drop((environ, function));
        let began = Beginning {
            start: object.bind(py).get(),
            is_head: parts.method == Method::Head,
            run: &mut run,
        };
        let begun = began.begin(py, returned)?;
        Ok((run, begun))
    }

    fn take_start(&self, py: Python<'_>, outlet: Option<Outlet>) -> PyResult<Start> {
        let spare = self.spares.borrow_mut().pop();
        let start = match spare {
            Some(start) => start,
            None => {
                let object = Bound::new(py, StartResponse::default())?;
                Start {
                    function: object.getattr("start_response")?.unbind(),
                    object: object.unbind(),
                }
            }
        };
        start.object.get().begin(outlet);
        Ok(start)
    }

    /// The request is over: its `start_response` is taken again, where nobody else has it
    /// or its `write`. Of another, the cycle through `write` is broken.
    pub(crate) fn give_back(&self, py: Python<'_>, start: Start) {
        let object = start.object.get();
        let is_free = is_only_ours(py, &start.function) && object.has_own_write(py);
        let is_kept = is_free && self.spares.borrow().len() < SPARES_MAX;
        object.end(!is_kept);
        if is_kept {
            self.spares.borrow_mut().push(start);
        }
    }
}

/// Between an application's return and its first bytes.
struct Beginning<'a, 's> {
    start: &'a StartResponse,
    is_head: bool,
    run: &'a mut Run<'s>,
}

impl<'a> Beginning<'a, '_> {
    fn begin<'py>(self, py: Python<'py>, returned: Bound<'py, PyAny>) -> PyResult<Begun<'py>> {
        let written = self.start.take_written();
        let is_plain = written.is_empty() && !self.start.is_sent();
        if is_plain {
            match listed(&returned)? {
                Listed::Whole(body) => return self.complete(self.head()?, body, false),
                Listed::Long(length) => self.announce(length)?,
                Listed::Not => {}
            }
        }
        if is_plain
            && let Ok(wrapper) = returned.cast_exact::<FileWrapper>()
            && let Some(part) = wrapper.get().part(py)
        {
            let head = self.head()?;
            self.run.keep(&returned);
            return self.file(head, part);
        }
        let has_one = is_plain && has_one_block(&returned);
        self.run.keep(&returned);
        self.run.iterate(py)?;
        if !written.is_empty() {
            return self.blocks(Body::Own(written));
        }
        match self.run.next(py)? {
            Some(first) if has_one => self.complete(self.head()?, first, true),
            Some(first) => self.blocks(first),
            None if self.start.is_sent() => self.blocks(Body::Empty),
            None => self.complete(self.head()?, Body::Empty, true),
        }
    }

    fn head(&self) -> PyResult<Head> {
        self.start.take_head().ok_or_else(|| {
            PyAssertionError::new_err(
                "the application gave an answer and did not call start_response",
            )
        })
    }

    /// The body has so many bytes, in blocks that are all there.
    fn announce(&self, length: u64) -> PyResult<()> {
        match self.start.announce(length) {
            Some(announced) => Err(mismatch(announced, length)),
            None => Ok(()),
        }
    }

    fn complete<'py>(&self, head: Head, body: Body<'py>, has_rest: bool) -> PyResult<Begun<'py>> {
        let given = body.length();
        let length = head.length.unwrap_or(given);
        if length == given || !head.has_body() {
            return Ok(Begun::Whole {
                head,
                body,
                has_rest,
            });
        }
        // What is not sent need not be there; its length is announced.
        if self.is_head && given == 0 {
            return Ok(Begun::Blocks {
                head: Some(head),
                length: Some(length),
                first: body,
            });
        }
        Err(mismatch(length, given))
    }

    fn blocks<'py>(&self, first: Body<'py>) -> PyResult<Begun<'py>> {
        if self.start.is_sent() {
            return Ok(Begun::Blocks {
                head: None,
                length: None,
                first,
            });
        }
        let head = self.head()?;
        match head.length {
            Some(length) if length == first.length() => self.complete(head, first, true),
            Some(length) if length < first.length() && head.has_body() => {
                Err(mismatch(length, first.length()))
            }
            length => Ok(Begun::Blocks {
                head: Some(head),
                length,
                first,
            }),
        }
    }

    fn file<'py>(&self, head: Head, part: FilePart) -> PyResult<Begun<'py>> {
        let length = head.length.unwrap_or(part.length);
        if length > part.length && head.has_body() {
            return Err(mismatch(length, part.length));
        }
        let part = FilePart { length, ..part };
        Ok(Begun::File { head, part })
    }
}

#[cold]
fn mismatch(announced: u64, given: u64) -> PyErr {
    PyValueError::new_err(format!(
        "Content-Length announces {announced} bytes, and the application gave {given}"
    ))
}

/// Whether something that is no list says that there is one block in it, so that the
/// length of the first is that of all (PEP 3333, "Handling the Content-Length Header").
fn has_one_block(returned: &Bound<'_, PyAny>) -> bool {
    // Generators have no length, and to be told so would cost them an exception.
    let may_say = returned.get_type().hasattr("__len__").unwrap_or(false);
    may_say && returned.len().is_ok_and(|length| length == 1)
}

/// The content of a list or a tuple.
enum Listed<'py> {
    Whole(Body<'py>),
    /// So many bytes, which are not to be put together.
    Long(u64),
    /// It is something else.
    Not,
}

fn listed<'py>(returned: &Bound<'py, PyAny>) -> PyResult<Listed<'py>> {
    if let Ok(list) = returned.cast_exact::<PyList>() {
        match list.len() {
            0 => Ok(Listed::Whole(Body::Empty)),
            1 => Ok(Listed::Whole(Body::Python(block(list.get_item(0)?)?))),
            _ => joined(list.iter()),
        }
    } else if let Ok(tuple) = returned.cast_exact::<PyTuple>() {
        joined(tuple.iter())
    } else {
        Ok(Listed::Not)
    }
}

fn joined<'py>(blocks: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<Listed<'py>> {
    let mut complete = Vec::new();
    let mut length = 0;
    for given in blocks {
        let given = block(given)?;
        let bytes = given.as_bytes();
        length += bytes.len();
        if length <= JOINED_BYTES_MAX {
            complete.extend_from_slice(bytes);
        }
    }
    Ok(match length <= JOINED_BYTES_MAX {
        true => Listed::Whole(Body::Own(complete)),
        false => Listed::Long(length as u64),
    })
}
