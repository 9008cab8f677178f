//! A cluster with several groups answers as one broker that has all of it.

mod changes;
mod lists;
mod metrics;
mod sums;
mod support;
mod told;
