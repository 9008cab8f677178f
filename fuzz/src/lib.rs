//! What the fuzz targets do with their input. It lies with the codec's tests, which do the same
//! without a fuzzer.

#[path = "../../crates/codec/tests/codec/support/exercise.rs"]
pub mod exercise;

/// The same for the journal: a journal to harm, and what has to hold after it.
#[path = "../../crates/journal/tests/damage/harness.rs"]
pub mod journal;
