//! Looks whether certificates and revocation lists have been renewed, and warns of those that expire.

use super::facts::RevocationList;
use super::identity::TlsError;
use crate::notices::Notices;
use crate::service::stopped;
use courser_management::Certificate;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How often the files are looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(10);
/// A certificate that expires sooner than this is warned of, once a day.
const WARN_BEFORE_S: i64 = 30 * 24 * 3600;
/// A revocation list is made anew far more often: one that expires sooner than this is warned of, or in the second half of its
/// time if that is shorter. That comes where a list has not been made anew in time.
const WARN_OF_LIST_BEFORE_S: i64 = 2 * 24 * 3600;
/// How often each certificate and list is warned of.
const WARN_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// What tells one state of a file from another.
type Stamp = (PathBuf, Option<(SystemTime, u64)>);

/// Revocation lists that have been warned of, whether they had expired, and when that was.
type Warned = Vec<(RevocationList, bool, Instant)>;

/// Certificates in use that come from files.
pub(crate) trait FromFiles: Send + Sync {
    /// The files.
    fn files(&self) -> Vec<PathBuf>;

    /// Reads the files again, for connections from now on. Those that there are go on.
    ///
    /// # Errors
    /// What is wrong with them; nothing has changed then.
    fn reload(&self) -> Result<(), TlsError>;

    /// The certificates in use, and the authorities that are trusted.
    fn in_use(&self) -> Vec<Certificate>;

    /// The lists of revoked certificates in use.
    fn lists(&self) -> Vec<RevocationList> {
        Vec::new()
    }
}

/// Keeps certificates those of their files.
pub(crate) struct Certificates {
    all: Vec<Arc<dyn FromFiles>>,
    notices: Arc<Notices>,
    look: Notify,
}

impl Certificates {
    /// All certificates of a broker, as they have been read.
    pub fn new(all: Vec<Arc<dyn FromFiles>>, notices: &Arc<Notices>) -> Arc<Self> {
        Arc::new(Certificates { all, notices: Arc::clone(notices), look: Notify::new() })
    }

    /// Starts to watch their files, until the broker stops.
    pub fn watch(self: &Arc<Self>, stopping: watch::Receiver<bool>) {
        if !self.all.is_empty() {
            tokio::spawn(Arc::clone(self).run(stopping));
        }
    }

    /// Reads the files at once, changed or not.
    pub fn reload(&self) {
        self.look.notify_one();
    }

    /// Those in use, and the authorities that are trusted.
    pub fn in_use(&self) -> Vec<Certificate> {
        self.all.iter().flat_map(|one| one.in_use()).collect()
    }

    async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let mut seen = self.stamps().await;
        // They may have been renewed since the start began, which a long log makes long. What can't be read is tried again
        // until it can, and said once.
        let mut broken = self.read_again().await;
        Self::tell(&broken);
        self.notices.certificates_renewed(broken.is_empty());
        let (mut warned_at, mut warned) = (None, Warned::new());
        loop {
            let now_s = now_s();
            if warned_at.is_none_or(|at: Instant| at.elapsed() >= WARN_INTERVAL) {
                self.warn_of_expiry(now_s);
                warned_at = Some(Instant::now());
            }
            self.warn_of_lists(now_s, &mut warned);
            let asked = tokio::select! {
                () = tokio::time::sleep(WATCH_INTERVAL) => false,
                () = self.look.notified() => true,
                () = stopped(&mut stopping) => return,
            };
            let now = self.stamps().await;
            if now == seen && broken.is_empty() && !asked {
                continue;
            }
            seen = now;
            let errors = self.read_again().await;
            let is_new = |error: &&String| asked || !broken.contains(*error);
            Self::tell(errors.iter().filter(is_new));
            self.notices.certificates_renewed(errors.is_empty());
            if errors.is_empty() {
                tracing::info!("certificates read again; new connections get them");
                warned_at = None;
            }
            broken = errors;
        }
    }

    fn tell<'a>(errors: impl IntoIterator<Item = &'a String>) {
        for error in errors {
            tracing::error!(%error, "certificates not renewed; the old ones stay in use");
        }
    }

    /// Reads all files again. Returns what is wrong with those that can't be used.
    async fn read_again(self: &Arc<Self>) -> Vec<String> {
        let all = self.all.clone();
        let reloading = tokio::task::spawn_blocking(move || {
            let errors = all.iter().filter_map(|one| one.reload().err());
            errors.map(|error| error.to_string()).collect()
        });
        reloading.await.unwrap_or_else(|panicked| vec![panicked.to_string()])
    }

    async fn stamps(&self) -> Vec<Stamp> {
        let files: Vec<PathBuf> = self.all.iter().flat_map(|one| one.files()).collect();
        let stamp = |path: PathBuf| {
            let about = std::fs::metadata(&path);
            let stamp = about.ok().and_then(|about| Some((about.modified().ok()?, about.len())));
            (path, stamp)
        };
        let all = tokio::task::spawn_blocking(move || files.into_iter().map(stamp).collect());
        all.await.unwrap_or_default()
    }

    fn warn_of_expiry(&self, now_s: i64) {
        for certificate in self.in_use() {
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

    /// Warns of each list that expires soon or has, when that comes and once a day then.
    fn warn_of_lists(&self, now_s: i64, warned: &mut Warned) {
        warned.retain(|(.., at)| at.elapsed() < WARN_INTERVAL);
        for (list, left_s) in self.expiring_lists(now_s) {
            let has_expired = left_s <= 0;
            if warned.iter().any(|(known, had, _)| *known == list && *had == has_expired) {
                continue;
            }
            let RevocationList { path, issuer, .. } = &list;
            if has_expired {
                tracing::error!(
                    path,
                    issuer,
                    "the revocation list has expired: all certificates of its issuer are refused"
                );
            } else {
                let hours = left_s / 3600;
                tracing::warn!(path, issuer, hours, "the revocation list expires");
            }
            warned.push((list, has_expired, Instant::now()));
        }
    }

    /// The lists that expire soon or have, and how many seconds they have left.
    fn expiring_lists(&self, now_s: i64) -> Vec<(RevocationList, i64)> {
        let lists = self.all.iter().flat_map(|one| one.lists());
        let left = lists.map(|list| {
            let left_s = list.not_after_s - now_s;
            (list, left_s)
        });
        let is_due = |(list, left_s): &(RevocationList, i64)| {
            let half_s = list.not_after_s.saturating_sub(list.not_before_s) / 2;
            *left_s < WARN_OF_LIST_BEFORE_S.min(half_s) || *left_s <= 0
        };
        left.filter(is_due).collect()
    }
}

fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Files of which this is known: how often they have been read, and when their revocation lists were made and expire.
    #[derive(Default)]
    struct Read(AtomicUsize, Vec<(i64, i64)>);

    impl FromFiles for Read {
        fn files(&self) -> Vec<PathBuf> {
            Vec::new()
        }

        fn reload(&self) -> Result<(), TlsError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn in_use(&self) -> Vec<Certificate> {
            Vec::new()
        }

        fn lists(&self) -> Vec<RevocationList> {
            let list = |&(not_before_s, not_after_s): &(i64, i64)| RevocationList {
                path: "clients.crl".to_owned(),
                issuer: "CN=clients".to_owned(),
                not_before_s,
                not_after_s,
            };
            self.1.iter().map(list).collect()
        }
    }

    #[test]
    fn revocation_lists_are_warned_of_at_least_once_before_they_expire() {
        let now_s = 1_000_000_000;
        let warns_s = WARN_INTERVAL.as_secs() as i64;
        let ends_s = [now_s - 1, now_s, now_s + warns_s, now_s + 2 * warns_s, i64::MAX];
        let files = Read(AtomicUsize::new(0), ends_s.map(|end_s| (0, end_s)).to_vec());
        let certificates = Certificates::new(vec![Arc::new(files)], &Arc::default());
        let left_s = |now_s| {
            let lists = certificates.expiring_lists(now_s).into_iter();
            lists.map(|(_, left_s)| left_s).collect::<Vec<_>>()
        };
        assert_eq!(left_s(now_s), [-1, 0, warns_s]);
        assert_eq!(left_s(now_s + warns_s)[3], warns_s);
    }

    #[tokio::test(start_paused = true)]
    async fn revocation_lists_of_a_day_are_warned_of_when_they_have_not_been_renewed_in_time() {
        let hours_s = |hours: i64| hours * 3600;
        let files = Read(AtomicUsize::new(0), vec![(0, hours_s(24))]);
        let certificates = Certificates::new(vec![Arc::new(files)], &Arc::default());
        let mut warned = Warned::new();
        let mut told = Vec::new();
        for hour in 0..=50 {
            let before = warned.last().map(|(.., at)| *at);
            certificates.warn_of_lists(hours_s(hour), &mut warned);
            if warned.last().map(|(.., at)| *at) > before {
                told.push(hour);
            }
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
        assert_eq!(
            told,
            [13, 24, 48],
            "in its second half, when it expires, and each day from then"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_renewed_while_the_broker_started_is_in_use_before_long() {
        let (read, notices) = (Arc::new(Read::default()), Arc::default());
        let certificates = Certificates::new(vec![Arc::clone(&read) as _], &notices);
        let (_stop, stopping) = watch::channel(false);
        certificates.watch(stopping);
        tokio::time::sleep(10 * WATCH_INTERVAL).await;
        assert_eq!(read.0.load(Ordering::Relaxed), 1, "once, as nothing has changed since");
    }
}
