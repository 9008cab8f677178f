//! What the log of a shard is told of definitions: of those that are gone before those that come.

use crate::gate;
use crate::shard::Shard;
use courser_store::{Lsn, Position, Record, StoreError, Sync};
use std::fmt::Debug;

/// Bytes of removals that go into the log at once, where all together are more than it takes.
const PART_BYTES: usize = 1 << 20;

/// Positions that are released together.
const RELEASED_AT_ONCE: usize = 1 << 14;

/// Knows where messages are, maybe very many.
pub(crate) trait HoldsPlaces: Debug + Send {
    /// Calls `each` with the position of every message that is in the log.
    fn for_each_position(&self, each: &mut dyn FnMut(Position));
}

impl HoldsPlaces for Vec<Position> {
    fn for_each_position(&self, each: &mut dyn FnMut(Position)) {
        self.iter().copied().for_each(each);
    }
}

/// Calls `release` with the positions that all of them hold: with some at a time, as all together would take much memory. If there
/// are none, with none.
pub(crate) fn let_go(left: Vec<Box<dyn HoldsPlaces>>, release: &mut dyn FnMut(&[Position])) {
    let mut some = Vec::new();
    for one in left {
        one.for_each_position(&mut |position| {
            some.push(position);
            if some.len() == RELEASED_AT_ONCE {
                release(&some);
                some.clear();
            }
        });
    }
    release(&some);
}

/// Definitions and queues that one operation removes, to be forgotten together.
#[derive(Default, Debug)]
pub(crate) struct Gone {
    pub keys: Vec<Vec<u8>>,
    /// Definitions of bindings, which hang on those.
    pub bindings: Vec<Vec<u8>>,
    pub queues: Vec<u64>,
    /// Messages that go with them, to be let go of once the log knows.
    pub left: Vec<Box<dyn HoldsPlaces>>,
}

impl Gone {
    /// Definitions alone.
    pub fn of_keys(keys: Vec<Vec<u8>>) -> Self {
        Gone { keys, ..Gone::default() }
    }

    fn records(&self) -> Vec<Record<'_>> {
        let dropped = self.queues.iter().map(|queue| Record::Dropped { queue: *queue });
        let keys = self.keys.iter().chain(&self.bindings);
        let forgotten = keys.map(|key| Record::Forgotten { key });
        dropped.chain(forgotten).collect()
    }

    /// The same in batches of a bounded size, bindings first: after a crash between two of them, none is left without its exchange.
    fn parts(&self) -> Vec<Vec<Record<'_>>> {
        let (mut parts, mut bytes) = (vec![Vec::new()], 0);
        for record in self.records() {
            bytes += match record {
                Record::Forgotten { key } => key.len(),
                _ => size_of::<u64>(),
            };
            if bytes > PART_BYTES {
                parts.push(Vec::new());
                bytes = 0;
            }
            parts.last_mut().into_iter().for_each(|part| part.push(record));
        }
        parts.reverse();
        parts
    }
}

impl Shard {
    /// Appends changes of definitions, behind the removals that found no room before: what has the name of something that is
    /// gone shall not have what was that one's after a restart. All definitions come this way. Returns the LSN at which they
    /// survive.
    pub fn define(&self, records: &[Record<'_>]) -> Result<Lsn, StoreError> {
        gate::assert_inside("a definition changes");
        let append = |records: &[Record<'_>], sync| {
            let lsn = self.store.append(records, sync, &mut Vec::new())?;
            self.defined.reach(lsn);
            Ok(lsn)
        };
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
                for part in gone.parts() {
                    append(&part, Sync::Later)?;
                }
                unlogged.pop();
            }
            appended = append(records, Sync::Wanted);
        }
        let lsn = appended?;
        *unlogged = Vec::new();
        Ok(lsn)
    }

    fn define_unless_empty(&self, records: &[Record<'_>]) -> Result<Lsn, StoreError> {
        if records.is_empty() { Ok(Lsn::default()) } else { self.define(records) }
    }

    /// Tells the log what is gone: all at once, if that is not too much; when there is room, if there is none now. Returns the LSN
    /// at which it stays gone, if it is in the log.
    pub fn forget(&self, gone: Gone) -> Result<Option<Lsn>, StoreError> {
        self.forget_and(gone, |_| ())
    }

    /// The same, and calls `told` with the LSN as soon as it is in the log, if it is, before anything is let go of; if there is no
    /// room, `told` is dropped then.
    pub fn forget_and(
        &self,
        mut gone: Gone,
        told: impl FnOnce(Lsn),
    ) -> Result<Option<Lsn>, StoreError> {
        let left = std::mem::take(&mut gone.left);
        let records = gone.records();
        let appended = match self.define_unless_empty(&records) {
            Err(StoreError::TooLarge(_)) => gone
                .parts()
                .iter()
                .try_fold(Lsn::default(), |_, part| self.define_unless_empty(part)),
            appended => appended,
        };
        match appended {
            Ok(lsn) => {
                told(lsn);
                let_go(left, &mut |positions| self.store.release(positions));
                Ok(Some(lsn))
            }
            Err(failed) => {
                let store = self.store.unlogged().filter(|_| matches!(failed, StoreError::Full));
                let Some(store) = store else { return Err(failed) };
                self.unlogged.lock().push(gone);
                drop(told);
                let_go(left, &mut |positions| store.release(positions));
                Ok(None)
            }
        }
    }
}
