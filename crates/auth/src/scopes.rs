//! Rights as tokens carry them: a list of scopes, as RabbitMQ writes them.
//!
//! `<prefix><right>:<vhost>/<name>[/<routing key>]`, where `*` stands for any run of bytes, what would have a meaning is
//! percent-encoded, and `{vhost}` or the name of a claim in braces stands for its value; and `<prefix>tag:<tag>`. Scopes that
//! are neither are left out: they are for other resource servers.

use crate::access::Right;
use crate::bounds::PATTERN_BYTES_MAX;
use crate::tags::Tags;
use std::collections::BTreeMap;

/// Scopes of one token.
pub const SCOPES_MAX: usize = 1000;

/// What a list of scopes permits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes {
    scopes: Vec<Scope>,
    tags: Tags,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Scope {
    right: Right,
    vhost: Wildcard,
    name: Wildcard,
    routing_key: Wildcard,
}

/// Parts with anything between them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wildcard(Vec<Vec<Piece>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Bytes(Vec<u8>),
    Vhost,
}

/// More scopes than a token may have, or a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token has at most {SCOPES_MAX} scopes of {PATTERN_BYTES_MAX} bytes")]
pub struct TooManyScopes;

impl Scopes {
    /// What scopes permit that begin with `prefix`. `claims` are what stands for names in braces.
    ///
    /// # Errors
    /// If there are too many.
    pub fn new<'a>(
        scopes: impl IntoIterator<Item = &'a str>,
        prefix: &str,
        claims: &BTreeMap<String, String>,
    ) -> Result<Self, TooManyScopes> {
        let mut read = Vec::new();
        let mut tags = Vec::new();
        for (index, scope) in scopes.into_iter().enumerate() {
            if index == SCOPES_MAX || scope.len() > PATTERN_BYTES_MAX {
                return Err(TooManyScopes);
            }
            let Some((kind, rest)) = scope.strip_prefix(prefix).and_then(|own| own.split_once(':'))
            else {
                continue;
            };
            match kind {
                "tag" => tags.push(rest),
                "configure" => read.extend(Scope::parse(Right::Configure, rest, claims)),
                "write" => read.extend(Scope::parse(Right::Write, rest, claims)),
                "read" => read.extend(Scope::parse(Right::Read, rest, claims)),
                _ => {}
            }
        }
        let tags = Tags::new(tags).map_err(|_| TooManyScopes)?;
        Ok(Scopes { scopes: read, tags })
    }

    /// They as a list, with no prefix and no claims, from which [`Scopes::new`] makes the same.
    pub fn to_list(&self) -> Vec<String> {
        let tags = self.tags.iter().map(|tag| format!("tag:{tag}"));
        let rights = self.scopes.iter().map(|scope| {
            let Scope { right, vhost, name, routing_key } = scope;
            format!("{right}:{}/{}/{}", vhost.to_text(), name.to_text(), routing_key.to_text())
        });
        rights.chain(tags).collect()
    }

    /// The tags that they give.
    pub fn tags(&self) -> &Tags {
        &self.tags
    }

    /// Whether a vhost may be entered: any right to something in it is enough.
    pub fn permit_vhost(&self, vhost: &str) -> bool {
        self.scopes.iter().any(|scope| scope.vhost.matches(vhost.as_bytes(), vhost))
    }

    /// Whether something may be done with what has this name.
    pub fn permit(&self, vhost: &str, right: Right, name: &[u8]) -> bool {
        self.scopes.iter().any(|scope| scope.is_for(vhost, right, name))
    }

    /// Whether this routing key may be used with that exchange.
    pub fn permit_topic(&self, vhost: &str, right: Right, exchange: &[u8], key: &[u8]) -> bool {
        let mut scopes = self.scopes.iter().filter(|scope| scope.is_for(vhost, right, exchange));
        scopes.any(|scope| scope.routing_key.matches(key, vhost))
    }
}

impl Scope {
    /// What follows the right. More or fewer parts mean nothing.
    fn parse(right: Right, text: &str, claims: &BTreeMap<String, String>) -> Option<Self> {
        let mut parts = text.split('/');
        let (vhost, name) = (parts.next()?, parts.next()?);
        let routing_key = parts.next().unwrap_or("*");
        if parts.next().is_some() {
            return None;
        }
        let wildcard = |text| Wildcard::parse(text, claims);
        Some(Scope {
            right,
            vhost: wildcard(vhost)?,
            name: wildcard(name)?,
            routing_key: wildcard(routing_key)?,
        })
    }

    fn is_for(&self, vhost: &str, right: Right, name: &[u8]) -> bool {
        self.right == right
            && self.vhost.matches(vhost.as_bytes(), vhost)
            && self.name.matches(name, vhost)
    }
}

impl Piece {
    fn to_text(&self) -> String {
        let Piece::Bytes(bytes) = self else { return "{vhost}".to_owned() };
        let mut text = String::with_capacity(bytes.len());
        for byte in bytes {
            // What would have a meaning, and what is no text.
            match byte {
                byte if byte.is_ascii_graphic() && !b"%*{}/:".contains(byte) => {
                    text.push(char::from(*byte));
                }
                byte => text.push_str(&format!("%{byte:02X}")),
            }
        }
        text
    }
}

impl Wildcard {
    fn parse(text: &str, claims: &BTreeMap<String, String>) -> Option<Self> {
        text.split('*').map(|part| pieces(part, claims)).collect::<Option<_>>().map(Wildcard)
    }

    fn to_text(&self) -> String {
        let part = |pieces: &Vec<Piece>| pieces.iter().map(Piece::to_text).collect::<String>();
        self.0.iter().map(part).collect::<Vec<String>>().join("*")
    }

    /// Takes each part at its first place behind the one before, and the last at the end: no other choice would fit where
    /// this one does not.
    fn matches(&self, name: &[u8], vhost: &str) -> bool {
        let parts: Vec<Vec<u8>> = self.0.iter().map(|part| bytes(part, vhost)).collect();
        match &*parts {
            [] => false,
            [only] => name == only,
            [first, between @ .., last] => {
                let Some(mut rest) = name.strip_prefix(&**first) else { return false };
                for part in between {
                    let Some(at) = find(rest, part) else { return false };
                    rest = &rest[at + part.len()..];
                }
                rest.ends_with(last)
            }
        }
    }
}

/// The pieces of what has no `*` in it. What stands for a claim that is not there fits nothing: there is no such part.
fn pieces(text: &str, claims: &BTreeMap<String, String>) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, behind)) = after.split_once('}') else { break };
        pieces.push(Piece::Bytes(decoded(before)?));
        pieces.push(match name {
            "vhost" => Piece::Vhost,
            claim => Piece::Bytes(claims.get(claim)?.clone().into_bytes()),
        });
        rest = behind;
    }
    pieces.push(Piece::Bytes(decoded(rest)?));
    Some(pieces)
}

fn bytes(pieces: &[Piece], vhost: &str) -> Vec<u8> {
    let of = |piece: &Piece| match piece {
        Piece::Bytes(bytes) => bytes.clone(),
        Piece::Vhost => vhost.as_bytes().to_vec(),
    };
    pieces.iter().flat_map(of).collect()
}

/// Text without its percent-encoding; `None` if that is none.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            decoded.push(*first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        // Two digits are never more than a byte.
        decoded.push((digit(digits[0])? * 16 + digit(digits[1])?) as u8);
        rest = behind;
    }
    Some(decoded)
}

fn find(within: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    within.windows(part.len()).position(|window| window == part)
}
