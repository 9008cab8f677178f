//! TLS to a broker: its certificate is checked against the machine's authorities, or those that are
//! named.

use crate::failure::{CONFIG, Failure, UNAVAILABLE};
use crate::target::Remote;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Speaks TLS on a connection.
///
/// # Errors
/// If the authorities can't be read, or the broker's certificate is not good.
pub async fn connect(remote: &Remote, stream: TcpStream) -> Result<TlsStream<TcpStream>, Failure> {
    let trusted = match &remote.ca {
        Some(path) => named(path)?,
        None => of_this_machine()?,
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = Verifier::new(trusted, Arc::clone(&provider))
        .map_err(|error| Failure::error(UNAVAILABLE, error))?;
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| Failure::error(UNAVAILABLE, error))?;
    let config = config.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let config = config.with_no_client_auth();
    let name = ServerName::try_from(remote.host.clone())
        .map_err(|_| Failure::usage(format!("'{}' is not a host name", remote.host)))?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map_err(|error| {
        Failure::error(
            UNAVAILABLE,
            format!("the TLS handshake with {remote} failed: {}", why(&error)),
        )
    })
}

/// What is wrong, and what to do.
fn why(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(wrong)) = inner else { return error.to_string() };
    match wrong {
        CertificateError::UnknownIssuer => {
            "the broker's certificate comes from no CA that is trusted: give the CA that issued its certificate with \
             --ca, or the certificate itself if it is self-signed"
                .to_owned()
        }
        CertificateError::NotValidForName => {
            "the broker's certificate is for another name: use a name or an address in --url that it contains"
                .to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "the broker's certificate is not for {}: use a name or an address in --url that it contains ({})",
            expected.to_str(),
            presented.join(", ")
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the broker's certificate has expired: renew it there, or set this machine's clock if that is wrong"
                .to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the broker's certificate is not valid yet: compare the clocks of this machine and the broker's"
                .to_owned()
        }
        wrong if is_of_ca(wrong) => {
            "the broker's certificate is self-signed: give this very certificate with --ca".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Whether a certificate is refused as it could issue others itself; openssl makes self-signed ones so.
fn is_of_ca(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(error) if error.0.to_string().contains("CaUsedAsEndEntity"))
}

/// Certificates that are trusted: for what they issued, and for themselves.
struct Trusted {
    roots: RootCertStore,
    certificates: Vec<CertificateDer<'static>>,
}

/// Checks a broker's certificate. One that is trusted itself needs no issuer.
#[derive(Debug)]
struct Verifier {
    webpki: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Verifier {
    fn new(
        trusted: Trusted,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, rustls::client::VerifierBuilderError> {
        let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(trusted.roots), provider);
        Ok(Verifier { webpki: webpki.build()?, certificates: trusted.certificates })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.webpki.verify_server_cert(end_entity, intermediates, name, ocsp, now);
        match verified {
            // Both are said only of a certificate within its time.
            Err(rustls::Error::InvalidCertificate(wrong))
                if (is_of_ca(&wrong) || wrong == CertificateError::UnknownIssuer)
                    && self.certificates.iter().any(|known| known == end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

fn named(path: &Path) -> Result<Trusted, Failure> {
    let fail = |why: &dyn std::fmt::Display| {
        Failure::error(CONFIG, format!("can't read CA certificates from {}: {why}", path.display()))
    };
    let read = CertificateDer::pem_file_iter(path).map_err(|error| fail(&error))?;
    let (mut roots, mut certificates) = (RootCertStore::empty(), Vec::new());
    for certificate in read {
        let certificate = certificate.map_err(|error| fail(&error))?;
        roots.add(certificate.clone()).map_err(|error| fail(&error))?;
        certificates.push(certificate);
    }
    match roots.is_empty() {
        true => Err(fail(&"it contains no certificate")),
        false => Ok(Trusted { roots, certificates }),
    }
}

fn of_this_machine() -> Result<Trusted, Failure> {
    let mut roots = RootCertStore::empty();
    // One that can't be used is no reason to go without all others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => Err(Failure::error(
            CONFIG,
            "the system has no CA certificates: give a file of them with --ca",
        )),
        false => Ok(Trusted { roots, certificates: Vec::new() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
    use std::time::Duration;

    /// A certificate for localhost as `openssl req -x509` makes it, from 1975 to 4096.
    fn self_signed() -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().clone()
    }

    fn checked(
        trusted: &CertificateDer<'static>,
        shown: &CertificateDer<'_>,
        name: &'static str,
        now_s: u64,
    ) -> Result<(), String> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).expect("a root");
        let trusted = Trusted { roots, certificates: vec![trusted.clone()] };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = Verifier::new(trusted, provider).expect("a verifier");
        let name = ServerName::try_from(name).expect("a name");
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now_s));
        let verified = verifier.verify_server_cert(shown, &[], &name, &[], now);
        verified.map(drop).map_err(|error| why(&std::io::Error::other(error)))
    }

    #[test]
    fn a_certificate_that_is_given_itself_is_trusted_for_its_name_and_time() {
        let (own, other) = (self_signed(), self_signed());
        let now_s = 1_800_000_000;
        assert_eq!(checked(&own, &own, "localhost", now_s), Ok(()));
        for (trusted, name, now_s, text) in [
            (&other, "localhost", now_s, "give this very certificate with --ca"),
            (&own, "broker.example", now_s, "use a name or an address in --url that it contains"),
            (&own, "localhost", 1, "is not valid yet"),
            (&own, "localhost", 80_000_000_000, "has expired"),
        ] {
            let refused = checked(trusted, &own, name, now_s).expect_err("not trusted");
            assert!(refused.contains(text), "{refused}");
        }
    }
}
