//! The journal on a disk in memory, one case at a time.

mod buffered;
mod checkpoints;
mod faults;
mod figures;
mod forged;
mod full;
mod lost;
mod pace;
mod refused;
mod scrub;
mod support;
mod threads;
