//! PROXY headers, as proxies write them, cut, and spoiled.

use courser_connection::{PROXY_HEADER_BYTES_MAX, ProxiedClient, ProxyHeader, ProxyHeaderError};
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fn at(address: &str) -> ProxiedClient {
    ProxiedClient::At(address.parse().expect("an address"))
}

/// A header of version 2: `rest` stands behind its length.
fn binary(version_and_command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).expect("short").to_be_bytes();
    [SIGNATURE, &[version_and_command, family], &length, rest].concat()
}

fn addresses(client: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let bytes = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let ports = [client.port().to_be_bytes(), to.port().to_be_bytes()].concat();
    [bytes(client.ip()), bytes(to.ip()), ports].concat()
}

fn client_of(header: &[u8]) -> Result<Option<ProxiedClient>, ProxyHeaderError> {
    let parsed = ProxyHeader::parse(header)?;
    if let Some(parsed) = parsed {
        assert_eq!(parsed.length, header.len(), "all of it is the header");
    }
    Ok(parsed.map(|parsed| parsed.client))
}

#[test]
fn a_line_names_the_client() {
    let known = [
        ("PROXY TCP4 203.0.113.7 10.0.0.1 51000 5672\r\n", at("203.0.113.7:51000")),
        ("PROXY TCP6 2001:db8::1 ::1 65535 0\r\n", at("[2001:db8::1]:65535")),
        ("PROXY UNKNOWN\r\n", ProxiedClient::Unknown),
        ("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", ProxiedClient::Unknown),
    ];
    for (header, client) in known {
        assert_eq!(client_of(header.as_bytes()), Ok(Some(client)), "{header}");
    }
}

#[test]
fn a_line_that_is_not_to_the_letter_is_none() {
    let wrong = [
        "PROXY TCP4 203.0.113.7 10.0.0.1 51000 5672\n",
        "PROXY  TCP4 203.0.113.7 10.0.0.1 51000 5672\r\n",
        "PROXY TCP4 203.0.113.7 10.0.0.1 51000\r\n",
        "PROXY TCP4 203.0.113.7 10.0.0.1 51000 5672 \r\n",
        "PROXY TCP4 203.0.113.7 10.0.0.1 65536 5672\r\n",
        "PROXY TCP4 203.0.113.7 10.0.0.1 +5 5672\r\n",
        "PROXY TCP4 203.0.113.7 10.0.0.1 051 5672\r\n",
        "PROXY TCP4 203.0.113.007 10.0.0.1 51000 5672\r\n",
        "PROXY TCP4 ::1 ::1 51000 5672\r\n",
        "PROXY TCP6 203.0.113.7 10.0.0.1 51000 5672\r\n",
        "PROXY UDP4 203.0.113.7 10.0.0.1 51000 5672\r\n",
        "PROXY \r\n",
        "PROXY UNKNOWN\u{fffd}\n",
    ];
    for header in wrong {
        let parsed = ProxyHeader::parse(header.as_bytes());
        assert!(matches!(parsed, Err(ProxyHeaderError::Malformed(_))), "{header}: {parsed:?}");
    }
}

#[test]
fn what_begins_otherwise_is_missing_from_the_first_wrong_byte_on() {
    for start in
        [&b"AMQP\0\0\x09\x01"[..], b"\x16\x03\x01", b"GET / HTTP/1.1", b"PROXX", b"\r\n\r\n\r"]
    {
        assert_eq!(ProxyHeader::parse(start), Err(ProxyHeaderError::Missing));
    }
    assert_eq!(ProxyHeader::parse(b""), Ok(None));
}

#[test]
fn a_line_without_an_end_is_too_long_from_107_bytes_on() {
    let mut header = b"PROXY UNKNOWN ".to_vec();
    header.resize(106, b'x');
    assert_eq!(ProxyHeader::parse(&header), Ok(None));
    header.push(b'x');
    assert_eq!(ProxyHeader::parse(&header), Err(ProxyHeaderError::TooLong));
    // Its end would be there, but too late.
    header.extend_from_slice(b"\r\n");
    assert_eq!(ProxyHeader::parse(&header), Err(ProxyHeaderError::TooLong));
}

#[test]
fn version_2_tells_the_client_its_own_connections_and_what_it_does_not_know() {
    let four =
        addresses("203.0.113.7:51000".parse().expect(""), "10.0.0.1:5672".parse().expect(""));
    let six = addresses("[2001:db8::1]:1".parse().expect(""), "[::1]:2".parse().expect(""));
    let with_more = [&six[..], &[0x20, 0, 2, 1, 1]].concat();
    let known = [
        (binary(0x21, 0x11, &four), at("203.0.113.7:51000")),
        (binary(0x21, 0x21, &six), at("[2001:db8::1]:1")),
        (binary(0x21, 0x21, &with_more), at("[2001:db8::1]:1")),
        (binary(0x20, 0x00, &[]), ProxiedClient::Proxy),
        (binary(0x20, 0x11, &four), ProxiedClient::Proxy),
        (binary(0x20, 0x11, &[1, 2]), ProxiedClient::Proxy),
        (binary(0x21, 0x00, &[]), ProxiedClient::Unknown),
        (binary(0x21, 0x31, &[0; 216]), ProxiedClient::Unknown),
        (binary(0x21, 0x12, &four), ProxiedClient::Unknown),
    ];
    for (header, client) in known {
        assert_eq!(client_of(&header), Ok(Some(client)), "{header:?}");
    }
}

#[test]
fn version_2_with_what_has_no_meaning_is_malformed() {
    let four = [0; 12];
    let wrong = [
        binary(0x11, 0x11, &four),
        binary(0x22, 0x11, &four),
        binary(0x21, 0x13, &four),
        binary(0x21, 0x41, &four),
        binary(0x21, 0x11, &four[..11]),
        binary(0x21, 0x21, &[0; 35]),
    ];
    for header in wrong {
        let parsed = ProxyHeader::parse(&header);
        assert!(matches!(parsed, Err(ProxyHeaderError::Malformed(_))), "{header:?}: {parsed:?}");
    }
}

#[test]
fn version_2_is_bounded_before_it_is_there() {
    let mut header = binary(0x21, 0x11, &[0; 4096]);
    assert_eq!(header.len(), PROXY_HEADER_BYTES_MAX);
    assert!(matches!(ProxyHeader::parse(&header), Ok(Some(_))));
    header.truncate(16);
    header[14..16].copy_from_slice(&4097_u16.to_be_bytes());
    assert_eq!(ProxyHeader::parse(&header), Err(ProxyHeaderError::TooLong));
}

fn any_header() -> impl Strategy<Value = (Vec<u8>, ProxiedClient)> {
    let v4 =
        (any::<[u8; 4]>(), any::<[u8; 4]>()).prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>())
        .prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    let more = proptest::collection::vec(any::<u8>(), 0..64);
    (prop_oneof![v4, v6], any::<u16>(), any::<u16>(), more, any::<bool>()).prop_map(
        |((from, to), port, to_port, more, is_line)| {
            let client = SocketAddr::new(from, port);
            let is_four = from.is_ipv4();
            let header = if is_line {
                let family = if is_four { "TCP4" } else { "TCP6" };
                format!("PROXY {family} {from} {to} {port} {to_port}\r\n").into_bytes()
            } else {
                let rest = [addresses(client, SocketAddr::new(to, to_port)), more].concat();
                binary(0x21, if is_four { 0x11 } else { 0x21 }, &rest)
            };
            (header, ProxiedClient::At(client))
        },
    )
}

proptest! {
    #[test]
    fn a_header_is_found_whatever_follows_and_awaited_while_it_is_cut(
        (header, client) in any_header(),
        tail in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let whole = [&header[..], &tail].concat();
        let expected = ProxyHeader { client, length: header.len() };
        prop_assert_eq!(ProxyHeader::parse(&whole), Ok(Some(expected)));
        for cut in 0..header.len() {
            prop_assert_eq!(ProxyHeader::parse(&header[..cut]), Ok(None), "cut at {}", cut);
        }
    }

    #[test]
    fn what_was_decided_stays_so_when_more_comes(
        (header, _) in any_header(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut spoiled = header;
        let place = place.index(spoiled.len());
        spoiled[place] = byte;
        let mut decided = None;
        for cut in 0..=spoiled.len() {
            let parsed = ProxyHeader::parse(&spoiled[..cut]);
            if let Some(decided) = decided {
                prop_assert_eq!(parsed, decided, "at {}", cut);
            } else if parsed != Ok(None) {
                decided = Some(parsed);
            }
        }
    }
}
