//! Stands in for the gateway in a broker that was built without it: nothing starts, and endpoints in the settings are refused.

use crate::config::Config;
use crate::driver::Shared;
use courser_management::EndpointFigures;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

/// The settings of an endpoint, of which there can be none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum EndpointConfig {}

/// A gateway, of which there is none.
pub enum Gateway {}

/// Why it could not start, which it never tries.
#[derive(Debug)]
pub enum StartError {}

impl fmt::Display for StartError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl std::error::Error for StartError {}

/// Takes an empty list of endpoints, and refuses any other.
///
/// # Errors
/// When there is an endpoint.
pub fn endpoints<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<EndpointConfig>, D::Error> {
    if Vec::<IgnoredAny>::deserialize(from)?.is_empty() {
        return Ok(Vec::new());
    }
    Err(D::Error::custom(
        "must be empty: this courser was built without the gateway; build it with the feature 'gateway'",
    ))
}

pub(crate) fn handshakes_wanted(_: &[EndpointConfig]) -> usize {
    0
}

pub(crate) async fn start(
    _: &Config,
    _: &Arc<Shared>,
    _: usize,
    _: &watch::Receiver<bool>,
) -> Result<Option<Gateway>, StartError> {
    Ok(None)
}

pub(crate) fn figures(_: Option<&Gateway>) -> impl Fn() -> Vec<EndpointFigures> + use<> {
    Vec::new
}

impl Gateway {
    /// Names and addresses of the endpoints.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, &str)> {
        std::iter::empty()
    }

    /// Writes what has happened so far to the log.
    pub fn log_counters(&self) {
        match *self {}
    }

    /// Stops it.
    pub async fn stop(self) {
        match self {}
    }
}
