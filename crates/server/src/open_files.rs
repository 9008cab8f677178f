//! How many files the process may have open, and for whom.
//!
//! Each connection is one. Some are kept for others: a journal that can't open its next segment has failed, and an
//! operator has to get in when clients hold everything.

use rustix::process::{Resource, getrlimit, setrlimit};
use std::io;
use std::os::fd::RawFd;

/// Descriptors that no client gets, if the limit allows it.
const RESERVED: u64 = 128;
/// What a small limit is split into: one part of it is reserved.
const RESERVED_SHARE: u64 = 4;
/// The part of what is left that others than connections of AMQP get at most.
const LENT_SHARE: usize = 8;
/// What macOS allows every process.
const APPLE_MAX: u64 = 10_240;
/// Supposed to be in use where that can't be found out.
const IN_USE_GUESS: u64 = 32;

/// Raises the limit as far as the system allows. Shells set a low one for the sake of old programs,
/// which a broker of some thousand connections would soon reach. Call it before a broker is started.
///
/// # Errors
/// When the system refuses.
pub fn raise_limit() -> io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return Ok(());
    }
    let before = limit.current;
    limit.current = limit.maximum;
    let Err(refused) = setrlimit(Resource::Nofile, limit) else { return Ok(()) };
    // macOS says that there is no maximum, and refuses more than this all the same.
    if !cfg!(target_vendor = "apple") || before.is_none_or(|now| now >= APPLE_MAX) {
        return Err(refused.into());
    }
    limit.current = Some(APPLE_MAX);
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// The limit of descriptors, and how many are in use without any client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenFiles {
    /// `u64::MAX` if there is none.
    limit: u64,
    in_use: u64,
}

impl OpenFiles {
    /// Looks at the process as it is now.
    pub fn measure() -> Self {
        // FreeBSD lists the standard ones only.
        let listed = match cfg!(target_os = "freebsd") {
            true => None,
            false => std::fs::read_dir("/dev/fd").map(|entries| entries.count() as u64).ok(),
        };
        OpenFiles {
            limit: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
            in_use: listed.unwrap_or(IN_USE_GUESS),
        }
    }

    /// From this number on, descriptors are not for clients.
    fn reserved_from(self) -> u64 {
        self.limit - RESERVED.min(self.limit / RESERVED_SHARE)
    }

    /// How many connections there can be, if `wanted` may be; tells the log if these are less.
    pub fn connections_max(self, wanted: usize) -> usize {
        let possible = self.for_connections();
        if possible < wanted {
            let limit = self.limit;
            tracing::info!(
                connections_max = wanted,
                limit,
                "the limit of open files allows {possible} connections; raise it (ulimit -n, LimitNOFILE=)"
            );
        }
        wanted.min(possible)
    }

    /// Sets descriptors aside for others than connections of AMQP, which do not count from then on: as many as are wanted, and
    /// no more than a small part. Returns how many.
    pub fn lend(&mut self, wanted: usize) -> usize {
        let lent = wanted.min(self.for_connections() / LENT_SHARE);
        self.in_use += lent as u64;
        lent
    }

    /// Descriptors that connections may have.
    pub fn for_connections(self) -> usize {
        let possible = self.reserved_from().saturating_sub(self.in_use).max(1);
        usize::try_from(possible).unwrap_or(usize::MAX)
    }

    /// Whether a descriptor that a connection got is one of those that are kept for others. The system gives the lowest
    /// that is free, so there are as many in use as its number says.
    pub fn is_reserved(self, descriptor: RawFd) -> bool {
        // Half of the reserve is for connections that end as others begin, and for what is open besides.
        let from = self.limit - (self.limit - self.reserved_from()) / 2;
        u64::try_from(descriptor).is_ok_and(|number| number >= from)
    }
}
