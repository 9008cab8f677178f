//! The questions that a session asks.

use crate::accounts::Accounts;
use crate::authority::Grant;
use crate::tags::Tag;
use crate::view::View;
use std::fmt;
use std::sync::Arc;

/// The name under which the nameless exchange is asked for.
const DEFAULT_EXCHANGE: &str = "amq.default";

/// What is to be done with something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Make or remove it.
    Configure,
    /// Put messages into it.
    Write,
    /// Get messages out of it.
    Read,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Right::Configure => "configure",
            Right::Write => "write",
            Right::Read => "read",
        })
    }
}

/// What something is to be done with, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource<'a> {
    /// An exchange; the default one has the empty name.
    Exchange(&'a [u8]),
    /// A queue.
    Queue(&'a [u8]),
}

impl<'a> Resource<'a> {
    /// Its name; that of the default exchange is `amq.default`.
    pub fn name(self) -> &'a [u8] {
        match self {
            Resource::Exchange(b"") => DEFAULT_EXCHANGE.as_bytes(),
            Resource::Exchange(name) | Resource::Queue(name) => name,
        }
    }
}

impl fmt::Display for Resource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Resource::Exchange(_) => "exchange",
            Resource::Queue(_) => "queue",
        };
        write!(f, "{kind} '{}'", String::from_utf8_lossy(self.name()))
    }
}

/// Something is not permitted; the text is what a client hears.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

/// What one session may do. A change to the accounts holds from the next question on.
#[derive(Debug)]
pub struct Access(Source);

#[derive(Debug)]
enum Source {
    Directory(OfDirectory),
    Grant { grant: Arc<Grant>, vhost: String },
}

/// Permissions that the directory has.
#[derive(Debug)]
struct OfDirectory {
    /// Who knows of changes; without it there are none.
    accounts: Option<Arc<Accounts>>,
    seen: u64,
    view: Arc<View>,
}

impl Access {
    /// For who may do everything, whatever the accounts say: what the broker does by itself, and
    /// programs that embed it.
    pub fn unrestricted(user: &str, vhost: &str) -> Self {
        let view = Arc::new(View::unrestricted(user, vhost));
        Access(Source::Directory(OfDirectory { accounts: None, seen: 0, view }))
    }

    pub(crate) fn new(accounts: Arc<Accounts>, seen: u64, view: Arc<View>) -> Self {
        Access(Source::Directory(OfDirectory { accounts: Some(accounts), seen, view }))
    }

    /// For a user who has logged in elsewhere.
    pub fn granted(grant: &Arc<Grant>, vhost: &str) -> Self {
        Access(Source::Grant { grant: Arc::clone(grant), vhost: vhost.to_owned() })
    }

    /// Whether an authority other than the directory says what is permitted.
    pub fn is_granted(&self) -> bool {
        matches!(self.0, Source::Grant { .. })
    }

    /// Whether the vhost may be entered.
    ///
    /// # Errors
    /// If there is no permission for it, however little that would permit.
    pub fn enter(&mut self) -> Result<(), Refusal> {
        let refuse = |user: &str, vhost: &str| {
            Err(Refusal(format!("access to vhost '{vhost}' refused for user '{user}'")))
        };
        match &mut self.0 {
            Source::Directory(own) => match own.view() {
                view if view.enters() => Ok(()),
                View { user, vhost, .. } => refuse(user, vhost),
            },
            Source::Grant { grant, vhost } => {
                let authority = grant.authority();
                match authority.permits_vhost(vhost) {
                    true => Ok(()),
                    false => refuse(&authority.user().name, vhost),
                }
            }
        }
    }

    /// Whether all questions about this vhost would be answered with yes.
    pub fn permits_everything(&mut self) -> bool {
        match &mut self.0 {
            Source::Directory(own) => own.view().permits_everything(),
            Source::Grant { .. } => false,
        }
    }

    /// Whether the user may publish with another user's name.
    pub fn may_impersonate(&mut self) -> bool {
        match &mut self.0 {
            Source::Directory(own) => own.view().impersonator,
            Source::Grant { grant, .. } => grant.authority().user().tags.has(Tag::Impersonator),
        }
    }

    /// Whether this may be done.
    ///
    /// # Errors
    /// If it may not.
    pub fn check(&mut self, right: Right, resource: Resource<'_>) -> Result<(), Refusal> {
        match self.permits(right, resource) {
            true => Ok(()),
            false => Err(self.refuse(right, resource)),
        }
    }

    /// Whether anything may be done with it, which is what is needed to see whether it exists.
    ///
    /// # Errors
    /// If nothing may.
    pub fn check_any(&mut self, resource: Resource<'_>) -> Result<(), Refusal> {
        let rights = [Right::Read, Right::Write, Right::Configure];
        match rights.into_iter().any(|right| self.permits(right, resource)) {
            true => Ok(()),
            false => Err(self.refuse(Right::Configure, resource)),
        }
    }

    /// Whether this routing key may be used to publish to a topic exchange, or to bind to it. Asked
    /// besides [`Access::check`].
    ///
    /// # Errors
    /// If it may not.
    pub fn check_topic(
        &mut self,
        right: Right,
        exchange: &[u8],
        routing_key: &[u8],
    ) -> Result<(), Refusal> {
        let is_permitted = match &mut self.0 {
            Source::Directory(own) => own.view().matches_topic(right, exchange, routing_key),
            Source::Grant { grant, vhost } => {
                grant.authority().permits_topic(vhost, right, exchange, routing_key)
            }
        };
        if is_permitted {
            return Ok(());
        }
        let key = String::from_utf8_lossy(routing_key);
        let exchange = String::from_utf8_lossy(exchange);
        Err(self.refuse(right, format_args!("topic '{key}' in exchange '{exchange}'")))
    }

    fn permits(&mut self, right: Right, resource: Resource<'_>) -> bool {
        match &mut self.0 {
            Source::Directory(own) => own.view().matches(right, resource.name()),
            Source::Grant { grant, vhost } => {
                let resource = match resource {
                    Resource::Exchange(_) => Resource::Exchange(resource.name()),
                    queue @ Resource::Queue(_) => queue,
                };
                grant.authority().permits(vhost, right, resource)
            }
        }
    }

    fn refuse(&self, right: Right, what: impl fmt::Display) -> Refusal {
        match &self.0 {
            Source::Directory(own) => refuse(&own.view.user, &own.view.vhost, right, what),
            Source::Grant { grant, vhost } => {
                refuse(&grant.authority().user().name, vhost, right, what)
            }
        }
    }
}

impl OfDirectory {
    /// What is permitted now: takes note of changes.
    #[inline]
    fn view(&mut self) -> &View {
        if let Some(accounts) = &self.accounts
            && accounts.generation() != self.seen
        {
            (self.seen, self.view) = accounts.view(&self.view.user, &self.view.vhost);
        }
        &self.view
    }
}

fn refuse(user: &str, vhost: &str, right: Right, what: impl fmt::Display) -> Refusal {
    Refusal(format!("{right} access to {what} in vhost '{vhost}' refused for user '{user}'"))
}
