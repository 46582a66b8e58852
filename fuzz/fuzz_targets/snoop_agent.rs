//! `fuzzing::snoop_agent` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::snoop_agent(bytes));
