//! What it costs to look at the headers of a message when a client sends as many as fit: counted in steps. A table may have the
//! same name any number of times, and each entry is looked at a bounded number of times, whatever its name.

use crate::frame_costs::{cost, large};
use crate::support::{Client, Message, Step, World, declare_with, owned, short, taken_bytes};
use courser_codec::{FieldTable, FieldValue, Table, basic, exchange, queue, tx};

/// A content header may have this many bytes, less some for what stands around the headers.
const HEADERS_BYTES: usize = 126_000;

/// A message for `q` whose header `entry`, as it stands in a table, is there `count` times.
fn repeated(exchange: &str, entry: &[u8], count: usize) -> Message {
    repeated_for(exchange, "q", entry, count)
}

fn repeated_for(exchange: &str, routing_key: &str, entry: &[u8], count: usize) -> Message {
    let mut properties = (1_u16 << 13).to_be_bytes().to_vec();
    properties.extend_from_slice(&((entry.len() * count) as u32).to_be_bytes());
    properties.extend(entry.repeat(count));
    Message::new(exchange, routing_key, "x").with_encoded_properties(&properties)
}

/// What it costs to publish as many of `entry` as fit, of which each is looked at up to `looks` times.
fn assert_linear(world: &World, client: &mut Client, exchange: &str, entry: &[u8], looks: u64) {
    let most = HEADERS_BYTES / entry.len();
    for count in [most / 2, most] {
        let message = repeated(exchange, entry, count);
        let taken = cost(|| {
            client.read(&[Step::Publish(1, message)]);
            world.tick_all(1);
        });
        let (least, most) = (count as u64, looks * count as u64 + 1000);
        assert!((least..=most).contains(&taken), "{count} of {entry:?} to {exchange}: {taken}");
    }
    client.heard();
}

fn exchange_of(client: &mut Client, name: &str, kind: &str, arguments: &FieldTable) {
    let entries = arguments.to_entries();
    let (exchange, kind) = (short(name), short(kind));
    let arguments = Table::from_entries(&entries);
    client.call(exchange::Declare { exchange, kind, arguments, ..Default::default() });
    bind_with(client, name, &FieldTable::new());
}

fn bind_with(client: &mut Client, exchange: &str, arguments: &FieldTable) {
    let entries = arguments.to_entries();
    let (queue, exchange, routing_key) = (short("q"), short(exchange), short("1"));
    let arguments = Table::from_entries(&entries);
    client.call(queue::Bind { queue, exchange, routing_key, arguments, ..Default::default() });
}

/// A headers exchange with a binding that asks for a header.
fn headers_exchange(client: &mut Client) {
    client.declare_exchange("headers", "headers");
    bind_with(client, "headers", &FieldTable::new().with("x-match", "all").with("h", 1));
}

/// An array without elements, under this name.
fn empty_array(name: &str) -> Vec<u8> {
    [&[name.len() as u8], name.as_bytes(), b"A\0\0\0\0"].concat()
}

#[test]
fn further_keys_cost_each_header_a_few_looks_however_often_they_are_named() {
    let (world, mut client) = declared();
    for name in ["CC", "BCC"] {
        let before = taken_bytes();
        assert_linear(&world, &mut client, "", &empty_array(name), 8);
        // They are copied as they came, and make no table of our own.
        let allocated = (taken_bytes() - before) as usize;
        assert!(allocated < 14 * HEADERS_BYTES, "{allocated}");
    }
    let mut shown = client.get("q").expect("a message");
    for _ in 0..3 {
        let headers = shown.properties.headers.unwrap_or_default();
        assert!(headers.get("BCC").is_none(), "{} headers", headers.len());
        let Some(next) = client.get("q") else { return };
        shown = next;
    }
}

#[test]
fn exchanges_that_look_for_a_header_look_at_each_a_few_times() {
    let (world, mut client) = declared();
    let table = FieldTable::new();
    let delayed = table.clone().with("x-delayed-type", "fanout");
    exchange_of(&mut client, "delayed", "x-delayed-message", &delayed);
    exchange_of(&mut client, "recent", "x-recent-history", &table);
    let hashed = table.clone().with("hash-header", "h");
    exchange_of(&mut client, "hashed", "x-consistent-hash", &hashed);
    let once = table.clone().with("x-message-deduplication", true);
    exchange_of(&mut client, "once", "fanout", &once);
    headers_exchange(&mut client);
    for exchange in ["delayed", "recent", "hashed", "once", "headers"] {
        assert_linear(&world, &mut client, exchange, b"\0V", 6);
    }
    // Each of its messages waits, and each goes on with its delay over.
    let wants_to_wait = [b"\x07x-delayI", &7_i32.to_be_bytes()[..]].concat();
    assert_linear(&world, &mut client, "delayed", &wants_to_wait, 12);
}

#[test]
fn what_lies_in_a_header_counts_where_it_is_copied() {
    let (world, mut client) = declared();
    headers_exchange(&mut client);
    let voids = FieldValue::Array(vec![FieldValue::Void; 100_000]);
    let headers: FieldTable = [(owned("a"), voids)].into_iter().collect();
    let message = Message::new("headers", "q", "x").headers(headers);
    let taken = cost(|| client.send(message));
    assert!((100_000..200_000).contains(&taken), "{taken}");
    assert_eq!(world.counts("q").0, 0);
}

/// A message whose only header `h` is a text of this length.
fn long(exchange: &str, text: &str, bytes: usize) -> Message {
    Message::new(exchange, "q", "x").headers(FieldTable::new().with("h", text.repeat(bytes)))
}

/// An exchange of each type that reads a header, of this name and behind `all`; each has the queue `q`.
fn reading(client: &mut Client, name: &str, kind: &str) {
    let table = FieldTable::new();
    match kind {
        "hashed" => exchange_of(client, name, "x-consistent-hash", &table.with("hash-header", "h")),
        "once" => {
            let once = table.with("x-message-deduplication", true);
            let once = once.with("x-deduplication-header", "h");
            exchange_of(client, name, "fanout", &once);
        }
        _ => {
            client.declare_exchange(name, "headers");
            bind_with(client, name, &table.with("x-match", "any").with("h", 1).with("i", 1));
        }
    }
    client.bind_exchange(name, "all", "");
}

#[test]
fn the_bytes_of_a_header_count_where_they_are_hashed_or_copied() {
    let (_world, mut client) = declared();
    client.declare_exchange("all", "fanout");
    for kind in ["hashed", "once", "headers"] {
        reading(&mut client, kind, kind);
        for bytes in [HEADERS_BYTES / 2, HEADERS_BYTES - 100] {
            let message = long(kind, "x", bytes);
            let taken = cost(|| client.send(message));
            let chunks = bytes as u64 / 64;
            assert!((chunks..3 * chunks + 100).contains(&taken), "{kind}, {bytes} bytes: {taken}");
        }
    }
}

#[test]
fn a_message_is_refused_whose_long_header_too_many_exchanges_would_read() {
    for kind in ["hashed", "headers"] {
        let (_world, mut client) = declared();
        client.declare_exchange("all", "fanout");
        (0..200).for_each(|nth| reading(&mut client, &format!("{kind}{nth}"), kind));
        client.send(long("all", "x", 1000));
        assert!(client.heard().is_empty());
        client.read(&[Step::Publish(1, long("all", "x", HEADERS_BYTES - 100))]);
        let heard = format!("{:?}", client.heard());
        assert!(heard.contains("506") && heard.contains("steps to route"), "{heard}");
    }
}

#[test]
fn a_message_is_refused_whose_long_headers_too_many_exchanges_would_keep() {
    let delayed = (FieldTable::new().with("x-delayed-type", "fanout"), "x-delayed-message");
    let delay = FieldTable::new().with("x-delay", 60_000);
    let kept = FieldTable::new().with("x-recent-history-no-store", false);
    let recent = (FieldTable::new(), "x-recent-history");
    for ((arguments, kind), first) in [(delayed, delay), (recent, kept)] {
        let (_world, mut client) = declared();
        client.declare_exchange("all", "fanout");
        for nth in 0..200 {
            let name = format!("keeps{nth}");
            exchange_of(&mut client, &name, kind, &arguments);
            client.bind_exchange(&name, "all", "");
        }
        // The header that is looked for comes first, and the long one behind it is copied.
        let message = |bytes| {
            let headers = first.clone().with("h", "x".repeat(bytes));
            Message::new("all", "q", "x").headers(headers)
        };
        client.send(message(1000));
        assert!(client.heard().is_empty());
        client.read(&[Step::Publish(1, message(HEADERS_BYTES - 200))]);
        let heard = format!("{:?}", client.heard());
        assert!(heard.contains("506") && heard.contains("steps to route"), "{heard}");
    }
}

#[test]
fn exchanges_that_drop_repetitions_read_the_headers_of_a_message_once_for_all() {
    const EXCHANGES: usize = 200;
    let (_world, mut client) = declared();
    client.declare_exchange("all", "fanout");
    (0..EXCHANGES).for_each(|nth| reading(&mut client, &format!("once{nth}"), "once"));
    let many = HEADERS_BYTES / 2;
    for (message, most) in [
        (long("all", "x", HEADERS_BYTES - 100), HEADERS_BYTES / 64 + 20 * EXCHANGES),
        (repeated("all", b"\0V", many), 6 * many + 20 * EXCHANGES),
    ] {
        let taken = cost(|| client.send(message));
        assert!(taken <= most as u64, "{taken} of {most}");
        assert_eq!(client.pop_all("q"), ["x"]);
    }
}

#[test]
fn what_a_client_says_of_deaths_makes_way_for_the_first_real_one_however_often_it_says_so() {
    let (_world, mut client) = declared();
    let arguments =
        FieldTable::new().with("x-dead-letter-exchange", "").with("x-dead-letter-routing-key", "q");
    declare_with(&mut client, "dying", false, &arguments);
    client.read(&[Step::Publish(1, repeated_for("", "dying", &empty_array("x-death"), 4))]);
    client.consume("dying");
    client.tell(basic::Reject { delivery_tag: 1, requeue: false });
    let headers = client.get("q").and_then(|letter| letter.properties.headers).unwrap_or_default();
    let deaths: Vec<_> = headers.iter().filter(|(name, _)| name.as_bytes() == b"x-death").collect();
    assert_eq!(deaths.len(), 1, "{headers:?}");
    assert_eq!(deaths[0].1.as_array().map(<[_]>::len), Some(1));
}

#[test]
fn dead_letters_with_many_headers_go_a_few_at_a_time() {
    const LETTERS: usize = 50;
    let (world, mut client) = declared();
    world.broker.set_time(1000);
    let arguments =
        FieldTable::new().with("x-dead-letter-exchange", "").with("x-dead-letter-routing-key", "q");
    declare_with(&mut client, "dying", false, &arguments);
    let message = repeated_for("", "dying", b"\0V", HEADERS_BYTES / 2);
    for _ in 0..LETTERS {
        client.read(&[Step::Publish(1, message.clone())]);
    }
    client.consume("dying");
    let nack = basic::Nack { delivery_tag: 0, multiple: true, requeue: false };
    client.tell(nack);
    let at_once = world.counts("q").0;
    assert!((1..40).contains(&at_once), "{at_once} in one go");
}

#[test]
fn a_commit_of_publishes_with_many_headers_is_known_to_take_long() {
    let (_world, mut client) = declared();
    client.tx_select();
    let message = repeated("", &empty_array("BCC"), HEADERS_BYTES / 9);
    client.read(&[Step::Publish(1, message.clone())]);
    assert!(!client.takes_long(tx::Commit {}));
    client.read(&vec![Step::Publish(1, message); 20]);
    assert!(client.takes_long(tx::Commit {}));
    client.commit();
    assert!(!client.takes_long(tx::Commit {}));
}

#[test]
fn a_message_is_refused_that_too_many_exchanges_would_have_to_look_through() {
    let (_world, mut client) = declared();
    let hashed = FieldTable::new().with("hash-header", "h");
    client.declare_exchange("all", "fanout");
    for nth in 0..10 {
        let name = format!("hashed{nth}");
        exchange_of(&mut client, &name, "x-consistent-hash", &hashed);
        client.bind_exchange(&name, "all", "");
    }
    client.send(repeated("all", b"\0V", 1000));
    assert_eq!(client.pop_all("q"), ["x"]);
    client.read(&[Step::Publish(1, repeated("all", b"\0V", HEADERS_BYTES / 2))]);
    let heard = format!("{:?}", client.heard());
    assert!(heard.contains("506") && heard.contains("steps to route"), "{heard}");
}

fn declared() -> (World, Client) {
    let world = large();
    let mut client = world.connect();
    client.declare("q");
    (world, client)
}
