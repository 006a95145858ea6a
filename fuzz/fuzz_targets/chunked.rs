//! Any bytes as chunked coding, cut anywhere; coded and decoded.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| prony_wire::fuzz::chunked(data));
