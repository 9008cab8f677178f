//! The keys of the issuer of tokens, as they are known now.
//!
//! They are asked for at the start, whenever they are old, and when a token names one that is not among them; but never
//! more often than the settings say, whatever tokens name. While they can't be had, those that are known go on to count.
//!
//! That they are old is not left to a login to find out: it would be decided by keys that the issuer may have withdrawn
//! long ago, or wait for an issuer that does not answer.

use super::issuer::Issuer;
use crate::config::OAuth;
use crate::https::HttpsError;
use arc_swap::ArcSwap;
use courser_oauth::KeySet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Mutex;

pub(super) struct Jwks {
    issuer: Issuer,
    current: ArcSwap<Known>,
    /// Held while they are asked for.
    asked: Arc<Mutex<Asked>>,
    kept: Duration,
    retry: Duration,
}

/// What is known.
#[derive(Default)]
pub(super) struct Known {
    pub keys: KeySet,
    /// When they were had; never, if they were not yet.
    at: Option<Instant>,
}

#[derive(Default)]
struct Asked {
    last: Option<Instant>,
    /// Why that was in vain, if it was.
    failure: Option<String>,
}

impl Asked {
    /// How long it is too soon to ask again.
    fn until_retry(&self, retry: Duration) -> Duration {
        self.last.map_or(Duration::ZERO, |last| retry.saturating_sub(last.elapsed()))
    }
}

impl Jwks {
    pub fn new(settings: &OAuth) -> Result<Option<Arc<Self>>, HttpsError> {
        let Some(issuer) = Issuer::new(settings)? else { return Ok(None) };
        Ok(Some(Arc::new(Jwks {
            issuer,
            current: ArcSwap::default(),
            asked: Arc::default(),
            kept: Duration::from_secs(settings.keys_cache_seconds),
            retry: Duration::from_secs(settings.keys_retry_seconds),
        })))
    }

    /// Those that are known now.
    pub fn current(&self) -> Arc<Known> {
        self.current.load_full()
    }

    /// Asks for others than `seen`, unless they were asked for just now. The question goes on when its client has gone: it
    /// counts for all.
    ///
    /// # Errors
    /// Why there are none, if the last question was in vain.
    pub async fn newer_than(self: &Arc<Self>, seen: &Known) -> Result<(), String> {
        let mut asked = Arc::clone(&self.asked).lock_owned().await;
        let is_newer = self.current.load().at != seen.at;
        if !is_newer && asked.until_retry(self.retry).is_zero() {
            let own = Arc::clone(self);
            let asking = tokio::spawn(async move {
                own.ask(&mut asked).await;
                asked
            });
            asked = asking.await.map_err(|error| error.to_string())?;
        }
        asked.failure.clone().map_or(Ok(()), Err)
    }

    /// Asks for them now and whenever they are old, for as long as they are used. No login waits for that.
    pub fn keep_fresh(self: &Arc<Self>) {
        // Without a runtime, the first login asks.
        let Ok(runtime) = Handle::try_current() else { return };
        let own = Arc::downgrade(self);
        runtime.spawn(async move {
            while let Some(jwks) = own.upgrade() {
                let pause = jwks.refresh().await;
                drop(jwks);
                tokio::time::sleep(pause).await;
            }
        });
    }

    /// Asks for them if they are old, unless they were asked for just now. Returns after how long to do so again.
    async fn refresh(&self) -> Duration {
        let mut asked = self.asked.lock().await;
        if self.until_old().is_zero() && asked.until_retry(self.retry).is_zero() {
            self.ask(&mut asked).await;
        }
        self.until_old().max(asked.until_retry(self.retry))
    }

    /// How long those that are known are not old yet.
    fn until_old(&self) -> Duration {
        let at = self.current.load().at;
        at.map_or(Duration::ZERO, |at| self.kept.saturating_sub(at.elapsed()))
    }

    async fn ask(&self, asked: &mut Asked) {
        let had = self.issuer.keys().await;
        // From its end on: those that waited for a slow one do not ask again, one behind the other.
        asked.last = Some(Instant::now());
        let issuer = self.issuer.address();
        match had {
            Ok(keys) => {
                tracing::info!(
                    issuer,
                    keys = keys.len(),
                    "have the keys that tokens are signed with"
                );
                self.current.store(Arc::new(Known { keys, at: Some(Instant::now()) }));
                asked.failure = None;
            }
            Err(why) => {
                let known = self.current.load().keys.len();
                // Once is enough for as long as it stays so.
                if asked.failure.as_ref() != Some(&why) {
                    tracing::warn!(
                        issuer,
                        why,
                        known,
                        "the keys that tokens are signed with can't be had: tokens with other keys than \
                         those known are refused"
                    );
                }
                asked.failure = Some(why);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::silent_issuer;
    use std::sync::atomic::Ordering;

    #[tokio::test]
    async fn logins_that_wait_for_a_silent_issuer_wait_for_one_question() {
        let (address, questions) = silent_issuer().await;
        let settings = OAuth {
            jwks_uri: format!("https://{address}/keys"),
            timeout_ms: 10_000,
            keys_retry_seconds: 8,
            ..OAuth::default()
        };
        let jwks = Jwks::new(&settings).expect("good settings").expect("an issuer");
        let seen = jwks.current();
        let asking = || jwks.newer_than(&seen);
        let (one, two, three) = tokio::join!(asking(), asking(), asking());
        for failure in [one, two, three] {
            assert_eq!(failure, Err("no answer within 10000 ms".to_owned()));
        }
        assert_eq!(questions.load(Ordering::Relaxed), 1);
    }
}
