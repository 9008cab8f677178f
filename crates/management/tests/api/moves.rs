//! Who may move messages where.

use crate::direct::{Asked, Direct, HERE, head};
use courser_auth::{
    Authority, Origin, PasswordHash, Permission, Resource, Right, Tags, TopicPermission, User,
};
use courser_broker::admin::{ExchangeKind, ExchangeSettings, NewBinding, NewQueue};
use courser_codec::{FieldTable, ShortString};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

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

/// A user whom another program knows, which takes its time for each answer.
#[derive(Debug)]
struct Slow {
    user: Arc<User>,
    answer_time: Duration,
    questions: AtomicUsize,
}

const OF_SLOW: &str = "of-slow";
/// Messages in the queue `from`.
const MESSAGES: usize = 200;

impl Authority for Slow {
    fn user(&self) -> &Arc<User> {
        &self.user
    }

    fn permits_vhost(&self, _: &str) -> bool {
        true
    }

    fn permits(&self, _: &str, _: Right, _: Resource<'_>) -> bool {
        self.questions.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(self.answer_time);
        true
    }

    fn permits_topic(&self, _: &str, _: Right, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn is_elsewhere(&self) -> bool {
        true
    }
}

async fn slow_world(answer_time: Duration) -> (Direct, Arc<Slow>) {
    let direct = world();
    for _ in 0..MESSAGES {
        publish(&direct, &[]).await;
    }
    let mut user = User::new(OF_SLOW, PasswordHash::none());
    user.origin = Origin::Elsewhere;
    user.tags = Tags::parse("management").expect("tags");
    let (user, questions) = (Arc::new(user), AtomicUsize::new(0));
    let slow = Arc::new(Slow { user, answer_time, questions });
    direct.known_elsewhere.set(Arc::clone(&slow) as _).expect("set once");
    (direct, slow)
}

#[tokio::test]
async fn a_move_asks_nothing_more_once_its_client_has_gone() {
    let answer_time = Duration::from_millis(20);
    let (direct, slow) = slow_world(answer_time).await;
    let questions = || slow.questions.load(Ordering::Relaxed);
    let body = json!({ "to": { "queue": "to" } }).to_string();
    let asked = Asked::new("POST", "/api/queues/%2F/from/move").by(OF_SLOW);
    let mut client = direct.connect(HERE);
    let request = format!("{}{body}", head(&asked, body.len()));
    client.write_all(request.as_bytes()).await.expect("it is taken");
    while questions() < 10 {
        sleep(answer_time).await;
    }
    drop(client);
    let mut before = 0;
    while questions() > before {
        before = questions();
        sleep(answer_time * 25).await;
    }
    assert!(before < MESSAGES / 2, "{before} questions were asked");
}

#[tokio::test]
async fn a_move_that_has_asked_for_long_enough_leaves_the_rest_to_the_next_one() {
    // All of them take longer than a request may ask.
    let (direct, _) = slow_world(Duration::from_millis(60)).await;
    let (mut next, mut moved) = (json!(0), Vec::new());
    while !next.is_null() {
        let body = json!({ "to": { "queue": "to" }, "offset": next }).to_string();
        let asked = Asked::new("POST", "/api/queues/%2F/from/move").by(OF_SLOW);
        let done = direct.ask(Asked { body: &body, ..asked }).await.json();
        assert_eq!(done["forbidden"], 0, "{done}");
        moved.push(done["moved"].as_u64().expect("a number"));
        next = done["next"].clone();
    }
    assert_eq!(moved.iter().sum::<u64>(), MESSAGES as u64);
    assert!(moved.len() > 1, "{moved:?}");
}

#[tokio::test]
async fn what_is_published_while_the_broker_stops_is_not_refused_as_a_mistake() {
    let direct = world();
    direct.broker.begin_stop();
    let body = json!({
        "routing_key": "from", "properties": {}, "payload": "", "payload_encoding": "string",
    });
    let path = "/api/exchanges/%2F/amq.default/publish";
    let asked = Asked { body: &body.to_string(), ..Asked::new("POST", path).by(USER) };
    let answer = direct.ask(asked).await;
    assert_eq!((answer.status, answer.refusal().1), (503, json!("the broker is being stopped")));
}
