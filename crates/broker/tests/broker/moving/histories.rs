//! Random traffic in a vhost; then it moves, and clients can't tell the two brokers apart.
//!
//! Both are looked at, and the same is done in both from then on until nothing is left: what clients get is the same, with all its
//! marks, as are the offsets of the stream and the messages that wait for their time.

use super::contents::{assert_same, contents};
use super::{QUEUES, START_MS, V, enter, found, found_another, import, persistent, pieces, sync};
use crate::delayed::run_until;
use crate::support::{Client, Delivery, Message, WorldOnDisk, declare_with};
use courser_codec::{FieldTable, basic};
use proptest::prelude::*;

/// What happens before the move.
#[derive(Clone, Debug)]
enum Action {
    Publish {
        to: usize,
        count: usize,
        bytes: usize,
        priority: u8,
        id: u8,
        expires_ms: Option<u64>,
    },
    Delay {
        key: usize,
        delay_ms: u64,
    },
    /// Takes messages, and ends them in this way: acknowledged, refused, returned, and the rest when the
    /// connection goes.
    Take {
        queue: usize,
        count: usize,
        ends: Vec<u8>,
    },
    Purge {
        queue: usize,
    },
    Pause {
        queue: usize,
    },
    Wait {
        ms: u64,
    },
    Checkpoint,
    Restart,
}

/// Where messages are published to.
const TARGETS: [(&str, &str); 8] = [
    ("all", "x"),
    ("", "plain"),
    ("", "counted"),
    ("", "ranked"),
    ("", "short"),
    ("", "apart"),
    ("recent", "r"),
    ("", "s"),
];

fn action() -> impl Strategy<Value = Action> {
    let expires = prop::option::weighted(0.2, 500u64..5000);
    let publish = (0..TARGETS.len(), 1..20usize, 0..300usize, 0..7u8, 0..20u8, expires);
    prop_oneof![
        6 => publish.prop_map(|(to, count, bytes, priority, id, expires_ms)| {
            Action::Publish { to, count, bytes, priority, id, expires_ms }
        }),
        2 => (0..3usize, prop_oneof![1u64..3000, 1u64..100_000_000])
            .prop_map(|(key, delay_ms)| Action::Delay { key, delay_ms }),
        5 => (0..QUEUES.len(), 1..8usize, prop::collection::vec(0..4u8, 8))
            .prop_map(|(queue, count, ends)| Action::Take { queue, count, ends }),
        1 => (0..QUEUES.len()).prop_map(|queue| Action::Purge { queue }),
        1 => (0..QUEUES.len()).prop_map(|queue| Action::Pause { queue }),
        2 => (1u64..1500).prop_map(|ms| Action::Wait { ms }),
        1 => Just(Action::Checkpoint),
        1 => Just(Action::Restart),
    ]
}

struct Run {
    source: WorldOnDisk,
    now_ms: u64,
    published: usize,
}

impl Run {
    fn new() -> Self {
        let source = WorldOnDisk::new();
        found(&source);
        Run { source, now_ms: START_MS, published: 0 }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Publish { to, count, bytes, priority, id, expires_ms } => {
                let mut client = enter(&self.source);
                for _ in 0..*count {
                    self.published += 1;
                    let body = format!("{} {}", self.published, "x".repeat(*bytes));
                    let headers = FieldTable::new()
                        .with("x-deduplication-header", i32::from(*id))
                        .with("kind", i32::from(*id % 5));
                    let (exchange, key) = TARGETS[*to];
                    let message = persistent(exchange, key, &body)
                        .headers(headers)
                        .with_properties(|all| all.priority = Some(*priority));
                    client.send(match expires_ms {
                        Some(ms) => message.expiration(&ms.to_string()),
                        None => message,
                    });
                }
                client.disconnect();
            }
            Action::Delay { key, delay_ms } => {
                self.published += 1;
                let mut client = enter(&self.source);
                let headers = FieldTable::new().with("x-delay", *delay_ms as i64);
                let key = ["a.b", "b", "a.c"][*key];
                client.send(persistent("later", key, &self.published.to_string()).headers(headers));
                client.disconnect();
            }
            Action::Take { queue, count, ends } => {
                let mut client = enter(&self.source);
                let taken: Vec<Delivery> =
                    (0..*count).filter_map(|_| client.get(QUEUES[*queue])).collect();
                for (delivery, end) in taken.iter().zip(ends) {
                    end_delivery(&mut client, delivery.tag, *end);
                }
                client.disconnect();
            }
            Action::Purge { queue } => {
                let admin = self.source.broker.admin();
                admin.purge_queue(V, QUEUES[*queue].as_bytes()).expect("it is there");
            }
            Action::Pause { queue } => {
                let admin = self.source.broker.admin();
                admin.pause_queue(V, QUEUES[*queue].as_bytes()).expect("it is there");
            }
            Action::Wait { ms } => {
                self.now_ms += ms;
                run_until(&self.source, self.now_ms);
            }
            Action::Checkpoint => self.source.checkpoint(),
            Action::Restart => self.source.restart(),
        }
        sync(&self.source);
        run_until(&self.source, self.now_ms);
    }
}

fn end_delivery(client: &mut Client, delivery_tag: u64, end: u8) {
    match end {
        0 => client.ack(delivery_tag),
        1 => client.tell(basic::Nack { delivery_tag, multiple: false, requeue: false }),
        2 => client.requeue(delivery_tag),
        _ => {}
    }
}

/// Does the same in a broker whatever it is, until nothing is left but the stream: what is seen on the way.
fn drain(world: &WorldOnDisk, mut now_ms: u64) -> Vec<String> {
    let mut seen = Vec::new();
    let mut client = enter(world);
    // What a recent history has comes to a queue that is bound to it.
    declare_with(&mut client, "new", true, &FieldTable::new());
    client.bind("new", "recent", "");
    for queue in QUEUES {
        world.broker.admin().resume_queue(V, queue.as_bytes()).expect("it is there");
    }
    client.send(persistent("all", "x", "one more"));
    for round in 0..12u8 {
        for (nth, queue) in QUEUES.into_iter().chain(["new"]).enumerate() {
            let mut got: Vec<Delivery> = std::iter::from_fn(|| client.get(queue)).collect();
            if queue == "dead" {
                // Of several queues whose messages die in the same tick, either may come first.
                got.sort_by_key(where_it_died);
            }
            for (index, delivery) in got.iter().enumerate() {
                let Delivery { exchange, routing_key, redelivered, properties, body, .. } =
                    delivery;
                seen.push(format!(
                    "{round} {queue} {exchange} {routing_key} {redelivered} {properties:?} {body:?}"
                ));
                // Most are ended at once, the others in each of the ways.
                let end = if round < 8 { (index + nth + usize::from(round)) % 3 } else { 0 };
                end_delivery(&mut client, delivery.tag, end as u8);
            }
        }
        now_ms += [300, 700, 5000, 100_000, 20_000_000, 200_000_000][usize::from(round) % 6];
        run_until(world, now_ms);
        sync(world);
    }
    client.disconnect();
    seen.extend(contents(world).into_values().flatten());
    seen
}

/// The queue that a dead letter has left last.
fn where_it_died(delivery: &Delivery) -> String {
    let headers = delivery.properties.headers.as_ref();
    let queue = headers.and_then(|headers| headers.get("x-last-death-queue"));
    format!("{queue:?}")
}

/// Lets the source go on as if nothing had been.
fn go_on(source: &WorldOnDisk) {
    assert!(source.broker.admin().start_vhost(V, 0).expect("it is there"));
}

fn check(actions: &[Action], from_checkpoint: bool, restart: bool) {
    let mut run = Run::new();
    actions.iter().for_each(|action| run.act(action));
    let mut target = WorldOnDisk::new();
    found_another(&target);
    run_until(&target, run.now_ms);
    let before = contents(&run.source);
    let pieces = pieces(&run.source);
    assert_same(&contents(&run.source), &before);
    import(&target, &pieces).expect("taken in");
    target.broker.admin().accept_vhost(V, None).expect("it has arrived");
    sync(&target);
    assert_same(&contents(&target), &before);
    go_on(&run.source);
    if restart {
        for world in [&mut run.source, &mut target] {
            match from_checkpoint {
                true => world.restart_from_checkpoint(),
                false => world.restart(),
            }
            run_until(world, run.now_ms);
        }
        assert_same(&contents(&target), &contents(&run.source));
    }
    let (source, target) = (drain(&run.source, run.now_ms), drain(&target, run.now_ms));
    for (of_source, of_target) in source.iter().zip(&target) {
        assert_eq!(of_source, of_target);
    }
    assert_eq!(source.len(), target.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn clients_cannot_tell_the_brokers_apart(actions in prop::collection::vec(action(), 1..40)) {
        check(&actions, false, false);
    }

    #[test]
    fn nor_after_a_restart_of_both(
        actions in prop::collection::vec(action(), 1..40),
        from_checkpoint: bool,
    ) {
        check(&actions, from_checkpoint, true);
    }
}

#[test]
fn nor_where_messages_of_two_queues_die_between_two_ticks() {
    let publish = |to, count, expires_ms| Action::Publish {
        to,
        count,
        bytes: 0,
        priority: 0,
        id: 0,
        expires_ms,
    };
    let actions = [
        publish(0, 1, Some(2276)),
        publish(0, 1, None),
        Action::Wait { ms: 1000 },
        Action::Delay { key: 0, delay_ms: 1 },
        publish(4, 9, None),
        publish(0, 17, None),
        publish(6, 1, Some(2001)),
    ];
    check(&actions, false, false);
}

#[test]
fn a_backlog_of_many_pages_keeps_its_order() {
    let mut source = WorldOnDisk::new();
    found(&source);
    let mut client = enter(&source);
    for nth in 0..5000 {
        let to = if nth % 3 == 0 { ("all", "") } else { ("", ["plain", "s"][nth % 2]) };
        client.send(persistent(to.0, to.1, &format!("{nth} {}", "x".repeat(nth % 1000))));
    }
    // Some come back to their places, and some in the middle are gone.
    let taken: Vec<Delivery> = (0..3000).filter_map(|_| client.get("plain")).collect();
    taken.iter().for_each(|one| end_delivery(&mut client, one.tag, (one.tag % 3 * 2) as u8));
    client.disconnect();
    sync(&source);
    let mut target = WorldOnDisk::new();
    found_another(&target);
    let pieces = pieces(&source);
    assert!(pieces.len() > 1);
    assert!(pieces.iter().all(|piece| piece.len() <= 1 << 20));
    import(&target, &pieces).expect("taken in");
    target.broker.admin().accept_vhost(V, None).expect("it has arrived");
    go_on(&source);
    let all = |world: &WorldOnDisk| {
        let mut client = enter(world);
        let got: Vec<Delivery> = std::iter::from_fn(|| client.get("plain")).collect();
        client.disconnect();
        sync(world);
        let print = |one: &Delivery| format!("{} {}", one.redelivered, one.text());
        got.iter().map(print).collect::<Vec<_>>()
    };
    assert_eq!(all(&source), all(&target));
    source.restart();
    target.restart_from_checkpoint();
    assert_eq!(all(&source), all(&target));
}

#[test]
fn a_message_larger_than_a_piece_comes_in_several() {
    let source = WorldOnDisk::new();
    found(&source);
    let mut client = enter(&source);
    let body = |nth: u8| vec![nth; 3 << 20];
    for nth in 0..2 {
        let message = Message::new("", "plain", body(nth));
        client.send(message.with_properties(|all| all.delivery_mode = Some(2)));
    }
    client.disconnect();
    let pieces = pieces(&source);
    assert!(pieces.len() >= 6 && pieces.iter().all(|piece| piece.len() <= 1 << 20));
    let target = WorldOnDisk::new();
    import(&target, &pieces).expect("taken in");
    target.broker.admin().accept_vhost(V, None).expect("it has arrived");
    let mut client = enter(&target);
    for nth in 0..2 {
        assert!(client.get("plain").expect("a message").body == body(nth));
    }
    client.disconnect();
}
