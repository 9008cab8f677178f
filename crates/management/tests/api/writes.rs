//! Making, changing and deleting things.

use crate::support::Broker;
use courser_auth::Permission;
use serde_json::json;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

#[tokio::test]
async fn a_queue_is_made_once_and_found_again() {
    let broker = Broker::start().await;
    let body = r#"{"durable":"true","auto_delete":"false","arguments":{"x-max-length":5},"name":"q","vhost":"/"}"#;
    assert_eq!(broker.send("PUT", "/api/queues/%2F/q", body).await.status, 201);
    let again = broker.send("PUT", "/api/queues/%2F/q", body).await;
    assert_eq!((again.status, again.body.len()), (204, 0));
    let queue = broker.get("/api/queues/%2F/q").await.json();
    assert_eq!((&queue["durable"], &queue["arguments"]["x-max-length"]), (&json!(true), &json!(5)));
    let other = broker.send("PUT", "/api/queues/%2F/q", r#"{"durable":false}"#).await;
    assert_eq!(other.status, 400);
    let (error, reason) = other.refusal();
    let reason = reason.as_str().expect("a text").to_owned();
    assert!(error == "bad_request" && reason.starts_with("inequivalent arg"), "{reason}");
    assert_eq!(broker.send("DELETE", "/api/queues/%2F/q?if-empty=true", "").await.status, 204);
    assert_eq!(broker.send("DELETE", "/api/queues/%2F/q", "").await.status, 404);
}

#[tokio::test]
async fn what_is_wrong_with_a_body_is_said() {
    let broker = Broker::start().await;
    for (path, body, reason) in [
        ("/api/queues/%2F/q", r#"{"durable":"maybe"}"#, json!(["not_boolean", "maybe"])),
        ("/api/queues/%2F/q", "{", json!("not_json")),
        (
            "/api/queues/%2F/q",
            r#"{"node":"rabbit@zz"}"#,
            json!("Node rabbit@zz is not a cluster member"),
        ),
        ("/api/exchanges/%2F/x", r#"{"type":"nosuch"}"#, json!("unknown exchange type 'nosuch'")),
        ("/api/users/u", "{}", json!("tags_not_present")),
        (
            "/api/users/u",
            r#"{"tags":"","password":"a","password_hash":"b"}"#,
            json!("both_password_and_password_hash_are_provided"),
        ),
        (
            "/api/permissions/%2F/guest",
            r#"{"configure":""}"#,
            json!("[{key_missing,write},{key_missing,read}]"),
        ),
        (
            "/api/permissions/none/guest",
            r#"{"configure":"","write":"","read":""}"#,
            json!("vhost_or_user_not_found"),
        ),
        (
            "/api/policies/%2F/p",
            r#"{"pattern":"x","definition":{}}"#,
            json!("Validation failed\n\nno policy provided\n"),
        ),
        (
            "/api/user-limits/nouser/max-channels",
            r#"{"value":1}"#,
            json!(["no_such_user", "nouser"]),
        ),
        (
            "/api/vhost-limits/%2F/max-queues",
            r#"{"value":"x"}"#,
            json!("Validation failed\n\nmax-queues should be a number, actually was <<\"x\">>\n"),
        ),
    ] {
        let answer = broker.send("PUT", path, body).await;
        assert_eq!(answer.status, 400, "{path} {body}");
        assert_eq!(answer.refusal(), ("bad_request".to_owned(), reason), "{path} {body}");
    }
    let long = json!({ "pattern": "a".repeat(4097), "definition": { "max-length": 1 } });
    let answer = broker.send("PUT", "/api/policies/%2F/p", &long.to_string()).await;
    let reason = json!("Validation failed\n\npattern has 4097 bytes, and may have 4096\n");
    assert_eq!((answer.status, answer.refusal().1), (400, reason));
    let unknown = broker.send("PUT", "/api/queues/none/q", "{}").await;
    assert_eq!((unknown.status, unknown.refusal().1), (404, json!("vhost_not_found")));
}

#[tokio::test]
async fn exchanges_and_bindings_come_and_go() {
    let broker = Broker::start().await;
    broker.send("PUT", "/api/queues/%2F/q", "{}").await;
    let made =
        broker.send("PUT", "/api/exchanges/%2F/x", r#"{"type":"topic","durable":true}"#).await;
    assert_eq!(made.status, 201);
    let body = r#"{"routing_key":"a.#","arguments":{"k":"v"},"source":"x"}"#;
    let bound = broker.send("POST", "/api/bindings/%2F/e/x/q/q", body).await;
    assert_eq!((bound.status, bound.body.len()), (201, 0));
    let location = &bound.headers["location"];
    assert!(location.starts_with("q/a.%2523~"), "{location}");
    let path = format!("/api/bindings/%2F/e/x/q/{location}");
    assert_eq!(broker.get(&path).await.json()["routing_key"], "a.#");
    assert_eq!(broker.send("DELETE", &path, "").await.status, 204);
    assert_eq!(broker.send("DELETE", &path, "").await.status, 404);
    let missing = broker.send("POST", "/api/bindings/%2F/e/x/q/nope", "{}").await;
    assert_eq!((missing.status, missing.refusal().1), (404, json!("no queue 'nope' in vhost '/'")));
    let default = broker.send("POST", "/api/bindings/%2F/e//q/q", "{}").await;
    assert_eq!((default.status, default.refusal().1), (401, json!("Access refused.")));
    let predefined = broker.send("DELETE", "/api/exchanges/%2F/amq.topic", "").await;
    assert_eq!((predefined.status, predefined.refusal().1), (401, json!("Access refused.")));
    let large = format!(r#"{{"routing_key":"{}"}}"#, "x".repeat(6000));
    let refused = broker.send("POST", "/api/bindings/%2F/e/x/q/q", &large).await;
    assert_eq!((refused.status, refused.refusal().1), (400, json!("Payload size limit exceeded")));
    assert_eq!(broker.send("DELETE", "/api/exchanges/%2F/x", "").await.status, 204);
}

#[tokio::test]
async fn permissions_count_for_administrators_too() {
    let broker = Broker::start().await;
    broker.add_user("boss", "administrator", &[]);
    let none = broker.call("PUT", "/api/queues/%2F/q", Some("boss"), "{}").await;
    assert_eq!((none.status, none.refusal().1), (401, json!("Access refused.")));
    let some = Permission { configure: "^c-".into(), write: "^w-".into(), read: "^r-".into() };
    broker.admin().set_permission("boss", "/", some).expect("a permission");
    let made = broker.call("PUT", "/api/queues/%2F/c-q", Some("boss"), "{}").await;
    assert_eq!(made.status, 201);
    let dead = r#"{"arguments":{"x-dead-letter-exchange":"w-x"}}"#;
    let refused = broker.call("PUT", "/api/queues/%2F/c-dead", Some("boss"), dead).await;
    assert_eq!(refused.status, 401, "it may not read from its own queue");
    let purge = broker.call("DELETE", "/api/queues/%2F/c-q/contents", Some("boss"), "").await;
    assert_eq!(purge.status, 401);
    let get = r#"{"count":1,"ackmode":"ack_requeue_true","encoding":"auto"}"#;
    let get = broker.call("POST", "/api/queues/%2F/c-q/get", Some("boss"), get).await;
    let said = "ACCESS_REFUSED - read access to queue 'c-q' in vhost '/' refused for user 'boss'";
    assert_eq!((get.status, get.refusal().1), (401, json!(said)));
    let publish = r#"{"routing_key":"","properties":{},"payload":"","payload_encoding":"string"}"#;
    let publish =
        broker.call("POST", "/api/exchanges/%2F/amq.fanout/publish", Some("boss"), publish).await;
    let said = "403 ACCESS_REFUSED - write access to exchange 'amq.fanout' in vhost '/' refused for user 'boss'";
    assert_eq!((publish.status, publish.refusal().1), (400, json!(said)));
}

#[tokio::test]
async fn limits_and_policies_are_set_and_lifted() {
    let broker = Broker::start().await;
    let set = broker.send("PUT", "/api/vhost-limits/%2F/max-queues", r#"{"value":100}"#).await;
    assert_eq!(set.status, 204);
    broker.send("PUT", "/api/vhost-limits/%2F/max-connections", r#"{"value":7}"#).await;
    let limits = broker.get("/api/vhost-limits/%2F").await.json();
    let expected = json!([{ "vhost": "/", "value": { "max-queues": 100, "max-connections": 7 } }]);
    assert_eq!(limits, expected);
    assert_eq!(broker.send("DELETE", "/api/vhost-limits/%2F/max-queues", "").await.status, 204);
    broker.send("DELETE", "/api/vhost-limits/%2F/max-connections", "").await;
    assert_eq!(broker.get("/api/vhost-limits").await.json(), json!([]));
    let body = r#"{"pattern":"^q","definition":{"max-length":5},"apply-to":"queues","priority":2}"#;
    assert_eq!(broker.send("PUT", "/api/policies/%2F/p", body).await.status, 201);
    assert_eq!(broker.send("PUT", "/api/policies/%2F/p", body).await.status, 204);
    assert_eq!(broker.send("PUT", "/api/operator-policies/%2F/o", body).await.status, 201);
    assert_eq!(broker.get("/api/policies").await.json()[0]["priority"], 2);
    assert_eq!(broker.send("DELETE", "/api/policies/%2F/p", "").await.status, 204);
    assert_eq!(broker.send("DELETE", "/api/policies/%2F/p", "").await.status, 404);
    let bad = r#"{"pattern":"^q","definition":{"max-length":5},"apply-to":"nosuch"}"#;
    let bad = broker.send("PUT", "/api/policies/%2F/p", bad).await;
    let said = "Validation failed\n\napply-to 'nosuch' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'\n";
    assert_eq!((bad.status, bad.refusal().1), (400, json!(said)));
}

#[tokio::test]
async fn a_vhost_is_made_for_who_makes_it_and_deleted_with_all_in_it() {
    let broker = Broker::start().await;
    assert_eq!(broker.send("PUT", "/api/vhosts/a%2Fb", "").await.status, 201);
    assert_eq!(broker.send("PUT", "/api/vhosts/a%2Fb", r#"{"description":""}"#).await.status, 204);
    assert_eq!(broker.get("/api/vhosts/a%2Fb").await.json()["name"], "a/b");
    assert_eq!(broker.send("PUT", "/api/queues/a%2Fb/q", "{}").await.status, 201);
    let kept = broker.send("PUT", "/api/vhosts/c", r#"{"default_queue_type":"nosuch"}"#).await;
    assert_eq!((kept.status, kept.refusal().1), (400, json!("nosuch is not a valid queue type")));
    assert_eq!(broker.send("DELETE", "/api/vhosts/a%2Fb", "").await.status, 204);
    assert_eq!(broker.get("/api/queues/a%2Fb").await.status, 404);
    assert_eq!(broker.send("DELETE", "/api/vhosts/a%2Fb", "").await.status, 404);
}

#[tokio::test]
async fn what_is_said_of_a_vhost_is_kept_until_something_else_is_said() {
    let broker = Broker::start().await;
    let body =
        r#"{"description":"orders","tags":"a, b","default_queue_type":"quorum","tracing":true}"#;
    assert_eq!(broker.send("PUT", "/api/vhosts/v", body).await.status, 201);
    let vhost = broker.get("/api/vhosts/v").await.json();
    let metadata =
        json!({ "description": "orders", "tags": ["a", "b"], "default_queue_type": "quorum" });
    assert_eq!((&vhost["metadata"], &vhost["tracing"]), (&metadata, &json!(true)));
    broker.send("PUT", "/api/queues/v/q", r#"{"durable":true}"#).await;
    assert_eq!(broker.get("/api/queues/v/q").await.json()["type"], "quorum");
    assert_eq!(broker.send("PUT", "/api/vhosts/v", "{}").await.status, 204);
    assert_eq!(broker.get("/api/vhosts/v").await.json()["metadata"], metadata);
    let nothing = r#"{"description":"","tags":[],"default_queue_type":"classic"}"#;
    assert_eq!(broker.send("PUT", "/api/vhosts/v", nothing).await.status, 204);
    let vhost = broker.get("/api/vhosts/v").await.json();
    assert_eq!((&vhost["description"], &vhost["tags"]), (&json!(""), &json!([])));
    assert_eq!(vhost["default_queue_type"], json!("classic"));
    assert_eq!(vhost["tracing"], json!(true));
    let refused = broker.send("PUT", "/api/vhosts/v", r#"{"default_queue_type":"nosuch"}"#).await;
    assert_eq!(refused.refusal().1, json!("nosuch is not a valid queue type"));
    let protection = "/api/vhosts/v/deletion/protection";
    assert_eq!(broker.send("POST", protection, "").await.status, 204);
    let kept = broker.send("DELETE", "/api/vhosts/v", "").await;
    let reason = "Refusing to delete virtual host 'v' because it is protected from deletion";
    assert_eq!(kept.status, 412);
    assert_eq!(kept.refusal(), ("precondition_failed".to_owned(), json!(reason)));
    assert_eq!(broker.send("DELETE", protection, "").await.status, 204);
    assert_eq!(broker.send("DELETE", "/api/vhosts/v", "").await.status, 204);
}

#[tokio::test]
async fn parameters_and_the_name_of_the_cluster_are_kept() {
    let broker = Broker::start().await;
    let path = "/api/parameters/shovel/%2F/mine";
    let body = r#"{"value":{"src-uri":"amqp://","dest-uri":"amqp://"},"component":"shovel"}"#;
    assert_eq!(broker.send("PUT", path, body).await.status, 201);
    assert_eq!(broker.send("PUT", path, body).await.status, 204);
    let value = json!({ "src-uri": "amqp://", "dest-uri": "amqp://" });
    let expected = json!({ "value": value, "vhost": "/", "component": "shovel", "name": "mine" });
    assert_eq!(broker.get(path).await.json(), expected);
    assert_eq!(broker.get("/api/parameters/shovel").await.json(), json!([expected]));
    assert_eq!(broker.get("/api/parameters/other/%2F").await.json(), json!([]));
    assert_eq!(broker.send("PUT", path, "{}").await.status, 400);
    let half = broker.send("PUT", path, r#"{"value":{"src-uri":"amqp://"}}"#).await;
    assert_eq!(half.refusal().1, "Validation failed\n\nKey \"dest-uri\" not found in mine\n");
    assert_eq!(broker.send("PUT", path, r#"{"value":nothing}"#).await.status, 400);
    let nope = broker.send("PUT", "/api/parameters/nope/%2F/mine", r#"{"value":1}"#).await;
    let reason = "Validation failed\n\ncomponent nope not found\n";
    assert_eq!((nope.status, nope.refusal().1), (400, json!(reason)));
    for elsewhere in ["policy", "operator_policy", "user-limits"] {
        let path = format!("/api/parameters/{elsewhere}/%2F/mine");
        assert_eq!(broker.send("PUT", &path, r#"{"value":{}}"#).await.status, 400, "{elsewhere}");
    }
    assert_eq!(broker.send("DELETE", path, "").await.status, 204);
    assert_eq!(broker.send("DELETE", path, "").await.status, 404);
    let global = "/api/global-parameters/mqtt";
    assert_eq!(broker.send("PUT", global, r#"{"value":[1]}"#).await.status, 201);
    assert_eq!(broker.get(global).await.json(), json!({ "name": "mqtt", "value": [1] }));
    assert_eq!(broker.send("DELETE", global, "").await.status, 204);
    assert_eq!(broker.send("PUT", "/api/cluster-name", r#"{"name":"blue"}"#).await.status, 204);
    assert_eq!(broker.get("/api/cluster-name").await.json(), json!({ "name": "blue" }));
    assert_eq!(broker.get("/api/overview").await.json()["cluster_name"], "blue");
}

#[tokio::test]
async fn the_limits_of_a_vhost_are_a_parameter_too() {
    let broker = Broker::start().await;
    let path = "/api/parameters/vhost-limits/%2F/limits";
    assert_eq!(broker.get(path).await.status, 404);
    assert_eq!(broker.send("DELETE", path, "").await.status, 404);
    let set = broker.send("PUT", path, r#"{"value":{"max-connections":7}}"#).await;
    assert_eq!(set.status, 201);
    let set = broker.send("PUT", path, r#"{"value":{"max-queues":1}}"#).await;
    assert_eq!(set.status, 204);
    let value = json!({ "max-queues": 1 });
    let limits = json!([{ "vhost": "/", "value": value }]);
    assert_eq!(broker.get("/api/vhost-limits").await.json(), limits, "the first is replaced");
    let expected =
        json!({ "value": value, "vhost": "/", "component": "vhost-limits", "name": "limits" });
    assert_eq!(broker.get(path).await.json(), expected);
    for list in
        ["/api/parameters", "/api/parameters/vhost-limits", "/api/parameters/vhost-limits/%2F"]
    {
        assert_eq!(broker.get(list).await.json(), json!([expected]), "{list}");
    }
    assert_eq!(broker.get("/api/parameters/shovel").await.json(), json!([]));
    assert_eq!(broker.send("PUT", "/api/queues/%2F/one", "{}").await.status, 201);
    assert_eq!(broker.send("PUT", "/api/queues/%2F/two", "{}").await.status, 400, "it holds");
    for (value, reason) in [
        (r#"{"max-queues":"x"}"#, "max-queues should be a number, actually was <<\"x\">>"),
        (r#"{"max-foo":1}"#, "Unrecognised terms [{<<\"max-foo\">>,1}] in limits"),
        ("3", "limits is no object"),
    ] {
        let refused = broker.send("PUT", path, &format!(r#"{{"value":{value}}}"#)).await;
        assert_eq!(refused.status, 400, "{value}");
        assert_eq!(refused.refusal().1, format!("Validation failed\n\n{reason}\n"));
    }
    let other = "/api/parameters/vhost-limits/%2F/other";
    assert_eq!(broker.send("PUT", other, r#"{"value":{"max-queues":2}}"#).await.status, 400);
    assert_eq!(broker.send("DELETE", path, "").await.status, 204);
    assert_eq!(broker.get("/api/vhost-limits").await.json(), json!([]));
}

#[tokio::test]
async fn a_change_is_durable_when_it_is_answered() {
    let broker = Broker::start().await;
    for nth in 0..50 {
        let path = format!("/api/queues/%2F/q{nth}");
        assert_eq!(broker.send("PUT", &path, r#"{"durable":true}"#).await.status, 201);
        let mut durable = pin!(broker.admin().durable());
        let polled = durable.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Ready(Ok(()))), "{path}: {polled:?}");
    }
}

#[tokio::test]
async fn names_that_would_not_stay_as_they_are_are_refused() {
    let broker = Broker::start().await;
    broker.add_user("most", "management", &[]);
    let mut permission = Permission::all();
    permission.configure = "^(?!secret)".to_owned();
    broker.admin().set_permission("most", "/", permission).expect("a permission");
    for path in [
        "/api/exchanges/%2F/sec%0Aret",
        "/api/exchanges/%2F/sec%0Dret",
        "/api/queues/%2F/sec%0Aret",
        "/api/queues/%2F//",
    ] {
        let answer = broker.call("PUT", path, Some("most"), "{}").await;
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
    }
    assert_eq!(broker.get("/api/exchanges/%2F/secret").await.status, 404);
    assert_eq!(broker.get("/api/queues/%2F").await.json(), json!([]));
    broker.send("PUT", "/api/queues/%2F/q", "").await;
    let path = "/api/bindings/%2F/e/amq%0A.topic/q/q";
    assert_eq!(broker.send("POST", path, "").await.status, 400);
}
