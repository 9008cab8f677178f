//! How many messages have come and gone, as an operator sees it.

use crate::streams::{read, stream};
use crate::support::{Client, Message, Step, World, declare_with};
use courser_broker::admin::{
    ChannelCounts, DeliveryCounts, ExchangeCounts, MessageCounts, PublishCounts, QueueCounts,
    TypeCounts,
};
use courser_codec::{FieldTable, basic};

fn of_queue(world: &World, name: &str) -> QueueCounts {
    world.broker.admin().queue("/", name.as_bytes()).expect("the queue").counts
}

fn of_exchange(world: &World, name: &str) -> ExchangeCounts {
    world.broker.admin().exchange("/", name.as_bytes()).expect("the exchange").counts
}

/// Those of the only connection, which are those of its channels together.
fn of_connection(world: &World) -> ChannelCounts {
    let connections = world.broker.admin().connections(None).expect("all vhosts");
    let mut connections = connections.iter();
    let only = connections.next().expect("a connection");
    assert!(connections.next().is_none());
    only.counts
}

fn of_channel(world: &World, number: u16) -> ChannelCounts {
    let mut found = None;
    let admin = world.broker.admin();
    let each = &mut |channel: courser_broker::admin::ChannelView| {
        if channel.number == number {
            found = Some(channel.counts);
        }
    };
    admin.for_each_channel(None, each).expect("all vhosts");
    found.expect("the channel")
}

fn of_type(counts: &MessageCounts, name: &str) -> TypeCounts {
    *counts.by_type().find(|(known, _)| *known == name).expect("a known type").1
}

/// Those of the broker, which has one vhost.
fn in_total(world: &World) -> MessageCounts {
    let admin = world.broker.admin();
    let all = admin.message_counts();
    assert_eq!(admin.vhost("/").expect("the vhost").counts, all);
    all
}

#[test]
fn what_is_published_is_counted_for_queue_exchange_channel_connection_and_vhost() {
    let world = World::new();
    let mut client = world.connect();
    client.declare_exchange("x", "fanout");
    client.declare("q");
    client.declare("r");
    client.bind("q", "x", "");
    client.bind("r", "x", "");
    client.open_channel(2);
    let message = |body: &str| Message::new("x", "", body);
    client.read(&[
        Step::Publish(1, message("12")),
        Step::Publish(2, message("345")),
        Step::PublishLarge(2, Message::new("", "q", "6")),
    ]);
    for (name, published, published_bytes) in [("q", 3, 6), ("r", 2, 5)] {
        let counts = of_queue(&world, name);
        assert_eq!((counts.published, counts.published_bytes), (published, published_bytes));
        assert_eq!(counts.deliveries, DeliveryCounts::default());
    }
    let both = ExchangeCounts { published_in: 2, published_out: 4 };
    assert_eq!(of_exchange(&world, "x"), both);
    assert_eq!(of_exchange(&world, ""), ExchangeCounts { published_in: 1, published_out: 1 });
    let published = |published, published_bytes| PublishCounts {
        published,
        published_bytes,
        ..PublishCounts::default()
    };
    assert_eq!(of_channel(&world, 1).publishes, published(1, 2));
    assert_eq!(of_channel(&world, 2).publishes, published(2, 4));
    assert_eq!(of_connection(&world).publishes, published(3, 6));
    let all = in_total(&world);
    assert_eq!((all.publishes, all.routed), (published(3, 6), 5));
    client.close_channel(2);
    assert_eq!(of_connection(&world).publishes, published(3, 6));
}

#[test]
fn sizes_of_messages_are_counted_up_to_each_limit() {
    let world = World::new();
    let mut client = world.connect();
    for bytes in [0, 100, 101, 1_000, 1_001, 10_001, 100_001, 1_000_001, 10_000_001] {
        client.publish("amq.fanout", "", &"x".repeat(bytes));
    }
    let sizes = world.broker.admin().message_sizes();
    assert_eq!(sizes.messages, [2, 2, 1, 1, 1, 1, 1, 0, 0]);
    assert_eq!(sizes.bytes, 11_112_206);
}

#[test]
fn what_no_queue_gets_is_counted_as_returned_or_dropped() {
    let world = World::new();
    let mut client = world.connect();
    client.publish("amq.direct", "nowhere", "lost");
    client.send(Message::new("amq.direct", "nowhere", "back").mandatory());
    let counts = of_channel(&world, 1).publishes;
    assert_eq!((counts.published, counts.dropped, counts.returned), (2, 1, 1));
    assert_eq!(in_total(&world).publishes, counts);
    let exchange = of_exchange(&world, "amq.direct");
    assert_eq!(exchange, ExchangeCounts { published_in: 2, published_out: 0 });
}

#[test]
fn confirms_and_refusals_are_counted_and_what_is_neither_is_unconfirmed() {
    let world = World::new();
    let mut client = world.connect();
    let arguments =
        FieldTable::new().with("x-max-length", 1_i64).with("x-overflow", "reject-publish");
    declare_with(&mut client, "q", false, &arguments);
    client.publish("", "q", "unasked");
    client.purge("q");
    client.confirm_select();
    client.fill("q", &["taken", "refused", "refused"]);
    client.session().confirm_durable();
    let counts = of_channel(&world, 1).publishes;
    assert_eq!((counts.published, counts.to_confirm), (4, 3));
    assert_eq!((counts.confirmed, counts.refused), (1, 2));
    assert_eq!(in_total(&world).publishes, counts);
    let mut unconfirmed = Vec::new();
    let admin = world.broker.admin();
    admin.for_each_channel(None, &mut |one| unconfirmed.push(one.unconfirmed)).expect("vhosts");
    assert_eq!(unconfirmed, [0]);
}

/// The same numbers for the queue, the channel, the connection and the type of queue.
fn assert_deliveries(world: &World, queue: &str, queue_type: &str, expected: DeliveryCounts) {
    assert_eq!(of_queue(world, queue).deliveries, expected);
    assert_eq!(of_channel(world, 1).deliveries, expected);
    assert_eq!(of_connection(world).deliveries, expected);
    let all = in_total(world);
    assert_eq!(of_type(&all, queue_type).deliveries, expected);
    assert_eq!(all.deliveries(), expected);
}

fn client_with_messages(world: &World, bodies: &[&str]) -> Client {
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", bodies);
    client
}

#[test]
fn deliveries_are_counted_by_the_way_they_are_acknowledged() {
    let world = World::new();
    let mut client = client_with_messages(&world, &["1", "22"]);
    let tag = client.consume("q");
    let mut expected =
        DeliveryCounts { delivered: 2, delivered_bytes: 3, ..DeliveryCounts::default() };
    assert_deliveries(&world, "q", "classic", expected);
    client.ack_through(2);
    expected.acknowledged = 2;
    assert_deliveries(&world, "q", "classic", expected);
    client.cancel(&tag);
    client.consume_no_ack("q");
    client.publish("", "q", "333");
    expected.delivered_no_ack = 1;
    expected.delivered_bytes = 6;
    assert_deliveries(&world, "q", "classic", expected);
    assert_eq!(expected.handed_out(), 3);
}

#[test]
fn gets_are_counted_by_the_way_they_are_acknowledged_and_in_vain() {
    let world = World::new();
    let mut client = client_with_messages(&world, &["1", "22"]);
    let first = client.get("q").expect("a message");
    client.ack(first.tag);
    assert_eq!(client.pop("q").as_deref(), Some("22"));
    assert_eq!(client.get("q"), None);
    let expected = DeliveryCounts {
        got: 1,
        got_no_ack: 1,
        got_empty: 1,
        acknowledged: 1,
        delivered_bytes: 3,
        ..DeliveryCounts::default()
    };
    assert_deliveries(&world, "q", "classic", expected);
}

#[test]
fn what_an_operator_purges_is_neither_got_nor_acknowledged() {
    let world = World::new();
    let mut client = client_with_messages(&world, &["1", "22", "333"]);
    let admin = world.broker.admin();
    assert_eq!(admin.purge_some("/", b"q", 2), Ok(2));
    assert_deliveries(&world, "q", "classic", DeliveryCounts::default());
    assert_eq!(admin.purge_some("/", b"q", 2), Ok(1));
    assert_deliveries(&world, "q", "classic", DeliveryCounts::default());
    assert_eq!((client.get("q"), world.counts("q")), (None, (0, 0, 0)));
}

#[test]
fn what_comes_again_is_counted_as_delivered_and_redelivered() {
    let world = World::new();
    let mut client = client_with_messages(&world, &["1"]);
    client.consume("q");
    client.requeue(1);
    let mut expected = DeliveryCounts {
        delivered: 2,
        redelivered: 1,
        delivered_bytes: 2,
        ..DeliveryCounts::default()
    };
    assert_deliveries(&world, "q", "classic", expected);
    // A refusal is no acknowledgement.
    client.tell(basic::Reject { delivery_tag: 2, requeue: false });
    assert_deliveries(&world, "q", "classic", expected);
    assert_eq!(of_type(&in_total(&world), "classic").discarded.rejected, 1);
    client.publish("", "q", "2");
    client.ack(3);
    expected.delivered += 1;
    expected.delivered_bytes += 1;
    expected.acknowledged = 1;
    assert_deliveries(&world, "q", "classic", expected);
}

#[test]
fn what_readers_of_a_stream_get_is_counted_as_of_a_stream() {
    let world = World::new();
    let mut client = world.connect();
    stream(&mut client, "s");
    client.fill("s", &["1", "22"]);
    client.qos(10);
    read(&mut client, "s", "first");
    client.ack_through(2);
    let expected = DeliveryCounts {
        delivered: 2,
        acknowledged: 2,
        delivered_bytes: 3,
        ..DeliveryCounts::default()
    };
    assert_deliveries(&world, "s", "stream", expected);
    assert_eq!(of_queue(&world, "s").published, 2);
}

#[test]
fn a_transaction_is_counted_when_it_is_committed() {
    let world = World::new();
    let mut client = client_with_messages(&world, &["1"]);
    client.tx_select();
    client.consume("q");
    client.publish("amq.fanout", "", "nowhere");
    client.ack(1);
    assert_eq!(of_channel(&world, 1).publishes.published, 1);
    assert_eq!(of_channel(&world, 1).deliveries.acknowledged, 0);
    client.commit();
    let counts = of_channel(&world, 1);
    assert_eq!((counts.publishes.published, counts.publishes.dropped), (2, 1));
    assert_eq!(counts.deliveries.acknowledged, 1);
    let exchange = of_exchange(&world, "amq.fanout");
    assert_eq!(exchange, ExchangeCounts { published_in: 1, published_out: 0 });
    client.publish("", "q", "forgotten");
    client.rollback();
    assert_eq!(in_total(&world).publishes.published, 2);
}

#[test]
fn dead_letters_are_counted_by_reason_and_whether_they_go_anywhere() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("dead");
    let arguments = FieldTable::new()
        .with("x-max-length", 1_i64)
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead");
    declare_with(&mut client, "q", false, &arguments);
    client.fill("q", &["old", "new"]);
    let of_classic = of_type(&in_total(&world), "classic");
    assert_eq!((of_classic.dead_lettered.max_len, of_classic.discarded.max_len), (1, 0));
    assert_eq!(of_queue(&world, "dead").published, 1);
    assert_eq!(in_total(&world).routed, 3);
    // What the broker publishes itself passes no exchange that a client has published to.
    assert_eq!(of_exchange(&world, ""), ExchangeCounts { published_in: 2, published_out: 2 });
}

#[test]
fn totals_do_not_shrink_when_queues_connections_and_vhosts_go() {
    let world = World::new();
    let admin = world.broker.admin();
    admin.change_vhost("other", |_| {}).expect("a vhost");
    let mut client = world.connect_to(world.broker.vhost("other").expect("the vhost"));
    client.declare("q");
    client.fill("q", &["1", "2"]);
    client.pop_all("q");
    client.delete("q");
    client.disconnect();
    let before = admin.message_counts();
    assert_eq!((before.publishes.published, before.deliveries().got_no_ack), (2, 2));
    assert_eq!(admin.vhost("other").expect("the vhost").counts, before);
    admin.delete_vhost("other").expect("it is there");
    assert_eq!(admin.message_counts(), before);
}
