//! The messages of a queue that wait for a consumer, in the queue's order.

use super::backlog::{Backlog, Logged};
use super::priority::{Levels, Ranks};
use crate::memory::Charge;
use courser_store::{Location, MessageRef};

/// What waits: one line, or one for each priority if the queue looks at them.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    backlog: Backlog,
    /// There for a queue with priorities, which leaves `line` empty.
    levels: Option<Box<Levels>>,
}

impl Ready {
    /// Nothing waits. What it uses is counted by `charge`.
    pub fn new(ranks: Option<Ranks>, charge: Charge) -> Self {
        let levels = ranks.map(|ranks| Box::new(Levels::new(ranks, charge.another())));
        Ready { backlog: Backlog::starting_at(0, charge), levels }
    }

    /// Whether the place of a message depends on its priority.
    #[inline]
    pub fn has_levels(&self) -> bool {
        self.levels.is_some()
    }

    /// The level of a message; 0 in a queue without priorities.
    #[inline]
    pub fn rank(&self, message: Option<MessageRef<'_>>) -> u8 {
        match (&self.levels, message) {
            (Some(levels), Some(message)) => levels.rank(&message),
            _ => 0,
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.levels.as_ref().map_or_else(|| self.backlog.len(), |levels| levels.len())
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.backlog.is_empty() && self.levels.as_ref().is_none_or(|levels| levels.len() == 0)
    }

    /// The number for a message that is handed out without ever lying here.
    #[inline]
    pub fn pass_by<'m>(&mut self, message: impl FnOnce() -> Option<MessageRef<'m>>) -> u64 {
        match &mut self.levels {
            None => self.backlog.pass_by(),
            Some(levels) => {
                let rank = message().map_or(0, |message| levels.rank(&message));
                levels.pass_by(rank)
            }
        }
    }

    /// Adds a new message at the end of its level.
    #[inline]
    pub fn push(&mut self, location: Location, rank: u8) {
        match &mut self.levels {
            None => self.backlog.push(location),
            Some(levels) => levels.push(location, rank),
        }
    }

    /// Puts a message back where it was.
    pub fn put_back(&mut self, sequence: u64, location: Location) {
        match &mut self.levels {
            None => self.backlog.put_back(sequence, location),
            Some(levels) => levels.put_back(sequence, location),
        }
    }

    /// The message whose turn it is, and its number.
    #[inline]
    pub fn front(&self) -> Option<(u64, &Location)> {
        match &self.levels {
            None => self.backlog.front(),
            Some(levels) => levels.front(),
        }
    }

    /// Takes the message whose turn it is, and its number.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, Location)> {
        match &mut self.levels {
            None => self.backlog.pop(),
            Some(levels) => levels.pop(),
        }
    }

    /// Takes everything. The caller drops it, better without the queue's lock.
    pub fn take_all(&mut self) -> Ready {
        let levels = self.levels.as_mut().map(|levels| Box::new(levels.take_all()));
        Ready { backlog: self.backlog.take_all(), levels }
    }

    /// Calls `each` with the place of every message.
    pub fn for_each(&self, each: &mut dyn FnMut(&Location)) {
        self.backlog.for_each(each);
        if let Some(levels) = &self.levels {
            levels.for_each(each);
        }
    }

    /// The numbers and places of the messages whose turn it is next, `count` at most, behind `skip`
    /// others.
    pub fn first(&self, skip: usize, count: usize) -> Vec<(u64, Location)> {
        let mut found = Vec::new();
        let mut left = skip;
        match &self.levels {
            None => self.backlog.first(&mut left, count, &mut found),
            Some(levels) => levels.first(&mut left, count, &mut found),
        }
        found
    }

    /// The same, those of each priority by themselves.
    pub fn lines(&self) -> Vec<Logged> {
        match &self.levels {
            None => vec![Logged::line(&self.backlog)],
            Some(levels) => levels.lines(),
        }
    }

    /// Where the messages are that are in the log, to be looked at without the queue's lock.
    pub fn logged(&self) -> Logged {
        let mut logged = Logged::default();
        self.backlog.add_logged(&mut logged);
        if let Some(levels) = &self.levels {
            levels.add_logged(&mut logged);
        }
        logged
    }
}
