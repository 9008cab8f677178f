//! Bodies that come slowly or in pieces, and bodies that go out compressed.

use crate::support::Broker;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::Read;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Less than a slow body may take.
const SOON: Duration = Duration::from_secs(20);

/// A change with the beginning of a body, of which no more comes.
async fn begin(broker: &Broker, login: &str, length: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(broker.http()).await.expect("a connection");
    let login = STANDARD.encode(login);
    let head = format!(
        "PUT /api/queues/%2F/slow HTTP/1.1\r\nhost: broker\r\nauthorization: Basic {login}\r\n"
    );
    let request = format!("{head}{length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    stream
}

#[tokio::test]
async fn bodies_that_do_not_come_hold_up_no_other_request() {
    let broker = Broker::start().await;
    let mut slow = Vec::new();
    for _ in 0..10 {
        let chunked = "transfer-encoding: chunked";
        slow.push(begin(&broker, "guest:guest", chunked, "5\r\n{\"a\":\r\n").await);
        slow.push(begin(&broker, "guest:guest", "content-length: 9999999", "{").await);
    }
    // They are being read when the other requests come.
    tokio::time::sleep(Duration::from_millis(200)).await;
    for length in [2, 100_000] {
        let body = format!("{{{}}}", " ".repeat(length));
        let put = broker.send("PUT", "/api/queues/%2F/q", &body);
        let answer = tokio::time::timeout(SOON, put).await.expect("no wait for the slow ones");
        assert!(matches!(answer.status, 201 | 204), "{answer:?}");
    }
}

#[tokio::test]
async fn a_user_whose_large_bodies_come_slowly_keeps_no_room_from_others() {
    let broker = Broker::start().await;
    broker.add_user("slow", "management", &["/"]);
    let some = format!("{{{}", " ".repeat(16 << 10));
    let mut slow = Vec::new();
    for _ in 0..8 {
        slow.push(begin(&broker, "slow:slow", "content-length: 9999999", &some).await);
    }
    // They have room, or wait for it, when the other request comes.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let body = format!("{{{}}}", " ".repeat(9_000_000));
    let put = broker.send("PUT", "/api/queues/%2F/q", &body);
    let answer = tokio::time::timeout(SOON, put).await.expect("it waits for no other user");
    assert_eq!(answer.status, 201, "{answer:?}");
}

#[tokio::test]
async fn who_has_no_tag_is_refused_before_its_body() {
    let broker = Broker::start().await;
    broker.add_user("none", "", &["/"]);
    let mut slow = begin(&broker, "none:none", "content-length: 9999999", "{").await;
    let mut answer = [0; 12];
    let answered = tokio::time::timeout(SOON, slow.read_exact(&mut answer)).await;
    answered.expect("it does not wait for the body").expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 401");
}

#[tokio::test]
async fn a_body_that_is_announced_as_too_large_is_refused_before_it_comes() {
    let broker = Broker::start().await;
    let mut stream = begin(&broker, "guest:guest", "content-length: 10000001", "{").await;
    let mut answer = [0; 12];
    let answered = tokio::time::timeout(SOON, stream.read_exact(&mut answer)).await;
    answered.expect("it does not wait for the body").expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 400");
}

#[tokio::test]
async fn a_large_body_is_read_whole() {
    let broker = Broker::start().await;
    let value = "x".repeat(60_000);
    let chunks: String = json!({ "value": value })
        .to_string()
        .as_bytes()
        .chunks(1_000)
        .map(|chunk| format!("{:x}\r\n{}\r\n", chunk.len(), String::from_utf8_lossy(chunk)))
        .collect();
    let headers = [("transfer-encoding", "chunked"), ("connection", "close")];
    let mut stream = TcpStream::connect(broker.http()).await.expect("a connection");
    let mut request = format!(
        "PUT /api/global-parameters/large HTTP/1.1\r\nhost: broker\r\nauthorization: Basic {}\r\n",
        STANDARD.encode("guest:guest")
    );
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("\r\n{chunks}0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 201"), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(broker.get("/api/global-parameters/large").await.json()["value"], value);
}

#[tokio::test]
async fn a_list_that_goes_out_in_pieces_is_whole_when_it_is_compressed() {
    let broker = Broker::start().await;
    let queues: Vec<Value> =
        (0..2_000).map(|nth| json!({ "name": format!("q{nth}"), "vhost": "/" })).collect();
    let headers = [("content-type", "application/json")];
    let definitions = json!({ "queues": queues }).to_string();
    let path = "/api/definitions";
    let login = Some("guest:guest");
    let imported = broker.call_with("POST", path, login, &headers, definitions.as_bytes()).await;
    assert_eq!(imported.status, 204);
    let plain = broker.get("/api/queues?disable_stats=true").await;
    let headers = [("accept-encoding", "gzip")];
    let path = "/api/queues?disable_stats=true";
    let packed = broker.call_with("GET", path, login, &headers, b"").await;
    assert!(plain.body.len() > 256 * 1024, "it goes out in pieces");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&*packed.body).read_to_end(&mut text).expect("gzip");
    assert!(text == plain.body, "both are the same");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sends_all_of_a_body_that_is_too_large_hears_why_it_is_refused() {
    let broker = Broker::start().await;
    let payload = "x".repeat(11_000_000);
    let message = json!({
        "routing_key": "q", "properties": {}, "payload": payload, "payload_encoding": "string",
    });
    let path = "/api/exchanges/%2F/amq.default/publish";
    let refused = broker.send("POST", path, &message.to_string()).await;
    let reason = "Exceeded HTTP request body size limit";
    assert_eq!((refused.status, refused.refusal().1), (400, json!(reason)));
}

#[tokio::test]
async fn a_stranger_sends_no_more_than_a_login_needs() {
    let broker = Broker::start().await;
    let body = format!("username=guest&password=guest&more={}", "x".repeat(70_000));
    let login = broker.call("POST", "/api/login", None, &body).await;
    assert_eq!(login.status, 400);
}
