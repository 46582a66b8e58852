//! `fuzzing::tcp_endpoint` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::tcp_endpoint(bytes));
