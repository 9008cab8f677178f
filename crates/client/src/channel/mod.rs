//! Channels: everything but the connection itself happens on one.

mod consume;
mod exchange;
mod options;
mod publish;
mod queue;
mod transaction;

use std::sync::Arc;

use courser_codec::reply_code::REPLY_SUCCESS;
use courser_codec::{FieldTable, Method, ShortString};
use tokio::sync::oneshot;

pub use consume::DEFAULT_PREFETCH;
pub use options::{
    ConsumeOptions, DeleteQueueOptions, ExchangeKind, ExchangeOptions, QueueInfo, QueueOptions,
};

use crate::connection::Handle;
use crate::error::Error;
use crate::route::{ChannelState, Reply};
use crate::shared::CLOSED_BY_OWNER;

/// A channel of a connection. Clones are the same channel; the last one that is dropped closes it.
///
/// Functions that ask something of the server wait for its answer. An error of the server's closes the channel: then
/// everything on it fails with [`Error::ChannelClosed`], and a new channel has to be opened. Requests can be made from
/// several tasks at once; the server handles them in their order.
#[derive(Clone)]
pub struct Channel {
    inner: Arc<Inner>,
}

struct Inner {
    handle: Arc<Handle>,
    state: Arc<ChannelState>,
    frame_max: u32,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.state.check_open().is_ok() {
            let number = self.state.number;
            self.handle.shared().change(|core| {
                core.machine.close_channel(number, REPLY_SUCCESS, CLOSED_BY_OWNER);
            });
        }
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("number", &self.number()).finish_non_exhaustive()
    }
}

impl Channel {
    /// Opens a channel on a connection.
    pub(crate) async fn open(handle: Arc<Handle>) -> Result<Self, Error> {
        let (opening, opened) = oneshot::channel();
        let (state, frame_max) = handle.shared().change(|core| {
            core.open_channel(opening).map(|state| (state, core.machine.frame_max()))
        })?;
        let channel = Self { inner: Arc::new(Inner { handle, state, frame_max }) };
        opened.await.map_err(|_| channel.gone())?;
        Ok(channel)
    }

    /// Its number on the connection.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.inner.state.number
    }

    /// Whether it can be used.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.inner.state.check_open().is_ok()
    }

    /// Closes the channel. Confirms under way are waited for, at most as long as
    /// [`Options::close_timeout`](crate::Options::close_timeout); consumers end, and messages that were not acknowledged
    /// go back to their queues.
    ///
    /// # Errors
    /// When the channel was closed before for another reason. [`Error::NotConfirmed`] when it is closed, and the server
    /// has not answered all that was published.
    pub async fn close(&self) -> Result<(), Error> {
        let shared = self.shared();
        // What is not confirmed by then stays unknown; the futures of those publishes say so.
        let settled = tokio::time::timeout(shared.close_timeout, self.wait_for_confirms()).await;
        let count = if settled.is_ok() { 0 } else { self.unconfirmed() };
        self.state().check_open()?;
        let ended = shared.change(|core| {
            core.machine.close_channel(self.number(), REPLY_SUCCESS, CLOSED_BY_OWNER);
            core.route(self.number()).map(|route| {
                let consumers = route.consumers.values();
                let receivers: Vec<_> = consumers.map(|one| one.receiver.clone()).collect();
                (receivers, route.returns.clone())
            })
        });
        // Nothing comes any more, and what they hold must not keep the answer from being read.
        if let Some((receivers, returns)) = ended {
            receivers.iter().for_each(|receiver| receiver.end_with_channel(None));
            returns.iter().for_each(|returns| returns.end(None));
        }
        loop {
            let settled = self.state().settled.notified();
            if !self.is_open() {
                break;
            }
            settled.await;
        }
        match self.state().error() {
            Error::ChannelClosed { reason, .. } if reason.code == REPLY_SUCCESS => match count {
                0 => Ok(()),
                count => Err(Error::NotConfirmed { count }),
            },
            error => Err(error),
        }
    }

    /// Largest frame of the connection in bytes.
    pub(crate) fn frame_max(&self) -> u32 {
        self.inner.frame_max
    }

    pub(crate) fn state(&self) -> &Arc<ChannelState> {
        &self.inner.state
    }

    pub(crate) fn shared(&self) -> &Arc<crate::shared::Shared> {
        self.inner.handle.shared()
    }

    /// Why an answer has not come.
    fn gone(&self) -> Error {
        self.shared().inspect(|core| core.channel_error(self.state()))
    }

    /// Sends a request and waits for its answer, a method with these ids.
    async fn ask(&self, method: &Method<'_>, expects: (u16, u16)) -> Result<Reply, Error> {
        let answer = self.shared().change(|core| core.ask(self.state(), method, expects))?;
        answer.await.map_err(|_| self.gone())
    }

    /// Sends something that has no answer.
    fn tell(&self, method: &Method<'_>) -> Result<(), Error> {
        self.shared().change(|core| core.send(self.state(), method))
    }
}

/// A table as methods carry it.
fn encode(arguments: &FieldTable) -> Vec<u8> {
    arguments.to_entries()
}

/// A name in an answer as text; what is not UTF-8 is replaced.
fn text(name: &ShortString) -> String {
    name.to_string()
}
