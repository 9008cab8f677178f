//! What the log of a shard is told of definitions: of those that are gone before those that come.

use crate::shard::Shard;
use courser_store::{Lsn, Position, Record, StoreError, Sync};

/// Definitions and queues that one operation removes, to be forgotten together.
#[derive(Default, Debug)]
pub(crate) struct Gone {
    pub keys: Vec<Vec<u8>>,
    pub queues: Vec<u64>,
    /// Positions in the log of messages that go with them, to be let go of once the log knows.
    pub positions: Vec<Position>,
}

impl Gone {
    /// Definitions alone.
    pub fn of_keys(keys: Vec<Vec<u8>>) -> Self {
        Gone { keys, ..Gone::default() }
    }

    fn records(&self) -> Vec<Record<'_>> {
        let forgotten = self.keys.iter().map(|key| Record::Forgotten { key });
        let dropped = self.queues.iter().map(|queue| Record::Dropped { queue: *queue });
        forgotten.chain(dropped).collect()
    }
}

impl Shard {
    /// Appends changes of definitions, behind the removals that found no room before: what has the name of something that is
    /// gone shall not have what was that one's after a restart. All definitions come this way. Returns the LSN at which they
    /// survive.
    pub fn define(&self, records: &[Record<'_>]) -> Result<Lsn, StoreError> {
        let append =
            |records: &[Record<'_>], sync| self.store.append(records, sync, &mut Vec::new());
        let mut unlogged = self.unlogged.lock();
        if unlogged.is_empty() {
            drop(unlogged);
            return append(records, Sync::Wanted);
        }
        // To find that out from the store would take all of them each time.
        if !self.store.has_room() {
            return Err(StoreError::Full);
        }
        let before = unlogged.iter().flat_map(Gone::records);
        let all: Vec<_> = before.chain(records.iter().copied()).collect();
        let mut appended = append(&all, Sync::Wanted);
        if let Err(StoreError::TooLarge(_)) = appended {
            // All together they are more than a batch may be.
            while let Some(gone) = unlogged.last() {
                append(&gone.records(), Sync::Later)?;
                unlogged.pop();
            }
            appended = append(records, Sync::Wanted);
        }
        let lsn = appended?;
        *unlogged = Vec::new();
        Ok(lsn)
    }

    /// Tells the log what is gone, all at once; when there is room, if there is none now. Returns the LSN at which it stays gone,
    /// if it is in the log.
    pub fn forget(&self, mut gone: Gone) -> Result<Option<Lsn>, StoreError> {
        let positions = std::mem::take(&mut gone.positions);
        let records = gone.records();
        let appended = if records.is_empty() { Ok(Lsn::default()) } else { self.define(&records) };
        match appended {
            Ok(lsn) => {
                self.store.release(&positions);
                Ok(Some(lsn))
            }
            Err(failed) => {
                let store = self.store.unlogged().filter(|_| matches!(failed, StoreError::Full));
                let Some(store) = store else { return Err(failed) };
                self.unlogged.lock().push(gone);
                store.release(&positions);
                Ok(None)
            }
        }
    }
}
