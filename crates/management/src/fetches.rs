//! The memory for messages on their way to clients. All requests that show messages share it, for as
//! long as their answers are not sent.

use crate::refusal::Refusal;
use crate::reply::Reply;
use bytes::Bytes;
use hyper::StatusCode;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that all of them have together.
const BYTES_MAX: usize = 256 << 20;
/// How long a request waits for its share.
const PATIENCE: Duration = Duration::from_secs(5);

/// The memory that there is.
#[derive(Debug)]
pub(crate) struct Fetches {
    /// One permit a byte.
    room: Arc<Semaphore>,
    bytes_max: usize,
    patience: Duration,
}

/// The share of a request.
#[derive(Debug)]
pub(crate) struct Fetch {
    share: OwnedSemaphorePermit,
}

/// An answer with its share of the memory.
struct Held {
    text: Vec<u8>,
    _share: OwnedSemaphorePermit,
}

impl Default for Fetches {
    fn default() -> Self {
        Fetches::new(BYTES_MAX, PATIENCE)
    }
}

impl Fetches {
    fn new(bytes_max: usize, patience: Duration) -> Self {
        Fetches { room: Arc::new(Semaphore::new(bytes_max)), bytes_max, patience }
    }

    /// A share for at most so many bytes. Waits for it, on a thread that may be blocked.
    pub fn begin(&self, bytes_max: usize) -> Result<Fetch, Refusal> {
        let share = bytes_max.min(self.bytes_max);
        let share = Arc::clone(&self.room).acquire_many_owned(share as u32);
        let waiting = async { tokio::time::timeout(self.patience, share).await };
        match Handle::current().block_on(waiting) {
            Ok(Ok(share)) => Ok(Fetch { share }),
            Ok(Err(_)) => Err(Refusal::internal("the broker ends")),
            Err(_) => Err(self.busy()),
        }
    }

    fn busy(&self) -> Refusal {
        let reason = format!(
            "messages on their way to other clients fill the {} MiB that there are for them; \
             nothing was taken: try again later, or with a smaller count or truncate",
            self.bytes_max >> 20
        );
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", reason)
    }
}

impl Fetch {
    /// The answer. It keeps as much of the share as it needs until it is sent.
    pub fn reply(mut self, value: &impl Serialize) -> Reply {
        let text = serde_json::to_vec(value).unwrap_or_default();
        let unused = self.share.num_permits().saturating_sub(text.len());
        drop(self.share.split(unused));
        let held = Held { text, _share: self.share };
        Reply::text(Bytes::from_owner(held), "application/json")
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Body;

    /// On a thread that may be blocked.
    async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        tokio::task::spawn_blocking(work).await.expect("it comes to an end")
    }

    fn fetches() -> Arc<Fetches> {
        Arc::new(Fetches::new(1000, Duration::from_millis(20)))
    }

    #[tokio::test]
    async fn who_finds_no_room_in_time_is_told_what_to_do() {
        let fetches = fetches();
        blocking(move || {
            let first = fetches.begin(600).expect("room");
            let refused = fetches.begin(600).expect_err("no room");
            assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
            assert!(String::from_utf8_lossy(&refused.to_json()).contains("try again later"));
            drop(first);
            fetches.begin(600).expect("room again");
        })
        .await;
    }

    #[tokio::test]
    async fn an_answer_keeps_what_it_needs_until_it_is_sent() {
        let fetches = fetches();
        blocking(move || {
            let reply = fetches.begin(usize::MAX).expect("all of it").reply(&"x".repeat(298));
            assert_eq!(fetches.room.available_permits(), 700);
            let Body::Text(body, _) = reply.body else { panic!("a body") };
            assert_eq!(body.len(), 300);
            let part = body.slice(299..);
            drop(body);
            assert_eq!(fetches.room.available_permits(), 700);
            drop(part);
            assert_eq!(fetches.room.available_permits(), 1000);
        })
        .await;
    }
}
