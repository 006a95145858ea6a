//! Any path and header lines, asked of static files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| prony_hosting::files::fuzz::files(data));
