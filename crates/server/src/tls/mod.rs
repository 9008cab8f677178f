//! TLS: the listeners' certificates and whom they trust, renewed from their files while the broker
//! runs, and what a connection knows of its client.
//!
//! - [`identity`]: what is read from the files, and what is wrong with them.
//! - [`facts`]: what an operator wants to know of a certificate, and of a revocation list.
//! - [`acceptor`]: handshakes, with the newest certificates that could be read.
//! - [`watch`]: looks whether the files have changed.
//! - [`peer`]: the client's certificate, and the user name in it.
//! - [`stream`]: a connection behind its handshake.
//! - [`suites`]: what connections can be like.

mod acceptor;
mod facts;
mod identity;
mod peer;
mod stream;
mod suites;
mod watch;

pub(crate) use acceptor::Acceptor;
pub(crate) use facts::of as facts_of;
pub use identity::TlsError;
pub(crate) use identity::{Named, certificates, chain_and_key, without_resumption};
pub(crate) use stream::{ReadAhead, TlsStream};
pub(crate) use suites::facts as tls_facts;
pub(crate) use watch::{Certificates, FromFiles};

#[cfg(test)]
mod tests;
