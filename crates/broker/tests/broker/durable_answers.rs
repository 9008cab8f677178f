//! Answers to what changes the topology: sent when that is durable, in the order of their channel.

use crate::support::{Client, Heard, Message, Step, WorldOnDisk, declare_with, short};
use courser_broker::wire::WireBuffer;
use courser_codec::{FieldTable, Method, basic, exchange, queue, tx};

fn declare(name: &str) -> Method<'_> {
    queue::Declare { queue: short(name), durable: true, ..Default::default() }.into()
}

fn transient(name: &str) -> Method<'_> {
    queue::Declare { queue: short(name), ..Default::default() }.into()
}

fn bind(name: &str) -> Method<'_> {
    let exchange = short("amq.fanout");
    queue::Bind { queue: short(name), exchange, ..Default::default() }.into()
}

fn delete(name: &str) -> Method<'_> {
    queue::Delete { queue: short(name), ..Default::default() }.into()
}

fn persistent(queue: &str) -> Message {
    Message::new("", queue, "x").with_properties(|properties| properties.delivery_mode = Some(2))
}

fn ask(client: &mut Client, number: u16, methods: &[Method<'_>]) {
    let steps: Vec<_> = methods.iter().map(|method| Step::Call(number, *method)).collect();
    client.read(&steps);
}

/// What is heard, without what is only of passing interest.
fn names(heard: &[Heard]) -> Vec<String> {
    let name = |heard: &Heard| match heard {
        Heard::Done(name) => (*name).to_owned(),
        Heard::DeclareOk { queue, .. } => format!("declared {queue}"),
        Heard::Count(count) => format!("count {count}"),
        Heard::Delivery(delivery) => format!("delivered {}", delivery.text()),
        Heard::GetOk { delivery, .. } => format!("got {}", delivery.text()),
        Heard::ChannelClosed(_) => "channel closed".to_owned(),
        Heard::Confirm { through, .. } => format!("confirmed {through}"),
        other => format!("{other:?}"),
    };
    heard.iter().map(name).collect()
}

/// A client with a durable queue `q`, all of which is durable.
fn with_queue() -> (WorldOnDisk, Client) {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    (world, client)
}

#[test]
fn each_change_is_answered_when_it_is_durable_and_not_before() {
    let (world, mut client) = with_queue();
    let durable = true;
    let exchange = exchange::Declare {
        exchange: short("x"),
        kind: short("direct"),
        durable,
        ..Default::default()
    };
    let to_exchange = exchange::Bind {
        destination: short("x"),
        source: short("amq.fanout"),
        ..Default::default()
    };
    let from_exchange = exchange::Unbind {
        destination: short("x"),
        source: short("amq.fanout"),
        ..Default::default()
    };
    let unbind =
        queue::Unbind { queue: short("q"), exchange: short("amq.fanout"), ..Default::default() };
    let changes: [(Method<'_>, &str); 9] = [
        (declare("new"), "declared new"),
        (bind("q"), "queue.bind-ok"),
        (unbind.into(), "queue.unbind-ok"),
        (exchange.into(), "exchange.declare-ok"),
        (to_exchange.into(), "exchange.bind-ok"),
        (from_exchange.into(), "exchange.unbind-ok"),
        (
            exchange::Delete { exchange: short("x"), ..Default::default() }.into(),
            "exchange.delete-ok",
        ),
        (queue::Purge { queue: short("q"), nowait: false }.into(), "count 1"),
        (delete("q"), "count 0"),
    ];
    client.send(persistent("q"));
    world.sync();
    for (method, answer) in changes {
        ask(&mut client, 1, &[method]);
        assert_eq!(client.heard(), [], "{answer} before it is durable");
        world.sync();
        assert_eq!(names(&client.heard()), [answer]);
    }
}

#[test]
fn what_does_not_survive_is_answered_at_once() {
    let (_world, mut client) = with_queue();
    let exclusive = queue::Declare {
        queue: short("mine"),
        durable: true,
        exclusive: true,
        ..Default::default()
    };
    ask(
        &mut client,
        1,
        &[transient("t"), exclusive.into(), bind("t"), delete("t"), delete("mine")],
    );
    let heard = names(&client.heard());
    assert_eq!(heard, ["declared t", "declared mine", "queue.bind-ok", "count 0", "count 0"]);
}

#[test]
fn the_channel_keeps_its_order_and_other_channels_go_on() {
    let (world, mut client) = with_queue();
    client.open_channel(2);
    client.fill("q", &["1", "2"]);
    client.confirm_select();
    client.heard();
    let get = || Method::from(basic::Get { queue: short("q"), no_ack: true });
    client.read(&[
        Step::Call(1, declare("new")),
        Step::Call(1, get()),
        Step::Publish(1, Message::new("", "new", "x")),
        Step::Publish(1, Message::new("", "nowhere", "x").mandatory()),
        Step::Call(1, transient("t")),
        Step::Call(2, get()),
    ]);
    assert_eq!(names(&client.heard()), ["got 2"], "on channel 2 alone");
    world.sync();
    let heard = client.heard();
    assert!(matches!(&heard[2], Heard::Return { .. }), "{heard:?}");
    let heard = names(&heard);
    assert_eq!(
        [&heard[..2], &heard[3..]].concat(),
        ["declared new", "got 1", "declared t", "confirmed 2"]
    );
}

#[test]
fn deliveries_wait_behind_an_answer_and_come_when_it_is_sent() {
    let (world, mut client) = with_queue();
    let mut publisher = world.connect();
    client.consume_no_ack("q");
    ask(&mut client, 1, &[declare("new")]);
    publisher.fill("q", &["1", "2"]);
    assert_eq!(client.heard(), []);
    assert_eq!(world.counts("q").0, 0, "they have been handed out");
    world.sync();
    assert_eq!(names(&client.heard()), ["declared new", "delivered 1", "delivered 2"]);
    publisher.fill("q", &["3"]);
    assert_eq!(names(&client.heard()), ["delivered 3"]);
}

#[test]
fn deliveries_behind_an_answer_are_bounded_as_all_are() {
    let (world, mut client) = with_queue();
    let mut publisher = world.connect();
    client.consume_no_ack("q");
    let outbox = std::sync::Arc::clone(client.session().outbox());
    ask(&mut client, 1, &[declare("new")]);
    let body = "x".repeat(1000);
    (0..8).for_each(|_| publisher.fill("q", &[body.as_str(); 100]));
    let (ready, ..) = world.counts("q");
    assert!((100..700).contains(&ready), "{ready} wait in the queue");
    assert!(!outbox.is_full_of_answers(), "its client is read");
    world.sync();
    assert_eq!(client.heard().len(), 801);
}

#[test]
fn a_consumer_of_another_channel_is_not_held_up() {
    let (world, mut client) = with_queue();
    client.open_channel(2);
    client.consume_on(2, basic::Consume { queue: short("q"), no_ack: true, ..Default::default() });
    ask(&mut client, 1, &[declare("new")]);
    world.connect().fill("q", &["1"]);
    assert_eq!(names(&client.heard()), ["delivered 1"]);
}

#[test]
fn consumers_of_a_deleted_queue_hear_of_it_behind_the_answer() {
    let (world, mut client) = with_queue();
    let tag = client.consume("q");
    ask(&mut client, 1, &[delete("q")]);
    assert_eq!(client.heard(), []);
    world.sync();
    assert_eq!(client.heard(), [Heard::Count(0), Heard::Cancelled(tag)]);
}

#[test]
fn a_client_that_finds_what_another_has_just_made_or_removed_waits_for_it_too() {
    let (world, mut client) = with_queue();
    let mut other = world.connect();
    let passive = queue::Declare { queue: short("new"), passive: true, ..Default::default() };
    ask(&mut client, 1, &[declare("new"), bind("q")]);
    ask(&mut other, 1, &[declare("new"), passive.into(), bind("q")]);
    assert_eq!(other.heard(), []);
    world.sync();
    assert_eq!(names(&other.heard()), ["declared new", "declared new", "queue.bind-ok"]);
    ask(&mut client, 1, &[delete("q")]);
    ask(&mut other, 1, &[delete("q")]);
    assert_eq!(other.heard(), []);
    world.sync();
    assert_eq!(names(&other.heard()), ["count 0"]);
}

#[test]
fn a_queue_that_goes_with_its_consumer_is_gone_for_good_when_the_cancel_is_answered() {
    let (mut world, mut client) = with_queue();
    let going = queue::Declare {
        queue: short("going"),
        durable: true,
        auto_delete: true,
        ..Default::default()
    };
    client.call(going);
    let tag = client.consume("going");
    ask(&mut client, 1, &[basic::Cancel { consumer_tag: short(&tag), nowait: false }.into()]);
    assert_eq!(client.heard(), []);
    world.sync();
    assert_eq!(client.heard(), [Heard::CancelOk(tag)]);
    world.crash(|| drop(client));
    assert!(!world.has_queue("going"));
}

#[test]
fn a_channel_is_closed_for_a_fault_behind_the_answers_before() {
    let (world, mut client) = with_queue();
    let missing = queue::Declare { queue: short("missing"), passive: true, ..Default::default() };
    let mut batch = courser_broker::Batch::default();
    let session = client.session();
    session.request(&mut batch, 1, &declare("new")).expect("it is new");
    let fault = session.request(&mut batch, 1, &missing.into()).expect_err("it is missing");
    session.flush(&mut batch).expect("room in the log");
    session.close_channel(1);
    let mut frames = Vec::new();
    let reply_text = short("NOT_FOUND");
    let close =
        courser_codec::channel::Close { reply_code: fault.code, reply_text, ..Default::default() };
    close.write_frame(1, &mut frames);
    let beat = [8, 0, 0, 0, 0, 0, 0, 0xce];
    frames.extend_from_slice(&beat);
    session.outbox().lock().put_frames(&frames);
    let mut wire = WireBuffer::default();
    session.outbox().take(&mut wire);
    let mut sent = Vec::new();
    wire.append_to(&mut sent);
    assert_eq!(sent, beat, "what concerns the connection does not wait");
    world.sync();
    wire.clear();
    assert!(client.session().try_confirm(&mut wire));
    let mut expected = Vec::new();
    let (queue, message_count, consumer_count) = (short("new"), 0, 0);
    let declared = queue::DeclareOk { queue, message_count, consumer_count };
    declared.write_frame(1, &mut expected);
    close.write_frame(1, &mut expected);
    sent.clear();
    wire.append_to(&mut sent);
    assert_eq!(sent, expected);
}

#[test]
fn a_commit_is_answered_when_it_is_durable_and_what_follows_comes_behind() {
    let (world, mut client) = with_queue();
    client.tx_select();
    client.heard();
    client.read(&[
        Step::Publish(1, persistent("q")),
        Step::Call(1, tx::Commit {}.into()),
        Step::Call(1, tx::Rollback {}.into()),
    ]);
    assert_eq!(client.heard(), []);
    world.sync();
    assert_eq!(names(&client.heard()), ["tx.commit-ok", "tx.rollback-ok"]);
    client.read(&[Step::Call(1, tx::Commit {}.into())]);
    assert_eq!(names(&client.heard()), ["tx.commit-ok"], "nothing to wait for");
}

#[test]
fn a_declare_without_an_answer_holds_nothing_up() {
    let (world, mut client) = with_queue();
    client.confirm_select();
    client.heard();
    let declare =
        queue::Declare { queue: short("new"), durable: true, nowait: true, ..Default::default() };
    client.read(&[
        Step::Call(1, declare.into()),
        Step::Publish(1, Message::new("", "new", "at once")),
        Step::Call(1, basic::Get { queue: short("new"), no_ack: true }.into()),
    ]);
    assert_eq!(names(&client.heard()), ["got at once", "confirmed 1"]);
    world.sync();
    assert_eq!(client.heard(), []);
}

#[test]
fn nothing_is_answered_when_the_log_fails() {
    let (world, mut client) = with_queue();
    ask(&mut client, 1, &[declare("new"), transient("t")]);
    world.break_disk();
    assert_eq!(client.heard(), []);
    ask(&mut client, 1, &[transient("u")]);
    assert_eq!(client.heard(), []);
    ask(&mut client, 1, &[declare("another")]);
    let heard = client.heard();
    assert!(matches!(&heard[..], [Heard::ConnectionClosed(why)] if why.starts_with("541 ")));
}

#[test]
fn answers_that_wait_are_bounded_and_make_room_when_they_are_sent() {
    let (world, mut client) = with_queue();
    let names: Vec<String> = (0..10_000).map(|number| format!("q{number}")).collect();
    let outbox = std::sync::Arc::clone(client.session().outbox());
    let mut declared = 0;
    for name in &names {
        ask(&mut client, 1, &[declare(name)]);
        declared += 1;
        if outbox.is_full_of_answers() {
            break;
        }
    }
    assert!((1000..10_000).contains(&declared), "{declared}");
    assert_eq!(client.heard(), []);
    world.sync();
    assert_eq!(client.heard().len(), declared);
    assert!(!outbox.is_full_of_answers() && !client.session().holds_back());
}
