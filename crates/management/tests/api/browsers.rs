//! Sessions, and what web pages of other origins may do.

use crate::support::{Answer, Broker, exchange_over};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courser::Management;
use serde_json::json;
use tokio::net::TcpStream;

type Headers<'a> = &'a [(&'a str, &'a str)];

async fn ask(
    broker: &Broker,
    method: &str,
    path: &str,
    headers: Headers<'_>,
    body: &str,
) -> Answer {
    broker.call_with(method, path, None, headers, body.as_bytes()).await
}

/// Logs in, and returns the cookie.
async fn log_in(broker: &Broker, user: &str) -> String {
    let body = format!("username={user}&password={user}");
    let answer = ask(broker, "POST", "/api/login", &[], &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["user"]["name"], user);
    let cookie = &answer.headers["set-cookie"];
    assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
    cookie.split(';').next().expect("a pair").to_owned()
}

#[tokio::test]
async fn a_session_stands_for_its_user_until_it_ends() {
    let broker = Broker::start().await;
    let cookie = log_in(&broker, "guest").await;
    let headers: Headers<'_> = &[("cookie", &cookie), ("x-courser-csrf", "1")];
    let who = ask(&broker, "GET", "/api/whoami", headers, "").await;
    assert_eq!((who.status, &who.json()["name"]), (200, &json!("guest")));
    let put = ask(&broker, "PUT", "/api/queues/%2F/q", headers, "{}").await;
    assert_eq!(put.status, 201);
    let out = ask(&broker, "DELETE", "/api/login", headers, "").await;
    assert_eq!(out.status, 204);
    assert!(out.headers["set-cookie"].contains("Max-Age=0"));
    assert_eq!(ask(&broker, "GET", "/api/whoami", headers, "").await.status, 401);
}

#[tokio::test]
async fn a_change_in_a_session_needs_the_header() {
    let broker = Broker::start().await;
    let cookie = log_in(&broker, "guest").await;
    for method in ["PUT", "DELETE"] {
        let answer = ask(&broker, method, "/api/queues/%2F/q", &[("cookie", &cookie)], "").await;
        assert_eq!(answer.status, 401, "{method}");
        let reason = json!("Changes in a session need the header x-courser-csrf");
        assert_eq!(answer.refusal().1, reason, "{method}");
    }
}

#[tokio::test]
async fn a_login_from_a_page_of_another_origin_is_refused() {
    let broker = Broker::start().await;
    let body = "username=guest&password=guest";
    for origin in ["https://evil.example", "null", "http://broker:81"] {
        let answer = ask(&broker, "POST", "/api/login", &[("origin", origin)], body).await;
        assert_eq!(answer.status, 400, "{origin}");
        assert!(!answer.headers.contains_key("set-cookie"), "{origin}");
    }
    let own = ask(&broker, "POST", "/api/login", &[("origin", "http://broker")], body).await;
    assert_eq!(own.status, 200);
}

#[tokio::test]
async fn wrong_passwords_and_secrets_begin_no_session() {
    let broker = Broker::start().await;
    broker.add_user("plain", "", &["/"]);
    for body in [
        "",
        "username=guest",
        "username=guest&password=wrong",
        "{}",
        "username=plain&password=plain",
    ] {
        let answer = ask(&broker, "POST", "/api/login", &[], body).await;
        assert_eq!(answer.status, 401, "{body}");
        assert!(!answer.headers.contains_key("set-cookie"), "{body}");
    }
    let made_up = [("cookie", "courser_session=00")];
    assert_eq!(ask(&broker, "GET", "/api/whoami", &made_up, "").await.status, 401);
}

#[tokio::test]
async fn another_password_ends_the_sessions_of_a_user() {
    let broker = Broker::start().await;
    broker.add_user("who", "management", &["/"]);
    let cookie = log_in(&broker, "who").await;
    let headers = [("cookie", cookie.as_str())];
    assert_eq!(ask(&broker, "GET", "/api/whoami", &headers, "").await.status, 200);
    let body = json!({ "password": "other", "tags": "management" }).to_string();
    assert_eq!(broker.send("PUT", "/api/users/who", &body).await.status, 204);
    assert_eq!(ask(&broker, "GET", "/api/whoami", &headers, "").await.status, 401);
}

#[tokio::test]
async fn pages_of_other_origins_read_what_the_settings_say_and_change_nothing() {
    let named = "https://tools.example";
    let broker = Broker::start_with(Management {
        cors_origins: vec![named.to_owned()],
        ..Management::default()
    })
    .await;
    let preflight = [
        ("origin", named),
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "x-courser-csrf"),
    ];
    let answer = ask(&broker, "OPTIONS", "/api/queues/%2F/q", &preflight, "").await;
    for (name, value) in [
        ("access-control-allow-origin", named),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-methods", "OPTIONS, HEAD, GET, PUT, DELETE"),
        ("access-control-allow-headers", "x-courser-csrf"),
        ("access-control-max-age", "1800"),
    ] {
        assert_eq!(answer.headers.get(name).map(String::as_str), Some(value), "{name}");
    }
    let login = Some("guest:guest");
    for (origin, status) in
        [(named, 201), ("http://broker", 204), ("https://evil.example", 400), ("null", 400)]
    {
        let headers = [("origin", origin)];
        let put = broker.call_with("PUT", "/api/queues/%2F/q", login, &headers, b"").await;
        assert_eq!(put.status, status, "{origin}");
        let shared = put.headers.get("access-control-allow-origin").map(String::as_str);
        assert_eq!(shared, (origin == named).then_some(named), "{origin}");
    }
}

#[tokio::test]
async fn pages_of_all_origins_read_only_what_needs_no_credentials() {
    let cors_origins = vec!["*".to_owned()];
    let broker = Broker::start_with(Management { cors_origins, ..Management::default() }).await;
    let cookie = log_in(&broker, "guest").await;
    let origin = ("origin", "https://evil.example");
    let allowed_to = |answer: &Answer| answer.headers.get("access-control-allow-origin").cloned();

    let public = ask(&broker, "GET", "/api/version", &[origin], "").await;
    assert_eq!((public.status, allowed_to(&public).as_deref()), (200, Some("*")));
    assert!(!public.headers.contains_key("access-control-allow-credentials"));
    let closed = ask(&broker, "GET", "/api/whoami", &[origin], "").await;
    assert_eq!((closed.status, allowed_to(&closed)), (401, None));

    let reason = "A web page of another origin must not send credentials (management.cors_origins)";
    let by_name = broker.call_with("GET", "/api/whoami", Some("guest:guest"), &[origin], b"").await;
    let by_cookie = ask(&broker, "GET", "/api/whoami", &[origin, ("cookie", &cookie)], "").await;
    for answer in [by_name, by_cookie] {
        assert_eq!((answer.status, answer.refusal().1), (400, json!(reason)));
        assert_eq!(allowed_to(&answer), None);
    }
    let own = [("origin", "http://broker"), ("cookie", &cookie)];
    assert_eq!(ask(&broker, "GET", "/api/whoami", &own, "").await.status, 200);
}

#[tokio::test]
async fn pages_of_all_origins_are_not_told_that_they_may_send_credentials() {
    let cors_origins = vec!["*".to_owned()];
    let broker = Broker::start_with(Management { cors_origins, ..Management::default() }).await;
    let preflight = [
        ("origin", "https://evil.example"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "Authorization,x-trace, X-Courser-Csrf"),
    ];
    let public = ask(&broker, "OPTIONS", "/api/version", &preflight, "").await;
    let header = |name: &str| public.headers.get(name).map(String::as_str);
    assert_eq!(header("access-control-allow-origin"), Some("*"));
    assert_eq!(header("access-control-allow-headers"), Some("x-trace"));
    assert_eq!(header("access-control-allow-methods"), Some("OPTIONS, HEAD, GET"));
    let closed = ask(&broker, "OPTIONS", "/api/queues/%2F/q", &preflight, "").await;
    let told = closed.headers.keys().find(|name| name.starts_with("access-control-"));
    assert_eq!((closed.status, told), (200, None));
}

#[tokio::test]
async fn everything_is_behind_the_prefix() {
    let broker =
        Broker::start_with(Management { path_prefix: "/mq".to_owned(), ..Management::default() })
            .await;
    assert_eq!(broker.get("/mq/api/overview").await.status, 200);
    assert_eq!(broker.get("/mq/api").await.headers["location"], "/mq/api/index.html");
    assert_eq!(broker.get("/api/overview").await.status, 404);
    assert_eq!(broker.get("/mqapi/overview").await.status, 404);
}

#[tokio::test]
async fn the_page_is_there_for_everybody_and_loads_nothing_from_elsewhere() {
    let broker = Broker::start().await;
    let page = ask(&broker, "GET", "/", &[], "").await;
    assert_eq!((page.status, &*page.headers["content-type"]), (200, "text/html; charset=utf-8"));
    let policy = &page.headers["content-security-policy"];
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    let text = String::from_utf8(page.body).expect("text");
    assert!(!text.contains("http://") && !text.contains("https://"), "{text}");
    let script = text.split('"').find(|part| part.ends_with(".js")).expect("a script");
    let script = script.trim_start_matches('.');
    let whole = ask(&broker, "GET", script, &[], "").await;
    let packed = ask(&broker, "GET", script, &[("accept-encoding", "gzip")], "").await;
    assert_eq!((whole.status, packed.status), (200, 200));
    assert_eq!(packed.headers["content-encoding"], "gzip");
    assert!(packed.body.len() < whole.body.len() / 2);
    assert!(whole.headers["cache-control"].contains("immutable"));
    let tag = whole.headers["etag"].as_str();
    let again = ask(&broker, "GET", script, &[("if-none-match", tag)], "").await;
    assert_eq!((again.status, again.body.len()), (304, 0));
}

#[tokio::test]
async fn a_browser_asks_for_no_password_where_the_page_does() {
    let broker = Broker::start().await;
    let script = ask(&broker, "GET", "/api/login", &[("x-courser-csrf", "1")], "").await;
    assert_eq!((script.status, script.headers.get("www-authenticate")), (401, None));
    let tool = ask(&broker, "GET", "/api/login", &[], "").await;
    assert_eq!(tool.status, 401);
    assert!(tool.headers.contains_key("www-authenticate"));
}

/// Asks under a name.
async fn ask_for(broker: &Broker, host: &str, path: &str, login: &str) -> Answer {
    let login = STANDARD.encode(login);
    let head = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Basic {login}\r\n");
    let request = format!("{head}connection: close\r\n\r\n").into_bytes();
    let stream = TcpStream::connect(broker.http()).await.expect("a connection");
    exchange_over(stream, request, false).await
}

#[tokio::test]
async fn who_may_come_from_here_only_does_not_come_by_a_name_that_a_page_can_make_up() {
    let broker = Broker::start().await;
    broker.add_user("who", "management", &["/"]);
    for (host, guest) in [
        ("localhost:15672", 200),
        ("127.0.0.1", 200),
        ("rabbitmq:15672", 200),
        ("evil.example:15672", 401),
        ("127.0.0.1.evil.example", 401),
    ] {
        let answer = ask_for(&broker, host, "/api/whoami", "guest:guest").await;
        assert_eq!(answer.status, guest, "{host}");
        assert_eq!(ask_for(&broker, host, "/api/whoami", "who:who").await.status, 200, "{host}");
    }
    // Its browser takes the API for the page's own.
    let page = "host: evil.example\r\norigin: http://evil.example\r\nconnection: close";
    let body = "username=guest&password=guest";
    let request = format!(
        "POST /api/login HTTP/1.1\r\n{page}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let stream = TcpStream::connect(broker.http()).await.expect("a connection");
    let answer = exchange_over(stream, request.into_bytes(), false).await;
    assert_eq!((answer.status, answer.headers.get("set-cookie")), (401, None));
}

#[tokio::test]
async fn where_the_names_of_the_api_are_listed_it_has_no_others() {
    let hosts = vec!["mq.example".to_owned()];
    let broker = Broker::start_with(Management { hosts, ..Management::default() }).await;
    for (host, status) in [
        ("mq.example", 200),
        ("MQ.example:443", 200),
        ("127.0.0.1:15672", 200),
        ("localhost", 200),
        ("other.example", 421),
    ] {
        for path in ["/api/whoami", "/", "/health/live"] {
            let answer = ask_for(&broker, host, path, "guest:guest").await;
            assert_eq!(answer.status, status, "{host} {path}");
        }
    }
}

#[tokio::test]
async fn a_request_names_one_host() {
    let broker = Broker::start().await;
    for (version, hosts, status) in [
        ("1.1", "", 400),
        ("1.1", "host: a\r\nhost: b\r\n", 400),
        ("1.1", "host: a\r\n", 200),
        ("1.0", "", 200),
    ] {
        let request =
            format!("GET /health/live HTTP/{version}\r\n{hosts}connection: close\r\n\r\n");
        let stream = TcpStream::connect(broker.http()).await.expect("a connection");
        let answer = exchange_over(stream, request.into_bytes(), false).await;
        assert_eq!(answer.status, status, "HTTP/{version} {hosts:?}");
    }
}

#[tokio::test]
async fn metrics_without_logins_are_not_for_pages_with_their_own_name_for_this_machine() {
    let broker = Broker::start().await;
    for (host, status) in [("evil.example", 421), ("localhost", 200), ("127.0.0.1:15692", 200)] {
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let address = broker.server.metrics_addresses()[0];
        let stream = TcpStream::connect(address).await.expect("a connection");
        let answer = exchange_over(stream, request.into_bytes(), false).await;
        assert_eq!(answer.status, status, "{host}");
    }
}
