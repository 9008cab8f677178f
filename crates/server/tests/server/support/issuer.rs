//! An issuer of tokens, which says over HTTPS with which keys they are signed.

use super::{Authority, TestServer};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use courser::Config;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use parking_lot::Mutex;
use rcgen::{KeyPair, PublicKeyData as _};
use rustls::ServerConfig;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// How it answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    Well,
    WithTooMuch,
    WithRedirect,
    WithError,
    /// Well, but for its keys.
    WithoutKeys,
    Never,
    /// When it is said to answer otherwise.
    Later,
}

pub struct Issuer {
    files: TempDir,
    port: u16,
    state: Arc<Mutex<State>>,
}

struct State {
    keys: Vec<Value>,
    answers: Answers,
    /// The paths that were asked for.
    asked: Vec<String>,
    /// What is answered where codes are brought, the next one last.
    grants: Vec<(u16, Value)>,
    /// What was brought there: heads and forms.
    brought: Vec<String>,
    /// How clients may say their secrets.
    methods: Vec<&'static str>,
}

/// A key that signs tokens, on P-256.
pub struct Signer {
    pair: KeyPair,
    name: &'static str,
}

impl Signer {
    pub fn new(name: &'static str) -> Self {
        Signer { pair: KeyPair::generate().expect("a key"), name }
    }

    /// A token with these claims, besides those that every good one has.
    pub fn token(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.name.to_owned()), ..Header::new(Algorithm::ES256) };
        let key = EncodingKey::from_ec_der(self.pair.serialized_der());
        encode(&header, &good(claims), &key).expect("a token")
    }

    /// A token that is signed with the public key as if it were a secret.
    pub fn confused_token(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.name.to_owned()), ..Header::new(Algorithm::HS256) };
        let key = EncodingKey::from_secret(self.public_pem().as_bytes());
        encode(&header, &good(claims), &key).expect("a token")
    }

    /// A token that is not signed.
    pub fn unsigned_token(&self, claims: &Value) -> String {
        let header = json!({ "alg": "none", "kid": self.name });
        let parts = [header.to_string(), good(claims).to_string()];
        format!("{}.", parts.map(|part| URL_SAFE_NO_PAD.encode(part)).join("."))
    }

    pub fn public_pem(&self) -> String {
        self.pair.public_key_pem()
    }

    fn jwk(&self) -> Value {
        let point = self.pair.der_bytes();
        let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
        json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": self.name, "use": "sig" })
    }
}

fn good(claims: &Value) -> Value {
    let mut all = json!({ "sub": "alice", "aud": "mq", "exp": now_s() + 600 });
    for (name, value) in claims.as_object().expect("an object") {
        all[name] = value.clone();
    }
    all
}

/// What time it is, in seconds since 1970.
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

impl Issuer {
    /// One that has these keys.
    pub async fn start(signers: &[&Signer]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let authority = Authority::new("issuers");
        let files = tempfile::tempdir().expect("a folder");
        std::fs::write(files.path().join("ca.pem"), authority.pem()).expect("a file");
        let issued = authority.issue(&["localhost"], &[], 1);
        let tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(issued.chain(), issued.private_key())
            .expect("a certificate");
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let state = State {
            keys: Vec::new(),
            answers: Answers::Well,
            asked: Vec::new(),
            grants: Vec::new(),
            brought: Vec::new(),
            methods: vec!["client_secret_basic", "client_secret_post"],
        };
        let state = Arc::new(Mutex::new(state));
        let issuer = Issuer { files, port, state: Arc::clone(&state) };
        issuer.rotate(signers);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, acceptor.clone(), Arc::clone(&state), port));
            }
        });
        issuer
    }

    /// Has these keys from now on.
    pub fn rotate(&self, signers: &[&Signer]) {
        self.state.lock().keys = signers.iter().map(|signer| signer.jwk()).collect();
    }

    pub fn answers(&self, answers: Answers) {
        self.state.lock().answers = answers;
    }

    /// Answers this to the next who brings a code.
    pub fn grant(&self, status: u16, body: &Value) {
        self.state.lock().grants.push((status, body.clone()));
    }

    /// Takes secrets in these ways only.
    pub fn takes_secrets(&self, methods: &[&'static str]) {
        self.state.lock().methods = methods.to_vec();
    }

    /// What was brought last where codes are: head and form.
    pub fn brought(&self) -> String {
        self.state.lock().brought.last().cloned().unwrap_or_default()
    }

    /// How often it was asked what is where.
    pub fn asked_about_itself(&self) -> usize {
        let state = self.state.lock();
        state.asked.iter().filter(|path| path.starts_with("/.well-known/")).count()
    }

    /// How often it was asked for its keys.
    pub fn asked_for_keys(&self) -> usize {
        self.state.lock().asked.iter().filter(|path| *path == "/keys").count()
    }

    /// How often it was asked to renew a token.
    pub fn asked_to_renew(&self) -> usize {
        let is_renewal = |brought: &&String| brought.contains("grant_type=refresh_token");
        self.state.lock().brought.iter().filter(is_renewal).count()
    }

    pub fn address(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// A broker that trusts it.
    pub async fn broker(&self, change: impl FnOnce(&mut Config)) -> TestServer {
        TestServer::start_with(|config| {
            config.oauth.resource_server_id = "mq".to_owned();
            config.oauth.jwks_uri = format!("{}/keys", self.address());
            config.oauth.ca = self.files.path().join("ca.pem");
            config.oauth.keys_retry_seconds = 1;
            config.oauth.leeway_seconds = 0;
            change(config);
        })
        .await
    }
}

async fn answer(stream: TcpStream, acceptor: TlsAcceptor, state: Arc<Mutex<State>>, port: u16) {
    let Ok(mut stream) = acceptor.accept(stream).await else { return };
    let mut read = Vec::new();
    let head_len = loop {
        if let Some(at) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let mut form = read.split_off(head_len);
    let head = String::from_utf8_lossy(&read).into_owned();
    let path = head.split(' ').nth(1).expect("a path").to_owned();
    let length = head.to_lowercase().split("content-length: ").nth(1).map_or(0, |rest| {
        rest.split("\r\n").next().and_then(|text| text.parse::<usize>().ok()).expect("a length")
    });
    while form.len() < length {
        if stream.read_buf(&mut form).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let (keys, grant, methods) = {
        let mut state = state.lock();
        state.asked.push(path.clone());
        let grant = if path == "/token" { state.grants.pop() } else { None };
        if path == "/token" {
            state.brought.push(format!("{head}{}", String::from_utf8_lossy(&form)));
        }
        (json!({ "keys": state.keys }), grant, state.methods.clone())
    };
    while state.lock().answers == Answers::Later {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let answers = state.lock().answers;
    let at = format!("https://localhost:{port}");
    let (granted, body) = match (&*path, grant) {
        ("/keys", _) => (200, keys.to_string()),
        ("/token", Some((status, body))) => (status, body.to_string()),
        ("/token", None) => (500, String::new()),
        _ => {
            let about = json!({
                "issuer": at,
                "jwks_uri": format!("{at}/keys"),
                "authorization_endpoint": format!("{at}/authorize?tenant=1"),
                "token_endpoint": format!("{at}/token"),
                "end_session_endpoint": format!("{at}/logout"),
                "token_endpoint_auth_methods_supported": methods,
            });
            (200, about.to_string())
        }
    };
    let granted = format!("{granted} as wanted");
    let (status, more, body) = match answers {
        Answers::WithoutKeys if path == "/keys" => {
            ("503 Service Unavailable", String::new(), String::new())
        }
        Answers::Well | Answers::WithoutKeys => (&*granted, String::new(), body),
        Answers::WithTooMuch => ("200 OK", String::new(), " ".repeat(300 * 1024) + &body),
        Answers::WithRedirect => ("302 Found", format!("location: {at}/keys\r\n"), body),
        Answers::WithError => ("500 Internal Server Error", String::new(), String::new()),
        Answers::Never | Answers::Later => std::future::pending().await,
    };
    let length = body.len();
    let said = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\n{more}content-length: {length}\r\n\r\n{body}"
    );
    // Who asks may have heard enough.
    let _ = stream.write_all(said.as_bytes()).await;
    let _ = stream.shutdown().await;
}
