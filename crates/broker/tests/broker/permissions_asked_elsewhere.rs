//! Permissions that another program is asked for, which may take its time: only the client that needs the
//! answer waits for it.

use crate::support::{Client, Heard, Message, World, short};
use courser_auth::{Authority, PasswordHash, Resource, Right, User};
use courser_broker::Broker;
use courser_codec::{FieldTable, FieldValue, Method, Table, basic, exchange, queue, tx};
use courser_store::{ShardId, ShardState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Permits everything, after a while in which others want a checkpoint.
#[derive(Debug)]
struct Elsewhere {
    user: Arc<User>,
    broker: Weak<Broker>,
    questions: AtomicUsize,
}

impl Elsewhere {
    fn answer(&self) -> bool {
        self.questions.fetch_add(1, Ordering::Relaxed);
        let broker = self.broker.upgrade().expect("it runs");
        // Waits until no thread is between a change and its effect.
        broker.state_of(ShardId::HOME).expect("always open").start();
        true
    }
}

impl Authority for Elsewhere {
    fn user(&self) -> &Arc<User> {
        &self.user
    }

    fn permits_vhost(&self, _: &str) -> bool {
        self.answer()
    }

    fn permits(&self, _: &str, _: Right, _: Resource<'_>) -> bool {
        self.answer()
    }

    fn permits_topic(&self, _: &str, _: Right, _: &[u8], _: &[u8]) -> bool {
        self.answer()
    }
}

/// A client of a user whose permissions are asked for, and who counts how often they are.
fn connect(world: &World) -> (Client, Arc<Elsewhere>) {
    let user = Arc::new(User::new("elsewhere", PasswordHash::none()));
    let broker = Arc::downgrade(&world.broker);
    let authority = Arc::new(Elsewhere { user, broker, questions: AtomicUsize::new(0) });
    (world.connect_granted(Arc::clone(&authority) as Arc<dyn Authority>), authority)
}

#[test]
fn other_rights_of_one_client_have_no_other_asked_for_anew() {
    let world = World::new();
    let ((mut client, own), (mut other, others)) = (connect(&world), connect(&world));
    let asked = |one: &Elsewhere| one.questions.load(Ordering::Relaxed);
    for one in [&mut client, &mut other] {
        one.publish("amq.direct", "k", "m");
    }
    let before = (asked(&own), asked(&others));
    client.session().rights_changed();
    for one in [&mut client, &mut other] {
        one.publish("amq.direct", "k", "m");
    }
    assert_eq!((asked(&own), asked(&others)), (before.0 + 1, before.1));
}

#[test]
fn a_checkpoint_can_begin_while_a_permission_is_asked_for() {
    let world = World::new();
    let (mut client, authority) = connect(&world);
    let alternate = FieldTable::new().with("alternate-exchange", "amq.fanout").to_entries();
    let dead = FieldTable::new().with("x-dead-letter-exchange", "amq.fanout").to_entries();
    let (x, y, q, key) = (short("x"), short("y"), short("q"), short("key"));
    let requests: Vec<Method<'_>> = vec![
        exchange::Declare { exchange: x, kind: short("topic"), ..Default::default() }.into(),
        exchange::Declare {
            exchange: y,
            kind: short("topic"),
            arguments: Table::from_entries(&alternate),
            ..Default::default()
        }
        .into(),
        exchange::Declare { exchange: x, passive: true, ..Default::default() }.into(),
        exchange::Bind { destination: y, source: x, routing_key: key, ..Default::default() }.into(),
        exchange::Unbind { destination: y, source: x, routing_key: key, ..Default::default() }
            .into(),
        queue::Declare { queue: q, arguments: Table::from_entries(&dead), ..Default::default() }
            .into(),
        queue::Declare { queue: q, passive: true, ..Default::default() }.into(),
        queue::Declare { arguments: Table::from_entries(&dead), ..Default::default() }.into(),
        queue::Bind { queue: q, exchange: x, routing_key: key, ..Default::default() }.into(),
        queue::Unbind { queue: q, exchange: x, routing_key: key, ..Default::default() }.into(),
        queue::Purge { queue: q, ..Default::default() }.into(),
        basic::Get { queue: q, ..Default::default() }.into(),
        basic::Consume { queue: q, ..Default::default() }.into(),
        queue::Delete { queue: q, ..Default::default() }.into(),
        exchange::Delete { exchange: y, ..Default::default() }.into(),
        tx::Select {}.into(),
    ];
    for request in requests {
        let before = authority.questions.load(Ordering::Relaxed);
        let answer = client.call(request);
        assert!(!matches!(answer, Heard::ChannelClosed(_) | Heard::ConnectionClosed(_)));
        let asked = authority.questions.load(Ordering::Relaxed) > before;
        assert!(asked || matches!(request, Method::TxSelect(_)), "{}", request.name());
    }
    let cc = FieldValue::Array(vec!["other".into()]);
    client.send(Message::new("x", "k", "m").headers(FieldTable::new().with("CC", cc)));
    client.publish("x", "another", "m");
    client.commit();
}
