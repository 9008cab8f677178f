//! What the machine reports, handed to the broker.

use super::at_once::AtOnce;
use super::{Driver, aside};
use crate::login;
use courser_broker::{Batch, Fault, Identity, Inbound};
use courser_codec::{Method, ShortString, basic, connection};
use courser_connection::server::{AssembledPublish, Event, Publish};
use courser_connection::{Credentials, login_refusal};
use std::sync::Weak;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};

const BASIC_PUBLISH: (u16, u16) = (basic::Publish::CLASS_ID, basic::Publish::METHOD_ID);

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Driver<S> {
    pub(super) fn handle<'m>(&mut self, event: Event<'m>, batch: &mut Batch<'m>, now: Instant) {
        match event {
            Event::Publish(publish) => self.publish(publish, batch, now),
            Event::LargePublish(publish) => self.publish_large(&publish, batch, now),
            Event::Request { channel: 0, method } => self.request_of_connection(&method, now),
            Event::Request { channel, method } => {
                let Some(session) = &mut self.session else { return };
                let takes_long = batch.takes_long() || session.takes_long(channel, &method);
                let done = aside(takes_long, || session.request(batch, channel, &method));
                if let Err(fault) = done {
                    let method = (method.class_id(), method.method_id());
                    self.fault(channel, &fault, method, batch, now);
                }
            }
            Event::ChannelOpened { channel } => {
                if let Some(session) = &mut self.session {
                    session.open_channel(channel);
                }
            }
            Event::ChannelClosed { channel, .. } => self.close_channel(channel, batch),
            Event::Login { credentials, .. } => self.login(&credentials, now),
            Event::Open { virtual_host } => self.open(&virtual_host.to_string(), now),
            Event::Closed(_) => {
                if let Some(session) = &mut self.session {
                    // Whatever goes wrong here has nobody left to be told.
                    let _ = session.flush(batch);
                }
                self.end_session();
            }
        }
    }

    #[inline]
    fn publish<'m>(&mut self, publish: Publish<'m>, batch: &mut Batch<'m>, now: Instant) {
        let Some(session) = &mut self.session else { return };
        let inbound = Inbound {
            channel: publish.channel,
            publish: publish.publish,
            address: publish.exchange_and_key,
            header: publish.header,
            body: publish.body,
            shared_body: None,
            confirm_seq: publish.confirm_seq,
        };
        if let Err(fault) = session.publish(batch, inbound) {
            self.fault(publish.channel, &fault, BASIC_PUBLISH, batch, now);
        }
    }

    fn publish_large(&mut self, large: &AssembledPublish, batch: &mut Batch<'_>, now: Instant) {
        let Some(session) = &mut self.session else { return };
        let publish = large.as_publish();
        let inbound = Inbound {
            channel: publish.channel,
            publish: publish.publish,
            address: publish.exchange_and_key,
            header: publish.header,
            body: publish.body,
            shared_body: Some(&large.body),
            confirm_seq: publish.confirm_seq,
        };
        if let Err(fault) = session.publish_alone(batch, inbound) {
            self.fault(publish.channel, &fault, BASIC_PUBLISH, batch, now);
        }
    }

    fn request_of_connection(&mut self, method: &Method<'_>, now: Instant) {
        if let Method::ConnectionUpdateSecret(_) = method {
            // Passwords do not expire; whoever renews one is told that it is fine.
            let reply = Method::ConnectionUpdateSecretOk(connection::UpdateSecretOk {});
            self.machine.transmit(0, &reply);
            return;
        }
        let fault = Fault::new(504, "unexpected method in connection state running");
        self.connection_fault(&fault, (method.class_id(), method.method_id()), now);
    }

    fn login(&mut self, credentials: &Credentials, now: Instant) {
        match login::admit(&self.shared.auth, credentials, self.peer) {
            Some(user) => {
                self.user = ShortString::try_from(user).ok();
                self.machine.login_accepted(now);
            }
            None => {
                let mechanism = credentials.mechanism().name();
                tracing::warn!(peer = %self.peer, mechanism, "login refused");
                let text = login_refusal(credentials.mechanism());
                self.machine.login_refused(&text, now);
            }
        }
    }

    fn open(&mut self, name: &str, now: Instant) {
        let broker = std::sync::Arc::clone(&self.shared.broker);
        let Some(vhost) = broker.vhost(name) else {
            self.machine.open_refused(530, &format!("vhost {name} not found"), now);
            return;
        };
        let user = self.user.take().unwrap_or_default();
        let admission = match vhost.admit(&user.to_string()) {
            Ok(admission) => admission,
            Err(fault) => return self.machine.open_refused(fault.code, &fault.explanation, now),
        };
        let identity = Identity {
            user,
            cancel_notify: self.machine.client_capabilities().consumer_cancel_notify(),
            impersonator: false,
        };
        let frame_max = self.machine.frame_max() as usize;
        self.machine.open_accepted(now);
        self.collect_output();
        let mut session = broker.open_session(admission, identity, frame_max);
        session.wake_when_durable(AtOnce::waker(Weak::clone(&self.myself), session.outbox()));
        self.session = Some(session);
        tracing::debug!(peer = %self.peer, vhost = name, "connection open");
    }

    fn close_channel(&mut self, channel: u16, batch: &mut Batch<'_>) {
        let Some(session) = &mut self.session else { return };
        // What was published before the close still counts; what fails now fails with the channel.
        let _ = session.flush(batch);
        session.close_channel(channel);
    }

    /// Closes the channel, or the connection, for a fault.
    fn fault(
        &mut self,
        channel: u16,
        fault: &Fault,
        method: (u16, u16),
        batch: &mut Batch<'_>,
        now: Instant,
    ) {
        tracing::info!(peer = %self.peer, channel, %fault, "refused");
        if fault.closes_connection() {
            if let Some(session) = &mut self.session {
                let _ = session.flush(batch);
            }
            return self.connection_fault(fault, method, now);
        }
        self.close_channel(channel, batch);
        self.machine.channel_error(channel, fault.code, &fault.explanation, method, now);
    }

    /// Closes a channel for something that the broker has found out by itself.
    pub(super) fn fail_channel(&mut self, channel: u16, fault: &Fault) {
        self.fault(channel, fault, (0, 0), &mut Batch::default(), Instant::now());
        self.collect_output();
    }

    pub(super) fn connection_fault(&mut self, fault: &Fault, method: (u16, u16), now: Instant) {
        self.machine.connection_error(fault.code, &fault.explanation, method, now);
        self.end_session();
        self.collect_output();
    }
}
