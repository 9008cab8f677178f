//! The versions of TLS and the cipher suites that connections of clients can have.

use crate::config::{Tls, TlsVersion};
use courser_management::{CipherSuiteFacts, TlsFacts, TlsVersionFacts};
use rustls::crypto::aws_lc_rs;
use rustls::{ProtocolVersion, SupportedProtocolVersion};

static NEWEST: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];

/// The versions that the settings allow.
pub(super) fn versions(settings: &Tls) -> &'static [&'static SupportedProtocolVersion] {
    match settings.min_version {
        TlsVersion::Tls12 => rustls::ALL_VERSIONS,
        TlsVersion::Tls13 => &NEWEST,
    }
}

/// A version by the name that RabbitMQ's tools have for it.
fn name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_3 => "tlsv1.3",
        _ => "tlsv1.2",
    }
}

/// What there is, and which of it the settings allow.
pub(crate) fn facts(settings: &Tls) -> TlsFacts {
    let allowed = versions(settings);
    let is_allowed = |version| allowed.iter().any(|one| one.version == version);
    let all = [&rustls::version::TLS13, &rustls::version::TLS12];
    let versions = all
        .map(|one| TlsVersionFacts { name: name(one.version), enabled: is_allowed(one.version) });
    let suites = aws_lc_rs::default_provider().cipher_suites;
    let cipher_suites = suites.iter().map(|suite| {
        let version = suite.version().version;
        CipherSuiteFacts {
            // It writes `TLS13_` where the registry has `TLS_`.
            name: format!("{:?}", suite.suite()).replace("TLS13_", "TLS_"),
            version: name(version),
            enabled: is_allowed(version),
        }
    });
    TlsFacts { versions: versions.to_vec(), cipher_suites: cipher_suites.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_oldest_version_rules_out_is_there_and_not_enabled() {
        let mut settings = Tls::default();
        let all = facts(&settings);
        assert!(all.cipher_suites.iter().all(|suite| suite.enabled), "{all:?}");
        settings.min_version = TlsVersion::Tls13;
        let newest = facts(&settings);
        assert_eq!(newest.cipher_suites.len(), all.cipher_suites.len());
        for suite in newest.cipher_suites {
            assert_eq!(suite.enabled, suite.version == "tlsv1.3", "{suite:?}");
            assert!(suite.name.starts_with("TLS_"), "{suite:?}");
        }
    }
}
