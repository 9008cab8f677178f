//! What a client is told of its login. In a cluster it waits until it is certain that this node still leads: a user whom it does not
//! know may have been made meanwhile, where another one does.

use super::{ClientStream, Driver};
use crate::clock;
use courser_broker::admin::{ConnectionDetails, Durable};
use courser_broker::{Admission, Fault, Identity};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// A verdict that is not told yet.
pub(super) struct Untold {
    current: Durable,
    verdict: Verdict,
}

/// What a login, or the opening of a vhost, has come to.
pub(super) enum Verdict {
    LoginRefused(String),
    OpenRefused(Fault),
    Opened(Admission, Identity),
}

impl<S: ClientStream> Driver<S> {
    /// Tells the client when that is certainly current. Nothing is read until then.
    pub(super) fn tell_when_current(&mut self, verdict: Verdict, now: Instant) {
        match self.shared.broker.current() {
            None => self.tell(verdict, now),
            Some(current) => {
                self.untold = Some(Box::new(Untold { current, verdict }));
                self.note_reading(now);
            }
        }
    }

    /// Tells the client what has waited for that. Returns whether there was something.
    pub(super) fn poll_verdict(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(untold) = &mut self.untold else { return false };
        let Poll::Ready(current) = Pin::new(&mut untold.current).poll(cx) else { return false };
        let Some(untold) = self.untold.take() else { return false };
        let now = clock::now();
        self.note_reading(now);
        match current {
            Ok(()) => self.tell(untold.verdict, now),
            Err(fault) => self.connection_fault(&fault, (0, 0), now),
        }
        self.collect_output();
        // What came behind has been waiting for this.
        let carried = std::mem::take(&mut self.carry);
        self.receive(&carried);
        true
    }

    fn tell(&mut self, verdict: Verdict, now: Instant) {
        match verdict {
            Verdict::LoginRefused(text) => self.machine.login_refused(&text, now),
            Verdict::OpenRefused(fault) => {
                self.note_refused(0, &fault, now);
                self.machine.open_refused(fault.code, &fault.explanation, now);
            }
            Verdict::Opened(admission, identity) => self.begin_session(admission, identity, now),
        }
    }

    fn begin_session(&mut self, admission: Admission, identity: Identity, now: Instant) {
        let frame_max = self.machine.frame_max() as usize;
        let details = ConnectionDetails {
            channel_max: self.machine.channel_max(),
            heartbeat_s: self.machine.heartbeat_s().try_into().unwrap_or(u16::MAX),
            ..self.newcomer.take().map(|newcomer| newcomer.details).unwrap_or_default()
        };
        self.machine.open_accepted(now);
        self.collect_output();
        let broker = Arc::clone(&self.shared.broker);
        let mut session = broker.open_connection(admission, identity, frame_max, details);
        session.notify_when_durable(self.confirmer(session.outbox()));
        self.session = Some(session);
        self.look_for_expiry(now);
    }
}
