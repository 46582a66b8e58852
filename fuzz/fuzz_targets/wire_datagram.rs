//! `fuzzing::wire_datagram` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::wire_datagram(bytes));
