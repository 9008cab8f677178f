//! Clients that read slowly: what is on its way to all of them is bounded, and each gets everything once it reads.

use crate::streams::{read, stream};
use crate::support::{Client, Message, World, declare_with};
use courser_broker::wire::WireBuffer;
use courser_broker::{Broker, Limits};
use courser_codec::FieldTable;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

const LARGE: usize = 200_000;
const CLIENTS: usize = 60;

fn limits() -> Limits {
    let (memory_high_bytes, message_max_bytes) = (20 * LARGE as u64, LARGE as u64);
    Limits { memory_high_bytes, message_max_bytes, ..Limits::default() }
}

fn outboxes(broker: &Arc<Broker>) -> usize {
    broker.admin().memory_uses().outboxes as usize
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A client that takes what it is sent when it is told to, and the driver of its connection.
struct Slow {
    client: Client,
    sending: WireBuffer,
    woken: Arc<Woken>,
    got: usize,
}

impl Slow {
    fn new(mut client: Client) -> Self {
        let woken = Arc::new(Woken::default());
        client.session().outbox().register(&Waker::from(Arc::clone(&woken)));
        Slow { client, sending: WireBuffer::default(), woken, got: 0 }
    }

    /// What the driver does when it has been woken: it fills what is to be sent, if that is empty.
    fn run(&mut self) {
        let session = self.client.session();
        loop {
            self.woken.0.store(false, Ordering::SeqCst);
            session.outbox().register(&Waker::from(Arc::clone(&self.woken)));
            session.confirm_durable();
            for _ in 0..2 {
                if self.sending.is_empty() {
                    let taken = session.outbox().take(&mut self.sending);
                    if !taken.stalled.is_empty() {
                        session.resume(taken.stalled);
                    }
                }
            }
            if !self.woken.0.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    /// The client takes all that is being sent. Returns whether there was anything to do.
    fn take(&mut self) -> bool {
        let (sent, woken) = (self.sending.len(), self.woken.0.load(Ordering::SeqCst));
        if sent == 0 && !woken {
            return false;
        }
        self.got += sent;
        self.sending.clear();
        if sent > 0 {
            self.run();
            if self.sending.is_empty() {
                // As the driver does when all has been sent while memory is short.
                self.sending.release();
                self.client.session().outbox().release_memory();
            }
        } else {
            self.run();
        }
        true
    }
}

/// Lets all of them run, none of which takes anything.
fn run_all(slow: &mut [Slow]) {
    slow.iter_mut().for_each(Slow::run);
}

/// Lets all take what they are sent, as long as one of them has something to do.
fn take_all(slow: &mut [Slow]) {
    while slow.iter_mut().map(Slow::take).fold(false, |one, other| one | other) {}
}

fn assert_bounded(broker: &Arc<Broker>) {
    let used = outboxes(broker);
    assert!(used <= 11 * LARGE + CLIENTS * 1024, "{used}");
    assert!(used >= 7 * LARGE, "{used}: there is room for more");
}

fn assert_got(slow: &[Slow], messages: usize) {
    for (nth, one) in slow.iter().enumerate() {
        let most = messages * (LARGE + 1000) + 8192;
        assert!((messages * LARGE..most).contains(&one.got), "client {nth}: {} bytes", one.got);
    }
}

#[test]
fn slow_readers_of_a_stream_are_sent_no_more_than_there_is_room_for_and_get_all_of_it() {
    let world = World::with(limits());
    let mut publisher = world.connect();
    stream(&mut publisher, "s");
    let mut slow: Vec<Slow> = (0..CLIENTS)
        .map(|_| {
            let mut client = world.connect();
            client.qos(2);
            read(&mut client, "s", "first");
            Slow::new(client)
        })
        .collect();
    for _ in 0..2 {
        publisher.send(Message::new("", "s", vec![b'x'; LARGE]));
    }
    run_all(&mut slow);
    assert_bounded(&world.broker);
    take_all(&mut slow);
    assert_got(&slow, 2);
    assert_eq!(outboxes(&world.broker), 0);
}

/// Clients each of which consumes a queue of its own.
fn consumers(world: &World) -> Vec<Slow> {
    let consume = |nth| {
        let mut client = world.connect();
        declare_with(&mut client, &format!("q{nth}"), false, &FieldTable::new());
        client.consume_no_ack(&format!("q{nth}"));
        Slow::new(client)
    };
    (0..CLIENTS).map(consume).collect()
}

fn publish_to_each(publisher: &mut Client, bytes: usize) {
    for nth in 0..CLIENTS {
        publisher.send(Message::new("", &format!("q{nth}"), vec![b'x'; bytes]));
    }
}

#[test]
fn slow_readers_of_queues_are_sent_no_more_than_there_is_room_for_and_get_all_of_it() {
    let world = World::with(limits());
    let mut publisher = world.connect();
    let mut slow = consumers(&world);
    for _ in 0..3 {
        publish_to_each(&mut publisher, LARGE);
        run_all(&mut slow);
        assert_bounded(&world.broker);
    }
    take_all(&mut slow);
    assert_got(&slow, 3);
    assert_eq!(outboxes(&world.broker), 0);
}

#[test]
fn those_that_wait_for_room_go_on_when_others_are_gone() {
    let world = World::with(limits());
    let mut publisher = world.connect();
    let mut slow = consumers(&world);
    publish_to_each(&mut publisher, LARGE);
    run_all(&mut slow);
    let (holding, mut others): (Vec<Slow>, Vec<Slow>) =
        slow.into_iter().partition(|one| !one.sending.is_empty());
    assert!(others.len() >= CLIENTS / 2, "{}", others.len());
    assert!(others.iter().all(|one| !one.woken.0.load(Ordering::SeqCst)));
    drop(holding);
    take_all(&mut others);
    assert_got(&others, 1);
}

#[test]
fn while_there_is_no_room_a_client_that_has_taken_all_gets_one_small_message_after_the_other() {
    let world = World::with(limits());
    let mut publisher = world.connect();
    let mut slow = consumers(&world);
    let mut reader = world.connect();
    reader.declare("small");
    reader.consume_no_ack("small");
    let mut reader = Slow::new(reader);
    publish_to_each(&mut publisher, LARGE);
    run_all(&mut slow);
    for _ in 0..10 {
        publisher.publish("", "small", "x");
    }
    assert_eq!(world.counts("small").0, 9, "one is on its way");
    while reader.take() {}
    assert_eq!(world.counts("small").0, 0);
    take_all(&mut slow);
    assert_got(&slow, 1);
}

#[test]
fn a_lot_that_is_larger_than_usual_is_followed_by_the_next_once_it_has_been_sent() {
    let world = World::new();
    let mut publisher = world.connect();
    let mut slow = consumers(&world);
    for _ in 0..3 {
        publisher.send(Message::new("", "q0", vec![b'x'; 3_000_000]));
    }
    slow[0].run();
    assert!(outboxes(&world.broker) < 4_000_000, "{}", outboxes(&world.broker));
    while slow[0].take() {}
    assert!(slow[0].got >= 9_000_000, "{}", slow[0].got);
}

#[test]
fn a_large_message_that_is_asked_for_stays_where_it_is_while_there_is_no_room() {
    let world = World::with(limits());
    let (mut publisher, mut getter) = (world.connect(), world.connect());
    let mut slow = consumers(&world);
    publisher.declare("other");
    publisher.send(Message::new("", "other", vec![b'x'; LARGE]));
    publisher.publish("", "other", "small");
    publish_to_each(&mut publisher, LARGE);
    run_all(&mut slow);
    assert_eq!(getter.get("other"), None);
    assert_eq!(world.counts("other"), (2, 0, 0));
    take_all(&mut slow);
    assert_eq!(getter.get("other").map(|got| got.body.len()), Some(LARGE));
}
