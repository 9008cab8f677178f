//! Tokens that users have logged in with: their renewal and their end.

use super::{ClientStream, Driver};
use crate::clock;
use crate::login::RenewalError;
use crate::oauth::TokenError;
use courser_broker::Fault;
use courser_codec::{Method, connection};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

const UPDATE_SECRET: (u16, u16) =
    (connection::UpdateSecret::CLASS_ID, connection::UpdateSecret::METHOD_ID);
/// The longest time between two looks at the clock, which may be set meanwhile.
const LOOK_AFTER_MAX: Duration = Duration::from_secs(60);

impl<S: ClientStream> Driver<S> {
    pub(super) fn update_secret(&mut self, update: &connection::UpdateSecret<'_>, now: Instant) {
        let Some(grant) = self.grant.as_ref().filter(|grant| grant.is_renewable()) else {
            // Passwords do not expire; a client that renews one is told that it is fine.
            return self.secret_updated();
        };
        if self.renewal.is_some() {
            return self.secret_refused(&RenewalError::Interrupted, now);
        }
        self.renewal = Some(Box::new(self.shared.logins.renew(grant, update.new_secret)));
    }

    /// Goes on when a token has been looked at. Returns whether there was one.
    pub(super) fn poll_renewal(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(renewal) = &mut self.renewal else { return false };
        let Poll::Ready(decided) = Pin::new(&mut **renewal).poll(cx) else { return false };
        self.renewal = None;
        let now = clock::now();
        match decided {
            Ok(()) => {
                if let Some(session) = &mut self.session {
                    session.rights_changed();
                }
                self.look_for_expiry(now);
                self.secret_updated();
            }
            Err(why) => self.secret_refused(&why, now),
        }
        self.collect_output();
        true
    }

    fn secret_updated(&mut self) {
        let reply = Method::ConnectionUpdateSecretOk(connection::UpdateSecretOk {});
        self.machine.transmit(0, &reply);
    }

    fn secret_refused(&mut self, why: &RenewalError, now: Instant) {
        if let Some(suppressed) = self.shared.throttles.refused.allow_own(&mut self.refusals, now) {
            tracing::warn!(peer = %self.peer, %why, suppressed, "new secret refused");
        }
        let text = match why {
            RenewalError::Token(TokenError::NoKeys(_)) | RenewalError::Interrupted => {
                "Secret update failed"
            }
            _ => "New secret was refused by one of the backends",
        };
        self.connection_fault(&Fault::not_allowed(text), UPDATE_SECRET, now);
    }

    /// Has the connection end when what its user has logged in with expires.
    pub(super) fn look_for_expiry(&mut self, now: Instant) {
        let expires_ms = self.grant.as_ref().and_then(|grant| grant.expires_ms());
        self.expires_at = expires_ms.map(|expires_ms| {
            let left = Duration::from_millis(expires_ms.saturating_sub(self.shared.clock.now_ms()));
            now + left.min(LOOK_AFTER_MAX)
        });
    }

    /// Closes the connection if what its user has logged in with has expired.
    pub(super) fn end_expired(&mut self, now: Instant) {
        if self.expires_at.is_none_or(|at| now < at) {
            return;
        }
        let expires_ms = self.grant.as_ref().and_then(|grant| grant.expires_ms());
        if expires_ms.is_some_and(|expires_ms| expires_ms > self.shared.clock.now_ms()) {
            return self.look_for_expiry(now);
        }
        self.expires_at = None;
        // The new token has come in time. When it is decided whether it is good, the clock is looked at again.
        if self.session.is_none() || self.renewal.is_some() {
            return;
        }
        if let Some(suppressed) = self.shared.throttles.expired.allow(now) {
            let what = "connection closed: what its user logged in with has expired";
            tracing::info!(peer = %self.peer, suppressed, "{what}");
        }
        self.connection_fault(&Fault::new(320, "credential expired"), (0, 0), now);
    }
}
