//! Settings for tokens that are made of several keys.

use super::backends::is_named;
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

/// Whether the page logs people in with tokens there.
fn has_page(lines: &[Line]) -> bool {
    value(lines, "management.oauth_enabled") == Some("true")
        && value(lines, "management.oauth_client_id").is_some()
        && is_named("oauth2", lines)
}

const NO_PAGE: &str = "the page has no login with tokens: management.oauth_enabled is not true, there is no client, or \
                       auth_backends does not name oauth2";

/// What the page is at the issuer.
pub(super) fn page_client(key: &str, text: &str, lines: &[Line], settings: &mut Value) -> Fate {
    if !has_page(lines) {
        return Fate::NotNeeded(NO_PAGE.to_owned());
    }
    let ours = match key.trim_start_matches("management.oauth_") {
        "client_secret" => "oauth.client_secret",
        "scopes" => "oauth.client_scopes",
        _ => "oauth.client_id",
    };
    set(settings, ours, text.into());
    Fate::Taken(ours.to_owned())
}

/// The address of the issuer, where that has no key of its own.
pub(super) fn provider_url(_: &str, text: &str, lines: &[Line], settings: &mut Value) -> Fate {
    if !has_page(lines) {
        return Fate::NotNeeded(NO_PAGE.to_owned());
    }
    if value(lines, "auth_oauth2.issuer").is_some() {
        return Fate::NotNeeded("oauth.issuer is its address".to_owned());
    }
    if !text.starts_with("https://") {
        return Fate::NotThere(
            "the issuer must be reached over https: set oauth.issuer".to_owned(),
        );
    }
    set(settings, "oauth.issuer", text.into());
    Fate::Taken("oauth.issuer".to_owned())
}

pub(super) fn endpoint(key: &str, text: &str, lines: &[Line], settings: &mut Value) -> Fate {
    if !has_page(lines) {
        return Fate::NotNeeded(NO_PAGE.to_owned());
    }
    let ours = format!("oauth.{}", key.trim_start_matches("auth_oauth2."));
    set(settings, &ours, text.into());
    Fate::Taken(ours)
}

/// A parameter of a login, or of a request for tokens.
pub(super) fn endpoint_param(key: &str, text: &str, lines: &[Line], settings: &mut Value) -> Fate {
    if !has_page(lines) {
        return Fate::NotNeeded(NO_PAGE.to_owned());
    }
    let endpoint = key.trim_start_matches("management.oauth_");
    let Some((endpoint, name)) = endpoint.split_once("_endpoint_params.") else {
        return Fate::Wrong("it names no parameter".to_owned());
    };
    let ours = format!("oauth.{endpoint}_params");
    push(settings, &ours, format!("{name}={text}").into());
    Fate::Taken(ours)
}

pub(super) fn logon_type(_: &str, text: &str, _: &[Line], _: &mut Value) -> Fate {
    match text {
        "sp_initiated" => Fate::NotNeeded("logins begin at the page".to_owned()),
        other => Fate::NotThere(format!("{other}: logins begin at the page")),
    }
}

/// Whether names and passwords are refused over HTTP.
pub(super) fn only_tokens(key: &str, text: &str, lines: &[Line], settings: &mut Value) -> Fate {
    let refuses = match flag(text) {
        Ok(Some(Value::Bool(refuses))) => refuses,
        Ok(_) => false,
        Err(why) => return Fate::Wrong(why),
    };
    if has_page(lines) {
        // Either of the two keys is enough.
        let is_set = settings.pointer("/oauth/disable_basic_auth") == Some(&true.into());
        set(settings, "oauth.disable_basic_auth", (refuses || is_set).into());
        return Fate::Taken("oauth.disable_basic_auth".to_owned());
    }
    match refuses && key == "management.disable_basic_auth" {
        true => {
            Fate::NotThere("users log in with HTTP Basic: oauth.client_id is not set".to_owned())
        }
        false => Fate::NotNeeded("users log in with HTTP Basic".to_owned()),
    }
}

pub(super) fn flag(text: &str) -> Result<Option<Value>, String> {
    match text {
        "true" => Ok(Some(true.into())),
        "false" => Ok(Some(false.into())),
        other => Err(format!("'{other}' is neither true nor false")),
    }
}
