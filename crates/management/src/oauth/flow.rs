//! From the page to the provider and back.
//!
//! Between the two the broker remembers nothing: the secret of PKCE and the state wait in a cookie of the browser that
//! began, which no script can read. A code that comes back to any other browser is worth nothing.

use super::renewal::Renewal;
use super::{Issued, OAuthClient, ProviderError, TokenGrant};
use crate::Api;
use crate::call::{Call, Members, Outcome, object};
use crate::caller::Caller;
use crate::cookies::{Cookie, Kept};
use crate::path::encode_segment;
use crate::refusal::Refusal;
use crate::reply::Reply;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use courser_auth::{LoginRefused, Tried};
use hyper::header::{HOST, SET_COOKIE};
use hyper::{HeaderMap, StatusCode};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use tokio::runtime::Handle;
use tokio::sync::SemaphorePermit;
use zeroize::Zeroizing;

/// What waits for the code.
pub(crate) const PENDING: Cookie = Cookie("courser_oauth");
/// How long a user may take to log in.
const PENDING_SECONDS: u32 = 600;
/// Bytes of a secret, and of the state.
const RANDOM_BYTES: usize = 32;
/// Bytes of a code.
const CODE_BYTES_MAX: usize = 8192;
/// Bytes of the page's address.
const ADDRESS_BYTES_MAX: usize = 2048;
/// What is said to who may not log in at a provider because there is none.
const NO_PROVIDER: &str = "There is no provider to log in at (oauth.client_id)";

/// The provider of tokens, for people.
pub(crate) fn client(api: &Api) -> Result<&OAuthClient, Refusal> {
    api.settings.web.oauth.as_ref().ok_or_else(|| Refusal::missing(NO_PROVIDER))
}

/// Says where the browser has to go so that its user logs in.
pub(crate) fn begin(call: &Call) -> Outcome {
    let api = &*call.api;
    let client = client(api)?;
    let body = call.object()?;
    let redirect_uri = own_address(api, &call.headers, body.required_text("page")?)?;
    let place = place(api)?;
    let endpoints = Handle::current().block_on(client.provider.endpoints());
    drop(place);
    let (state, verifier) = (random()?, random()?);
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let given = client.params.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let ours = [
        ("response_type", "code"),
        ("client_id", &client.client_id),
        ("redirect_uri", redirect_uri),
        ("scope", &client.scopes),
        ("state", &state),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    let location =
        with_query(&endpoints.map_err(refusal)?.authorization, ours.into_iter().chain(given));
    let waits = Zeroizing::new(format!("{}.{}", *state, *verifier));
    let prefix = &api.settings.web.path_prefix;
    let kept = Kept::Seconds(PENDING_SECONDS);
    let cookie = PENDING.set(&call.headers, &waits, kept, call.is_tls, prefix);
    let mut reply = Reply::json(&json!({ "location": location, "state": *state }));
    reply.no_store = true;
    Ok(reply.with_header(SET_COOKIE, &cookie))
}

/// Who has logged in at the provider: brings the code there.
pub(crate) async fn finish(
    api: &Api,
    headers: &HeaderMap,
    body: &[u8],
    peer: SocketAddr,
) -> Result<Caller, Refusal> {
    let client = client(api)?;
    let body = object(body)?;
    let redirect_uri = own_address(api, headers, body.required_text("page")?)?.to_owned();
    let (state, code) = (body.required_text("state")?, body.required_text("code")?);
    let waiting = PENDING.value(headers).and_then(|value| value.split_once('.'));
    let Some((_, verifier)) = waiting.filter(|(known, _)| *known == state) else {
        return Err(Refusal::bad_request(
            "This login was not begun in this browser, or more than 10 minutes ago. Log in again.",
        ));
    };
    if code.len() > CODE_BYTES_MAX {
        return Err(Refusal::bad_request(format!("code has more than {CODE_BYTES_MAX} bytes")));
    }
    let accounts = &api.settings.accounts;
    accounts
        .may_try(Tried::Secret(code.as_bytes()), peer.ip(), api.now_ms())
        .map_err(not_let_in)?;
    let grant = TokenGrant::Code {
        code: Zeroizing::new(code.to_owned()),
        verifier: Zeroizing::new(verifier.to_owned()),
        redirect_uri,
    };
    let place = place(api)?;
    let issued = client.provider.tokens(grant).await;
    drop(place);
    if matches!(issued, Err(ProviderError::Refused(_))) {
        accounts.login_failed(Tried::Secret(code.as_bytes()), peer.ip(), api.now_ms());
        api.logins.count_failed();
    }
    let_in(api, issued.map_err(refusal)?, peer).await
}

async fn let_in(api: &Api, issued: Issued, peer: SocketAddr) -> Result<Caller, Refusal> {
    let Issued { access, refresh } = issued;
    let login = api.logins.of_token(&access, peer).await.map_err(|why| {
        if let Some(suppressed) = api.tokens_log.allow(api.now_ms()) {
            tracing::warn!(%peer, %why, suppressed, "a token of the provider is refused");
        }
        not_let_in(why)
    })?;
    let mut caller = Caller::of_login(login, &api.settings.accounts);
    caller.renewal = Some(Renewal::new(refresh));
    Ok(caller)
}

/// Why a login is refused, for a user who has just come from the provider.
fn not_let_in(why: LoginRefused) -> Refusal {
    match why {
        LoginRefused::Wait { wait_ms, .. } => Refusal::wait(wait_ms),
        LoginRefused::NotAnswered { why, .. } => Refusal::unavailable(&format!(
            "The broker can't check the provider's token now: {why}. Log in again in a moment."
        )),
        LoginRefused::Elsewhere { why, .. } => Refusal::not_authorised(format!(
            "The broker does not accept the provider's token: {why}."
        )),
        LoginRefused::InvalidCredentials(_) => Refusal::not_authorised(
            "The broker can't read the provider's access token: it is not a JWT. The provider may give one for other \
             scopes (oauth.client_scopes) or with another parameter, such as audience or resource \
             (oauth.authorization_params, oauth.token_params).",
        ),
        LoginRefused::LoopbackOnly(_) => {
            Refusal::not_authorised("User can only log in via localhost")
        }
        other => Refusal::internal(other),
    }
}

/// What is said if the provider gives no tokens.
pub(super) fn refusal(error: ProviderError) -> Refusal {
    let reason = error.to_string();
    match error {
        ProviderError::Refused(_) => {
            Refusal::new(StatusCode::BAD_REQUEST, "provider_refused", reason)
        }
        ProviderError::Unreachable(_) => {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "provider_unreachable", reason)
        }
    }
}

/// A place among those who ask the provider.
fn place(api: &Api) -> Result<SemaphorePermit<'_>, Refusal> {
    api.exchanges.try_acquire().map_err(|_| {
        let reason = "Too many people log in at the same moment. Try again in a few seconds.";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", reason)
    })
}

/// The address of the page, to which the provider sends the browser back: it has to be of the host that is asked, or of an
/// origin that the settings name.
fn own_address<'a>(api: &Api, headers: &HeaderMap, page: &'a str) -> Result<&'a str, Refusal> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_own = |authority: &str, origin: &str| {
        authority.eq_ignore_ascii_case(host) || api.settings.web.names_origin(origin)
    };
    let is_good = page.len() <= ADDRESS_BYTES_MAX
        && page.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\\".contains(&byte))
        && page.split_once("://").is_some_and(|(scheme, rest)| {
            rest.split_once('/').is_some_and(|(authority, _)| {
                matches!(scheme, "http" | "https")
                    && is_own(authority, &format!("{scheme}://{authority}"))
            })
        });
    match is_good {
        true => Ok(page),
        false => Err(Refusal::bad_request(format!(
            "page is not the address of a page of {host}, nor of one in management.cors_origins"
        ))),
    }
}

fn with_query<'a>(address: &str, params: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut whole = address.to_owned();
    let mut joint = if address.contains('?') { '&' } else { '?' };
    for (name, value) in params {
        whole.push(joint);
        whole.push_str(&encode_segment(name));
        whole.push('=');
        whole.push_str(&encode_segment(value));
        joint = '&';
    }
    whole
}

fn random() -> Result<Zeroizing<String>, Refusal> {
    let mut bytes = Zeroizing::new([0; RANDOM_BYTES]);
    getrandom::fill(&mut *bytes)
        .map_err(|_| Refusal::internal("the system has no random bytes"))?;
    Ok(Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_added_to_those_that_an_address_has() {
        let params = [("scope", "a b"), ("redirect_uri", "http://x/&?")];
        let added = "scope=a%20b&redirect_uri=http%3A%2F%2Fx%2F%26%3F";
        assert_eq!(with_query("https://id/a", params.into_iter()), format!("https://id/a?{added}"));
        let whole = with_query("https://id/a?p=1", params.into_iter());
        assert_eq!(whole, format!("https://id/a?p=1&{added}"));
    }

    #[test]
    fn nothing_random_comes_twice_or_needs_quoting() {
        let (one, other) = (random().expect("a text"), random().expect("a text"));
        assert!(one != other && one.len() == 43);
        assert!(one.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
    }
}
