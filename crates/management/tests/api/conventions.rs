//! What holds for every path.

use crate::support::Broker;
use serde_json::json;
use std::io::Read;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn every_answer_has_the_headers_that_browsers_and_caches_need() {
    let broker = Broker::start().await;
    for path in ["/api/whoami", "/nowhere", "/health/live"] {
        let answer = broker.get(path).await;
        assert_eq!(answer.headers["cache-control"].split(',').next(), Some("no-cache"), "{path}");
        assert_eq!(answer.headers["vary"], "accept, accept-encoding, origin");
        let policy = &answer.headers["content-security-policy"];
        assert!(policy.contains("script-src 'self'; object-src 'none'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    }
}

#[tokio::test]
async fn an_unknown_path_and_an_unknown_object_are_404() {
    let broker = Broker::start().await;
    for path in ["/api/nonsense", "/api/queues/%2F/none", "/api/queues/none", "/api/nodes/none"] {
        let answer = broker.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.refusal(), ("Object Not Found".to_owned(), json!("Not Found")), "{path}");
    }
}

#[tokio::test]
async fn a_method_that_a_path_has_not_is_405_and_names_those_it_has() {
    let broker = Broker::start().await;
    let answer = broker.send("POST", "/api/overview", "").await;
    assert_eq!((answer.status, answer.body.len()), (405, 0));
    assert_eq!(answer.headers["allow"], "OPTIONS, HEAD, GET");
}

#[tokio::test]
async fn a_body_that_is_no_object_makes_nothing() {
    let broker = Broker::start().await;
    for path in ["/api/vhosts/new", "/api/queues/%2F/new", "/api/exchanges/%2F/new"] {
        for body in ["[]", "1", "\"{}\"", "{"] {
            assert_eq!(broker.send("PUT", path, body).await.status, 400, "{path} {body}");
        }
        assert_eq!(broker.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn options_need_no_credentials() {
    let broker = Broker::start().await;
    let answer = broker.call("OPTIONS", "/api/overview", None, "").await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    assert_eq!(answer.headers["allow"], "OPTIONS, HEAD, GET");
}

#[tokio::test]
async fn head_is_get_without_its_body() {
    let broker = Broker::start().await;
    let whole = broker.get("/api/whoami").await;
    let head = broker.send("HEAD", "/api/whoami", "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.headers["content-length"], whole.body.len().to_string());
}

#[tokio::test]
async fn who_wants_something_else_than_json_gets_406() {
    let broker = Broker::start().await;
    for (accept, status) in [
        ("text/html", 406),
        ("image/*", 406),
        ("*/*", 200),
        ("text/html, application/json;q=0.5", 200),
    ] {
        let headers = [("accept", accept)];
        let answer =
            broker.call_with("GET", "/api/whoami", Some("guest:guest"), &headers, b"").await;
        assert_eq!(answer.status, status, "{accept}");
        assert!(status == 200 || answer.body.is_empty());
    }
}

#[tokio::test]
async fn a_long_answer_is_compressed_for_who_can_read_that() {
    let broker = Broker::start().await;
    for path in ["/api/exchanges", "/api/overview"] {
        let plain = broker.get(path).await;
        let headers = [("accept-encoding", "br, gzip")];
        let packed = broker.call_with("GET", path, Some("guest:guest"), &headers, b"").await;
        assert_eq!(packed.headers["content-encoding"], "gzip", "{path}");
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&*packed.body).read_to_end(&mut text).expect("gzip");
        let unpacked: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(unpacked.is_array(), plain.json().is_array());
        let refused = [("accept-encoding", "gzip;q=0")];
        let answer = broker.call_with("GET", path, Some("guest:guest"), &refused, b"").await;
        assert!(!answer.headers.contains_key("content-encoding"));
    }
}

#[tokio::test]
async fn old_addresses_lead_to_the_description() {
    let broker = Broker::start().await;
    for path in ["/api", "/api/", "/cli", "/stats", "/doc/stats.html"] {
        let answer = broker.call("GET", path, None, "").await;
        assert_eq!(answer.status, 301, "{path}");
        assert_eq!(answer.headers["location"], "/api/index.html");
    }
    let page = broker.call("GET", "/api/index.html", None, "").await;
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let text = String::from_utf8(page.body).expect("text");
    let row = "<tr><td>GET<td><code>/api/queues/{vhost}/{queue}</code><td>";
    assert!(text.contains(row) && text.contains("<h2 id=\"health\">"), "{text}");
    assert!(!text.contains("<script") && !text.contains("://"), "it needs nothing from elsewhere");
    let style = broker.call("GET", "/api/index.css", None, "").await;
    assert_eq!((style.status, &*style.headers["content-type"]), (200, "text/css; charset=utf-8"));
    let document = broker.call("GET", "/api/openapi.json", None, "").await.json();
    assert!(document["paths"]["/api/queues/{vhost}/{queue}"]["get"].is_object(), "{document}");
}

#[tokio::test]
async fn paths_are_split_before_they_are_decoded() {
    let broker = Broker::start().await;
    for path in ["/api/queues/%2F", "/api/queues/%2f", "/api/queues/%2F/", "/api/exchanges/%2F/"] {
        let answer = broker.get(path).await;
        assert!(answer.status == 200 && answer.json().is_array(), "{path}: {answer:?}");
    }
    let named = broker.get("/api/exchanges/%2F/amq.default").await;
    assert_eq!((named.status, &named.json()["name"]), (200, &json!("")));
    let from = broker.get("/api/exchanges/%2F//bindings/source").await;
    assert_eq!((from.status, from.json()), (200, json!([])));
    for wrong in ["/api/queues/%2", "/api/queues/%zz", "/api/queues/a/b/c/d/e"] {
        assert_eq!(broker.get(wrong).await.status, 404, "{wrong}");
    }
}

#[tokio::test]
async fn what_is_too_large_is_refused_and_nothing_is_kept_of_it() {
    let broker = Broker::start().await;
    let body = vec![b' '; 10_000_001];
    let answer = broker.call_with("PUT", "/api/vhosts/big", Some("guest:guest"), &[], &body).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.refusal().1, "Exceeded HTTP request body size limit");
    let long = "x".repeat(100_000);
    let answer = broker.get(&format!("/api/queues/{long}")).await;
    assert!((400..500).contains(&answer.status), "{}", answer.status);
}

#[tokio::test]
async fn what_is_no_http_ends_the_connection_and_not_the_broker() {
    let broker = Broker::start().await;
    for noise in [
        &b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03"[..],
        b"AMQP\x00\x00\x09\x01",
        b"\r\n\r\nx y\r\n\r\n",
    ] {
        let mut stream = tokio::net::TcpStream::connect(broker.http()).await.expect("a connection");
        stream.write_all(noise).await.expect("it is taken");
        stream.shutdown().await.expect("nothing more");
        let mut received = Vec::new();
        // Some systems reset what was not read.
        let _ = stream.read_to_end(&mut received).await;
        assert!(!received.starts_with(b"HTTP/1.1 200"), "{noise:?}");
    }
    assert_eq!(broker.get("/api/whoami").await.status, 200);
}

#[tokio::test]
async fn probes_need_no_credentials() {
    let broker = Broker::start().await;
    for path in [
        "/health/live",
        "/health/ready",
        "/api/health/checks/is-in-service",
        "/api/health/checks/ready-to-serve-clients",
        "/api/health/checks/below-node-connection-limit",
        "/api/health/checks/reached-target-cluster-size",
    ] {
        let answer = broker.call("GET", path, None, "").await;
        assert_eq!((answer.status, answer.json()), (200, json!({ "status": "ok" })), "{path}");
        assert_eq!(answer.headers["pragma"], "no-cache", "{path}");
    }
    assert_eq!(broker.call("GET", "/api/version", None, "").await.json(), json!("4.3.6"));
}

#[tokio::test]
async fn the_header_for_a_vhost_narrows_lists_whatever_its_name() {
    let broker = Broker::start().await;
    assert_eq!(broker.send("PUT", "/api/vhosts/gr%C3%B6%C3%9Fe", "").await.status, 201);
    let login = Some("guest:guest");
    for (vhost, queues) in [("größe", 0), ("/", 1), ("", 1), ("none", 0)] {
        broker.send("PUT", "/api/queues/%2F/q", "").await;
        let headers = [("x-vhost", vhost)];
        let answer = broker.call_with("GET", "/api/queues", login, &headers, b"").await;
        assert_eq!(answer.json().as_array().map(Vec::len), Some(queues), "{vhost}");
    }
}
