//! The header in which a proxy says whose connection it passes on (PROXY protocol, versions 1 and 2). It stands before
//! the first byte of what the client sends, TLS included.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The first bytes of version 2, and of version 1.
const SIGNATURE_2: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
const SIGNATURE_1: [u8; 6] = *b"PROXY ";
/// Bytes of a header of version 1, its end of line included.
const LINE_BYTES_MAX: usize = 107;
/// Bytes of version 2 up to its addresses.
const FIXED_BYTES: usize = 16;
/// Bytes behind these that a header of version 2 may have: room for addresses and a client's certificate.
const REST_BYTES_MAX: usize = 4096;

/// Bytes of the longest header.
pub const PROXY_HEADER_BYTES_MAX: usize = FIXED_BYTES + REST_BYTES_MAX;

/// Whose connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxiedClient {
    /// The proxy's own, such as a health check.
    Proxy,
    /// That of a client at this address.
    At(SocketAddr),
    /// That of a client whose address the proxy does not tell.
    Unknown,
}

/// A header that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// Whose connection it is.
    pub client: ProxiedClient,
    /// Bytes of the header; what the client sends begins behind them.
    pub length: usize,
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyHeaderError {
    /// They do not begin as one.
    #[error("no PROXY header")]
    Missing,
    /// It is longer than any should be.
    #[error("the PROXY header is too long")]
    TooLong,
    /// It says something that has no meaning.
    #[error("the PROXY header is malformed: {0}")]
    Malformed(&'static str),
}

use ProxyHeaderError::{Malformed, Missing, TooLong};

impl ProxyHeader {
    /// The header that `input` begins with; `None` if more of it has to come.
    ///
    /// # Errors
    /// If there will be none, whatever comes.
    pub fn parse(input: &[u8]) -> Result<Option<Self>, ProxyHeaderError> {
        if begins_as(input, &SIGNATURE_2) {
            binary(input)
        } else if begins_as(input, &SIGNATURE_1) {
            line(input)
        } else {
            Err(Missing)
        }
    }
}

fn begins_as(input: &[u8], signature: &[u8]) -> bool {
    let both = input.len().min(signature.len());
    input[..both] == signature[..both]
}

/// Version 1: a line of text.
fn line(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderError> {
    let seen = &input[..input.len().min(LINE_BYTES_MAX)];
    let Some(end) = seen.iter().position(|byte| *byte == b'\n') else {
        return if seen.len() == LINE_BYTES_MAX { Err(TooLong) } else { Ok(None) };
    };
    let text = seen[..end].strip_suffix(b"\r").ok_or(Malformed("its line ends without a CR"))?;
    let text = std::str::from_utf8(text).map_err(|_| Malformed("its line is no text"))?;
    let mut words = text.split(' ').skip(1);
    let client = match words.next() {
        Some("UNKNOWN") => ProxiedClient::Unknown,
        Some(family @ ("TCP4" | "TCP6")) => ProxiedClient::At(source(family, words)?),
        _ => return Err(Malformed("its protocol is not TCP4, TCP6 or UNKNOWN")),
    };
    Ok(Some(ProxyHeader { client, length: end + 1 }))
}

/// The first of the two addresses: that of the client.
fn source<'a>(
    family: &str,
    mut words: impl Iterator<Item = &'a str>,
) -> Result<SocketAddr, ProxyHeaderError> {
    let mut address = || {
        let address = words.next()?.parse::<IpAddr>().ok()?;
        (address.is_ipv4() == (family == "TCP4")).then_some(address)
    };
    let of_client = address().ok_or(Malformed("no address of the client"))?;
    address().ok_or(Malformed("no address of the destination"))?;
    let mut port = || {
        let word = words.next()?;
        let is_plain = word.bytes().all(|byte| byte.is_ascii_digit());
        let is_short = word == "0" || !word.starts_with('0');
        word.parse::<u16>().ok().filter(|_| is_plain && is_short)
    };
    let port_of_client = port().ok_or(Malformed("no port of the client"))?;
    port().ok_or(Malformed("no port of the destination"))?;
    match words.next() {
        None => Ok(SocketAddr::new(of_client, port_of_client)),
        Some(_) => Err(Malformed("something follows the ports")),
    }
}

/// Version 2: bytes at fixed places. What follows the addresses is not used.
fn binary(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderError> {
    let Some((fixed, rest)) = input.split_first_chunk::<FIXED_BYTES>() else { return Ok(None) };
    let [.., version_and_command, family, high, low] = *fixed;
    let rest_bytes = usize::from(u16::from_be_bytes([high, low]));
    if rest_bytes > REST_BYTES_MAX {
        return Err(TooLong);
    }
    let is_local = match version_and_command {
        0x20 => true,
        0x21 => false,
        _ => return Err(Malformed("its version is not 2, or its command unknown")),
    };
    let address_bytes = match family {
        0x11 => 12,
        0x21 => 36,
        // Without an address, of datagrams, or of a socket in the file system.
        0x00 | 0x12 | 0x22 | 0x31 | 0x32 => 0,
        _ => return Err(Malformed("its family of addresses is unknown")),
    };
    if !is_local && rest_bytes < address_bytes {
        return Err(Malformed("it is shorter than its addresses"));
    }
    let Some(rest) = rest.get(..rest_bytes) else { return Ok(None) };
    let client = match is_local {
        true => ProxiedClient::Proxy,
        false => first_address(rest, address_bytes),
    };
    Ok(Some(ProxyHeader { client, length: FIXED_BYTES + rest_bytes }))
}

/// The client's address, of those that begin `rest`: both addresses, then both ports.
fn first_address(rest: &[u8], address_bytes: usize) -> ProxiedClient {
    let (ip, port) = match address_bytes {
        12 => (rest.first_chunk::<4>().map(|ip| Ipv4Addr::from(*ip).into()), 8),
        36 => (rest.first_chunk::<16>().map(|ip| Ipv6Addr::from(*ip).into()), 32),
        _ => (None, 0),
    };
    let port = rest.get(port..).and_then(<[u8]>::first_chunk::<2>);
    match (ip, port) {
        (Some(ip), Some(port)) => ProxiedClient::At(SocketAddr::new(ip, u16::from_be_bytes(*port))),
        _ => ProxiedClient::Unknown,
    }
}
