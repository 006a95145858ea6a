//! The HTTP server and client: wire on engine.
#![forbid(unsafe_code)]
