//! What the machine reports, handed to the broker.

use super::verdict::Verdict;
use super::{ClientStream, Driver};
use crate::blocking::{in_place, in_place_if};
use crate::clock;
use crate::login::{Begun, LoginError, named};
use courser_auth::Login;
use courser_broker::{Batch, Fault, Identity, Inbound, Session};
use courser_codec::{Method, ShortString, basic, channel};
use courser_connection::server::{AssembledPublish, Event, Publish};
use courser_connection::{ClosedBy, Credentials, Mechanism, login_refusal};
use std::fmt::Display;
use std::future::Future;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

const CHANNEL_OPEN: (u16, u16) = (channel::Open::CLASS_ID, channel::Open::METHOD_ID);
const BASIC_PUBLISH: (u16, u16) = (basic::Publish::CLASS_ID, basic::Publish::METHOD_ID);

impl<S: ClientStream> Driver<S> {
    pub(super) fn handle<'m>(&mut self, event: Event<'m>, batch: &mut Batch<'m>, now: Instant) {
        match event {
            Event::Publish(publish) => self.publish(publish, batch, now),
            Event::PublishBegun { channel, publish } => {
                let Some(session) = &mut self.session else { return };
                if let Err(fault) = session.admit_publish(&publish) {
                    self.fault(channel, &fault, BASIC_PUBLISH, batch, now);
                }
            }
            Event::LargePublish(publish) => self.publish_large(&publish, batch, now),
            Event::Request { channel: 0, method } => {
                self.request_of_connection(&method, batch, now);
            }
            Event::Request { channel, method } => {
                let Some(session) = &mut self.session else { return };
                if !is_settlement(&method) {
                    self.budget.note_request();
                }
                let takes_long = batch.takes_long() || session.takes_long(channel, &method);
                let done = in_place_if(takes_long, || session.request(batch, channel, &method));
                if let Err(fault) = done {
                    let method = (method.class_id(), method.method_id());
                    self.fault(channel, &fault, method, batch, now);
                }
            }
            Event::ChannelOpened { channel } => {
                let Some(session) = &mut self.session else { return };
                self.budget.note_request();
                match session.admit_channel() {
                    Ok(()) => session.open_channel(channel),
                    Err(fault) => self.fault(0, &fault, CHANNEL_OPEN, batch, now),
                }
            }
            Event::ChannelClosed { channel, reason } => {
                if reason.by == ClosedBy::Local {
                    self.note_refused(
                        channel,
                        format_args!("{} {}", reason.code, reason.text),
                        now,
                    );
                }
                if let Err(fault) = self.close_channel(channel, batch) {
                    self.connection_fault(&fault, (0, 0), now);
                }
            }
            Event::Login { credentials, client_properties } => {
                if let Some(newcomer) = &mut self.newcomer {
                    newcomer.introduce(client_properties, &credentials);
                }
                self.login(&credentials, now);
            }
            Event::Open { virtual_host } => self.open(&virtual_host.to_string(), now),
            Event::Closed(reason) => {
                if self.session.is_none()
                    && reason.by == ClosedBy::Local
                    && let Some(suppressed) = self.shared.throttles.logins.allow(now)
                {
                    tracing::info!(peer = %self.peer, %reason, suppressed, "handshake failed");
                }
                self.flush_for_good(batch);
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
            shared_body: None,
            confirm_seq: publish.confirm_seq,
        };
        if let Err(fault) = session.publish_alone(batch, inbound, &large.body) {
            self.fault(publish.channel, &fault, BASIC_PUBLISH, batch, now);
        }
    }

    fn request_of_connection(&mut self, method: &Method<'_>, batch: &mut Batch<'_>, now: Instant) {
        if let Method::ConnectionUpdateSecret(update) = method {
            if self.renewal.is_some() {
                // It is refused for that, and the connection ends.
                self.flush_for_good(batch);
            }
            return self.update_secret(update, now);
        }
        let fault = Fault::new(504, "unexpected method in connection state running");
        self.connection_fault(&fault, (method.class_id(), method.method_id()), now);
    }

    fn login(&mut self, credentials: &Credentials, now: Instant) {
        match self.shared.logins.begin(credentials, &self.peer) {
            Begun::Decided(decided) => {
                let (user, mechanism) = (named(credentials), credentials.mechanism());
                self.logged_in(decided, &user, mechanism, now);
            }
            Begun::Pending(pending) => self.login = Some(Box::new(pending)),
        }
    }

    /// Goes on with a login whose password has been checked. Returns whether there was one.
    pub(super) fn poll_login(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(pending) = &mut self.login else { return false };
        let Poll::Ready(decided) = Pin::new(&mut **pending).poll(cx) else { return false };
        let (user, mechanism) = (pending.user().to_owned(), pending.mechanism());
        self.login = None;
        let now = clock::now();
        self.logged_in(decided, &user, mechanism, now);
        self.collect_output();
        // What came behind the password has been waiting for this.
        let carried = std::mem::take(&mut self.carry);
        self.receive(&carried);
        true
    }

    fn logged_in(
        &mut self,
        decided: Result<Login, LoginError>,
        user: &str,
        mechanism: Mechanism,
        now: Instant,
    ) {
        let decided = decided.and_then(|login| self.come_by_name(login));
        if !self.peer.is_counted {
            self.shared.logins.count(&decided);
        }
        let login = match decided {
            Ok(login) => login,
            Err(reason) => {
                if let Some(suppressed) = self.shared.throttles.logins.allow(now) {
                    let mechanism = mechanism.name();
                    tracing::warn!(peer = %self.peer, %user, mechanism, %reason, suppressed, "login refused");
                }
                let text = login_refusal(mechanism);
                return self.tell_when_current(Verdict::LoginRefused(text), now);
            }
        };
        if login.rehashed.is_some() {
            // Where it is not kept, the old hash still does.
            match in_place(|| self.shared.broker.admin().keep_rehashed(&login)) {
                Ok(false) => {}
                Ok(true) => tracing::info!(%user, "imported password hash replaced by argon2id"),
                Err(error) => tracing::warn!(%user, %error, "imported password hash not replaced"),
            }
        }
        self.grant = login.grant.clone();
        self.logged_in = Some(Box::new(login));
        self.machine.login_accepted(now);
    }

    /// Refuses a user who may only come from this machine where the name that was asked for need not be this machine's.
    fn come_by_name(&self, login: Login) -> Result<Login, LoginError> {
        if self.peer.by_foreign_name {
            let accounts = self.shared.broker.accounts();
            accounts.come_from(&login.user, Ipv4Addr::UNSPECIFIED.into())?;
        }
        Ok(login)
    }

    fn open(&mut self, name: &str, now: Instant) {
        let broker = std::sync::Arc::clone(&self.shared.broker);
        let Some(login) = self.logged_in.take() else {
            return self.machine.open_refused(530, "no user has logged in", now);
        };
        let admission = match broker.admit_login(&login, name) {
            Ok(admission) => admission,
            Err(fault) => return self.tell_when_current(Verdict::OpenRefused(fault), now),
        };
        if !self.place.keep() {
            return self.machine.open_refused(530, "no room for more connections", now);
        }
        let identity = Identity {
            user: ShortString::try_from(&*login.user.name).unwrap_or_default(),
            cancel_notify: self.machine.client_capabilities().consumer_cancel_notify(),
            impersonator: false,
        };
        tracing::debug!(peer = %self.peer, vhost = name, "vhost opened");
        self.tell_when_current(Verdict::Opened(admission, identity), now);
    }

    /// Has what came so far take effect on a connection that ends: no one is left to be told what goes wrong.
    fn flush_for_good(&mut self, batch: &mut Batch<'_>) {
        let Some(session) = &mut self.session else { return };
        let takes_long = batch.takes_long() || session.has_much_to_settle();
        in_place_if(takes_long, || drop(session.flush(batch)));
    }

    /// Ends a channel, behind what was published before.
    ///
    /// # Errors
    /// If some of that could not be taken. It may be another channel's, so the connection has to end:
    /// what follows on that channel would be confirmed together with it.
    fn close_channel(&mut self, channel: u16, batch: &mut Batch<'_>) -> Result<(), Fault> {
        let Some(session) = &mut self.session else { return Ok(()) };
        self.budget.note_request();
        let takes_long = batch.takes_long() || session.takes_long_to_close(channel);
        in_place_if(takes_long, || {
            let flushed = session.flush(batch);
            session.close_channel(channel);
            flushed.map(drop)
        })
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
        self.note_refused(channel, fault, now);
        if fault.closes_connection() {
            self.flush_for_good(batch);
            return self.connection_fault(fault, method, now);
        }
        match self.close_channel(channel, batch) {
            Ok(()) => {
                if let Some(session) = &mut self.session {
                    // The reason tells of what there is, or is not.
                    session.hold_answer(channel);
                }
                self.machine.channel_error(channel, fault.code, &fault.explanation, method, now);
            }
            Err(fault) => self.connection_fault(&fault, (0, 0), now),
        }
    }

    /// Tells the log what is refused, as far as it is not too much.
    pub(super) fn note_refused(&mut self, channel: u16, fault: impl Display, now: Instant) {
        let throttle = &self.shared.throttles.refused;
        if let Some(suppressed) = throttle.allow_own(&mut self.refusals, now) {
            tracing::info!(peer = %self.peer, channel, %fault, suppressed, "refused");
        }
    }

    /// Closes a channel for something that the broker has found out by itself.
    pub(super) fn fail_channel(&mut self, channel: u16, fault: &Fault) {
        self.fault(channel, fault, (0, 0), &mut Batch::default(), clock::now());
        self.collect_output();
        // No request has come, behind which it would be seen what the reason waits for.
        self.session.iter_mut().for_each(Session::confirm_durable);
    }

    pub(super) fn connection_fault(&mut self, fault: &Fault, method: (u16, u16), now: Instant) {
        self.machine.connection_error(fault.code, &fault.explanation, method, now);
        self.end_session();
        self.collect_output();
    }
}

/// Whether a method settles deliveries, as clients do all the time: it costs what it looks at.
fn is_settlement(method: &Method<'_>) -> bool {
    matches!(method, Method::BasicAck(_) | Method::BasicNack(_) | Method::BasicReject(_))
}
