//! Publishing a message for a user who has no connection, and hearing what became of it.

use super::{Admin, ConnectionDetails};
use crate::broker::Identity;
use crate::fault::Fault;
use crate::outbox::wire::WireBuffer;
use crate::session::{Batch, Inbound, Session};
use crate::vhost::Admission;
use bytes::Bytes;
use courser_auth::Grant;
use courser_codec::{Frame, Method, OwnedProperties, ShortString, basic};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The channel that it is published on.
const CHANNEL: u16 = 1;
/// Bytes of the largest frame that comes back.
const FRAME_MAX: u32 = 131_072;
/// What its connection is called while there is one.
const CONNECTION_NAME: &str = "publisher of the HTTP API";

/// A message to be published.
#[derive(Clone, Debug, Default)]
pub struct NewMessage {
    /// The exchange; empty for the default one.
    pub exchange: ShortString,
    /// The routing key.
    pub routing_key: ShortString,
    /// The properties.
    pub properties: OwnedProperties,
    /// The body.
    pub body: Bytes,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// It is in a queue, and as safe as its properties ask for.
    Routed,
    /// No queue wanted it.
    Unroutable,
    /// A queue refused it.
    Refused,
}

/// A message that is being published. A caller that drops it does not learn what becomes of it.
pub struct Publishing {
    session: Session,
    is_returned: bool,
    received: Vec<u8>,
}

impl Admin {
    /// Publishes a message as a client of this user would, with the same permissions and limits.
    ///
    /// # Errors
    /// When the user may not enter the vhost or write to the exchange, there is no such exchange, a
    /// property is wrong, the message is too large, or publishers have to wait just now.
    pub fn publish(
        &self,
        user: &str,
        vhost: &str,
        message: &NewMessage,
    ) -> Result<Publishing, Fault> {
        self.publish_as(user, message, || self.broker.admit(user, vhost))
    }

    /// As [`Admin::publish`], for a user who has logged in elsewhere.
    ///
    /// # Errors
    /// Likewise.
    pub fn publish_granted(
        &self,
        grant: &Arc<Grant>,
        vhost: &str,
        message: &NewMessage,
    ) -> Result<Publishing, Fault> {
        let user = Arc::clone(grant.authority().user());
        self.publish_as(&user.name, message, || self.broker.admit_granted(grant, vhost))
    }

    fn publish_as(
        &self,
        user: &str,
        message: &NewMessage,
        admit: impl FnOnce() -> Result<Admission, Fault>,
    ) -> Result<Publishing, Fault> {
        let (size, size_max) = (message.body.len() as u64, self.broker.limits.message_max_bytes);
        if size > size_max {
            return Err(Fault::precondition_failed(format_args!(
                "message size {size} is larger than configured max size {size_max}"
            )));
        }
        self.broker.refuse_to_publish()?;
        let admission = admit()?;
        let user = ShortString::from(super::commands::short(user)?);
        let identity = Identity { user, cancel_notify: false, impersonator: false };
        let details =
            ConnectionDetails { name: CONNECTION_NAME.to_owned(), ..ConnectionDetails::default() };
        let mut session =
            self.broker.open_connection(admission, identity, FRAME_MAX as usize, details);
        session.admit_channel()?;
        session.open_channel(CHANNEL);
        let mut publishing = Publishing { session, is_returned: false, received: Vec::new() };
        publishing.send(message)?;
        Ok(publishing)
    }
}

impl Publishing {
    fn send(&mut self, message: &NewMessage) -> Result<(), Fault> {
        let NewMessage { exchange, routing_key, properties, body } = message;
        let mut address = Vec::new();
        for name in [exchange, routing_key] {
            // A short string has 255 bytes at most.
            address.push(name.as_bytes().len() as u8);
            address.extend_from_slice(name.as_bytes());
        }
        let mut header = Vec::new();
        properties.encode_header(body.len() as u64, &mut header);
        let publish = basic::Publish {
            exchange: exchange.as_short_str(),
            routing_key: routing_key.as_short_str(),
            mandatory: true,
            immediate: false,
        };
        let inbound = Inbound {
            channel: CHANNEL,
            publish,
            address: &address,
            header: &header,
            body,
            shared_body: None,
            confirm_seq: 1,
        };
        let mut batch = Batch::default();
        self.session.publish_alone(&mut batch, inbound, body)?;
        self.session.flush(&mut batch).map(drop)
    }

    /// What has come back so far, if that decides it.
    fn decided(&mut self) -> Option<Published> {
        let mut wire = WireBuffer::default();
        self.session.outbox().take(&mut wire);
        wire.append_to(&mut self.received);
        let mut rest = &self.received[..];
        let mut decided = None;
        while let Ok(Some((frame, used))) = Frame::parse(rest, FRAME_MAX) {
            match Method::decode(frame.payload) {
                Ok(Method::BasicReturn(_)) => self.is_returned = true,
                Ok(Method::BasicAck(_)) => decided = Some(Published::Routed),
                Ok(Method::BasicNack(_)) => decided = Some(Published::Refused),
                // The content of what is returned.
                _ => {}
            }
            rest = &rest[used..];
        }
        self.received = rest.to_vec();
        match decided {
            Some(Published::Routed) if self.is_returned => Some(Published::Unroutable),
            decided => decided,
        }
    }
}

impl Future for Publishing {
    type Output = Result<Published, Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.session.outbox().register(cx.waker());
        self.session.confirm_durable();
        if let Some(published) = self.decided() {
            return Poll::Ready(Ok(published));
        }
        match self.session.outbox().take_faults().pop() {
            Some((_, fault)) => Poll::Ready(Err(fault)),
            None => Poll::Pending,
        }
    }
}

impl std::fmt::Debug for Publishing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publishing").finish_non_exhaustive()
    }
}
