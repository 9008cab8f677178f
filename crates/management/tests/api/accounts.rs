//! Users, permissions and user limits.

use crate::direct::{Asked, Direct};
use crate::support::Broker;
use serde_json::{Value, json};

#[tokio::test]
async fn a_user_is_made_logs_in_and_goes() {
    let broker = Broker::start().await;
    let body = r#"{"password":"s3cret","tags":"management, monitoring"}"#;
    assert_eq!(broker.send("PUT", "/api/users/new", body).await.status, 201);
    assert_eq!(broker.send("PUT", "/api/users/new", body).await.status, 204);
    let answer = broker.call_with("GET", "/api/whoami", Some("new:s3cret"), &[], b"").await;
    assert_eq!(answer.json()["tags"], json!(["management", "monitoring"]));
    let shown = broker.get("/api/users/new").await.json();
    assert_eq!((&shown["name"], &shown["limits"]), (&json!("new"), &json!({})));
    assert_eq!(shown["password_hash"], "", "what only this broker can check is not shown");
    let without = broker.get("/api/users/without-permissions").await.json();
    assert_eq!(without[0]["name"], "new");
    assert_eq!(broker.send("DELETE", "/api/users/new", "").await.status, 204);
    assert_eq!(broker.send("DELETE", "/api/users/new", "").await.status, 404);
}

#[tokio::test]
async fn a_hash_of_rabbitmq_lets_its_password_in_and_is_shown_again() {
    let broker = Broker::start().await;
    let hash = broker.get("/api/auth/hash_password/open%20sesame").await.json();
    let hash = hash["ok"].as_str().expect("a hash").to_owned();
    let body = json!({ "password_hash": hash, "tags": ["management"] }).to_string();
    assert_eq!(broker.send("PUT", "/api/users/old", &body).await.status, 201);
    assert_eq!(broker.get("/api/users/old").await.json()["password_hash"], hash.as_str());
    let login = Some("old:open sesame");
    assert_eq!(broker.call_with("GET", "/api/whoami", login, &[], b"").await.status, 200);
    let bad = r#"{"password_hash":"abc!","tags":""}"#;
    assert_eq!(broker.send("PUT", "/api/users/bad", bad).await.status, 400);
}

#[tokio::test]
async fn a_put_without_a_password_takes_it_away() {
    let broker = Broker::start().await;
    broker.add_user("open", "management", &[]);
    assert_eq!(broker.send("PUT", "/api/users/open", r#"{"tags":"management"}"#).await.status, 204);
    assert_eq!(broker.call("GET", "/api/whoami", Some("open"), "").await.status, 401);
    assert_eq!(broker.get("/api/users/open").await.json()["password_hash"], "");
}

#[tokio::test]
async fn protected_users_stay_as_they_are() {
    let broker = Broker::start().await;
    broker.add_user("kept", "protected", &["/"]);
    let limit = broker.admin().set_user_limit("kept", "max-channels", 7);
    limit.expect("it is not over HTTP");
    broker.add_user("other", "", &[]);
    let reason = json!("Protected users cannot be modified via the HTTP API");
    for (method, body) in [("PUT", r#"{"tags":""}"#), ("DELETE", "")] {
        let answer = broker.send(method, "/api/users/kept", body).await;
        assert_eq!((answer.status, answer.refusal().1), (400, reason.clone()));
    }
    let permission = r#"{"configure":"","write":"","read":""}"#;
    let topic = r#"{"exchange":"amq.topic","write":"","read":""}"#;
    for (method, path, body) in [
        ("PUT", "/api/user-limits/kept/max-channels", r#"{"value":1}"#),
        ("DELETE", "/api/user-limits/kept/all", ""),
        ("PUT", "/api/permissions/%2F/kept", permission),
        ("DELETE", "/api/permissions/%2F/kept", ""),
        ("PUT", "/api/topic-permissions/%2F/kept", topic),
    ] {
        let answer = broker.send(method, path, body).await;
        assert_eq!((answer.status, answer.refusal().1), (400, reason.clone()), "{method} {path}");
    }
    let body = r#"{"users":["kept","other","stranger"]}"#;
    assert_eq!(broker.send("POST", "/api/users/bulk-delete", body).await.status, 204);
    assert_eq!(broker.get("/api/users/kept").await.status, 200);
    assert_eq!(broker.get("/api/users/other").await.status, 404);
}

#[tokio::test]
async fn more_tags_than_a_user_may_have_are_refused() {
    let broker = Broker::start().await;
    let tags: Vec<String> = (0..33).map(|nth| format!("t{nth}")).collect();
    let answer = broker.send("PUT", "/api/users/many", &json!({ "tags": tags }).to_string()).await;
    let reason = json!("A user can have at most 32 tags (received 33)");
    assert_eq!((answer.status, answer.refusal().1), (400, reason));
}

#[tokio::test]
async fn permissions_are_set_shown_and_taken_away() {
    let broker = Broker::start().await;
    broker.add_user("u", "", &[]);
    let path = "/api/permissions/%2F/u";
    let body = r#"{"configure":"^c","write":"^w","read":"^r"}"#;
    assert_eq!(broker.send("PUT", path, body).await.status, 201);
    assert_eq!(broker.send("PUT", path, body).await.status, 204);
    let row = json!({ "user": "u", "vhost": "/", "configure": "^c", "write": "^w", "read": "^r" });
    assert_eq!(broker.get(path).await.json(), row);
    assert_eq!(broker.get("/api/users/u/permissions").await.json(), json!([row]));
    let bad = broker.send("PUT", path, r#"{"configure":"(","write":"","read":""}"#).await;
    assert_eq!((bad.status, &bad.refusal().1[0]), (400, &json!("invalid_regexp")));
    assert_eq!(broker.send("DELETE", path, "").await.status, 204);
    assert_eq!(broker.send("DELETE", path, "").await.status, 404);
}

#[tokio::test]
async fn topic_permissions_are_lists_by_exchange() {
    let broker = Broker::start().await;
    broker.add_user("u", "", &["/"]);
    let path = "/api/topic-permissions/%2F/u";
    let body =
        |exchange: &str| json!({ "exchange": exchange, "write": "^a", "read": "^b" }).to_string();
    assert_eq!(broker.get(path).await.status, 404);
    assert_eq!(broker.send("PUT", path, &body("amq.topic")).await.status, 201);
    assert_eq!(broker.send("PUT", path, &body("other")).await.status, 204);
    assert_eq!(broker.get(path).await.json().as_array().map(Vec::len), Some(2));
    assert_eq!(broker.send("DELETE", &format!("{path}/other"), "").await.status, 204);
    let left = broker.get("/api/topic-permissions").await.json();
    assert_eq!(
        (left.as_array().map(Vec::len), &left[0]["exchange"]),
        (Some(1), &json!("amq.topic"))
    );
    assert_eq!(broker.send("DELETE", path, "").await.status, 204);
    assert_eq!(broker.get(path).await.status, 404);
    for gone in [path, "/api/topic-permissions/%2F/u/amq.topic", "/api/topic-permissions/no/u"] {
        assert_eq!(broker.send("DELETE", gone, "").await.status, 404, "{gone}");
    }
}

#[tokio::test]
async fn a_topic_permission_is_found_and_set_by_its_exchange_too() {
    let broker = Broker::start().await;
    broker.add_user("u", "", &["/"]);
    let path = |exchange: &str| format!("/api/topic-permissions/%2F/u/{exchange}");
    let body = r#"{"write":"^w","read":"^r"}"#;
    assert_eq!(broker.send("PUT", &path("one"), body).await.status, 201);
    assert_eq!(broker.send("PUT", &path("other"), body).await.status, 204);
    let expected = json!([
        { "user": "u", "vhost": "/", "exchange": "one", "write": "^w", "read": "^r" }
    ]);
    assert_eq!(broker.get(&path("one")).await.json(), expected);
    assert_eq!(broker.get(&path("none")).await.status, 404);
    let of_another = r#"{"exchange":"other","write":"","read":""}"#;
    assert_eq!(broker.send("PUT", &path("one"), of_another).await.status, 400);
    assert_eq!(broker.send("DELETE", &path("one"), "").await.status, 204);
    assert_eq!(broker.get(&path("one")).await.status, 404);
    assert_eq!(broker.get(&path("other")).await.status, 200);
}

#[tokio::test]
async fn user_limits_are_shown_to_their_user() {
    let broker = Broker::start().await;
    broker.add_user("u", "management", &[]);
    broker.add_user("other", "management", &[]);
    let path = "/api/user-limits/u/max-channels";
    assert_eq!(broker.send("PUT", path, r#"{"value":10}"#).await.status, 204);
    let expected = json!([{ "user": "u", "value": { "max-channels": 10 } }]);
    assert_eq!(broker.call("GET", "/api/user-limits/u", Some("u"), "").await.json(), expected);
    assert_eq!(broker.call("GET", "/api/user-limits/u", Some("other"), "").await.status, 401);
    assert_eq!(broker.get("/api/user-limits").await.json(), expected);
    let unknown = broker.send("PUT", "/api/user-limits/u/nosuch", r#"{"value":10}"#).await;
    let reason = json!("Unrecognised terms [{<<\"nosuch\">>,10}] in user-limits");
    assert_eq!((unknown.status, unknown.refusal().1), (400, reason));
    assert_eq!(broker.send("DELETE", "/api/user-limits/u/all", "").await.status, 204);
    assert_eq!(broker.get("/api/user-limits").await.json(), json!([]));
}

#[tokio::test]
async fn tags_are_changed_and_the_password_stays() {
    let broker = Broker::start().await;
    broker.add_user("mia", "", &["/"]);
    let answer = broker.send("PUT", "/api/users/mia/tags", r#"{"tags":["management","x"]}"#).await;
    assert_eq!(answer.status, 204);
    let whoami = broker.call("GET", "/api/whoami", Some("mia"), "").await;
    assert_eq!(whoami.json()["tags"], json!(["management", "x"]));
    let answer = broker.send("PUT", "/api/users/unknown/tags", r#"{"tags":[]}"#).await;
    assert_eq!(answer.status, 404);
}

#[tokio::test]
async fn the_password_is_changed_and_the_tags_stay() {
    let broker = Broker::start().await;
    broker.add_user("mia", "management", &["/"]);
    let path = "/api/users/mia/password";
    assert_eq!(broker.send("PUT", path, r#"{"password":"other"}"#).await.status, 204);
    let whoami = broker.call_with("GET", "/api/whoami", Some("mia:other"), &[], b"").await;
    assert_eq!(whoami.json()["tags"], json!(["management"]));
    assert_eq!(broker.send("PUT", path, r#"{"password_hash":""}"#).await.status, 204);
    let refused = broker.call_with("GET", "/api/whoami", Some("mia:other"), &[], b"").await;
    assert_eq!(refused.status, 401);
    assert_eq!(broker.send("PUT", path, r#"{"tags":""}"#).await.status, 400);
    let unknown = broker.send("PUT", "/api/users/unknown/password", r#"{"password":"x"}"#).await;
    assert_eq!(unknown.status, 404);
}

#[tokio::test]
async fn a_user_that_is_to_be_new_takes_no_other_over() {
    let broker = Broker::start().await;
    let new = async |name: &str| {
        let (path, body) = (format!("/api/users/{name}"), br#"{"password":"new","tags":""}"#);
        broker.call_with("PUT", &path, Some("guest:guest"), &[("if-none-match", "*")], body).await
    };
    broker.add_user("mia", "management", &["/"]);
    let refused = new("mia").await;
    assert_eq!(refused.status, 412);
    assert_eq!(refused.refusal().1, "user 'mia' exists already");
    assert_eq!(broker.call("GET", "/api/whoami", Some("mia"), "").await.status, 200);
    assert_eq!(new("leo").await.status, 201);
}

#[tokio::test]
async fn what_is_not_said_of_a_user_stays_as_it_is() {
    let direct = Direct::new();
    direct.add_user("root", "administrator");
    let headers = &[("content-type", "application/json")];
    let send = async |method: &str, path: &str, body: &str| {
        let asked = Asked { headers, body, ..Asked::new(method, path) };
        let answer = direct.ask(asked.by("root")).await;
        assert_eq!(answer.status, 204, "{method} {path} {body}: {answer:?}");
    };
    let row = |more: Value| {
        let mut user = json!({ "name": "lo", "password_hash": "", "tags": ["administrator"] });
        user.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("one"));
        json!({ "users": [user] }).to_string()
    };
    let first = row(json!({ "loopback_only": true, "limits": { "max-channels": 5 } }));
    send("POST", "/api/definitions", &first).await;
    send("PUT", "/api/users/lo/tags", r#"{"tags":"monitoring"}"#).await;
    send("PUT", "/api/users/lo", r#"{"password_hash":"","tags":"administrator"}"#).await;
    send("PUT", "/api/user-limits/lo/max-connections", r#"{"value":6}"#).await;
    send("POST", "/api/definitions", &row(json!({}))).await;
    let accounts = direct.broker.admin().accounts();
    let user = accounts.user("lo").expect("a user");
    assert!(user.loopback_only);
    assert!(user.limits.iter().eq([("max-connections", 6), ("max-channels", 5)]));
    send("POST", "/api/definitions", &row(json!({ "loopback_only": false }))).await;
    assert!(!direct.broker.admin().accounts().user("lo").expect("a user").loopback_only);
}

#[tokio::test]
async fn a_vhost_is_opened_to_who_makes_it_and_not_to_who_changes_it() {
    let broker = Broker::start().await;
    let (vhost, permission) = ("/api/vhosts/v", "/api/permissions/v/guest");
    assert_eq!(broker.send("PUT", vhost, "{}").await.status, 201);
    assert_eq!(broker.get(permission).await.status, 200);
    // As where all users of a vhost come with tokens, or none is to enter it any more.
    assert_eq!(broker.send("DELETE", permission, "").await.status, 204);
    assert_eq!(broker.send("PUT", vhost, r#"{"description":"new"}"#).await.status, 204);
    assert_eq!(broker.get(permission).await.status, 404);
}
