//! Who may move messages where.

use crate::direct::{Asked, Direct};
use courser_auth::{Permission, TopicPermission};
use courser_broker::admin::{ExchangeKind, ExchangeSettings, NewBinding, NewQueue};
use courser_codec::{FieldTable, ShortString};
use serde_json::{Value, json};

const USER: &str = "u";

fn owned(text: &str) -> ShortString {
    text.try_into().expect("at most 255 bytes")
}

/// A user who may publish to `topics` and `direct` with keys that begin with `own`, as far as they are topic
/// exchanges. Both lead to the queue `to`.
fn world() -> Direct {
    let direct = Direct::new();
    direct.add_user(USER, "management");
    let admin = direct.broker.admin();
    admin.set_permission(USER, "/", Permission::all()).expect("a permission");
    for queue in ["from", "to"] {
        admin.declare_queue("/", queue, NewQueue::default()).expect("a queue");
    }
    for (name, kind) in [("topics", ExchangeKind::Topic), ("direct", ExchangeKind::Direct)] {
        let settings = ExchangeSettings {
            kind,
            durable: false,
            auto_delete: false,
            internal: false,
            arguments: FieldTable::new(),
        };
        admin.declare_exchange("/", name, &settings).expect("an exchange");
        for key in ["own.1", "other"] {
            let binding = NewBinding {
                source: owned(name),
                destination: owned("to"),
                to_queue: true,
                routing_key: owned(key),
                arguments: FieldTable::new(),
            };
            admin.bind("/", binding).expect("a binding");
        }
        let permission = TopicPermission { write: "^own".to_owned(), read: String::new() };
        admin.set_topic_permission(USER, "/", name, permission).expect("a permission");
    }
    direct
}

/// Puts a message into the queue `from` that also has these keys.
async fn publish(direct: &Direct, more_keys: &[&str]) {
    let body = json!({
        "routing_key": "from",
        "properties": { "headers": { "CC": more_keys } },
        "payload": "",
        "payload_encoding": "string",
    });
    let body = body.to_string();
    let path = "/api/exchanges/%2F/amq.default/publish";
    let answer = direct.ask(Asked { body: &body, ..Asked::new("POST", path).by(USER) }).await;
    assert_eq!(answer.json(), json!({ "routed": true }));
}

/// Moves all messages of the queue `from` to an exchange.
async fn relocate(direct: &Direct, exchange: &str, key: &str) -> Value {
    let body = json!({ "to": { "exchange": exchange, "routing_key": key } }).to_string();
    let asked = Asked { body: &body, ..Asked::new("POST", "/api/queues/%2F/from/move").by(USER) };
    direct.ask(asked).await.json()
}

#[tokio::test]
async fn a_message_moves_to_a_topic_exchange_if_its_user_may_use_all_its_keys() {
    let direct = world();
    for more_keys in [&[][..], &["own.2"], &["own.2", "other"]] {
        publish(&direct, more_keys).await;
    }
    let done = relocate(&direct, "topics", "own.1").await;
    assert_eq!((&done["moved"], &done["forbidden"]), (&json!(2), &json!(1)), "{done}");
    let done = relocate(&direct, "topics", "other").await;
    assert_eq!((&done["moved"], &done["forbidden"]), (&json!(0), &json!(1)), "{done}");
}

#[tokio::test]
async fn a_topic_permission_says_nothing_of_an_exchange_of_another_type() {
    let direct = world();
    publish(&direct, &["other"]).await;
    let done = relocate(&direct, "direct", "other").await;
    assert_eq!((&done["moved"], &done["forbidden"]), (&json!(1), &json!(0)), "{done}");
}
