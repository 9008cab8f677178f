//! What a token claims, read after its signature was found good.

use crate::rules::Rules;
use crate::verify::TokenRefused;
use courser_auth::NAME_BYTES_MAX;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The claims of a token.
pub(crate) struct Claims(pub Map<String, Value>);

impl Claims {
    /// Refuses a token that is not for this broker, not from its issuer, or not for this moment. Returns until when it
    /// is good, in milliseconds since 1970.
    pub fn check(&self, rules: &Rules, now_s: u64) -> Result<Option<u64>, TokenRefused> {
        if rules.verify_audience && !self.is_for(&rules.resource_server) {
            return Err(TokenRefused::Audience(rules.resource_server.clone()));
        }
        if let Some(issuer) = &rules.issuer
            && self.0.get("iss").and_then(Value::as_str) != Some(issuer)
        {
            return Err(TokenRefused::Issuer(issuer.clone()));
        }
        if let Some(from) = self.seconds("nbf")?
            && from > now_s.saturating_add(rules.leeway_s)
        {
            return Err(TokenRefused::NotYet { from, now: now_s });
        }
        let Some(expires) = self.seconds("exp")? else {
            return if rules.require_expiry { Err(TokenRefused::NoExpiry) } else { Ok(None) };
        };
        let until = expires.saturating_add(rules.leeway_s);
        if until <= now_s {
            return Err(TokenRefused::Expired { at: expires, now: now_s });
        }
        Ok(Some(until.saturating_mul(1000)))
    }

    /// Who it is.
    pub fn name(&self, rules: &Rules) -> Result<&str, TokenRefused> {
        let preferred = rules.name_claims.iter().map(String::as_str);
        let named = preferred.chain(["sub", "client_id"]).find_map(|claim| {
            self.0.get(claim).and_then(Value::as_str).filter(|name| !name.is_empty())
        });
        match named {
            Some(name) if name.len() <= NAME_BYTES_MAX => Ok(name),
            _ => Err(TokenRefused::NoName),
        }
    }

    /// Its scopes, those in place of aliases too.
    pub fn scopes(&self, rules: &Rules) -> Vec<String> {
        let mut scopes = self.0.get("scope").map(words).unwrap_or_default();
        for path in &rules.additional_scopes {
            let Some(value) = self.at(path) else { continue };
            match value {
                // By resource server, whose scopes go without its name.
                Value::Object(members) => {
                    let id = &rules.resource_server;
                    let own = members.get(id).map(words).unwrap_or_default();
                    scopes.extend(own.iter().map(|scope| format!("{id}.{scope}")));
                }
                value => scopes.extend(words(value)),
            }
        }
        let meant = scopes.into_iter().flat_map(|scope| match rules.scope_aliases.get(&scope) {
            Some(others) => others.clone(),
            None => vec![scope],
        });
        meant.collect()
    }

    /// Claims that are texts, for scopes that name them in braces.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let texts = self.0.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
        texts.map(|(name, value)| (name.clone(), value.to_owned())).collect()
    }

    /// What is at a path with dots; names may have dots in them too.
    fn at(&self, path: &str) -> Option<&Value> {
        if let Some(value) = self.0.get(path) {
            return Some(value);
        }
        let mut parts = path.split('.');
        let first = self.0.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    }

    fn is_for(&self, resource_server: &str) -> bool {
        match self.0.get("aud") {
            Some(Value::String(one)) => one.split(' ').any(|part| part == resource_server),
            Some(Value::Array(list)) => {
                list.iter().any(|one| one.as_str() == Some(resource_server))
            }
            _ => false,
        }
    }

    /// A moment, in whole seconds since 1970.
    fn seconds(&self, claim: &'static str) -> Result<Option<u64>, TokenRefused> {
        match self.0.get(claim) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(match (number.as_u64(), number.as_f64()) {
                (Some(whole), _) => whole,
                // What is before 1970 becomes that, and what is beyond any time its end.
                (None, Some(float)) => float as u64,
                (None, None) => 0,
            })),
            Some(_) => Err(TokenRefused::NoNumber(claim)),
        }
    }
}

/// The words of a text, or the texts of a list.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.split_ascii_whitespace().map(str::to_owned).collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
