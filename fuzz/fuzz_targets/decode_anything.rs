//! Gives the codec whatever the fuzzer comes upon.
#![no_main]

use courser_fuzz::exercise;

libfuzzer_sys::fuzz_target!(|input: &[u8]| exercise::decode_anything(input));
