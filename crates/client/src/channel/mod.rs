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

pub use options::{
    ConsumeOptions, DeleteQueueOptions, ExchangeKind, ExchangeOptions, QueueInfo, QueueOptions,
};

use crate::connection::Handle;
use crate::error::Error;
use crate::route::{ChannelState, Reply};

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
                core.machine.close_channel(number, REPLY_SUCCESS, "closed by its owner");
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
    /// When the channel was closed before for another reason.
    pub async fn close(&self) -> Result<(), Error> {
        let shared = self.shared();
        // What is not confirmed by then stays unknown; the futures of those publishes say so.
        let _ = tokio::time::timeout(shared.close_timeout, self.wait_for_confirms()).await;
        self.state().check_open()?;
        let receivers = shared.change(|core| {
            core.machine.close_channel(self.number(), REPLY_SUCCESS, "closed by its owner");
            let route = core.route(self.number());
            route.map(|route| route.consumers.values().cloned().collect::<Vec<_>>())
        });
        // Nothing comes any more, and what they hold must not keep the answer from being read.
        receivers.iter().flatten().for_each(|receiver| receiver.end(None));
        loop {
            let settled = self.state().settled.notified();
            if !self.is_open() {
                break;
            }
            settled.await;
        }
        match self.state().error() {
            Error::ChannelClosed { reason, .. } if reason.code == REPLY_SUCCESS => Ok(()),
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
