//! The backends that a file names. What is set of others is left out: RabbitMQ does not ask them.

use super::Fate;
use super::lines::{Line, value, values};

const NAMES: &str = "auth_backends.";
/// The keys that say how a backend is asked.
const KEYS_OF: [(&str, &str); 3] =
    [("auth_http.", "http"), ("auth_cache.", "http"), ("auth_oauth2.", "oauth2")];

/// A backend that says who may log in, and one that says what they may do. They are mostly the same.
struct Pair<'a> {
    logins: &'a str,
    permissions: &'a str,
}

impl Pair<'_> {
    fn is_apart(&self) -> bool {
        self.logins != self.permissions
    }

    fn has(&self, backend: &str) -> bool {
        self.logins == backend || self.permissions == backend
    }
}

/// Which backend a name means: modules have longer ones.
fn plain(name: &str) -> &str {
    name.strip_prefix("rabbit_auth_backend_").unwrap_or(name)
}

/// The pair that is set under a key, by itself or each with a key of its own. Where one is missing, RabbitMQ takes the other.
fn pair<'a>(lines: &'a [Line], key: &str) -> Option<Pair<'a>> {
    let both = value(lines, key);
    let each = |part: &str| both.or_else(|| value(lines, &format!("{key}.{part}")));
    let (logins, permissions) = (each("authn"), each("authz"));
    Some(Pair {
        logins: plain(logins.or(permissions)?),
        permissions: plain(permissions.or(logins)?),
    })
}

/// The pair under a key of `auth_backends`, with what is behind the cache: RabbitMQ's own users, if the file names nothing.
fn behind_cache<'a>(lines: &'a [Line], key: &str) -> Option<Pair<'a>> {
    let named = pair(lines, key)?;
    let cached = pair(lines, "auth_cache.cached_backend");
    let cached = cached.unwrap_or(Pair { logins: "internal", permissions: "internal" });
    let asked = |named, cached| if named == "cache" { cached } else { named };
    Some(Pair {
        logins: asked(named.logins, cached.logins),
        permissions: asked(named.permissions, cached.permissions),
    })
}

/// The key of an entry: the first part behind `auth_backends`.
fn entry(key: &str) -> String {
    let number = key.trim_start_matches(NAMES).split('.').next().unwrap_or_default();
    format!("{NAMES}{number}")
}

fn pairs<'a>(lines: &'a [Line]) -> impl Iterator<Item = Pair<'a>> {
    values(lines, NAMES).filter_map(|(key, _)| behind_cache(lines, &entry(key)))
}

/// Whether a backend is asked for both, who may log in and what they may do.
pub(super) fn is_named(backend: &str, lines: &[Line]) -> bool {
    pairs(lines).any(|pair| !pair.is_apart() && pair.has(backend))
}

/// What is said of a key of a backend that the file does not name.
pub(super) fn left_out(key: &str, lines: &[Line]) -> Option<Fate> {
    let (_, backend) = KEYS_OF.iter().find(|(keys, _)| key.starts_with(keys))?;
    if is_named(backend, lines) {
        return None;
    }
    Some(match pairs(lines).any(|pair| pair.has(backend)) {
        true => Fate::NotThere(format!(
            "left out, as auth_backends names {backend} for logins or for permissions only"
        )),
        false => Fate::NotNeeded(format!(
            "left out, as auth_backends does not name {backend}, and RabbitMQ does not ask it"
        )),
    })
}

/// A line that names a backend.
pub(super) fn backend(key: &str, text: &str, lines: &[Line], _: &mut serde_json::Value) -> Fate {
    let apart = behind_cache(lines, &entry(key)).filter(Pair::is_apart);
    let why = match (apart, plain(text)) {
        (Some(Pair { logins, permissions }), _) => {
            let why = format!(
                "{logins} for logins and {permissions} for permissions: one backend is asked for both, so neither is: create \
                 the users in the broker"
            );
            if lets_own_users_in(lines) {
                return Fate::NotThere(why);
            }
            why
        }
        (None, "internal") => {
            return Fate::NotNeeded("users and permissions are the broker's own".to_owned());
        }
        (None, "http") => {
            "auth_http is asked after the broker's own users if its paths are set".to_owned()
        }
        (None, "cache") => "answers of auth_http are cached".to_owned(),
        (None, "oauth2") => {
            "passwords that are tokens are checked as such if oauth.resource_server_id is set"
                .to_owned()
        }
        (None, _) => {
            let why = format!("{text} is not supported: create the users in the broker");
            return Fate::NotThere(why);
        }
    };
    if lets_own_users_in(lines) {
        return Fate::NotNeeded(why);
    }
    Fate::NotThere(format!(
        "{why}; but the broker's own users, whom the file keeps out, are let in too: import none, and set auth.password \
         to one that no client has"
    ))
}

/// Whether users of RabbitMQ's own database log in there.
fn lets_own_users_in(lines: &[Line]) -> bool {
    pairs(lines).any(|pair| pair.logins == "internal")
}
