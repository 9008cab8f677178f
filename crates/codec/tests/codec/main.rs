//! What the codec promises, test by test.

mod any_input;
mod mutated_input;
mod round_trip;
mod sinks;
mod support;
mod vectors;
