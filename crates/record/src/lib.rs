//! What a run directory holds: types and schemas, nothing else.
#![forbid(unsafe_code)]
