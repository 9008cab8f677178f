//! New tokens for sessions whose tokens expire.
//!
//! They are asked for when a request uses the session, shortly before the old one's end, or after it: then the request
//! waits. Nothing runs for sessions that are not used.

use super::{ProviderError, TokenGrant, flow};
use crate::Api;
use crate::refusal::Refusal;
use courser_auth::{Grant, LoginRefused};
use parking_lot::Mutex;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;
use zeroize::Zeroizing;

/// Milliseconds before its end from which on a token is renewed.
const BEFORE_MS: u64 = 30_000;
/// Milliseconds between two questions for the same session.
const RETRY_MS: u64 = 5_000;

/// What renews the token of a session.
pub(crate) struct Renewal {
    /// None where there is none, or the provider does not take it any more.
    refresh: Mutex<Option<Zeroizing<String>>>,
    /// Held by who asks.
    asked: Arc<tokio::sync::Mutex<Asked>>,
}

/// The last question.
#[derive(Default)]
struct Asked {
    at_ms: Option<u64>,
    /// Why it was in vain.
    failure: Option<ProviderError>,
}

impl Renewal {
    /// With what the provider has given for that, if anything.
    pub fn new(refresh: Option<Zeroizing<String>>) -> Arc<Self> {
        Arc::new(Renewal { refresh: Mutex::new(refresh), asked: Arc::default() })
    }

    pub fn is_possible(&self) -> bool {
        self.refresh.lock().is_some()
    }
}

/// Renews what a session's user may do, if that is over, or soon will be.
///
/// # Errors
/// When it is over and can't be renewed.
pub(crate) async fn keep(
    api: &Arc<Api>,
    grant: &Arc<Grant>,
    renewal: &Arc<Renewal>,
    peer: SocketAddr,
) -> Result<(), Refusal> {
    let left_ms = left_ms(api, grant);
    if left_ms > BEFORE_MS || left_ms > 0 && !renewal.is_possible() {
        return Ok(());
    }
    // It goes on when the client leaves: the provider takes each refresh token once, and what it gives instead is kept.
    let ask = |asked| {
        let (api, grant, renewal) = (Arc::clone(api), Arc::clone(grant), Arc::clone(renewal));
        tokio::spawn(async move { renew(&api, &grant, &renewal, peer, asked).await })
    };
    if left_ms > 0 {
        if let Ok(asked) = Arc::clone(&renewal.asked).try_lock_owned() {
            // Why it fails is said when the token is over.
            drop(ask(asked));
        }
        return Ok(());
    }
    match ask(Arc::clone(&renewal.asked).lock_owned().await).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(ProviderError::Refused(_))) => Err(Refusal::challenge()),
        Ok(Err(error)) => Err(flow::refusal(error)),
        Err(_) => Err(Refusal::internal("the token could not be renewed")),
    }
}

/// Milliseconds until a grant ends.
fn left_ms(api: &Api, grant: &Grant) -> u64 {
    grant.expires_ms().map_or(u64::MAX, |until| until.saturating_sub(api.now_ms()))
}

async fn renew(
    api: &Api,
    grant: &Grant,
    renewal: &Renewal,
    peer: SocketAddr,
    mut asked: OwnedMutexGuard<Asked>,
) -> Result<(), ProviderError> {
    if left_ms(api, grant) > BEFORE_MS {
        return Ok(());
    }
    let now_ms = api.now_ms();
    if asked.at_ms.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) < RETRY_MS) {
        return match &asked.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        };
    }
    // Counts also if this ends before the provider answers.
    asked.at_ms = Some(now_ms);
    asked.failure = Some(ProviderError::Unreachable("The question was given up.".to_owned()));
    let renewed = ask(api, grant, renewal, peer).await;
    // From its end on: requests that waited for a slow one do not ask again, one behind the other.
    asked.at_ms = Some(api.now_ms());
    if let Err(why) = &renewed {
        let authority = grant.authority();
        let user = authority.user().name.as_str();
        if let Some(suppressed) = api.tokens_log.allow(api.now_ms()) {
            tracing::info!(user, %why, suppressed, "the token of a session can't be renewed");
        }
        if matches!(why, ProviderError::Refused(_)) {
            *renewal.refresh.lock() = None;
        }
    }
    asked.failure = renewed.clone().err();
    renewed
}

async fn ask(
    api: &Api,
    grant: &Grant,
    renewal: &Renewal,
    peer: SocketAddr,
) -> Result<(), ProviderError> {
    let refused = |why: &str| ProviderError::Refused(why.to_owned());
    let client = api.settings.web.oauth.as_ref().ok_or_else(|| refused("There is no provider."))?;
    let token = renewal.refresh.lock().clone();
    let token = token.ok_or_else(|| refused("There is nothing to renew it with."))?;
    let issued = client.provider.tokens(TokenGrant::Refresh(token)).await?;
    if let Some(next) = issued.refresh {
        *renewal.refresh.lock() = Some(next);
    }
    let login = api.logins.of_token(&issued.access, peer).await.map_err(|why| match why {
        LoginRefused::Wait { .. }
        | LoginRefused::NotAnswered { .. }
        | LoginRefused::NotChecked(_) => ProviderError::Unreachable(why.to_string()),
        why => ProviderError::Refused(why.to_string()),
    })?;
    let is_same = login.user.name == grant.authority().user().name;
    let renewed = login.grant.filter(|_| is_same);
    let renewed = renewed.ok_or_else(|| refused("The new token is another user's."))?;
    grant.renew(renewed.authority());
    Ok(())
}

impl fmt::Debug for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewal").finish_non_exhaustive()
    }
}
