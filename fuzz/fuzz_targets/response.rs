//! Any bytes as responses, cut anywhere.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| prony_wire::fuzz::response(data));
