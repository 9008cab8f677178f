//! Where messages go, and what waits for its time on the way.

use super::Publish;
use super::deduplication::Marks;
use crate::topology::{HashKey, LOG, OTHER, SPILL, WORK};
use std::collections::BTreeMap;

/// Where a message is published, and with which key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Path {
    /// The default exchange, by the name of the queue under test.
    #[default]
    Name,
    /// The same, by the name of the queue beside it.
    Other,
    /// The direct exchange that most queues are bound to.
    Direct,
    /// The same with a key that nothing is bound with.
    Unbound,
    /// An exchange that is bound to the direct one.
    Chain,
    /// A consistent hash over two queues.
    Hash(HashKey),
    /// An exchange that delays what asks for it.
    Later,
    /// An exchange that comes and goes.
    Brief,
}

/// A message that waits for its time.
#[derive(Clone, Debug)]
struct Delayed {
    due_ms: u64,
    publish: Publish,
}

/// What exchanges have and remember.
#[derive(Clone, Debug, Default)]
pub struct Exchanges {
    pub has_alternate: bool,
    /// The exchange that delays leads to the direct one, and not to the queues themselves.
    pub delays_in_front: bool,
    /// The exchange that comes and goes is there.
    pub has_brief: bool,
    /// Which queue gets the messages with a key, as was seen.
    pub hashed: BTreeMap<HashKey, &'static str>,
    marks: Option<Marks>,
    delayed: Vec<Delayed>,
}

impl Exchanges {
    /// The direct exchange remembers so many marks.
    pub fn remember(&mut self, marks: Option<usize>) {
        self.marks = marks.map(Marks::new);
    }

    /// The queues that a message goes to, of those that are there.
    pub fn route(
        &self,
        path: Path,
        has_more_keys: bool,
        exists: impl Fn(&str) -> bool,
    ) -> Vec<&'static str> {
        let mut queues = match path {
            Path::Name => vec![WORK],
            Path::Direct | Path::Chain => vec![WORK, LOG],
            Path::Later if self.delays_in_front => vec![WORK, LOG],
            Path::Later => vec![WORK],
            Path::Unbound => Vec::new(),
            Path::Hash(key) => self.hashed.get(&key).copied().into_iter().collect(),
            Path::Other | Path::Brief => vec![OTHER],
        };
        if has_more_keys && (path == Path::Name || self.passes_direct(path)) {
            queues.push(OTHER);
        }
        queues.retain(|queue| exists(queue));
        if queues.is_empty() && self.has_alternate && self.passes_direct(path) {
            queues.push(SPILL);
        }
        queues.sort_unstable();
        queues
    }

    /// Whether a message passes the direct exchange.
    fn passes_direct(&self, path: Path) -> bool {
        matches!(path, Path::Direct | Path::Unbound | Path::Chain)
            || path == Path::Later && self.delays_in_front
    }

    /// Whether an exchange on the way remembers marks.
    pub fn has_marks(&self, path: Path) -> bool {
        self.marks.is_some() && self.passes_direct(path)
    }

    /// Whether it has had a message with this mark.
    pub fn has_had(&self, mark: u8) -> bool {
        self.marks.as_ref().is_some_and(|marks| marks.has(mark))
    }

    /// A message was taken in by all that it went to.
    pub fn remember_mark(&mut self, mark: u8) {
        self.marks.iter_mut().for_each(|marks| marks.remember(mark));
    }

    /// A message waits until then, and goes on as any other.
    pub fn delay(&mut self, publish: &Publish, due_ms: u64) {
        let publish = Publish { delay_ms: None, mandatory: false, ..publish.clone() };
        self.delayed.push(Delayed { due_ms, publish });
    }

    pub fn delayed_len(&self) -> usize {
        self.delayed.len()
    }

    pub fn next_ms(&self) -> Option<u64> {
        self.delayed.iter().map(|one| one.due_ms).min()
    }

    /// Takes what is due: by its time, and then in the order of publishing.
    pub fn take_due(&mut self, now_ms: u64) -> Vec<Publish> {
        let mut due = Vec::new();
        for one in std::mem::take(&mut self.delayed) {
            if one.due_ms <= now_ms { due.push(one) } else { self.delayed.push(one) }
        }
        due.sort_by_key(|one| one.due_ms);
        due.into_iter().map(|one| one.publish).collect()
    }

    /// The broker starts again: what is persistent waits on, and nothing is remembered.
    pub fn restart(&mut self, marks: Option<usize>) {
        self.delayed.retain(|one| one.publish.message.persistent);
        self.remember(marks);
    }
}
