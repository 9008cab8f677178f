//! AMQP URIs: `amqp://user:password@host:port/vhost?heartbeat=10`.
//!
//! The form is RabbitMQ's. Every part may be left out: user and password are guest, the host is localhost, the port 5672
//! (5671 with TLS), the virtual host `/`. Any byte can be written as `%` and two hexadecimal digits; a virtual host
//! with a slash in it has to be (`/%2Fa` is `/a`). A path of a slash alone is the virtual host `/`, as most clients
//! have it, though the definition of the form would have it empty.

use std::str::FromStr;
use std::time::Duration;

use courser_codec::{PORT, ShortString, TLS_PORT};
use courser_connection::{Credentials, Mechanism};

use crate::options::Options;

/// A parsed URI: where to connect, and how.
#[derive(Clone, Debug)]
pub struct Uri {
    /// Name or address of the host, an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Whether the scheme is `amqps`.
    pub is_tls: bool,
    /// Login, virtual host and what the query says.
    pub options: Options,
}

/// Text that is no AMQP URI, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UriError {
    /// It does not begin with `amqp://` or `amqps://`.
    #[error("an AMQP URI begins with amqp:// or amqps://")]
    Scheme,
    /// The port is no number from 1 to 65535.
    #[error("the port is no number from 1 to 65535")]
    Port,
    /// An IPv6 address lacks its closing bracket, or something but a port follows it.
    #[error("an IPv6 address stands in brackets, as in [::1]:5672")]
    Brackets,
    /// A `%` is not followed by two hexadecimal digits.
    #[error("% stands before two hexadecimal digits; % itself is %25 (in {0:?})")]
    Percent(String),
    /// A `%` in the user's name or the password is not followed by two hexadecimal digits.
    #[error(
        "% stands before two hexadecimal digits; % itself is %25 (in the user's name or the password)"
    )]
    PercentInLogin,
    /// It is no URI as it is written, and an `@` stands behind a slash, a question mark or a number sign. Those may be of
    /// the password, so nothing is quoted.
    #[error("no URI; /, ? and # in a user's name or a password are written %2F, %3F and %23")]
    Login,
    /// A part is not UTF-8 once it is decoded.
    #[error("{0:?} is not UTF-8 once it is decoded")]
    NotText(String),
    /// More than one path segment.
    #[error("a slash within the virtual host's name is written %2F")]
    Path,
    /// The virtual host's name has more than 255 bytes.
    #[error("the virtual host's name has {0} bytes; at most 255 are possible")]
    VirtualHostTooLong(usize),
    /// A query parameter that does not exist, and the one that may be meant.
    #[error("unknown parameter {name:?}{}", nearest.map(|nearest| format!("; did you mean {nearest:?}?")).unwrap_or_default())]
    UnknownParameter {
        /// What was written.
        name: String,
        /// The nearest parameter that exists.
        nearest: Option<&'static str>,
    },
    /// A query parameter is for TLS, which is set up where the stream is made.
    #[error("{0:?} is for TLS, which is set up where the stream for Connection::open_on is made")]
    TlsParameter(String),
    /// A query parameter's value does not fit.
    #[error("parameter {name:?} cannot be {value:?}: {expected}")]
    Value {
        /// Which parameter.
        name: &'static str,
        /// What was written.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// Parameters of the query.
const PARAMETERS: [&str; 6] = [
    "auth_mechanism",
    "channel_max",
    "connection_name",
    "connection_timeout",
    "frame_max",
    "heartbeat",
];
/// Parameters that other clients have, for TLS.
const TLS_PARAMETERS: [&str; 6] = [
    "cacertfile",
    "certfile",
    "keyfile",
    "verify",
    "fail_if_no_peer_cert",
    "server_name_indication",
];

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let (scheme, rest) = text.split_once("://").ok_or(UriError::Scheme)?;
        // What is wrong may quote a part of a password otherwise.
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let may_quote = !rest[end..].contains('@');
        Uri::parse(scheme, rest).map_err(|error| if may_quote { error } else { UriError::Login })
    }
}

impl Uri {
    /// The URI of a scheme and what stands behind `://`.
    fn parse(scheme: &str, rest: &str) -> Result<Self, UriError> {
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "amqp" => false,
            "amqps" => true,
            _ => return Err(UriError::Scheme),
        };
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, address) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (host, port) = split_address(address)?;
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (decode_login(user)?, decode_login(password)?),
            None if login.is_empty() => (b"guest".to_vec(), b"guest".to_vec()),
            None => (decode_login(login)?, b"guest".to_vec()),
        };
        let mut options = Options { virtual_host: virtual_host(path)?, ..Options::default() };
        let mut mechanism = Mechanism::Plain;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode_text(value)?;
            match decode_text(name)?.as_str() {
                "auth_mechanism" => mechanism = parse_mechanism(value)?,
                name => set_parameter(&mut options, name, value)?,
            }
        }
        options.credentials = match mechanism {
            Mechanism::Plain => Credentials::Plain { user, password },
            Mechanism::AmqPlain => Credentials::AmqPlain { user, password },
            Mechanism::External => Credentials::External,
            Mechanism::Anonymous => Credentials::Anonymous,
        };
        Ok(Self {
            host: if host.is_empty() { "localhost".to_owned() } else { host },
            port: port.unwrap_or(if is_tls { TLS_PORT } else { PORT }),
            is_tls,
            options,
        })
    }

    /// Host and port as one text, an IPv6 address in brackets.
    #[must_use]
    pub fn address(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Shows where it leads, without the password.
impl std::fmt::Display for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.is_tls { "amqps" } else { "amqp" };
        let vhost = self.options.virtual_host.to_string();
        let vhost = vhost.replace('%', "%25").replace('/', "%2F");
        write!(f, "{scheme}://{}/{vhost}", self.address())
    }
}

fn split_address(address: &str) -> Result<(String, Option<u16>), UriError> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or(UriError::Brackets)?;
            match rest.strip_prefix(':') {
                Some(port) => (host.to_owned(), port),
                None if rest.is_empty() => (host.to_owned(), ""),
                None => return Err(UriError::Brackets),
            }
        }
        None => {
            let (host, port) = address.split_once(':').unwrap_or((address, ""));
            if port.contains(':') {
                return Err(UriError::Brackets);
            }
            (decode_text(host)?, port)
        }
    };
    let number = match port {
        "" => None,
        _ => match port.parse() {
            Ok(0) | Err(_) => return Err(UriError::Port),
            Ok(number) => Some(number),
        },
    };
    Ok((host, number))
}

fn virtual_host(path: &str) -> Result<ShortString, UriError> {
    if path.contains('/') {
        return Err(UriError::Path);
    }
    let name = if path.is_empty() { b"/".to_vec() } else { decode(path)? };
    ShortString::new(&name).map_err(|error| UriError::VirtualHostTooLong(error.len))
}

fn set_parameter(options: &mut Options, name: &str, value: String) -> Result<(), UriError> {
    match name {
        "heartbeat" => {
            options.heartbeat_s = number("heartbeat", value, "seconds from 0 to 65535")?;
        }
        "channel_max" => {
            options.channel_max = number("channel_max", value, "a number from 0 to 65535")?;
        }
        "frame_max" => {
            options.frame_max = number("frame_max", value, "bytes, from 0")?;
        }
        "connection_timeout" => {
            let timeout_ms = number("connection_timeout", value, "milliseconds, from 0")?;
            options.connect_timeout = Duration::from_millis(timeout_ms);
        }
        "connection_name" => options.connection_name = Some(value),
        _ if TLS_PARAMETERS.contains(&name) => {
            return Err(UriError::TlsParameter(name.to_owned()));
        }
        _ => {
            let distance = |known: &&str| strsim::damerau_levenshtein(known, name);
            let nearest = PARAMETERS.into_iter().min_by_key(|known| distance(known));
            let nearest = nearest.filter(|known| distance(known) <= known.len() / 2);
            return Err(UriError::UnknownParameter { name: name.to_owned(), nearest });
        }
    }
    Ok(())
}

fn parse_mechanism(value: String) -> Result<Mechanism, UriError> {
    let expected = "plain, amqplain, external or anonymous";
    Mechanism::from_name(value.to_ascii_uppercase().as_bytes()).ok_or(UriError::Value {
        name: "auth_mechanism",
        value,
        expected,
    })
}

fn number<N: FromStr>(
    name: &'static str,
    value: String,
    expected: &'static str,
) -> Result<N, UriError> {
    value.parse().map_err(|_| UriError::Value { name, value, expected })
}

fn decode_text(text: &str) -> Result<String, UriError> {
    String::from_utf8(decode(text)?).map_err(|_| UriError::NotText(text.to_owned()))
}

/// The same as [`decode`] for what no error may quote.
fn decode_login(text: &str) -> Result<Vec<u8>, UriError> {
    decode(text).map_err(|_| UriError::PercentInLogin)
}

/// Replaces `%` and two hexadecimal digits by the byte that they stand for.
fn decode(text: &str) -> Result<Vec<u8>, UriError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = behind.first_chunk::<2>();
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let value = digits.and_then(|&[high, low]| Some(digit(high)? * 16 + digit(low)?));
        let Some(value) = value else { return Err(UriError::Percent(text.to_owned())) };
        bytes.push(value as u8);
        rest = &behind[2..];
    }
    Ok(bytes)
}
