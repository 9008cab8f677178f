//! What an `x-recent-history` exchange remembers goes no further to a new binding when there is a reason to end it.

use crate::recent_history_beside_others::{history, publish};
use crate::support::{Client, World, guest, owned, short};
use courser_broker::admin::NewBinding;
use courser_broker::{Broker, Identity, Limits};
use courser_codec::{FieldTable, exchange, queue};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

/// What the history remembers: more than goes to a queue at once.
const MESSAGES: usize = 3000;

/// Does something once, when the connection is woken: nothing is locked then.
struct OnWake(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for OnWake {
    fn wake(self: Arc<Self>) {
        let call = self.0.lock().expect("nothing panics here").take();
        call.into_iter().for_each(|call| call());
    }
}

/// A broker with h, which remembers messages, and q, whose consumer gets the first of them. `during` is called then.
fn with_consumer(during: impl FnOnce(&Arc<Broker>) + Send + 'static) -> (World, Client) {
    let world = World::new();
    let mut client = world.connect();
    history(&mut client, "h", MESSAGES as i32, false);
    publish(&mut client, "h", MESSAGES);
    client.declare("q");
    client.consume("q");
    let broker = Arc::clone(&world.broker);
    let call = OnWake(Mutex::new(Some(Box::new(move || during(&broker)))));
    client.session().outbox().register(&Waker::from(Arc::new(call)));
    (world, client)
}

fn bind_by_admin(world: &World) -> String {
    let binding = NewBinding {
        source: owned("h"),
        destination: owned("q"),
        to_queue: true,
        routing_key: owned(""),
        arguments: FieldTable::new(),
    };
    world.broker.admin().bind("/", binding).expect_err("it is cut short").to_string()
}

/// The queue has not got all of it, and gets nothing any more.
fn assert_cut_short(world: &World) {
    let count = |(ready, unacked, _)| ready + unacked;
    let before = count(world.counts("q"));
    assert!((1..MESSAGES).contains(&before), "{before}");
    world.connect().publish("h", "", "new");
    assert_eq!(count(world.counts("q")), before, "it is bound");
}

#[test]
fn a_history_goes_no_further_when_the_broker_stops() {
    let (world, _client) = with_consumer(|broker| broker.begin_stop());
    let text = bind_by_admin(&world);
    assert!(text.starts_with("320 CONNECTION_FORCED - the broker is being stopped"), "{text}");
    assert_cut_short(&world);
}

#[test]
fn a_history_goes_no_further_when_its_vhost_is_to_stand_still() {
    let (world, _client) = with_consumer(|broker| {
        broker.admin().stop_vhost("/", 0).expect("it is there");
    });
    let text = bind_by_admin(&world);
    assert!(text.starts_with("320 CONNECTION_FORCED - vhost '/' is being moved"), "{text}");
    world.broker.admin().start_vhost("/", 0).expect("it is there");
    assert_cut_short(&world);
}

#[test]
fn a_history_goes_no_further_when_its_vhost_is_deleted() {
    let (world, _client) = with_consumer(|broker| {
        broker.admin().delete_vhost("/").expect("it is there");
    });
    let text = bind_by_admin(&world);
    assert!(text.contains("vhost '/'"), "{text}");
}

#[test]
fn a_history_goes_no_further_when_the_connection_that_binds_is_closed() {
    let (world, _client) = with_consumer(|broker| {
        assert_eq!(broker.admin().close_connections_of_user("binder", "enough"), 1);
    });
    let user = Identity { user: owned("binder"), ..guest() };
    let (queue, exchange) = (short("q"), short("h"));
    let mut binder = world.connect_as(user);
    let text = binder.fatal(queue::Bind { queue, exchange, ..Default::default() });
    assert!(text.starts_with("320 CONNECTION_FORCED - enough"), "{text}");
    assert_cut_short(&world);
}

#[test]
fn a_history_for_very_many_queues_ends_at_the_memory_alarm() {
    const QUEUES: usize = 500;
    const HIGH_BYTES: u64 = 8_000_000;
    let world = World::with(Limits { memory_high_bytes: HIGH_BYTES, ..Limits::default() });
    let mut client = world.connect();
    history(&mut client, "h", 2000, false);
    publish(&mut client, "h", 2000);
    history(&mut client, "few", 20, false);
    publish(&mut client, "few", 20);
    client.declare_exchange("all", "fanout");
    for nth in 0..QUEUES {
        let name = format!("q{nth}");
        client.declare(&name);
        client.bind(&name, "all", "");
    }
    let (destination, source) = (short("all"), short("h"));
    let bind = || exchange::Bind { destination, source, ..Default::default() };
    let text = client.refused(bind());
    let reason = "406 PRECONDITION_FAILED - publishers are held back: low on memory";
    assert!(text.starts_with(reason) && text.contains("exchange 'h' in vhost '/'"), "{text}");
    let used = world.broker.memory_used_bytes();
    assert!(used < HIGH_BYTES + HIGH_BYTES / 2, "{used}");
    let before = world.counts("q0");
    client.publish("h", "", "new");
    assert_eq!(world.counts("q0"), before, "it is not bound");
    assert!(client.refused(bind()).starts_with(reason));
    assert_eq!(world.counts("q0"), before, "each try would send some more");
    // Who may help to end the alarm is let in.
    client.declare("later");
    client.bind("later", "few", "");
    assert_eq!(client.pop_all("later").len(), 20);
    (0..QUEUES).for_each(|nth| drop(client.purge(&format!("q{nth}"))));
    assert_eq!(world.broker.alarm(), None);
}
