//! How many files the process may have open: each connection is one.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit as far as the system allows. Shells set a low one for the sake of old programs,
/// which a broker of some thousand connections would soon reach.
pub fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files can't be raised");
    }
}
