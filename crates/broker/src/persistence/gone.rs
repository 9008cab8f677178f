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
        let mut unlogged = self.unlogged.lock();
        let mut all = unlogged.records();
        if all.is_empty() {
            drop(unlogged);
            return self.store.append(records, Sync::Wanted, &mut Vec::new());
        }
        all.extend_from_slice(records);
        let lsn = self.store.append(&all, Sync::Wanted, &mut Vec::new())?;
        *unlogged = Gone::default();
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
                let mut unlogged = self.unlogged.lock();
                unlogged.keys.append(&mut gone.keys);
                unlogged.queues.append(&mut gone.queues);
                drop(unlogged);
                store.release(&positions);
                Ok(None)
            }
        }
    }
}
