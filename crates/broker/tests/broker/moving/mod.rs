//! A vhost that goes from one broker to another, each of which has a log of its own.

mod configured;
mod contents;
mod costs;
mod crashes;
mod given_up;
mod groups;
mod histories;
mod left_behind;
mod letters;
mod stillness;

use crate::support::{Client, Message, World, WorldOnDisk, declare_with, short};
use bytes::Bytes;
use courser_broker::Fault;
use courser_broker::admin::{Export, NewBinding, Parameter, VhostLimits, VhostSettings};
use courser_broker::{ApplyTo, Policy, PolicyKind};
use courser_codec::{FieldTable, Table, exchange};
use std::task::Waker;

const START_MS: u64 = 1_800_000_000_000;
/// The vhost that moves.
const V: &str = "v";

fn settings() -> VhostSettings {
    let mut settings = VhostSettings::default();
    settings.description = "one that moves".to_owned();
    settings
}

/// A client in the vhost that moves.
fn enter(world: &World) -> Client {
    world.connect_to(world.broker.vhost(V).expect("it is there"))
}

fn declare_exchange(client: &mut Client, name: &str, kind: &str, arguments: &FieldTable) {
    let entries = arguments.to_entries();
    let (exchange, kind) = (short(name), short(kind));
    let arguments = Table::from_entries(&entries);
    client.call(exchange::Declare {
        exchange,
        kind,
        durable: true,
        arguments,
        ..Default::default()
    });
}

fn dead(more: FieldTable) -> FieldTable {
    more.with("x-dead-letter-exchange", "").with("x-dead-letter-routing-key", "dead")
}

/// The queues of [`found`], without the stream `s`.
const QUEUES: [&str; 9] =
    ["plain", "other", "dead", "ranked", "short", "counted", "apart", "bounded", "held"];

/// Makes the vhost with a queue and an exchange of each kind.
fn found(world: &World) {
    world.broker.set_time(START_MS);
    let admin = world.broker.admin();
    admin.change_vhost(V, |all| *all = settings()).expect("made");
    let policy = |name: &str, pattern: &str, definition| Policy {
        name: name.to_owned(),
        pattern: pattern.to_owned(),
        apply_to: ApplyTo::All,
        priority: 1,
        definition,
    };
    let alternate = policy("alternate", "^all$", FieldTable::new().with("alternate-exchange", "a"));
    admin.set_policy(V, PolicyKind::User, alternate).expect("a good policy");
    let most = policy("most", "^bounded$", FieldTable::new().with("max-length", 30));
    admin.set_policy(V, PolicyKind::Operator, most).expect("a good policy");
    let (vhost, component, name) = (V.to_owned(), "shovel".to_owned(), "one".to_owned());
    let value = "{\"a\":1}".to_owned();
    admin.set_parameter(&Parameter { vhost, component, name, value }).expect("a good parameter");

    let mut client = enter(world);
    let table = FieldTable::new;
    let queues = [
        ("plain", table()),
        ("other", dead(table())),
        ("dead", table()),
        ("ranked", table().with("x-max-priority", 5)),
        ("short", dead(table().with("x-message-ttl", 2000))),
        ("counted", dead(table().with("x-queue-type", "quorum").with("x-delivery-limit", 3))),
        ("apart", table().with("x-message-deduplication", true)),
        ("bounded", table().with("x-max-length-bytes", 400)),
        ("held", table()),
        (
            "s",
            table()
                .with("x-queue-type", "stream")
                .with("x-max-length-bytes", 3000)
                .with("x-stream-max-segment-size-bytes", 1000),
        ),
    ];
    declare_exchange(&mut client, "all", "fanout", &table());
    declare_exchange(
        &mut client,
        "later",
        "x-delayed-message",
        &table().with("x-delayed-type", "topic"),
    );
    declare_exchange(
        &mut client,
        "recent",
        "x-recent-history",
        &table().with("x-recent-history-length", 5),
    );
    declare_exchange(&mut client, "some", "headers", &table());
    client.bind_exchange("some", "all", "");
    for (name, arguments) in &queues {
        declare_with(&mut client, name, true, arguments);
        if *name != "dead" {
            client.bind(name, "all", "");
        }
    }
    client.bind("plain", "later", "a.*");
    client.bind("ranked", "later", "#");
    client.bind("other", "recent", "");
    client.bind("plain", "amq.topic", "x.#");
    let arguments = table().with("x-match", "any").with("kind", 3);
    let (source, destination) = (short("some").into(), short("counted").into());
    let routing_key = short("").into();
    let binding = NewBinding { source, destination, to_queue: true, routing_key, arguments };
    admin.bind(V, binding).expect("bound");
    admin.pause_queue(V, b"held").expect("paused");
    client.disconnect();
}

fn persistent(exchange: &str, key: &str, body: &str) -> Message {
    Message::new(exchange, key, body).with_properties(|all| all.delivery_mode = Some(2))
}

/// Has the vhost stand still, with no client in it, and begins to read it out.
fn export(world: &World) -> Export {
    let admin = world.broker.admin();
    assert_eq!(admin.stop_vhost(V, 0).expect("it is there"), 0, "a client is in it");
    admin.export_vhost(V).expect("nothing in it that can't be carried")
}

/// All of it.
fn pieces(world: &World) -> Vec<Bytes> {
    let mut export = export(world);
    std::iter::from_fn(|| export.next_piece().expect("it can be read")).collect()
}

/// Has everything durable: so much of a stream can be read.
fn sync(world: &WorldOnDisk) {
    if let Some(log) = &world.log {
        let store = log.store();
        store.when_durable(store.end(), Waker::noop().clone().into());
    }
    world.flush();
}

/// Takes all of it in.
fn import(world: &World, pieces: &[Bytes]) -> Result<(), Fault> {
    let mut import = world.broker.admin().import_vhost(V, 0, &settings())?;
    pieces.iter().try_for_each(|piece| import.take(piece))?;
    import.finish()
}

/// Something else that is in the broker that the vhost comes to.
fn found_another(world: &World) {
    world.broker.set_time(START_MS);
    let another = world.broker.define_vhost("another", VhostLimits::default()).expect("made");
    let mut client = world.connect_to(another);
    for queue in ["plain", "own"] {
        declare_with(&mut client, queue, true, &FieldTable::new());
        client.send(persistent("", queue, "another's"));
    }
    client.disconnect();
}
