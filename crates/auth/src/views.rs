//! Views of users, as long as they are in use, and a while longer: a request over HTTP asks for one, and the next request
//! for the same one.

use crate::view::View;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

/// Views beyond which those that are not in use any more are looked for.
const VIEWS_BEFORE_CLEANING: usize = 64;
/// Patterns of the views that are kept though they are not in use. One view is kept however many it has.
const PATTERNS_KEPT_MAX: usize = 1024;

/// What is compiled, by user and vhost.
#[derive(Default)]
pub(crate) struct Views {
    by_user: HashMap<(String, String), Known>,
    clean_at: usize,
    /// The last one is the newest.
    kept: VecDeque<Arc<View>>,
    kept_patterns: usize,
}

struct Known {
    view: Weak<View>,
    /// The generation of which it is true at least.
    seen: u64,
}

impl Views {
    /// What is known of a user in a vhost, and the generation of which that is true at least.
    pub fn get(&self, key: &(String, String)) -> Option<(u64, Arc<View>)> {
        let known = self.by_user.get(key)?;
        known.view.upgrade().map(|view| (known.seen, view))
    }

    /// Takes note of what is true of that generation. Returns what is not kept any more, to be dropped without a lock.
    #[must_use]
    pub fn keep(&mut self, key: (String, String), seen: u64, view: &Arc<View>) -> Vec<Arc<View>> {
        if self.by_user.get(&key).is_some_and(|known| known.seen > seen) {
            // Another thread has looked later.
            return Vec::new();
        }
        if self.by_user.len() >= self.clean_at.max(VIEWS_BEFORE_CLEANING) {
            self.by_user.retain(|_, known| known.view.strong_count() > 0);
            self.clean_at = self.by_user.len() * 2;
        }
        let before = self.by_user.insert(key, Known { view: Arc::downgrade(view), seen });
        let before = before.and_then(|known| self.position(&known.view));
        let mut dropped = Vec::new();
        if let Some(at) = before {
            if Arc::ptr_eq(&self.kept[at], view) {
                return dropped;
            }
            dropped.extend(self.kept.remove(at));
        }
        self.kept.push_back(Arc::clone(view));
        let gone: usize = dropped.iter().map(|view| view.patterns()).sum();
        self.kept_patterns = self.kept_patterns + view.patterns() - gone;
        while self.kept_patterns > PATTERNS_KEPT_MAX && self.kept.len() > 1 {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.kept_patterns -= oldest.patterns();
            dropped.push(oldest);
        }
        dropped
    }

    fn position(&self, view: &Weak<View>) -> Option<usize> {
        self.kept.iter().position(|kept| Arc::as_ptr(kept) == view.as_ptr())
    }
}
