//! Certificates, keys, authorities and revocation lists: from their PEM files to what rustls needs.

use super::facts::{self, RevocationList};
use crate::config::{ClientCertificates, Tls};
use courser_management::{Certificate, CertificateUse};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{
    ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, InconsistentKeys, RootCertStore, ServerConfig};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is wrong with a file, or with files together.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct TlsError {
    /// The setting that names the file.
    setting: String,
    /// Which file, what is wrong with it, and what to do.
    problem: String,
}

/// A file, and the setting that names it.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub setting: &'a str,
    pub path: &'a Path,
}

impl<'a> Named<'a> {
    pub fn new(setting: &'a str, path: &'a Path) -> Self {
        Named { setting, path }
    }

    /// That this is wrong with it.
    pub fn wrong(self, problem: impl fmt::Display) -> TlsError {
        let problem = format!("{}: {problem}", self.path.display());
        TlsError { setting: self.setting.to_owned(), problem }
    }

    /// That it can't be used, in words: rustls takes every certificate for a peer's.
    pub fn unusable(self, error: &rustls::Error) -> TlsError {
        match error {
            rustls::Error::InvalidCertificate(CertificateError::BadEncoding) => {
                self.wrong("the certificate can't be parsed")
            }
            rustls::Error::InvalidCertificate(CertificateError::Other(other)) => {
                match format!("{other:?}").contains("UnsupportedCertVersion") {
                    true => self.wrong(
                        "the certificate is of an old version of X.509: TLS needs version 3, with the names of \
                         hosts as alternative names (subjectAltName)",
                    ),
                    false => self.wrong(format_args!("the certificate can't be used: {other}")),
                }
            }
            rustls::Error::InvalidCertificate(why) => {
                self.wrong(format_args!("the certificate can't be used: {why:?}"))
            }
            other => self.wrong(other),
        }
    }
}

/// Everything that files say, ready for handshakes.
pub(crate) struct Loaded {
    pub config: Arc<ServerConfig>,
    pub certificates: Vec<Certificate>,
    pub lists: Vec<RevocationList>,
}

/// What the files of `settings` say.
///
/// # Errors
/// The first file that is unreadable or wrong, by name.
pub(crate) fn load(settings: &Tls) -> Result<Loaded, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut shown = Vec::new();
    let mut load = |section: &str, certificate: &Path, key: &Path, hosts: &[String]| {
        let settings = [format!("{section}.certificate"), format!("{section}.key")];
        let certificate = Named::new(&settings[0], certificate);
        let pair = certified_key(certificate, Named::new(&settings[1], key), &provider)?;
        shown.push(facts::of(certificate, &pair.cert[0], CertificateUse::Server, hosts)?);
        Ok(Arc::new(pair))
    };
    let usual = load("tls", &settings.certificate, &settings.key, &[])?;
    let mut hosts = Vec::new();
    for (index, host) in settings.hosts.iter().enumerate() {
        let section = format!("tls.hosts[{index}]");
        let pair = load(&section, &host.certificate, &host.key, &host.names)?;
        let names = host.names.iter().map(|name| name.to_ascii_lowercase());
        hosts.extend(names.map(|name| (name, Arc::clone(&pair))));
    }
    let (verifier, authorities, lists) = client_verifier(settings, &provider)?;
    for authority in &authorities {
        let purpose = CertificateUse::ClientAuthority;
        shown.push(facts::of(client_ca(settings), authority, purpose, &[])?);
    }
    let versions = super::suites::versions(settings);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| Named::new("tls.min_version", &settings.certificate).wrong(error))?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(ByHost { usual, hosts }));
    if settings.client_certificates != ClientCertificates::None {
        without_resumption(&mut config);
    }
    Ok(Loaded { config: Arc::new(config), certificates: shown, lists })
}

/// Has each connection make a whole handshake. One that resumes a session shows no certificate, and that of the session may
/// have expired by then, or a list that was looked at.
pub(crate) fn without_resumption(config: &mut ServerConfig) {
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
}

/// All files that `settings` name.
pub(crate) fn files(settings: &Tls) -> Vec<PathBuf> {
    let hosts = settings.hosts.iter().flat_map(|host| [&host.certificate, &host.key]);
    let all = [&settings.certificate, &settings.key, &settings.client_ca].into_iter();
    let all = all.chain(hosts).chain(&settings.crls);
    all.filter(|path| !path.as_os_str().is_empty()).cloned().collect()
}

/// The authorities of clients.
fn client_ca(settings: &Tls) -> Named<'_> {
    Named::new("tls.client_ca", &settings.client_ca)
}

fn read(file: Named<'_>) -> Result<Vec<u8>, TlsError> {
    std::fs::read(file.path).map_err(|error| file.wrong(error))
}

/// Every item of one kind in a PEM file; at least one.
fn pem_items<T: PemObject>(file: Named<'_>, what: &str) -> Result<Vec<T>, TlsError> {
    let text = read(file)?;
    let items: Result<Vec<T>, _> = T::pem_slice_iter(&text).collect();
    let items = items.map_err(|error| file.wrong(format_args!("no PEM: {error}")))?;
    if items.is_empty() {
        return Err(file.wrong(format_args!("holds no {what} in PEM form")));
    }
    Ok(items)
}

fn certified_key(
    certificate: Named<'_>,
    key: Named<'_>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let chain: Vec<CertificateDer<'static>> = pem_items(certificate, "certificate")?;
    let signing = provider.key_provider.load_private_key(private_key(key)?);
    let signing = signing.map_err(|error| key.unusable(&error))?;
    let pair = CertifiedKey::new(chain, signing);
    match pair.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(pair),
        Err(rustls::Error::InconsistentKeys(_)) => {
            let whose = format!("{} ({})", certificate.path.display(), certificate.setting);
            Err(key.wrong(format_args!("it is not the key of the certificate in {whose}")))
        }
        Err(error) => Err(certificate.unusable(&error)),
    }
}

/// All certificates in a file; at least one.
///
/// # Errors
/// When it can't be read, or is something else.
pub(crate) fn certificates(file: Named<'_>) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    pem_items(file, "certificate")
}

/// A certificate with those between it and its authority, and its key.
///
/// # Errors
/// The first file that is unreadable or wrong.
pub(crate) fn chain_and_key(
    certificate: Named<'_>,
    key: Named<'_>,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    Ok((certificates(certificate)?, private_key(key)?))
}

fn private_key(file: Named<'_>) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read(file)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let text = String::from_utf8_lossy(&text);
        if text.contains("ENCRYPTED") {
            let advice = "the key is encrypted; decrypt it, for example with 'openssl pkey -in \
                          KEY -out DECRYPTED', and protect the file by its mode";
            return file.wrong(advice);
        }
        file.wrong(format_args!("no private key in PEM form: {error}"))
    })
}

/// What checks the certificates of clients, the authorities that it trusts, and the lists of what they have revoked.
type Verifier = (Arc<dyn ClientCertVerifier>, Vec<CertificateDer<'static>>, Vec<RevocationList>);

fn client_verifier(settings: &Tls, provider: &Arc<CryptoProvider>) -> Result<Verifier, TlsError> {
    if settings.client_certificates == ClientCertificates::None {
        return Ok((WebPkiClientVerifier::no_client_auth(), Vec::new(), Vec::new()));
    }
    let file = client_ca(settings);
    let mut roots = RootCertStore::empty();
    let authorities: Vec<CertificateDer<'static>> = pem_items(file, "certificate")?;
    for authority in &authorities {
        roots.add(authority.clone()).map_err(|error| file.unusable(&error))?;
    }
    let mut crls: Vec<CertificateRevocationListDer<'static>> = Vec::new();
    let mut lists = Vec::new();
    for path in &settings.crls {
        let file = Named::new("tls.crls", path);
        let of_file = pem_items(file, "certificate revocation list")?;
        lists.extend(of_file.iter().filter_map(|list| facts::of_list(file, list)));
        crls.extend(of_file);
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
    let broken = settings.crls.first().map_or(file, |path| Named::new("tls.crls", path));
    let verifier = builder.build().map_err(|error| broken.wrong(error))?;
    Ok((verifier, authorities, lists))
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
