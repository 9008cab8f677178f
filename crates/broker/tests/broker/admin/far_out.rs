//! Looking at messages far out in a long queue, and moving them, while others use it.

use super::relocate::{anywhere, bodies, relocate, to};
use crate::frame_costs::{cost, fill};
use crate::support::{Message, Step, World, WorldOnDisk, declare_with};
use courser_broker::admin::{MessageView, Selection};
use courser_codec::FieldTable;
use courser_journal::testing::Call;
use courser_store::StoreError;

/// More than some pages of places.
const MESSAGES: usize = 40_000;
/// Steps of what looks at a thousand messages and some pages of places.
const SOME: u64 = 8_192;

fn numbered(count: usize) -> Vec<Step<'static>> {
    let message = |number: usize| {
        Message::new("", "from", number.to_string()).with_properties(|properties| {
            properties.delivery_mode = Some(2);
        })
    };
    (0..count).map(|number| Step::Publish(1, message(number))).collect()
}

#[test]
fn a_look_far_out_costs_no_more_than_one_at_the_head() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("from");
    fill(&mut client, "from", MESSAGES);
    let admin = world.broker.admin();
    for (skip, found) in [(0, 1000), (MESSAGES - 500, 500), (MESSAGES, 0), (usize::MAX, 0)] {
        let taken = cost(|| {
            let shown = admin.peek("/", b"from", skip, 1000, 1).expect("the queue");
            assert_eq!(shown.len(), found, "from {skip} on");
        });
        assert!(taken <= SOME, "from {skip} on: {taken}");
    }
}

#[test]
fn a_move_from_far_out_uses_nothing_for_those_in_front() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    for queue in ["from", "to"] {
        declare_with(&mut client, queue, true, &FieldTable::new());
    }
    client.read(&numbered(MESSAGES));
    let before = world.broker.memory_used_bytes();
    let selection = Selection { skip: MESSAGES - 2000, count: Some(500), ..Selection::default() };
    let taken = cost(|| {
        let done = relocate(&world.broker, "from", &selection, &to("to"));
        assert_eq!((done.moved, done.next), (500, MESSAGES - 2000));
    });
    // There are two portions, and each message is acknowledged.
    assert!(taken <= 3 * SOME, "{taken}");
    let used = world.broker.memory_used_bytes();
    // The other queue has the places of 500 now, and there were books of those that were taken.
    assert!(used <= before + 500 * 40, "{before}, {used}");
    let left: Vec<_> = (0..MESSAGES).filter(|at| !(38_000..38_500).contains(at)).collect();
    let left: Vec<_> = left.into_iter().map(|number| number.to_string()).collect();
    assert_eq!(client.pop_all("from"), left);
}

#[test]
fn a_move_looks_at_each_message_once_while_the_head_is_consumed() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("from");
    client.declare("to");
    client.read(&numbered(5000));
    let is_late = |one: &MessageView| {
        String::from_utf8_lossy(&one.body).parse().is_ok_and(|at: usize| at >= 900)
    };
    let selection = Selection { filter: Some(&is_late), ..Selection::default() };
    let admin = world.broker.admin();
    let mut relocation = admin.relocation("/", b"from", to("to"), false).expect("both");
    while relocation.go_on(&selection, &anywhere).expect("it can be done") {
        (0..50).for_each(|_| drop(client.get("from")));
    }
    let done = relocation.done();
    assert_eq!((done.moved, done.is_partial), (4100, false));
    let late: Vec<_> = (900..5000).map(|number| number.to_string()).collect();
    assert_eq!(client.pop_all("to"), late);
}

#[test]
fn what_could_not_be_moved_is_in_its_place_again() {
    for arguments in [FieldTable::new(), FieldTable::new().with("x-max-length-bytes", 1 << 20)] {
        let mut world = WorldOnDisk::new();
        let mut client = world.connect();
        declare_with(&mut client, "from", true, &arguments);
        declare_with(&mut client, "to", true, &FieldTable::new());
        client.read(&numbered(5000));
        let skip = 3000;
        world.store().set_faults(|call| (call == Call::Append).then_some(StoreError::Full));
        let selection = Selection { skip, ..Selection::default() };
        let admin = world.broker.admin();
        let failed = admin.relocate("/", b"from", &selection, &to("to"), &anywhere, false);
        assert_eq!(failed.expect_err("there is no room").code, 506);
        world.store().heal();
        let shown = admin.peek("/", b"from", 2990, 500, 100).expect("the queue");
        let redelivered: Vec<bool> = shown.iter().flatten().map(|one| one.redelivered).collect();
        assert_eq!(redelivered, [false; 500], "no client has had them");
        let names: Vec<_> = (0..5000).map(|number| number.to_string()).collect();
        assert_eq!(
            shown
                .iter()
                .flatten()
                .map(|one| String::from_utf8_lossy(&one.body))
                .collect::<Vec<_>>(),
            names[2990..3490]
        );
        world.sync();
        client.disconnect();
        drop((admin, client));
        world.restart();
        assert_eq!(bodies(&world.broker, "from"), names[..1000]);
        assert_eq!(world.connect().pop_all("from"), names);
    }
}

#[test]
fn what_has_left_the_middle_counts_no_more_towards_a_limit_of_bytes() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "from", false, &FieldTable::new().with("x-max-length-bytes", 5000));
    client.declare("to");
    let message = |number: usize| Message::new("", "from", format!("{number:05}"));
    let publish = |from, to| (from..to).map(|at| Step::Publish(1, message(at))).collect::<Vec<_>>();
    client.read(&publish(0, 1000));
    let selection = Selection { skip: 100, count: Some(800), ..Selection::default() };
    assert_eq!(relocate(&world.broker, "from", &selection, &to("to")).moved, 800);
    client.read(&publish(1000, 1800));
    assert_eq!(world.counts("from").0, 1000, "there is room again");
    client.read(&publish(1800, 1950));
    // The hundred in front of the gap have made room, and then some behind it.
    let name = |number: usize| format!("{number:05}");
    let left: Vec<_> = (950..1950).map(name).collect();
    assert_eq!(bodies(&world.broker, "from"), left);
    assert_eq!(client.pop_all("from"), left);
}
