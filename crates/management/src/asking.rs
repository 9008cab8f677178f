//! How long a request may ask another program what its user may do.
//!
//! Where that program hangs, each question takes seconds, and a list asks one for each vhost. Such requests have few places of
//! their own, so that they never take all, and none of their users has all of those; each gives up after a while, or when its
//! client goes.

use crate::shares::{Share, Shares};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Requests at the same time whose users another program knows, and those of one user; others wait.
pub(crate) const ASKERS_MAX: usize = 8;
pub(crate) const USER_ASKERS_MAX: usize = 4;
/// How long a request may wait for one of those places, and how long its questions may take after that. The last one may
/// take as long as one does.
pub(crate) const ASKING_MAX: Duration = Duration::from_secs(10);

/// What one request may still ask.
#[derive(Debug)]
pub(crate) struct Budget {
    until: Instant,
    is_given_up: AtomicBool,
    is_spent: AtomicBool,
    /// One of the places for such requests.
    _place: Share,
}

impl Budget {
    /// What a request of `user` may ask once it has one of `places`; nothing if none is free in time.
    pub async fn begin(places: &Shares, user: &str) -> Option<Self> {
        let place = tokio::time::timeout(ASKING_MAX, places.take(user, 1)).await.ok()??;
        Some(Self::with(place))
    }

    /// The same, if one is free now.
    pub fn try_begin(places: &Shares, user: &str) -> Option<Self> {
        places.try_take(user, 1).map(Self::with)
    }

    fn with(_place: Share) -> Self {
        let until = Instant::now() + ASKING_MAX;
        let (is_given_up, is_spent) = (AtomicBool::new(false), AtomicBool::new(false));
        Budget { until, is_given_up, is_spent, _place }
    }

    /// Whether one more question may be asked.
    pub fn allows_another(&self) -> bool {
        let is_over = self.is_given_up.load(Ordering::Relaxed) || Instant::now() >= self.until;
        self.is_spent.fetch_or(is_over, Ordering::Relaxed);
        !is_over
    }

    /// Whether a question was not asked that should have been.
    pub fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }
}

/// Gives a request up when it is dropped.
#[derive(Debug)]
pub(crate) struct GiveUp(pub Arc<Budget>);

impl Drop for GiveUp {
    fn drop(&mut self) {
        self.0.is_given_up.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_user_has_all_places_of_those_who_ask() {
        let places = Shares::new(ASKERS_MAX, USER_ASKERS_MAX);
        let mut taken = Vec::new();
        for _ in 0..USER_ASKERS_MAX {
            taken.push(Budget::begin(&places, "greedy").await.expect("a place"));
        }
        assert!(Budget::begin(&places, "greedy").await.is_none(), "it has what it may have");
        assert!(Budget::begin(&places, "other").await.is_some());
        taken.clear();
        assert!(Budget::begin(&places, "greedy").await.is_some());
    }
}
