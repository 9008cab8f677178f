//! The consumers of a queue, and which of them may get the next message.

use super::ChannelId;

/// A consumer, alone on its channel.
#[derive(Clone, Debug)]
pub struct Consumer {
    pub channel: ChannelId,
    /// The higher, the earlier.
    pub priority: i64,
    /// How many messages it may have unacknowledged, 0 for any number.
    pub prefetch: u64,
    /// That is a limit for all of its channel together.
    pub is_global: bool,
    pub no_ack: bool,
    /// How many it has.
    pub in_flight: u64,
    /// Its channel asks for nothing more.
    pub stopped: bool,
}

impl Consumer {
    fn has_credit(&self) -> bool {
        !self.stopped && (self.no_ack || self.prefetch == 0 || self.in_flight < self.prefetch)
    }
}

/// All consumers of a queue, those that came first in front.
#[derive(Clone, Debug, Default)]
pub struct Consumers {
    all: Vec<Consumer>,
    single: Option<Single>,
}

/// One consumer at a time gets messages.
#[derive(Clone, Debug)]
struct Single {
    /// A higher priority takes over, once the active consumer has nothing unacknowledged.
    by_priority: bool,
    active: Option<ChannelId>,
}

impl Consumers {
    pub fn new(single_active: bool, by_priority: bool) -> Self {
        let single = single_active.then_some(Single { by_priority, active: None });
        Consumers { all: Vec::new(), single }
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether one of them acknowledges nothing.
    pub fn take_for_good(&self) -> bool {
        self.all.iter().any(|one| one.no_ack)
    }

    pub fn channels(&self) -> Vec<ChannelId> {
        self.all.iter().map(|one| one.channel).collect()
    }

    pub fn add(&mut self, consumer: Consumer) {
        self.all.push(consumer);
    }

    pub fn remove(&mut self, channel: ChannelId) {
        self.all.retain(|one| one.channel != channel);
        if let Some(single) = self.single.as_mut().filter(|one| one.active == Some(channel)) {
            single.active = None;
        }
    }

    pub fn get_mut(&mut self, channel: ChannelId) -> Option<&mut Consumer> {
        self.all.iter_mut().find(|one| one.channel == channel)
    }

    /// Those of which any may get the next message: of those that have credit all with the highest
    /// priority, as their order is not promised.
    pub fn next(&mut self) -> Vec<Consumer> {
        if self.single.is_some() {
            let active = self.active();
            return active.into_iter().filter(Consumer::has_credit).collect();
        }
        let with_credit = self.all.iter().filter(|one| one.has_credit());
        let priorities = with_credit.clone().map(|one| one.priority);
        // A channel whose limit leaves room again has its turn when those have had theirs that never waited for it.
        let alone = with_credit.clone().filter(|one| !one.is_global).map(|one| one.priority);
        let least = alone.max().or(priorities.max());
        with_credit.filter(|one| Some(one.priority) >= least).cloned().collect()
    }

    /// The single active consumer, unless another one is about to take over.
    fn active(&mut self) -> Option<Consumer> {
        let single = self.single.as_mut()?;
        // The highest priority; of several the one that came first.
        let best = self.all.iter().rev().max_by_key(|one| one.priority)?.clone();
        let Some(active) = single.active else {
            single.active = Some(best.channel);
            return Some(best);
        };
        let at = self.all.iter().position(|one| one.channel == active)?;
        if !single.by_priority || best.priority <= self.all[at].priority {
            return Some(self.all[at].clone());
        }
        if self.all[at].in_flight > 0 {
            return None;
        }
        // It stands by from now on, as the last.
        let deposed = self.all.remove(at);
        self.all.push(deposed);
        single.active = Some(best.channel);
        Some(best)
    }
}
