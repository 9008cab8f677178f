//! What an operator wants to know of a certificate.

use super::identity::{Named, TlsError};
use super::peer::{alternative_names, rfc4514};
use courser_management::{Certificate, CertificateUse};
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

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
