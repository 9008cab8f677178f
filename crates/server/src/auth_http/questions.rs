//! What is asked, in the words of RabbitMQ's plugin, and how the answers are read.

use crate::config::AuthHttp;
use courser_auth::{Resource, Right, User};
use form_urlencoded::byte_serialize;
use std::fmt::Write as _;
use std::net::IpAddr;
use zeroize::Zeroizing;

/// A question.
pub(super) enum Question<'a> {
    /// Whether this is a user's password.
    User { name: &'a str, password: &'a [u8] },
    /// Whether a user may enter a vhost.
    Vhost { user: &'a User, vhost: &'a str, from: IpAddr },
    /// Whether it may do something with a queue or an exchange.
    Resource { user: &'a User, vhost: &'a str, right: Right, resource: Resource<'a> },
    /// Whether it may use a routing key.
    Topic {
        user: &'a User,
        vhost: &'a str,
        right: Right,
        exchange: &'a [u8],
        routing_key: &'a [u8],
    },
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Yes; for a user, what follows are its tags.
    Allow(String),
    /// No, and what is said of that.
    Deny(String),
}

impl Verdict {
    /// Reads what is answered. Anything but a clear yes or no is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
        match word {
            "allow" => Some(Verdict::Allow(rest.trim().to_owned())),
            "deny" if rest.is_empty() => Some(Verdict::Deny(String::new())),
            "deny" => Some(Verdict::Deny(format!(": {}", rest.trim()))),
            _ => None,
        }
    }

    pub fn is_allow(&self) -> bool {
        matches!(self, Verdict::Allow(_))
    }
}

impl Question<'_> {
    /// Where it is asked.
    pub fn path<'a>(&self, settings: &'a AuthHttp) -> &'a str {
        match self {
            Question::User { .. } => &settings.user_path,
            Question::Vhost { .. } => &settings.vhost_path,
            Question::Resource { .. } => &settings.resource_path,
            Question::Topic { .. } => &settings.topic_path,
        }
    }

    /// The name of the user that it is about.
    pub fn about(&self) -> &str {
        match self {
            Question::User { name, .. } => name,
            Question::Vhost { user, .. }
            | Question::Resource { user, .. }
            | Question::Topic { user, .. } => &user.name,
        }
    }

    /// Its parameters, as a form.
    pub fn form(&self) -> Zeroizing<String> {
        let mut form = Form::default();
        match self {
            Question::User { name, password } => {
                form.put("username", name.as_bytes()).put("password", password);
            }
            Question::Vhost { user, vhost, from } => {
                form.of(user, vhost).put("ip", from.to_canonical().to_string().as_bytes());
            }
            Question::Resource { user, vhost, right, resource } => {
                let kind = match resource {
                    Resource::Exchange(_) => "exchange",
                    Resource::Queue(_) => "queue",
                };
                form.of(user, vhost).put("resource", kind.as_bytes());
                form.put("name", resource.name()).put("permission", right.to_string().as_bytes());
            }
            Question::Topic { user, vhost, right, exchange, routing_key } => {
                form.of(user, vhost).put("resource", b"topic").put("name", exchange);
                form.put("permission", right.to_string().as_bytes());
                form.put("routing_key", routing_key);
                form.put("variable_map.username", user.name.as_bytes());
                form.put("variable_map.vhost", vhost.as_bytes());
            }
        }
        form.0
    }
}

#[derive(Default)]
struct Form(Zeroizing<String>);

impl Form {
    fn put(&mut self, name: &str, value: &[u8]) -> &mut Self {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        // Writing to a String does not fail.
        let _ = write!(self.0, "{name}=");
        self.0.extend(byte_serialize(value));
        self
    }

    fn of(&mut self, user: &User, vhost: &str) -> &mut Self {
        let tags = user.tags.iter().collect::<Vec<_>>().join(" ");
        self.put("username", user.name.as_bytes());
        self.put("vhost", vhost.as_bytes()).put("tags", tags.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use courser_auth::{PasswordHash, Tags};

    #[test]
    fn questions_are_forms_with_the_names_that_programs_know() {
        let mut user = User::new("a&b", PasswordHash::none());
        user.tags = Tags::parse("management,x").expect("tags");
        let password = b"p w\xff";
        let asked = Question::User { name: "a&b", password }.form();
        assert_eq!(*asked, "username=a%26b&password=p+w%FF");
        let from = "::ffff:10.0.0.1".parse().expect("an address");
        let asked = Question::Vhost { user: &user, vhost: "/", from }.form();
        assert_eq!(*asked, "username=a%26b&vhost=%2F&tags=management+x&ip=10.0.0.1");
        let (vhost, right) = ("v", Right::Configure);
        let resource = Resource::Exchange(b"");
        let asked = Question::Resource { user: &user, vhost, right, resource }.form();
        assert_eq!(
            *asked,
            "username=a%26b&vhost=v&tags=management+x&resource=exchange&name=amq.default&permission=configure"
        );
        let (right, exchange, routing_key) = (Right::Write, b"x".as_slice(), b"a.#".as_slice());
        let asked = Question::Topic { user: &user, vhost, right, exchange, routing_key }.form();
        assert_eq!(
            *asked,
            "username=a%26b&vhost=v&tags=management+x&resource=topic&name=x&permission=write\
             &routing_key=a.%23&variable_map.username=a%26b&variable_map.vhost=v"
        );
    }

    #[test]
    fn only_a_clear_answer_is_one() {
        let allow = |tags: &str| Some(Verdict::Allow(tags.to_owned()));
        assert_eq!(Verdict::parse("allow"), allow(""));
        assert_eq!(
            Verdict::parse(" Allow administrator  management\r\n"),
            allow("administrator  management")
        );
        assert_eq!(Verdict::parse("deny"), Some(Verdict::Deny(String::new())));
        assert_eq!(Verdict::parse("deny too late"), Some(Verdict::Deny(": too late".to_owned())));
        for text in ["", "allowed", "denyallow", "yes", "<html>allow</html>"] {
            assert_eq!(Verdict::parse(text), None, "{text}");
        }
    }
}
