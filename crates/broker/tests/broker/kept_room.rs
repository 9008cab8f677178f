//! Room that was needed once: it is given back, or it counts.

use crate::frame_costs::{fill, large};
use crate::streams::stream;
use crate::support::{
    Client, Heard, Message, Step, World, WorldOnDisk, allocated_bytes, declare_with, short,
};
use courser_codec::{FieldTable, basic, confirm, queue};

/// What is allocated besides what counts: room for a few of everything.
const SPARE: i64 = 65_536;

/// What was allocated and not counted while `act` ran.
fn uncounted(world: &World, act: impl FnOnce()) -> i64 {
    let now = || allocated_bytes() - world.broker.memory_used_bytes() as i64;
    let before = now();
    act();
    now() - before
}

/// What was allocated while `act` ran.
fn allocated_after(act: impl FnOnce()) -> i64 {
    let before = allocated_bytes();
    act();
    allocated_bytes() - before
}

/// A queue `full` that refuses all.
fn declare_full(client: &mut Client) {
    let nothing = FieldTable::new().with("x-max-length", 0).with("x-overflow", "reject-publish");
    declare_with(client, "full", false, &nothing);
}

/// A channel in confirm mode.
fn open(client: &mut Client, number: u16) {
    client.open_channel(number);
    client.call_on(number, confirm::Select { nowait: false });
}

/// One read of many publishes that are refused, behind `first`.
fn publish_refused(client: &mut Client, number: u16, first: Option<Message>) {
    let refused = vec![Message::new("", "full", ""); 3000];
    let all = first.into_iter().chain(refused);
    client.read(&all.map(|message| Step::Publish(number, message)).collect::<Vec<_>>());
}

#[test]
fn confirms_that_were_sent_keep_no_room() {
    const CHANNELS: u16 = 20;
    let world = World::new();
    let mut client = world.connect();
    declare_full(&mut client);
    (2..CHANNELS + 3).for_each(|number| open(&mut client, number));
    publish_refused(&mut client, CHANNELS + 2, None);
    assert_eq!(client.heard().len(), 3000);
    let kept = uncounted(&world, || {
        for number in 2..CHANNELS + 2 {
            publish_refused(&mut client, number, None);
            assert_eq!(client.heard().len(), 3000);
        }
    });
    assert!(kept <= SPARE, "{kept}");
}

#[test]
fn confirms_that_wait_for_the_disk_count() {
    const CHANNELS: u16 = 20;
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_full(&mut client);
    declare_with(&mut client, "kept", true, &FieldTable::new());
    let persistent = || {
        let message = Message::new("", "kept", "x");
        Some(message.with_properties(|properties| properties.delivery_mode = Some(2)))
    };
    (2..CHANNELS + 3).for_each(|number| open(&mut client, number));
    publish_refused(&mut client, CHANNELS + 2, persistent());
    world.flush();
    assert_eq!(client.heard().len(), 3001);
    let before = world.broker.memory_used_bytes();
    let kept = uncounted(&world, || {
        for number in 2..CHANNELS + 2 {
            publish_refused(&mut client, number, persistent());
        }
        assert!(client.heard().is_empty());
    });
    assert!(kept <= SPARE, "{kept}");
    let counted = world.broker.memory_used_bytes() - before;
    assert!(counted > 3000 * u64::from(CHANNELS), "{counted}");
    world.flush();
    assert_eq!(client.heard().len(), 3001 * usize::from(CHANNELS));
    let counted = world.broker.memory_used_bytes() - before;
    assert!(counted < 3000 * u64::from(CHANNELS), "{counted}");
    for number in 2..CHANNELS + 3 {
        client.close_channel(number);
    }
    assert!(world.broker.memory_used_bytes() < before);
}

#[test]
fn deliveries_that_were_acknowledged_keep_no_room() {
    const UNACKED: usize = 100_000;
    for queues in [1, 2] {
        let world = large();
        let (mut publisher, mut client) = (world.connect(), world.connect());
        let names = &["q", "another"][..queues];
        for name in names {
            publisher.declare(name);
            client.consume(name);
        }
        let fill_all = |publisher: &mut Client, count: usize| {
            // In turn, so that none of them has a run of its own.
            let message = |nth: usize| Step::Publish(1, Message::new("", names[nth % queues], "x"));
            publisher.read(&(0..count).map(message).collect::<Vec<_>>());
        };
        let acknowledge = |client: &mut Client| {
            let last = client.deliveries().last().expect("some").tag;
            client.ack_through(last);
        };
        fill_all(&mut publisher, 1000);
        acknowledge(&mut client);
        let kept = uncounted(&world, || {
            (0..UNACKED / 1000).for_each(|_| fill_all(&mut publisher, 1000));
            acknowledge(&mut client);
            fill(&mut publisher, "q", 1);
            assert_eq!(client.deliveries().len(), 1);
        });
        assert!(kept <= 2 * SPARE, "{queues} queues: {kept}");
    }
}

#[test]
fn queues_that_were_deleted_keep_no_room_at_the_exchange_that_they_were_bound_to() {
    const QUEUES: usize = 2000;
    let deleted = |kind: Option<&str>| {
        let world = World::new();
        let mut client = world.connect();
        client.declare_exchange("x", kind.unwrap_or("fanout"));
        client.declare("first");
        client.bind("first", "x", "1");
        let names: Vec<String> = (0..QUEUES).map(|nth| format!("q{nth}")).collect();
        uncounted(&world, || {
            for (nth, name) in names.iter().enumerate() {
                client.declare(name);
                if kind.is_some() {
                    client.bind(name, "x", &(nth % 10 + 1).to_string());
                }
            }
            for name in &names {
                client.call(queue::Delete { queue: short(name), ..Default::default() });
            }
        })
    };
    let unbound = deleted(None);
    let kinds =
        ["direct", "fanout", "topic", "headers", "x-random", "x-modulus-hash", "x-consistent-hash"];
    let mut kept = Vec::from(kinds.map(|kind| (kind, deleted(Some(kind)) - unbound)));
    kept.retain(|(_, bytes)| *bytes > SPARE / 2);
    assert_eq!(kept, []);
}

#[test]
fn routes_that_were_remembered_keep_no_room() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.declare_exchange("x", "topic");
    client.bind("q", "x", "#");
    let publish = |client: &mut Client| {
        for nth in 0..1000 {
            client.publish("x", &nth.to_string(), "");
        }
        client.purge("q");
    };
    client.publish("x", "another", "");
    let kept = uncounted(&world, || {
        publish(&mut client);
        client.session().release_memory();
    });
    assert!(kept <= SPARE / 4, "{kept}");
}

#[test]
fn when_deliveries_were_made_counts() {
    const CHANNELS: u16 = 50;
    let world = World::new();
    world.broker.set_time(0);
    let mut client = world.connect();
    client.declare("q");
    (2..CHANNELS + 2).for_each(|number| client.open_channel(number));
    let get = |client: &mut Client, number| {
        client.publish("", "q", "x");
        let get = basic::Get { queue: short("q"), no_ack: false };
        let Heard::GetOk { delivery, .. } = client.call_on(number, get) else { panic!("none") };
        delivery.tag
    };
    // The first of each stays unacknowledged.
    (2..CHANNELS + 2).for_each(|number| assert_eq!(get(&mut client, number), 1));
    let kept = uncounted(&world, || {
        for second in 1..=130 {
            world.broker.set_time(second * 1000);
            for number in 2..CHANNELS + 2 {
                let delivery_tag = get(&mut client, number);
                client.tell_on(number, basic::Ack { delivery_tag, multiple: false });
            }
        }
    });
    assert!(kept <= SPARE / 2, "{kept}");
}

#[test]
fn consumers_that_have_gone_keep_no_room_in_a_queue_while_one_stays() {
    const CONSUMERS: usize = 20_000;
    let single = FieldTable::new().with("x-single-active-consumer", true);
    for (stays_last, arguments) in
        [(false, FieldTable::new()), (true, FieldTable::new()), (true, single)]
    {
        let world = World::new();
        let (mut staying, mut others) = (world.connect(), world.connect());
        declare_with(&mut staying, "q", false, &arguments);
        others.open_channel(2);
        others.open_channel(3);
        let kept = allocated_after(|| {
            if !stays_last {
                staying.consume("q");
            }
            for nth in 0..CONSUMERS {
                let consume = basic::Consume { queue: short("q"), ..Default::default() };
                others.call_on(2 + (nth % 2) as u16, consume);
            }
            if stays_last {
                staying.consume("q");
            }
            others.close_channel(2);
            others.close_channel(3);
        });
        assert!(kept <= SPARE, "{kept}");
        staying.publish("", "q", "x");
        assert_eq!(staying.deliveries().len(), 1);
    }
}

#[test]
fn readers_that_have_gone_keep_no_room_in_a_stream_while_one_stays() {
    const READERS: usize = 2000;
    let world = World::new();
    let (mut staying, mut others) = (world.connect(), world.connect());
    stream(&mut staying, "s");
    let consume = || basic::Consume { queue: short("s"), ..Default::default() };
    let qos = basic::Qos { prefetch_count: 1, ..Default::default() };
    staying.call(qos);
    for number in [2, 3] {
        others.open_channel(number);
        others.call_on(number, qos);
    }
    let kept = allocated_after(|| {
        staying.call(consume());
        for nth in 0..READERS {
            others.call_on(2 + (nth % 2) as u16, consume());
        }
        others.close_channel(2);
        others.close_channel(3);
    });
    assert!(kept <= SPARE, "{kept}");
}

#[test]
fn priorities_that_no_message_has_any_more_keep_no_room() {
    const QUEUES: i64 = 100;
    let world = World::new();
    let mut client = world.connect();
    let ranked = FieldTable::new().with("x-max-priority", 255);
    let names: Vec<String> = (0..QUEUES).map(|nth| format!("q{nth}")).collect();
    names.iter().for_each(|name| declare_with(&mut client, name, false, &ranked));
    let message = |name: &str, priority: u8| {
        let message = Message::new("", name, "x");
        message.with_properties(|properties| properties.priority = Some(priority))
    };
    let fill = |client: &mut Client| {
        for name in &names {
            let all = (0..=255).map(|priority| Step::Publish(1, message(name, priority)));
            client.read(&all.collect::<Vec<_>>());
        }
    };
    let empty = |client: &mut Client| {
        names.iter().for_each(|name| while client.pop(name).is_some() {});
    };
    // What each queue needs for a message.
    for name in &names {
        client.send(message(name, 0));
    }
    empty(&mut client);
    let full = uncounted(&world, || fill(&mut client));
    assert!(full <= SPARE, "{full}");
    let left = uncounted(&world, || empty(&mut client)) + full;
    let kept = allocated_after(|| {
        fill(&mut client);
        empty(&mut client);
    });
    assert!(left <= SPARE && kept <= SPARE, "{left}, {kept}");
}

#[test]
fn connections_that_were_woken_at_once_keep_no_room() {
    const CLIENTS: usize = 300;
    let world = World::new();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| world.connect()).collect();
    for (nth, client) in clients.iter_mut().enumerate() {
        let name = format!("q{nth}");
        client.declare(&name);
        client.bind(&name, "amq.fanout", "");
        client.consume_no_ack(&name);
    }
    let kept = uncounted(&world, || {
        for nth in 0..CLIENTS {
            clients[nth].publish("amq.fanout", "", "x");
            clients.iter_mut().for_each(|client| assert_eq!(client.deliveries().len(), 1));
            clients[nth].session().release_memory();
        }
    });
    assert!(kept <= 512 * CLIENTS as i64, "{kept}");
}
