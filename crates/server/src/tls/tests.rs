use super::{Acceptor, FromFiles as _, TlsStream};
use crate::config::{ClientCertificates, Tls};
use crate::driver::ClientStream;
use courser_management::ClientTls;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    DistinguishedName, DnType, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, SerialNumber,
    date_time_ymd,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, HandshakeKind, RootCertStore, SupportedProtocolVersion};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

/// Less than TLS keeps of what it is given.
const SOCKET_BYTES: u32 = 8 << 10;

/// A connection behind its handshake, whose sockets hold little, and the client's socket.
async fn connected() -> (TlsStream, Arc<ClientTls>, TcpStream) {
    let (stream, tls, client) = handshake().await;
    (stream, tls, client.into_inner().0)
}

/// The same with the client's end of TLS.
async fn handshake() -> (TlsStream, Arc<ClientTls>, tokio_rustls::client::TlsStream<TcpStream>) {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
    let folder = tempfile::tempdir().expect("a folder");
    let [certificate, key] = ["certificate", "key"].map(|name| folder.path().join(name));
    std::fs::write(&certificate, issued.cert.pem()).expect("written");
    std::fs::write(&key, issued.signing_key.serialize_pem()).expect("written");
    let acceptor = Acceptor::new(&Tls { certificate, key, ..Tls::default() }).expect("good files");

    let mut roots = RootCertStore::empty();
    roots.add(issued.cert.der().clone()).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));

    let [listening, connecting] = [(); 2].map(|()| TcpSocket::new_v4().expect("a socket"));
    listening.set_send_buffer_size(SOCKET_BYTES).expect("a size");
    connecting.set_recv_buffer_size(SOCKET_BYTES).expect("a size");
    listening.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let listener = listening.listen(1).expect("it is bound");
    let client = connecting.connect(listener.local_addr().expect("an address")).await;
    let client = client.expect("a connection");
    let (socket, _) = listener.accept().await.expect("a client");
    let name = ServerName::try_from("localhost").expect("a name");
    let (accepted, client) = tokio::join!(acceptor.accept(socket), connector.connect(name, client));
    let (stream, tls) = accepted.expect("a handshake");
    (stream, tls, client.expect("a handshake"))
}

fn is_flushed(stream: &mut TlsStream) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(stream).poll_flush(&mut context) {
        Poll::Ready(flushed) => flushed.map(|()| true).expect("it is connected"),
        Poll::Pending => false,
    }
}

#[tokio::test]
async fn what_a_client_takes_of_what_is_encrypted_already_is_known_before_it_has_taken_all() {
    let (mut stream, tls, mut client) = connected().await;
    let message = [7; 1000];
    let full = poll_fn(|cx| {
        loop {
            match Pin::new(&mut stream).poll_write(cx, &message) {
                Poll::Ready(written) => assert!(written.expect("it is connected") > 0),
                Poll::Pending => return Poll::Ready(()),
            }
        }
    });
    full.await;
    // What the sockets take behind this is a part of what is encrypted: nothing more is given to the stream.
    let before = stream.passed_on();
    assert!(!is_flushed(&mut stream));
    let mut taken = [0; 512];
    let mut all = 0;
    while stream.passed_on() == before {
        all += client.read(&mut taken).await.expect("more of it");
        assert!(!is_flushed(&mut stream), "after {all} bytes");
        tokio::task::yield_now().await;
    }
    assert_eq!(tls.taken.load(Ordering::Relaxed), stream.passed_on());
}

#[tokio::test]
async fn tls_keeps_little_of_what_comes_and_is_not_read() {
    // A record in its buffer, one that is decrypted, and what came with them.
    const UNREAD_BYTES_MAX: usize = 96 << 10;
    let (mut stream, _tls, mut client) = handshake().await;
    let saying = tokio::spawn(async move { client.write_all(&[7; 4 << 20]).await });
    let (mut read_bytes, mut most_bytes) = (0, 0);
    while read_bytes < 1 << 20 {
        // As much at a time as does not end where records do.
        let mut read = [0; 10_007];
        read_bytes += stream.read(&mut read).await.expect("more of it");
        most_bytes = most_bytes.max(stream.unread_bytes());
    }
    assert!((16 << 10..UNREAD_BYTES_MAX).contains(&most_bytes), "{most_bytes}");
    saying.abort();
}

/// That of clients.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    authority.distinguished_name = DistinguishedName::new();
    authority.distinguished_name.push(DnType::CommonName, "clients");
    let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key"));
    issuer.expect("an authority")
}

/// What the second of two connections begins with, to a server that asks for certificates like this.
async fn second_handshake(
    asks: ClientCertificates,
    version: &'static SupportedProtocolVersion,
) -> Option<HandshakeKind> {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
    let issuer = authority();
    let client_key = KeyPair::generate().expect("a key");
    let shown = CertificateParams::default().signed_by(&client_key, &issuer).expect("it");
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let acceptor = Acceptor::new(&Tls {
        certificate: file("certificate", issued.cert.pem()),
        key: file("key", issued.signing_key.serialize_pem()),
        client_ca: match asks {
            ClientCertificates::None => Default::default(),
            _ => file("authority", issuer.pem()),
        },
        client_certificates: asks,
        ..Tls::default()
    });
    let acceptor = acceptor.expect("good files");
    let mut roots = RootCertStore::empty();
    roots.add(issued.cert.der().clone()).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]);
    let config = config.expect("a version").with_root_certificates(roots);
    let config = config.with_client_auth_cert(
        vec![shown.der().clone()],
        client_key.serialize_der().try_into().expect("a key"),
    );
    let connector = TlsConnector::from(Arc::new(config.expect("a key of the certificate")));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mut kind = None;
    for _ in 0..2 {
        let client = TcpStream::connect(listener.local_addr().expect("an address"));
        let client = client.await.expect("a connection");
        let (socket, _) = listener.accept().await.expect("a client");
        let name = ServerName::try_from("localhost").expect("a name");
        let (accepted, client) =
            tokio::join!(acceptor.accept(socket), connector.connect(name, client));
        let ((mut stream, _), mut client) = (accepted.expect("it"), client.expect("it"));
        // Tickets come before this.
        stream.write_all(b"x").await.expect("it is connected");
        stream.flush().await.expect("it is connected");
        client.read_exact(&mut [0]).await.expect("a byte");
        kind = client.get_ref().1.handshake_kind();
    }
    kind
}

#[tokio::test]
async fn a_client_that_is_asked_for_its_certificate_shows_it_with_every_connection() {
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        for (asks, kind) in [
            (ClientCertificates::None, HandshakeKind::Resumed),
            (ClientCertificates::Optional, HandshakeKind::Full),
            (ClientCertificates::Required, HandshakeKind::Full),
        ] {
            assert_eq!(second_handshake(asks, version).await, Some(kind), "{version:?}, {asks:?}");
        }
    }
}

#[test]
fn when_a_revocation_list_expires_is_known() {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
    let issuer = authority();
    let list = CertificateRevocationListParams {
        this_update: date_time_ymd(2025, 1, 1),
        next_update: date_time_ymd(2124, 1, 1),
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: Vec::new(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let list = list.signed_by(&issuer).expect("a list").pem().expect("PEM");
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let settings = Tls {
        certificate: file("certificate", issued.cert.pem()),
        key: file("key", issued.signing_key.serialize_pem()),
        client_ca: file("authority", issuer.pem()),
        client_certificates: ClientCertificates::Required,
        crls: vec![file("list", list)],
        ..Tls::default()
    };
    let lists = Acceptor::new(&settings).expect("good files").lists();
    let [list] = &lists[..] else { panic!("{lists:?}") };
    assert_eq!((&*list.issuer, list.not_after_s), ("CN=clients", 4_859_740_800));
    assert_eq!(list.not_before_s, 1_735_689_600);
    assert_eq!(list.path, settings.crls[0].display().to_string());
}
