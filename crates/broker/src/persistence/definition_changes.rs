//! Which of the definitions that the groups of a cluster adopt have changed, and where in the log.
//!
//! A group that says which version it has gets what has changed since. Changes are remembered one by one in memory, as many as
//! there is room for; a group that has an earlier version, or meets a broker that has just been started, gets everything.

use crate::persistence::definition;
use courser_auth::{Record, record};
use courser_store::Lsn;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Changed definitions that are remembered.
const CHANGED_MAX: usize = 4096;

/// How far the definitions have come that groups adopt.
#[derive(Debug, Default)]
pub(crate) struct DefinitionChanges {
    /// Where the log ended behind the last change. Others read it with nothing locked.
    version: Arc<AtomicU64>,
    /// What has changed up to here is not in `changed`.
    since: Lsn,
    /// Where the log ended behind the last change of each, by their keys.
    changed: BTreeMap<Vec<u8>, Lsn>,
}

impl DefinitionChanges {
    /// Without a change, whose version is kept here.
    pub fn of(version: &Arc<AtomicU64>) -> Self {
        DefinitionChanges { version: Arc::clone(version), ..DefinitionChanges::default() }
    }

    /// Where the log ended behind the last change.
    pub fn version(&self) -> Lsn {
        Lsn(self.version.load(Ordering::Acquire))
    }

    /// Any of them may have changed before this end of the log.
    pub fn restart(&mut self, end: Lsn) {
        self.version.store(end.0, Ordering::Release);
        self.since = end;
        self.changed.clear();
    }

    /// Definitions with these keys were made, changed or forgotten, and the log ends here now. Those that no group adopts are
    /// left out.
    pub fn add(&mut self, keys: impl IntoIterator<Item = Vec<u8>>, end: Lsn) {
        for key in keys.into_iter().filter(|key| is_adopted(key)) {
            self.changed.insert(key, end);
            self.version.store(end.0, Ordering::Release);
        }
        if self.changed.len() > CHANGED_MAX {
            self.forget_older_half();
        }
    }

    fn forget_older_half(&mut self) {
        let mut ends: Vec<Lsn> = self.changed.values().copied().collect();
        ends.sort_unstable();
        self.since = ends[ends.len() / 2];
        self.changed.retain(|_, end| *end > self.since);
    }

    /// What has changed behind a version that a group has; none if that is not known.
    pub fn since(&self, have: Lsn) -> Option<Changes> {
        // A group that has nothing yet has that of no version.
        let is_known = have > Lsn(0) && have >= self.since;
        let later = self.changed.iter().filter(|(_, end)| **end > have);
        is_known.then(|| Changes { since: have, keys: later.map(|(key, _)| key.clone()).collect() })
    }
}

/// Whether groups adopt a definition with this key.
fn is_adopted(key: &[u8]) -> bool {
    Record::owns(key)
        || matches!(key.first(), Some(&(definition::VHOST | definition::GLOBAL_PARAMETER)))
}

/// The definitions that may have changed since a version; all others have not.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Changes {
    /// The version that a group has to have, or a later one.
    pub since: Lsn,
    /// The keys of those that were made, changed or forgotten.
    pub keys: BTreeSet<Vec<u8>>,
}

impl Changes {
    /// The keys of a kind.
    pub fn of_kind(&self, kind: u8) -> impl Iterator<Item = &Vec<u8>> {
        self.keys.iter().filter(move |key| key.first() == Some(&kind))
    }

    /// Whether any user or permission may have changed.
    pub fn concern_accounts(&self) -> bool {
        self.keys.iter().any(|key| key.first() != Some(&definition::GLOBAL_PARAMETER))
    }

    pub fn concern_vhost(&self, name: &str) -> bool {
        self.keys.contains(&definition::vhost_key(name))
    }

    /// Whether a user or permission may have changed. All permissions of a user or a vhost may have that is made, deleted or
    /// moved itself.
    pub fn concern_account(&self, account: &Record) -> bool {
        let of = |user: &str, vhost: &str| {
            self.concern_vhost(vhost) || self.keys.contains(&record::user_key(user))
        };
        self.keys.contains(&account.key())
            || match account {
                Record::User(_) | Record::UserDeleted(_) => false,
                Record::Permission { user, vhost, .. }
                | Record::TopicPermission { user, vhost, .. } => of(user, vhost),
            }
    }
}
