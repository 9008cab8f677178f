//! What the fuzz targets do with their input. It lies with the codec's tests, which do the same
//! without a fuzzer.

#[path = "../../crates/codec/tests/codec/support/exercise.rs"]
pub mod exercise;
