//! `fuzzing::mobility_engines` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::mobility_engines(bytes));
