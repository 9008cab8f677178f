//! Which brokers, and how to speak TLS with them.

use std::path::PathBuf;

/// Where to connect.
#[derive(Clone, Debug, clap::Args)]
pub struct BrokerOptions {
    /// The broker; several, separated by commas: connections go to them in turn, and past one that is not there
    #[arg(
        long,
        value_name = "URI",
        value_delimiter = ',',
        default_value = "amqp://guest:guest@localhost:5672/"
    )]
    pub uri: Vec<String>,
    /// TLS, for amqps://
    #[command(flatten)]
    pub tls: TlsOptions,
}

/// TLS, which a URI with `amqps://` asks for.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TlsOptions {
    /// Trust the CAs in this PEM file instead of the system's
    #[arg(long, value_name = "FILE", help_heading = "TLS (amqps://)")]
    pub ca: Option<PathBuf>,
    /// PEM file with the client certificate, followed by any intermediate certificates
    #[arg(long, value_name = "FILE", requires = "key", help_heading = "TLS (amqps://)")]
    pub cert: Option<PathBuf>,
    /// PEM file with its private key
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "TLS (amqps://)")]
    pub key: Option<PathBuf>,
    /// Accept any certificate from the broker; who is in between can then read the password
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, hide_default_value = true, hide_possible_values = true, conflicts_with = "ca",
          help_heading = "TLS (amqps://)")]
    pub insecure: bool,
}
