//! Vhosts that come from other brokers, and go to them.

use super::scene::{Census, Scene, durable};
use super::{Told, trial};
use crate::support::{World, WorldOnDisk, declare_with, short};
use bytes::Bytes;
use courser_broker::admin::{
    Admin, Arrival, MESSAGES_MAX, MessageView, StreamStart, VhostSettings,
};
use courser_broker::{ApplyTo, Fault, Policy, PolicyKind};
use courser_codec::{FieldTable, Table, exchange};
use std::sync::LazyLock;

/// The vhost that moves.
const V: &str = "moving";
const QUEUES: [&str; 3] = ["first", "second", "stream"];

/// Makes the vhost, with some messages.
fn make(world: &World) {
    let admin = world.broker.admin();
    admin.change_vhost(V, |_| ()).expect("made");
    let policy = Policy {
        name: "most".to_owned(),
        pattern: "^first$".to_owned(),
        apply_to: ApplyTo::Queues,
        priority: 0,
        definition: FieldTable::new().with("max-length", 10),
    };
    admin.set_policy(V, PolicyKind::User, policy).expect("a good policy");
    let mut client = world.connect_to(world.broker.vhost(V).expect("it is there"));
    let kind = FieldTable::new().with("x-delayed-type", "fanout").to_entries();
    client.call(exchange::Declare {
        exchange: short("later"),
        kind: short("x-delayed-message"),
        durable: true,
        arguments: Table::from_entries(&kind),
        ..Default::default()
    });
    for queue in QUEUES {
        let kind = if queue == "stream" { "stream" } else { "classic" };
        declare_with(&mut client, queue, true, &FieldTable::new().with("x-queue-type", kind));
        client.bind(queue, "amq.fanout", "");
        client.send(durable("amq.fanout", "", queue));
    }
    let headers = FieldTable::new().with("x-delay", 100_000);
    client.send(durable("later", "", "delayed").headers(headers));
    client.disconnect();
}

/// All of it, as another broker reads it out.
static PIECES: LazyLock<Vec<Bytes>> = LazyLock::new(|| {
    let source = WorldOnDisk::new();
    make(&source);
    source.flush();
    let admin = source.broker.admin();
    assert_eq!(admin.stop_vhost(V, 0).expect("it is there"), 0);
    let mut export = admin.export_vhost(V).expect("all of it can be carried");
    std::iter::from_fn(|| export.next_piece().expect("it can be read")).collect()
});

/// Takes all of it in.
fn import(admin: &Admin) -> Result<(), Fault> {
    let mut import = admin.import_vhost(V, 0, &VhostSettings::default())?;
    PIECES.iter().try_for_each(|piece| import.take(piece))?;
    import.finish()
}

fn taken_in(scene: &mut Scene) {
    import(&scene.world.broker.admin()).expect("taken in");
}

/// What there is of the vhost. One that has arrived is accepted for it.
pub fn census(world: &World) -> Census {
    let admin = world.broker.admin();
    let mut census = Census::new();
    for arrival in admin.arrivals().iter().filter(|one| !one.is_whole) {
        // As a node does with what it does not expect.
        admin.accept_vhost(&arrival.name, None).expect_err("it is not whole");
        admin.forget_arrival(&arrival.name, 0).expect("nothing fails any more");
    }
    let arrivals = admin.arrivals();
    let is_whole = arrivals.contains(&Arrival { name: V.to_owned(), is_whole: true });
    let held = admin.held_vhosts().contains(&V.to_owned());
    census.insert("arrivals".into(), arrivals.iter().map(|one| format!("{one:?}")).collect());
    census.insert("held vhosts".into(), admin.held_vhosts());
    if is_whole {
        admin.accept_vhost(V, None).expect("it is whole");
    }
    let Some(vhost) = world.broker.vhost(V) else { return census };
    let goes_on = !held && !admin.start_vhost(V, 0).expect("it is there");
    let mut lines = vec![format!("goes on: {goes_on}")];
    for queue in vhost.queues() {
        let name = queue.name.as_bytes();
        let messages = match name == b"stream" {
            true => admin
                .read_stream(V, name, StreamStart::First, 10, 100)
                .map(|one| one.messages.into_iter().map(Some).collect()),
            false => admin.peek(V, name, 0, MESSAGES_MAX, 100),
        };
        let messages: Vec<Option<MessageView>> = messages.expect("it is there");
        let bodies =
            messages.iter().flatten().map(|one| String::from_utf8_lossy(&one.body).into_owned());
        lines.push(format!("{}: {:?}", queue.name, bodies.collect::<Vec<_>>()));
    }
    lines.extend(vhost.policies(PolicyKind::User).iter().map(|one| one.name.clone()));
    let delayed = vhost.exchange(b"later").map_or(0, |later| later.messages_delayed());
    lines.push(format!("{delayed} delayed"));
    lines.sort_unstable();
    census.insert("the vhost".into(), lines);
    census
}

#[test]
fn take_a_vhost_in() {
    trial(|_| {}, |scene| Scene::asked(import(&scene.world.broker.admin())))
        .in_clusters()
        .every_call_fails_once();
}

#[test]
fn accept_a_vhost() {
    let accept = |scene: &mut Scene| Scene::asked(scene.world.broker.admin().accept_vhost(V, None));
    trial(taken_in, accept).in_clusters().every_call_fails_once();
}

#[test]
fn forget_a_vhost_that_has_arrived() {
    let forget = |scene: &mut Scene| Scene::asked(scene.world.broker.admin().forget_arrival(V, 0));
    trial(taken_in, forget).in_clusters().every_call_fails_once();
}

#[test]
fn hold_a_vhost_that_is_elsewhere() {
    trial(
        |scene| make(&scene.world),
        |scene| {
            let admin = scene.world.broker.admin();
            let held = admin.stop_vhost(V, 0).and_then(|left| {
                assert_eq!(left, 0);
                let mut export = admin.export_vhost(V)?;
                while export.next_piece()?.is_some() {}
                export.hold()
            });
            if held.is_err() {
                // As a node does: it goes on here, as soon as that can be kept.
                scene.world.store().heal();
                admin.start_vhost(V, 0).expect("it goes on");
                return Told::Refused;
            }
            Told::Done
        },
    )
    .in_clusters()
    .every_call_fails_once();
}
