//! Runs over TLS.

use std::path::PathBuf;
use std::sync::Arc;

use courser_perftest::report::Report;
use courser_perftest::{Options, RunError, run};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::sync::mpsc;

use crate::broker::Broker;

/// An authority, with its certificate and one that it has issued to a client in files.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    fn new(test: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let name = format!("perftest-tls-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("ca.pem"), issuer.pem()).unwrap();
        let authority = Self { issuer, folder };
        let (certificate, key) = authority.issue("client");
        std::fs::write(authority.folder.join("client.pem"), certificate.pem()).unwrap();
        std::fs::write(authority.folder.join("client.key"), key.serialize_pem()).unwrap();
        authority
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// A broker's configuration: with a certificate for `name`, and asking clients for one or not.
    fn config(&self, name: &str, asks: bool) -> ServerConfig {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if asks {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let (certificate, key) = self.issue(name);
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        builder.with_single_cert(vec![certificate.der().clone()], key).unwrap()
    }

    /// Runs ten messages through a broker; `FOLDER` in `options` is where the files are.
    async fn run(&self, broker: &Broker, options: &str) -> Result<Report, String> {
        let folder = self.folder.to_str().unwrap();
        let options = options.replace("FOLDER", folder);
        let line = format!("perftest --uri {} --messages 10 {options}", broker.uri);
        let options = Options::parse_from_args(line.split_whitespace()).unwrap();
        let (_sender, interrupts) = mpsc::channel(1);
        let report = run(options, |_| (), interrupts).await;
        report.map_err(|error: RunError| error.to_string())
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn is_whole(report: &Report) -> bool {
    report.is_good() && (report.published.total, report.consumed.total) == (10, 10)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_through_tls_when_the_broker_has_a_certificate_of_a_trusted_authority() {
    let authority = Authority::new("trusted");
    let broker = Broker::start_tls(authority.config("localhost", false)).await;
    let report = authority.run(&broker, "--ca FOLDER/ca.pem --confirm 5").await.unwrap();
    assert!(is_whole(&report), "{report:?}");
    let error = authority.run(&broker, "").await.unwrap_err();
    assert!(error.contains("give the CA that issued it with --ca"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_host_is_refused_unless_any_is_taken() {
    let authority = Authority::new("host");
    let broker = Broker::start_tls(authority.config("elsewhere", false)).await;
    let error = authority.run(&broker, "--ca FOLDER/ca.pem").await.unwrap_err();
    assert!(error.starts_with("setting up: cannot connect to localhost:"), "{error}");
    assert!(error.contains("the TLS handshake failed: "), "{error}");
    let report = authority.run(&broker, "--insecure").await.unwrap();
    assert!(is_whole(&report), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_asks_for_a_certificate_is_shown_one() {
    let authority = Authority::new("client");
    let broker = Broker::start_tls(authority.config("localhost", true)).await;
    let options = "--ca FOLDER/ca.pem --cert FOLDER/client.pem --key FOLDER/client.key";
    assert!(is_whole(&authority.run(&broker, options).await.unwrap()));
    authority.run(&broker, "--ca FOLDER/ca.pem").await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_tls_that_cannot_be_followed_are_named() {
    let authority = Authority::new("options");
    let plain = Broker::start(crate::broker::Faults::default()).await;
    let error = authority.run(&plain, "--ca FOLDER/ca.pem").await.unwrap_err();
    assert_eq!(error, "--ca is for TLS: begin --uri with amqps://");
    let broker = Broker::start_tls(authority.config("localhost", false)).await;
    let error = authority.run(&broker, "--ca FOLDER/none.pem").await.unwrap_err();
    assert!(error.starts_with("--ca ") && error.contains("none.pem: "), "{error}");
    let error = authority.run(&broker, "--ca FOLDER/client.key").await.unwrap_err();
    assert!(error.ends_with("client.key: it contains no certificate"), "{error}");
    let options = "--ca FOLDER/ca.pem --cert FOLDER/client.pem --key FOLDER/client.pem";
    let error = authority.run(&broker, options).await.unwrap_err();
    assert!(error.starts_with("--key "), "{error}");
    for line in ["--cert a.pem", "--key a.pem", "--ca a.pem --insecure"] {
        let line = format!("perftest {line}");
        assert!(Options::parse_from_args(line.split(' ')).is_err(), "{line}");
    }
}
