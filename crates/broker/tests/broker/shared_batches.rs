//! The memory of a batch goes from one connection to the next one on the thread, however the first has ended.

use crate::support::{Client, Heard, Message, Step, WorldOnDisk, declare_with};
use courser_codec::FieldTable;
use courser_journal::testing::Call;
use courser_store::StoreError;

fn persistent_to(queue: &str) -> Message {
    Message::new("", queue, "x").with_properties(|properties| properties.delivery_mode = Some(2))
}

/// A client that has confirms on.
fn publisher(world: &WorldOnDisk) -> Client {
    let mut client = world.connect();
    client.confirm_select();
    client.heard();
    client
}

/// A durable queue that refuses what is more than `messages`.
fn declare_refusing(client: &mut Client, queue: &str, messages: i64) {
    let arguments =
        FieldTable::new().with("x-max-length", messages).with("x-overflow", "reject-publish");
    declare_with(client, queue, true, &arguments);
}

#[test]
fn what_a_lost_publisher_is_owed_is_told_to_no_other() {
    let publish = || Step::Publish(1, persistent_to("roomy"));
    for (steps, fails) in [
        // The log takes none of it.
        (vec![publish(), publish()], true),
        // A message on another way finds that out.
        (vec![publish(), Step::Publish(1, persistent_to("full"))], true),
        // The connection ends before the log is asked.
        (vec![publish(), publish(), Step::Fatal], false),
    ] {
        let world = WorldOnDisk::new();
        let (mut lost, mut other) = (publisher(&world), publisher(&world));
        declare_refusing(&mut other, "roomy", 100);
        declare_refusing(&mut other, "full", 0);
        if fails {
            world.store().set_faults(|call| (call == Call::Append).then_some(StoreError::Deposed));
        }
        lost.read(&steps);
        assert!(!lost.is_connected());
        world.store().heal();
        other.read(&[Step::Publish(1, persistent_to("full"))]);
        world.sync();
        assert_eq!(other.heard(), [Heard::Refused { channel: 1, tag: 1 }]);
        assert!(other.is_connected());
    }
}
