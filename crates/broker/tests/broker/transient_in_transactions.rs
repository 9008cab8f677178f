//! In a cluster, what comes of transient messages of a transaction is seen when that is committed.

use crate::delayed::{START_MS, declare_as, delayed_type};
use crate::support::{Client, Message, Step, WorldOnDisk, declare_with};
use courser_codec::{FieldTable, tx};

/// A broker on a replicated log with the queues `q`, which is durable, and `after`; and a consumer of the latter.
fn world() -> (WorldOnDisk, Client, Client) {
    let world = WorldOnDisk::on_copy();
    world.broker.set_time(START_MS);
    let (mut client, mut consumer) = (world.connect(), world.connect());
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.declare("after");
    world.flush();
    consumer.consume("after");
    (world, client, consumer)
}

/// Commits a message of a client's with one for `q`, and does what is to be done then.
fn commit(world: &WorldOnDisk, client: &mut Client, transient: Message, then: impl FnOnce()) {
    let persistent = Message::new("", "q", "persistent")
        .with_properties(|properties| properties.delivery_mode = Some(2));
    world.flush();
    client.heard();
    client.tx_select();
    client.read(&[
        Step::Publish(1, persistent),
        Step::Publish(1, transient),
        Step::Call(1, tx::Commit {}.into()),
    ]);
    then();
    assert_eq!(client.heard(), [], "it is not committed");
}

#[test]
fn a_dead_letter() {
    let (world, mut client, mut consumer) = world();
    let dying = FieldTable::new()
        .with("x-max-length", 0)
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "after");
    declare_with(&mut client, "dying", false, &dying);
    commit(&world, &mut client, Message::new("", "dying", "letter"), || ());
    assert_eq!(consumer.heard(), []);
    world.flush();
    assert_eq!(consumer.bodies(), ["letter"]);
    world.connect().fill("after", &["of no transaction"]);
    assert_eq!(consumer.bodies(), ["of no transaction"]);
}

#[test]
fn a_message_that_an_exchange_has_delayed() {
    let (world, mut client, mut consumer) = world();
    declare_as(&mut client, delayed_type("fanout"), true);
    client.bind("after", "x", "");
    let delayed = Message::new("x", "", "delayed").headers(FieldTable::new().with("x-delay", 1000));
    commit(&world, &mut client, delayed, || world.tick_all(START_MS + 2000));
    assert_eq!(consumer.heard(), []);
    world.flush();
    assert_eq!(consumer.bodies(), ["delayed"]);
}

#[test]
fn a_copy_of_what_is_published() {
    let (world, mut client, mut consumer) = world();
    client.bind("after", "amq.rabbitmq.trace", "publish.#");
    let admin = world.broker.admin();
    admin.change_vhost("/", |settings| settings.tracing = true).expect("the vhost is there");
    commit(&world, &mut client, Message::new("", "nowhere", "traced"), || ());
    assert_eq!(consumer.heard(), []);
    world.flush();
    assert_eq!(consumer.bodies(), ["persistent", "traced"]);
}
