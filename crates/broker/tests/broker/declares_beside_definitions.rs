//! Declares of what is there beside definitions of other things: they wait for none of these.

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

/// Looks for the queue `q` and the exchange `x`, and declares both as they are.
fn find() -> [Method<'static>; 4] {
    [
        queue_declare("q", true),
        queue_declare("q", false),
        exchange_declare("x", true),
        exchange_declare("x", false),
    ]
}

/// Asks for all this without waiting for the answers.
fn ask(client: &mut Client, methods: &[Method<'_>]) {
    let steps: Vec<_> = methods.iter().map(|method| Step::Call(1, *method)).collect();
    client.read(&steps);
}

fn assert_found(heard: &[Heard]) {
    let [first, second, Heard::Done(third), Heard::Done(fourth)] = heard else {
        panic!("{heard:?}");
    };
    assert!(matches!(first, Heard::DeclareOk { queue, .. } if queue == "q"), "{first:?}");
    assert_eq!(first, second);
    assert_eq!([*third, *fourth], ["exchange.declare-ok"; 2]);
}

/// A world with both, on its disk, and two clients.
fn world() -> (WorldOnDisk, [Client; 2]) {
    let world = WorldOnDisk::new();
    let mut clients = [world.connect(), world.connect()];
    declare_with(&mut clients[0], "q", true, &FieldTable::new());
    ask(&mut clients[0], &[exchange_declare("x", false)]);
    world.sync();
    clients[0].heard();
    (world, clients)
}

#[test]
fn what_is_on_the_disk_is_found_though_other_definitions_are_not() {
    let (world, [mut client, mut other]) = world();
    ask(&mut other, &[queue_declare("new", false), exchange_declare("new", false)]);
    ask(&mut client, &find());
    assert_found(&client.heard());
    assert_eq!(other.heard(), []);
    world.sync();
    assert_eq!(other.heard().len(), 2);
}

#[test]
fn what_another_client_has_just_made_is_found_when_it_is_on_the_disk() {
    let world = WorldOnDisk::new();
    let (mut client, mut other) = (world.connect(), world.connect());
    ask(&mut other, &[queue_declare("q", false)]);
    ask(&mut client, &find()[..1]);
    ask(&mut other, &[exchange_declare("x", false)]);
    ask(&mut client, &find()[1..]);
    assert_eq!(client.heard(), []);
    world.sync();
    assert_found(&client.heard());
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
