//! Declares and bindings of what is there beside definitions of other things: they wait for none of these.

use crate::support::{Client, Heard, Step, WorldOnDisk, declare_with, lasting, short};
use courser_codec::{FieldTable, Method, exchange, queue};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// More than any answer takes that waits for nothing.
const LONG: Duration = Duration::from_secs(30);

fn queue_declare(name: &str, passive: bool) -> Method<'_> {
    queue::Declare { queue: short(name), durable: true, passive, ..Default::default() }.into()
}

fn exchange_declare(name: &str, passive: bool) -> Method<'_> {
    let (exchange, kind) = (short(name), short("direct"));
    exchange::Declare { exchange, kind, durable: true, passive, ..Default::default() }.into()
}

fn bind(name: &'static str, routing_key: &'static str) -> Method<'static> {
    let (queue, exchange, routing_key) = (short(name), short("amq.direct"), short(routing_key));
    queue::Bind { queue, exchange, routing_key, ..Default::default() }.into()
}

/// Looks for the queue `q` and the exchange `x`, declares both as they are, and binds the queue once more.
fn find() -> [Method<'static>; 5] {
    [
        queue_declare("q", true),
        queue_declare("q", false),
        exchange_declare("x", true),
        exchange_declare("x", false),
        bind("q", "key"),
    ]
}

/// Asks for all this without waiting for the answers.
fn ask(client: &mut Client, methods: &[Method<'_>]) {
    let steps: Vec<_> = methods.iter().map(|method| Step::Call(1, *method)).collect();
    client.read(&steps);
}

fn assert_found(heard: &[Heard]) {
    let names: Vec<_> = heard
        .iter()
        .map(|heard| match heard {
            Heard::DeclareOk { queue, .. } => &**queue,
            Heard::Done(name) => name,
            other => panic!("{other:?}"),
        })
        .collect();
    let declared = "exchange.declare-ok";
    assert_eq!(names, ["q", "q", declared, declared, "queue.bind-ok"]);
}

/// A world with all of that on its disk, and two clients.
fn world() -> (WorldOnDisk, [Client; 2]) {
    let world = WorldOnDisk::new();
    let mut clients = [world.connect(), world.connect()];
    declare_with(&mut clients[0], "q", true, &FieldTable::new());
    ask(&mut clients[0], &[exchange_declare("x", false), bind("q", "key")]);
    world.sync();
    clients[0].heard();
    (world, clients)
}

#[test]
fn what_is_on_the_disk_is_found_though_other_definitions_are_not() {
    let (world, [mut client, mut other]) = world();
    let new = [queue_declare("new", false), exchange_declare("new", false), bind("new", "key")];
    ask(&mut other, &new);
    ask(&mut client, &find());
    assert_found(&client.heard());
    assert_eq!(other.heard(), []);
    world.sync();
    assert_eq!(other.heard().len(), new.len());
}

#[test]
fn what_another_client_has_just_made_is_found_when_it_is_on_the_disk() {
    let world = WorldOnDisk::new();
    let (mut client, mut other) = (world.connect(), world.connect());
    ask(&mut other, &[queue_declare("q", false)]);
    ask(&mut client, &find()[..1]);
    ask(&mut other, &[exchange_declare("x", false), bind("q", "key")]);
    ask(&mut client, &find()[1..]);
    assert_eq!(client.heard(), []);
    world.sync();
    assert_found(&client.heard());
}

#[test]
fn what_another_client_has_just_bound_is_bound_when_that_is_on_the_disk() {
    let (world, [mut client, mut other]) = world();
    ask(&mut other, &[bind("q", "other")]);
    ask(&mut client, &find()[..4]);
    ask(&mut client, &[bind("q", "other")]);
    assert_eq!(client.heard().len(), 4, "without the binding");
    world.sync();
    assert_eq!(client.heard(), [Heard::Done("queue.bind-ok")]);
}

#[test]
fn what_is_there_is_found_while_a_definition_waits_for_room_in_the_log() {
    let (world, [mut client, mut other]) = world();
    let (held, begun, release) = lasting();
    world.store().before_next_append(held);
    let (tell, told) = channel();
    let heard = thread::scope(|scope| {
        scope.spawn(|| ask(&mut other, &[queue_declare("new", false)]));
        begun.recv().expect("it begins");
        scope.spawn(|| {
            ask(&mut client, &find());
            tell.send(client.heard())
        });
        let heard = told.recv_timeout(LONG);
        release.send(()).expect("it is waited for");
        heard
    });
    assert_found(&heard.expect("answers that wait for nothing"));
}
