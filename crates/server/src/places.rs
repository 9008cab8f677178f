//! How many connections there may be at once, and who has to leave when there are more.
//!
//! A connection that has not finished its handshake keeps no other out: when all places are taken, the oldest of those
//! gives its place to the newcomer. Those that have logged in stay.
//!
//! What is kept for those that have not finished their handshake is bounded in the same way: the oldest for which something
//! is kept make room.
//!
//! A connection has a descriptor, and another one where it is passed on to the node that leads. Where these are fewer
//! than the places, they are given in the same way. One that goes from one node to another has a third meanwhile.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// Connections that had to make room and have not gone yet, at most, while others are let in.
const LEAVING_MAX: usize = 8;
/// Connections whose descriptor to another node does not count while they go there: without these, none could go where
/// connections have all that there are.
const UNCOUNTED_MAX: usize = 8;

/// The places of one broker.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    /// Descriptors of all connections.
    descriptors: usize,
    taken: Mutex<Taken>,
    /// One of those that had to make room is gone.
    left: Notify,
    /// A descriptor is free again.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    /// Connections that have finished their handshake.
    open: usize,
    /// Those that have not, the oldest first, with how to end them.
    unfinished: BTreeMap<u64, Unfinished>,
    /// Of these, the bytes of each that something is kept for, and of all together.
    kept: BTreeMap<u64, usize>,
    kept_bytes: usize,
    /// How many of all these are passed on.
    passed_on: usize,
    /// Those that had to make room: each holds its descriptor until its task has been dropped.
    leaving: usize,
    /// Those that go to another node, and have a descriptor for that.
    going: usize,
    next_id: u64,
}

#[derive(Debug, Default)]
struct Unfinished {
    task: Option<AbortHandle>,
    is_passed_on: bool,
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
        Self::within(most, usize::MAX)
    }

    /// Places for connections with at most so many descriptors.
    pub fn within(most: usize, descriptors: usize) -> Self {
        let (left, freed) = (Notify::new(), Notify::new());
        Places { most, descriptors, taken: Mutex::default(), left, freed }
    }

    /// How many there are.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Waits until nearly all that had to make room are gone: newcomers faster than that would take descriptors
    /// that no place counts.
    pub async fn until_few_leave(&self) {
        loop {
            let left = self.left.notified();
            if self.taken.lock().leaving <= LEAVING_MAX {
                return;
            }
            left.await;
        }
    }

    /// Waits until there is a descriptor for a connection to go to another node.
    pub async fn go(self: &Arc<Self>) -> Going {
        loop {
            let freed = self.freed.notified();
            {
                let mut taken = self.taken.lock();
                if taken.going < UNCOUNTED_MAX || taken.descriptors() < self.descriptors {
                    taken.going += 1;
                    return Going(Arc::clone(self));
                }
            }
            freed.await;
        }
    }

    /// How many are taken.
    #[cfg(test)]
    pub fn taken(&self) -> usize {
        let taken = self.taken.lock();
        taken.open + taken.unfinished.len()
    }

    /// Bytes that are kept for those that have not finished their handshake.
    #[cfg(test)]
    pub fn kept_bytes(&self) -> usize {
        self.taken.lock().kept_bytes
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
        let Some(admission) = taken.make_room(most, self.descriptors) else {
            return Admission::Refused;
        };
        let id = taken.next_id;
        taken.next_id += 1;
        taken.unfinished.insert(id, Unfinished::default());
        drop(taken);
        // Not under the lock: a runtime that shuts down drops the task, and the place with it, at once.
        let places = Some(Arc::clone(self));
        let task = serve(Place { places, id, ..Place::default() });
        if let Some(waiting) = self.taken.lock().unfinished.get_mut(&id) {
            waiting.task = Some(task);
        }
        admission
    }

    /// Gives a place to a connection from within, whose handshake can be relied upon.
    pub fn admit_own(self: &Arc<Self>) -> Option<Place> {
        let mut taken = self.taken.lock();
        taken.make_room(self.most, self.descriptors)?;
        taken.open += 1;
        let places = Some(Arc::clone(self));
        Some(Place { places, is_open: true, is_own: true, ..Place::default() })
    }
}

impl Taken {
    /// Sees to it that one place of `most` is free, and a descriptor.
    fn make_room(&mut self, most: usize, descriptors: usize) -> Option<Admission> {
        let count = self.open + self.unfinished.len();
        if count < most && self.descriptors() < descriptors {
            return Some(Admission::Admitted);
        }
        self.end_oldest(None).then_some(Admission::Replaced)
    }

    fn descriptors(&self) -> usize {
        let going = self.going.saturating_sub(UNCOUNTED_MAX);
        self.open + self.unfinished.len() + self.passed_on + going
    }

    /// Ends the oldest that has not finished its handshake, but for one. Returns false if there is none.
    fn end_oldest(&mut self, but: Option<u64>) -> bool {
        let mut all = self.unfinished.iter().filter(|(id, _)| Some(**id) != but);
        // One without a task is about to get it, and younger than any other.
        let oldest = all.find(|(_, one)| one.task.is_some()).map(|(id, _)| *id);
        oldest.is_some_and(|id| self.end(id))
    }

    /// Ends the oldest for which something is kept, but for one. Returns false if there is none.
    fn end_oldest_kept(&mut self, but: u64) -> bool {
        let has_task = |id: &u64| self.unfinished.get(id).is_some_and(|one| one.task.is_some());
        let oldest = self.kept.keys().copied().find(|id| *id != but && has_task(id));
        oldest.is_some_and(|id| self.end(id))
    }

    /// Ends one that has not finished its handshake and has a task.
    fn end(&mut self, id: u64) -> bool {
        let Some(Unfinished { task: Some(task), .. }) = self.remove_unfinished(id) else {
            return false;
        };
        task.abort();
        self.leaving += 1;
        true
    }

    /// Takes note of the bytes that are kept for one.
    fn set_kept(&mut self, id: u64, bytes: usize) {
        let before = match bytes {
            0 => self.kept.remove(&id),
            _ => self.kept.insert(id, bytes),
        };
        self.kept_bytes = self.kept_bytes + bytes - before.unwrap_or(0);
    }

    /// Whether a connection is passed on; nothing if it had to make room.
    fn is_passed_on<'a>(&'a mut self, place: &'a mut Place) -> Option<&'a mut bool> {
        match place.is_open {
            true => Some(&mut place.is_passed_on),
            false => self.unfinished.get_mut(&place.id).map(|one| &mut one.is_passed_on),
        }
    }

    fn remove_unfinished(&mut self, id: u64) -> Option<Unfinished> {
        let removed = self.unfinished.remove(&id)?;
        self.set_kept(id, 0);
        self.passed_on -= usize::from(removed.is_passed_on);
        Some(removed)
    }
}

/// One connection's place, as long as it lives, however its task ends.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Nothing once another connection has it.
    places: Option<Arc<Places>>,
    id: u64,
    is_open: bool,
    is_own: bool,
    /// Of one that is open. Of others the places know it.
    is_passed_on: bool,
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
            let Some(Unfinished { is_passed_on, .. }) = taken.remove_unfinished(self.id) else {
                return false;
            };
            (self.is_open, self.is_passed_on) = (true, is_passed_on);
            taken.passed_on += usize::from(is_passed_on);
            taken.open += 1;
        }
        true
    }

    /// So many bytes are kept for the connection before its handshake is over. Where those of all such connections are more
    /// than `most`, the oldest others for which some are kept make room.
    pub fn keep_bytes(&self, bytes: usize, most: usize) {
        let Some(places) = self.places.as_ref().filter(|_| !self.is_open) else { return };
        let mut taken = places.taken.lock();
        if !taken.unfinished.contains_key(&self.id) {
            return;
        }
        taken.set_kept(self.id, bytes);
        while taken.kept_bytes > most && taken.end_oldest_kept(self.id) {}
    }

    /// The connection is to be passed on, for which it needs one descriptor more. If none is left, another connection
    /// that has not finished its handshake makes room. Returns false if there is none, or if this one had to make room.
    pub fn pass_on(&mut self) -> bool {
        let Some(places) = self.places.clone() else { return false };
        let mut taken = places.taken.lock();
        match taken.is_passed_on(self) {
            None => return false,
            Some(true) => return true,
            Some(false) => {}
        }
        if taken.descriptors() >= places.descriptors && !taken.end_oldest(Some(self.id)) {
            return false;
        }
        taken.passed_on += 1;
        if let Some(is_passed_on) = taken.is_passed_on(self) {
            *is_passed_on = true;
        }
        true
    }

    /// The connection is served here after all.
    pub fn pass_on_no_more(&mut self) {
        let Some(places) = self.places.clone() else { return };
        let mut taken = places.taken.lock();
        if let Some(is_passed_on) = taken.is_passed_on(self)
            && std::mem::take(is_passed_on)
        {
            taken.passed_on -= 1;
            places.freed.notify_waiters();
        }
    }

    /// Takes the place out of the hands of who had it so far, and who keeps nothing for the connection any more.
    pub fn take_over(&mut self) -> Place {
        self.keep_bytes(0, usize::MAX);
        Place { places: self.places.take(), ..*self }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(places) = &self.places else { return };
        let mut taken = places.taken.lock();
        if self.is_open {
            taken.open -= 1;
            taken.passed_on -= usize::from(self.is_passed_on);
        } else if taken.remove_unfinished(self.id).is_none() {
            taken.leaving -= 1;
            return places.left.notify_waiters();
        }
        places.freed.notify_waiters();
    }
}

/// The descriptor of a connection that goes to another node, until it is there.
#[derive(Debug)]
pub(crate) struct Going(Arc<Places>);

impl Drop for Going {
    fn drop(&mut self) {
        self.0.taken.lock().going -= 1;
        self.0.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
