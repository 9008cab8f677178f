//! Users who log in with tokens: who gets in, what they may do, and for how long.

use crate::slow_readers::flood;
use crate::support::{
    Answers, Client, Heard, Issuer, PATIENCE, Signer, TestServer, now_s, short, wait_until,
};
use courser::{Config, Server, SigningKey};
use courser_codec::{basic, exchange, queue};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

const ALL: &str = "mq.read:*/* mq.write:*/* mq.configure:*/*";

async fn log_in(server: &TestServer, token: &str) -> Result<Client, Heard> {
    Client::log_in(server.address(), "any-name", token).await
}

async fn is_refused(server: &TestServer, token: &str) {
    let refused = log_in(server, token).await.err();
    let text = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details \
                see the broker logfile.";
    assert_eq!(refused, Some(Heard::Closed(403, text.to_owned())));
}

async fn declare(client: &mut Client, name: &str) -> Heard {
    client.call(queue::Declare { queue: short(name), ..Default::default() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_a_password_and_its_scopes_are_permissions() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.broker(|_| {}).await;
    let scopes = "mq.configure:*/own-* mq.write:*/own-* mq.write:*/amq.default mq.read:%2F/own-1";
    let token = signer.token(&json!({ "scope": scopes, "filler": "x".repeat(8000) }));
    let mut client = log_in(&server, &token).await.expect("let in");
    client.declare("own-1").await;
    client.publish("own-1", b"hello").await;
    assert_eq!(client.count("own-1").await, 1);
    let heard = declare(&mut client, "other").await;
    let text =
        "ACCESS_REFUSED - configure access to queue 'other' in vhost '/' refused for user 'alice'";
    assert_eq!(heard, Heard::ChannelClosed(1, text.to_owned()));
    client.reopen().await;
    client.declare("own-2").await;
    let heard = client.call(basic::Get { queue: short("own-2"), no_ack: true }).await;
    let text =
        "ACCESS_REFUSED - read access to queue 'own-2' in vhost '/' refused for user 'alice'";
    assert_eq!(heard, Heard::ChannelClosed(1, text.to_owned()));
    client.close().await;
    let nothing = log_in(&server, &signer.token(&json!({}))).await.err();
    let text = "NOT_ALLOWED - access to vhost '/' refused for user 'alice'";
    assert_eq!(nothing, Some(Heard::Closed(530, text.to_owned())));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scopes_are_for_routing_keys_of_topic_exchanges_too() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.broker(|_| {}).await;
    let scopes = "mq.configure:*/* mq.read:*/* mq.write:*/q mq.write:*/t/u.{sub}.*";
    let mut client =
        log_in(&server, &signer.token(&json!({ "scope": scopes }))).await.expect("let in");
    let (name, kind) = (short("t"), short("topic"));
    let exchange = exchange::Declare { exchange: name, kind, ..Default::default() };
    assert_eq!(client.call(exchange).await, Heard::Reply("exchange.declare-ok"));
    client.declare("q").await;
    let bind = queue::Bind {
        queue: short("q"),
        exchange: name,
        routing_key: short("#"),
        ..Default::default()
    };
    assert_eq!(client.call(bind).await, Heard::Reply("queue.bind-ok"));
    client.publish_to("t", "u.alice.1", b"good").await;
    assert_eq!(client.count("q").await, 1);
    client.publish_to("t", "u.bob.1", b"bad").await;
    let text = "ACCESS_REFUSED - write access to topic 'u.bob.1' in exchange 't' in vhost '/' \
                refused for user 'alice'";
    assert_eq!(client.next().await, Heard::ChannelClosed(1, text.to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_not_good_lets_no_client_in() {
    let (signer, stranger) = (Signer::new("one"), Signer::new("one"));
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.broker(|config| config.oauth.algorithms.push("HS256".to_owned())).await;
    let with = |claims: Value| {
        let mut all = json!({ "scope": ALL });
        all.as_object_mut().expect("one").extend(claims.as_object().expect("one").clone());
        all
    };
    drop(log_in(&server, &signer.token(&with(json!({})))).await.expect("let in"));
    for claims in [
        json!({ "aud": "other" }),
        json!({ "exp": now_s() - 1 }),
        json!({ "exp": null }),
        json!({ "nbf": now_s() + 100 }),
        json!({ "sub": "" }),
    ] {
        is_refused(&server, &signer.token(&with(claims))).await;
    }
    is_refused(&server, &stranger.token(&with(json!({})))).await;
    is_refused(&server, &signer.confused_token(&with(json!({})))).await;
    is_refused(&server, &signer.unsigned_token(&with(json!({})))).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_token_ends_the_connection_unless_it_is_renewed() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.broker(|_| {}).await;
    let token = |seconds: u64| signer.token(&json!({ "scope": ALL, "exp": now_s() + seconds }));
    let mut short_lived = log_in(&server, &token(4)).await.expect("let in");
    let mut renewed = log_in(&server, &token(4)).await.expect("let in");
    renewed.declare("q").await;
    assert_eq!(
        renewed.update_secret(&token(600)).await,
        Heard::Reply("connection.update-secret-ok")
    );
    let text = "CONNECTION_FORCED - credential expired";
    assert_eq!(short_lived.next().await, Heard::Closed(320, text.to_owned()));
    assert!(renewed.is_silent(1500).await, "it goes on");
    renewed.declare("q").await;
    renewed.close().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_ends_while_its_renewal_waits_for_the_issuer_ends_no_connection() {
    let (signer, next) = (Signer::new("one"), Signer::new("two"));
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.broker(|config| config.oauth.timeout_ms = 30_000).await;
    let claims = |seconds: u64| json!({ "scope": ALL, "exp": now_s() + seconds });
    let mut renewed = log_in(&server, &signer.token(&claims(6))).await.expect("let in");
    let mut over = log_in(&server, &signer.token(&claims(6))).await.expect("let in");
    // The key of the new token is not known yet, and the issuer takes its time to say it. It is not asked more often than
    // once a second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let asked = issuer.asked_for_keys();
    issuer.rotate(&[&signer, &next]);
    issuer.answers(Answers::Later);
    renewed.bring_secret(&next.token(&claims(600))).await;
    wait_until("the issuer is asked", async || issuer.asked_for_keys() > asked).await;
    // The old tokens are over.
    let text = "CONNECTION_FORCED - credential expired";
    assert_eq!(over.next().await, Heard::Closed(320, text.to_owned()));
    assert!(renewed.is_silent(1000).await, "its new token is not decided yet");
    issuer.answers(Answers::Well);
    assert_eq!(renewed.next().await, Heard::Reply("connection.update-secret-ok"));
    renewed.declare("q").await;
    renewed.close().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_said_of_a_renewal_behind_the_close_of_the_connection() {
    let (signer, next) = (Signer::new("one"), Signer::new("two"));
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.broker(|config| config.oauth.timeout_ms = 30_000).await;
    let good = json!({ "scope": ALL });
    let mut client = log_in(&server, &signer.token(&good)).await.expect("let in");
    // The issuer is not asked more often than once a second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let asked = issuer.asked_for_keys();
    issuer.rotate(&[&signer, &next]);
    issuer.answers(Answers::Later);
    client.bring_secret(&next.token(&good)).await;
    wait_until("the issuer is asked", async || issuer.asked_for_keys() > asked).await;
    client.close().await;
    issuer.answers(Answers::Well);
    let mut behind = Vec::new();
    let end = timeout(PATIENCE, client.stream.read_to_end(&mut behind)).await;
    end.expect("it ends").expect("an open stream");
    assert_eq!(&behind[..], b"", "close-ok is the last word");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_token_ends_a_connection_that_never_stops_sending() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.broker(|_| {}).await;
    let token = signer.token(&json!({ "scope": ALL, "exp": now_s() + 4 }));
    let client = log_in(&server, &token).await.expect("let in");
    let (mut reading, mut writing) = client.stream.into_split();
    let flood = flood();
    let sending = tokio::spawn(async move { while writing.write_all(&flood).await.is_ok() {} });
    let (mut said, mut bytes) = (Vec::new(), [0; 4096]);
    let wanted = b"CONNECTION_FORCED - credential expired";
    while !said.windows(wanted.len()).any(|part| part == wanted) {
        let read = timeout(PATIENCE, reading.read(&mut bytes)).await.expect("it is told");
        let count = read.expect("an open connection");
        assert!(count > 0, "it ends without a word");
        said.extend_from_slice(&bytes[..count]);
    }
    assert!(!sending.is_finished());
    sending.abort();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_token_brings_its_own_scopes() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.broker(|_| {}).await;
    let mut client =
        log_in(&server, &signer.token(&json!({ "scope": ALL }))).await.expect("let in");
    client.declare("q").await;
    client.publish("q", b"one").await;
    assert_eq!(client.count("q").await, 1);
    let less = signer.token(&json!({ "scope": "mq.read:*/*" }));
    assert_eq!(client.update_secret(&less).await, Heard::Reply("connection.update-secret-ok"));
    client.publish("q", b"two").await;
    let text = "ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for \
                user 'alice'";
    assert_eq!(client.next().await, Heard::ChannelClosed(1, text.to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_is_not_good_or_of_another_user_ends_the_connection() {
    let (signer, stranger) = (Signer::new("one"), Signer::new("one"));
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer.broker(|_| {}).await;
    let good = json!({ "scope": ALL });
    let text = "NOT_ALLOWED - New secret was refused by one of the backends";
    for secret in [
        signer.token(&json!({ "scope": ALL, "sub": "bob" })),
        signer.token(&json!({ "scope": ALL, "aud": "other" })),
        stranger.token(&good),
        "guest".to_owned(),
    ] {
        let mut client = log_in(&server, &signer.token(&good)).await.expect("let in");
        assert_eq!(client.update_secret(&secret).await, Heard::Closed(530, text.to_owned()));
    }
    // A client with a password is told that it is fine, as ever.
    let mut guest = Client::connect(server.address()).await;
    assert_eq!(guest.update_secret("x").await, Heard::Reply("connection.update-secret-ok"));
    guest.close().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_may_be_changed_and_unknown_ones_are_asked_for_seldom() {
    let (old, new, stranger) = (Signer::new("old"), Signer::new("new"), Signer::new("strange"));
    let issuer = Issuer::start(&[&old]).await;
    let server = issuer
        .broker(|config| {
            config.oauth.keys_cache_seconds = 2;
            config.oauth.keys_retry_seconds = 1;
        })
        .await;
    let good = json!({ "scope": ALL });
    log_in(&server, &old.token(&good)).await.expect("let in");
    issuer.rotate(&[&new]);
    let started = Instant::now();
    wait_until("the new key is found", async || log_in(&server, &new.token(&good)).await.is_ok())
        .await;
    is_refused(&server, &old.token(&good)).await;
    for _ in 0..20 {
        is_refused(&server, &stranger.token(&good)).await;
    }
    let most = 3 + started.elapsed().as_secs() as usize;
    assert!(issuer.asked_for_keys() <= most, "{} times", issuer.asked_for_keys());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_the_issuer_has_withdrawn_lets_no_client_in_though_none_has_logged_in_since() {
    let old = Signer::new("old");
    let issuer = Issuer::start(&[&old]).await;
    let server = issuer.broker(|config| config.oauth.keys_cache_seconds = 1).await;
    let good = json!({ "scope": ALL });
    log_in(&server, &old.token(&good)).await.expect("let in");
    issuer.rotate(&[&Signer::new("new")]);
    // The first of these may have been answered before, and what the second one follows is known.
    let asked = issuer.asked_for_keys();
    wait_until("the issuer is asked", async || issuer.asked_for_keys() >= asked + 2).await;
    is_refused(&server, &old.token(&good)).await;
    // While it can't be asked, what is known goes on to count.
    issuer.rotate(&[&old]);
    wait_until("the key is back", async || log_in(&server, &old.token(&good)).await.is_ok()).await;
    issuer.answers(Answers::WithError);
    let asked = issuer.asked_for_keys();
    wait_until("the issuer is asked", async || issuer.asked_for_keys() >= asked + 2).await;
    log_in(&server, &old.token(&good)).await.expect("let in");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_keys_tokens_are_refused_and_others_log_in() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    issuer.answers(Answers::Never);
    let server = issuer.broker(|config| config.oauth.timeout_ms = 300).await;
    let token = signer.token(&json!({ "scope": ALL }));
    let bad = [Answers::Never, Answers::WithTooMuch, Answers::WithRedirect, Answers::WithError];
    for answers in bad {
        issuer.answers(answers);
        let asked = issuer.asked_for_keys();
        wait_until("it is asked again", async || {
            is_refused(&server, &token).await;
            issuer.asked_for_keys() > asked
        })
        .await;
        is_refused(&server, &token).await;
        let mut guest = Client::connect(server.address()).await;
        guest.declare("q").await;
        guest.close().await;
    }
    issuer.answers(Answers::Well);
    wait_until("the keys are there", async || log_in(&server, &token).await.is_ok()).await;
    // From now on they are known.
    issuer.answers(Answers::WithError);
    log_in(&server, &token).await.expect("let in");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_issuer_says_where_its_keys_are() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    let server = issuer
        .broker(|config| {
            config.oauth.jwks_uri.clear();
            config.oauth.issuer = issuer.address();
        })
        .await;
    let token = signer.token(&json!({ "scope": ALL, "iss": issuer.address() }));
    log_in(&server, &token).await.expect("let in");
    is_refused(&server, &signer.token(&json!({ "scope": ALL, "iss": "https://other" }))).await;
    server.stop().await;
}

/// Settings with keys from files.
fn with_files(config: &mut Config, keys: &[(&str, &std::path::Path, &str)]) {
    config.oauth.resource_server_id = "mq".to_owned();
    let key = |(id, file, algorithm): &(&str, &std::path::Path, &str)| SigningKey {
        id: (*id).to_owned(),
        file: file.to_path_buf(),
        algorithm: (*algorithm).to_owned(),
    };
    config.oauth.signing_keys = keys.iter().map(key).collect();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_may_be_in_files() {
    let signer = Signer::new("file");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key.pem");
    std::fs::write(&file, signer.public_pem()).expect("a file");
    let server = TestServer::start_with(|config| with_files(config, &[("file", &file, "")])).await;
    log_in(&server, &signer.token(&json!({ "scope": ALL }))).await.expect("let in");
    is_refused(&server, &Signer::new("other").token(&json!({ "scope": ALL }))).await;
    server.stop().await;
    std::fs::write(&file, "nothing").expect("a file");
    let mut config = crate::support::config_in(&folder);
    with_files(&mut config, &[("file", &file, "")]);
    let error = Server::start(config).await.err().expect("no key").to_string();
    assert!(error.contains("key.pem can't be used: it is no public key"), "{error}");
}
