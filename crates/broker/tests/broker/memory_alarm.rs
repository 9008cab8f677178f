//! Too many waiting messages: publishers are held back until there is room.

use crate::frame_costs::cost;
use crate::support::{Client, World};
use courser_broker::{Broker, Limits};
use courser_journal::testing::WatchedStore;
use courser_store::{MemoryGauge, MemoryStore, Recovered, ShardId};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

fn small() -> World {
    World::with(Limits { memory_high_bytes: 100_000, ..Limits::default() })
}

fn publish(client: &mut Client, bytes: usize) {
    client.publish("", "q", &"x".repeat(bytes));
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn the_alarm_is_raised_by_waiting_messages_and_ends_when_they_are_consumed() {
    let world = small();
    let mut client = world.connect();
    client.declare("q");
    while world.broker.alarm().is_none() {
        publish(&mut client, 1000);
        assert!(world.broker.memory_used_bytes() < 110_000);
    }
    assert!(world.broker.memory_used_bytes() > 100_000);
    let mut pops = 0;
    while world.broker.alarm().is_some() {
        client.pop("q").expect("a message");
        pops += 1;
        client.read(&[]);
    }
    assert!(pops > 5, "the alarm ends some way below where it began: {pops}");
    assert!(world.broker.memory_used_bytes() <= 90_000);
}

#[test]
fn unacknowledged_messages_count_until_they_are_acknowledged() {
    let world = small();
    let mut client = world.connect();
    client.declare("q");
    client.consume("q");
    while world.broker.alarm().is_none() {
        publish(&mut client, 10_000);
    }
    let last = client.deliveries().len() as u64;
    assert_eq!(world.counts("q").0, 0);
    client.ack_through(last);
    assert!(world.broker.alarm().is_none());
    assert_eq!(world.broker.messages_bytes(), 0);
}

#[test]
fn messages_that_go_straight_to_a_consumer_raise_no_alarm() {
    let world = small();
    let mut client = world.connect();
    client.declare("q");
    client.consume_no_ack("q");
    for _ in 0..50 {
        publish(&mut client, 10_000);
        assert!(world.broker.alarm().is_none());
    }
    assert_eq!(client.bodies().len(), 50);
}

#[test]
fn purging_deleting_and_losing_a_queue_end_the_alarm() {
    let endings: [fn(&mut Client); 3] =
        [|client| drop(client.purge("q")), |client| drop(client.delete("q")), Client::disconnect];
    for end in endings {
        let world = small();
        let mut client = world.connect();
        let exclusive = courser_codec::queue::Declare {
            queue: crate::support::short("q"),
            exclusive: true,
            ..Default::default()
        };
        client.call(exclusive);
        while world.broker.alarm().is_none() {
            publish(&mut client, 10_000);
        }
        end(&mut client);
        assert!(world.broker.alarm().is_none());
    }
}

#[test]
fn who_is_held_back_is_woken_when_the_alarm_ends_and_only_then() {
    let world = small();
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    consumer.declare("q");
    let outbox = Arc::clone(publisher.session().outbox());
    assert_eq!(publisher.session().hold_back(), None, "there is no alarm");
    while world.broker.alarm().is_none() {
        publish(&mut publisher, 10_000);
    }
    let woken = Arc::new(Woken::default());
    outbox.register(&Waker::from(Arc::clone(&woken)));
    assert_eq!(publisher.session().hold_back(), Some("low on memory"));
    consumer.pop("q");
    assert!(world.broker.alarm().is_some() && !woken.0.load(Ordering::SeqCst));
    consumer.purge("q");
    assert!(woken.0.load(Ordering::SeqCst));
    assert_eq!(publisher.session().hold_back(), None);
}

/// Notes the number of a connection when it is woken.
struct Noting(usize, Arc<Mutex<Vec<usize>>>);

impl Wake for Noting {
    fn wake(self: Arc<Self>) {
        self.1.lock().push(self.0);
    }
}

const PUBLISHERS: usize = 50;

/// Raises an alarm; gives the client whose queue has caused it, and others that are to wait for its end.
fn in_an_alarm(world: &World) -> (Client, Vec<Client>) {
    let mut consumer = world.connect();
    consumer.declare("q");
    let publishers = (0..PUBLISHERS).map(|_| world.connect()).collect();
    while world.broker.alarm().is_none() {
        publish(&mut consumer, 10_000);
    }
    (consumer, publishers)
}

/// Has a publisher wait for the end of the alarm; its number is noted in `woken` when it is woken.
fn hold_back(publisher: &mut Client, number: usize, woken: &Arc<Mutex<Vec<usize>>>) {
    publish(publisher, 0);
    assert!(publisher.session().hold_back().is_some());
    let waker = Waker::from(Arc::new(Noting(number, Arc::clone(woken))));
    publisher.session().outbox().register(&waker);
}

#[test]
fn who_are_held_back_are_woken_in_the_order_in_which_they_came() {
    let world = small();
    let (mut consumer, mut publishers) = in_an_alarm(&world);
    let woken = Arc::default();
    let order: Vec<_> = (0..PUBLISHERS).map(|number| number * 7 % PUBLISHERS).collect();
    order.iter().for_each(|number| hold_back(&mut publishers[*number], *number, &woken));
    consumer.purge("q");
    assert_eq!(*woken.lock(), order);
}

#[test]
fn of_many_who_are_held_back_each_has_its_turn() {
    let world = small();
    let (mut consumer, mut publishers) = in_an_alarm(&world);
    let woken = Arc::default();
    for (number, publisher) in publishers.iter_mut().enumerate() {
        hold_back(publisher, number, &woken);
    }
    let mut published = [0; PUBLISHERS];
    // The first to be woken publish until the next alarm, a few of them.
    for _ in 0..PUBLISHERS {
        consumer.purge("q");
        let turns = std::mem::take(&mut *woken.lock());
        assert_eq!(turns.len(), PUBLISHERS);
        let (mut served, mut early) = (Vec::new(), Vec::new());
        for number in turns {
            match publishers[number].session().hold_back() {
                None => {
                    publish(&mut publishers[number], 10_000);
                    published[number] += 1;
                    served.push(number);
                }
                Some(_) => early.push(number),
            }
        }
        assert!(world.broker.alarm().is_some() && !early.is_empty());
        // Those who have published have more, and come first.
        for number in served.into_iter().chain(early) {
            hold_back(&mut publishers[number], number, &woken);
        }
    }
    assert!(published.iter().all(|times| *times > 0), "{published:?}");
}

#[test]
fn only_who_publishes_in_spite_of_the_alarm_is_held_back() {
    let world = small();
    let (mut publisher, mut earlier) = (world.connect(), world.connect());
    earlier.declare("q");
    publish(&mut earlier, 1);
    while world.broker.alarm().is_none() {
        assert_eq!(publisher.session().hold_back(), None);
        publish(&mut publisher, 10_000);
    }
    assert_eq!(publisher.session().hold_back(), Some("low on memory"));
    earlier.consume("q");
    assert_eq!(earlier.session().hold_back(), None, "its acknowledgements end the alarm");
    let all = earlier.deliveries().len() as u64;
    earlier.ack_through(all);
    assert_eq!(publisher.session().hold_back(), None);
    publish(&mut earlier, 10_000);
    assert_eq!(earlier.session().hold_back(), None, "there is no alarm any more");
}

/// A broker with two shards, and what they are kept in.
fn two_shards() -> (World, [Arc<WatchedStore>; 2]) {
    let gauge = Arc::new(MemoryGauge::default());
    let stores = [(), ()].map(|()| {
        let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
        Arc::new(WatchedStore::new(store))
    });
    let limits = Limits { memory_high_bytes: 100_000, ..Limits::default() };
    let broker = Broker::new(Arc::clone(&stores[0]) as _, Arc::clone(&gauge), limits, 7);
    let other = Arc::clone(&stores[1]) as _;
    broker.open_shard(ShardId(1), other, Recovered::default()).expect("a new shard");
    (World { broker, log: None }, stores)
}

#[test]
fn of_several_shards_without_room_the_last_that_has_some_again_ends_the_alarm() {
    let (world, [home, other]) = two_shards();
    for order in [[&home, &other], [&other, &home]] {
        for store in order {
            store.set_full(true);
            world.broker.check_alarms();
        }
        assert_eq!(world.broker.alarm(), Some("low on disk"));
        order[0].set_full(false);
        assert_eq!(world.broker.alarm(), Some("low on disk"), "another shard has no room");
        order[1].set_full(false);
        assert_eq!(world.broker.alarm(), None, "no one else looks");
    }
}

#[test]
fn a_shard_that_has_room_for_a_moment_is_watched_until_it_has_some() {
    let (world, [home, _]) = two_shards();
    home.set_full(true);
    world.broker.check_alarms();
    let full_again = Arc::downgrade(&home);
    home.after_next_room(move || full_again.upgrade().expect("it is there").set_full(true));
    home.set_full(false);
    assert_eq!(world.broker.alarm(), Some("low on disk"));
    home.set_full(false);
    assert_eq!(world.broker.alarm(), None, "the shard is still watched");
}

#[test]
fn an_alarm_of_the_disk_raises_none_of_the_memory() {
    let (world, [home, _]) = two_shards();
    let mut client = world.connect();
    client.declare("q");
    while world.broker.memory_used_bytes() <= 91_000 {
        publish(&mut client, 1000);
    }
    home.set_full(true);
    world.broker.check_alarms();
    assert_eq!(world.broker.alarm(), Some("low on disk"));
    home.set_full(false);
    assert_eq!(world.broker.alarm(), None);
}

#[test]
fn who_is_held_back_is_not_looked_for_among_all_others_and_is_forgotten_at_its_end() {
    const PUBLISHERS: usize = 500;
    let world = World::with(Limits { memory_high_bytes: 8 << 20, ..Limits::default() });
    let mut first = world.connect();
    first.declare("q");
    let mut publishers: Vec<_> = (0..PUBLISHERS).map(|_| world.connect()).collect();
    while world.broker.alarm().is_none() {
        publish(&mut first, 1_000_000);
    }
    for publisher in &mut publishers {
        publish(publisher, 0);
        assert!(publisher.session().hold_back().is_some());
    }
    for publisher in &mut publishers {
        let taken = cost(|| assert!(publisher.session().hold_back().is_some()));
        assert!(taken < 10, "{taken}");
    }
    publishers.iter_mut().for_each(|publisher| publisher.session().close());
    let outbox = Arc::downgrade(publishers[0].session().outbox());
    drop(publishers);
    assert!(outbox.upgrade().is_none(), "nothing keeps what it had to send");
}
