//! `start_response`, and the `write` that it returns.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prony_hosting::HOP_BY_HOP;
use pyo3::exceptions::{PyAssertionError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use crate::head::Head;
use crate::outlet::Outlet;

/// Where an answer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    /// No head was given.
    #[default]
    Nothing,
    /// A head was given, and can still be replaced.
    Given,
    /// The head is on its way to the client.
    Sent,
    /// The request is over.
    Over,
}

/// The results of `start_response` and `write` of one request, for the server.
#[derive(Default)]
struct State {
    progress: Progress,
    head: Head,
    /// The bytes given to `write`, which wait for the application to return.
    written: Vec<u8>,
    /// Where it goes instead, at once.
    outlet: Option<Outlet>,
    /// The method `write`, bound.
    write: Option<Py<PyAny>>,
}

/// One request's `start_response`; taken again for the next where the application does
/// not keep it.
#[pyclass(frozen, module = "prony_wsgi")]
#[derive(Default)]
pub(crate) struct StartResponse {
    /// Several threads of an application may call it; never held while Python runs.
    state: Mutex<State>,
}

impl StartResponse {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request begins.
    pub(crate) fn begin(&self, outlet: Option<Outlet>) {
        let mut state = self.state();
        state.progress = Progress::Nothing;
        state.outlet = outlet;
    }

    /// It is over: later calls are refused. Yields what has to be let go of, without the
    /// lock, where this is not to be taken again.
    pub(crate) fn end(&self, last: bool) {
        let mut state = self.state();
        state.progress = Progress::Over;
        state.head.length = None;
        state.written.clear();
        let outlet = state.outlet.take();
        let write = if last { state.write.take() } else { None };
        drop(state);
        drop((outlet, write));
    }

    /// Whether `write` has sent the head.
    pub(crate) fn is_sent(&self) -> bool {
        self.state().progress == Progress::Sent
    }

    /// The head, which can no longer be replaced from now on. None if it was taken
    /// before, or none was given.
    pub(crate) fn take_head(&self) -> Option<Head> {
        let mut state = self.state();
        if state.progress != Progress::Given {
            return None;
        }
        state.progress = Progress::Sent;
        Some(mem::take(&mut state.head))
    }

    /// Gives its memory back for the next head.
    pub(crate) fn give_back(&self, head: Head) {
        self.state().head = head;
    }

    /// The answer has so many bytes. Yields what its head announces, if that is another
    /// number.
    pub(crate) fn announce(&self, length: u64) -> Option<u64> {
        let head = &mut self.state().head;
        let announced = *head.length.get_or_insert(length);
        (announced != length && head.has_body()).then_some(announced)
    }

    /// Whether nobody else has the method `write`.
    pub(crate) fn has_own_write(&self, py: Python<'_>) -> bool {
        let state = self.state();
        state
            .write
            .as_ref()
            .is_none_or(|write| is_only_ours(py, write))
    }

    /// The bytes given to `write` so far.
    pub(crate) fn take_written(&self) -> Vec<u8> {
        mem::take(&mut self.state().written)
    }
}

#[pymethods]
impl StartResponse {
    #[pyo3(signature = (status, headers, exc_info = None))]
    fn start_response(
        slf: &Bound<'_, Self>,
        status: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
        exc_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let mut head = {
            let mut state = this.state();
            match (state.progress, exc_info) {
                (Progress::Over, _) => return Err(over("start_response")),
                (Progress::Sent, Some(exc_info)) => {
                    drop(state);
                    return Err(raised(exc_info)?);
                }
                (Progress::Given | Progress::Sent, None) => {
                    return Err(PyAssertionError::new_err(
                        "start_response was called before: a second call needs exc_info",
                    ));
                }
                // The one before stays where this one is refused.
                (Progress::Given, Some(_)) => Head::default(),
                (Progress::Nothing, _) => mem::take(&mut state.head),
            }
        };
        head.headers.clear();
        head.length = None;
        put_status(&mut head, status)?;
        put_headers(&mut head, headers)?;
        let mut state = this.state();
        state.head = head;
        state.progress = Progress::Given;
        if let Some(write) = &state.write {
            return Ok(write.clone_ref(py));
        }
        drop(state);
        let write = slf.getattr("write")?.unbind();
        this.state().write = Some(write.clone_ref(py));
        Ok(write)
    }

    /// Sends `data`, or keeps it until the application returns where the thread that sends
    /// is the one that runs it.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<()> {
        let mut state = self.state();
        match state.progress {
            Progress::Over => return Err(over("write")),
            Progress::Nothing => {
                return Err(PyAssertionError::new_err(
                    "write was called before start_response",
                ));
            }
            Progress::Given | Progress::Sent => {}
        }
        let Some(outlet) = state.outlet.clone() else {
            state.written.extend_from_slice(data.as_bytes());
            return Ok(());
        };
        drop(state);
        if data.as_bytes().is_empty() {
            return Ok(());
        }
        if let Some(head) = self.take_head() {
            let length = head.length;
            outlet.head(head, length)?;
        }
        outlet.write(py, data)
    }
}

#[cold]
fn over(what: &str) -> PyErr {
    PyAssertionError::new_err(format!("{what} was called after its request was over"))
}

/// The error that `exc_info` is about.
#[cold]
fn raised(exc_info: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let error = exc_info.get_item(1)?;
    let traceback = exc_info.get_item(2)?;
    if !traceback.is_none() {
        let error = error.call_method1("with_traceback", (traceback,))?;
        return Ok(PyErr::from_value(error));
    }
    Ok(PyErr::from_value(error))
}

/// Takes `200 OK` apart.
fn put_status(head: &mut Head, status: &Bound<'_, PyAny>) -> PyResult<()> {
    let text = status.cast::<PyString>().map_err(|_| {
        PyTypeError::new_err("the status is a str such as \"200 OK\", and this one is not")
    })?;
    let text = text.to_str()?;
    let wrong = || {
        PyValueError::new_err(format!(
            "the status is three digits from 200 on, a space and a reason, and not {text:?}"
        ))
    };
    let (digits, rest) = text.split_at_checked(3).ok_or_else(wrong)?;
    head.status = match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse().map_err(|_| wrong())?,
        false => return Err(wrong()),
    };
    let reason = rest.strip_prefix(' ').unwrap_or(rest);
    let is_apart = reason.len() < rest.len() || rest.is_empty();
    if !is_apart || head.status < 200 {
        return Err(wrong());
    }
    head.reason.clear();
    for one in reason.chars() {
        match u8::try_from(u32::from(one)) {
            Ok(byte) if byte == b'\t' || !byte.is_ascii_control() => head.reason.push(byte),
            _ => return Err(wrong()),
        }
    }
    Ok(())
}

fn put_headers(head: &mut Head, headers: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(list) = headers.cast::<PyList>() {
        for pair in list.iter() {
            put_header(head, &pair)?;
        }
        return Ok(());
    }
    Err(PyTypeError::new_err(
        "the headers are a list of pairs (name, value), and these are not",
    ))
}

fn put_header(head: &mut Head, pair: &Bound<'_, PyAny>) -> PyResult<()> {
    let wrong = || {
        let shown = pair
            .repr()
            .map_or_else(|_| String::new(), |shown| shown.to_string());
        PyTypeError::new_err(format!(
            "a header is a tuple of two str, and this is not: {shown}"
        ))
    };
    let pair = pair.cast::<PyTuple>().map_err(|_| wrong())?;
    if pair.len() != 2 {
        return Err(wrong());
    }
    let (name, value) = (pair.get_borrowed_item(0)?, pair.get_borrowed_item(1)?);
    let name = name.cast::<PyString>().map_err(|_| wrong())?;
    let value = value.cast::<PyString>().map_err(|_| wrong())?;
    let name = name.to_str()?;
    let text = value.to_str()?;
    if text.is_ascii() {
        return put_line(head, name, text.as_bytes());
    }
    let bytes: Result<Vec<u8>, _> = text
        .chars()
        .map(|one| u8::try_from(u32::from(one)))
        .collect();
    match bytes {
        Ok(bytes) => put_line(head, name, &bytes),
        Err(_) => Err(PyValueError::new_err(format!(
            "the header {name} has a character beyond latin-1: {text:?}"
        ))),
    }
}

fn put_line(head: &mut Head, name: &str, value: &[u8]) -> PyResult<()> {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    if is("content-length") {
        return put_length(head, value);
    }
    if HOP_BY_HOP.into_iter().any(is) {
        return Err(PyValueError::new_err(format!(
            "the header {name} is about the connection, which is the server's business"
        )));
    }
    // The server says what time it is.
    if is("date") || head.headers.push(name, value) {
        return Ok(());
    }
    let value = String::from_utf8_lossy(value);
    Err(PyValueError::new_err(format!(
        "not a header: {name:?}: {value:?} (a name is a token, a value has no control characters)"
    )))
}

fn put_length(head: &mut Head, value: &[u8]) -> PyResult<()> {
    let text = std::str::from_utf8(value).unwrap_or_default();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let length: Option<u64> = text.parse().ok().filter(|_| digits);
    match length {
        Some(length) if head.length.is_none_or(|before| before == length) => {
            head.length = Some(length);
            Ok(())
        }
        _ => Err(PyValueError::new_err(format!(
            "Content-Length is one number of bytes, and not {text:?}"
        ))),
    }
}

/// Whether this is the only reference to an object.
pub(crate) fn is_only_ours(_py: Python<'_>, object: &Py<PyAny>) -> bool {
    // SAFETY: the interpreter is attached, by `_py`, and the object alive, because
    // `object` holds it.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) == 1 }
}
