//! The client's certificate, and the name of the user in it.

use crate::config::{ExternalName, Tls};
use courser_broker::admin::PeerCertificate;
use courser_management::ClientTls;
use rustls::ServerConnection;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{ASN1Time, AttributeTypeAndValue, FromDer, X509Certificate, X509Name};

/// What a finished handshake says of the client, whose socket counts in `taken` what it takes.
pub(super) fn client_of(
    connection: &ServerConnection,
    settings: &Tls,
    taken: Arc<AtomicU64>,
) -> ClientTls {
    let version = connection.protocol_version();
    let suite = connection.negotiated_cipher_suite().map(|suite| suite.suite());
    let session = match (version, suite) {
        (Some(version), Some(suite)) => format!("{version:?}, {suite:?}"),
        _ => String::new(),
    };
    let first = connection.peer_certificates().and_then(<[_]>::first);
    let mut shown = None;
    let user = match first {
        None => Err("the client presented no TLS certificate"),
        Some(der) => match X509Certificate::from_der(der) {
            Ok((_, certificate)) => {
                shown = Some(shown_of(&certificate));
                user_name(&certificate, settings)
            }
            Err(_) => Err("the client's certificate can't be parsed"),
        },
    };
    ClientTls { session, certificate: shown, user, taken }
}

/// Bytes of a name that is shown.
const SHOWN_BYTES_MAX: usize = 512;

/// What operators are shown of a client's certificate.
fn shown_of(certificate: &X509Certificate<'_>) -> PeerCertificate {
    let name = |name: &X509Name<'_>| {
        let mut text = rfc4514(name);
        text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
        text
    };
    let validity = certificate.validity();
    let day = |time: ASN1Time| {
        let time = time.to_datetime();
        let (date, clock) = (time.date(), time.time());
        let (year, month, day) = date.to_calendar_date();
        let (hour, minute, second) = clock.as_hms();
        format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z", u8::from(month))
    };
    PeerCertificate {
        subject: name(certificate.subject()),
        issuer: name(certificate.issuer()),
        validity: format!("{} - {}", day(validity.not_before), day(validity.not_after)),
        serial: certificate.serial.to_str_radix(16).to_uppercase(),
    }
}

/// The name of the user that a certificate stands for.
fn user_name(certificate: &X509Certificate<'_>, settings: &Tls) -> Result<String, &'static str> {
    let subject = certificate.subject();
    let name = match settings.external_name {
        ExternalName::DistinguishedName => rfc4514(subject),
        ExternalName::CommonName => {
            let names = subject.iter_common_name().filter_map(|name| name.as_str().ok());
            names.collect::<Vec<_>>().join(",")
        }
        kind => {
            let extension = certificate.subject_alternative_name().ok().flatten();
            let names = extension.iter().flat_map(|extension| &extension.value.general_names);
            let mut wanted = names.filter_map(|name| alternative_name(name, kind));
            wanted.nth(settings.external_name_index).unwrap_or_default()
        }
    };
    match name.len() {
        0 => Err("the client's certificate has no such name as external_name asks for"),
        1..=255 => Ok(name),
        _ => Err("the name in the client's certificate is longer than 255 bytes"),
    }
}

/// All of the other names in a certificate that clients and brokers are known by.
pub(super) fn alternative_names(certificate: &X509Certificate<'_>) -> Vec<String> {
    const KINDS: [ExternalName; 4] =
        [ExternalName::SanDns, ExternalName::SanIp, ExternalName::SanEmail, ExternalName::SanUri];
    let extension = certificate.subject_alternative_name().ok().flatten();
    let names = extension.iter().flat_map(|extension| &extension.value.general_names);
    names.flat_map(|name| KINDS.iter().filter_map(|kind| alternative_name(name, *kind))).collect()
}

fn alternative_name(name: &GeneralName<'_>, kind: ExternalName) -> Option<String> {
    match (kind, name) {
        (ExternalName::SanDns, GeneralName::DNSName(name))
        | (ExternalName::SanEmail, GeneralName::RFC822Name(name))
        | (ExternalName::SanUri, GeneralName::URI(name)) => Some((*name).to_owned()),
        (ExternalName::SanIp, GeneralName::IPAddress(bytes)) => address(bytes),
        _ => None,
    }
}

fn address(bytes: &[u8]) -> Option<String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|four| IpAddr::from(Ipv4Addr::from(four)));
    let v6 = || <[u8; 16]>::try_from(bytes).map(|all| IpAddr::from(Ipv6Addr::from(all)));
    v4.or_else(|_| v6()).ok().map(|address| address.to_string())
}

/// A distinguished name as RFC 4514 writes it: the last part first.
pub(super) fn rfc4514(name: &X509Name<'_>) -> String {
    let parts: Vec<_> = name.iter_rdn().collect();
    let texts = parts.into_iter().rev().map(|part| {
        let values: Vec<String> = part.iter().map(attribute).collect();
        values.join("+")
    });
    texts.collect::<Vec<_>>().join(",")
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let oid = attribute.attr_type().to_id_string();
    let name = match oid.as_str() {
        "2.5.4.3" => "CN",
        "2.5.4.4" => "SN",
        "2.5.4.5" => "SERIALNUMBER",
        "2.5.4.6" => "C",
        "2.5.4.7" => "L",
        "2.5.4.8" => "ST",
        "2.5.4.9" => "STREET",
        "2.5.4.10" => "O",
        "2.5.4.11" => "OU",
        "2.5.4.12" => "TITLE",
        "2.5.4.42" => "GIVENNAME",
        "2.5.4.43" => "INITIALS",
        "2.5.4.44" => "GENERATIONQUALIFIER",
        "2.5.4.46" => "DNQUALIFIER",
        "2.5.4.65" => "PSEUDONYM",
        "0.9.2342.19200300.100.1.1" => "UID",
        "0.9.2342.19200300.100.1.25" => "DC",
        "1.2.840.113549.1.9.1" => "EMAILADDRESS",
        other => other,
    };
    match attribute.as_str() {
        Ok(value) => format!("{name}={}", escape(value)),
        // A value that is no text is written as the hexadecimal digits of its encoding.
        Err(_) => {
            let digits = attribute.as_slice().iter().map(|byte| format!("{byte:02x}"));
            format!("{name}=#{}", digits.collect::<String>())
        }
    }
}

/// Escapes what has a meaning in a distinguished name (RFC 4514, section 2.4).
fn escape(value: &str) -> String {
    let last = value.chars().count().saturating_sub(1);
    let mut escaped = String::with_capacity(value.len());
    for (index, character) in value.chars().enumerate() {
        let special = matches!(character, ',' | '+' | '"' | '\\' | '<' | '>' | ';')
            || (character == '#' && index == 0)
            || (character == ' ' && (index == 0 || index == last));
        if special {
            escaped.push('\\');
        }
        match character {
            '\0' => escaped.push_str("\\00"),
            other => escaped.push(other),
        }
    }
    escaped
}
