//! What a user may do in a vhost, compiled, and the questions that its session asks.

use crate::accounts::Accounts;
use crate::authority::Grant;
use crate::directory::Directory;
use crate::pattern::{self, Pattern, Variables};
use crate::permission::{Permission, TopicPermission};
use crate::tags::Tag;
use std::collections::HashMap;
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

/// What a user may do in a vhost now: shared by all its connections there.
#[derive(Debug)]
pub(crate) struct View {
    user: String,
    vhost: String,
    /// Nothing at all without it.
    rules: Option<Rules>,
    /// May publish with another user's name.
    impersonator: bool,
}

#[derive(Debug)]
struct Rules {
    /// What these were compiled from.
    permission: Permission,
    topics_from: Vec<(String, TopicPermission)>,
    configure: Pattern,
    write: Pattern,
    read: Pattern,
    /// Patterns of what may be written and read, by exchange.
    topics: HashMap<Vec<u8>, (Pattern, Pattern)>,
}

impl View {
    pub fn new(directory: &Directory, user: &str, vhost: &str) -> Self {
        let rules = directory.permission(user, vhost).map(|permission| {
            let topics = directory.topic_permissions(user, vhost);
            let owned = |(exchange, one): (&str, &TopicPermission)| (exchange.into(), one.clone());
            Rules::new(permission, topics.into_iter().map(owned).collect(), user, vhost)
        });
        let impersonator = is_impersonator(directory, user);
        View { user: user.to_owned(), vhost: vhost.to_owned(), rules, impersonator }
    }

    fn unrestricted(user: &str, vhost: &str) -> Self {
        let rules = Rules::new(Permission::all(), Vec::new(), user, vhost);
        let (user, vhost) = (user.to_owned(), vhost.to_owned());
        View { user, vhost, rules: Some(rules), impersonator: false }
    }

    /// Whether it still says what the directory does.
    pub fn is_current(&self, directory: &Directory) -> bool {
        if self.impersonator != is_impersonator(directory, &self.user) {
            return false;
        }
        let permission = directory.permission(&self.user, &self.vhost);
        match (&self.rules, permission) {
            (None, None) => true,
            (Some(rules), Some(permission)) => {
                let topics = directory.topic_permissions(&self.user, &self.vhost);
                let known = rules.topics_from.iter().map(|(exchange, one)| (&**exchange, one));
                rules.permission == permission && known.eq(topics)
            }
            _ => false,
        }
    }

    fn matches(&self, right: Right, name: &[u8]) -> bool {
        self.rules.as_ref().is_some_and(|rules| {
            let pattern = match right {
                Right::Configure => &rules.configure,
                Right::Write => &rules.write,
                Right::Read => &rules.read,
            };
            pattern.matches(name)
        })
    }

    fn matches_topic(&self, right: Right, exchange: &[u8], routing_key: &[u8]) -> bool {
        let Some(rules) = &self.rules else { return false };
        let Some((write, read)) = rules.topics.get(exchange) else { return true };
        match right {
            Right::Write => write.matches(routing_key),
            Right::Read => read.matches(routing_key),
            // Keys are not made or removed.
            Right::Configure => true,
        }
    }
}

fn is_impersonator(directory: &Directory, user: &str) -> bool {
    directory.user(user).is_some_and(|user| user.tags.has(Tag::Impersonator))
}

impl Rules {
    fn permit_everything(&self) -> bool {
        let patterns = [&self.configure, &self.write, &self.read];
        self.topics.is_empty() && patterns.iter().all(|pattern| pattern.is_everything())
    }

    fn new(
        permission: Permission,
        topics_from: Vec<(String, TopicPermission)>,
        username: &str,
        vhost: &str,
    ) -> Self {
        let variables = Variables { username, vhost, client_id: None };
        let topic = |text: &str| compile(&pattern::expand(text, &variables));
        let topics = topics_from.iter().map(|(exchange, one)| {
            (exchange.clone().into_bytes(), (topic(&one.write), topic(&one.read)))
        });
        Rules {
            configure: compile(&permission.configure),
            write: compile(&permission.write),
            read: compile(&permission.read),
            topics: topics.collect(),
            permission,
            topics_from,
        }
    }
}

/// What can't be compiled was refused when it was set. Should it come here all the same, such as from
/// a log that another version wrote, it permits nothing.
fn compile(text: &str) -> Pattern {
    Pattern::new(text).unwrap_or_else(|_| Pattern::never())
}

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

    /// Whether it is somebody else than the directory who says what is permitted.
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
                View { rules: Some(_), .. } => Ok(()),
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
            Source::Directory(own) => {
                own.view().rules.as_ref().is_some_and(Rules::permit_everything)
            }
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
