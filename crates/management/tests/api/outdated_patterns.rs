//! Definitions with patterns that an earlier version has taken, and that are refused now.

use crate::definitions::import;
use crate::support::Broker;
use courser_auth::Hashing;
use serde_json::{Value, json};

const OUTDATED: &str = "^(?#mine)q";

fn permission(vhost: &str, write: &str) -> Value {
    json!({ "user": "guest", "vhost": vhost, "configure": ".*", "write": write, "read": ".*" })
}

fn topic_permission(write: &str) -> Value {
    json!({ "user": "guest", "vhost": "old", "exchange": "amq.topic", "write": write, "read": ".*" })
}

fn policy(name: &str, pattern: &str) -> Value {
    json!({ "vhost": "old", "name": name, "pattern": pattern, "definition": { "max-length": 5 } })
}

/// What a broker of an earlier version has exported.
fn export() -> Value {
    let operator = json!({ "pattern": OUTDATED, "definition": { "max-length": 50 } });
    json!({
        "vhosts": [{ "name": "old" }, { "name": "other" }],
        "permissions": [permission("old", OUTDATED), permission("other", "^w")],
        "topic_permissions": [topic_permission(OUTDATED)],
        "policies": [policy("p", OUTDATED), policy("sound", "^q")],
        "parameters": [{ "vhost": "old", "component": "operator_policy", "name": "op", "value": operator }],
        "queues": [{ "name": "q", "vhost": "old", "durable": true, "arguments": {} }],
    })
}

const NAMED: &str = "topic permission of user 'guest' for exchange 'amq.topic' in vhost 'old', \
                     permission of user 'guest' in vhost 'old', \
                     policy 'p' in vhost 'old', operator policy 'op' in vhost 'old'";

/// What is sound in the file is there, and nothing is permitted by what is not.
fn assert_the_rest_is_there(broker: &Broker) {
    let admin = broker.admin();
    assert!(admin.queue("old", b"q").is_ok());
    let accounts = admin.accounts();
    assert_eq!(accounts.permission("guest", "old"), None);
    assert_eq!(accounts.permission("guest", "other").expect("it is sound").write, "^w");
    let kept = accounts.topic_permissions("guest", "old");
    assert_eq!(kept[0].1.write, OUTDATED, "without it, all keys would be permitted");
}

#[tokio::test]
async fn an_import_names_and_leaves_out_what_an_earlier_version_took() {
    let broker = Broker::start().await;
    let done = import(&broker, "/api/definitions?warnings=true", &export()).await;
    assert_eq!(done.status, 200, "{done:?}");
    let done = done.json();
    let warnings = done["warnings"].as_array().expect("a list");
    let [warning] = &warnings[..] else { panic!("{warnings:#?}") };
    assert!(warning.as_str().is_some_and(|text| text.ends_with(NAMED)), "{warning}");
    assert_the_rest_is_there(&broker);
    let policies = broker.get("/api/policies/old").await.json();
    let names: Vec<&Value> =
        policies.as_array().expect("a list").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["sound"]);
    assert_eq!(broker.get("/api/operator-policies/old").await.json(), json!([]));
}

#[tokio::test]
async fn a_start_imports_what_it_can_of_such_a_file() {
    let broker = Broker::start().await;
    let text = export().to_string();
    for _ in 0..2 {
        let done =
            courser_management::import(&broker.admin(), text.as_bytes(), Hashing::RabbitSha256, 1);
        let done = done.expect("it is no reason to stop");
        assert_eq!(done.skipped, 4);
        assert!(done.warnings[0].ends_with(NAMED), "{:?}", done.warnings);
        assert_the_rest_is_there(&broker);
    }
}

#[tokio::test]
async fn a_dry_run_says_that_it_leaves_them_out() {
    let broker = Broker::start().await;
    let plan = import(&broker, "/api/definitions?dry_run=true", &export()).await.json();
    assert_eq!((&plan["skipped_count"], &plan["refuse_count"]), (&json!(4), &json!(0)), "{plan}");
    let because = plan["skip"][0]["because"].as_str().expect("why");
    assert!(because.contains("'(?#' at byte 1 is not supported"), "{because}");
}

#[tokio::test]
async fn a_kept_topic_permission_denies_every_key_and_needs_attention_until_it_is_set_anew() {
    let broker = Broker::start().await;
    let file = json!({
        "vhosts": [{ "name": "old" }],
        "permissions": [permission("old", ".*")],
        "topic_permissions": [topic_permission(OUTDATED)],
    });
    assert_eq!(import(&broker, "/api/definitions", &file).await.status, 204);
    let writes = async || {
        let message =
            r#"{"properties":{},"routing_key":"q","payload":"","payload_encoding":"string"}"#;
        let path = "/api/exchanges/old/amq.topic/publish";
        broker.send("POST", path, message).await.status == 200
    };
    assert!(!writes().await);
    let findings = broker.get("/api/attention").await.json();
    let findings = findings.as_array().expect("a list");
    let finding = findings.iter().find(|one| one["kind"] == "permission_refused").expect("told");
    let named = "topic permission of user 'guest' for exchange 'amq.topic' in vhost 'old'";
    assert!(finding["text"].as_str().is_some_and(|text| text.ends_with(named)), "{finding}");

    let path = "/api/topic-permissions/old/guest";
    let anew = r#"{"exchange":"amq.topic","write":"^q","read":".*"}"#;
    assert_eq!(broker.send("PUT", path, anew).await.status, 204);
    assert!(writes().await);
    assert_eq!(import(&broker, "/api/definitions", &file).await.status, 400);
    assert!(writes().await, "what is set anew stays");
    assert_eq!(broker.get("/api/attention").await.json(), json!([]));
}

#[tokio::test]
async fn a_pattern_that_no_version_took_still_ends_an_import() {
    let broker = Broker::start().await;
    let mistake = "[a&&b]";
    for rows in [
        json!({ "permissions": [permission("/", mistake)] }),
        json!({ "permissions": [json!({ "user": "guest", "vhost": "/", "configure": mistake, "write": OUTDATED, "read": "" })] }),
        json!({ "vhosts": [{ "name": "old" }], "topic_permissions": [topic_permission(mistake)] }),
        json!({ "vhosts": [{ "name": "old" }], "policies": [policy("p", mistake)] }),
        json!({ "vhosts": [{ "name": "old" }], "policies": [{
            "vhost": "old", "name": "p", "pattern": OUTDATED, "definition": { "max-lenght": 5 },
        }] }),
    ] {
        assert_eq!(import(&broker, "/api/definitions", &rows).await.status, 400, "{rows}");
        let plan = import(&broker, "/api/definitions?dry_run=true", &rows).await.json();
        assert_eq!(
            (&plan["skipped_count"], &plan["refuse_count"]),
            (&json!(0), &json!(1)),
            "{plan}"
        );
    }
}

#[tokio::test]
async fn what_such_a_pattern_would_replace_is_not_left_in_force_unsaid() {
    let vhosts = json!([{ "name": "old" }]);
    let value = |pattern: &str| json!({ "pattern": pattern, "definition": { "max-length": 50 } });
    let operator = |pattern| json!({ "vhost": "old", "component": "operator_policy", "name": "op", "value": value(pattern) });
    for (wider, narrower) in [
        (
            json!({ "permissions": [permission("old", ".*")] }),
            json!({ "permissions": [permission("old", OUTDATED)] }),
        ),
        (
            json!({ "topic_permissions": [topic_permission(".*")] }),
            json!({ "topic_permissions": [topic_permission(OUTDATED)] }),
        ),
        (
            json!({ "policies": [policy("p", "^a")] }),
            json!({ "policies": [policy("p", OUTDATED)] }),
        ),
        (json!({ "parameters": [operator("^a")] }), json!({ "parameters": [operator(OUTDATED)] })),
    ] {
        let broker = Broker::start().await;
        let made = import(&broker, "/api/definitions", &json!({ "vhosts": vhosts })).await;
        assert_eq!(made.status, 204);
        assert_eq!(import(&broker, "/api/definitions", &wider).await.status, 204, "{wider}");
        let before = broker.get("/api/definitions").await.json();
        assert_eq!(import(&broker, "/api/definitions", &narrower).await.status, 400, "{narrower}");
        let plan = import(&broker, "/api/definitions?dry_run=true", &narrower).await.json();
        let counts = (&plan["skipped_count"], &plan["refuse_count"]);
        assert_eq!(counts, (&json!(0), &json!(1)), "{plan}");

        let text = narrower.to_string();
        let done =
            courser_management::import(&broker.admin(), text.as_bytes(), Hashing::RabbitSha256, 1);
        let done = done.expect("it is no reason to stop");
        assert!(done.warnings[0].contains("others go on to hold"), "{:?}", done.warnings);
        assert_eq!((done.warnings.len(), done.skipped), (1, 1));
        assert_eq!(broker.get("/api/definitions").await.json(), before);
    }
}

#[tokio::test]
async fn only_a_policy_is_left_out_whose_pattern_is_too_large() {
    let broker = Broker::start().await;
    for large in ["x".repeat(4097), r"\w{200}|".repeat(50)] {
        for (rows, status, counts) in [
            (json!({ "permissions": [permission("old", &large)] }), 400, (0, 1)),
            (json!({ "topic_permissions": [topic_permission(&large)] }), 400, (0, 1)),
            (json!({ "policies": [policy("p", &large)] }), 204, (1, 0)),
        ] {
            let mut rows = rows;
            rows["vhosts"] = json!([{ "name": "old" }]);
            let plan = import(&broker, "/api/definitions?dry_run=true", &rows).await.json();
            let found = (&plan["skipped_count"], &plan["refuse_count"]);
            assert_eq!(found, (&json!(counts.0), &json!(counts.1)), "{plan}");
            assert_eq!(import(&broker, "/api/definitions", &rows).await.status, status);
        }
    }
    assert_eq!(broker.admin().accounts().topic_permissions("guest", "old"), []);
    assert_eq!(broker.get("/api/policies/old").await.json(), json!([]));
}

#[test]
fn what_needs_attention_of_permissions_is_read_once_for_each_change_of_them() {
    // What blocks has one thread, which counts.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .thread_keep_alive(std::time::Duration::MAX)
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let broker = Broker::start().await;
        let vhosts: Vec<Value> = (0..50).map(|nth| json!({ "name": format!("v{nth}") })).collect();
        let permissions: Vec<Value> =
            (0..50).map(|nth| permission(&format!("v{nth}"), ".*")).collect();
        let file = json!({ "vhosts": vhosts, "permissions": permissions });
        assert_eq!(import(&broker, "/api/definitions", &file).await.status, 204);
        let read = async || {
            let count = || tokio::task::spawn_blocking(courser_auth::compiled);
            let before = count().await.expect("no panic");
            assert_eq!(broker.get("/api/attention").await.json(), json!([]));
            count().await.expect("no panic") - before
        };
        assert!(read().await >= 150);
        assert_eq!(read().await, 0);
        let other = permission("v0", "^w");
        let other = json!({ "permissions": [other] });
        assert_eq!(import(&broker, "/api/definitions", &other).await.status, 204);
        assert!(read().await >= 150);
    });
}
