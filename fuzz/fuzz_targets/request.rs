//! Any bytes as requests, cut anywhere.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| prony_wire::fuzz::request(data));
