//! What the peers of an xpub socket subscribe to: which bindings that needs, and how much of it there may be.
//!
//! The socket tells of every subscription of every peer, but not of those that end because a peer has gone. So what it
//! tells only says that something is different; what there is now is read from it as a whole.

use omq_tokio::{Error, MonitorEvent, MonitorRecvError, MonitorStream, Socket};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Different bindings of an endpoint; when there would be more, everything is bound instead.
const BINDINGS_MAX: usize = 1024;
/// Bytes that a subscription takes besides its prefix, about.
const SUBSCRIPTION_BYTES: usize = 256;
/// Words of a routing key that go into a binding.
const WORDS_MAX: usize = 16;
const EVERYTHING: &str = "#";

/// How much the peers of a socket may subscribe to, together.
#[derive(Debug)]
pub(crate) struct Budget {
    most_bytes: usize,
    /// What was let in, and not taken back when it was last counted.
    taken_bytes: AtomicUsize,
}

impl Budget {
    pub fn new(most_bytes: usize) -> Self {
        Budget { most_bytes, taken_bytes: AtomicUsize::new(0) }
    }

    /// Whether there is room for one more subscription.
    pub fn admits(&self, prefix: &[u8]) -> bool {
        let cost = cost_bytes(prefix);
        self.taken_bytes.fetch_add(cost, Ordering::Relaxed).saturating_add(cost) <= self.most_bytes
    }
}

fn cost_bytes(prefix: &[u8]) -> usize {
    prefix.len() + SUBSCRIPTION_BYTES
}

/// The subscriptions at a socket.
pub(crate) struct Subscriptions<'a> {
    socket: &'a Socket,
    budget: &'a Budget,
    /// What has happened at the socket since they were read.
    events: MonitorStream,
}

impl<'a> Subscriptions<'a> {
    pub fn new(socket: &'a Socket, budget: &'a Budget) -> Self {
        Subscriptions { socket, budget, events: socket.monitor() }
    }

    /// Waits until there may be others than when they were read.
    pub async fn changed(&mut self) -> Result<(), Error> {
        loop {
            match self.events.recv().await {
                Ok(
                    MonitorEvent::SubscribeReceived { .. }
                    | MonitorEvent::UnsubscribeReceived { .. }
                    | MonitorEvent::Disconnected { .. },
                )
                | Err(MonitorRecvError::Lagged(_)) => return Ok(()),
                Ok(_) => {}
                Err(_) => return Err(Error::Closed),
            }
        }
    }

    /// Reads them, and gives the patterns of a topic exchange that cover them.
    pub async fn read(&mut self) -> Result<HashSet<String>, Error> {
        let (events, peers) = self.socket.monitor_with_subscriptions().await?;
        self.events = events;
        let prefixes = || peers.iter().flat_map(|peer| &peer.prefixes);
        let taken_bytes = prefixes().map(|prefix| cost_bytes(prefix)).sum();
        self.budget.taken_bytes.store(taken_bytes, Ordering::Relaxed);
        Ok(patterns(prefixes().map(|prefix| &prefix[..])))
    }
}

fn patterns<'p>(prefixes: impl Iterator<Item = &'p [u8]>) -> HashSet<String> {
    let mut patterns = HashSet::new();
    for prefix in prefixes {
        let pattern = pattern_of(prefix);
        let is_all = pattern == EVERYTHING;
        patterns.insert(pattern);
        if is_all || patterns.len() > BINDINGS_MAX {
            return HashSet::from([EVERYTHING.to_owned()]);
        }
    }
    patterns
}

/// A pattern of a topic exchange that matches every key that begins with the prefix: its whole words, and what may come
/// behind them. The last word may go on, so it is left out.
fn pattern_of(prefix: &[u8]) -> String {
    let text = match std::str::from_utf8(prefix) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&prefix[..error.valid_up_to()]).unwrap_or_default(),
    };
    let mut pattern = String::new();
    let words: Vec<&str> = text.split('.').collect();
    for word in &words[..words.len() - 1] {
        if pattern.matches('.').count() >= WORDS_MAX || pattern.len() + word.len() > 250 {
            break;
        }
        pattern.push_str(word);
        pattern.push('.');
    }
    pattern.push_str(EVERYTHING);
    pattern
}
