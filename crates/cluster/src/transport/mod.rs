//! How nodes reach each other: one TCP listener on each node, and connections that say what they are for.
//!
//! A connection begins with a [handshake](Endpoint): both ends prove that they know the cluster's secret and say who they
//! are. What follows depends on its [`Purpose`]: nothing, packets of a group in one direction, a question and its answer, or
//! the bytes of a client's connection. [`Links`] keeps one connection for packets to each other node and never blocks
//! the sender; [`listen`] takes what comes.

mod about;
mod alive;
mod ask;
mod frames;
mod handshake;
mod links;
mod listener;
mod proof;
mod stream;

pub use about::{About, Formation, Node, Recovery};
pub use alive::keep_alive;
pub use handshake::{DialError, Dialled, Endpoint, HandshakeError, Purpose};
pub use links::Links;
pub use listener::{Answer, Incoming, listen};
pub use proof::{SECRET_BYTES_MIN, Secret, WeakSecret};
pub use stream::{ByteStream, Secured, Securing, Security, Stream};
