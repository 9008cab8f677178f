//! Publisher confirms as futures.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::error::Error;
use crate::route::ChannelState;

/// What the server says to a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The server has taken the message over (`basic.ack`). A mandatory one that no queue took has come back before.
    Ack,
    /// The server has refused the message (`basic.nack`).
    Nack,
    /// The channel is not in confirm mode; nothing is known.
    NotRequested,
}

impl Confirmation {
    /// Whether the server has taken the message over.
    #[must_use]
    pub fn is_ack(self) -> bool {
        self == Self::Ack
    }
}

/// The confirm of one publish, to come. Resolves at once when the channel is not in confirm mode.
///
/// It need not be awaited: publish many messages and keep the confirms, or drop them and ask
/// [`Channel::wait_for_confirms`](crate::Channel::wait_for_confirms).
#[derive(Debug)]
pub struct Confirm {
    waiting: Option<Waiting>,
}

struct Waiting {
    receiver: oneshot::Receiver<Confirmation>,
    state: Arc<ChannelState>,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "on channel {}", self.state.number)
    }
}

impl Confirm {
    pub(crate) fn not_requested() -> Self {
        Self { waiting: None }
    }

    pub(crate) fn new(receiver: oneshot::Receiver<Confirmation>, state: Arc<ChannelState>) -> Self {
        Self { waiting: Some(Waiting { receiver, state }) }
    }
}

impl Future for Confirm {
    /// The error says why the channel was closed before the server had answered.
    type Output = Result<Confirmation, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(waiting) = &mut self.waiting else {
            return Poll::Ready(Ok(Confirmation::NotRequested));
        };
        Pin::new(&mut waiting.receiver)
            .poll(cx)
            .map(|answer| answer.map_err(|_| waiting.state.error()))
    }
}
