//! Settings of the HTTP API.

use super::http::{HttpListen, check_tls_listen};
use super::{ConfigError, Network};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where the HTTP API is served if the settings don't say.
static DEFAULT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 15672);

/// The HTTP API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Management {
    /// Where to serve it.
    pub listen: HttpListen,
    /// Where to serve it with TLS, with the certificates of `tls`.
    #[serde(deserialize_with = "super::addresses::list")]
    pub tls_listen: Vec<SocketAddr>,
    /// Where proxies connect from that say whose connections they pass on (PROXY protocol), to both.
    pub proxy_protocol_from: Vec<Network>,
    /// Whether AMQP over WebSocket is served at these addresses.
    pub websocket: bool,
    /// Whether there is a web page at these addresses.
    pub page: bool,
    /// A file with definitions, or a folder of such files, that are made at each start; none unless
    /// said otherwise.
    pub load_definitions: PathBuf,
    /// Makes them only if they are not those that were made the last time.
    pub skip_if_unchanged: bool,
    /// The file that says who has asked for which change, within the data folder unless it is absolute;
    /// `none` writes none.
    pub audit_log: PathBuf,
    /// What stands before every path, as `/mq`, for a proxy that passes it on; nothing unless said
    /// otherwise.
    pub path_prefix: String,
    /// Origins, as `https://tools.example`, whose web pages may use the API; `*` lets all read what
    /// needs no credentials.
    pub cors_origins: Vec<String>,
    /// Names that the API is reached by; requests for other names with a dot in them are refused. Without any, all names
    /// are served, but users who may only come from this machine can't log in by one with a dot.
    pub hosts: Vec<String>,
    /// Seconds for which browsers use nothing but TLS once they have; 0 does not ask for that.
    pub hsts_seconds: u64,
    /// Minutes after which an unused session of the web page ends.
    pub session_idle_minutes: u64,
    /// Serve it without credentials at `ctl.sock` in the data folder, to the user whom the broker runs
    /// as, and to root.
    pub local_socket: bool,
}

impl Default for Management {
    fn default() -> Self {
        Management {
            listen: HttpListen::Default,
            tls_listen: Vec::new(),
            proxy_protocol_from: Vec::new(),
            websocket: true,
            page: true,
            load_definitions: PathBuf::new(),
            skip_if_unchanged: false,
            audit_log: PathBuf::from("audit.log"),
            path_prefix: String::new(),
            cors_origins: Vec::new(),
            hosts: Vec::new(),
            hsts_seconds: 0,
            session_idle_minutes: 480,
            local_socket: true,
        }
    }
}

impl Management {
    /// The file of the audit log, if one is wanted.
    pub(crate) fn audit_log_in(&self, data_dir: &Path) -> Option<PathBuf> {
        let is_wanted = !self.audit_log.as_os_str().is_empty() && self.audit_log != *"none";
        is_wanted.then(|| data_dir.join(&self.audit_log))
    }

    /// Makes the audit log's file if it is missing.
    ///
    /// # Errors
    /// When it can't be written: that would be noticed at the first change only.
    pub(crate) fn open_audit_log(&self, data_dir: &Path, mode: u32) -> Result<(), ConfigError> {
        let Some(path) = self.audit_log_in(data_dir) else { return Ok(()) };
        let opened = OpenOptions::new().create(true).append(true).mode(mode).open(&path);
        opened.map(drop).map_err(|error| {
            let why = format!("can't be opened: {}: {error}", path.display());
            ConfigError::invalid("management.audit_log", &why)
        })
    }

    /// Where to serve it.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        self.listen.addresses(&DEFAULT)
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.check_web()?;
        check_tls_listen("management", self.addresses(), &self.tls_listen)
    }

    fn check_web(&self) -> Result<(), ConfigError> {
        let prefix = &self.path_prefix;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        let is_path = prefix.starts_with('/') && !prefix.ends_with('/') && !prefix.contains("//");
        if !(prefix.is_empty() || is_path && prefix.bytes().all(is_plain)) {
            let why = format!(
                "'{prefix}' is no path such as /mq: a slash before each name, none behind the last"
            );
            return Err(ConfigError::invalid("management.path_prefix", &why));
        }
        let is_origin = |origin: &&String| {
            let authority = origin.strip_prefix("https://").or(origin.strip_prefix("http://"));
            *origin == "*" || authority.is_some_and(|one| !one.is_empty() && !one.contains('/'))
        };
        if let Some(wrong) = self.cors_origins.iter().find(|origin| !is_origin(origin)) {
            let why = format!("'{wrong}' is no origin such as https://tools.example, and not *");
            return Err(ConfigError::invalid("management.cors_origins", &why));
        }
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = |host: &&String| !host.is_empty() && host.bytes().all(is_of_name);
        if let Some(wrong) = self.hosts.iter().find(|host| !is_name(host)) {
            let why = format!("'{wrong}' is no name of a host such as mq.example, without a port");
            return Err(ConfigError::invalid("management.hosts", &why));
        }
        if self.session_idle_minutes == 0 {
            let why = "a session that ends at once is none: name at least 1";
            return Err(ConfigError::invalid("management.session_idle_minutes", why));
        }
        Ok(())
    }
}
