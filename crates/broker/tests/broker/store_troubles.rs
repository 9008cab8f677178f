//! What clients hear when the store has no room, or has failed.

use crate::support::{Client, Heard, Message, Step, WorldOnDisk, declare_with};
use courser_codec::{FieldTable, Method, queue};

/// A client that has confirms on, and a durable queue `q`.
fn publisher(world: &WorldOnDisk) -> Client {
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.confirm_select();
    client.heard();
    client
}

fn persistent(bytes: usize) -> Message {
    let message = Message::new("", "q", vec![7; bytes]);
    message.with_properties(|properties| properties.delivery_mode = Some(2))
}

/// Publishes until the connection is closed. Returns why, how many were sent, and how many confirmed.
fn publish_until_closed(client: &mut Client, steps: &[Step<'_>]) -> (String, u64, u64) {
    let (mut sent, mut confirmed) = (0, 0);
    loop {
        client.read(steps);
        sent += 1;
        for heard in client.heard() {
            match heard {
                Heard::Confirm { through, .. } => confirmed = through,
                Heard::ConnectionClosed(why) => return (why, sent, confirmed),
                _ => {}
            }
        }
        assert!(sent < 1000, "nothing was refused");
    }
}

#[test]
fn a_publish_that_there_is_no_room_for_is_never_confirmed() {
    let count = Method::from(queue::Declare {
        queue: "q".try_into().expect("short"),
        passive: true,
        ..Default::default()
    });
    for steps in [
        vec![Step::Publish(1, persistent(100_000))],
        vec![Step::PublishLarge(1, persistent(100_000))],
        // What follows in the same read is what finds out.
        vec![Step::Publish(1, persistent(100_000)), Step::Call(1, count)],
    ] {
        let world = WorldOnDisk::new();
        let mut client = publisher(&world);
        world.fill_disk();
        let (why, sent, confirmed) = publish_until_closed(&mut client, &steps);
        assert!(why.starts_with("506 "), "{why}");
        assert!(confirmed < sent, "{confirmed} of {sent}");
    }
}

#[test]
fn what_a_client_hears_of_a_store_that_has_failed_names_no_file() {
    let world = WorldOnDisk::new();
    let mut client = publisher(&world);
    client.send(persistent(1));
    world.break_disk();
    let (why, ..) = publish_until_closed(&mut client, &[Step::Publish(1, persistent(1))]);
    assert_eq!(why, "541 INTERNAL_ERROR - the store has failed; the broker's log says more");
}
