//! Publisher confirms.

use crate::support::{Heard, Message, Step, World};
use courser_codec::confirm;

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
