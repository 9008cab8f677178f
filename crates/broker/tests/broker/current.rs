//! Answers on a log that another machine may lead: they wait until it is proven that none does.

use crate::support::{Client, Heard, Message, Step, World, declare_with, short};
use courser_broker::{Broker, Limits};
use courser_codec::{FieldTable, FieldValue, Method, basic, queue, tx};
use courser_journal::testing::WatchedStore;
use courser_store::{MemoryGauge, MemoryStore, Store};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A client with a durable queue `q`, before another machine may lead.
pub fn with_queue() -> (Arc<WatchedStore>, World, Client) {
    let gauge = Arc::new(MemoryGauge::default());
    let store = MemoryStore::new(Arc::clone(&gauge));
    let store = Arc::new(WatchedStore::new(Arc::new(store)));
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let world = World { broker: Broker::new(shared, gauge, Limits::default(), 7), log: None };
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.heard();
    (store, world, client)
}

fn declare(name: &str, passive: bool) -> Method<'_> {
    queue::Declare { queue: short(name), durable: true, passive, ..Default::default() }.into()
}

fn get() -> Method<'static> {
    basic::Get { queue: short("q"), no_ack: true }.into()
}

#[test]
fn what_is_read_is_told_when_it_is_proven_and_not_before() {
    let (store, _world, mut client) = with_queue();
    client.confirm_select();
    client.heard();
    store.contest();
    let nowhere = || Message::new("", "nowhere", "x");
    let steps = [
        Step::Call(1, declare("q", true)),
        Step::Call(1, declare("q", false)),
        Step::Call(1, declare("new", false)),
        Step::Call(1, get()),
        Step::Publish(1, nowhere()),
        Step::Publish(1, nowhere().mandatory()),
    ];
    for step in steps {
        client.read(std::slice::from_ref(&step));
        assert_eq!(client.heard(), [], "{step:?}");
        store.prove();
        assert!(!client.heard().is_empty(), "{step:?}");
        // It was proven before it was read.
        client.read(&[Step::Call(1, get())]);
        assert_eq!(client.heard(), [], "{step:?}");
        store.prove();
        assert_eq!(client.heard(), [Heard::GetEmpty], "{step:?}");
    }
}

#[test]
fn what_is_in_no_durable_queue_is_confirmed_or_returned_when_that_is_current() {
    let (store, _world, mut client) = with_queue();
    declare_with(&mut client, "transient", false, &FieldTable::new());
    client.confirm_select();
    client.heard();
    store.contest();
    let copied = |key: &str| {
        let keys = FieldValue::Array(vec![FieldValue::from("nowhere either")]);
        Message::new("", key, "x").headers(FieldTable::new().with("CC", keys))
    };
    let kept =
        |message: Message| message.with_properties(|properties| properties.delivery_mode = Some(2));
    let told = [
        copied("nowhere"),
        copied("nowhere").mandatory(),
        kept(copied("transient")),
        kept(Message::new("", "transient", "x")),
    ];
    for message in told {
        client.read(&[Step::Publish(1, message.clone())]);
        assert_eq!(client.heard(), [], "{message:?}");
        store.prove();
        let heard = client.heard();
        assert!(matches!(heard.last(), Some(Heard::Confirm { .. })), "{message:?}: {heard:?}");
    }
    for message in [Message::new("", "transient", "x"), kept(Message::new("", "q", "x"))] {
        client.read(&[Step::Publish(1, message.clone())]);
        assert!(!client.heard().is_empty(), "{message:?}");
    }
}

#[test]
fn a_transaction_returns_what_goes_nowhere_when_that_is_current() {
    let (store, _world, mut client) = with_queue();
    client.tx_select();
    store.contest();
    client.read(&[
        Step::Publish(1, Message::new("", "nowhere", "x").mandatory()),
        Step::Call(1, tx::Commit {}.into()),
    ]);
    assert_eq!(client.heard(), []);
    store.prove();
    let heard = client.heard();
    assert!(matches!(&heard[..], [Heard::Return { .. }, Heard::Done("tx.commit-ok")]), "{heard:?}");
}

#[test]
fn other_channels_go_on_and_a_message_does_not_wait() {
    let (store, _world, mut client) = with_queue();
    client.open_channel(2);
    client.heard();
    store.contest();
    client.read(&[Step::Call(1, declare("q", true)), Step::Publish(1, Message::new("", "q", "x"))]);
    client.read(&[Step::Call(2, get())]);
    let heard = client.heard();
    assert!(matches!(&heard[..], [Heard::GetOk { .. }]), "{heard:?}");
}

#[test]
fn nothing_is_told_where_another_machine_leads() {
    let (store, world, mut client) = with_queue();
    store.contest();
    client.read(&[Step::Call(1, declare("q", true)), Step::Call(1, get())]);
    let mut current = pin!(world.broker.current().expect("it has to be proven"));
    let mut context = Context::from_waker(Waker::noop());
    assert!(current.as_mut().poll(&mut context).is_pending());
    store.depose();
    store.prove();
    assert_eq!(client.heard(), []);
    let Poll::Ready(Err(fault)) = current.as_mut().poll(&mut context) else {
        panic!("it is still waited for")
    };
    assert_eq!((fault.code, &*fault.explanation), (320, courser_broker::LEADER_CHANGED));
}

#[test]
fn where_no_other_machine_can_lead_nothing_has_to_be_proven() {
    let (_store, world, mut client) = with_queue();
    assert!(world.broker.current().is_none());
    client.read(&[Step::Call(1, declare("q", true)), Step::Call(1, get())]);
    assert_eq!(client.heard().len(), 2);
}
