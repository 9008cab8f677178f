//! `basic.qos`: how much is delivered ahead of acknowledgements.

use crate::support::{Client, Delivery, Heard, World, short};
use courser_codec::{basic, queue};

const SIX: [&str; 6] = ["1", "2", "3", "4", "5", "6"];

#[test]
fn a_consumer_is_given_no_more_than_its_prefetch() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos(2);
    client.consume("q");
    client.fill("q", &SIX);
    assert_eq!(client.bodies(), ["1", "2"]);
    client.ack(1);
    assert_eq!(client.bodies(), ["3"]);
    client.ack_through(3);
    assert_eq!(client.bodies(), ["4", "5"]);
    client.tell(basic::Nack { delivery_tag: 4, multiple: false, requeue: false });
    assert_eq!(client.bodies(), ["6"]);
    assert_eq!(world.counts("q"), (0, 2, 1));
}

#[test]
fn zero_is_no_limit_and_so_is_the_default() {
    let world = World::new();
    let mut client = world.connect();
    for set in [false, true] {
        client.declare("q");
        if set {
            client.qos(1);
            client.qos(0);
        }
        client.consume("q");
        client.fill("q", &SIX);
        assert_eq!(client.bodies(), SIX);
        client.delete("q");
    }
}

#[test]
fn a_limit_holds_for_consumers_made_after_it() {
    let world = World::new();
    let mut client = world.connect();
    for queue in ["first", "second", "third"] {
        client.declare(queue);
        client.fill(queue, &SIX);
    }
    client.qos(3);
    client.consume("first");
    client.qos(1);
    client.consume("second");
    client.qos(0);
    client.consume("third");
    let deliveries = client.deliveries();
    let count = |queue: &str| deliveries.iter().filter(|one| one.routing_key == queue).count();
    assert_eq!((count("first"), count("second"), count("third")), (3, 1, 6));
}

#[test]
fn each_consumer_has_a_limit_of_its_own() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos(2);
    let one = client.consume("q");
    let two = client.consume("q");
    client.fill("q", &SIX);
    let deliveries = client.deliveries();
    let of = |tag: &str| deliveries.iter().filter(|one| one.consumer == tag).count();
    assert_eq!((of(&one), of(&two)), (2, 2));
}

#[test]
fn a_consumer_without_acknowledgements_has_no_limit() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos(1);
    client.qos_global(1);
    client.consume_no_ack("q");
    client.fill("q", &SIX);
    assert_eq!(client.bodies(), SIX);
}

#[test]
fn a_global_limit_is_one_for_all_consumers_of_the_channel() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.declare("r");
    client.qos_global(3);
    client.consume("q");
    client.consume("r");
    client.fill("q", &["q1", "q2"]);
    client.fill("r", &["r1", "r2", "r3"]);
    assert_eq!(client.bodies(), ["q1", "q2", "r1"]);
    client.ack(1);
    assert_eq!(client.bodies(), ["r2"], "an ack for one queue makes room for another");
    client.ack_through(0);
    assert_eq!(client.bodies(), ["r3"]);
}

#[test]
fn a_global_limit_counts_for_consumers_that_are_there_and_can_be_raised() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.consume("q");
    client.qos_global(1);
    client.fill("q", &SIX);
    assert_eq!(client.bodies(), ["1"]);
    client.qos_global(3);
    assert_eq!(client.bodies(), ["2", "3"]);
    client.qos_global(0);
    assert_eq!(client.bodies(), ["4", "5", "6"]);
}

#[test]
fn both_limits_hold_at_once() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos(2);
    client.qos_global(3);
    let one = client.consume("q");
    let two = client.consume("q");
    client.fill("q", &SIX);
    let deliveries = client.deliveries();
    let of = |tag: &str| deliveries.iter().filter(|one| one.consumer == tag).count();
    assert_eq!((of(&one), of(&two)), (2, 1));
}

#[test]
fn a_lowered_global_limit_waits_until_it_is_met() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos_global(3);
    client.consume("q");
    client.fill("q", &SIX);
    assert_eq!(client.bodies(), ["1", "2", "3"]);
    client.qos_global(1);
    client.ack(1);
    client.ack(2);
    assert_eq!(client.bodies(), Vec::<String>::new());
    client.ack(3);
    assert_eq!(client.bodies(), ["4"]);
}

#[test]
fn unacknowledged_messages_of_a_cancelled_consumer_still_use_the_global_limit() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos_global(2);
    let tag = client.consume("q");
    client.fill("q", &SIX);
    assert_eq!(client.bodies(), ["1", "2"]);
    client.cancel(&tag);
    client.consume("q");
    assert_eq!(client.bodies(), Vec::<String>::new());
    client.ack(2);
    assert_eq!(client.bodies(), ["3"]);
}

#[test]
fn a_message_waits_for_the_consumer_that_can_take_it() {
    let world = World::new();
    let (mut busy, mut free) = (world.connect(), world.connect());
    busy.declare("q");
    busy.qos(1);
    busy.consume("q");
    free.consume("q");
    busy.fill("q", &SIX);
    assert_eq!(busy.bodies(), ["1"]);
    assert_eq!(free.bodies(), ["2", "3", "4", "5", "6"]);
}

#[test]
fn a_prefetch_in_bytes_is_not_implemented() {
    let world = World::new();
    let qos = basic::Qos { prefetch_size: 77, ..Default::default() };
    let text = world.connect().fatal(qos);
    assert_eq!(text, "540 NOT_IMPLEMENTED - prefetch_size!=0 (77)");
}

#[test]
fn a_stopped_flow_holds_deliveries_until_it_goes_on() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.consume_no_ack("q");
    let flow = |active| courser_codec::channel::Flow { active };
    assert_eq!(client.call(flow(false)), Heard::FlowOk(false));
    client.fill("q", &SIX);
    assert_eq!(client.bodies(), Vec::<String>::new());
    let polled = client.call(basic::Get { queue: short("q"), no_ack: true });
    assert!(matches!(polled, Heard::GetOk { .. }), "{polled:?}");
    assert_eq!(client.call(flow(true)), Heard::FlowOk(true));
    assert_eq!(client.bodies(), SIX[1..]);
}

/// Of how many messages each of these was the first letter.
fn shares(bodies: &[String], of: &[&str]) -> Vec<usize> {
    of.iter().map(|first| bodies.iter().filter(|body| body.starts_with(first)).count()).collect()
}

/// Acknowledges deliveries one by one, each after the one before it, until so many have come.
fn acknowledge_each(client: &mut Client, deliveries: usize) -> Vec<Delivery> {
    let mut all = Vec::new();
    while all.len() < deliveries {
        let some = client.deliveries();
        assert!(!some.is_empty(), "nothing after {} deliveries", all.len());
        some.iter().for_each(|one| client.ack(one.tag));
        all.extend(some);
    }
    all
}

#[test]
fn queues_take_turns_with_a_global_limit() {
    for limit in [1, 3] {
        let world = World::new();
        let mut client = world.connect();
        for queue in ["a", "b", "c"] {
            client.declare(queue);
            client.fill(queue, &[queue; 60]);
        }
        client.qos_global(limit);
        for queue in ["a", "b", "c"] {
            client.consume(queue);
        }
        let taken = acknowledge_each(&mut client, 49);
        let bodies: Vec<String> = taken.iter().map(|one| one.text().to_owned()).collect();
        let shares = shares(&bodies, &["a", "b", "c"]);
        assert!(shares.iter().all(|share| (14..=19).contains(share)), "{limit}: {shares:?}");
    }
}

#[test]
fn consumers_of_one_queue_take_turns_with_a_global_limit() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos_global(1);
    let tags = [client.consume("q"), client.consume("q"), client.consume("q")];
    client.fill("q", &["m"; 60]);
    let taken = acknowledge_each(&mut client, 30);
    for tag in &tags {
        assert_eq!(taken.iter().filter(|one| one.consumer == *tag).count(), 10);
    }
}

#[test]
fn consumers_that_come_and_go_leave_the_others_their_turns() {
    let world = World::new();
    let mut client = world.connect();
    for queue in ["a", "b"] {
        client.declare(queue);
        client.fill(queue, &[queue; 200]);
    }
    client.qos_global(1);
    client.consume("a");
    for _ in 0..100 {
        let tag = client.consume("b");
        client.cancel(&tag);
    }
    client.consume("b");
    let taken = acknowledge_each(&mut client, 20);
    let bodies: Vec<String> = taken.iter().map(|one| one.text().to_owned()).collect();
    let shares = shares(&bodies, &["a", "b"]);
    assert!(shares.iter().all(|share| (9..=11).contains(share)), "{shares:?}");
}

#[test]
fn a_consumer_that_goes_on_its_turn_leaves_it_to_the_others_of_its_channel() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos_global(1);
    let tags = [client.consume("q"), client.consume("q"), client.consume("q")];
    client.fill("q", &["1", "2", "3", "4"]);
    let taken = acknowledge_each(&mut client, 4);
    // The queue is empty: the one whose turn it is waits for a message, the others for it to make way.
    let next = tags.iter().find(|tag| **tag != taken[3].consumer && **tag != taken[2].consumer);
    client.cancel(next.expect("one of three"));
    client.fill("q", &["5"]);
    assert_eq!(client.bodies(), ["5"]);
}

#[test]
fn a_consumer_without_acknowledgements_stays_within_a_global_limit() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.declare("r");
    client.qos_global(1);
    client.consume("q");
    client.consume_no_ack("r");
    client.fill("q", &["q1"]);
    client.fill("r", &["r1", "r2"]);
    assert_eq!(client.bodies(), ["q1"]);
    client.ack(1);
    assert_eq!(client.bodies(), ["r1", "r2"], "what needs no acknowledgement uses up nothing");
}

#[test]
fn a_channel_goes_on_when_all_that_had_their_turn_with_a_global_limit_have_become_empty() {
    const QUEUES: usize = 3000;
    let world = World::new();
    let (mut publisher, mut client) = (world.connect(), world.connect());
    client.qos_global(1);
    let names: Vec<String> = (0..QUEUES).map(|nth| nth.to_string()).collect();
    for name in &names {
        publisher.declare(name);
        client.consume(name);
    }
    names.iter().for_each(|name| publisher.publish("", name, name));
    assert_eq!(client.bodies(), ["0"]);
    for name in &names[1..QUEUES - 1] {
        publisher.call(queue::Purge { queue: short(name), ..Default::default() });
    }
    client.ack(1);
    assert_eq!(client.bodies(), [names[QUEUES - 1].as_str()]);
}
