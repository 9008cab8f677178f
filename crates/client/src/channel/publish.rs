//! Publishing, confirms, returns.

use std::sync::Arc;

use courser_codec::{Method, RawProperties, basic, confirm};
use tokio::sync::oneshot;

use super::Channel;
use crate::batch::{ConfirmSink, Confirmed, PublishBatch, Sent};
use crate::confirm::Confirm;
use crate::consumer::Returns;
use crate::error::Error;
use crate::mailbox::Mailbox;
use crate::names::{exchange_name, routing_key};
use crate::outgoing::Outgoing;
use crate::shared::{Core, OUTPUT_SOFT_MAX};

/// Confirms that may be waited for on a channel; publishing waits when there are as many.
const UNCONFIRMED_MAX: usize = 65_536;
/// Bytes of returned messages that may wait for the program to take them.
const RETURNS_BUFFER_BYTES: usize = 16 * 1024 * 1024;

impl Channel {
    /// Publishes a message. Gives its confirm to come, if the channel is in confirm mode.
    ///
    /// Waits while the connection has more than 128 KiB to send, while the server has stopped the channel, or while
    /// 65,536 confirms of the channel are outstanding. When this returns, the message is on its way, not with the server.
    ///
    /// # Errors
    /// When the channel is closed, a name is too long, or the properties are too large.
    pub async fn publish(
        &self,
        exchange: &str,
        key: &str,
        message: impl Into<Outgoing<'_>>,
    ) -> Result<Confirm, Error> {
        let message = message.into();
        let publish = basic::Publish {
            exchange: exchange_name(exchange)?,
            routing_key: routing_key(key)?,
            mandatory: message.is_mandatory,
            immediate: false,
        };
        let mut encoded = Vec::new();
        message.properties.encode(&mut encoded);
        let properties = RawProperties::from_encoded(&encoded).unwrap_or_default();
        self.with_room(|core| {
            let number = self.number();
            let (machine, out) = core.for_publishing();
            let seq = machine
                .publish(number, &publish, properties, message.body, out)
                .map_err(|error| Error::from_publish(error, core.channel_error(self.state())))?;
            if seq == 0 {
                return Ok(Confirm::not_requested());
            }
            let (sender, receiver) = oneshot::channel();
            if let Some(route) = core.route(number) {
                route.confirms.futures.push_back((seq, Some(sender)));
            }
            Ok(Confirm::new(receiver, self.state().clone()))
        })
        .await
    }

    /// Hands over all messages of a batch, which is empty then. Waits as [`Channel::publish`] does, but that batches do not
    /// count towards the confirms that may be outstanding: [`Channel::unconfirmed`] says how many are.
    ///
    /// # Errors
    /// When the channel is closed; the batch keeps its messages.
    ///
    /// # Panics
    /// When the batch was made for a channel with another number: its frames say so, and would go astray.
    pub async fn send(&self, batch: &mut PublishBatch) -> Result<Sent, Error> {
        assert_eq!(batch.channel, self.number(), "a batch belongs to the channel it was made for");
        if batch.is_empty() {
            self.state().check_open()?;
            return Ok(Sent { first: 0, last: 0 });
        }
        self.with_room(|core| {
            let count = batch.count;
            let first = core
                .machine
                .count_publishes(self.number(), count)
                .map_err(|error| Error::from_publish(error, core.channel_error(self.state())))?;
            let (_, out) = core.for_publishing();
            if out.is_empty() {
                std::mem::swap(out, &mut batch.frames);
            } else {
                out.extend_from_slice(&batch.frames);
            }
            batch.clear();
            Ok(Sent { first, last: if first == 0 { 0 } else { first + count - 1 } })
        })
        .await
    }

    /// Waits until everything that was published on this connection is written to its stream.
    ///
    /// # Errors
    /// When the connection ends before.
    pub async fn flush(&self) -> Result<(), Error> {
        let shared = self.shared();
        loop {
            let room = shared.room.notified();
            self.state().check_open()?;
            if shared.inspect(|core| core.is_written()) {
                return Ok(());
            }
            room.await;
        }
    }

    /// Does something under the lock as soon as there is room for more to send.
    async fn with_room<R>(
        &self,
        mut publish: impl FnMut(&mut Core) -> Result<R, Error>,
    ) -> Result<R, Error> {
        loop {
            let room = self.shared().room.notified();
            let done = self.shared().change(|core| {
                self.state().check_open()?;
                if core.output_len() > OUTPUT_SOFT_MAX {
                    return Ok(None);
                }
                let may_publish = core.route(self.number()).is_none_or(|route| {
                    route.is_flowing && route.confirms.futures.len() < UNCONFIRMED_MAX
                });
                if may_publish { publish(core).map(Some) } else { Ok(None) }
            })?;
            match done {
                Some(result) => return Ok(result),
                None => room.await,
            }
        }
    }

    /// Puts the channel in confirm mode: the server answers every publish from now on.
    ///
    /// # Errors
    /// 406 on a transactional channel.
    pub async fn confirm_select(&self) -> Result<(), Error> {
        let expects = (confirm::CLASS_ID, confirm::SelectOk::METHOD_ID);
        self.ask(&Method::ConfirmSelect(confirm::Select { nowait: false }), expects).await.map(drop)
    }

    /// Puts the channel in confirm mode and calls `handler` with every range of numbers that the server answers; see
    /// [`batch`](crate::batch). The confirms of [`Channel::publish`] work as well. A handler that was there before is
    /// replaced.
    ///
    /// # Errors
    /// As [`Channel::confirm_select`].
    pub async fn confirm_batches(
        &self,
        handler: impl FnMut(Confirmed) + Send + 'static,
    ) -> Result<(), Error> {
        let sink = Arc::new(ConfirmSink::new(Box::new(handler)));
        let replaced = self.shared().inspect(|core| {
            core.route(self.number()).and_then(|route| route.confirms.sink.replace(sink))
        });
        drop(replaced);
        self.confirm_select().await
    }

    /// Number of publishes that the server has not answered yet.
    #[must_use]
    pub fn unconfirmed(&self) -> u64 {
        self.shared().inspect(|core| core.machine.unconfirmed(self.number()))
    }

    /// Waits until the server has answered every publish of this channel. Gives the number of those that it has refused
    /// since this was asked last.
    ///
    /// # Errors
    /// When the channel is closed before.
    pub async fn wait_for_confirms(&self) -> Result<u64, Error> {
        loop {
            let settled = self.state().settled.notified();
            self.state().check_open()?;
            let nacked = self.shared().inspect(|core| {
                // On a channel that is being closed, nothing is known of them.
                let is_open = core.machine.is_channel_open(self.number());
                let is_settled = is_open && core.machine.unconfirmed(self.number()) == 0;
                let route = core.route(self.number()).filter(|_| is_settled)?;
                Some(std::mem::take(&mut route.confirms.nacked))
            });
            match nacked {
                Some(nacked) => return Ok(nacked),
                None => settled.await,
            }
        }
    }

    /// The mandatory messages of this channel that come back from now on, because no queue took them. Without this
    /// they are thrown away. A stream that was there before ends.
    ///
    /// The connection is not read while 16 MiB of them wait to be taken.
    ///
    /// # Errors
    /// When the channel is closed.
    pub fn returns(&self) -> Result<Returns, Error> {
        self.state().check_open()?;
        let shared = self.shared();
        let mailbox = Arc::new(Mailbox::new(shared.stall.clone(), RETURNS_BUFFER_BYTES));
        let replaced = shared.inspect(|core| {
            core.route(self.number()).and_then(|route| route.returns.replace(mailbox.clone()))
        });
        if let Some(replaced) = replaced {
            replaced.end(None);
        }
        Ok(Returns::new(self.clone(), mailbox))
    }
}
