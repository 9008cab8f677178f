//! What tasks are told.

use parking_lot::Mutex;
use tokio::sync::watch;

/// A word that tasks wait for. They are told one after the other: tokio wakes those that share a channel in an order that no
/// seed determines.
pub(super) struct Signal(Mutex<State>);

struct State {
    word: bool,
    channels: Vec<watch::Sender<bool>>,
}

impl Signal {
    pub fn new(word: bool) -> Self {
        Signal(Mutex::new(State { word, channels: Vec::new() }))
    }

    pub fn subscribe(&self) -> watch::Receiver<bool> {
        let mut state = self.0.lock();
        let (sender, receiver) = watch::channel(state.word);
        state.channels.push(sender);
        receiver
    }

    pub fn send(&self, word: bool) {
        let mut state = self.0.lock();
        state.word = word;
        state.channels.retain(|channel| channel.send(word).is_ok());
    }
}
