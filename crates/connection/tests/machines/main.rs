//! Tests of the connection machines: no sockets, a clock that the test turns.

mod client;
mod client_confirms;
mod common;
mod pair;
mod server_channels;
mod server_ends;
mod server_frames;
mod server_handshake;
mod splits;
