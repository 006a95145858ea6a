//! Any bytes as an experiment, planned where it is right, and as a subject.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| prony_lab::fuzz_experiment(data));
