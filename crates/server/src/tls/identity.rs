//! Certificates, keys, authorities and revocation lists: from their PEM files to what rustls needs.

use super::facts;
use crate::config::{ClientCertificates, Tls, TlsVersion};
use courser_management::{Certificate, CertificateUse};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, RootCertStore, ServerConfig};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is wrong with a file, or with files together.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file can't be read.
    #[error("{path}: {error}", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A file holds something else than what is wanted, or is broken.
    #[error("{path}: {problem}", path = .path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A key that does not belong to its certificate.
    #[error(
        "{key} is not the key of the certificate in {certificate}",
        key = .key.display(), certificate = .certificate.display()
    )]
    Mismatch {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
    },
}

impl TlsError {
    pub(crate) fn wrong(path: &Path, problem: impl fmt::Display) -> Self {
        TlsError::Wrong { path: path.to_owned(), problem: problem.to_string() }
    }
}

/// Everything that the files of `settings` say, ready for handshakes.
///
/// # Errors
/// The first file that is unreadable or wrong, by name.
pub(crate) fn load(settings: &Tls) -> Result<(ServerConfig, Vec<Certificate>), TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut shown = Vec::new();
    let mut load = |certificate: &Path, key: &Path, hosts: &[String]| {
        let pair = certified_key(certificate, key, &provider)?;
        shown.push(facts::of(certificate, &pair.cert[0], CertificateUse::Server, hosts)?);
        Ok(Arc::new(pair))
    };
    let usual = load(&settings.certificate, &settings.key, &[])?;
    let mut hosts = Vec::new();
    for host in &settings.hosts {
        let pair = load(&host.certificate, &host.key, &host.names)?;
        let names = host.names.iter().map(|name| name.to_ascii_lowercase());
        hosts.extend(names.map(|name| (name, Arc::clone(&pair))));
    }
    let (verifier, authorities) = client_verifier(settings, &provider)?;
    for authority in &authorities {
        let purpose = CertificateUse::ClientAuthority;
        shown.push(facts::of(&settings.client_ca, authority, purpose, &[])?);
    }
    let versions = match settings.min_version {
        TlsVersion::Tls12 => rustls::ALL_VERSIONS,
        TlsVersion::Tls13 => &[&rustls::version::TLS13],
    };
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| TlsError::wrong(&settings.certificate, error))?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(ByHost { usual, hosts }));
    Ok((config, shown))
}

/// All files that `settings` name.
pub(crate) fn files(settings: &Tls) -> Vec<PathBuf> {
    let hosts = settings.hosts.iter().flat_map(|host| [&host.certificate, &host.key]);
    let all = [&settings.certificate, &settings.key, &settings.client_ca].into_iter();
    let all = all.chain(hosts).chain(&settings.crls);
    all.filter(|path| !path.as_os_str().is_empty()).cloned().collect()
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| TlsError::Unreadable { path: path.to_owned(), error })
}

/// Every item of one kind in a PEM file; at least one.
fn pem_items<T: PemObject>(path: &Path, what: &str) -> Result<Vec<T>, TlsError> {
    let text = read(path)?;
    let items: Result<Vec<T>, _> = T::pem_slice_iter(&text).collect();
    let items = items.map_err(|error| TlsError::wrong(path, format_args!("no PEM: {error}")))?;
    if items.is_empty() {
        return Err(TlsError::wrong(path, format_args!("holds no {what} in PEM form")));
    }
    Ok(items)
}

fn certified_key(
    certificate: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let chain: Vec<CertificateDer<'static>> = pem_items(certificate, "certificate")?;
    let signing = provider.key_provider.load_private_key(private_key(key)?);
    let signing = signing.map_err(|error| TlsError::wrong(key, error))?;
    let pair = CertifiedKey::new(chain, signing);
    match pair.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(pair),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(TlsError::Mismatch { key: key.to_owned(), certificate: certificate.to_owned() })
        }
        Err(error) => Err(TlsError::wrong(certificate, error)),
    }
}

/// All certificates in a file; at least one.
///
/// # Errors
/// When it can't be read, or is something else.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    pem_items(path, "certificate")
}

/// A certificate with those between it and its authority, and its key.
///
/// # Errors
/// The first file that is unreadable or wrong.
pub(crate) fn chain_and_key(
    certificate: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    Ok((certificates(certificate)?, private_key(key)?))
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read(path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let text = String::from_utf8_lossy(&text);
        if text.contains("ENCRYPTED") {
            let advice = "the key is encrypted; decrypt it, for example with 'openssl pkey -in \
                          KEY -out DECRYPTED', and protect the file by its mode";
            return TlsError::wrong(path, advice);
        }
        TlsError::wrong(path, format_args!("no private key in PEM form: {error}"))
    })
}

/// What checks the certificates of clients, and the authorities that it trusts.
fn client_verifier(
    settings: &Tls,
    provider: &Arc<CryptoProvider>,
) -> Result<(Arc<dyn ClientCertVerifier>, Vec<CertificateDer<'static>>), TlsError> {
    if settings.client_certificates == ClientCertificates::None {
        return Ok((WebPkiClientVerifier::no_client_auth(), Vec::new()));
    }
    let path = &settings.client_ca;
    let mut roots = RootCertStore::empty();
    let authorities: Vec<CertificateDer<'static>> = pem_items(path, "certificate")?;
    for authority in &authorities {
        roots.add(authority.clone()).map_err(|error| TlsError::wrong(path, error))?;
    }
    let mut crls: Vec<CertificateRevocationListDer<'static>> = Vec::new();
    for path in &settings.crls {
        crls.extend(pem_items(path, "certificate revocation list")?);
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    // Fails closed: with lists, a certificate of an authority without one is refused, and so is
    // everything once a list has expired.
    let builder = match crls.is_empty() {
        true => builder,
        false => builder.with_crls(crls).enforce_revocation_expiration(),
    };
    let builder = match settings.client_certificates {
        ClientCertificates::Optional => builder.allow_unauthenticated(),
        _ => builder,
    };
    let broken = settings.crls.first().unwrap_or(path);
    let verifier = builder.build().map_err(|error| TlsError::wrong(broken, error))?;
    Ok((verifier, authorities))
}

/// Chooses the certificate by the name that the client asks for.
#[derive(Debug)]
struct ByHost {
    usual: Arc<CertifiedKey>,
    hosts: Vec<(String, Arc<CertifiedKey>)>,
}

impl ResolvesServerCert for ByHost {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let asked = hello.server_name().map(str::to_ascii_lowercase);
        let found = asked.and_then(|asked| {
            self.hosts.iter().find(|(name, _)| covers(name, &asked)).map(|(_, pair)| pair)
        });
        Some(Arc::clone(found.unwrap_or(&self.usual)))
    }
}

/// Whether `name`, which may begin with `*.` for one label, is that of the host `asked` for.
fn covers(name: &str, asked: &str) -> bool {
    match name.strip_prefix("*.") {
        Some(domain) => asked.split_once('.').is_some_and(|(_, rest)| rest == domain),
        None => name == asked,
    }
}
