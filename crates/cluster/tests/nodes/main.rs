//! Nodes that meet: handshakes, packets on sockets, and how a cluster comes to be.

#![allow(clippy::disallowed_methods, reason = "nodes that are tested have tasks of their own")]

mod damaged_checkpoint;
mod failing_checkpoint;
mod folder;
mod forming;
mod full_disk;
mod noted;
mod one_of_three;
mod packets;
mod probes;
mod recovered;
mod silent;
mod slow_checkpoint;
mod slow_disk;
mod slow_reads;
mod support;
mod thread;
mod unreadable;
mod welcome;
