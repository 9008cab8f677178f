//! What of definitions is there when the import of the rest is refused.

use crate::definitions::import;
use crate::support::Broker;
use serde_json::json;

#[tokio::test]
async fn a_user_has_no_permission_without_the_topic_permissions_that_restrict_it() {
    let broker = Broker::start().await;
    let refused = json!({
        "vhosts": [{ "name": "v" }],
        "users": [{ "name": "partner", "password": "secret", "tags": [] }],
        "permissions": [{ "user": "partner", "vhost": "v", "configure": "", "write": ".*", "read": ".*" }],
        "topic_permissions": [
            { "user": "partner", "vhost": "v", "exchange": "amq.topic", "write": "^partner", "read": "^partner" },
        ],
        "exchanges": [{ "name": "x", "vhost": "v", "type": "nonsense", "durable": true }],
    });
    let answer = import(&broker, "/api/definitions", &refused).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(broker.admin().exchange("v", b"x").is_err());
    let may = async |key: &str| {
        let body = json!({
            "user": "partner", "vhost": "v", "right": "write", "resource": "exchange", "name": "amq.topic",
            "routing_key": key,
        });
        let answer = broker.send("POST", "/api/access/check", &body.to_string()).await.json();
        answer["allowed"].as_bool().unwrap_or_else(|| panic!("{answer}"))
    };
    assert!(may("partner.a").await);
    assert!(!may("other.a").await);

    // Nor has it one when these are refused.
    let mut refused = refused;
    refused["users"][0]["name"] = json!("second");
    refused["permissions"][0]["user"] = json!("second");
    refused["topic_permissions"][0]["user"] = json!("second");
    refused["topic_permissions"][0]["write"] = json!("(");
    let answer = import(&broker, "/api/definitions", &refused).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    let accounts = broker.admin().accounts();
    assert!(accounts.user("second").is_some() && accounts.permission("second", "v").is_none());
}
