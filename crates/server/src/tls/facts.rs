//! What an operator wants to know of a certificate, and of a revocation list.

use super::identity::{Named, TlsError};
use super::peer::{alternative_names, rfc4514};
use courser_management::{Certificate, CertificateUse};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use x509_parser::prelude::{CertificateRevocationList, FromDer, X509Certificate};

/// A list of certificates that are revoked, in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RevocationList {
    /// Its file.
    pub path: String,
    /// The authority that has revoked them.
    pub issuer: String,
    /// When it was made and when it expires, in seconds since 1970.
    pub not_before_s: i64,
    pub not_after_s: i64,
}

/// What is in a revocation list of a file; nothing if it is of a form that only handshakes understand.
pub(crate) fn of_list(
    file: Named<'_>,
    der: &CertificateRevocationListDer<'_>,
) -> Option<RevocationList> {
    let (_, parsed) = CertificateRevocationList::from_der(der).ok()?;
    Some(RevocationList {
        path: file.path.display().to_string(),
        issuer: rfc4514(parsed.issuer()),
        not_before_s: parsed.last_update().timestamp(),
        // Handshakes take no list without.
        not_after_s: parsed.next_update()?.timestamp(),
    })
}

/// What is in a certificate of a file, and what it is for.
///
/// # Errors
/// When it can't be parsed.
pub(crate) fn of(
    file: Named<'_>,
    der: &CertificateDer<'_>,
    purpose: CertificateUse,
    hosts: &[String],
) -> Result<Certificate, TlsError> {
    let (_, parsed) = X509Certificate::from_der(der).map_err(|error| file.wrong(error))?;
    Ok(Certificate {
        path: file.path.display().to_string(),
        purpose,
        hosts: hosts.to_vec(),
        subject: rfc4514(parsed.subject()),
        alternative_names: alternative_names(&parsed),
        issuer: rfc4514(parsed.issuer()),
        serial: parsed.raw_serial().iter().map(|byte| format!("{byte:02x}")).collect(),
        not_before_s: parsed.validity().not_before.timestamp(),
        not_after_s: parsed.validity().not_after.timestamp(),
    })
}
