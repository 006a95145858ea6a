//! Contexts (`contextvars`) for requests that take turns on one thread.
//!
//! A request runs on a thread's own context, as under any server with a thread for each,
//! and what it leaves there the next one finds. But while one waits for its client in the
//! middle of its answer, others run: each of these gets a context that nobody else is in,
//! and that was copied before the first request, so that none sees another's variables.

use std::cell::{Cell, RefCell};

use pyo3::exceptions::PyStopIteration;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};

/// Where a request runs.
#[derive(Debug)]
pub(crate) enum Place {
    /// On the thread's own context.
    Own,
    /// In this one.
    In(Py<PyAny>),
    /// It was given back.
    Nowhere,
}

/// The contexts of one thread.
#[derive(Debug)]
pub(crate) struct Places {
    is_taken: Cell<bool>,
    free: RefCell<Vec<Py<PyAny>>>,
    /// As it was before the first request.
    clean: Py<PyAny>,
}

impl Places {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Places> {
        let clean = py.import("contextvars")?.call_method0("copy_context")?;
        Ok(Places {
            is_taken: Cell::new(false),
            free: RefCell::default(),
            clean: clean.unbind(),
        })
    }

    /// A place that no request is at.
    pub(crate) fn take(&self, py: Python<'_>) -> PyResult<Place> {
        if !self.is_taken.replace(true) {
            return Ok(Place::Own);
        }
        let free = self.free.borrow_mut().pop();
        match free {
            Some(context) => Ok(Place::In(context)),
            None => Ok(Place::In(
                self.clean.bind(py).call_method0("copy")?.unbind(),
            )),
        }
    }

    /// Its request is over.
    pub(crate) fn give_back(&self, place: Place) {
        match place {
            Place::Own => self.is_taken.set(false),
            Place::In(context) => self.free.borrow_mut().push(context),
            Place::Nowhere => {}
        }
    }
}

impl Place {
    pub(crate) fn call0<'py>(&self, what: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Place::In(context) => context.bind(what.py()).call_method1("run", (what,)),
            _ => what.call0(),
        }
    }

    /// Without the tuple that the stable ABI of Python 3.10 makes of arguments otherwise.
    pub(crate) fn call2<'py>(
        &self,
        what: &Bound<'py, PyAny>,
        one: &Bound<'py, PyDict>,
        two: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Place::In(context) => context
                .bind(what.py())
                .call_method1("run", (what, one, two)),
            _ => {
                // SAFETY: the interpreter is attached, as all three are bound, and they
                // live until this returns; the list ends in null; the result is a new
                // reference, or null with an error set.
                unsafe {
                    let end = std::ptr::null_mut::<ffi::PyObject>();
                    let (one, two) = (one.as_ptr(), two.as_ptr());
                    let given = ffi::PyObject_CallFunctionObjArgs(what.as_ptr(), one, two, end);
                    Bound::from_owned_ptr_or_err(what.py(), given)
                }
            }
        }
    }

    pub(crate) fn iterate<'py>(
        &self,
        iterable: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyIterator>> {
        match self {
            Place::In(context) => {
                let py = iterable.py();
                let iter = py.import("builtins")?.getattr("iter")?;
                let iterator = context.bind(py).call_method1("run", (iter, iterable))?;
                Ok(iterator.cast_into()?)
            }
            _ => iterable.try_iter(),
        }
    }

    pub(crate) fn next<'py>(
        &self,
        iterator: &Bound<'py, PyIterator>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Place::In(context) => {
                let py = iterator.py();
                let next = iterator.getattr("__next__")?;
                match context.bind(py).call_method1("run", (next,)) {
                    Ok(given) => Ok(Some(given)),
                    Err(error) if error.is_instance_of::<PyStopIteration>(py) => Ok(None),
                    Err(error) => Err(error),
                }
            }
            _ => iterator.clone().next().transpose(),
        }
    }
}
