//! Removals that the log of a cluster has yet to be told of: who finds something missing waits for that, and nothing else does.

use crate::support::{
    Client, Heard, Message, Step, WorldOnDisk, declare_with, lasting, owned, short,
};
use courser_broker::VhostLimits;
use courser_broker::admin::{NewBinding, VhostSettings};
use courser_codec::{FieldTable, Method, Table, basic, exchange, queue};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

/// Nothing takes so long unless it stands still.
const LONG: Duration = Duration::from_secs(20);

/// Notes that it was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Woken {
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

/// Removes something; it is gone when the log has yet to be told so.
type Removal = fn(&WorldOnDisk);

/// A durable queue and a durable exchange `q`, the queue bound to the exchange and with a message, on the log of a cluster.
fn world() -> WorldOnDisk {
    let world = WorldOnDisk::on_copy();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    let (exchange, kind, durable) = (short("q"), short("fanout"), true);
    client.call(exchange::Declare { exchange, kind, durable, ..Default::default() });
    client.bind("q", "q", "");
    client.send(Message::new("", "q", "x").with_properties(|of| of.delivery_mode = Some(2)));
    client.disconnect();
    world.flush();
    world
}

/// A client of another vhost.
fn stranger(world: &WorldOnDisk) -> Client {
    world.broker.define_vhost("other", VhostLimits::default()).expect("a vhost");
    let client = world.connect_to(world.broker.vhost("other").expect("it was just made"));
    world.flush();
    client
}

fn delete(world: &WorldOnDisk) {
    drop(world.broker.admin().delete_queue("/", b"q", false, false));
}

fn delete_exchange(world: &WorldOnDisk) {
    drop(world.broker.admin().delete_exchange("/", b"q", false));
}

fn unbind(world: &WorldOnDisk) {
    let binding = NewBinding {
        source: owned("q"),
        destination: owned("q"),
        to_queue: true,
        routing_key: owned(""),
        arguments: FieldTable::new(),
    };
    drop(world.broker.admin().unbind("/", binding));
}

/// Whether all is there that a world has at first.
fn is_there(world: &WorldOnDisk) -> bool {
    let bindings = world.broker.admin().bindings_from("/", b"q", &mut |_| true);
    world.has_queue("q") && bindings.is_ok_and(|bindings| !bindings.is_empty())
}

fn purge(world: &WorldOnDisk) {
    drop(world.broker.admin().purge_queue("/", b"q"));
}

/// Removes something on a thread, and does something else when it is gone and the log has yet to be told so.
fn beside<T>(world: &WorldOnDisk, remove: Removal, meanwhile: impl FnOnce() -> T) -> T {
    let (held, begun, go_on) = lasting();
    world.store().before_next_append(held);
    thread::scope(|scope| {
        // What fails lets it go on.
        let _go_on = go_on;
        scope.spawn(|| remove(world));
        begun.recv_timeout(LONG).expect("it begins");
        meanwhile()
    })
}

/// Does something that must not wait for what is held up.
fn at_once<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = channel();
    let spawned = thread::Builder::new().spawn(move || drop(tell.send(what())));
    drop(spawned.expect("a thread"));
    told.recv_timeout(LONG).expect("it waits")
}

/// The same for what a client sends.
fn read_at_once(mut client: Client, step: Step<'static>) -> Client {
    at_once(move || {
        client.read(std::slice::from_ref(&step));
        client
    })
}

fn get() -> Step<'static> {
    Step::Call(1, basic::Get { queue: short("q"), no_ack: true }.into())
}

fn to_no_queue() -> Step<'static> {
    Step::Publish(1, Message::new("", "q", "x").mandatory())
}

#[test]
fn what_is_not_there_is_told_when_its_deletion_is_committed() {
    for remove in [delete, delete_exchange, unbind] {
        a_login_waits_for(remove);
    }
}

/// Its answer does; no thread waits.
fn a_login_waits_for(remove: Removal) {
    let (world, woken) = (world(), Arc::<Woken>::default());
    assert!(is_there(&world));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let broker = Arc::clone(&world.broker);
    let mut current = beside(&world, remove, || {
        assert!(!is_there(&world), "the log has yet to be told");
        let mut current = at_once(move || broker.current()).expect("it may be undone");
        assert!(Pin::new(&mut current).poll(&mut context).is_pending());
        world.flush();
        assert!(Pin::new(&mut current).poll(&mut context).is_pending(), "it has yet to be told");
        woken.take();
        current
    });
    assert!(woken.take(), "the log has been told");
    assert!(Pin::new(&mut current).poll(&mut context).is_pending(), "it is not committed");
    world.flush();
    assert!(woken.take());
    assert!(Pin::new(&mut current).poll(&mut context).is_ready());
}

#[test]
fn a_login_that_waits_for_a_deletion_holds_up_none_elsewhere() {
    let world = world();
    let mut client = stranger(&world);
    let lease = FieldTable::new().with("x-expires", 1000).to_entries();
    let arguments = Table::from_entries(&lease);
    client.call(queue::Declare { queue: short("lease"), arguments, ..Default::default() });
    declare_with(&mut client, "gone", true, &FieldTable::new());
    let has = |name: &str| {
        let other = world.broker.vhost("other").expect("it is there");
        other.queue(name.as_bytes()).is_some()
    };
    assert!(has("lease") && has("gone"));
    beside(&world, delete, || {
        let broker = Arc::clone(&world.broker);
        let login = thread::Builder::new().spawn(move || broker.current().is_some());
        // It has come as far as it can. Too short a time only finds less.
        thread::sleep(Duration::from_millis(100));
        let broker = Arc::clone(&world.broker);
        let deleted = at_once(move || broker.admin().delete_queue("other", b"gone", false, false));
        assert_eq!(deleted, Ok(0));
        let broker = Arc::clone(&world.broker);
        at_once(move || broker.tick(1 << 40));
        assert!(!has("lease") && !has("gone"));
        drop(login.expect("a thread"));
    });
}

#[test]
fn a_deletion_holds_up_no_answer_elsewhere() {
    let world = world();
    let mut client = stranger(&world);
    let declared = queue::Declare { queue: short("new"), durable: true, ..Default::default() };
    let steps = [to_no_queue(), Step::Call(1, Method::from(declared))];
    beside(&world, delete, || {
        for step in steps {
            client = read_at_once(client, step.clone());
            world.flush();
            assert!(!client.heard().is_empty(), "{step:?}");
        }
    });
}

#[test]
fn the_settings_of_a_vhost_change_while_a_queue_in_it_is_deleted() {
    let world = world();
    beside(&world, delete, || {
        let broker = Arc::clone(&world.broker);
        at_once(move || {
            let change = |settings: &mut VhostSettings| settings.description = "another".to_owned();
            broker.admin().change_vhost("/", change).expect("changed");
        });
    });
}

#[test]
fn a_client_is_told_of_what_is_missing_when_that_is_committed() {
    let world = world();
    let client = world.connect();
    let mut client = beside(&world, delete, || {
        let mut client = read_at_once(client, to_no_queue());
        world.flush();
        assert_eq!(client.heard(), [], "the log has yet to be told");
        assert!(!client.is_woken());
        client
    });
    assert!(client.is_woken(), "the log has been told");
    assert_eq!(client.heard(), [], "it is not committed");
    world.flush();
    assert!(client.is_woken());
    let heard = client.heard();
    assert!(matches!(&heard[..], [Heard::Return { .. }]), "{heard:?}");
}

#[test]
fn a_queue_is_told_to_be_empty_when_its_purge_is_committed() {
    let world = world();
    let client = world.connect();
    let mut client = beside(&world, purge, || {
        let mut client = read_at_once(client, get());
        world.flush();
        assert_eq!(client.heard(), [], "the log has yet to be told");
        client
    });
    assert_eq!(client.heard(), [], "it is not committed");
    world.flush();
    assert_eq!(client.heard(), [Heard::GetEmpty]);
}

#[test]
fn a_get_waits_for_no_portion_of_a_purge_that_begins_behind_it() {
    const PORTION: usize = 1 << 14;
    let world = world();
    let mut client = world.connect();
    declare_with(&mut client, "empty", true, &FieldTable::new());
    let message = Message::new("", "q", "x");
    let message = message.with_properties(|properties| properties.delivery_mode = Some(2));
    for _ in 0..=PORTION / 4096 {
        client.read(&vec![Step::Publish(1, message.clone()); 4096]);
        world.flush();
    }
    let (first, first_begun, first_goes_on) = lasting();
    let (second, second_begun, second_goes_on) = lasting();
    let store = Arc::clone(world.store());
    world.store().before_next_append(move || {
        store.before_next_append(second);
        first();
    });
    thread::scope(|scope| {
        // What fails lets them go on.
        let (first_goes_on, _second_goes_on) = (first_goes_on, second_goes_on);
        scope.spawn(|| purge(&world));
        first_begun.recv_timeout(LONG).expect("it begins");
        let get = basic::Get { queue: short("empty"), no_ack: true };
        let mut client = read_at_once(client, Step::Call(1, get.into()));
        world.flush();
        assert_eq!(client.heard(), [], "the log has yet to be told of the first portion");
        drop(first_goes_on);
        second_begun.recv_timeout(LONG).expect("there is a second portion");
        world.flush();
        assert_eq!(client.heard(), [Heard::GetEmpty]);
    });
}
