//! Any bytes as a JSON message.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| prony_wire::json::fuzz::json(data));
