//! HTTP/1.1 between bytes and values: no I/O, no clock.
#![forbid(unsafe_code)]
