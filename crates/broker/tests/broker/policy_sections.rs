//! Queues that follow a policy, which makes them drop what waits: others have their turn in between.

use crate::support::{Message, Step, WorldOnDisk, declare_with};
use courser_codec::FieldTable;
use courser_journal::testing::Call;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const QUEUES: usize = 12;
const MESSAGES: usize = 2000;

#[test]
fn no_section_drops_more_than_a_connection_may_in_its_turn() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "letters", true, &FieldTable::new());
    let arguments = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "letters");
    for nth in 0..QUEUES {
        let name = format!("q{nth}");
        declare_with(&mut client, &name, true, &arguments);
        let persistent = Message::new("", &name, "x")
            .with_properties(|properties| properties.delivery_mode = Some(2));
        client.read(&vec![Step::Publish(1, persistent); MESSAGES]);
        world.flush();
    }
    // The policy is appended first, and then the letters of each section at its end.
    let full = Arc::new(AtomicUsize::new(0));
    let (broker, found) = (Arc::clone(&world.broker), Arc::clone(&full));
    let mut appends = 0;
    world.store().set_faults(move |call| {
        appends += usize::from(call == Call::Append);
        if appends == 2 {
            let admin = broker.admin();
            let ready =
                |nth| admin.queue("/", format!("q{nth}").as_bytes()).expect("a queue").ready;
            found.store((0..QUEUES).filter(|nth| ready(*nth) > 0).count(), Ordering::Relaxed);
            appends += 1;
        }
        None
    });
    world.give_policy("q.*", FieldTable::new().with("max-length", 0));
    let full = full.load(Ordering::Relaxed);
    assert!((1..QUEUES).contains(&full), "{full} queues have yet to follow the policy");
    for nth in 0..QUEUES {
        assert_eq!(world.counts(&format!("q{nth}")).0, 0, "{nth}");
    }
}
