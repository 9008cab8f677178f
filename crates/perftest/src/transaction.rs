//! Publishing in transactions.

use courser_client::{Channel, Error};

use crate::clock::now_ns;
use crate::context::Context;
use crate::latency::Recorder;

/// The open transaction of a producer.
pub struct Transaction {
    /// Messages of each transaction.
    size: u64,
    /// When each message in it should have been sent.
    sent_ns: Vec<u64>,
}

impl Transaction {
    /// An empty one, on a channel that becomes transactional.
    ///
    /// # Errors
    /// When the broker refuses.
    pub async fn begin(channel: &Channel, size: u64) -> Result<Self, Error> {
        channel.tx_select().await?;
        Ok(Self { size, sent_ns: Vec::new() })
    }

    /// How many messages it still takes.
    pub fn room(&self) -> u64 {
        self.size - self.len()
    }

    /// How many messages are in it.
    pub fn len(&self) -> u64 {
        self.sent_ns.len() as u64
    }

    /// A message is published in it.
    pub fn add(&mut self, sent_ns: u64) {
        self.sent_ns.push(sent_ns);
    }

    /// The last `count` messages were not published after all.
    pub fn withdraw(&mut self, count: u64) {
        self.sent_ns.truncate((self.len() - count) as usize);
    }

    /// Commits it, and counts its messages as confirmed. The end of the time to drain ends the wait for the broker's
    /// answer; says whether that has come.
    ///
    /// # Errors
    /// When the channel is closed before the broker has answered.
    pub async fn commit(
        &mut self,
        channel: &Channel,
        context: &Context,
        latency: &Recorder,
    ) -> Result<bool, Error> {
        tokio::select! {
            committed = channel.tx_commit() => committed?,
            () = context.draining_over() => return Ok(false),
        }
        let now_ns = now_ns();
        let measured_from_ns = context.counters.measuring_from_ns();
        context.counters.confirmed.add(self.len(), now_ns);
        let mut recording = latency.lock();
        for sent_ns in self.sent_ns.drain(..).filter(|sent_ns| *sent_ns >= measured_from_ns) {
            recording.add(now_ns.saturating_sub(sent_ns));
        }
        Ok(true)
    }
}
