//! Gives the codec whatever the fuzzer comes upon; what is asserted lies with the codec's tests.
#![no_main]

#[path = "../../crates/codec/tests/codec/support/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|input: &[u8]| exercise::decode_anything(input));
