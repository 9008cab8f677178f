//! The endpoints of the issuer of tokens that people log in at, asked in bounded time and space.

use super::issuer::Issuer;
use crate::config::OAuth;
use crate::https::HttpsError;
use courser_management::{
    Asking, Endpoints, Issued, OAuthClient, ProviderError, TokenGrant, TokenProvider,
};
use form_urlencoded::{Serializer, byte_serialize};
use hyper::StatusCode;
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;
use zeroize::Zeroizing;

/// Bytes of a token that renews others.
const REFRESH_BYTES_MAX: usize = 16 * 1024;
/// Characters of what the provider says of an error that are passed on.
const SAID_MAX: usize = 300;

/// The issuer of tokens, as people log in there.
pub(super) struct Provider {
    issuer: Issuer,
    client_id: String,
    secret: Zeroizing<String>,
    /// Names and values that go along where tokens are given.
    params: Vec<(String, String)>,
    /// What the settings say; empty for what the provider says itself.
    given: Places,
    issuer_address: String,
    kept: Duration,
    retry: Duration,
    /// Held while it is asked.
    found: Arc<tokio::sync::Mutex<Found>>,
    /// For who needs no more than what is known.
    known: Mutex<Option<(Places, Instant)>>,
}

/// Where it is.
#[derive(Clone, Default)]
struct Places {
    authorization: String,
    token: String,
    end_session: String,
    /// It takes the secret of a client only in the form.
    secret_in_form: bool,
}

/// The last question where that is.
#[derive(Default)]
struct Found {
    at: Option<Instant>,
    failure: Option<String>,
}

/// What the page needs to log people in, if the settings name a client.
///
/// # Errors
/// If authorities for TLS can't be read.
pub(crate) fn client(settings: &OAuth) -> Result<Option<OAuthClient>, HttpsError> {
    if settings.client_id.is_empty() {
        return Ok(None);
    }
    let given = Places {
        authorization: settings.authorization_endpoint.clone(),
        token: settings.token_endpoint.clone(),
        end_session: settings.end_session_endpoint.clone(),
        secret_in_form: false,
    };
    let provider = Arc::new(Provider {
        issuer: Issuer::anywhere(settings)?,
        client_id: settings.client_id.clone(),
        secret: Zeroizing::new(settings.client_secret.clone()),
        params: settings.token_params(),
        given,
        issuer_address: settings.issuer.clone(),
        kept: Duration::from_secs(settings.keys_cache_seconds),
        retry: Duration::from_secs(settings.keys_retry_seconds),
        found: Arc::default(),
        known: Mutex::default(),
    });
    Ok(Some(OAuthClient {
        client_id: settings.client_id.clone(),
        provider_url: settings.issuer.clone(),
        provider_name: settings.provider_name(),
        scopes: settings.client_scopes.clone(),
        params: settings.authorization_params(),
        disable_basic_auth: settings.disable_basic_auth,
        provider: Arc::new(Handle(provider)),
    }))
}

/// The provider, for who asks it.
struct Handle(Arc<Provider>);

impl TokenProvider for Handle {
    fn endpoints(&self) -> Asking<Endpoints> {
        let provider = Arc::clone(&self.0);
        Box::pin(async move {
            let places = provider.places().await.map_err(ProviderError::Unreachable)?;
            let end_session = Some(places.end_session).filter(|address| !address.is_empty());
            Ok(Endpoints { authorization: places.authorization, end_session })
        })
    }

    fn tokens(&self, grant: TokenGrant) -> Asking<Issued> {
        let provider = Arc::clone(&self.0);
        Box::pin(async move { provider.tokens(grant).await })
    }
}

impl Provider {
    /// Where everything is: as the settings say, and for the rest as the provider does.
    async fn places(self: &Arc<Self>) -> Result<Places, String> {
        let needs_no_more = [&self.given.authorization, &self.given.token];
        if needs_no_more.iter().all(|address| !address.is_empty()) && self.issuer_address.is_empty()
        {
            return Ok(self.given.clone());
        }
        if let Some(known) = self.fresh() {
            return Ok(known);
        }
        let found = Arc::clone(&self.found).lock_owned().await;
        // It goes on when the client has gone: what is found counts for all.
        let own = Arc::clone(self);
        let finding = tokio::spawn(async move { own.find(found).await });
        finding.await.map_err(|error| error.to_string())?
    }

    /// Finds it out, unless another has meanwhile, or the provider could not be asked just now.
    async fn find(&self, mut found: OwnedMutexGuard<Found>) -> Result<Places, String> {
        if let Some(known) = self.fresh() {
            return Ok(known);
        }
        let is_too_soon = found.at.is_some_and(|at| at.elapsed() < self.retry);
        if is_too_soon && let Some(failure) = &found.failure {
            return self.old().ok_or_else(|| failure.clone());
        }
        let asked = self.ask().await;
        // From its end on: those that waited for a slow one do not ask again, one behind the other.
        found.at = Some(Instant::now());
        match asked {
            Ok(places) => {
                found.failure = None;
                *self.known.lock() = Some((places.clone(), Instant::now()));
                Ok(places)
            }
            Err(why) => {
                tracing::warn!(why, "where people log in for tokens can't be found out");
                found.failure = Some(why.clone());
                self.old().ok_or(why)
            }
        }
    }

    fn fresh(&self) -> Option<Places> {
        let known = self.known.lock();
        let (places, at) = known.as_ref()?;
        (at.elapsed() < self.kept).then(|| places.clone())
    }

    /// What was known before counts until something else is.
    fn old(&self) -> Option<Places> {
        self.known.lock().as_ref().map(|(places, _)| places.clone())
    }

    async fn ask(&self) -> Result<Places, String> {
        let about = self.issuer.bounded(self.issuer.about(&self.issuer_address)).await?;
        let said = |given: &String, name: &str| {
            let said = about.get(name).and_then(Value::as_str).unwrap_or_default();
            if given.is_empty() { said.to_owned() } else { given.clone() }
        };
        let given = &self.given;
        let places = Places {
            authorization: said(&given.authorization, "authorization_endpoint"),
            token: said(&given.token, "token_endpoint"),
            end_session: said(&given.end_session, "end_session_endpoint"),
            secret_in_form: takes_secrets_in_forms_only(&about),
        };
        for (name, address) in
            [("authorization_endpoint", &places.authorization), ("token_endpoint", &places.token)]
        {
            if !address.starts_with("https://") {
                return Err(format!(
                    "{} names no '{name}' that begins with https://: set oauth.{name}",
                    self.issuer_address
                ));
            }
        }
        let is_good = places.end_session.starts_with("https://");
        Ok(if is_good { places } else { Places { end_session: String::new(), ..places } })
    }

    async fn tokens(self: &Arc<Self>, grant: TokenGrant) -> Result<Issued, ProviderError> {
        let places = self.places().await.map_err(ProviderError::Unreachable)?;
        let form = self.form(&grant, places.secret_in_form);
        let authorization =
            (!self.secret.is_empty() && !places.secret_in_form).then(|| self.basic());
        let asking = self.issuer.post(&places.token, form, authorization);
        let (status, body) =
            self.issuer.bounded(asking).await.map_err(ProviderError::Unreachable)?;
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        let text =
            |name: &str| said.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(error) = text("error").filter(|_| status.is_client_error()) {
            let why = text("error_description").map(|why| format!(": {why}")).unwrap_or_default();
            return Err(ProviderError::Refused(plain(&format!(
                "the provider of tokens refused ({error}{why})"
            ))));
        }
        let access = text("access_token").filter(|_| status == StatusCode::OK);
        let Some(access) = access else {
            let what = if status == StatusCode::OK {
                "without a token".into()
            } else {
                status.to_string()
            };
            return Err(ProviderError::Unreachable(format!("{} answered {what}", places.token)));
        };
        let refresh = text("refresh_token").filter(|token| token.len() <= REFRESH_BYTES_MAX);
        Ok(Issued {
            access: Zeroizing::new(access.to_owned()),
            refresh: refresh.map(|token| Zeroizing::new(token.to_owned())),
        })
    }

    fn form(&self, grant: &TokenGrant, secret_in_form: bool) -> Zeroizing<String> {
        let mut form = Serializer::new(String::new());
        match grant {
            TokenGrant::Code { code, verifier, redirect_uri } => form
                .append_pair("grant_type", "authorization_code")
                .append_pair("code", code)
                .append_pair("code_verifier", verifier)
                .append_pair("redirect_uri", redirect_uri),
            TokenGrant::Refresh(token) => {
                form.append_pair("grant_type", "refresh_token").append_pair("refresh_token", token)
            }
        };
        form.append_pair("client_id", &self.client_id);
        if secret_in_form && !self.secret.is_empty() {
            form.append_pair("client_secret", &self.secret);
        }
        form.extend_pairs(&self.params);
        Zeroizing::new(form.finish())
    }

    /// Name and secret, as RFC 6749 (2.3.1) wants them to be quoted.
    fn basic(&self) -> Zeroizing<String> {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        let quoted = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let pair = Zeroizing::new(format!("{}:{}", quoted(&self.client_id), quoted(&self.secret)));
        Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())))
    }
}

/// Without a word, a provider takes them in a header.
fn takes_secrets_in_forms_only(about: &Value) -> bool {
    let methods = about.get("token_endpoint_auth_methods_supported").and_then(Value::as_array);
    let takes = |name: &str| {
        methods.is_some_and(|all| all.iter().any(|method| method.as_str() == Some(name)))
    };
    takes("client_secret_post") && !takes("client_secret_basic")
}

/// What the issuer says, for people: one line, and not too long.
fn plain(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    shown.take(SAID_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::silent_issuer;
    use std::sync::atomic::Ordering;

    #[tokio::test]
    async fn logins_that_wait_for_a_silent_provider_wait_for_one_question() {
        let (address, questions) = silent_issuer().await;
        let settings = OAuth {
            issuer: format!("https://{address}"),
            client_id: "page".to_owned(),
            timeout_ms: 5_000,
            keys_retry_seconds: 4,
            ..OAuth::default()
        };
        let client = client(&settings).expect("good settings").expect("a client");
        let asking = || client.provider.endpoints();
        let (one, two, three) = tokio::join!(asking(), asking(), asking());
        for asked in [one, two, three] {
            let failure = asked.expect_err("no endpoints").to_string();
            assert!(failure.contains("no answer within 5000 ms"), "{failure}");
        }
        assert_eq!(questions.load(Ordering::Relaxed), 1);
    }
}
