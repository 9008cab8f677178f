//! Networks in the settings: `10.0.0.0/8`, or a single address.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// A network, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network(IpNet);

impl Network {
    /// Whether it has this address, however that is written.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parsed = match text.parse::<IpAddr>() {
            Ok(address) => Some(IpNet::from(address.to_canonical())),
            Err(_) => text.parse::<IpNet>().ok(),
        };
        parsed
            .map(Network)
            .ok_or_else(|| format!("'{text}' is no network such as 10.0.0.0/8, and no address"))
    }
}

impl From<Network> for String {
    fn from(network: Network) -> String {
        network.to_string()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
