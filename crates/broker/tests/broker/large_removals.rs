//! What is more than the log takes at once is removed all the same, for good.

use crate::support::{BATCH_BYTES, Heard, WorldOnDisk, declare_with, short};
use courser_broker::VhostLimits;
use courser_broker::admin::NewQueue;
use courser_codec::{FieldTable, Table, exchange, queue};
use courser_journal::testing::Call;
use courser_store::StoreError;

const ARGUMENT_BYTES: usize = 32_000;

#[test]
fn an_exchange_with_more_bindings_than_go_into_a_batch_stays_deleted() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    let (name, kind) = (short("x"), short("direct"));
    let declare = |passive| exchange::Declare {
        exchange: name,
        kind,
        durable: true,
        passive,
        ..Default::default()
    };
    client.call(declare(false));
    let text = "x".repeat(ARGUMENT_BYTES);
    for nth in 0..=BATCH_BYTES as usize / ARGUMENT_BYTES {
        let entries = FieldTable::new().with("text", format!("{nth} {text}").as_str()).to_entries();
        let (queue, arguments) = (short("q"), Table::from_entries(&entries));
        let bind = queue::Bind { queue, exchange: name, arguments, ..Default::default() };
        assert_eq!(client.call(bind), Heard::Done("queue.bind-ok"));
    }
    let deleted = client.call(exchange::Delete { exchange: name, ..Default::default() });
    assert_eq!(deleted, Heard::Done("exchange.delete-ok"));
    client.disconnect();
    for _ in 0..2 {
        world.restart();
        let mut client = world.connect();
        assert!(client.refused(declare(true)).starts_with("404 "));
        // Nor does another one of its name have its bindings.
        client.call(declare(false));
        client.publish("x", "", "nowhere");
        assert_eq!(client.pop("q"), None);
        client.call(exchange::Delete { exchange: name, ..Default::default() });
        client.disconnect();
    }
}

#[test]
fn a_vhost_whose_deletion_has_failed_is_deleted_by_another_try() {
    let mut world = WorldOnDisk::new();
    world.broker.define_vhost("v", VhostLimits::default()).expect("a vhost");
    let admin = world.broker.admin();
    let queue = NewQueue { durable: true, ..NewQueue::default() };
    admin.declare_queue("v", "q", queue).expect("a queue");
    let mut appends = 0;
    world.store().set_faults(move |call| {
        // The queue goes, and the vhost does not.
        appends += usize::from(call == Call::Append);
        (call == Call::Append && appends > 1).then_some(StoreError::TooLarge(7))
    });
    assert!(admin.delete_vhost("v").is_err());
    world.store().heal();
    admin.delete_vhost("v").expect("it goes on");
    drop(admin);
    world.restart();
    assert!(world.broker.vhost("v").is_none());
}
