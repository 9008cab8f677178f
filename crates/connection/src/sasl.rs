//! Login mechanisms: what a `connection.start-ok` carries, read and written.
//!
//! PLAIN is RFC 4616 without an authorization identity, AMQPLAIN a field table's entries without their length.

use courser_codec::{FieldTable, FieldValue, Table, Value};

/// A login mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mechanism {
    /// User and password in clear.
    Plain = 1,
    /// User and password in clear, as a table.
    AmqPlain = 2,
    /// The user that the TLS client certificate names.
    External = 4,
    /// No user and no password.
    Anonymous = 8,
}

impl Mechanism {
    /// All that there are, in the order in which they are offered.
    pub const ALL: [Self; 4] = [Self::Plain, Self::AmqPlain, Self::External, Self::Anonymous];

    /// The name in `connection.start` and `connection.start-ok`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::AmqPlain => "AMQPLAIN",
            Self::External => "EXTERNAL",
            Self::Anonymous => "ANONYMOUS",
        }
    }

    /// The mechanism with this name.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name().as_bytes() == name)
    }
}

/// A set of mechanisms that a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanisms(u8);

impl Mechanisms {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// PLAIN and AMQPLAIN.
    pub const PASSWORD: Self = Self::NONE.with(Mechanism::Plain).with(Mechanism::AmqPlain);

    /// The set and this one.
    #[must_use]
    pub const fn with(self, mechanism: Mechanism) -> Self {
        Self(self.0 | mechanism as u8)
    }

    /// Whether the set has this one.
    #[must_use]
    pub const fn contains(self, mechanism: Mechanism) -> bool {
        self.0 & mechanism as u8 != 0
    }

    /// Names with spaces between, as `connection.start` lists them.
    #[must_use]
    pub fn names(self) -> String {
        let offered = Mechanism::ALL.into_iter().filter(|&mechanism| self.contains(mechanism));
        offered.map(Mechanism::name).collect::<Vec<_>>().join(" ")
    }

    /// The set of the names in a list from `connection.start`; unknown ones are left out.
    #[must_use]
    pub fn from_names(names: &[u8]) -> Self {
        let known = names.split(|&byte| byte == b' ').filter_map(Mechanism::from_name);
        known.fold(Self::NONE, Self::with)
    }
}

/// What a client presents to log in.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// PLAIN. Any bytes but NUL, by convention UTF-8.
    Plain {
        /// Name of the user.
        user: Vec<u8>,
        /// The password in clear.
        password: Vec<u8>,
    },
    /// AMQPLAIN: the same, in another form.
    AmqPlain {
        /// Name of the user.
        user: Vec<u8>,
        /// The password in clear.
        password: Vec<u8>,
    },
    /// The TLS client certificate says who it is.
    External,
    /// No identity.
    Anonymous,
}

/// Shows the user, never the password.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.mechanism().name();
        match self {
            Self::Plain { user, .. } | Self::AmqPlain { user, .. } => {
                write!(f, "{name}({})", user.escape_ascii())
            }
            Self::External | Self::Anonymous => f.write_str(name),
        }
    }
}

impl Credentials {
    /// The mechanism that they belong to.
    #[must_use]
    pub const fn mechanism(&self) -> Mechanism {
        match self {
            Self::Plain { .. } => Mechanism::Plain,
            Self::AmqPlain { .. } => Mechanism::AmqPlain,
            Self::External => Mechanism::External,
            Self::Anonymous => Mechanism::Anonymous,
        }
    }

    /// Reads the response of a `connection.start-ok`. The error is an explanation that does not repeat the response,
    /// which may hold a password.
    pub(crate) fn parse(mechanism: Mechanism, response: &[u8]) -> Result<Self, &'static str> {
        match mechanism {
            Mechanism::Plain => {
                let (user, password) = parse_plain(response).ok_or("PLAIN response invalid")?;
                Ok(Self::Plain { user: user.to_vec(), password: password.to_vec() })
            }
            Mechanism::AmqPlain => {
                let (user, password) = parse_amqplain(response)?;
                Ok(Self::AmqPlain { user: user.to_vec(), password: password.to_vec() })
            }
            Mechanism::External => Ok(Self::External),
            Mechanism::Anonymous => Ok(Self::Anonymous),
        }
    }

    /// The response that a client sends.
    #[must_use]
    pub fn response(&self) -> Vec<u8> {
        match self {
            Self::Plain { user, password } => [b"\0", &user[..], b"\0", password].concat(),
            Self::AmqPlain { user, password } => {
                let table = FieldTable::default()
                    .with("LOGIN", FieldValue::LongStr(user.clone()))
                    .with("PASSWORD", FieldValue::LongStr(password.clone()));
                let mut encoded = Vec::with_capacity(table.encoded_len());
                table.encode(&mut encoded);
                // The mechanism wants the entries alone.
                encoded.split_off(4)
            }
            Self::External | Self::Anonymous => Vec::new(),
        }
    }
}

/// `NUL user NUL password`.
fn parse_plain(response: &[u8]) -> Option<(&[u8], &[u8])> {
    let response = response.strip_prefix(&[0])?;
    let end = response.iter().position(|&byte| byte == 0)?;
    let (user, password) = (&response[..end], &response[end + 1..]);
    (!password.contains(&0)).then_some((user, password))
}

fn parse_amqplain(response: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let field = |name: &str| match Table::from_entries(response).get(name) {
        Ok(Some(Value::LongStr(bytes) | Value::Bytes(bytes))) => Ok(bytes),
        Ok(Some(_)) => Err("AMQPLAIN auth info uses unsupported type for LOGIN or PASSWORD field"),
        Ok(None) => Err("AMQPLAIN auth info is missing LOGIN or PASSWORD field"),
        Err(_) => Err("AMQPLAIN auth info is no table"),
    };
    Ok((field("LOGIN")?, field("PASSWORD")?))
}

/// The explanation that a client gets with a refused login. It says no more than a client may know.
#[must_use]
pub fn login_refusal(mechanism: Mechanism) -> String {
    let name = mechanism.name();
    format!(
        "Login was refused using authentication mechanism {name}. For details see the broker logfile."
    )
}
