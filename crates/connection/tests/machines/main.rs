//! Tests of the connection machines: no sockets, a clock that the test turns.
#![allow(clippy::disallowed_methods, reason = "the tests tell the time")]

mod client;
mod client_confirms;
mod client_handshake;
mod common;
mod pair;
mod proxy_header;
mod server_channels;
mod server_ends;
mod server_frames;
mod server_handshake;
mod splits;
