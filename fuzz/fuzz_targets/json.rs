//! Any bytes as a JSON message.
#![no_main]

#[path = "../../crates/wire/tests/all/hooks/json.rs"]
mod hooks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hooks::json(data));
