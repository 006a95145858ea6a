//! Bytes of an answer's body, where they are: in Python, or already here.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

/// Bytes of a body.
pub(crate) enum Body<'py> {
    Empty,
    Python(Bound<'py, PyBytes>),
    Own(Vec<u8>),
}

impl Body<'_> {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Body::Empty => &[],
            Body::Python(bytes) => bytes.as_bytes(),
            Body::Own(bytes) => bytes,
        }
    }

    pub(crate) fn into_vec(self) -> Vec<u8> {
        match self {
            Body::Own(bytes) => bytes,
            other => other.as_bytes().to_vec(),
        }
    }

    pub(crate) fn length(&self) -> u64 {
        self.as_bytes().len() as u64
    }
}

/// A block that is sent while the interpreter does something else.
pub(crate) enum Block {
    Empty,
    Python(PyBackedBytes),
    Own(Vec<u8>),
}

impl Block {
    pub(crate) fn from_body(body: Body<'_>) -> Block {
        match body {
            Body::Empty => Block::Empty,
            Body::Python(bytes) => Block::Python(bytes.into()),
            Body::Own(bytes) => Block::Own(bytes),
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Block::Empty => &[],
            Block::Python(bytes) => bytes,
            Block::Own(bytes) => bytes,
        }
    }
}
