//! Tokens at the HTTP API: as Bearer and as passwords.

use crate::support::{Answers, Issuer, PATIENCE, Signer, TestServer, now_s, wait_until};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courser::HttpListen;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn broker(issuer: &Issuer) -> TestServer {
    issuer
        .broker(|config| {
            config.oauth.keys_retry_seconds = 2;
            let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
            config.management.listen = HttpListen::At(vec![any_port]);
        })
        .await
}

async fn ask(server: &TestServer, path: &str, authorization: &str) -> String {
    let address = server.http_addresses()[0];
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: {authorization}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut said = String::new();
    let reading = stream.read_to_string(&mut said);
    tokio::time::timeout(PATIENCE, reading).await.expect("in time").expect("an answer");
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_a_bearer_or_a_password_and_gives_tags() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    let server = broker(&issuer).await;
    let user = signer.token(&json!({ "scope": "mq.tag:management mq.read:%2F/*" }));
    let basic = format!("Basic {}", STANDARD.encode(format!("x:{user}")));
    for authorization in [format!("Bearer {user}"), format!("bearer {user}"), basic] {
        let said = ask(&server, "/api/whoami", &authorization).await;
        let wanted = r#"{"is_internal_user":false,"name":"alice","tags":["management"]}"#;
        assert!(said.contains(wanted), "{said}");
        assert!(ask(&server, "/api/queues/%2F", &authorization).await.starts_with("HTTP/1.1 200"));
        assert!(ask(&server, "/api/users", &authorization).await.starts_with("HTTP/1.1 401"));
    }
    let boss = format!("Bearer {}", signer.token(&json!({ "scope": "mq.tag:administrator" })));
    assert!(ask(&server, "/api/users", &boss).await.starts_with("HTTP/1.1 200"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_told_where_to_log_people_in() {
    let issuer = Issuer::start(&[]).await;
    let server = issuer
        .broker(|config| {
            config.management.listen = HttpListen::At(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
            config.oauth.issuer = issuer.address();
            config.oauth.client_id = "page".to_owned();
        })
        .await;
    let said = ask(&server, "/api/auth", "").await;
    let wanted = format!(
        r#"{{"oauth_client_id":"page","oauth_disable_basic_auth":false,"oauth_enabled":true,"oauth_provider_name":"localhost","oauth_provider_url":"{}","oauth_scopes":"openid profile"}}"#,
        issuer.address()
    );
    let body = said.split("\r\n\r\n").nth(1).expect("a body");
    let parse = |text| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    assert_eq!(parse(body), parse(&wanted));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bearer_that_is_not_good_is_refused() {
    let (signer, stranger) = (Signer::new("one"), Signer::new("one"));
    let issuer = Issuer::start(&[&signer]).await;
    let server = broker(&issuer).await;
    let scope = "mq.tag:administrator";
    for token in [
        signer.token(&json!({ "scope": scope, "exp": now_s() - 1 })),
        signer.token(&json!({ "scope": scope, "aud": "other" })),
        signer.confused_token(&json!({ "scope": scope })),
        signer.unsigned_token(&json!({ "scope": scope })),
        stranger.token(&json!({ "scope": scope })),
        signer.token(&json!({})),
        "guest".to_owned(),
        String::new(),
    ] {
        let said = ask(&server, "/api/whoami", &format!("Bearer {token}")).await;
        assert!(said.starts_with("HTTP/1.1 401"), "{said}");
    }
    let guest = format!("Basic {}", STANDARD.encode("guest:guest"));
    assert!(ask(&server, "/api/whoami", &guest).await.starts_with("HTTP/1.1 200"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_settings_for_tokens_a_bearer_is_no_user() {
    let server = TestServer::start_with(|config| {
        config.management.listen = HttpListen::At(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
    })
    .await;
    let token = Signer::new("one").token(&json!({ "scope": "mq.tag:administrator" }));
    let said = ask(&server, "/api/whoami", &format!("Bearer {token}")).await;
    assert!(said.starts_with("HTTP/1.1 401"), "{said}");
    assert!(ask(&server, "/api/auth", "").await.ends_with(r#"{"oauth_enabled":false}"#));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_keys_and_leaves_keeps_no_other_from_having_them() {
    let (old, new, stranger) = (Signer::new("old"), Signer::new("new"), Signer::new("strange"));
    let issuer = Issuer::start(&[&old]).await;
    let server = broker(&issuer).await;
    let bearer = |signer: &Signer| {
        format!("Bearer {}", signer.token(&json!({ "scope": "mq.tag:management" })))
    };
    assert!(ask(&server, "/api/whoami", &bearer(&old)).await.starts_with("HTTP/1.1 200"));
    issuer.rotate(&[&new]);
    issuer.answers(Answers::Later);
    // Until they may be asked for again.
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let asked = issuer.asked_for_keys();
    let stranger = bearer(&stranger);
    let leaving = ask(&server, "/api/whoami", &stranger);
    tokio::select! {
        _ = leaving => panic!("no answer came"),
        () = wait_until("they are asked for", async || issuer.asked_for_keys() > asked) => {}
    }
    // It is noticed that the client is gone.
    tokio::time::sleep(Duration::from_millis(200)).await;
    issuer.answers(Answers::Well);
    assert!(ask(&server, "/api/whoami", &bearer(&new)).await.starts_with("HTTP/1.1 200"));
    server.stop().await;
}
