//! `wsgi.file_wrapper`: files that go to the client without passing through Python.

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An iterable over the blocks of a file-like object. Returned by an application, the
/// rest of a real file is sent by the kernel instead.
#[pyclass(frozen, module = "prony_wsgi")]
pub(crate) struct FileWrapper {
    #[pyo3(get)]
    filelike: Py<PyAny>,
    #[pyo3(get)]
    blksize: usize,
}

#[pymethods]
impl FileWrapper {
    #[new]
    #[pyo3(signature = (filelike, blksize = 8192))]
    fn new(filelike: Py<PyAny>, blksize: usize) -> FileWrapper {
        FileWrapper { filelike, blksize }
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let block = self
            .filelike
            .bind(py)
            .call_method1("read", (self.blksize,))?;
        match block.is_truthy()? {
            true => Ok(block),
            false => Err(PyStopIteration::new_err(())),
        }
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let file = self.filelike.bind(py);
        if let Some(close) = file.getattr_opt("close")? {
            close.call0()?;
        }
        Ok(())
    }
}

/// A part of a real file.
pub(crate) struct FilePart {
    pub(crate) file: OwnedFd,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl FileWrapper {
    /// What is left to be read of it, where it is a regular file of bytes. None where it
    /// has to be read in blocks.
    pub(crate) fn part(&self, py: Python<'_>) -> Option<FilePart> {
        let file = real(self.filelike.bind(py)).ok()??;
        // First: it may ask the kernel, and other threads run meanwhile.
        let offset: u64 = file.call_method0("tell").ok()?.extract().ok()?;
        let number: RawFd = file.call_method0("fileno").ok()?.extract().ok()?;
        if number < 0 {
            return None;
        }
        // SAFETY: `file` is open, because it has just told its descriptor, which does not
        // let go of the interpreter, and nobody closes it while that is attached: nothing
        // of Python runs between.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        let status = rustix::fs::fstat(borrowed).ok()?;
        if rustix::fs::FileType::from_raw_mode(status.st_mode) != rustix::fs::FileType::RegularFile
        {
            return None;
        }
        // Files of /proc and /sys say that they are empty, and are not.
        let size = u64::try_from(status.st_size)
            .ok()
            .filter(|&size| size > 0)?;
        Some(FilePart {
            file: borrowed.try_clone_to_owned().ok()?,
            offset,
            length: size.saturating_sub(offset),
        })
    }
}

/// The object of the module `io` that reads the bytes of the file as they are. Others have
/// descriptors, too, and mean something else: `gzip.GzipFile` that of the packed file.
fn real<'py>(file: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = file.py();
    let io = py.import("io")?;
    let temporary = py.import("tempfile")?.getattr("_TemporaryFileWrapper")?;
    let file = match file.is_instance(&temporary)? {
        true => file.getattr("file")?,
        false => file.clone(),
    };
    let kind = file.get_type();
    let raw = io.getattr("FileIO")?;
    if kind.is(&raw) {
        return Ok(Some(file));
    }
    for name in ["BufferedReader", "BufferedRandom"] {
        if kind.is(&io.getattr(name)?) && file.getattr("raw")?.get_type().is(&raw) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// The bytes of a block that an application gave.
pub(crate) fn block<'py>(given: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    given.cast_into::<PyBytes>().map_err(|error| {
        let kind = error.into_inner().get_type();
        let name = kind
            .name()
            .map_or_else(|_| "something else".to_owned(), |name| name.to_string());
        pyo3::exceptions::PyTypeError::new_err(format!(
            "an application gives blocks of bytes, and this one gave {name}"
        ))
    })
}
