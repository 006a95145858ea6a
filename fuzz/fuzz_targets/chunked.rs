//! Any bytes as chunked coding, cut anywhere; coded and decoded.
#![no_main]

#[allow(dead_code, reason = "tests and other targets have the rest")]
#[path = "../../crates/wire/tests/all/hooks/http1.rs"]
mod hooks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hooks::chunked(data));
