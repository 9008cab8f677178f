//! Addresses to listen on: a list, or one text with one address or several, separated by commas.

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;
use std::net::SocketAddr;

/// For a setting that is a list of addresses.
pub(super) fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SocketAddr>, D::Error> {
    parse(&Value::deserialize(from)?).map_err(D::Error::custom)
}

/// The addresses that are meant, or why they are none.
pub(super) fn parse(value: &Value) -> Result<Vec<SocketAddr>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(list) => list.iter().map(address).collect(),
        Value::String(text) if text.trim().is_empty() => Ok(Vec::new()),
        Value::String(text) => text.split(',').map(|one| address(&one.into())).collect(),
        other => address(other).map(|address| vec![address]),
    }
}

fn address(value: &Value) -> Result<SocketAddr, String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    text.parse().map_err(|_| match text.parse::<u16>() {
        Ok(port) => format!(
            "'{port}' is a port without an address: say 127.0.0.1:{port} for this machine alone, or 0.0.0.0:{port} for all"
        ),
        Err(_) => format!("'{text}' is no IP address and port, such as 127.0.0.1:5672"),
    })
}
