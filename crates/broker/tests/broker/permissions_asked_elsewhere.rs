//! Permissions that another program is asked for, which may take its time: only the client that needs the
//! answer waits for it.

use crate::support::{Client, Heard, Message, World, short};
use courser_auth::{Authority, Grant, PasswordHash, Resource, Right, User};
use courser_broker::{Broker, VhostLimits};
use courser_codec::{FieldTable, FieldValue, Method, Table, basic, exchange, queue, tx};
use courser_store::{ShardId, ShardState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak, mpsc};

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

/// Says who may enter when it has been let go on, and says that it is asked.
#[derive(Debug)]
struct Waits {
    user: Arc<User>,
    asked: mpsc::Sender<()>,
    left: Mutex<mpsc::Receiver<bool>>,
}

impl Authority for Waits {
    fn user(&self) -> &Arc<User> {
        &self.user
    }

    fn permits_vhost(&self, _: &str) -> bool {
        self.asked.send(()).expect("the test listens");
        self.left.lock().expect("no panic").recv().expect("it is let go on")
    }

    fn permits(&self, _: &str, _: Right, _: Resource<'_>) -> bool {
        true
    }

    fn permits_topic(&self, _: &str, _: Right, _: &[u8], _: &[u8]) -> bool {
        true
    }
}

/// Has a user be asked for elsewhere, and does something meanwhile. Returns what it hears when it is let in there.
fn admitted_when(broker: &Arc<Broker>, vhost: &str, meanwhile: impl FnOnce()) -> Option<String> {
    let ((asked, is_asked), (leave, left)) = (mpsc::channel(), mpsc::channel());
    let user = Arc::new(User::new("elsewhere", PasswordHash::none()));
    let grant = Grant::new(Arc::new(Waits { user, asked, left: Mutex::new(left) }));
    std::thread::scope(|scope| {
        // It goes on however this ends.
        let leave = leave;
        let admitting = scope.spawn(|| broker.admit_granted(&grant, vhost).err());
        is_asked.recv().expect("it is asked");
        meanwhile();
        leave.send(true).expect("it waits");
        admitting.join().expect("no panic").map(|fault| fault.to_string())
    })
}

#[test]
fn a_user_who_is_asked_for_elsewhere_takes_no_other_users_connection_meanwhile() {
    let world = World::new();
    let limits = VhostLimits { connections_max: Some(1), queues_max: None };
    let vhost = world.broker.define_vhost("small", limits).expect("a vhost");
    let heard = admitted_when(&world.broker, "small", || {
        drop(vhost.admit("another").expect("there is room"));
    });
    assert_eq!(heard, None);
}

#[test]
fn a_user_who_is_asked_for_elsewhere_is_not_let_into_a_vhost_that_is_gone_by_then() {
    let world = World::new();
    world.broker.define_vhost("brief", VhostLimits::default()).expect("a vhost");
    let admin = world.broker.admin();
    let heard = admitted_when(&world.broker, "brief", || {
        admin.delete_vhost("brief").expect("it is there");
    });
    assert_eq!(heard.as_deref(), Some("530 NOT_ALLOWED - vhost brief not found"));
}
