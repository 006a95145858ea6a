//! The rest of a request once the application was called: its iterable.

use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::body::Body;
use crate::failure::Failure;
use crate::file::block;
use crate::head::Head;
use crate::places::Place;
use crate::site::{Site, Start};
use crate::start::StartResponse;

/// A request under way. When it is dropped, the iterable is closed, in whatever way the
/// request came to its end.
pub(crate) struct Run<'s> {
    site: &'s Site,
    place: Place,
    /// None once it is over.
    start: Option<Start>,
    iterable: Option<Py<PyAny>>,
    /// None once it is exhausted.
    iterator: Option<Py<PyIterator>>,
}

impl<'s> Run<'s> {
    pub(crate) fn new(site: &'s Site, place: Place, start: Start) -> Run<'s> {
        Run {
            site,
            place,
            start: Some(start),
            iterable: None,
            iterator: None,
        }
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn start(&self) -> Option<&StartResponse> {
        self.start.as_ref().map(|start| start.object.get())
    }

    /// This is to be closed at the end.
    pub(crate) fn keep(&mut self, iterable: &Bound<'_, PyAny>) {
        self.iterable = Some(iterable.clone().unbind());
    }

    /// Begins to go through what is kept.
    pub(crate) fn iterate(&mut self, py: Python<'_>) -> PyResult<()> {
        if let Some(iterable) = &self.iterable {
            self.iterator = Some(self.place.iterate(iterable.bind(py))?.unbind());
        }
        Ok(())
    }

    /// The next block that is not empty; None at the end.
    pub(crate) fn next<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Body<'py>>> {
        while let Some(iterator) = &self.iterator {
            let given = self.place.next(iterator.bind(py))?;
            let bytes = given.map(block).transpose()?;
            if bytes.is_none() {
                self.iterator = None;
            }
            let mut written = self
                .start()
                .map(StartResponse::take_written)
                .unwrap_or_default();
            if !written.is_empty() {
                if let Some(bytes) = bytes {
                    written.extend_from_slice(bytes.as_bytes());
                }
                return Ok(Some(Body::Own(written)));
            }
            match bytes {
                Some(bytes) if bytes.as_bytes().is_empty() => {}
                bytes => return Ok(bytes.map(Body::Python)),
            }
        }
        Ok(None)
    }

    /// Goes through the rest, of which nothing can be sent any more. Yields how many
    /// bytes there were.
    pub(crate) fn exhaust(&mut self, py: Python<'_>) -> PyResult<u64> {
        let mut surplus = 0;
        while let Some(body) = self.next(py)? {
            surplus += body.as_bytes().len() as u64;
        }
        Ok(surplus)
    }

    /// Lets the next request use the memory of this head.
    pub(crate) fn give_back(&self, head: Head) {
        if let Some(start) = self.start() {
            start.give_back(head);
        }
    }

    /// Closes the iterable.
    pub(crate) fn end(mut self, py: Python<'_>) {
        self.close(py);
    }

    fn close(&mut self, py: Python<'_>) {
        let Some(start) = self.start.take() else {
            return;
        };
        self.iterator = None;
        if let Some(iterable) = self.iterable.take()
            && let Err(error) = close(&self.place, iterable.bind(py))
        {
            Failure::tell(py, &error, "closing an answer");
        }
        self.site.give_back(py, start);
        self.site
            .places
            .give_back(std::mem::replace(&mut self.place, Place::Nowhere));
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if self.start.is_some() {
            Python::attach(|py| self.close(py));
        }
    }
}

fn close(place: &Place, iterable: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Some(close) = iterable.getattr_opt("close")? {
        place.call0(&close)?;
    }
    Ok(())
}
