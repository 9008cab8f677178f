//! The journal on a disk in memory, one case at a time.

mod checkpoints;
mod faults;
mod figures;
mod full;
mod pace;
mod refused;
mod scrub;
mod support;
mod threads;
