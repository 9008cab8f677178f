//! Streams on a disk: what is delivered, and what offsets mean after a restart.

use crate::streams::{declare, messages, read, stream};
use crate::support::{Client, Heard, Message, Step, WorldOnDisk, short};
use courser_codec::{FieldTable, FieldValue, queue};

fn fill(client: &mut Client, numbers: std::ops::Range<usize>) {
    let persistent =
        |message: Message| message.with_properties(|properties| properties.delivery_mode = Some(2));
    let steps: Vec<_> = numbers
        .map(|number| {
            let message = Message::new("", "s", number.to_string());
            // A stream keeps what is transient, too.
            Step::Publish(1, if number % 2 == 0 { persistent(message) } else { message })
        })
        .collect();
    client.read(&steps);
}

fn expected(numbers: std::ops::Range<usize>) -> Vec<(i64, String)> {
    numbers.map(|number| (number as i64, number.to_string())).collect()
}

/// Everything in the stream `s`.
fn all(world: &WorldOnDisk) -> Vec<(i64, String)> {
    let mut client = world.connect();
    client.qos(0xffff);
    read(&mut client, "s", "first");
    // A reader gets so much at a time, and has the log synced where it waits for that.
    let mut all = Vec::new();
    loop {
        world.flush();
        let mut more = messages(&mut client);
        if more.is_empty() {
            break;
        }
        all.append(&mut more);
    }
    all
}

#[test]
fn only_what_is_durable_is_delivered() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    stream(&mut client, "s");
    world.flush();
    let mut reader = world.connect();
    reader.qos(100);
    read(&mut reader, "s", "first");
    fill(&mut client, 0..3);
    assert_eq!(messages(&mut reader), []);
    world.flush();
    assert_eq!(messages(&mut reader), expected(0..3));
    fill(&mut client, 3..5);
    assert_eq!(messages(&mut reader), []);
    world.crash(|| {
        client.disconnect();
        reader.disconnect();
    });
    assert_eq!(all(&world), expected(0..3));
}

#[test]
fn messages_and_their_offsets_survive() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    stream(&mut client, "s");
    for begin in (0..5000).step_by(10) {
        fill(&mut client, begin..begin + 10);
    }
    client.disconnect();
    world.restart();
    assert_eq!(all(&world), expected(0..5000));
    let mut client = world.connect();
    fill(&mut client, 5000..5010);
    client.disconnect();
    world.restart_from_checkpoint();
    assert_eq!(all(&world), expected(0..5010));
    let mut client = world.connect();
    fill(&mut client, 5010..5020);
    client.disconnect();
    world.restart();
    assert_eq!(all(&world), expected(0..5020));
}

#[test]
fn offsets_go_on_after_retention_and_a_restart() {
    for with_checkpoint in [false, true] {
        let mut world = WorldOnDisk::new();
        let mut client = world.connect();
        declare(&mut client, "s", FieldTable::new().with("x-max-length-bytes", 70_000));
        for number in 0..4000 {
            fill(&mut client, number..number + 1);
            if with_checkpoint && number == 3000 {
                world.checkpoint();
            }
        }
        let (left, ..) = world.counts("s");
        assert!(left < 2600, "{left}");
        client.disconnect();
        world.restart();
        assert_eq!(all(&world), expected(4000 - left..4000));
        let mut client = world.connect();
        fill(&mut client, 4000..6000);
        let (left, ..) = world.counts("s");
        client.disconnect();
        world.restart_from_checkpoint();
        assert_eq!(all(&world), expected(6000 - left..6000));
    }
}

#[test]
fn an_emptied_stream_goes_on_counting_after_a_restart() {
    let mut world = WorldOnDisk::new();
    world.broker.set_time(1_000_000);
    let mut client = world.connect();
    declare(&mut client, "s", FieldTable::new().with("x-max-age", "10s"));
    fill(&mut client, 0..7);
    world.broker.tick(1_100_000);
    assert_eq!(world.counts("s").0, 0);
    client.disconnect();
    world.restart();
    let mut client = world.connect();
    fill(&mut client, 7..9);
    client.disconnect();
    world.restart_from_checkpoint();
    assert_eq!(all(&world), expected(7..9));
}

#[test]
fn a_stream_and_other_queues_share_a_message() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    stream(&mut client, "s");
    client.call(queue::Declare { queue: short("d"), durable: true, ..Default::default() });
    client.declare("t");
    for name in ["s", "d", "t"] {
        client.bind(name, "amq.fanout", "");
    }
    for number in 0..4 {
        let message = Message::new("amq.fanout", "", number.to_string()).with_properties(|one| {
            one.delivery_mode = Some(if number % 2 == 0 { 2 } else { 1 });
        });
        client.send(message);
    }
    assert_eq!(client.pop_all("t"), ["0", "1", "2", "3"]);
    assert_eq!(client.pop("d"), Some("0".to_owned()));
    client.disconnect();
    world.restart_from_checkpoint();
    let mut client = world.connect();
    assert_eq!(client.pop_all("d"), ["2"]);
    assert_eq!(all(&world), expected(0..4));
}

#[test]
fn a_transaction_puts_its_messages_into_a_stream_together() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    stream(&mut client, "s");
    client.tx_select();
    fill(&mut client, 0..4);
    assert_eq!(all(&world), []);
    client.read(&[Step::Call(1, courser_codec::tx::Commit {}.into())]);
    assert_eq!(all(&world), expected(0..4));
    client.disconnect();
    world.restart();
    assert_eq!(all(&world), expected(0..4));
}

#[test]
fn a_deleted_stream_stays_deleted() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    stream(&mut client, "s");
    fill(&mut client, 0..4);
    assert_eq!(client.delete("s"), Heard::Count(4));
    stream(&mut client, "s");
    fill(&mut client, 0..1);
    client.disconnect();
    world.restart();
    assert_eq!(all(&world), expected(0..1));
    world.restart_from_checkpoint();
    assert_eq!(all(&world), expected(0..1));
}

#[test]
fn times_survive_a_restart() {
    for with_checkpoint in [false, true] {
        let mut world = WorldOnDisk::new();
        world.broker.set_time(1_000_000);
        let mut client = world.connect();
        declare(&mut client, "s", FieldTable::new().with("x-max-age", "1h"));
        for number in 0..4 {
            world.broker.set_time(1_000_000 + number as u64 * 600_000);
            fill(&mut client, number..number + 1);
        }
        client.disconnect();
        if with_checkpoint {
            world.restart_from_checkpoint();
        } else {
            world.restart();
        }
        world.broker.set_time(1_000_000 + 4 * 600_000);
        world.flush();
        let mut client = world.connect();
        client.qos(10);
        read(&mut client, "s", FieldValue::Timestamp(2000));
        assert_eq!(messages(&mut client), expected(2..4));
        world.broker.tick(1_000_000 + 3_700_000 + 600_000);
        assert_eq!(world.counts("s").0, 2, "{with_checkpoint}");
    }
}

#[test]
fn publishers_at_the_same_time_leave_an_order_that_stays() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    stream(&mut client, "s");
    stream(&mut client, "t");
    for name in ["s", "t"] {
        client.bind(name, "amq.fanout", "");
    }
    let clients: Vec<Client> = (0..4).map(|_| world.connect()).collect();
    std::thread::scope(|scope| {
        for (index, mut client) in clients.into_iter().enumerate() {
            scope.spawn(move || {
                for number in 0..5000 {
                    let exchange = if number % 2 == 0 { "amq.fanout" } else { "" };
                    client.send(Message::new(exchange, "s", format!("{index}.{number}")));
                }
                client.disconnect();
            });
        }
    });
    let before = all(&world);
    assert_eq!(before.len(), 20_000);
    client.disconnect();
    world.restart();
    assert_eq!(all(&world), before);
}
