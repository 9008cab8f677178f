//! Dead letters whose headers have no room for all their deaths.

use crate::delayed::{declare_as, delayed_type, run_until};
use crate::long_headers::{LONGEST, with_header};
use crate::recent_history_beside_others::history;
use crate::support::{Client, Message, World, deaths, declare_with};
use courser_codec::{FieldTable, FieldValue, basic};

/// A queue's name of the greatest length but one.
fn long_name(n: usize) -> String {
    format!("{n:0>254}")
}

/// Declares a durable queue whose dead letters go to another one.
fn declare_dying_to(client: &mut Client, name: &str, to: &str, arguments: FieldTable) {
    let letters = arguments.with("x-dead-letter-exchange", "");
    declare_with(client, name, true, &letters.with("x-dead-letter-routing-key", to));
}

#[test]
fn deaths_take_no_more_than_there_is_room_for() {
    let world = World::new();
    let mut client = world.connect();
    let count = 400;
    for n in 0..count {
        declare_dying_to(&mut client, &long_name(n), &long_name(n + 1), FieldTable::new());
    }
    client.declare(&long_name(count));
    client.publish("", &long_name(0), "dead often");
    for n in 0..count {
        let delivery_tag = client.get(&long_name(n)).expect("the letter").tag;
        client.tell(basic::Reject { delivery_tag, requeue: false });
    }
    let letter = client.get(&long_name(count)).expect("the letter, in a frame of the usual size");
    assert!(deaths(&letter).len() > 50);
    assert_eq!(deaths(&letter)[0], format!("{} rejected 1", long_name(count - 1)));
}

#[test]
fn a_circle_of_dead_letters_ends_whatever_room_there_is_for_deaths() {
    let at_once = || FieldTable::new().with("x-message-ttl", 0);
    for header in [LONGEST, 126_000, 120_000, 100_000, 10] {
        for (outside, within) in [(0, 2), (0, 6), (1, 6), (3, 2), (200, 200)] {
            let world = World::new();
            let mut client = world.connect();
            let count = outside + within;
            for n in 0..count {
                let next = if n + 1 == count { outside } else { n + 1 };
                declare_dying_to(&mut client, &long_name(n), &long_name(next), at_once());
            }
            client.send(with_header(&long_name(0), "for ever", header));
            let is_over = (0..2 * count + 10).any(|_| world.broker.tick(1000).is_none());
            assert!(is_over, "{header} bytes, {outside} and {within} queues");
            assert!((0..count).all(|n| world.counts(&long_name(n)) == (0, 0, 0)));
        }
    }
}

#[test]
fn a_message_is_tried_again_and_again_whatever_room_there_is_for_deaths() {
    let world = World::new();
    let mut client = world.connect();
    let (work, retry) = (long_name(0), long_name(1));
    declare_dying_to(&mut client, &work, &retry, FieldTable::new());
    declare_dying_to(&mut client, &retry, &work, FieldTable::new().with("x-message-ttl", 0));
    client.send(with_header(&work, "refused", LONGEST));
    for round in 0..20 {
        let delivery = client.get(&work).expect("the message");
        let times = if round == 0 { vec![] } else { vec![format!("{retry} expired {round}")] };
        assert_eq!(deaths(&delivery).first(), times.first());
        client.tell(basic::Reject { delivery_tag: delivery.tag, requeue: false });
        world.broker.tick(1000);
    }
}

/// Whether a message arrives in a queue that has died in so many on the way to `exchange`. Whatever it or another queue that is
/// bound later gets, a client can get.
fn arrives(count: usize, exchange: &str) -> bool {
    let world = World::new();
    let mut client = world.connect();
    declare_as(&mut client, delayed_type("fanout"), false);
    history(&mut client, "h", 20, false);
    for queue in ["dead", "late"] {
        client.declare(queue);
    }
    client.bind("dead", exchange, "");
    let at_once = || FieldTable::new().with("x-message-ttl", 0);
    for n in 1..count {
        declare_dying_to(&mut client, &long_name(n), &long_name(n + 1), at_once());
    }
    let last = at_once().with("x-dead-letter-exchange", exchange);
    declare_with(&mut client, &long_name(count), true, &last);
    let long = FieldValue::LongStr(vec![b'y'; LONGEST - 100]);
    let headers = FieldTable::new().with("x-delay", 1000).with("h", long);
    client.send(Message::new("", &long_name(1), "dead").headers(headers));
    [1000, 2000].iter().for_each(|now_ms| run_until(&world, *now_ms));
    client.bind("late", exchange, "");
    let (ready, ..) = world.counts("dead");
    for queue in ["dead", "late"] {
        let (ready, ..) = world.counts(queue);
        assert_eq!(client.pop_all(queue).len(), ready, "{count} deaths before {exchange}: {queue}");
    }
    ready > 0
}

#[test]
fn no_exchange_keeps_a_letter_that_has_no_room_for_its_deaths() {
    for exchange in ["x", "h"] {
        let arrived = (1..=20).filter(|count| arrives(*count, exchange)).count();
        assert!(arrived > 0 && arrived < 20, "{arrived} by {exchange}");
    }
}
