//! Publisher confirms.

use crate::support::{Heard, Message, Step, World, WorldOnDisk, declare_with};
use courser_broker::wire::WireBuffer;
use courser_codec::{FieldTable, basic, confirm};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

fn message(queue: &str) -> Message {
    Message::new("", queue, "x")
}

fn confirm(through: u64, multiple: bool) -> Heard {
    Heard::Confirm { channel: 1, through, multiple }
}

#[test]
fn each_read_is_confirmed_by_one_ack() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.confirm_select();
    client.send(message("q"));
    assert_eq!(client.heard(), [confirm(1, false)]);
    let publish = Step::Publish(1, message("q"));
    client.read(&[publish.clone(), publish.clone(), publish.clone()]);
    assert_eq!(client.heard(), [confirm(4, true)]);
    client.read(&[publish.clone(), Step::PublishLarge(1, message("q")), publish]);
    assert_eq!(client.heard(), [confirm(7, true)]);
}

#[test]
fn what_is_confirmed_is_in_its_queue() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.confirm_select();
    client.send(message("q"));
    assert_eq!(client.heard(), [confirm(1, false)]);
    assert_eq!(world.counts("q"), (1, 0, 0));
}

#[test]
fn an_unroutable_message_is_confirmed_and_a_mandatory_one_returned_before() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.confirm_select();
    client.read(&[
        Step::Publish(1, message("q")),
        Step::Publish(1, message("missing")),
        Step::Publish(1, message("missing").mandatory()),
    ]);
    let heard = client.heard();
    assert!(matches!(&heard[..], [Heard::Return { .. }, last] if *last == confirm(3, true)));
}

#[test]
fn channels_are_confirmed_each_by_its_own_numbers() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.open_channel(2);
    client.open_channel(3);
    client.confirm_select();
    client.call_on(2, confirm::Select { nowait: false });
    client.read(&[
        Step::Publish(1, message("q")),
        Step::Publish(2, message("q")),
        Step::Publish(3, message("q")),
        Step::Publish(2, message("q")),
    ]);
    let second = Heard::Confirm { channel: 2, through: 2, multiple: true };
    assert_eq!(client.heard(), [confirm(1, false), second]);
}

#[test]
fn what_came_before_a_refused_publish_is_confirmed_first() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.confirm_select();
    client.read(&[
        Step::Publish(1, message("q")),
        Step::Publish(1, message("q")),
        Step::Publish(1, Message::new("no exchange", "", "x")),
    ]);
    let heard = client.heard();
    assert!(
        matches!(&heard[..], [first, Heard::ChannelClosed(_)] if *first == confirm(2, true)),
        "{heard:?}"
    );
    assert_eq!(world.counts("q").0, 2);
}

#[test]
fn a_channel_opened_anew_confirms_nothing_that_the_old_one_published() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.confirm_select();
    client.send(message("q"));
    client.heard();
    client.close_channel(1);
    client.open_channel(1);
    client.send(message("q"));
    assert_eq!(client.heard(), []);
    client.confirm_select();
    client.send(message("q"));
    assert_eq!(client.heard(), [confirm(1, false)]);
}

#[test]
fn select_with_nowait_is_without_a_word() {
    let world = World::new();
    let mut client = world.connect();
    client.tell(confirm::Select { nowait: true });
    assert_eq!(client.heard(), []);
    client.send(message("missing"));
    assert_eq!(client.heard(), [confirm(1, false)]);
}

fn persistent(queue: &str) -> Message {
    message(queue).with_properties(|properties| properties.delivery_mode = Some(2))
}

/// The frame that confirms one publish on channel 1.
fn ack(delivery_tag: u64) -> Vec<u8> {
    let mut frame = Vec::new();
    basic::Ack { delivery_tag, multiple: false }.write_frame(1, &mut frame);
    frame
}

fn bytes(wire: &mut WireBuffer) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire.append_to(&mut bytes);
    wire.clear();
    bytes
}

#[test]
fn the_thread_that_makes_it_durable_may_take_the_confirm() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.confirm_select();
    client.send(persistent("q"));
    let mut wire = WireBuffer::default();
    assert!(client.session().try_confirm(&mut wire));
    assert_eq!(bytes(&mut wire), [0_u8; 0], "nothing is confirmed before it is durable");
    world.sync();
    assert!(client.session().try_confirm(&mut wire));
    assert_eq!(bytes(&mut wire), ack(1));
    assert!(client.session().try_confirm(&mut wire));
    assert_eq!(bytes(&mut wire), [0_u8; 0], "once is enough");
    assert_eq!(client.heard(), []);
}

#[test]
fn it_is_left_to_the_connection_while_another_delivers_to_it() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.confirm_select();
    client.send(persistent("q"));
    world.sync();
    let outbox = Arc::clone(client.session().outbox());
    let delivering = outbox.lock();
    let mut wire = WireBuffer::default();
    assert!(!client.session().try_confirm(&mut wire));
    assert!(wire.is_empty());
    drop(delivering);
    assert_eq!(client.heard(), [confirm(1, false)]);
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_store_is_asked_once_however_often_confirms_are_taken() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.confirm_select();
    world.sync();
    let wakes = Arc::new(Wakes::default());
    client.session().notify_when_durable(Waker::from(Arc::clone(&wakes)).into());
    let mut wire = WireBuffer::default();
    for round in 1..4 {
        client.send(persistent("q"));
        for _ in 0..3 {
            assert!(client.session().try_confirm(&mut wire));
            client.session().confirm_durable();
        }
        world.sync();
        assert_eq!(wakes.0.load(Ordering::Relaxed), round);
        assert!(client.session().try_confirm(&mut wire));
        assert_eq!(bytes(&mut wire), ack(round as u64));
    }
}

#[test]
fn a_channel_that_is_opened_anew_waits_for_the_disk_as_well_and_once() {
    const CHANNELS: u16 = 20;
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    let numbers = 2..2 + CHANNELS;
    numbers.clone().for_each(|number| client.open_channel(number));
    let select = |number| Step::Call(number, confirm::Select { nowait: true }.into());
    client.read(&numbers.clone().map(select).collect::<Vec<_>>());
    let publishes: Vec<_> =
        numbers.clone().map(|number| Step::Publish(number, persistent("q"))).collect();
    client.read(&publishes);
    client.read(&publishes);
    client.close_channel(2);
    client.open_channel(2);
    client.read(&[select(2), Step::Publish(2, persistent("q"))]);
    world.sync();
    let heard = client.heard();
    assert_eq!(heard.len(), usize::from(CHANNELS), "{:?}", &heard[..3]);
}
