//! A cluster with several groups answers as one broker that has all of it.

mod behind;
mod changes;
mod cut_short;
mod deposed;
mod late;
mod lists;
mod metrics;
mod same;
mod sums;
mod support;
mod told;
