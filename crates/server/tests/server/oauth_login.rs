//! Logging in with a browser at the issuer of tokens: what the broker asks and answers on the way.

use crate::support::{Answers, Issuer, PATIENCE, Signer, TestServer, now_s};
use courser::{Config, HttpListen};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub(crate) const ADMINISTRATOR: &str = "mq.tag:administrator";

/// What came back: the head, and the body.
pub(crate) struct Answer {
    head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status")
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn reason(&self) -> String {
        self.json()["reason"].as_str().expect("a reason").to_owned()
    }

    /// The cookies as a browser sends them back, without those that are taken back.
    pub(crate) fn cookies(&self) -> String {
        let set = self.head.lines().filter_map(|line| line.strip_prefix("set-cookie: "));
        let kept = set.filter(|cookie| !cookie.contains("Max-Age=0"));
        kept.filter_map(|cookie| cookie.split(';').next()).collect::<Vec<_>>().join("; ")
    }
}

/// The broker, as the page sees it.
pub(crate) struct Page {
    pub(crate) server: TestServer,
    at: SocketAddr,
}

impl Page {
    pub(crate) async fn start(issuer: &Issuer, change: impl FnOnce(&mut Config)) -> Self {
        let server = issuer
            .broker(|config| {
                let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
                config.management.listen = HttpListen::At(vec![any_port]);
                config.oauth.jwks_uri.clear();
                config.oauth.issuer = issuer.address();
                config.oauth.client_id = "page".to_owned();
                config.oauth.client_secret = "a b".to_owned();
                change(config);
            })
            .await;
        let at = server.http_addresses()[0];
        Page { server, at }
    }

    fn address(&self) -> String {
        format!("http://{}/", self.at)
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut stream = tokio::net::TcpStream::connect(self.at).await.expect("a connection");
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n",
            self.at,
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        request.push_str(body);
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut said = String::new();
        let reading = stream.read_to_string(&mut said);
        tokio::time::timeout(PATIENCE, reading).await.expect("in time").expect("an answer");
        let (head, body) = said.split_once("\r\n\r\n").expect("a head");
        Answer { head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) async fn begin(&self) -> (Answer, String, String) {
        let body = json!({ "page": self.address() }).to_string();
        let begun = self.ask("POST", "/api/oauth/login", &[], &body).await;
        assert_eq!(begun.status(), 200, "{}", begun.body);
        let state = begun.json()["state"].as_str().expect("a state").to_owned();
        let cookies = begun.cookies();
        (begun, state, cookies)
    }

    pub(crate) async fn finish(&self, state: &str, cookies: &str) -> Answer {
        let body = json!({ "page": self.address(), "state": state, "code": "c0de" }).to_string();
        self.ask("POST", "/api/oauth/session", &[("cookie", cookies)], &body).await
    }
}

/// What the provider answers for a code: a token of its own with these claims.
pub(crate) fn issued(issuer: &Issuer, signer: &Signer, claims: &Value) -> Value {
    let token = token(issuer, signer, claims);
    json!({ "access_token": token, "refresh_token": "again", "token_type": "Bearer" })
}

fn token(issuer: &Issuer, signer: &Signer, claims: &Value) -> String {
    let mut claims = claims.clone();
    claims["iss"] = issuer.address().into();
    signer.token(&claims)
}

/// What stands in an address for a name.
fn param(address: &str, name: &str) -> String {
    let query = address.split_once('?').expect("a query").1;
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(known, _)| known == name).expect("it is there").1.into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_brought_with_the_verifier_that_the_challenge_is_of() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    let page = Page::start(&issuer, |config| {
        config.oauth.authorization_params = vec!["audience=m q".to_owned()];
        config.oauth.token_params = vec!["resource=urn:m q".to_owned()];
    })
    .await;
    let (begun, state, cookies) = page.begin().await;
    assert!(
        begun.head.contains("; Path=/; HttpOnly; SameSite=Strict; Max-Age=600"),
        "{}",
        begun.head
    );
    let location = begun.json()["location"].as_str().expect("an address").to_owned();
    assert!(
        location.starts_with(&format!("{}/authorize?tenant=1&", issuer.address())),
        "{location}"
    );
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "page"),
        ("redirect_uri", &*page.address()),
        ("scope", "openid profile"),
        ("state", &*state),
        ("code_challenge_method", "S256"),
        ("audience", "m q"),
    ] {
        assert_eq!(param(&location, name), value, "{name}");
    }
    issuer.grant(200, &issued(&issuer, &signer, &json!({ "scope": ADMINISTRATOR })));
    let session = page.finish(&state, &cookies).await;
    assert_eq!(session.status(), 200, "{}", session.body);
    assert_eq!(session.json()["user"]["name"], "alice");
    let brought = issuer.brought();
    // "page:a+b": RFC 6749 has both written as in a form.
    assert!(brought.to_lowercase().contains("authorization: basic cgfnztphk2i="), "{brought}");
    let form = brought.split_once("\r\n\r\n").expect("a form").1;
    assert_eq!(param(&format!("?{form}"), "resource"), "urn:m q");
    let verifier = param(&format!("?{form}"), "code_verifier");
    use base64::Engine as _;
    use sha2::Digest as _;
    let sum = sha2::Sha256::digest(verifier.as_bytes());
    let challenge = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(sum);
    assert_eq!(param(&location, "code_challenge"), challenge);
    assert!(form.contains("grant_type=authorization_code") && form.contains("code=c0de"), "{form}");
    let who = page.ask("GET", "/api/whoami", &[("cookie", &session.cookies())], "").await;
    assert_eq!(who.json()["name"], "alice");
    let headers = [("cookie", &*session.cookies()), ("x-courser-csrf", "1")];
    let out = page.ask("DELETE", "/api/login", &headers, "").await;
    assert_eq!(out.json()["end_session"], format!("{}/logout", issuer.address()));
    page.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_without_the_cookie_of_its_state_is_not_brought_anywhere() {
    let issuer = Issuer::start(&[]).await;
    let page = Page::start(&issuer, |_| {}).await;
    let (_, state, cookies) = page.begin().await;
    for (state, cookies) in
        [(&*state, ""), ("another", &*cookies), ("", "courser_oauth=."), ("", "")]
    {
        let answer = page.finish(state, cookies).await;
        assert_eq!(answer.status(), 400, "{}", answer.body);
        assert!(answer.reason().contains("not begun in this browser"), "{}", answer.body);
    }
    assert_eq!(issuer.brought(), "");
    page.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_pages_of_the_broker_are_gone_back_to() {
    let issuer = Issuer::start(&[]).await;
    let page = Page::start(&issuer, |config| {
        config.management.cors_origins = vec!["https://tools.example".to_owned()];
    })
    .await;
    let own = page.address();
    for (origin, address, status) in [
        (None, own.clone(), 200),
        (None, "https://tools.example/mq/".to_owned(), 200),
        (Some("https://tools.example"), "https://tools.example/".to_owned(), 200),
        (Some("https://evil.example"), own.clone(), 400),
        (None, "https://evil.example/".to_owned(), 400),
        (None, format!("{own}?x=1"), 400),
        (None, format!("{own}#x"), 400),
        (None, own.replace("http://", "http://x@"), 400),
        (None, own.replace("http://", "javascript://"), 400),
        (None, "https://evil.example\\@".to_owned() + &own[7..], 400),
        (None, String::new(), 400),
    ] {
        let headers: Vec<_> = origin.map(|origin| ("origin", origin)).into_iter().collect();
        let body = json!({ "page": address }).to_string();
        let answer = page.ask("POST", "/api/oauth/login", &headers, &body).await;
        assert_eq!(answer.status(), status, "{address} from {origin:?}: {}", answer.body);
    }
    page.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_provider_answers_instead_of_tokens_is_said() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    let page = Page::start(&issuer, |_| {}).await;
    let huge = json!({ "access_token": "x".repeat(300 * 1024) });
    for (status, body, expected, said) in [
        (
            400,
            json!({ "error": "invalid_grant", "error_description": "a\nb" }),
            400,
            "(invalid_grant: a b)",
        ),
        (500, json!({ "error": "oops" }), 503, "/token answered 500"),
        (302, json!({}), 503, "/token answered 302"),
        (200, json!({}), 503, "answered without a token"),
        (200, json!([]), 503, "answered without a token"),
        (200, huge, 503, "at most 262144 bytes are read"),
        (200, json!({ "access_token": "opaque" }), 401, "it is not a JWT"),
        (
            200,
            issued(&issuer, &signer, &json!({ "aud": "x" })),
            401,
            "not for the resource server 'mq'",
        ),
        (
            200,
            issued(&issuer, &signer, &json!({ "exp": now_s() - 5 })),
            401,
            "the token expired at",
        ),
        (
            200,
            issued(&issuer, &signer, &json!({ "scope": "mq.read:*/*" })),
            401,
            "Not management user",
        ),
    ] {
        let (_, state, cookies) = page.begin().await;
        issuer.grant(status, &body);
        let answer = page.finish(&state, &cookies).await;
        assert_eq!(answer.status(), expected, "{said}: {}", answer.body);
        assert!(answer.reason().contains(said), "{said}: {}", answer.body);
        assert_eq!(answer.cookies(), "", "{said}");
    }
    page.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_can_not_be_asked_is_not_asked_for_everybody() {
    let issuer = Issuer::start(&[]).await;
    let page = Page::start(&issuer, |config| config.oauth.keys_retry_seconds = 60).await;
    // The keys are asked for at the start.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let before = issuer.asked_about_itself();
    issuer.answers(Answers::WithError);
    let body = json!({ "page": page.address() }).to_string();
    for _ in 0..5 {
        let answer = page.ask("POST", "/api/oauth/login", &[], &body).await;
        assert_eq!(answer.status(), 503, "{}", answer.body);
        assert!(answer.reason().contains("/.well-known/openid-configuration: the status is 500"));
    }
    assert_eq!(issuer.asked_about_itself() - before, 1);
    page.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_of_the_settings_need_no_issuer_and_secrets_go_where_they_are_taken() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    issuer.takes_secrets(&["client_secret_post"]);
    let page = Page::start(&issuer, |_| {}).await;
    let (_, state, cookies) = page.begin().await;
    issuer.grant(200, &issued(&issuer, &signer, &json!({ "scope": ADMINISTRATOR })));
    assert_eq!(page.finish(&state, &cookies).await.status(), 200);
    let brought = issuer.brought();
    assert!(
        brought.contains("client_secret=a+b") && !brought.contains("uthorization:"),
        "{brought}"
    );
    page.server.stop().await;
    let fixed = Page::start(&issuer, |config| {
        config.oauth.issuer.clear();
        config.oauth.jwks_uri = format!("{}/keys", issuer.address());
        config.oauth.authorization_endpoint = "https://id.example/in".to_owned();
        config.oauth.token_endpoint = format!("{}/token", issuer.address());
    })
    .await;
    let asked = issuer.asked_about_itself();
    let (begun, state, cookies) = fixed.begin().await;
    assert!(begun.body.contains("https://id.example/in?response_type=code"), "{}", begun.body);
    issuer.grant(200, &issued(&issuer, &signer, &json!({ "scope": ADMINISTRATOR })));
    assert_eq!(fixed.finish(&state, &cookies).await.status(), 200);
    assert_eq!(issuer.asked_about_itself(), asked);
    fixed.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_client_no_browser_is_sent_anywhere() {
    let issuer = Issuer::start(&[]).await;
    let page = Page::start(&issuer, |config| {
        config.oauth.client_id.clear();
        config.oauth.client_secret.clear();
    })
    .await;
    for path in ["/api/oauth/login", "/api/oauth/session"] {
        let answer = page.ask("POST", path, &[], "{}").await;
        assert_eq!((answer.status(), answer.reason().contains("oauth.client_id")), (404, true));
    }
    page.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_only_tokens_count_no_password_does() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    let page = Page::start(&issuer, |config| config.oauth.disable_basic_auth = true).await;
    let guest = [("authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=")];
    let form = "username=guest&password=guest";
    for answer in [
        page.ask("GET", "/api/whoami", &guest, "").await,
        page.ask("POST", "/api/login", &[], form).await,
        page.ask("POST", "/api/login", &guest, "").await,
    ] {
        assert_eq!(answer.status(), 401, "{}", answer.body);
        assert_eq!(answer.reason(), "HTTP access denied: basic auth disabled");
    }
    let stranger = page.ask("GET", "/api/whoami", &[], "").await;
    assert!(stranger.status() == 401, "{}", stranger.head);
    assert!(!stranger.head.contains("www-authenticate"), "{}", stranger.head);
    let bearer = format!("Bearer {}", token(&issuer, &signer, &json!({ "scope": ADMINISTRATOR })));
    let boss = page.ask("GET", "/api/whoami", &[("authorization", &bearer)], "").await;
    assert_eq!(boss.json()["name"], "alice");
    let auth = page.ask("GET", "/api/auth", &[], "").await.json();
    assert_eq!(auth["oauth_disable_basic_auth"], true);
    let shown = page.ask("GET", "/api/config/effective", &[("authorization", &bearer)], "").await;
    assert_eq!(shown.json()["oauth"]["client_secret"], "(removed)");
    page.server.stop().await;
}
