//! Any bytes as header blocks of HTTP/2.
#![no_main]

#[path = "../../crates/wire/tests/all/hooks/http2.rs"]
mod hooks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hooks::fields(data));
