//! What a user may do in a vhost, compiled as it is asked for.

use crate::access::Right;
use crate::directory::Directory;
use crate::pattern::{self, Pattern, Variables};
use crate::permission::{Permission, TopicPermission};
use crate::tags::Tag;
use std::sync::OnceLock;

/// What a user may do in a vhost now: shared by all that it does there.
#[derive(Debug)]
pub(crate) struct View {
    pub user: String,
    pub vhost: String,
    /// Nothing at all without it.
    rules: Option<Rules>,
    /// May publish with another user's name.
    pub impersonator: bool,
}

#[derive(Debug)]
struct Rules {
    permission: Permission,
    configure: OnceLock<Pattern>,
    write: OnceLock<Pattern>,
    read: OnceLock<Pattern>,
    /// By exchange.
    topics: Vec<Topic>,
}

/// What may be written to an exchange and read from it. There may be very many, of which few are asked for.
#[derive(Debug)]
struct Topic {
    exchange: String,
    permission: TopicPermission,
    write: OnceLock<Pattern>,
    read: OnceLock<Pattern>,
}

impl View {
    pub fn new(directory: &Directory, user: &str, vhost: &str) -> Self {
        let rules = directory.permission(user, vhost).map(|permission| {
            let topics = directory.topic_permissions(user, vhost);
            Rules::new(permission, topics.into_iter().map(Topic::new).collect())
        });
        let impersonator = is_impersonator(directory, user);
        View { user: user.to_owned(), vhost: vhost.to_owned(), rules, impersonator }
    }

    pub fn unrestricted(user: &str, vhost: &str) -> Self {
        let rules = Some(Rules::new(Permission::all(), Vec::new()));
        View { user: user.to_owned(), vhost: vhost.to_owned(), rules, impersonator: false }
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
                let known = rules.topics.iter().map(|one| (one.exchange.as_str(), &one.permission));
                rules.permission == permission && known.eq(topics)
            }
            _ => false,
        }
    }

    /// Patterns that it has when all of them have been asked for.
    pub fn patterns(&self) -> usize {
        3 + self.rules.as_ref().map_or(0, |rules| 2 * rules.topics.len())
    }

    /// Whether there is a permission for the vhost, however little that would permit.
    pub fn enters(&self) -> bool {
        self.rules.is_some()
    }

    pub fn permits_everything(&self) -> bool {
        self.rules.as_ref().is_some_and(|rules| {
            let rights = [Right::Configure, Right::Write, Right::Read];
            rules.topics.is_empty()
                && rights.into_iter().all(|right| rules.pattern(right).is_everything())
        })
    }

    pub fn matches(&self, right: Right, name: &[u8]) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.pattern(right).matches(name))
    }

    pub fn matches_topic(&self, right: Right, exchange: &[u8], routing_key: &[u8]) -> bool {
        let Some(rules) = &self.rules else { return false };
        let at = rules.topics.binary_search_by(|one| one.exchange.as_bytes().cmp(exchange));
        let Ok(at) = at else { return true };
        let topic = &rules.topics[at];
        let compile = |text: &str| {
            let (username, vhost) = (self.user.as_str(), self.vhost.as_str());
            compile(&pattern::expand(text, &Variables { username, vhost, client_id: None }))
        };
        let pattern = match right {
            Right::Write => topic.write.get_or_init(|| compile(&topic.permission.write)),
            Right::Read => topic.read.get_or_init(|| compile(&topic.permission.read)),
            // Keys are not made or removed.
            Right::Configure => return true,
        };
        pattern.matches(routing_key)
    }
}

fn is_impersonator(directory: &Directory, user: &str) -> bool {
    directory.user(user).is_some_and(|user| user.tags.has(Tag::Impersonator))
}

impl Rules {
    fn new(permission: Permission, mut topics: Vec<Topic>) -> Self {
        topics.sort_by(|one, other| one.exchange.cmp(&other.exchange));
        let (configure, write, read) = Default::default();
        Rules { permission, configure, write, read, topics }
    }

    fn pattern(&self, right: Right) -> &Pattern {
        let (pattern, text) = match right {
            Right::Configure => (&self.configure, &self.permission.configure),
            Right::Write => (&self.write, &self.permission.write),
            Right::Read => (&self.read, &self.permission.read),
        };
        pattern.get_or_init(|| compile(text))
    }
}

impl Topic {
    fn new((exchange, permission): (&str, &TopicPermission)) -> Self {
        let (write, read) = Default::default();
        Topic { exchange: exchange.to_owned(), permission: permission.clone(), write, read }
    }
}

/// What can't be compiled was refused when it was set, perhaps by a version that took more. Should it come here all the
/// same, such as from a log that was written otherwise, it permits nothing.
fn compile(text: &str) -> Pattern {
    let compiled = Pattern::new(text).or_else(|_| Pattern::kept(text));
    compiled.unwrap_or_else(|_| Pattern::never())
}
