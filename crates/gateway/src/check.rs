//! Refuses endpoints that could not work.

use crate::config::{ConfigError, EndpointConfig, SocketKind, everything, prefetch, timeout_ms};
use crate::security::Security;
use omq_tokio::endpoint::{Endpoint, Host};

/// Bytes of a name in AMQP, and of one in PLAIN.
const NAME_BYTES_MAX: usize = 255;

impl EndpointConfig {
    /// Refuses what could not work.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |problem: String| Err(ConfigError::new(problem));
        match (&self.bind, &self.connect) {
            (Some(_), Some(_)) => return wrong("both bind and connect: give one of them".into()),
            (None, None) => return wrong("neither bind nor connect: give one of them".into()),
            _ => {}
        }
        self.check_address()?;
        self.check_target()?;
        self.check_use()?;
        self.check_names()?;
        self.mechanism()?;
        self.check_accounts()?;
        for (key, value) in [
            ("prefetch", usize::from(self.prefetch)),
            ("high_water_messages", self.high_water_messages as usize),
            ("max_message_bytes", self.max_message_bytes),
            ("peers_max", self.peers_max),
            ("timeout_ms", self.timeout_ms as usize),
        ] {
            if value == 0 {
                return wrong(format!("{key} must be at least 1"));
            }
        }
        if self.high_water_bytes < self.max_message_bytes {
            return wrong("high_water_bytes must be at least max_message_bytes".into());
        }
        Ok(())
    }

    fn check_address(&self) -> Result<(), ConfigError> {
        let address = self.address().unwrap_or_default();
        let wrong = |problem: &str| Err(ConfigError::new(format!("'{address}' {problem}")));
        let endpoint = address.parse::<Endpoint>();
        let is_local = match &endpoint {
            Ok(Endpoint::Tcp { host: Host::Ip(ip), .. }) => ip.is_loopback(),
            Ok(Endpoint::Tcp { host: Host::Name(name), .. }) => name == "localhost",
            Ok(Endpoint::Tcp { .. }) => false,
            Ok(Endpoint::Ipc(_)) => true,
            _ => return wrong("is no address: tcp://HOST:PORT or ipc://PATH is expected"),
        };
        if self.connect.is_some()
            && let Ok(Endpoint::Tcp { host, port, .. }) = &endpoint
            && (*host == Host::Wildcard || *port == 0)
        {
            return wrong("is nothing to connect to: a host and a port are needed");
        }
        if !is_local && self.security == Security::Null && !self.allow_null {
            return wrong(
                "can be reached from other machines: set security, or allow_null: true to let any peer in",
            );
        }
        Ok(())
    }

    fn check_target(&self) -> Result<(), ConfigError> {
        let kind = self.socket.name();
        let wrong = |problem: &str| Err(ConfigError::new(format!("{kind}: {problem}")));
        match (self.socket, &self.queue, &self.exchange) {
            (SocketKind::Pull, Some(_), Some(_)) => wrong("both queue and exchange: give one"),
            (SocketKind::Pull, None, None) => wrong("give queue or exchange"),
            (SocketKind::Pull, Some(_), None) if !self.routing_key.is_empty() => {
                wrong("routing_key goes with exchange")
            }
            (SocketKind::Push | SocketKind::Router | SocketKind::Dealer, None, _) => {
                wrong("queue is missing")
            }
            (SocketKind::Push | SocketKind::Router | SocketKind::Dealer, _, Some(_)) => {
                wrong("exchange is not for this socket")
            }
            (SocketKind::Sub | SocketKind::Xpub, Some(_), _) => {
                wrong("queue is not for this socket")
            }
            (SocketKind::Sub | SocketKind::Xpub, _, None) => wrong("exchange is missing"),
            (kind, ..) if kind != SocketKind::Pull && !self.routing_key.is_empty() => {
                wrong("routing_key is for pull sockets")
            }
            (kind, ..) if kind != SocketKind::Sub && self.subscribe != everything() => {
                wrong("subscribe is for sub sockets")
            }
            _ => Ok(()),
        }
    }

    /// Refuses what the socket would not look at.
    fn check_use(&self) -> Result<(), ConfigError> {
        use SocketKind::{Dealer, Pull, Push, Router, Sub, Xpub};
        let kind = self.socket;
        for (key, is_said, kinds) in [
            ("persistent", !self.persistent, &[Pull, Sub, Router, Dealer][..]),
            ("prefetch", self.prefetch != prefetch(), &[Push, Xpub, Router, Dealer]),
            ("timeout_ms", self.timeout_ms != timeout_ms(), &[Router, Dealer]),
        ] {
            if is_said && !kinds.contains(&kind) {
                let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                let (kind, kinds) = (kind.name(), kinds.join(", "));
                return Err(ConfigError::new(format!("{kind}: {key} is for {kinds} sockets")));
            }
        }
        Ok(())
    }

    /// Refuses names that nothing can have.
    fn check_names(&self) -> Result<(), ConfigError> {
        let wrong = |problem: String| Err(ConfigError::new(problem));
        if self.queue.as_deref() == Some("") {
            return wrong("queue is empty".into());
        }
        if self.exchange.as_deref() == Some("") {
            return wrong("exchange is empty: the default exchange is not for endpoints".into());
        }
        if self.subscribe.is_empty() {
            return wrong("subscribe is empty: nothing would come ([\"\"] is everything)".into());
        }
        let logins = self.logins();
        let names = [("queue", &self.queue), ("exchange", &self.exchange)];
        let names = names.into_iter().filter_map(|(key, name)| Some((key, name.as_ref()?)));
        let vhosts = logins.iter().map(|login| ("vhost", &login.vhost));
        for (key, name) in names.chain([("routing_key", &self.routing_key)]).chain(vhosts) {
            if name.len() > NAME_BYTES_MAX {
                let size_bytes = name.len();
                return wrong(format!("{key} has {size_bytes} bytes; 255 are possible"));
            }
        }
        if let Security::Plain { users, username, password } = &self.security {
            let given = users.iter().flat_map(|(name, user)| [name, &user.secret]);
            if given.chain(username).chain(password).any(|text| text.len() > NAME_BYTES_MAX) {
                return wrong("security: PLAIN has room for 255 bytes of name and password".into());
            }
        }
        Ok(())
    }

    /// Where peers work as different users or in different vhosts, it has to be known which peer a message is of.
    fn check_accounts(&self) -> Result<(), ConfigError> {
        let kind = self.socket.name();
        let takes = matches!(self.socket, SocketKind::Pull | SocketKind::Sub | SocketKind::Router);
        if takes || !self.security.has_accounts() {
            return Ok(());
        }
        Err(ConfigError::new(format!(
            "{kind}: peers of this socket can't have a user or vhost of their own: any of them may get what there is. \
             Set user and vhost of the endpoint, and give other peers another endpoint"
        )))
    }
}
