//! What the codec promises, test by test.

mod any_input;
mod mutated_input;
mod round_trip;
mod support;
mod vectors;
