//! A checkpoint of a node that leads is written in the middle of a change, whose record no other node ever gets: the checkpoint has
//! nothing of that change. Removals take effect before the log is told, so it has to wait for them.

use crate::streams::declare as declare_stream;
use crate::support::{Client, Message, Step, WorldOnDisk, declare_with, short};
use courser_auth::{Permission, Tags};
use courser_broker::StateOfShard;
use courser_broker::admin::Parameter;
use courser_codec::{FieldTable, Method, Table, basic, exchange, queue};
use courser_journal::testing::WatchedStore;
use courser_store::{Lsn, Position, Recovered, ShardId, ShardState};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// So long a checkpoint has that does not wait for the change; too short a time only finds less.
const A_MOMENT: Duration = Duration::from_millis(200);

/// The state of a checkpoint that has begun.
struct Begun {
    start: Lsn,
    state: StateOfShard,
}

impl Begun {
    fn of(world: &WorldOnDisk) -> Self {
        let state = world.broker.state_of(ShardId::HOME).expect("it is open");
        Begun { start: state.start(), state }
    }
}

impl ShardState for Begun {
    fn start(&self) -> Lsn {
        self.start
    }

    fn for_each_live(&self, start: Lsn, each: &mut dyn FnMut(Position)) {
        self.state.for_each_live(start, each);
    }

    fn write(&self, start: Lsn, out: &mut dyn Write) -> io::Result<()> {
        self.state.write(start, out)
    }
}

/// What a checkpoint has.
#[derive(Debug, PartialEq)]
struct Found {
    definitions: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Where the messages of queues, histories and delays are, by their numbers.
    messages: BTreeMap<u64, BTreeSet<Position>>,
    /// Where streams begin.
    first_offsets: BTreeMap<u64, u64>,
}

impl Found {
    fn of(world: &WorldOnDisk) -> Self {
        let Begun { start, state } = Begun::of(world);
        let mut bytes = Vec::new();
        state.write(start, &mut bytes).expect("there is room");
        let all = Recovered::from_checkpoint(&bytes).expect("it was just written");
        let queues = all.queues.iter().map(|(id, index)| (*id, index.positions().collect()));
        let delays = all.delayed.iter();
        let delays = delays.map(|(id, index)| (*id, index.pairs().map(|pair| pair.0).collect()));
        let messages = queues.chain(delays).filter(|(_, all): &(_, BTreeSet<_>)| !all.is_empty());
        Found {
            messages: messages.collect(),
            first_offsets: all.streams.iter().map(|(id, all)| (*id, all.first_offset())).collect(),
            definitions: all.definitions,
        }
    }

    fn has_messages_of(&self, other: &Found) -> bool {
        let has = |(id, all): (_, &BTreeSet<_>)| {
            self.messages.get(id).is_some_and(|these| these.is_superset(all))
        };
        other.messages.iter().all(has)
    }
}

/// Has `call` called before the append behind so many others.
pub fn before_append(store: &Arc<WatchedStore>, others: usize, call: Box<dyn FnOnce() + Send>) {
    let next = Arc::clone(store);
    store.before_next_append(move || match others.checked_sub(1) {
        None => call(),
        Some(others) => before_append(&next, others, call),
    });
}

/// Does `change` on a node that leads. Before it appends, behind so many other appends, a checkpoint is written that has begun
/// before; then the node ends, and begins again with what it has.
fn leaves_no_trace(
    what: &str,
    appends_before: usize,
    prepare: impl FnOnce(&WorldOnDisk, &mut Client),
    change: impl FnOnce(&WorldOnDisk, &mut Client),
) {
    let mut world = WorldOnDisk::on_copy();
    world.broker.set_time(1_000_000);
    let mut client = world.connect();
    prepare(&world, &mut client);
    world.flush();
    client.heard();
    let before = Found::of(&world);
    let (begun, log, disk) = (Begun::of(&world), world.log(), world.disk().clone());
    let (tell, told) = channel();
    let within = move || {
        let (made, is_made) = channel();
        let checkpoint = thread::Builder::new().spawn(move || {
            let _ = made.send(log.checkpoint(&begun).is_ok());
        });
        let checkpoint = checkpoint.expect("a thread");
        let _ = is_made.recv_timeout(A_MOMENT);
        disk.kill();
        tell.send(checkpoint).expect("it is waited for");
    };
    before_append(world.store(), appends_before, Box::new(within));
    change(&world, &mut client);
    let checkpoint = told.try_recv().unwrap_or_else(|_| panic!("{what}: nothing is appended"));
    checkpoint.join().expect("no panic");
    world.crash(|| drop(client));
    let after = Found::of(&world);
    assert_eq!(after.first_offsets, before.first_offsets, "{what}");
    match appends_before {
        0 => assert_eq!(after, before, "{what}"),
        _ => assert!(after.has_messages_of(&before), "{what}: {after:?} after {before:?}"),
    }
}

fn persistent(exchange: &str, key: &str) -> Message {
    Message::new(exchange, key, "x").with_properties(|of| of.delivery_mode = Some(2))
}

fn fill(client: &mut Client, queue: &str) {
    let steps: Vec<_> = (0..3).map(|_| Step::Publish(1, persistent("", queue))).collect();
    client.read(&steps);
}

/// Asks for something without waiting for the answer.
fn ask<'m>(client: &mut Client, method: impl Into<Method<'m>>) {
    client.read(&[Step::Call(1, method.into())]);
}

/// A durable queue `q` with these arguments and three messages.
fn queue_with(client: &mut Client, arguments: &FieldTable) {
    declare_with(client, "q", true, arguments);
    fill(client, "q");
}

fn queue(_: &WorldOnDisk, client: &mut Client) {
    queue_with(client, &FieldTable::new());
}

/// The same, bound to a durable exchange `x`, which goes with its last binding.
fn bound(world: &WorldOnDisk, client: &mut Client) {
    queue(world, client);
    let (exchange, kind) = (short("x"), short("fanout"));
    let declare = exchange::Declare {
        exchange,
        kind,
        durable: true,
        auto_delete: true,
        ..Default::default()
    };
    client.call(declare);
    client.bind("q", "x", "");
}

/// A durable queue `q` that goes with its last consumer, which is there.
fn auto_delete(_: &WorldOnDisk, client: &mut Client) {
    let queue = short("q");
    client.call(queue::Declare { queue, durable: true, auto_delete: true, ..Default::default() });
    client.consume_with(basic::Consume { queue, consumer_tag: short("tag"), ..Default::default() });
}

#[test]
fn a_purge() {
    let purge = queue::Purge { queue: short("q"), nowait: false };
    leaves_no_trace("queue.purge", 0, queue, |_, client| ask(client, purge));
    leaves_no_trace("by an operator", 0, queue, |world, _| {
        assert_eq!(world.broker.admin().purge_queue("/", b"q"), Ok(3));
    });
    leaves_no_trace("of some", 0, queue, |world, _| {
        assert_eq!(world.broker.admin().purge_some("/", b"q", 2), Ok(2));
    });
}

#[test]
fn a_deletion() {
    let delete = queue::Delete { queue: short("q"), ..Default::default() };
    leaves_no_trace("queue.delete", 0, bound, |_, client| ask(client, delete));
    leaves_no_trace("of a queue by an operator", 0, bound, |world, _| {
        assert_eq!(world.broker.admin().delete_queue("/", b"q", false, false), Ok(3));
    });
    let delete = exchange::Delete { exchange: short("x"), ..Default::default() };
    leaves_no_trace("exchange.delete", 0, bound, |_, client| ask(client, delete));
    leaves_no_trace("of an exchange by an operator", 0, bound, |world, _| {
        assert_eq!(world.broker.admin().delete_exchange("/", b"x", false), Ok(()));
    });
    let unbind = queue::Unbind { queue: short("q"), exchange: short("x"), ..Default::default() };
    leaves_no_trace("queue.unbind", 0, bound, |_, client| ask(client, unbind));
}

#[test]
fn the_end_of_an_auto_delete_queue() {
    let cancel = basic::Cancel { consumer_tag: short("tag"), nowait: false };
    leaves_no_trace("basic.cancel", 0, auto_delete, |_, client| ask(client, cancel));
    leaves_no_trace("channel.close", 0, auto_delete, |_, client| client.close_channel(1));
    leaves_no_trace("connection.close", 0, auto_delete, |_, client| client.disconnect());
}

#[test]
fn what_is_due() {
    let due = |arguments: &'static str| {
        let arguments = FieldTable::new().with(arguments, 1000);
        move |_: &WorldOnDisk, client: &mut Client| queue_with(client, &arguments)
    };
    let tick = |world: &WorldOnDisk, _: &mut Client| world.tick_all(1_010_000);
    leaves_no_trace("expired messages", 0, due("x-message-ttl"), tick);
    leaves_no_trace("the end of a lease", 0, due("x-expires"), tick);
    let old = |_: &WorldOnDisk, client: &mut Client| {
        declare_stream(client, "q", FieldTable::new().with("x-max-age", "1m"));
        fill(client, "q");
    };
    leaves_no_trace("a stream's old messages", 0, old, |world, _| world.tick_all(2_000_000));
}

#[test]
fn a_settlement() {
    let consuming = |world: &WorldOnDisk, client: &mut Client| {
        queue(world, client);
        client.consume("q");
    };
    let ack = basic::Ack { delivery_tag: 1, multiple: false };
    leaves_no_trace("basic.ack", 0, consuming, |_, client| ask(client, ack));
    let reject = basic::Reject { delivery_tag: 1, requeue: false };
    leaves_no_trace("basic.reject", 0, consuming, |_, client| ask(client, reject));
    let consume = basic::Consume { queue: short("q"), no_ack: true, ..Default::default() };
    leaves_no_trace("no acknowledgement", 0, queue, |_, client| ask(client, consume));
    let get = basic::Get { queue: short("q"), no_ack: true };
    leaves_no_trace("basic.get", 0, queue, |_, client| ask(client, get));
}

#[test]
fn what_has_no_place_any_more() {
    let publish_one = |_: &WorldOnDisk, client: &mut Client| fill(client, "q");
    let full = |_: &WorldOnDisk, client: &mut Client| {
        queue_with(client, &FieldTable::new().with("x-max-length", 3));
    };
    leaves_no_trace("of a queue", 1, full, publish_one);
    leaves_no_trace("by a policy", 1, queue, |world, _| {
        world.give_policy("q", FieldTable::new().with("max-length", 1));
    });
}

#[test]
fn a_definition() {
    let entries = FieldTable::new().with("x-max-length", 3).to_entries();
    let arguments = Table::from_entries(&entries);
    let declare =
        queue::Declare { queue: short("new"), durable: true, arguments, ..Default::default() };
    leaves_no_trace("queue.declare", 0, queue, |_, client| ask(client, declare));
    let bind =
        queue::Bind { queue: short("q"), exchange: short("amq.fanout"), ..Default::default() };
    leaves_no_trace("queue.bind", 0, queue, |_, client| ask(client, bind));
    let (exchange, kind) = (short("new"), short("topic"));
    let declare = exchange::Declare { exchange, kind, durable: true, ..Default::default() };
    leaves_no_trace("exchange.declare", 0, queue, |_, client| ask(client, declare));
}

#[test]
fn a_change_by_an_operator() {
    leaves_no_trace("a pause", 0, queue, |world, _| {
        assert_eq!(world.broker.admin().pause_queue("/", b"q"), Ok(true));
    });
    let paused = |world: &WorldOnDisk, client: &mut Client| {
        queue(world, client);
        world.broker.admin().pause_queue("/", b"q").expect("the queue");
    };
    leaves_no_trace("its end", 0, paused, |world, _| {
        assert_eq!(world.broker.admin().resume_queue("/", b"q"), Ok(true));
    });
    let policy = || FieldTable::new().with("max-length", 9);
    leaves_no_trace("a policy", 0, queue, |world, _| world.give_policy("q", policy()));
    let with_policy = |world: &WorldOnDisk, client: &mut Client| {
        queue(world, client);
        world.give_policy("q", policy());
    };
    leaves_no_trace("its end", 0, with_policy, |world, _| world.take_policy());
    leaves_no_trace("a user", 0, queue, |world, _| put_user(world));
    let with_user = |world: &WorldOnDisk, _: &mut Client| put_user(world);
    leaves_no_trace("another tag of a user", 0, with_user, |world, _| {
        let admin = world.broker.admin();
        let changed = admin.change_user("user", |user| {
            user.tags = Tags::administrator();
            Ok(())
        });
        changed.expect("the user");
    });
    leaves_no_trace("the end of a user", 0, with_user, |world, _| {
        world.broker.admin().delete_user("user").expect("the user");
    });
    leaves_no_trace("the end of a permission", 0, with_user, |world, _| {
        assert!(world.broker.admin().clear_permission("user", "/").expect("the user"));
    });
    let change = |description: &'static str| {
        move |world: &WorldOnDisk, _: &mut Client| {
            let change = world.broker.admin().change_vhost("other", |vhost| {
                vhost.description = description.to_owned();
            });
            change.expect("a vhost");
        }
    };
    leaves_no_trace("a vhost", 0, queue, change(""));
    leaves_no_trace("what is said of a vhost", 0, change(""), change("other"));
    leaves_no_trace("the end of a vhost", 0, change(""), |world, _| {
        world.broker.admin().delete_vhost("other").expect("the vhost");
    });
    leaves_no_trace("a parameter", 0, queue, |world, _| set_parameter(world));
    let with_parameter = |world: &WorldOnDisk, _: &mut Client| set_parameter(world);
    leaves_no_trace("its end", 0, with_parameter, |world, _| {
        let cleared = world.broker.admin().clear_parameter("/", "component", "name");
        assert_eq!(cleared, Ok(true));
    });
}

fn put_user(world: &WorldOnDisk) {
    let permissions = [("/".to_owned(), Permission::all())];
    world.broker.admin().put_user("user", &permissions, |_| Ok(())).expect("a user");
}

fn set_parameter(world: &WorldOnDisk) {
    let [vhost, component, name, value] = ["/", "component", "name", "1"].map(str::to_owned);
    let parameter = Parameter { vhost, component, name, value };
    assert_eq!(world.broker.admin().set_parameter(&parameter), Ok(true));
}
