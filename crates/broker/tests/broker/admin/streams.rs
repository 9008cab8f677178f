//! Looking into streams.

use crate::streams;
use crate::streams::{fill, filled, reader, stream};
use crate::support::{World, WorldOnDisk};
use courser_broker::admin::{Admin, ConsumerView, StreamPage, StreamStart};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn offsets(page: &StreamPage) -> Vec<u64> {
    page.messages.iter().map(|one| one.number).collect()
}

fn read(world: &World, start: StreamStart, count: usize) -> StreamPage {
    world.broker.admin().read_stream("/", b"s", start, count, usize::MAX).expect("a stream")
}

fn consumers_of(admin: &Admin, queue: &[u8]) -> Vec<ConsumerView> {
    let mut found = Vec::new();
    admin.for_each_consumer_of("/", queue, &mut |one| found.push(one)).expect("a queue");
    found
}

#[test]
fn a_stream_is_read_from_any_place_without_a_change() {
    let world = World::new();
    let mut client = world.connect();
    stream(&mut client, "s");
    fill(&mut client, 0..3000);
    let page = read(&world, StreamStart::First, 2);
    assert_eq!((offsets(&page), page.next), (vec![0, 1], 2));
    assert_eq!((page.first_offset, page.next_offset), (0, 3000));
    assert_eq!(page.messages[1].body, "1");
    let page = read(&world, StreamStart::Offset(1500), 1000);
    assert_eq!((page.messages.len(), page.messages[0].number, page.next), (1000, 1500, 2500));
    assert_eq!(offsets(&read(&world, StreamStart::Last, 10)), [2999]);
    let end = read(&world, StreamStart::Next, 10);
    assert_eq!((offsets(&end).len(), end.next), (0, 3000));
    let beyond = read(&world, StreamStart::Offset(9000), 10);
    assert_eq!((offsets(&beyond).len(), beyond.next), (0, 9000));
    assert_eq!(read(&world, StreamStart::Time(0), 1).messages[0].number, 0);
    assert_eq!(world.counts("s"), (3000, 0, 0));
}

#[test]
fn only_what_is_durable_is_shown() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    stream(&mut client, "s");
    world.sync();
    client.publish("", "s", "0");
    assert!(offsets(&read(&world, StreamStart::First, 10)).is_empty());
    let durable = pin!(world.broker.admin().durable());
    assert!(durable.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    world.sync();
    assert_eq!(offsets(&read(&world, StreamStart::First, 10)), [0]);
}

#[test]
fn a_follower_is_woken_by_what_comes_and_sees_it_once() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    stream(&mut client, "s");
    world.sync();
    let admin = world.broker.admin();
    let mut follower = admin.follow_stream("/", b"s", StreamStart::Next).expect("a stream");
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    follower.wait(&waker);
    client.publish("", "s", "0");
    assert_eq!(count.0.load(Ordering::Relaxed), 0, "it is not durable");
    follower.wait(&waker);
    world.sync();
    assert!(count.0.load(Ordering::Relaxed) > 0);
    let page = follower.take(10, usize::MAX, usize::MAX).expect("no fault").expect("a stream");
    assert_eq!((offsets(&page), page.next), (vec![0], 1));
    let page = follower.take(10, usize::MAX, usize::MAX).expect("no fault").expect("a stream");
    assert!(offsets(&page).is_empty());
    client.delete("s");
    assert_eq!(follower.take(10, usize::MAX, usize::MAX).expect("no fault"), None);
}

#[test]
fn a_reader_is_shown_with_how_far_it_has_read_and_how_far_it_is_behind() {
    let world = World::new();
    let admin = world.broker.admin();
    let place = || {
        let consumers = consumers_of(&admin, b"s");
        consumers[0].stream.map(|place| (place.offset, place.lag))
    };
    let mut publisher = filled(&world, 5);
    let mut client = reader(&world, 2);
    streams::read(&mut client, "s", 1);
    assert_eq!(place(), Some((3, 2)), "its prefetch lets it have two of four");
    fill(&mut publisher, 5..7);
    assert_eq!(place(), Some((3, 4)));
    for delivery in client.deliveries() {
        client.ack(delivery.tag);
    }
    assert_eq!(place(), Some((5, 2)));
    // One that waits for an offset to come is behind nothing.
    let mut ahead = reader(&world, 2);
    streams::read(&mut ahead, "s", 100);
    let consumers = consumers_of(&admin, b"s");
    let far = consumers.iter().find(|one| one.unacked == 0).and_then(|one| one.stream);
    assert_eq!(far.map(|place| place.lag), Some(0));
    publisher.declare("q");
    publisher.consume("q");
    assert_eq!(consumers_of(&admin, b"q")[0].stream, None);
}

#[test]
fn what_is_no_stream_is_refused() {
    let world = World::new();
    world.connect().declare("q");
    let admin = world.broker.admin();
    let fault = admin.read_stream("/", b"q", StreamStart::First, 1, 1).expect_err("no stream");
    assert_eq!((fault.code, &*fault.explanation), (406, "queue 'q' is not a stream"));
}
