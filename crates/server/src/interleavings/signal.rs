//! What tasks are told.

use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::watch;

/// A word that tasks wait for. They are told one after the other: tokio wakes those that share a channel in an order that no
/// seed determines.
pub(super) struct Signal(Mutex<State>);

struct State {
    word: bool,
    channels: Vec<Arc<watch::Sender<bool>>>,
}

impl Signal {
    pub fn new(word: bool) -> Self {
        Signal(Mutex::new(State { word, channels: Vec::new() }))
    }

    pub fn subscribe(&self) -> watch::Receiver<bool> {
        self.channel().subscribe()
    }

    /// A channel for one task.
    pub fn channel(&self) -> Arc<watch::Sender<bool>> {
        let mut state = self.0.lock();
        let channel = Arc::new(watch::Sender::new(state.word));
        state.channels.push(Arc::clone(&channel));
        channel
    }

    pub fn send(&self, word: bool) {
        let mut state = self.0.lock();
        state.word = word;
        state.channels.retain(|channel| {
            channel.send_replace(word);
            Arc::strong_count(channel) > 1 || channel.receiver_count() > 0
        });
    }
}
