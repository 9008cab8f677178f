//! A change is held where it is appended to the log, while what it is made in is deleted, and perhaps made anew: nothing of
//! what was deleted is in the log then, and so nothing of it is there after a restart.

mod exchanges;
mod queues;
mod vhosts;

use crate::checkpoints_within_changes::before_append;
use crate::support::{Client, Message, Step, WorldOnDisk, declare_with, lasting, short};
use courser_broker::admin::Admin;
use courser_broker::names_in_log;
use courser_codec::{FieldTable, Method, Table, exchange};
use courser_journal::testing::WatchedStore;
use courser_store::Recovered;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const START_MS: u64 = 1_800_000_000_000;
/// The name of what is deleted. The keys of all definitions that belong to it have it.
const GOING: &str = "going";
/// So long a deletion has that does not wait for the change; too short a time only finds less.
const A_MOMENT: Duration = Duration::from_millis(100);

/// What is deleted, and how.
struct Deletion {
    /// Makes it. Returns a client in its vhost.
    make: fn(&WorldOnDisk) -> Client,
    delete: fn(&Admin),
    make_anew: fn(&Admin),
    /// That there is nothing in it but what it was made with.
    check_new: fn(&WorldOnDisk),
}

impl Deletion {
    /// Does `change` when it is `prepared`, once for each of its appends, which is held, and in every second try with what was
    /// deleted made anew.
    fn beside(
        &self,
        what: &str,
        prepare: impl Fn(&WorldOnDisk, &mut Client),
        change: impl Fn(&WorldOnDisk, &mut Client) + Sync,
    ) {
        for nth in 0.. {
            let tries = [false, true];
            let are_held = tries.map(|anew| self.beside_append(nth, anew, what, &prepare, &change));
            if are_held == [false; 2] {
                assert!(nth > 0, "{what}: nothing is appended");
                return;
            }
        }
    }

    /// Deletes it beside one append of the change. Returns whether there is such an append.
    fn beside_append(
        &self,
        nth: usize,
        is_made_anew: bool,
        what: &str,
        prepare: &impl Fn(&WorldOnDisk, &mut Client),
        change: &(impl Fn(&WorldOnDisk, &mut Client) + Sync),
    ) -> bool {
        let mut world = WorldOnDisk::new();
        world.broker.set_time(START_MS);
        let mut client = (self.make)(&world);
        prepare(&world, &mut client);
        world.flush();
        client.heard();
        let (held, begun, release) = lasting();
        before_append(world.store(), nth, Box::new(held));
        let is_held = thread::scope(|scope| {
            scope.spawn(|| {
                let _end = End(world.store());
                change(&world, &mut client);
            });
            if begun.recv().is_err() {
                return false;
            }
            let (tell, told) = channel();
            let admin = world.broker.admin();
            scope.spawn(move || {
                (self.delete)(&admin);
                if is_made_anew {
                    (self.make_anew)(&admin);
                }
                tell.send(())
            });
            let _ = told.recv_timeout(A_MOMENT);
            release.send(()).expect("it is waited for");
            true
        });
        if is_held {
            client.disconnect();
            let what = format!("{what}, append {nth}");
            self.check_log(&world.found_by_restart(), is_made_anew, &what);
            if is_made_anew {
                (self.check_new)(&world);
            }
        }
        is_held
    }

    fn check_log(&self, found: &Recovered, is_made_anew: bool, what: &str) {
        let keys: Vec<String> = found
            .definitions
            .keys()
            .map(|key| key.escape_ascii().to_string())
            .filter(|key| key.contains(GOING))
            .collect();
        assert_eq!(keys.len(), usize::from(is_made_anew), "{what}: {keys:?}");
        let names = names_in_log(found);
        let queues = found.queues.iter().map(|(id, index)| (id, index.positions().count()));
        let delays = found.delayed.iter().map(|(id, index)| (id, index.pairs().count()));
        let streams = found.streams.iter().map(|(id, index)| (id, index.len() as usize));
        let left = queues.chain(delays).chain(streams);
        let left: Vec<_> =
            left.filter(|(id, count)| *count > 0 && !names.contains_key(id)).collect();
        assert!(left.is_empty(), "{what}: messages of {left:?}, and there are {names:?}");
    }
}

/// The end of a change: an append that has not come is not waited for any more.
struct End<'w>(&'w WatchedStore);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.call_nothing();
    }
}

fn nothing(_: &WorldOnDisk, _: &mut Client) {}

/// Has an operator do something. It may be too late.
fn by_operator<T>(
    change: impl Fn(&Admin) -> T + Sync,
) -> impl Fn(&WorldOnDisk, &mut Client) + Sync {
    move |world, _| drop(change(&world.broker.admin()))
}

/// Has a client ask for something.
fn by_client<'m, M: Into<Method<'m>> + Clone + Sync>(
    method: M,
) -> impl Fn(&WorldOnDisk, &mut Client) + Sync {
    move |_, client| ask(client, method.clone())
}

/// Has a client publish a message.
fn by_publish(message: Message) -> impl Fn(&WorldOnDisk, &mut Client) + Sync {
    move |_, client| client.read(&[Step::Publish(1, message.clone())])
}

/// Asks for something without waiting for the answer.
fn ask<'m>(client: &mut Client, method: impl Into<Method<'m>>) {
    client.read(&[Step::Call(1, method.into())]);
}

fn persistent(exchange: &str, key: &str) -> Message {
    Message::new(exchange, key, "x").with_properties(|of| of.delivery_mode = Some(2))
}

fn fill(client: &mut Client, queue: &str) {
    let steps: Vec<_> = (0..3).map(|_| Step::Publish(1, persistent("", queue))).collect();
    client.read(&steps);
}

fn table() -> FieldTable {
    FieldTable::new()
}

fn declare(client: &mut Client, queue: &str, arguments: FieldTable) {
    declare_with(client, queue, true, &arguments);
}

/// Asks for a durable exchange.
fn exchange_with(
    name: &str,
    kind: &str,
    arguments: &FieldTable,
    ask: impl FnOnce(exchange::Declare<'_>),
) {
    let entries = arguments.to_entries();
    let (exchange, kind) = (short(name), short(kind));
    let arguments = Table::from_entries(&entries);
    ask(exchange::Declare { exchange, kind, durable: true, arguments, ..Default::default() });
}

fn declare_exchange(client: &mut Client, name: &str, kind: &str, arguments: FieldTable) {
    exchange_with(name, kind, &arguments, |declare| drop(client.call(declare)));
}

fn history(client: &mut Client, name: &str) {
    declare_exchange(client, name, "x-recent-history", table().with("x-recent-history-length", 5));
}

fn delay(client: &mut Client, name: &str) {
    declare_exchange(client, name, "x-delayed-message", table().with("x-delayed-type", "fanout"));
}

fn delayed(exchange: &str) -> Message {
    persistent(exchange, "").headers(table().with("x-delay", 5000))
}
