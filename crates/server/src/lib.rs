//! The Courser broker as a library: listeners, the driver of each connection, and the settings.
//!
//! ```no_run
//! use courser::{Config, Server};
//!
//! # async fn example() -> anyhow::Result<()> {
//! let config = Config { listen: vec!["127.0.0.1:0".parse()?], ..Config::default() };
//! let server = Server::start(config).await?;
//! println!("amqp://guest:guest@{}", server.addresses()[0]);
//! server.stop().await.map_err(anyhow::Error::msg)?;
//! # Ok(())
//! # }
//! ```

mod banner;
mod config;
mod data_dir;
mod driver;
mod durable;
mod gateway;
mod login;
mod server;
mod timers;

pub use banner::banner;
pub use config::{
    Amqp, Auth, Config, ConfigError, Gateway, LimitSettings, Log, PolicySettings, TEMPLATE,
    VhostSettings,
};
pub use server::{Server, StartError};

/// The version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
