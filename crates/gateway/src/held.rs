//! The bytes of messages that a socket holds for its peers.
//!
//! The library bounds what waits for a peer by a number of messages. How many bytes these are is counted here: a frame
//! counts until the library has dropped it for the last of its peers.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a message waits for peers to take others, before it is dropped.
const WAIT: Duration = Duration::from_secs(1);

/// Counts what a socket holds, and makes messages wait for room.
pub(crate) struct Held {
    bytes: AtomicUsize,
    limit_bytes: usize,
    room: Notify,
}

/// A frame that counts as long as it is there.
struct Frame {
    bytes: Bytes,
    held: Arc<Held>,
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        self.held.bytes.fetch_sub(self.bytes.len(), Ordering::AcqRel);
        self.held.room.notify_one();
    }
}

impl Held {
    /// A socket that holds nothing yet, and at most one message more than so many bytes.
    pub fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(Held { bytes: AtomicUsize::new(0), limit_bytes, room: Notify::new() })
    }

    /// The same bytes, which count from now on.
    pub fn count(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        self.bytes.fetch_add(bytes.len(), Ordering::AcqRel);
        Bytes::from_owner(Frame { bytes, held: Arc::clone(self) })
    }

    /// Waits for room if there is none. False if there is none within a second: then a peer holds what it does not take.
    pub async fn wait_for_room(&self) -> bool {
        tokio::time::timeout(WAIT, async {
            while !self.has_room() {
                self.room.notified().await;
            }
        })
        .await
        .is_ok()
    }

    /// Whether another message may be handed over.
    pub fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Acquire) < self.limit_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_until_the_last_copy_of_a_frame_is_dropped() {
        let held = Held::new(100);
        let first = held.count(Bytes::from(vec![7; 60]));
        assert!(held.has_room());
        let second = held.count(Bytes::from(vec![7; 60]));
        let copy = second.slice(..1);
        drop(second);
        assert!(!held.has_room(), "120 of 100 bytes are held");
        drop(copy);
        assert!(held.has_room());
        drop(first);
        assert_eq!(held.bytes.load(Ordering::Acquire), 0);
    }

    #[tokio::test]
    async fn a_message_waits_for_a_peer_to_take_others() {
        let held = Held::new(100);
        let frame = held.count(Bytes::from(vec![7; 200]));
        let (has_room, ()) = tokio::join!(held.wait_for_room(), async { drop(frame) });
        assert!(has_room);
    }
}
