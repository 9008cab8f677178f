//! The consumers of a queue, and whose turn it is.

use super::single_active::SingleActive;
use crate::outbox::Outbox;
use std::collections::VecDeque;
use std::sync::Arc;

/// A consumer as its queue sees it.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub outbox: Arc<Outbox>,
    pub channel: u16,
    /// The channel's slot that holds its tag and credit.
    pub slot: u32,
    pub no_ack: bool,
    /// The higher, the earlier (`x-priority`).
    pub priority: i64,
    place: Place,
}

/// Where a consumer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It can take a message.
    Ring,
    /// It has no credit, or its connection has enough to send.
    Blocked,
    /// Another one is the single active consumer.
    Waiting,
}

impl Consumer {
    pub fn new(outbox: Arc<Outbox>, channel: u16, slot: u32, no_ack: bool, priority: i64) -> Self {
        Consumer { outbox, channel, slot, no_ack, priority, place: Place::Ring }
    }
}

/// Consumers by key, and for each priority those that can take a message, in the order of turns.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    all: Vec<Option<Consumer>>,
    count: usize,
    /// Highest priority first; levels without consumers are removed.
    levels: Vec<(i64, VecDeque<u32>)>,
    /// The key of the exclusive consumer, if there is one.
    pub exclusive: Option<u32>,
    /// There if only one consumer at a time is to get messages.
    pub(super) single: Option<Box<SingleActive>>,
}

impl Consumers {
    /// No consumers yet, of which only one at a time will be active if `single` is there.
    pub fn new(single: Option<SingleActive>) -> Self {
        Consumers { single: single.map(Box::new), ..Consumers::default() }
    }

    /// Whether only one consumer at a time gets messages.
    pub fn has_single_active(&self) -> bool {
        self.single.is_some()
    }

    pub fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub fn get(&self, key: u32) -> Option<&Consumer> {
        self.all.get(key as usize)?.as_ref()
    }

    /// Adds a consumer, ready to take messages when it is to get any. Returns its key.
    pub fn add(&mut self, mut consumer: Consumer) -> u32 {
        let priority = consumer.priority;
        if self.single.is_some() {
            consumer.place = Place::Waiting;
        }
        let key = match self.all.iter().position(Option::is_none) {
            Some(free) if self.count < self.all.len() => {
                self.all[free] = Some(consumer);
                free as u32
            }
            _ => {
                self.all.push(Some(consumer));
                (self.all.len() - 1) as u32
            }
        };
        self.count += 1;
        match &mut self.single {
            None => self.level(priority).push_back(key),
            Some(single) => {
                single.add(key);
                self.activate_next();
            }
        }
        key
    }

    /// Removes a consumer. The place of the single active one stays vacant until
    /// [`Consumers::activate_next`], so that what it leaves can return first.
    pub fn remove(&mut self, key: u32) -> Option<Consumer> {
        let consumer = self.all.get_mut(key as usize)?.take()?;
        self.count -= 1;
        if self.exclusive == Some(key) {
            self.exclusive = None;
        }
        if consumer.place == Place::Ring {
            self.level(consumer.priority).retain(|other| *other != key);
        }
        if let Some(single) = &mut self.single {
            single.remove(key);
        }
        self.levels.retain(|(_, turns)| !turns.is_empty());
        Some(consumer)
    }

    /// Removes all consumers.
    pub fn take_all(&mut self) -> Vec<Consumer> {
        let single = self.single.as_deref().map(|single| SingleActive::new(single.by_priority()));
        let none = Consumers::new(single);
        std::mem::replace(self, none).all.into_iter().flatten().collect()
    }

    /// The key of the consumer whose turn it is, and whether it is the only one to choose from.
    #[inline]
    pub fn next(&self) -> Option<(u32, bool)> {
        let (_, turns) = self.levels.first()?;
        Some((*turns.front()?, turns.len() == 1))
    }

    /// Ends the turn of the consumer that [`Consumers::next`] named.
    #[inline]
    pub fn rotate(&mut self) {
        if let Some((_, turns)) = self.levels.first_mut() {
            turns.rotate_left(1);
        }
    }

    /// Takes the consumer that [`Consumers::next`] named out of the ring.
    pub fn block_next(&mut self) {
        let Some((_, turns)) = self.levels.first_mut() else { return };
        if let Some(key) = turns.pop_front()
            && let Some(Some(consumer)) = self.all.get_mut(key as usize)
        {
            consumer.place = Place::Blocked;
        }
        if turns.is_empty() {
            self.levels.remove(0);
        }
    }

    /// Puts a blocked consumer back into the ring, at the end.
    pub fn unblock(&mut self, key: u32) {
        let Some(Some(consumer)) = self.all.get_mut(key as usize) else { return };
        if consumer.place == Place::Blocked {
            self.put_into_ring(key);
        }
    }

    /// Puts the blocked consumers of one connection back into the ring.
    pub fn unblock_outbox(&mut self, outbox: &Arc<Outbox>) {
        for key in 0..self.all.len() {
            if matches!(&self.all[key], Some(one) if one.place == Place::Blocked && Arc::ptr_eq(&one.outbox, outbox))
            {
                self.unblock(key as u32);
            }
        }
    }

    /// Lets a consumer take its turns, as the last one.
    pub(super) fn put_into_ring(&mut self, key: u32) {
        let Some(Some(consumer)) = self.all.get_mut(key as usize) else { return };
        consumer.place = Place::Ring;
        let priority = consumer.priority;
        self.level(priority).push_back(key);
    }

    /// Ends a consumer's turns.
    pub(super) fn leave_ring(&mut self, key: u32, place: Place) {
        let Some(Some(consumer)) = self.all.get_mut(key as usize) else { return };
        consumer.place = place;
        let priority = consumer.priority;
        self.level(priority).retain(|other| *other != key);
        self.levels.retain(|(_, turns)| !turns.is_empty());
    }

    fn level(&mut self, priority: i64) -> &mut VecDeque<u32> {
        let index = match self.levels.binary_search_by(|(level, _)| priority.cmp(level)) {
            Ok(index) => index,
            Err(index) => {
                self.levels.insert(index, (priority, VecDeque::new()));
                index
            }
        };
        &mut self.levels[index].1
    }
}
