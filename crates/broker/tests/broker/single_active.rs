//! `x-single-active-consumer`: one gets everything, and when it goes, the next one.

use crate::support::{Client, World, declare_with, short};
use courser_broker::admin::{Event, EventKind, Follower};
use courser_codec::{FieldTable, Table, basic, queue};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Wake;

fn declare(client: &mut Client) {
    let entries = FieldTable::new().with("x-single-active-consumer", true).to_entries();
    let arguments = Table::from_entries(&entries);
    client.tell(queue::Declare {
        queue: short("q"),
        nowait: true,
        arguments,
        ..Default::default()
    });
}

fn consume_with_priority(client: &mut Client, priority: i32) {
    let entries = FieldTable::new().with("x-priority", priority).to_entries();
    client.consume_with(basic::Consume {
        queue: short("q"),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    });
}

#[test]
fn only_the_first_consumer_gets_messages() {
    let world = World::new();
    let (mut first, mut second) = (world.connect(), world.connect());
    declare(&mut first);
    first.consume("q");
    second.consume("q");
    first.fill("q", &["1", "2", "3"]);
    assert_eq!(first.bodies(), ["1", "2", "3"]);
    assert_eq!(second.bodies(), Vec::<String>::new());
    assert_eq!(world.counts("q"), (0, 3, 2));
}

#[test]
fn the_others_get_nothing_even_if_the_active_one_can_take_no_more() {
    let world = World::new();
    let (mut first, mut second) = (world.connect(), world.connect());
    declare(&mut first);
    first.qos(1);
    first.consume("q");
    second.consume("q");
    first.fill("q", &["1", "2"]);
    assert_eq!(first.bodies(), ["1"]);
    assert_eq!(second.bodies(), Vec::<String>::new());
    first.ack(1);
    assert_eq!(first.bodies(), ["2"]);
}

#[test]
fn what_has_expired_when_the_next_one_takes_over_is_dead_lettered() {
    for closes_channel in [false, true] {
        let world = World::new();
        let (mut first, mut second) = (world.connect(), world.connect());
        first.declare("dead");
        let arguments = FieldTable::new()
            .with("x-single-active-consumer", true)
            .with("x-message-ttl", 50)
            .with("x-dead-letter-exchange", "")
            .with("x-dead-letter-routing-key", "dead");
        declare_with(&mut first, "q", true, &arguments);
        first.qos(1);
        let tag = first.consume("q");
        second.consume("q");
        first.fill("q", &["1", "2", "3"]);
        assert_eq!(first.bodies(), ["1"]);
        world.broker.set_time(1_000_100);
        match closes_channel {
            true => first.close_channel(1),
            false => first.cancel(&tag),
        }
        assert_eq!(second.bodies(), Vec::<String>::new());
        let back = usize::from(closes_channel);
        assert_eq!(world.counts("dead").0, 2 + back, "{closes_channel}");
    }
}

#[test]
fn the_next_one_takes_over_when_the_active_one_is_cancelled() {
    let world = World::new();
    let (mut first, mut second) = (world.connect(), world.connect());
    declare(&mut first);
    first.qos(1);
    let tag = first.consume("q");
    second.consume("q");
    first.fill("q", &["1", "2", "3"]);
    assert_eq!(first.bodies(), ["1"]);
    first.cancel(&tag);
    assert_eq!(second.bodies(), ["2", "3"], "and what is unacknowledged stays where it is");
    first.requeue(1);
    assert_eq!(second.bodies(), ["1"]);
}

#[test]
fn what_a_lost_connection_had_comes_first_and_in_order() {
    let world = World::new();
    let mut publisher = world.connect();
    declare(&mut publisher);
    let (mut first, mut second, mut third) = (world.connect(), world.connect(), world.connect());
    first.qos(2);
    for consumer in [&mut first, &mut second, &mut third] {
        consumer.consume("q");
    }
    publisher.fill("q", &["1", "2", "3", "4"]);
    first.disconnect();
    assert_eq!(second.bodies(), ["1", "2", "3", "4"]);
    second.close_channel(1);
    assert_eq!(third.bodies(), ["1", "2", "3", "4"]);
}

#[test]
fn a_standby_that_goes_changes_nothing() {
    let world = World::new();
    let (mut first, mut second) = (world.connect(), world.connect());
    declare(&mut first);
    first.consume("q");
    second.consume("q");
    second.disconnect();
    first.publish("", "q", "1");
    assert_eq!(first.bodies(), ["1"]);
}

#[test]
fn after_all_have_gone_a_new_one_is_active() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client);
    let tags = [client.consume("q"), client.consume("q")];
    client.cancel(&tags[1]);
    client.cancel(&tags[0]);
    client.publish("", "q", "1");
    let tag = client.consume("q");
    let deliveries = client.deliveries();
    assert_eq!((deliveries[0].text(), &deliveries[0].consumer), ("1", &tag));
}

#[test]
fn of_those_that_stand_by_the_highest_priority_is_next() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client);
    let mut consumers = [world.connect(), world.connect(), world.connect(), world.connect()];
    for (consumer, priority) in consumers.iter_mut().zip([0, 0, 5, 5]) {
        consume_with_priority(consumer, priority);
    }
    client.publish("", "q", "1");
    assert_eq!(consumers[0].bodies(), ["1"], "no consumer takes the active one's place");
    for (nth, next) in [(0, 2), (2, 3), (3, 1)] {
        consumers[nth].disconnect();
        assert_eq!(consumers[next].bodies(), ["1"]);
    }
}

#[test]
fn an_exclusive_consumer_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client);
    let consume = basic::Consume { queue: short("q"), exclusive: true, ..Default::default() };
    let text = "403 ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use";
    assert_eq!(client.refused(consume), text);
}

#[test]
fn a_get_takes_messages_all_the_same() {
    let world = World::new();
    let (mut first, mut second) = (world.connect(), world.connect());
    declare(&mut first);
    first.qos(1);
    first.consume("q");
    first.fill("q", &["1", "2"]);
    assert_eq!(second.pop("q").as_deref(), Some("2"));
}

/// Settles the delivery with this tag.
type Settle = fn(&mut Client, u64);

#[test]
fn a_higher_priority_takes_over_however_the_last_delivery_is_settled() {
    let refuse = |client: &mut Client, delivery_tag| {
        client.tell(basic::Reject { delivery_tag, requeue: false });
    };
    let nack = |client: &mut Client, delivery_tag| {
        client.tell(basic::Nack { delivery_tag, multiple: false, requeue: false });
    };
    let commit = |client: &mut Client, delivery_tag| {
        client.tx_select();
        client.tell(basic::Reject { delivery_tag, requeue: false });
        client.commit();
    };
    let cancel = |client: &mut Client, _| client.close_channel(1);
    let ways: [(Settle, &[&str]); 6] = [
        (Client::ack, &["2", "3"]),
        (refuse, &["2", "3"]),
        (nack, &["2", "3"]),
        (commit, &["2", "3"]),
        (Client::requeue, &["1", "2", "3"]),
        (cancel, &["1", "2", "3"]),
    ];
    for (nth, (settle, expected)) in ways.into_iter().enumerate() {
        let world = World::new();
        let (mut low, mut high) = (world.connect(), world.connect());
        let quorum =
            FieldTable::new().with("x-queue-type", "quorum").with("x-single-active-consumer", true);
        declare_with(&mut low, "q", true, &quorum);
        low.qos(1);
        consume_with_priority(&mut low, 1);
        low.fill("q", &["1", "2", "3"]);
        let deliveries = low.deliveries();
        assert_eq!(deliveries.len(), 1);
        consume_with_priority(&mut high, 10);
        settle(&mut low, deliveries[0].tag);
        assert_eq!(high.bodies(), expected, "way {nth}");
        assert_eq!(low.bodies(), Vec::<String>::new(), "way {nth}");
    }
}

thread_local! {
    /// What comes in between, when the second channel of a connection that ends is closed.
    static IN_BETWEEN: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Follows what happens, and does what comes in between at its moment.
struct Interrupter(Mutex<Follower>);

impl Interrupter {
    fn follow(self: &Arc<Self>) {
        let waker = Arc::clone(self).into();
        loop {
            let followed = self.0.lock().take_or_wait(100, &waker);
            if followed.events.is_empty() {
                return;
            }
            let is_second = |event: &Arc<Event>| {
                event.kind == EventKind::ChannelClosed
                    && event.details.contains(&("number", "2".to_owned()))
            };
            if followed.events.iter().any(is_second)
                && let Some(call) = IN_BETWEEN.take()
            {
                call();
            }
        }
    }
}

impl Wake for Interrupter {
    fn wake(self: Arc<Self>) {
        self.follow();
    }
}

/// Ends a connection whose first channel has the single active consumer, and calls `in_between` before what that has is back.
fn disconnect_and(world: &World, mut client: Client, in_between: impl FnOnce() + 'static) {
    client.open_channel(2);
    Arc::new(Interrupter(Mutex::new(world.broker.admin().follow()))).follow();
    IN_BETWEEN.set(Some(Box::new(in_between)));
    client.disconnect();
    assert!(IN_BETWEEN.take().is_none(), "nothing came in between");
}

/// A queue with four messages, two of which the single active consumer has.
fn half_handed_out(world: &World, auto_delete: bool) -> Client {
    let mut first = world.connect();
    let entries = FieldTable::new().with("x-single-active-consumer", true).to_entries();
    let arguments = Table::from_entries(&entries);
    first.call(queue::Declare { queue: short("q"), auto_delete, arguments, ..Default::default() });
    first.qos(2);
    first.consume("q");
    first.fill("q", &["1", "2", "3", "4"]);
    assert_eq!(first.bodies(), ["1", "2"]);
    first
}

#[test]
fn one_that_comes_while_the_active_ones_connection_ends_waits_for_what_comes_back() {
    let world = World::new();
    let first = half_handed_out(&world, false);
    let second = Rc::new(RefCell::new(world.connect()));
    let comes = Rc::clone(&second);
    disconnect_and(&world, first, move || drop(comes.borrow_mut().consume("q")));
    assert_eq!(second.borrow_mut().bodies(), ["1", "2", "3", "4"]);
}

#[test]
fn one_that_stands_by_and_goes_meanwhile_lets_no_other_begin_early() {
    let world = World::new();
    let first = half_handed_out(&world, false);
    let (mut second, mut third) = (world.connect(), world.connect());
    second.consume("q");
    let tag = third.consume("q");
    disconnect_and(&world, first, move || third.cancel(&tag));
    assert_eq!(second.bodies(), ["1", "2", "3", "4"]);
}

#[test]
fn one_that_comes_to_a_queue_just_before_that_would_go_is_active() {
    let world = World::new();
    let first = half_handed_out(&world, true);
    let second = Rc::new(RefCell::new(world.connect()));
    let comes = Rc::clone(&second);
    disconnect_and(&world, first, move || drop(comes.borrow_mut().consume("q")));
    assert_eq!(second.borrow_mut().bodies(), ["1", "2", "3", "4"]);
    second.borrow_mut().disconnect();
    assert!(!world.has_queue("q"));
}
