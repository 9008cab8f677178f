//! What the peers of an xpub socket subscribe to: which bindings that needs, and how much of it there may be.
//!
//! The socket tells of every subscription of every peer, but not of those that end because a peer has gone. So what it
//! tells only says that something is different; what there is now is read from it as a whole.

use omq_tokio::{Error, MonitorEvent, MonitorRecvError, MonitorStream, Socket};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Different bindings of an endpoint; when there would be more, everything is bound instead, if that is permitted.
const BINDINGS_MAX: usize = 1024;
/// Bytes that a subscription takes besides its prefix, about.
const SUBSCRIPTION_BYTES: usize = 256;
/// Words of a routing key that go into a binding.
const WORDS_MAX: usize = 16;
/// The pattern of every routing key.
pub(crate) const EVERYTHING: &str = "#";

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

    /// Reads them, and gives the patterns of a topic exchange that cover them: [`EVERYTHING`] alone where it is one of
    /// them or there are too many. Unless `may_bind_all`: then without it, and no more than there may be.
    pub async fn read(&mut self, may_bind_all: bool) -> Result<HashSet<String>, Error> {
        let (events, peers) = self.socket.monitor_with_subscriptions().await?;
        self.events = events;
        let prefixes = peers.iter().flat_map(|peer| &peer.prefixes);
        let taken_bytes = prefixes.map(|prefix| cost_bytes(prefix)).sum();
        self.budget.taken_bytes.store(taken_bytes, Ordering::Relaxed);
        let of_peers = peers.iter().map(|peer| peer.prefixes.iter().map(|prefix| &prefix[..]));
        Ok(patterns(of_peers, may_bind_all))
    }
}

/// Takes one of each peer in turn: where there is no room for all, a peer with very many takes it from no other.
fn patterns<'p>(
    peers: impl Iterator<Item: Iterator<Item = &'p [u8]>>,
    may_bind_all: bool,
) -> HashSet<String> {
    // With one more, they are too many.
    let most = if may_bind_all { BINDINGS_MAX + 1 } else { BINDINGS_MAX };
    let mut patterns = HashSet::new();
    let mut peers: Vec<_> = peers.collect();
    while !peers.is_empty() && patterns.len() < most && !patterns.contains(EVERYTHING) {
        peers.retain_mut(|prefixes| {
            let Some(prefix) = prefixes.next() else { return false };
            let pattern = pattern_of(prefix);
            if patterns.len() < most && (may_bind_all || pattern != EVERYTHING) {
                patterns.insert(pattern);
            }
            true
        });
    }
    if patterns.len() > BINDINGS_MAX || patterns.contains(EVERYTHING) {
        return HashSet::from([EVERYTHING.to_owned()]);
    }
    patterns
}

/// A pattern of a topic exchange that matches every key that begins with the prefix: its whole words, and what may come
/// behind them. The last word may go on, so it is left out. A word `#` ends it: it would be a wildcard, and very many of these
/// make it long to find the way of each message that is published.
fn pattern_of(prefix: &[u8]) -> String {
    let text = match std::str::from_utf8(prefix) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&prefix[..error.valid_up_to()]).unwrap_or_default(),
    };
    let mut pattern = String::new();
    let words: Vec<&str> = text.split('.').collect();
    for word in &words[..words.len() - 1] {
        let is_long = pattern.matches('.').count() >= WORDS_MAX || pattern.len() + word.len() > 250;
        if is_long || *word == EVERYTHING {
            break;
        }
        pattern.push_str(word);
        pattern.push('.');
    }
    pattern.push_str(EVERYTHING);
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(peers: &[Vec<String>], may_bind_all: bool) -> HashSet<String> {
        patterns(peers.iter().map(|peer| peer.iter().map(String::as_bytes)), may_bind_all)
    }

    fn many(count: usize) -> Vec<String> {
        (0..count).map(|nth| format!("many.{nth}.")).collect()
    }

    #[test]
    fn too_many_patterns_become_everything_where_that_may_be_bound() {
        assert_eq!(of(&[many(BINDINGS_MAX)], true).len(), BINDINGS_MAX);
        assert_eq!(of(&[many(BINDINGS_MAX + 1)], true), HashSet::from([EVERYTHING.to_owned()]));
        assert_eq!(of(&[many(3), vec![String::new()]], true), HashSet::from(["#".to_owned()]));
    }

    #[test]
    fn a_pattern_covers_whole_words_and_has_one_wildcard_for_many() {
        let patterns =
            [("", "#"), ("a", "#"), ("a.", "a.#"), ("a.b.c", "a.b.#"), ("a.#.b.", "a.#")];
        for (prefix, pattern) in patterns {
            assert_eq!(pattern_of(prefix.as_bytes()), pattern, "{prefix}");
        }
        assert_eq!(pattern_of("x.".repeat(100).as_bytes()), "x.".repeat(WORDS_MAX) + "#");
    }

    #[test]
    fn a_peer_with_too_many_subscriptions_takes_no_room_from_another() {
        let found = of(&[many(5000), vec!["other.".to_owned(), String::new()]], false);
        assert_eq!(found.len(), BINDINGS_MAX);
        assert!(found.contains("other.#"));
        assert!(!found.contains(EVERYTHING));
    }
}
