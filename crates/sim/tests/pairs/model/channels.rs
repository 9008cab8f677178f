//! What channels hold: deliveries that they have not settled, and what their transactions have begun.

use super::queue::{Place, Settlement};
use super::{ChannelId, Publish};
use std::collections::{BTreeMap, BTreeSet};

/// A delivery that a channel has not settled.
#[derive(Clone, Debug)]
pub struct Held {
    pub queue: &'static str,
    /// Its place, in a queue that is no stream.
    pub place: Option<Place>,
}

/// What waits for a commit.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    pub publishes: Vec<Publish>,
    /// In the order in which they came.
    pub settled: Vec<(u64, Held, Settlement)>,
}

/// All open channels that hold something.
#[derive(Clone, Debug, Default)]
pub struct Channels {
    held: BTreeMap<ChannelId, BTreeMap<u64, Held>>,
    /// Those that ask for nothing more.
    pub stopped: BTreeSet<ChannelId>,
    /// Those that have not settled what they have from a queue that is gone, or has taken it back: it counts for
    /// their prefetch.
    pub hold_of_gone: BTreeSet<ChannelId>,
    /// Of the one channel that has transactions.
    pub transaction: Transaction,
}

impl Channels {
    pub fn hold(&mut self, channel: ChannelId, tag: u64, held: Held) {
        self.held.entry(channel).or_default().insert(tag, held);
    }

    /// The channels and tags of what is not settled.
    pub fn tags(&self) -> Vec<(ChannelId, u64)> {
        let all = self.held.iter();
        all.flat_map(|(channel, held)| held.keys().map(|tag| (*channel, *tag))).collect()
    }

    /// Takes what has this tag on a channel, or all up to it.
    pub fn take(&mut self, channel: ChannelId, tag: u64, multiple: bool) -> Vec<(u64, Held)> {
        let Some(held) = self.held.get_mut(&channel) else { return Vec::new() };
        if !multiple {
            return held.remove(&tag).into_iter().map(|one| (tag, one)).collect();
        }
        let later = held.split_off(&(tag + 1));
        std::mem::replace(held, later).into_iter().collect()
    }

    /// What was begun since the last commit on a channel is undone.
    pub fn roll_back(&mut self, channel: ChannelId) {
        let Transaction { settled, .. } = std::mem::take(&mut self.transaction);
        settled.into_iter().for_each(|(tag, held, _)| self.hold(channel, tag, held));
    }

    /// Takes everything that a channel holds, settled within a transaction or not.
    pub fn take_all(&mut self, channel: ChannelId, is_transactional: bool) -> Vec<(u64, Held)> {
        self.stopped.remove(&channel);
        self.hold_of_gone.remove(&channel);
        let mut held = self.held.remove(&channel).unwrap_or_default();
        if is_transactional {
            let Transaction { settled, .. } = std::mem::take(&mut self.transaction);
            held.extend(settled.into_iter().map(|(tag, one, _)| (tag, one)));
        }
        held.into_iter().collect()
    }

    /// A queue is gone: what was taken from it can be settled and is nowhere.
    pub fn forget_queue(&mut self, queue: &str) {
        for (channel, held) in &mut self.held {
            let before = held.len();
            held.retain(|_, one| one.queue != queue);
            if held.len() < before {
                self.hold_of_gone.insert(*channel);
            }
        }
        self.transaction.settled.retain(|(_, one, _)| one.queue != queue);
    }

    /// What has this place in a queue has returned from a channel, which may settle it without effect.
    pub fn take_away(&mut self, channel: ChannelId, queue: &str, place: Place) {
        if let Some(held) = self.held.get_mut(&channel) {
            held.retain(|_, one| one.queue != queue || one.place != Some(place));
            self.hold_of_gone.insert(channel);
        }
    }

    pub fn forget_all(&mut self) {
        *self = Channels::default();
    }
}
