//! Looks whether certificates have been renewed, and warns of those that expire.

use super::acceptor::Acceptor;
use super::identity;
use crate::notices::Notices;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, watch};

/// How often the files are looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(10);
/// A certificate that expires sooner than this is warned of, once a day.
const WARN_BEFORE_S: i64 = 30 * 24 * 3600;
const WARN_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// What tells one state of a file from another.
type Stamp = (PathBuf, Option<(SystemTime, u64)>);

/// Keeps an acceptor's certificates those of their files.
pub(crate) struct Certificates {
    acceptor: Arc<Acceptor>,
    notices: Arc<Notices>,
    look: Notify,
}

impl Certificates {
    /// Starts to watch the files of `acceptor`, until the broker stops.
    pub fn watch(
        acceptor: &Arc<Acceptor>,
        notices: &Arc<Notices>,
        stopping: watch::Receiver<bool>,
    ) -> Arc<Self> {
        let (acceptor, notices) = (Arc::clone(acceptor), Arc::clone(notices));
        let certificates = Arc::new(Certificates { acceptor, notices, look: Notify::new() });
        tokio::spawn(Arc::clone(&certificates).run(stopping));
        certificates
    }

    /// Reads the files at once, changed or not.
    pub fn reload(&self) {
        self.look.notify_one();
    }

    async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let mut seen = self.stamps().await;
        // What could not be read, and why: tried again until it can, said once.
        let mut broken: Option<String> = None;
        let mut warned_at = None;
        loop {
            if warned_at.is_none_or(|at: tokio::time::Instant| at.elapsed() >= WARN_INTERVAL) {
                self.warn_of_expiry();
                warned_at = Some(tokio::time::Instant::now());
            }
            let asked = tokio::select! {
                () = tokio::time::sleep(WATCH_INTERVAL) => false,
                () = self.look.notified() => true,
                _ = stopping.changed() => return,
            };
            let now = self.stamps().await;
            if now == seen && broken.is_none() && !asked {
                continue;
            }
            seen = now;
            let acceptor = Arc::clone(&self.acceptor);
            let loaded = tokio::task::spawn_blocking(move || acceptor.reload()).await;
            self.notices.certificates_renewed(matches!(loaded, Ok(Ok(()))));
            match loaded {
                Ok(Ok(())) => {
                    tracing::info!("certificates read again; new connections get them");
                    (broken, warned_at) = (None, None);
                }
                Ok(Err(error)) => {
                    let error = error.to_string();
                    if asked || broken.as_ref() != Some(&error) {
                        tracing::error!(%error, "certificates not renewed; the old ones stay in use");
                    }
                    broken = Some(error);
                }
                Err(panicked) => tracing::error!(%panicked, "certificates not renewed"),
            }
        }
    }

    async fn stamps(&self) -> Vec<Stamp> {
        let files = identity::files(self.acceptor.settings());
        let stamp = |path: PathBuf| {
            let about = std::fs::metadata(&path);
            let stamp = about.ok().and_then(|about| Some((about.modified().ok()?, about.len())));
            (path, stamp)
        };
        let all = tokio::task::spawn_blocking(move || files.into_iter().map(stamp).collect());
        all.await.unwrap_or_default()
    }

    fn warn_of_expiry(&self) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_s = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        for certificate in self.acceptor.certificates() {
            let path = &certificate.path;
            let left_s = certificate.not_after_s - now_s;
            if left_s <= 0 {
                tracing::error!(path, subject = certificate.subject, "the certificate has expired");
            } else if left_s < WARN_BEFORE_S {
                let days = left_s / (24 * 3600);
                tracing::warn!(
                    path,
                    subject = certificate.subject,
                    days,
                    "the certificate expires"
                );
            }
        }
    }
}
