//! Places or bytes that users share. Each user has some of them at most, so that none keeps the others
//! out.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Users from which on those who have and want nothing are forgotten.
const USERS_KEPT: usize = 64;

/// What is shared.
pub struct Shares {
    all: Arc<Semaphore>,
    /// How many one user may have.
    each: usize,
    users: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// What a user has, until this goes.
#[derive(Debug)]
pub struct Share {
    of_user: OwnedSemaphorePermit,
    of_all: OwnedSemaphorePermit,
}

impl Shares {
    /// `all` of them, of which each user has `each` at most.
    pub fn new(all: usize, each: usize) -> Self {
        Shares { all: Arc::new(Semaphore::new(all)), each, users: Mutex::default() }
    }

    /// How many are left.
    pub fn left(&self) -> usize {
        self.all.available_permits()
    }

    /// Waits for so many, or for all that a user may have. `None` never comes while the API lives.
    pub async fn take(&self, user: &str, count: usize) -> Option<Share> {
        let count = u32::try_from(count.min(self.each)).ok()?;
        let of_user = self.of(user).acquire_many_owned(count).await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_many_owned(count).await.ok()?;
        Some(Share { of_user, of_all })
    }

    /// So many, or all that a user may have, if they are there now.
    pub fn try_take(&self, user: &str, count: usize) -> Option<Share> {
        let count = u32::try_from(count.min(self.each)).ok()?;
        let of_user = self.of(user).try_acquire_many_owned(count).ok()?;
        let of_all = Arc::clone(&self.all).try_acquire_many_owned(count).ok()?;
        Some(Share { of_user, of_all })
    }

    fn of(&self, user: &str) -> Arc<Semaphore> {
        let mut users = self.users.lock();
        if let Some(known) = users.get(user) {
            return Arc::clone(known);
        }
        if users.len() >= USERS_KEPT {
            // Who has some of them, or waits for some, has another reference.
            users.retain(|_, one| Arc::strong_count(one) > 1);
        }
        let new = Arc::new(Semaphore::new(self.each));
        users.insert(user.to_owned(), Arc::clone(&new));
        new
    }
}

impl Share {
    /// How many it is.
    pub fn count(&self) -> usize {
        self.of_user.num_permits()
    }

    /// Makes it and another one of the same user one.
    pub fn add(&mut self, other: Share) {
        self.of_user.merge(other.of_user);
        self.of_all.merge(other.of_all);
    }

    /// Makes it `count`, if it is less. Returns whether as much is left.
    pub fn grow(&mut self, count: usize) -> bool {
        let Ok(missing) = u32::try_from(count.saturating_sub(self.count())) else { return false };
        let take = |of: &OwnedSemaphorePermit| {
            Arc::clone(of.semaphore()).try_acquire_many_owned(missing).ok()
        };
        let (Some(of_user), Some(of_all)) = (take(&self.of_user), take(&self.of_all)) else {
            return false;
        };
        self.add(Share { of_user, of_all });
        true
    }

    /// Gives back what is more than `count`.
    pub fn keep(&mut self, count: usize) {
        for permits in [&mut self.of_user, &mut self.of_all] {
            drop(permits.split(permits.num_permits().saturating_sub(count)));
        }
    }
}

impl fmt::Debug for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shares").field("left", &self.left()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// What is there at once.
    fn now<T>(taking: impl Future<Output = Option<T>>) -> Option<T> {
        match pin!(taking).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(taken) => taken,
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_user_who_wants_all_leaves_some_to_the_others() {
        let shares = Shares::new(10, 6);
        let mut greedy = now(shares.take("greedy", 100)).expect("as many as it may have");
        assert_eq!(shares.left(), 4);
        assert!(now(shares.take("greedy", 1)).is_none(), "it has what it may have");
        let _other = now(shares.take("other", 3)).expect("they are left");
        greedy.keep(2);
        assert_eq!(shares.left(), 5);
        assert!(now(shares.take("greedy", 4)).is_some());
    }

    #[test]
    fn users_who_have_nothing_are_forgotten() {
        let shares = Shares::new(1_000, 1);
        let _kept = now(shares.take("kept", 1)).expect("a place");
        for nth in 0..USERS_KEPT * 3 {
            drop(now(shares.take(&nth.to_string(), 1)).expect("a place"));
        }
        assert!(shares.users.lock().len() <= USERS_KEPT);
        assert!(now(shares.take("kept", 1)).is_none(), "what it has is not forgotten");
    }
}
