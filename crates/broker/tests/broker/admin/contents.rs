//! What the messages of a queue amount to: bytes, how many are persistent, how many are in memory.

use crate::support::{Client, Message, World, WorldOnDisk, declare_with};
use courser_broker::admin::{Amount, QueueContents, QueueView};
use courser_codec::{FieldTable, basic};
use std::collections::BTreeMap;

fn view(world: &World, name: &str) -> QueueView {
    world.broker.admin().queue("/", name.as_bytes()).expect("the queue")
}

fn contents(world: &World) -> QueueContents {
    view(world, "q").contents.expect("it is no stream")
}

/// A body of so many bytes.
fn message(bytes: usize, is_persistent: bool) -> Message {
    Message::new("", "q", vec![b'x'; bytes]).with_properties(|properties| {
        properties.delivery_mode = Some(if is_persistent { 2 } else { 1 });
    })
}

/// Bytes of a body, and whether the message is persistent.
type Known = (usize, bool);

/// What a queue should have, by the numbers of its messages.
#[derive(Default)]
struct Model {
    ready: BTreeMap<u64, Known>,
    /// With their delivery tags.
    unacked: BTreeMap<u64, (u64, Known)>,
    next: u64,
}

fn amount<'a>(of: impl Iterator<Item = &'a Known>, is_persistent: bool) -> Amount {
    let lens: Vec<u64> = of.filter(|one| one.1 == is_persistent).map(|one| one.0 as u64).collect();
    Amount { messages: lens.len() as u64, bytes: lens.iter().sum() }
}

impl Model {
    fn publish(&mut self, client: &mut Client, bytes: usize, is_persistent: bool) {
        client.send(message(bytes, is_persistent));
        self.ready.insert(self.next, (bytes, is_persistent));
        self.next += 1;
    }

    fn get(&mut self, client: &mut Client) {
        let got = client.get("q");
        assert_eq!(got.is_some(), !self.ready.is_empty());
        if let (Some(got), Some((number, known))) = (got, self.ready.pop_first()) {
            self.unacked.insert(number, (got.tag, known));
        }
    }

    /// Takes one out that was delivered: the `pick`th.
    fn settled(&mut self, pick: usize) -> Option<(u64, u64, Known)> {
        let number = *self.unacked.keys().nth(pick % self.unacked.len().max(1))?;
        let (tag, known) = self.unacked.remove(&number)?;
        Some((number, tag, known))
    }

    /// A restart takes back what is persistent.
    fn restart(&mut self) {
        let unacked = std::mem::take(&mut self.unacked);
        self.ready.extend(unacked.into_iter().map(|(number, (_, known))| (number, known)));
        self.ready.retain(|_, known| known.1);
    }

    fn contents(&self) -> QueueContents {
        let unacked = || self.unacked.values().map(|(_, known)| known);
        let all = || self.ready.values().chain(unacked());
        let bytes = |known: &Known| known.0 as u64;
        let persistent = amount(all(), true);
        QueueContents {
            ready_bytes: Some(self.ready.values().map(bytes).sum()),
            unacked_bytes: Some(unacked().map(bytes).sum()),
            ready_in_memory: amount(self.ready.values(), false),
            unacked_in_memory: amount(unacked(), false),
            persistent: persistent.messages,
            persistent_bytes: Some(persistent.bytes),
        }
    }
}

/// Numbers that look random, and are the same each time.
fn numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    }
}

fn follow(arguments: &FieldTable, seed: u64) {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, arguments);
    let (mut model, mut next) = (Model::default(), numbers(seed));
    for step in 0..400 {
        match next(100) {
            0..40 => {
                for _ in 0..=next(20) {
                    let (bytes, is_persistent) = (next(300), next(3) > 0);
                    model.publish(&mut client, bytes, is_persistent);
                }
            }
            40..65 => (0..=next(12)).for_each(|_| model.get(&mut client)),
            65..80 => {
                if let Some((_, tag, _)) = model.settled(next(50)) {
                    client.ack(tag);
                }
            }
            80..92 => {
                if let Some((number, tag, known)) = model.settled(next(50)) {
                    client.requeue(tag);
                    model.ready.insert(number, known);
                }
            }
            92..96 => {
                if let Some((_, tag, _)) = model.settled(next(50)) {
                    client.tell(basic::Reject { delivery_tag: tag, requeue: false });
                }
            }
            96 => {
                client.purge("q");
                model.ready.clear();
            }
            _ => {
                world.sync();
                client.disconnect();
                match next(3) {
                    0 => world.restart_from_checkpoint(),
                    _ => world.restart(),
                }
                client = world.connect();
                model.restart();
            }
        }
        assert_eq!(contents(&world), model.contents(), "step {step} of {seed}");
    }
}

#[test]
fn bytes_and_what_is_persistent_are_told_whatever_comes_and_goes() {
    for seed in 0..4 {
        follow(&FieldTable::new(), seed);
    }
    follow(&FieldTable::new().with("x-max-length-bytes", 1_000_000_000_i64), 7);
}

#[test]
fn long_queues_know_the_sizes_of_what_is_packed() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    let mut model = Model::default();
    // The first pages have bodies of one size, the others have not.
    (0..6_000)
        .for_each(|at| model.publish(&mut client, if at < 3_000 { 50 } else { at % 300 }, true));
    assert_eq!(contents(&world), model.contents());
    for _ in 0..5_500 {
        model.get(&mut client);
    }
    assert_eq!(contents(&world), model.contents());
    client.tell(basic::Nack { delivery_tag: 0, multiple: true, requeue: true });
    let returned = std::mem::take(&mut model.unacked);
    model.ready.extend(returned.into_iter().map(|(number, (_, known))| (number, known)));
    assert_eq!(contents(&world), model.contents());
}

#[test]
fn what_expires_or_is_too_much_takes_its_bytes_along() {
    let world = World::new();
    world.broker.set_time(1_000);
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &FieldTable::new().with("x-max-length", 3));
    for bytes in [100, 10, 20, 30] {
        client.send(message(bytes, false));
    }
    let in_memory = Amount { messages: 3, bytes: 60 };
    let expected =
        QueueContents { ready_bytes: Some(60), ready_in_memory: in_memory, ..QueueContents::NONE };
    assert_eq!(contents(&world), expected);
    client.purge("q");
    client.send(message(7, false).expiration("500"));
    client.send(message(8, false));
    assert_eq!(contents(&world).ready_bytes, Some(15));
    world.tick_all(1_500);
    assert_eq!(contents(&world).ready_bytes, Some(8));
    let consumer = client.consume_no_ack("q");
    assert_eq!(contents(&world), QueueContents::NONE);
    client.cancel(&consumer);
}

#[test]
fn what_goes_straight_to_a_consumer_counts_until_it_is_acknowledged() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.consume("q");
    client.send(message(40, true));
    client.send(message(5, false));
    let expected = QueueContents {
        unacked_bytes: Some(45),
        unacked_in_memory: Amount { messages: 1, bytes: 5 },
        persistent: 1,
        persistent_bytes: Some(40),
        ..QueueContents::NONE
    };
    assert_eq!(contents(&world), expected);
    client.deliveries();
    client.ack_through(2);
    assert_eq!(contents(&world), QueueContents::NONE);
}

#[test]
fn sizes_that_a_checkpoint_does_not_tell_are_known_again_once_the_messages_were_delivered() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.send(message(10, true));
    client.send(message(20, true));
    world.sync();
    client.disconnect();
    world.restart_without_sizes();
    let mut client = world.connect();
    let found = contents(&world);
    assert_eq!((found.bytes(), found.persistent_bytes, found.persistent), (None, None, 2));
    client.send(message(1, true));
    let first = client.get("q").expect("it waits");
    assert_eq!((contents(&world).ready_bytes, contents(&world).unacked_bytes), (None, Some(10)));
    let second = client.get("q").expect("it waits");
    client.requeue(second.tag);
    let found = contents(&world);
    assert_eq!((found.ready_bytes, found.unacked_bytes), (Some(21), Some(10)));
    assert_eq!((found.persistent_bytes, found.persistent), (Some(31), 3));
    client.ack(first.tag);
    client.consume("q");
    assert_eq!(contents(&world).unacked_bytes, Some(21));
}

#[test]
fn nothing_is_persistent_in_a_queue_that_does_not_survive() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &FieldTable::new());
    declare_with(&mut client, "durable", true, &FieldTable::new());
    client.declare_exchange("x", "fanout");
    client.bind("q", "x", "");
    client.bind("durable", "x", "");
    let message = Message::new("x", "", "12345").with_properties(|properties| {
        properties.delivery_mode = Some(2);
    });
    client.send(message);
    assert_eq!((contents(&world).persistent, contents(&world).ready_bytes), (0, Some(5)));
    let durable = view(&world, "durable").contents.expect("no stream");
    assert_eq!((durable.persistent, durable.ready_bytes), (1, Some(5)));
}

#[test]
fn a_queue_tells_when_it_was_used_last_and_the_timestamp_of_its_head() {
    let world = WorldOnDisk::new();
    world.broker.set_time(1_000);
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    assert_eq!(view(&world, "q").used_ms, 1_000);
    let stamped = |at, is_persistent| {
        message(3, is_persistent).with_properties(|properties| properties.timestamp = Some(at))
    };
    world.broker.set_time(2_000);
    client.send(stamped(77, false));
    client.send(stamped(88, true));
    let admin = world.broker.admin();
    let head = || admin.head_timestamp("/", b"q").expect("the queue");
    let seen = view(&world, "q");
    assert_eq!((seen.used_ms, seen.head_timestamp, head()), (2_000, Some(77), Some(77)));
    world.broker.set_time(3_000);
    let tag = client.get("q").expect("it waits").tag;
    let seen = view(&world, "q");
    assert_eq!((seen.used_ms, seen.head_timestamp, head()), (3_000, None, Some(88)));
    world.broker.set_time(4_000);
    assert_eq!(view(&world, "q").used_ms, 3_000);
    client.requeue(tag);
    let seen = view(&world, "q");
    assert_eq!((seen.used_ms, seen.head_timestamp), (4_000, Some(77)));
    client.purge("q");
    assert_eq!((view(&world, "q").head_timestamp, head()), (None, None));
}

#[test]
fn the_memory_of_a_queue_grows_and_shrinks_with_its_messages() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &FieldTable::new());
    let empty = view(&world, "q").memory_bytes;
    assert!(empty > 0);
    (0..1_000).for_each(|_| client.send(message(100, false)));
    let full = view(&world, "q").memory_bytes;
    assert!(full >= empty + 1_000 * (100 + 16), "{full} after {empty}");
    client.purge("q");
    let left = view(&world, "q").memory_bytes;
    assert!(left < empty + 16 * 1024, "{left} after {empty}");
}
