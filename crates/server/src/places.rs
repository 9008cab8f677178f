//! How many connections there may be at once, and who has to leave when there are more.
//!
//! A connection that has not finished its handshake keeps nobody out: when all places are taken, the oldest of those
//! gives its place to the newcomer. Whoever has logged in stays.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// Connections that had to make room and have not gone yet, at most, while others are let in.
const LEAVING_MAX: usize = 8;

/// The places of one broker.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    taken: Mutex<Taken>,
    /// One of those that had to make room is gone.
    left: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    /// Connections that have finished their handshake.
    open: usize,
    /// Those that have not, the oldest first, with how to end them.
    unfinished: BTreeMap<u64, Option<AbortHandle>>,
    /// Those that had to make room: each holds its descriptor until its task has been dropped.
    leaving: usize,
    next_id: u64,
}

/// What became of a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// There was a free place.
    Admitted,
    /// It has the place of another one that had not finished its handshake.
    Replaced,
    /// Connections that are in use have all there is.
    Refused,
}

impl Places {
    pub fn new(most: usize) -> Self {
        Places { most, taken: Mutex::default(), left: Notify::new() }
    }

    /// How many there are.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Waits until nearly all that had to make room are gone: newcomers faster than that would take descriptors
    /// that no place counts.
    pub async fn until_few_leave(&self) {
        while self.taken.lock().leaving > LEAVING_MAX {
            self.left.notified().await;
        }
    }

    /// How many are taken.
    #[cfg(test)]
    pub fn taken(&self) -> usize {
        let taken = self.taken.lock();
        taken.open + taken.unfinished.len()
    }

    /// Gives a place to a connection, which `serve` starts a task for.
    pub fn admit(self: &Arc<Self>, serve: impl FnOnce(Place) -> AbortHandle) -> Admission {
        self.admit_up_to(self.most, serve)
    }

    /// As [`Places::admit`], where there is nothing left for one more: another has to make room for it even if places
    /// are free.
    pub fn exchange(self: &Arc<Self>, serve: impl FnOnce(Place) -> AbortHandle) -> Admission {
        self.admit_up_to(0, serve)
    }

    fn admit_up_to(
        self: &Arc<Self>,
        most: usize,
        serve: impl FnOnce(Place) -> AbortHandle,
    ) -> Admission {
        let mut taken = self.taken.lock();
        let Some(admission) = taken.make_room(most) else { return Admission::Refused };
        let id = taken.next_id;
        taken.next_id += 1;
        taken.unfinished.insert(id, None);
        drop(taken);
        // Not under the lock: a runtime that shuts down drops the task, and the place with it, at once.
        let places = Some(Arc::clone(self));
        let task = serve(Place { places, id, is_open: false, is_own: false });
        if let Some(waiting) = self.taken.lock().unfinished.get_mut(&id) {
            *waiting = Some(task);
        }
        admission
    }

    /// Gives a place to a connection from within, whose handshake can be relied upon.
    pub fn admit_own(self: &Arc<Self>) -> Option<Place> {
        let mut taken = self.taken.lock();
        taken.make_room(self.most)?;
        taken.open += 1;
        Some(Place { places: Some(Arc::clone(self)), id: 0, is_open: true, is_own: true })
    }
}

impl Taken {
    /// Sees to it that one place of `most` is free.
    fn make_room(&mut self, most: usize) -> Option<Admission> {
        if self.open + self.unfinished.len() < most {
            return Some(Admission::Admitted);
        }
        // One without a task is about to get it, and younger than any other.
        let (&id, task) =
            self.unfinished.iter().find_map(|(id, task)| Some((id, task.as_ref()?)))?;
        task.abort();
        self.unfinished.remove(&id);
        self.leaving += 1;
        Some(Admission::Replaced)
    }
}

/// One connection's place, as long as it lives, however its task ends.
#[derive(Debug)]
pub(crate) struct Place {
    /// Nothing once somebody else has it.
    places: Option<Arc<Places>>,
    id: u64,
    is_open: bool,
    is_own: bool,
}

impl Place {
    /// Whether the connection comes from within.
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// The handshake is over: from now on the place is kept. Returns false if it was given away before.
    pub fn keep(&mut self) -> bool {
        let Some(places) = &self.places else { return false };
        if !self.is_open {
            let mut taken = places.taken.lock();
            self.is_open = taken.unfinished.remove(&self.id).is_some();
            taken.open += usize::from(self.is_open);
        }
        self.is_open
    }

    /// Takes the place out of the hands of who had it so far.
    pub fn take_over(&mut self) -> Place {
        Place { places: self.places.take(), ..*self }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(places) = &self.places else { return };
        let mut taken = places.taken.lock();
        if self.is_open {
            taken.open -= 1;
        } else if taken.unfinished.remove(&self.id).is_none() {
            taken.leaving -= 1;
            places.left.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
