//! Definitions: what is exported can be imported.

use crate::support::{Answer, Broker};
use courser_auth::Hashing;
use serde_json::{Value, json};

pub async fn import(broker: &Broker, path: &str, document: &Value) -> Answer {
    let headers = [("content-type", "application/json")];
    let body = document.to_string();
    broker.call_with("POST", path, Some("guest:guest"), &headers, body.as_bytes()).await
}

/// A bit of everything, as RabbitMQ writes it: empty objects as lists, too.
pub fn sample() -> Value {
    json!({
        "rabbit_version": "4.3.6",
        "users": [{
            "name": "app", "password_hash": "9ntkcPhKjJ8pzMXrMYF+8or5CufmJmBMOGieCDECDYQw0CPb",
            "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ["management"],
            "limits": { "max-connections": 5 },
        }],
        "vhosts": [{ "name": "/", "limits": [], "metadata": { "description": "the usual", "tags": ["a"] } }, { "name": "other", "limits": { "max-queues": 9 } }],
        "permissions": [{ "user": "app", "vhost": "other", "configure": "", "write": ".*", "read": "^r" }],
        "topic_permissions": [{ "user": "app", "vhost": "other", "exchange": "x", "write": "^a", "read": ".*" }],
        "global_parameters": [{ "name": "cluster_tags", "value": [] }],
        "parameters": [{
            "component": "federation-upstream", "vhost": "other", "name": "up",
            "value": { "uri": "amqp://127.0.0.1" },
        }, {
            "component": "operator_policy", "vhost": "other", "name": "op",
            "value": { "pattern": "^q", "apply-to": "queues", "definition": { "max-length": 500 }, "priority": 0 },
        }],
        "policies": [{
            "vhost": "other", "name": "p", "pattern": "^q", "apply-to": "queues",
            "definition": { "max-length": 5 }, "priority": 1,
        }],
        "exchanges": [
            { "name": "x", "vhost": "other", "type": "topic", "durable": true, "auto_delete": false, "arguments": [] },
            { "name": "amq.reserved", "vhost": "other", "type": "topic", "durable": true, "auto_delete": false, "arguments": {} },
        ],
        "queues": [{
            "name": "q", "vhost": "other", "type": "classic", "durable": true, "auto_delete": false,
            "arguments": { "x-message-ttl": 600000, "x-queue-type": "classic" },
        }],
        "bindings": [{
            "source": "x", "vhost": "other", "destination": "q", "destination_type": "queue",
            "routing_key": "a.#", "arguments": { "k": "v" },
        }],
    })
}

#[tokio::test]
async fn what_is_imported_is_there_and_exported_again() {
    let broker = Broker::start().await;
    assert_eq!(import(&broker, "/api/definitions", &sample()).await.status, 204);
    let queue = broker.get("/api/queues/other/q").await.json();
    assert_eq!((&queue["policy"], &queue["operator_policy"]), (&json!("p"), &json!("op")));
    let exported = broker.get("/api/definitions").await.json();
    for list in ["queues", "bindings", "policies"] {
        assert_eq!(exported[list], sample()[list], "{list}");
    }
    assert_eq!(exported["global_parameters"], sample()["global_parameters"]);
    let up =
        exported["parameters"].as_array().expect("a list").iter().find(|one| one["name"] == "up");
    assert_eq!(up, Some(&sample()["parameters"][0]));
    let usual = broker.get("/api/vhosts/%2F").await.json();
    assert_eq!((&usual["description"], &usual["tags"]), (&json!("the usual"), &json!(["a"])));
    assert_eq!(exported["exchanges"].as_array().map(Vec::len), Some(1));
    assert_eq!(exported["topic_permissions"], sample()["topic_permissions"]);
    let users = exported["users"].as_array().expect("users");
    let app = users.iter().find(|user| user["name"] == "app").expect("the user");
    assert_eq!(app, &sample()["users"][0]);
    let guest = users.iter().find(|user| user["name"] == "guest").expect("the user");
    let algorithm = guest["hashing_algorithm"].as_str().expect("a name");
    assert!(!algorithm.starts_with("rabbit_"), "argon2 under a foreign name: {guest}");

    let second = Broker::start().await;
    assert_eq!(import(&second, "/api/definitions", &exported).await.status, 204);
    assert_eq!(second.get("/api/definitions").await.json(), exported);
    assert_eq!(import(&second, "/api/definitions", &exported).await.status, 204, "and once more");
}

#[tokio::test]
async fn a_vhost_is_exported_without_its_name_and_imported_into_another() {
    let broker = Broker::start().await;
    import(&broker, "/api/definitions", &sample()).await;
    let exported = broker.get("/api/definitions/other").await.json();
    assert!(exported.get("users").is_none() && exported["queues"][0].get("vhost").is_none());
    assert_eq!(exported["limits"], json!({ "max-queues": 9 }));
    broker.send("PUT", "/api/vhosts/third", "").await;
    assert_eq!(import(&broker, "/api/definitions/third", &exported).await.status, 204);
    let mut again = broker.get("/api/definitions/third").await.json();
    let mut first = exported.clone();
    for document in [&mut again, &mut first] {
        document["explanation"] = Value::Null;
        document["original_vhost_name"] = Value::Null;
    }
    assert_eq!(again, first);
    assert_eq!(import(&broker, "/api/definitions/none", &exported).await.status, 404);
    let none = broker.get("/api/definitions/none").await;
    assert_eq!((none.status, none.refusal().1), (400, json!("vhost_not_found")));
}

#[tokio::test]
async fn what_can_not_be_imported_is_named() {
    let broker = Broker::start().await;
    let queue =
        json!({ "queues": [{ "name": "q", "vhost": "nov", "durable": true, "arguments": {} }] });
    let answer = import(&broker, "/api/definitions", &queue).await;
    let reason = json!("Please create virtual host \"nov\" prior to importing definitions.");
    assert_eq!((answer.status, answer.refusal().1), (400, reason));
    for (document, part) in [
        (json!({ "users": [{ "name": "u", "password_hash": "!" }] }), "'u'"),
        (
            json!({ "users": [{ "name": "u", "password": "p", "password_hash": "" }] }),
            "user 'u': both_password_and_password_hash_are_provided",
        ),
        (json!({ "users": [{ "name": "u", "password": 5 }] }), "user 'u': its password is no text"),
        (json!({ "users": {} }), "users is no list"),
        (json!({ "queues": [{ "vhost": "/" }] }), "'name'"),
        (json!({ "global_parameters": [{ "name": "empty" }] }), "'empty'"),
        (json!({ "vhosts": [{ "name": "v", "metadata": { "tags": 1 } }] }), "tags"),
        (
            json!({ "parameters": [{
                "component": "policy", "vhost": "/", "name": "p", "value": {},
            }] }),
            "/api/policies",
        ),
        (json!({ "exchanges": [{ "name": "x", "vhost": "/", "type": "nosuch" }] }), "'nosuch'"),
        (
            json!({ "bindings": [{
                "source": "none", "vhost": "/", "destination": "q", "destination_type": "wall",
                "routing_key": "", "arguments": {},
            }] }),
            "'wall' is no type of destination",
        ),
    ] {
        let answer = import(&broker, "/api/definitions", &document).await;
        let reason = answer.refusal().1.as_str().expect("a text").to_owned();
        assert!(answer.status == 400 && reason.contains(part), "{document}: {reason}");
    }
    let headers = [("content-type", "application/json")];
    let broken =
        broker.call_with("POST", "/api/definitions", Some("guest:guest"), &headers, b"{").await;
    assert_eq!((broken.status, broken.refusal().1), (400, json!("failed_to_parse_json")));
    assert_eq!(broker.send("POST", "/api/definitions", "{}").await.status, 415);
}

#[tokio::test]
async fn a_policy_with_too_large_a_definition_is_refused_and_with_too_long_a_pattern_left_out() {
    let broker = Broker::start().await;
    let definition = json!({ "dead-letter-exchange": "x".repeat(256) });
    let document = json!({ "policies": [
        { "vhost": "/", "name": "long", "pattern": "a".repeat(4097), "definition": { "expires": 1 } },
        { "vhost": "/", "name": "wordy", "pattern": "a", "definition": definition },
    ] });
    let plan = import(&broker, "/api/definitions?dry_run=true", &document).await.json();
    assert_eq!((&plan["refuse_count"], &plan["create_count"]), (&json!(1), &json!(0)), "{plan}");
    let because = &plan["skip"][0]["because"];
    assert_eq!(because, "policy 'long': pattern has 4097 bytes, and may have 4096");
    let answer = import(&broker, "/api/definitions", &document).await;
    let reason = "policy 'wordy': definition.dead-letter-exchange has more than 255 bytes";
    assert_eq!((answer.status, answer.refusal().1), (400, json!(reason)));
}

#[tokio::test]
async fn an_import_over_http_leaves_protected_users_as_they_are() {
    let broker = Broker::start().await;
    broker.add_user("kept", "protected,administrator", &["/"]);
    let before = broker.get("/api/definitions").await.json();
    let hash = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";
    let rows = [
        json!({ "users": [{ "name": "kept", "password_hash": hash, "tags": "administrator" }] }),
        json!({ "users": [{ "name": "kept", "password": "mine", "tags": "protected,administrator" }] }),
        json!({ "permissions": [{
            "user": "kept", "vhost": "/", "configure": "", "write": "", "read": "",
        }] }),
        json!({ "topic_permissions": [{
            "user": "kept", "vhost": "/", "exchange": "amq.topic", "write": "", "read": "",
        }] }),
    ];
    let reason = "'kept': Protected users cannot be modified via the HTTP API";
    for document in &rows {
        let plan = import(&broker, "/api/definitions?dry_run=true", document).await.json();
        assert_eq!(plan["refuse_count"], 1, "{plan}");
        let answer = import(&broker, "/api/definitions", document).await;
        let said = answer.refusal().1.as_str().expect("a text").to_owned();
        assert!(answer.status == 400 && said.ends_with(reason), "{said}");
    }
    let same = import(&broker, "/api/definitions", &before).await;
    assert_eq!(same.status, 204, "what changes nothing is no change");
    assert_eq!(broker.get("/api/definitions").await.json()["users"], before["users"]);
    let at_start = rows[0].to_string();
    courser_management::import(&broker.admin(), at_start.as_bytes(), Hashing::RabbitSha256, 1)
        .expect("a file at the start may");
    assert_eq!(broker.get("/api/users/kept").await.json()["tags"], json!(["administrator"]));
}

#[tokio::test]
async fn a_form_with_a_file_is_imported() {
    let broker = Broker::start().await;
    let headers = [("content-type", "multipart/form-data; boundary=b")];
    let body = "--b\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\n\
                {\"vhosts\":[{\"name\":\"formed\"}]}\r\n--b--\r\n";
    let login = Some("guest:guest");
    let answer =
        broker.call_with("POST", "/api/definitions", login, &headers, body.as_bytes()).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(broker.get("/api/vhosts/formed").await.status, 200);
}

#[tokio::test]
async fn a_form_with_a_longer_boundary_than_there_may_be_is_refused() {
    let broker = Broker::start().await;
    for (length, status) in [(70, 204), (71, 400)] {
        let boundary = "b".repeat(length);
        let kind = format!("multipart/form-data; boundary={boundary}");
        let body = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=file\r\n\r\n{{}}\r\n--{boundary}--"
        );
        let (login, headers) = (Some("guest:guest"), [("content-type", kind.as_str())]);
        let asking = broker.call_with("POST", "/api/definitions", login, &headers, body.as_bytes());
        assert_eq!(asking.await.status, status, "{length}");
    }
}

#[tokio::test]
async fn who_has_the_same_definitions_is_told_so() {
    let broker = Broker::start().await;
    let first = broker.get("/api/definitions?download=mine.json").await;
    assert_eq!(first.headers["content-disposition"], "attachment; filename=\"mine.json\"");
    let tag = first.headers["etag"].clone();
    let headers = [("if-none-match", tag.as_str())];
    let login = Some("guest:guest");
    let same = broker.call_with("GET", "/api/definitions", login, &headers, b"").await;
    assert_eq!((same.status, same.body.len()), (304, 0));
    broker.send("PUT", "/api/queues/%2F/new", "{}").await;
    let other = broker.call_with("GET", "/api/definitions", login, &headers, b"").await;
    assert_eq!(other.status, 200);
    assert_ne!(other.headers["etag"], tag);
}

#[tokio::test]
async fn a_dry_run_says_what_an_import_would_change_and_changes_nothing() {
    let broker = Broker::start().await;
    broker.send("PUT", "/api/queues/%2F/there", "{\"durable\": true}").await;
    let own = broker.get("/api/definitions").await.body;
    let headers = [("content-type", "application/json")];
    let (path, login) = ("/api/definitions?dry_run=true", Some("guest:guest"));
    let same = broker.call_with("POST", path, login, &headers, &own).await.json();
    for sort in ["create", "change", "keep", "refuse", "skip"] {
        assert_eq!(same[sort], serde_json::json!([]), "{sort}: {same}");
    }
    assert!(same["same_count"].as_u64().is_some_and(|count| count >= 3), "{same}");
    let text = br#"{"queues":[{"name":"new","vhost":"/","durable":true},{"name":"there","vhost":"/","durable":false}]}"#;
    let plan = broker.call_with("POST", path, login, &headers, text).await.json();
    assert_eq!(
        (&plan["create"][0]["row"]["name"], &plan["keep"][0]["row"]["name"]),
        (&"new".into(), &"there".into())
    );
    assert_eq!(broker.get("/api/queues/%2F/new").await.status, 404);
    let text = br#"{"queues":[{"name":"new","durable":true}]}"#;
    let path = "/api/definitions/%2F?dry_run=true";
    let plan = broker.call_with("POST", path, login, &headers, text).await.json();
    assert_eq!((&plan["create_count"], &plan["refuse_count"]), (&1.into(), &0.into()));
    // Who mistypes it does not want it to be done.
    for mistyped in ["dryrun=true", "dry-run", "dry_run=yes", "dry_run=1"] {
        let path = format!("/api/definitions/%2F?{mistyped}");
        let refused = broker.call_with("POST", &path, login, &headers, text).await;
        assert_eq!(refused.status, 400, "{mistyped}");
    }
    let path = "/api/definitions/%2F?dry_run";
    let plan = broker.call_with("POST", path, login, &headers, text).await.json();
    assert_eq!(plan["create_count"], 1);
    assert_eq!(broker.get("/api/queues/%2F/new").await.status, 404);
}

#[tokio::test]
async fn limits_among_the_parameters_are_all_that_a_vhost_has() {
    let broker = Broker::start().await;
    let limit = |name: &str| format!("/api/vhost-limits/%2F/{name}");
    broker.send("PUT", &limit("max-connections"), r#"{"value":10}"#).await;
    broker.send("PUT", &limit("max-queues"), r#"{"value":20}"#).await;
    let given = |value| json!({ "vhost": "/", "component": "vhost-limits", "name": "limits", "value": value });
    for (value, left) in [
        (json!({ "max-queues": 5 }), json!([{ "vhost": "/", "value": { "max-queues": 5 } }])),
        (json!({}), json!([])),
    ] {
        let document = json!({ "parameters": [given(value)] });
        assert_eq!(import(&broker, "/api/definitions", &document).await.status, 204);
        assert_eq!(broker.get("/api/vhost-limits").await.json(), left);
    }
}

#[tokio::test]
async fn a_password_in_clear_is_hashed_and_never_shown() {
    let broker = Broker::start().await;
    let users =
        json!({ "users": [{ "name": "typed", "password": "in clear", "tags": "management" }] });
    let tried = import(&broker, "/api/definitions?dry_run=true", &users).await;
    assert_eq!(tried.json()["create"][0]["row"], json!({ "name": "typed" }));
    assert_eq!(import(&broker, "/api/definitions", &users).await.status, 204);
    let whoami = broker.call_with("GET", "/api/whoami", Some("typed:in clear"), &[], b"").await;
    assert_eq!(whoami.status, 200, "{whoami:?}");
    // It is another hash each time, whatever it is of.
    let tried = import(&broker, "/api/definitions?dry_run=true", &users).await;
    assert_eq!(tried.json()["change"][0]["after"], json!({ "password": "another" }));
    for path in ["/api/definitions", "/api/users"] {
        let shown = broker.get(path).await.json().to_string();
        assert!(!shown.contains("in clear") && shown.contains("typed"), "{path}: {shown}");
    }
    assert!(!tried.json().to_string().contains("in clear"));
}

#[tokio::test]
async fn what_an_import_refuses_a_dry_run_refuses_with_the_same_words() {
    let broker = Broker::start().await;
    let (long, large) = ("n".repeat(256), "x".repeat(33_000));
    let queue = |name: &str, arguments: Value| json!({ "queues": [{ "name": name, "vhost": "/", "durable": true, "arguments": arguments }] });
    let binding = |key: &str, arguments: Value| json!({ "bindings": [{ "source": "amq.topic", "vhost": "/", "destination": "amq.topic", "destination_type": "exchange", "routing_key": key, "arguments": arguments }] });
    let exchange = |name: &str, arguments: Value| json!({ "exchanges": [{ "name": name, "vhost": "/", "type": "direct", "arguments": arguments }] });
    let topic = |exchange: &str, write: &str| json!({ "topic_permissions": [{ "user": "guest", "vhost": "/", "exchange": exchange, "write": write, "read": "" }] });
    for document in [
        json!({ "users": [{ "name": long, "tags": [] }] }),
        json!({ "users": [{ "name": "", "tags": [] }] }),
        json!({ "vhosts": [{ "name": long }] }),
        json!({ "vhosts": [{ "name": "v", "limits": { "max-queues": "x" } }] }),
        json!({ "vhosts": [{ "name": "v", "metadata": { "default_queue_type": "x" } }] }),
        topic(&long, ".*"),
        topic("amq.topic", "("),
        json!({ "global_parameters": [{ "name": long, "value": 1 }] }),
        json!({ "global_parameters": [{ "name": "x" }] }),
        json!({ "parameters": [{ "vhost": "/", "component": "federation-upstream-set", "name": long, "value": {} }] }),
        json!({ "parameters": [{ "vhost": "/", "component": "vhost-limits", "name": "limits", "value": { "no": 1 } }] }),
        exchange(&long, json!({})),
        exchange("a\nb", json!({})),
        exchange("e", json!({ "alternate-exchange": 5 })),
        queue(&long, json!({})),
        queue("", json!({})),
        queue("q", json!({ "x-max-length": -1 })),
        queue("q", json!({ "x-queue-type": "stream", "x-max-priority": 5 })),
        queue("q", json!({ "x-queue-type": "quorum", "x-delayed-retry-type": "some" })),
        queue("q", json!({ "x-queue-type": "quorum", "x-delayed-retry-min": 0 })),
        queue("q", json!({ "x-queue-type": "classic", "x-delayed-retry-max": 1 })),
        queue("q", json!({ "x-queue-type": "quorum", "x-consumer-disconnected-timeout": -1 })),
        json!({ "exchanges": [{ "name": "e", "vhost": "/", "type": "x-jms-topic" }] }),
        json!({ "queues": [{ "name": "q", "vhost": "/", "type": "quorum", "durable": false }] }),
        queue("q", json!({ "a": large })),
        exchange("e", json!({ "a": large })),
        binding(&long, json!({})),
        binding("k", json!({ "a": large })),
    ] {
        let planned = import(&broker, "/api/definitions?dry_run=true", &document).await.json();
        assert_eq!(planned["refuse_count"], 1, "{document}: {planned}");
        let because = planned["refuse"][0]["because"].as_str().expect("a reason");
        let refused = import(&broker, "/api/definitions", &document).await;
        assert_eq!((refused.status, refused.json()["reason"].as_str()), (400, Some(because)));
    }
}

#[tokio::test]
async fn a_queue_without_a_type_is_checked_as_the_type_of_its_vhost() {
    let broker = Broker::start().await;
    let document = json!({
        "vhosts": [{ "name": "v", "metadata": { "default_queue_type": "quorum" } }],
        "queues": [
            { "name": "q", "vhost": "v", "durable": true, "arguments": { "x-delivery-limit": 5 } },
            { "name": "p", "vhost": "v", "durable": true, "arguments": { "x-max-priority": 5 } },
        ],
    });
    let planned = import(&broker, "/api/definitions?dry_run=true", &document).await.json();
    let refused: Vec<&Value> = planned["refuse"].as_array().expect("a list").iter().collect();
    let created = planned["create_count"].as_u64().expect("a number");
    let done = import(&broker, "/api/definitions", &document).await;
    match refused[..] {
        [] => assert_eq!((created, done.status), (3, 204)),
        [one] => {
            assert_eq!(one["row"]["name"], "p", "{planned}");
            assert_eq!(done.json()["reason"], one["because"]);
        }
        _ => panic!("{planned}"),
    }
    assert_eq!(broker.get("/api/queues/v/q").await.json()["type"], "quorum");
}
