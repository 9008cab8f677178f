//! Tests of the connection machines: no sockets, a clock that the test turns.

mod common;
mod pair;
mod server_handshake;
