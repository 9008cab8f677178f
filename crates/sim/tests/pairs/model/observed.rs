//! What clients were sent in the course of one operation: the model takes out of it what it expects,
//! and nothing may be left.

use super::ChannelId;
use crate::wire::{Delivery, Heard};
use std::collections::{BTreeMap, VecDeque};

/// What clients were sent and the model has not explained yet.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    deliveries: BTreeMap<ChannelId, VecDeque<Delivery>>,
    /// The channels and bodies of all deliveries, in their order.
    order: Vec<(ChannelId, usize)>,
    empty: usize,
    returned: VecDeque<u64>,
    committed: usize,
    /// Confirms and refusals in their order: the number, and whether it was taken.
    confirms: Vec<(u64, bool)>,
    closed: Vec<(ChannelId, String)>,
    cancelled: Vec<ChannelId>,
    /// Nothing gets onto the disk, and what depends on that is not heard of.
    pub nothing_is_durable: bool,
    /// Since it was last asked for, a publish was confirmed all the same.
    pub is_confirmed: bool,
}

impl Observed {
    /// Adds what a connection was sent.
    pub fn add(&mut self, connection: usize, heard: Vec<Heard>) {
        for one in heard {
            match one {
                Heard::Delivery(delivery) => {
                    let channel = (connection, delivery.channel);
                    self.order.push((channel, delivery.bytes));
                    self.deliveries.entry(channel).or_default().push_back(delivery);
                }
                Heard::Empty => self.empty += 1,
                Heard::Returned(id) => self.returned.push_back(id),
                Heard::Committed => self.committed += 1,
                Heard::Confirmed(through) => self.confirms.push((through, true)),
                Heard::Refused(number) => self.confirms.push((number, false)),
                Heard::Closed(number, why) => self.closed.push(((connection, number), why)),
                Heard::Cancelled(number) => self.cancelled.push((connection, number)),
            }
        }
    }

    /// Takes the next delivery on a channel if it is that of message `id`.
    pub fn take_delivery(&mut self, channel: ChannelId, id: u64) -> Option<Delivery> {
        let deliveries = self.deliveries.get_mut(&channel)?;
        deliveries.pop_front_if(|delivery| delivery.id == id)
    }

    /// Whether message `id` was delivered on one of these channels.
    pub fn has_delivery(&self, id: u64, channels: &[ChannelId]) -> bool {
        let of_channels = channels.iter().filter_map(|channel| self.deliveries.get(channel));
        of_channels.flatten().any(|delivery| delivery.id == id)
    }

    /// How many bytes a connection was sent before its first delivery on this channel.
    pub fn bytes_before(&self, channel: ChannelId) -> usize {
        let of_connection =
            self.order.iter().filter(|((connection, _), _)| *connection == channel.0);
        let before = of_connection.take_while(|(one, _)| *one != channel);
        before.map(|(_, bytes)| bytes).sum()
    }

    /// The numbers of deliveries that have died before.
    pub fn letters(&self) -> impl Iterator<Item = u64> {
        let deliveries = self.deliveries.values().flatten();
        deliveries.filter(|delivery| !delivery.deaths.is_empty()).map(|delivery| delivery.id)
    }

    /// There has to be an answer that there is nothing.
    pub fn take_empty(&mut self, queue: &str) -> Result<(), String> {
        let rest = self.empty.checked_sub(1);
        self.empty = rest.ok_or_else(|| format!("basic.get of {queue}, which is empty"))?;
        Ok(())
    }

    /// The next message that came back has to be this one.
    pub fn take_return(&mut self, id: u64) -> Result<(), String> {
        match self.returned.pop_front() {
            Some(found) if found == id => Ok(()),
            found => Err(format!("message {id} should come back, not {found:?}")),
        }
    }

    pub fn take_commit(&mut self) -> Result<(), String> {
        let rest = self.committed.checked_sub(1);
        if rest.is_none() && self.nothing_is_durable {
            return Ok(());
        }
        self.committed = rest.ok_or("a commit is not answered")?;
        Ok(())
    }

    /// Takes the answers to publishes from `first` on: whether each was taken.
    pub fn take_confirms(&mut self, first: u64, count: u64) -> Result<Vec<bool>, String> {
        let confirms = std::mem::take(&mut self.confirms);
        let answer = |number: u64| {
            let refused = confirms.iter().any(|(at, taken)| *at == number && !taken);
            let confirmed = confirms.iter().any(|(through, taken)| *taken && *through >= number);
            match (refused, confirmed) {
                (true, _) => Ok(false),
                (false, true) => Ok(true),
                (false, false) => Err(format!("publish {number} is neither confirmed nor refused")),
            }
        };
        (first..first + count).map(answer).collect()
    }

    /// Takes the answers to publishes that there are already.
    pub fn take_early_confirms(&mut self) {
        self.is_confirmed |= std::mem::take(&mut self.confirms).iter().any(|(_, taken)| *taken);
    }

    /// Takes the channels that were closed for a fault.
    pub fn take_closed(&mut self) -> Vec<(ChannelId, String)> {
        std::mem::take(&mut self.closed)
    }

    /// A consumer has to have been told that it is no more.
    pub fn take_cancel(&mut self, channel: ChannelId) -> Result<(), String> {
        let found = self.cancelled.iter().position(|one| *one == channel);
        let at =
            found.ok_or_else(|| format!("{channel:?} does not hear that its queue is gone"))?;
        self.cancelled.remove(at);
        Ok(())
    }

    /// Everything has to have been taken.
    pub fn check_rest(&mut self) -> Result<(), String> {
        self.order.clear();
        self.deliveries.retain(|_, deliveries| !deliveries.is_empty());
        let is_empty = self.deliveries.is_empty() && self.returned.is_empty();
        let is_settled = self.empty == 0 && self.committed == 0 && self.confirms.is_empty();
        if is_empty && is_settled && self.closed.is_empty() && self.cancelled.is_empty() {
            return Ok(());
        }
        Err(format!("clients were sent what nothing explains: {self:?}"))
    }
}
