//! Errors of an application: the message for its author, and the answer to the client.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit};
use pyo3::prelude::*;

/// An error that an application raised, printed already.
#[derive(Debug)]
pub(crate) struct Failure {
    /// With its traceback.
    pub(crate) text: String,
    /// It meant to end the process.
    pub(crate) ends: bool,
}

impl Failure {
    /// Writes `error` with its traceback to `sys.stderr`, with the request.
    #[cold]
    pub(crate) fn tell(py: Python<'_>, error: &PyErr, request: &str) -> Failure {
        let ends = error.is_instance_of::<PySystemExit>(py)
            || error.is_instance_of::<PyKeyboardInterrupt>(py);
        let mut text = format!("prony-wsgi: {request} failed\n{}", traceback(py, error));
        if ends {
            text.push_str("prony-wsgi: the application ended its process: no more requests\n");
        }
        // Where stderr is closed or raises, there is nobody to tell.
        let _ = write(py, &text);
        Failure { text, ends }
    }
}

/// Whether this process is to end: of a second signal it would end at once.
static IS_HEEDED: AtomicBool = AtomicBool::new(false);

impl Failure {
    /// Ends the process gracefully, where the application meant to end it.
    pub(crate) fn heed(&self) {
        if self.ends && !IS_HEEDED.swap(true, Ordering::Relaxed) {
            let this = rustix::process::getpid();
            // Nothing forbids a signal to oneself.
            let _ = rustix::process::kill_process(this, rustix::process::Signal::TERM);
        }
    }
}

/// The lines that Python shows for an error.
pub(crate) fn traceback(py: Python<'_>, error: &PyErr) -> String {
    let lines = || -> PyResult<String> {
        let module = py.import("traceback")?;
        let lines: Vec<String> = module
            .call_method1(
                "format_exception",
                (error.get_type(py), error.value(py), error.traceback(py)),
            )?
            .extract()?;
        Ok(lines.concat())
    };
    lines().unwrap_or_else(|_| format!("{error}\n"))
}

fn write(py: Python<'_>, text: &str) -> PyResult<()> {
    let stderr = py.import("sys")?.getattr("stderr")?;
    stderr.call_method1("write", (text,))?;
    stderr.call_method0("flush")?;
    Ok(())
}
