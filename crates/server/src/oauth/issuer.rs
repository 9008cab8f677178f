//! Asks whoever issues tokens for its keys, in bounded time and space.

use crate::config::OAuth;
use crate::https::{self, HttpsClient, HttpsError, Schemes, chain};
use bytes::Bytes;
use courser_oauth::KeySet;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::ACCEPT;
use hyper::{Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use std::time::Duration;

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
    /// Whoever is named, if anybody is.
    pub fn new(settings: &OAuth) -> Result<Option<Self>, HttpsError> {
        let place = match (settings.jwks_uri.as_str(), settings.issuer.as_str()) {
            ("", "") => return Ok(None),
            ("", issuer) => Place::SaidBy(issuer.to_owned()),
            (keys, _) => Place::At(keys.to_owned()),
        };
        let connector = https::connector(&settings.ca, Schemes::HttpsOnly)?;
        // It is asked seldom: no connection is worth keeping.
        let client =
            Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        let timeout = Duration::from_millis(settings.timeout_ms);
        Ok(Some(Issuer { client, timeout, place }))
    }

    /// What it is called in the log.
    pub fn address(&self) -> &str {
        match &self.place {
            Place::At(address) | Place::SaidBy(address) => address,
        }
    }

    /// Its keys.
    pub async fn keys(&self) -> Result<KeySet, String> {
        let asking = tokio::time::timeout(self.timeout, self.ask());
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
        let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
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
        match text("jwks_uri") {
            Some(keys) if keys.starts_with("https://") => Ok(keys.to_owned()),
            _ => Err(format!("{address} has no 'jwks_uri' that begins with https://")),
        }
    }

    async fn get(&self, address: &str) -> Result<Bytes, String> {
        let failed = |why: String| format!("{address}: {why}");
        let request = Request::builder().uri(address).header(ACCEPT, "application/json");
        let request = request.body(Full::default()).map_err(|error| failed(error.to_string()))?;
        let answer = self.client.request(request).await.map_err(|error| failed(chain(&error)))?;
        let status = answer.status();
        if status != StatusCode::OK {
            let redirect =
                if status.is_redirection() { "; redirects are not followed" } else { "" };
            return Err(failed(format!("the status is {status}{redirect}")));
        }
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let too_much = |error| format!("{error} (at most {ANSWER_BYTES_MAX} bytes are read)");
        Ok(body.map_err(|error| failed(too_much(error)))?.to_bytes())
    }
}
