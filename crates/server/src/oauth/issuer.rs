//! Asks the issuer of tokens, for its keys among others, in bounded time and space.

use crate::config::OAuth;
use crate::https::{self, HttpsClient, HttpsError, Schemes, chain};
use bytes::Bytes;
use courser_oauth::KeySet;
use courser_store::critical::{self, Work};
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use hyper::{Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use std::time::Duration;
use zeroize::Zeroizing;

/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

pub(super) struct Issuer {
    client: HttpsClient,
    timeout: Duration,
    place: Place,
}

/// Where keys are.
enum Place {
    At(String),
    /// Where the issuer of this address says.
    SaidBy(String),
}

impl Issuer {
    /// The issuer that is named, if one is.
    pub fn new(settings: &OAuth) -> Result<Option<Self>, HttpsError> {
        let place = match (settings.jwks_uri.as_str(), settings.issuer.as_str()) {
            ("", "") => return Ok(None),
            ("", issuer) => Place::SaidBy(issuer.to_owned()),
            (keys, _) => Place::At(keys.to_owned()),
        };
        Ok(Some(Issuer::at(settings, place)?))
    }

    /// An issuer that is asked as the other settings say; where is said with each question.
    pub fn anywhere(settings: &OAuth) -> Result<Self, HttpsError> {
        Issuer::at(settings, Place::At(String::new()))
    }

    fn at(settings: &OAuth, place: Place) -> Result<Self, HttpsError> {
        let connector = https::connector(&settings.ca, Schemes::HttpsOnly)?;
        // It is asked seldom: no connection is worth keeping.
        let client =
            Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        let timeout = Duration::from_millis(settings.timeout_ms);
        Ok(Issuer { client, timeout, place })
    }

    /// What it is called in the log.
    pub fn address(&self) -> &str {
        match &self.place {
            Place::At(address) | Place::SaidBy(address) => address,
        }
    }

    /// Its keys.
    pub async fn keys(&self) -> Result<KeySet, String> {
        self.bounded(self.ask()).await
    }

    /// What comes of a question, unless it takes too long.
    pub async fn bounded<T>(
        &self,
        asking: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        let asking = tokio::time::timeout(self.timeout, asking);
        asking.await.map_err(|_| format!("no answer within {} ms", self.timeout.as_millis()))?
    }

    async fn ask(&self) -> Result<KeySet, String> {
        let address = match &self.place {
            Place::At(address) => address.clone(),
            Place::SaidBy(issuer) => self.address_of_keys(issuer).await?,
        };
        let said = self.get(&address).await?;
        KeySet::from_jwks(&said).map_err(|error| format!("{address}: {error}"))
    }

    async fn address_of_keys(&self, issuer: &str) -> Result<String, String> {
        match self.about(issuer).await?.get("jwks_uri").and_then(Value::as_str) {
            Some(keys) if keys.starts_with("https://") => Ok(keys.to_owned()),
            _ => Err(format!("{} has no 'jwks_uri' that begins with https://", at(issuer))),
        }
    }

    /// What an issuer says of itself.
    pub async fn about(&self, issuer: &str) -> Result<Value, String> {
        let address = at(issuer);
        let said = self.get(&address).await?;
        let about: Value =
            serde_json::from_slice(&said).map_err(|error| format!("{address}: {error}"))?;
        let text = |name: &str| about.get(name).and_then(Value::as_str);
        if text("issuer") != Some(issuer) {
            let named = text("issuer").unwrap_or_default();
            return Err(format!(
                "{address} is of the issuer {named:?}, not of {issuer:?}: set oauth.issuer as it says"
            ));
        }
        Ok(about)
    }

    /// What comes back for a form, whatever it is.
    pub async fn post(
        &self,
        address: &str,
        form: Zeroizing<String>,
        authorization: Option<Zeroizing<String>>,
    ) -> Result<(StatusCode, Bytes), String> {
        let mut request = Request::post(address)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization.as_str());
        }
        let body = Full::new(Bytes::copy_from_slice(form.as_bytes()));
        let request = request.body(body).map_err(|error| format!("{address}: {error}"))?;
        self.answer(address, request).await
    }

    async fn get(&self, address: &str) -> Result<Bytes, String> {
        let failed = |why: String| format!("{address}: {why}");
        let request = Request::builder().uri(address).header(ACCEPT, "application/json");
        let request = request.body(Full::default()).map_err(|error| failed(error.to_string()))?;
        let (status, body) = self.answer(address, request).await?;
        if status != StatusCode::OK {
            let redirect =
                if status.is_redirection() { "; redirects are not followed" } else { "" };
            return Err(failed(format!("the status is {status}{redirect}")));
        }
        Ok(body)
    }

    async fn answer(
        &self,
        address: &str,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), String> {
        let failed = |why: String| format!("{address}: {why}");
        critical::check(Work::Socket);
        let answer = self.client.request(request).await.map_err(|error| failed(chain(&error)))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let too_much = |error| format!("{error} (at most {ANSWER_BYTES_MAX} bytes are read)");
        Ok((status, body.map_err(|error| failed(too_much(error)))?.to_bytes()))
    }
}

/// Where an issuer says what is where.
fn at(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}
