//! Settings for tokens that are made of several keys.

use super::lines::{Line, value};
use super::values::push;
use super::{Fate, set};
use serde_json::{Value, json};

const ALIASES: &str = "auth_oauth2.scope_aliases";

/// Lists are words here.
pub(super) fn words(_: &str, text: &str, _: &[Line], settings: &mut Value) -> Fate {
    let words: Vec<&str> = text.split_whitespace().collect();
    set(settings, "oauth.additional_scopes", json!(words));
    Fate::Taken("oauth.additional_scopes".to_owned())
}

pub(super) fn username_claim(_: &str, text: &str, _: &[Line], settings: &mut Value) -> Fate {
    push(settings, "oauth.username_claims", text.into());
    Fate::Taken("oauth.username_claims".to_owned())
}

pub(super) fn algorithm(_: &str, text: &str, _: &[Line], settings: &mut Value) -> Fate {
    push(settings, "oauth.algorithms", text.into());
    Fate::Taken("oauth.algorithms".to_owned())
}

pub(super) fn signing_key(key: &str, text: &str, _: &[Line], settings: &mut Value) -> Fate {
    let id = key.trim_start_matches("auth_oauth2.signing_keys.");
    push(settings, "oauth.signing_keys", json!({ "id": id, "file": text }));
    Fate::Taken("oauth.signing_keys".to_owned())
}

/// `scope_aliases.NAME = SCOPES`, or a pair `scope_aliases.N.alias` and `scope_aliases.N.scope`.
pub(super) fn scope_alias(key: &str, text: &str, lines: &[Line], settings: &mut Value) -> Fate {
    let (alias, scopes) = match key.rsplit_once('.') {
        Some((entry, "alias")) if entry != ALIASES => {
            match value(lines, &format!("{entry}.scope")) {
                Some(scopes) => (text, scopes),
                None => return Fate::Wrong(format!("{entry}.scope is needed too")),
            }
        }
        Some((entry, "scope")) if entry != ALIASES => {
            return match value(lines, &format!("{entry}.alias")) {
                Some(_) => Fate::Taken("oauth.scope_aliases".to_owned()),
                None => Fate::Wrong(format!("{entry}.alias is needed too")),
            };
        }
        _ => (key.trim_start_matches(ALIASES).trim_start_matches('.'), text),
    };
    let scopes: Vec<&str> = scopes.split_whitespace().collect();
    push(settings, "oauth.scope_aliases", json!({ "alias": alias, "scopes": scopes }));
    Fate::Taken("oauth.scope_aliases".to_owned())
}

pub(super) fn flag(text: &str) -> Result<Option<Value>, String> {
    match text {
        "true" => Ok(Some(true.into())),
        "false" => Ok(Some(false.into())),
        other => Err(format!("'{other}' is neither true nor false")),
    }
}
