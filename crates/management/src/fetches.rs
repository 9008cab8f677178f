//! The memory for large answers on their way to clients: for those that are worked out, above all with messages, for lists and
//! whatever else is at hand, and for metrics. All share it, for as long as their answers are not sent, and it counts towards
//! the limit of memory.

use crate::refusal::Refusal;
use crate::shares::{Share, Shares};
use bytes::Bytes;
use courser_broker::admin::{Admin, Held};
use hyper::StatusCode;
use std::time::Duration;

/// Bytes that all of one kind have together, and those of one user.
const BYTES_MAX: usize = 256 << 20;
const USER_BYTES_MAX: usize = (64 << 20) + (64 << 10);
/// A list may have more if it is the only one of its user.
const USER_LIST_BYTES_MAX: usize = 32 << 20;
/// Bytes that all pages of metrics have together, and those of one user, or of one network where no login is wanted.
const SCRAPES_BYTES_MAX: usize = 64 << 20;
const USER_SCRAPES_BYTES_MAX: usize = 16 << 20;
/// How long a request waits for its share.
const PATIENCE: Duration = Duration::from_secs(5);

/// The memory that there is.
#[derive(Debug)]
pub(crate) struct Fetches {
    room: Shares,
    /// For what is at hand: those who wait for the other room do not keep lists from anyone.
    lists: Shares,
    /// For metrics: those who ask for them need not be users, and keep no lists from these.
    scrapes: Shares,
}

/// The share of a request.
#[derive(Debug)]
pub(crate) struct Fetch {
    share: Share,
    held: Held,
    /// Up to where its share grows with what it counts.
    grows_to: usize,
}

/// An answer with its share of the memory.
struct Kept {
    bytes: Bytes,
    _share: Fetch,
}

impl Default for Fetches {
    fn default() -> Self {
        Fetches {
            room: Shares::new(BYTES_MAX, USER_BYTES_MAX),
            lists: Shares::new(BYTES_MAX, USER_LIST_BYTES_MAX),
            scrapes: Shares::new(SCRAPES_BYTES_MAX, USER_SCRAPES_BYTES_MAX),
        }
    }
}

impl Fetches {
    /// A share for at most so many bytes. The broker of `admin` counts those that are there.
    pub async fn begin(
        &self,
        admin: &Admin,
        user: &str,
        bytes_max: usize,
    ) -> Result<Fetch, Refusal> {
        match tokio::time::timeout(PATIENCE, self.room.take(user, bytes_max)).await {
            Ok(Some(share)) => Ok(Fetch { share, held: admin.hold(0), grows_to: 0 }),
            Ok(None) => Err(Refusal::internal("the broker ends")),
            Err(_) => Err(no_room()),
        }
    }

    /// Adds to the share of an answer what it has more than was thought. One may have more than its user's share if it is the
    /// only one of its user. Returns the share as it was where that is not left.
    pub fn fitted(&self, mut fetch: Fetch, user: &str, bytes: usize) -> Result<Fetch, Fetch> {
        let missing = bytes.min(USER_BYTES_MAX).saturating_sub(fetch.share.count());
        if missing > 0 {
            let Some(more) = self.room.try_take(user, missing) else { return Err(fetch) };
            fetch.share.add(more);
        }
        Ok(fetch)
    }

    /// A share for so many bytes of a list, or of an answer, that are there already, if it is left. They count from now on.
    pub fn of(&self, admin: &Admin, user: &str, bytes: usize) -> Result<Fetch, Refusal> {
        let share = self.lists.try_take(user, bytes).ok_or_else(no_room_for_lists)?;
        Ok(Fetch { share, held: admin.hold(bytes), grows_to: 0 })
    }

    /// The same for a page of metrics, whose beginning is there. Its share grows with what the page has later.
    pub fn of_scrape(&self, admin: &Admin, asker: &str, bytes: usize) -> Result<Fetch, Refusal> {
        let share = self.scrapes.try_take(asker, bytes).ok_or_else(no_room_for_scrapes)?;
        Ok(Fetch { share, held: admin.hold(bytes), grows_to: USER_SCRAPES_BYTES_MAX })
    }

    /// Has the share of a list be one for so many bytes, more or fewer than before, if they are left. They count from now on.
    pub fn resize(&self, fetch: &mut Fetch, user: &str, bytes: usize) -> Result<(), Refusal> {
        let missing = bytes.min(USER_LIST_BYTES_MAX).saturating_sub(fetch.share.count());
        if missing > 0 {
            let more = self.lists.try_take(user, missing).ok_or_else(no_room_for_lists)?;
            fetch.share.add(more);
        }
        fetch.share.keep(bytes);
        fetch.held.set(bytes);
        Ok(())
    }
}

/// The answer where messages find no room.
pub(crate) fn no_room() -> Refusal {
    busy(format!(
        "answers with messages on their way to clients, and policy previews, fill the {} MiB that there are for them, or the {} MiB \
         of their user; nothing was taken: try again later, or with a smaller count or truncate",
        BYTES_MAX >> 20,
        USER_BYTES_MAX >> 20
    ))
}

fn no_room_for_lists() -> Refusal {
    busy(format!(
        "lists and other answers on their way to clients fill the {} MiB of their user, or the {} MiB of all: \
         read or close those first, or ask for a part (page, page_size, columns)",
        USER_LIST_BYTES_MAX >> 20,
        BYTES_MAX >> 20
    ))
}

fn no_room_for_scrapes() -> Refusal {
    busy(format!(
        "metrics on their way to clients fill the {} MiB of their user or address, or the {} MiB of all: read or close those first",
        USER_SCRAPES_BYTES_MAX >> 20,
        SCRAPES_BYTES_MAX >> 20
    ))
}

fn busy(reason: String) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", reason)
}

impl Fetch {
    /// Counts so many bytes from now on. Returns whether its share has room for them, if that is one that grows. One page may
    /// have more than its asker's share if it is the only one.
    pub fn count(&mut self, bytes: usize) -> bool {
        self.held.set(bytes);
        self.share.grow(bytes.min(self.grows_to))
    }

    /// Keeps as much of the share as an answer needs until it is sent.
    pub fn hold(mut self, bytes: Bytes) -> Bytes {
        self.share.keep(bytes.len());
        self.held.set(bytes.len());
        Bytes::from_owner(Kept { bytes, _share: self })
    }
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
