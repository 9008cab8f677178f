//! What the log of a shard is told of definitions: of those that are gone before those that come.

use crate::gate;
use crate::shard::Shard;
use courser_store::critical::{self, Work};
use courser_store::{Lsn, Position, Record, Store, StoreError, Sync, blocking};
use std::fmt::Debug;
use std::time::Duration;

/// Bytes of removals that go into the log at once. Behind more of them, what others append would be durable only much later.
const PART_BYTES: usize = 4 << 20;

/// Positions that are released together.
const RELEASED_AT_ONCE: usize = 1 << 14;

/// How often a log that is behind is asked whether it still is, and how many times.
const ASKED_EVERY: Duration = Duration::from_millis(1);
const ASKED_MAX: u32 = 100;

/// Waits for a while until the log takes more without holding up others that append.
pub(crate) fn wait_for_log(store: &dyn Store) {
    critical::check(Work::Room);
    let has_to_wait = || store.is_behind() && store.failure().is_none();
    if has_to_wait() {
        blocking::wait(|| {
            for _ in 0..ASKED_MAX {
                std::thread::sleep(ASKED_EVERY);
                if !has_to_wait() {
                    break;
                }
            }
        });
    }
}

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

    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.bindings.is_empty() && self.queues.is_empty()
    }

    /// Takes in what another operation removes.
    fn add(&mut self, other: Gone) {
        self.keys.extend(other.keys);
        self.bindings.extend(other.bindings);
        self.queues.extend(other.queues);
        self.left.extend(other.left);
    }

    /// The records of all that, in batches of a bounded size. After a crash between two of them, no binding is left without its
    /// exchange, and no queue without its messages; what was removed first, with which the others went, is there until the last.
    fn parts(&self) -> Vec<Vec<Record<'_>>> {
        let keys = self.bindings.iter().chain(self.keys.iter().rev());
        let forgotten = keys.map(|key| Record::Forgotten { key });
        let dropped = self.queues.iter().map(|queue| Record::Dropped { queue: *queue });
        let (mut parts, mut bytes) = (Vec::new(), PART_BYTES);
        for record in forgotten.chain(dropped) {
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
        parts
    }
}

impl Shard {
    /// Appends changes of definitions, behind the removals that found no room before: what has the name of something that is
    /// gone shall not have what was that one's after a restart. All definitions come this way. Returns the LSN at which they
    /// survive.
    pub fn define(&self, records: &[Record<'_>]) -> Result<Lsn, StoreError> {
        gate::assert_inside("a definition changes");
        let mut unlogged = self.unlogged.lock();
        if !unlogged.is_empty() {
            // To find that out from the store would take all of them each time.
            if !self.store.has_room() {
                return Err(StoreError::Full);
            }
            self.append_parts(&unlogged.parts(), |part| self.append_definitions(part))?;
            *unlogged = Gone::default();
        }
        drop(unlogged);
        self.append_definitions(records)
    }

    fn append_definitions(&self, records: &[Record<'_>]) -> Result<Lsn, StoreError> {
        let lsn = self.store.append(records, Sync::Wanted, &mut Vec::new())?;
        self.defined.reach(lsn);
        Ok(lsn)
    }

    /// Appends one part after the other. Where there are several, what others append gets its turn between them.
    fn append_parts(
        &self,
        parts: &[Vec<Record<'_>>],
        append: impl Fn(&[Record<'_>]) -> Result<Lsn, StoreError>,
    ) -> Result<Lsn, StoreError> {
        let mut lsn = Lsn::default();
        for part in parts {
            if parts.len() > 1 {
                wait_for_log(&*self.store);
            }
            lsn = append(part)?;
        }
        Ok(lsn)
    }

    /// Tells the log what is gone: when there is room, if there is none now. Returns the LSN at which it stays gone, if it is
    /// in the log.
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
        let appended = self.append_parts(&gone.parts(), |part| self.define(part));
        match appended {
            Ok(lsn) => {
                told(lsn);
                let_go(left, &mut |positions| self.store.release(positions));
                Ok(Some(lsn))
            }
            Err(failed) => {
                let store = self.store.unlogged().filter(|_| matches!(failed, StoreError::Full));
                let Some(store) = store else { return Err(failed) };
                self.unlogged.lock().add(gone);
                drop(told);
                let_go(left, &mut |positions| store.release(positions));
                Ok(None)
            }
        }
    }
}
