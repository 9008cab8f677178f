//! Users whom another program knows, which is asked over HTTP as RabbitMQ's plugin auth_backend_http asks it.
//!
//! It is asked after the broker's own users. What it says is remembered for a short time; what it does not say is a no.
//!
//! - [`questions`]: what is asked, and how the answers are read.
//! - [`client`]: how that travels.
//! - [`cache`]: what is remembered.

mod cache;
mod client;
mod questions;

use crate::blocking::in_place;
use crate::config::AuthHttp;
use cache::Cache;
use client::Client;
use courser_auth::{Again, Authority, Origin, PasswordHash, Resource, Right, Tags, User, network};
use courser_management::{Share, Shares};
use courser_store::critical;
use parking_lot::Mutex;
use questions::{Question, Verdict};
use serde_json::{Value, json};
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle, Runtime};
use zeroize::Zeroizing;

pub(crate) use client::ClientError;

/// Questions that the program has at the same time, a socket each: others wait for a place. Half of the places are for
/// logins, so that these keep no permission waiting.
const QUESTIONS_MAX: usize = 128;
/// The part of one half that a user gets at most, or an address that logs in.
const SHARE: usize = 4;
/// Threads that wait, and those for one user: who asks one more is refused. A runtime has so many for all that
/// waits, and one whose threads are all taken serves no connection.
const WAITING_MAX: usize = 256;
const USER_WAITING_MAX: usize = 64;
/// What a passport of a user that the program knows is called.
const PASSPORT: &str = "http";
/// Beyond the time limit of a question, in which its end is noticed.
const SLACK: Duration = Duration::from_millis(500);

/// The other program.
pub(crate) struct HttpUsers {
    settings: AuthHttp,
    client: Client,
    cache: Mutex<Cache>,
    questions: Shares,
    /// Places for questions of logins, which addresses share.
    logins: Shares,
    waiting: Shares,
    /// Its thread asks, so that who needs an answer at once can wait for it.
    runtime: Option<Runtime>,
}

/// What one user may do, as the other program says.
struct HttpAuthority {
    users: Arc<HttpUsers>,
    user: Arc<User>,
    from: IpAddr,
    /// What the program is asked again with; nothing where another node asks it.
    password: Option<Zeroizing<Vec<u8>>>,
}

/// Why a login comes to nothing.
#[derive(Debug)]
pub(crate) enum NotLetIn {
    /// The program has said so: why, for the log.
    Refused(String),
    /// It has not said anything.
    NoAnswer(ClientError),
}

/// How many sockets questions want, if there is a program to ask.
pub(crate) fn sockets_wanted(settings: &AuthHttp) -> usize {
    if settings.is_used() { QUESTIONS_MAX } else { 0 }
}

impl HttpUsers {
    /// With so many sockets at most for what is asked at the same time.
    ///
    /// # Errors
    /// If authorities for TLS can't be read, or there is no thread to be had.
    pub fn new(settings: &AuthHttp, sockets: usize) -> Result<Arc<Self>, ClientError> {
        let half = (sockets / 2).max(1);
        let places = || Shares::new(half, half.div_ceil(SHARE));
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("courser-auth").enable_all().build()?;
        Ok(Arc::new(HttpUsers {
            client: Client::new(settings, sockets)?,
            cache: Mutex::new(Cache::new(Duration::from_secs(settings.cache_seconds))),
            settings: settings.clone(),
            questions: places(),
            logins: places(),
            waiting: Shares::new(WAITING_MAX, USER_WAITING_MAX),
            runtime: Some(runtime),
        }))
    }

    /// Who this is, if that is remembered.
    pub fn remembered(
        self: &Arc<Self>,
        name: &str,
        password: &[u8],
        from: IpAddr,
    ) -> Option<Arc<dyn Authority>> {
        let question = Question::User { name, password };
        let known = self.cache.lock().get(&question, Instant::now())?;
        self.authority(name, Some(password), known, from).ok()
    }

    /// Asks who this is.
    ///
    /// # Errors
    /// Why the user may not log in, or that it is not known.
    pub async fn log_in(
        self: &Arc<Self>,
        name: &str,
        password: &[u8],
        from: IpAddr,
    ) -> Result<Arc<dyn Authority>, NotLetIn> {
        let question = Question::User { name, password };
        let verdict = self.ask(&question, from).await.map_err(NotLetIn::NoAnswer)?;
        self.authority(name, Some(password), verdict, from).map_err(NotLetIn::Refused)
    }

    /// Whom [`Authority::passport`] has told of, on this node or on another one that asks the same program.
    pub fn readmitted(self: &Arc<Self>, passport: &str) -> Option<Arc<dyn Authority>> {
        let said: Value = serde_json::from_str(passport).ok()?;
        let said = said.get(PASSPORT)?;
        let text = |name: &str| said.get(name)?.as_str();
        let from = text("from")?.parse().ok()?;
        let verdict = Verdict::Allow(text("tags")?.to_owned());
        self.authority(text("user")?, None, verdict, from).ok()
    }

    fn authority(
        self: &Arc<Self>,
        name: &str,
        password: Option<&[u8]>,
        verdict: Verdict,
        from: IpAddr,
    ) -> Result<Arc<dyn Authority>, String> {
        let tags = match verdict {
            Verdict::Allow(tags) => tags,
            Verdict::Deny(why) => {
                return Err(format!("denied by {}{why}", self.settings.user_path));
            }
        };
        let mut user = User::new(name, PasswordHash::none());
        user.origin = Origin::Elsewhere;
        user.tags = Tags::new(tags.split_whitespace()).map_err(|error| error.to_string())?;
        let password = password.map(|password| Zeroizing::new(password.to_vec()));
        let (users, user) = (Arc::clone(self), Arc::new(user));
        Ok(Arc::new(HttpAuthority { users, user, from, password }))
    }

    /// Asks for a login, once there is a place for one more from its address.
    async fn ask(
        self: &Arc<Self>,
        question: &Question<'_>,
        from: IpAddr,
    ) -> Result<Verdict, ClientError> {
        let (path, form) = (question.path(&self.settings).to_owned(), question.form());
        let address = network(from).to_string();
        let limit = Duration::from_millis(self.settings.timeout_ms);
        let taken = tokio::time::timeout(limit, self.logins.take(&address, 1)).await;
        let Some(place) = taken.ok().flatten() else {
            return Err(ClientError::Failed { path, why: "no place to ask it in time".to_owned() });
        };
        // Another login of the user may have asked the same while this one waited.
        if let Some(known) = self.cache.lock().get(question, Instant::now()) {
            return Ok(known);
        }
        let users = Arc::clone(self);
        let asking = self.handle()?.spawn(async move {
            let _place = place;
            users.client.ask(&path, form).await
        });
        let verdict = asking.await.map_err(|_| ClientError::Interrupted)??;
        self.cache.lock().put(question, &verdict, Instant::now());
        Ok(verdict)
    }

    fn is_allowed(self: &Arc<Self>, question: &Question<'_>) -> bool {
        self.verdict(question).is_some_and(|verdict| verdict.is_allow())
    }

    /// The answer to a question that a thread waits for, if there is one. Another thread looks after this one's connections
    /// meanwhile.
    fn verdict(self: &Arc<Self>, question: &Question<'_>) -> Option<Verdict> {
        let known = || self.cache.lock().get(question, Instant::now());
        if let Some(known) = known() {
            return Some(known);
        }
        let user = question.about();
        let Some(_waiting) = self.waiting.try_take(user, 1) else {
            return self.unanswered(question, &"too many questions at the same time");
        };
        let Some(_place) = self.place(user) else {
            return self.unanswered(question, &"no place to ask it in time");
        };
        // Another connection of the user may have asked the same while this one waited.
        if let Some(known) = known() {
            return Some(known);
        }
        let (path, form) = (question.path(&self.settings).to_owned(), question.form());
        let users = Arc::clone(self);
        match self.wait_for(async move { users.client.ask(&path, form).await }) {
            Some(Ok(verdict)) => {
                self.cache.lock().put(question, &verdict, Instant::now());
                Some(verdict)
            }
            Some(Err(error)) => self.unanswered(question, &error),
            None => self.unanswered(question, &"no answer"),
        }
    }

    /// A place for a question about a user, once one is free.
    fn place(self: &Arc<Self>, user: &str) -> Option<Share> {
        if let Some(place) = self.questions.try_take(user, 1) {
            return Some(place);
        }
        let (users, user) = (Arc::clone(self), user.to_owned());
        self.wait_for(async move { users.questions.take(&user, 1).await })?
    }

    /// Waits for something on this thread, a little longer than an answer may take.
    fn wait_for<T: Send + 'static>(
        &self,
        what: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        critical::assert_outside("the program that knows users is waited for");
        let limit = Duration::from_millis(self.settings.timeout_ms) + SLACK;
        let (sender, coming) = sync_channel(1);
        self.handle().ok()?.spawn(async move {
            // Who has asked may not want to know any more.
            if let Ok(done) = tokio::time::timeout(limit, what).await {
                let _ = sender.send(done);
            }
        });
        in_place(|| coming.recv_timeout(limit)).ok()
    }

    fn unanswered(&self, question: &Question<'_>, why: &dyn fmt::Display) -> Option<Verdict> {
        tracing::debug!(path = question.path(&self.settings), %why, "refused: no answer that allows it");
        None
    }

    fn handle(&self) -> Result<&Handle, ClientError> {
        self.runtime.as_ref().map(Runtime::handle).ok_or(ClientError::Interrupted)
    }
}

impl Authority for HttpAuthority {
    fn user(&self) -> &Arc<User> {
        &self.user
    }

    fn permits_vhost(&self, vhost: &str) -> bool {
        self.users.is_allowed(&Question::Vhost { user: &self.user, vhost, from: self.from })
    }

    fn permits(&self, vhost: &str, right: Right, resource: Resource<'_>) -> bool {
        self.users.is_allowed(&Question::Resource { user: &self.user, vhost, right, resource })
    }

    fn permits_topic(
        &self,
        vhost: &str,
        right: Right,
        exchange: &[u8],
        routing_key: &[u8],
    ) -> bool {
        let user = &self.user;
        self.users.is_allowed(&Question::Topic { user, vhost, right, exchange, routing_key })
    }

    fn is_elsewhere(&self) -> bool {
        true
    }

    fn again(&self) -> Again {
        let Some(password) = &self.password else { return Again::Same };
        let question = Question::User { name: &self.user.name, password };
        let Some(verdict) = self.users.verdict(&question) else { return Again::Refused };
        match self.users.authority(&self.user.name, Some(password), verdict, self.from) {
            Ok(now) if now.user().tags == self.user.tags => Again::Same,
            Ok(now) => Again::Changed(now),
            Err(_) => Again::Refused,
        }
    }

    fn passport(&self) -> Option<String> {
        let tags = self.user.tags.iter().collect::<Vec<&str>>().join(" ");
        let said = json!({ "user": self.user.name, "tags": tags, "from": self.from.to_string() });
        Some(json!({ PASSPORT: said }).to_string())
    }
}

impl Drop for HttpUsers {
    fn drop(&mut self) {
        // The last one may be dropped on a thread that must not wait for another.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for HttpAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpAuthority").field("user", &self.user).finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpUsers")
            .field("user_path", &self.settings.user_path)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
