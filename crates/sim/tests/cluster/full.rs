//! Nodes whose disks are full.

use crate::{elect, followers, node::Serving, world::World};
use courser_auth::{PasswordHash, Permission, User};
use courser_broker::admin::NewQueue;
use courser_broker::{ExchangeKind, ExchangeSettings};
use courser_codec::{FieldTable, Method, queue};
use courser_sim::{TOPOLOGY, TX, short};

#[test]
fn disks_that_fill_together_have_room_again_when_all_is_consumed() {
    for seed in 20..24 {
        let mut world = World::new(seed, 3);
        let leader = elect(&mut world);
        (0..10).for_each(|_| world.living_round());
        for node in &world.nodes {
            // Some segments, beside what is kept ready.
            node.disk.set_capacity(node.disk.used_bytes() + (200 << 10));
        }
        for _ in 0..200 {
            world.publish(leader);
            world.living_round();
        }
        assert!(!world.serving(leader).store.has_room(), "history {seed}");
        for _ in 0..600 {
            world.take(leader);
            world.living_round();
        }
        assert!(world.serving(leader).store.has_room(), "history {seed}: nothing was freed");
        let before = world.model.confirmed();
        (0..10).for_each(|_| {
            world.publish(leader);
            world.living_round();
        });
        assert!(world.model.confirmed() > before, "history {seed}: nothing is confirmed any more");
    }
}

#[test]
fn a_node_without_room_for_the_first_entry_of_a_leader_does_not_lead() {
    let mut world = World::new(30, 3);
    let leader = elect(&mut world);
    (0..10).for_each(|_| world.quiet_round());
    (0..3).for_each(|at| world.fill_disk(at));
    // To the last byte of the last segment.
    for number in 0..600 {
        if world.leader() == Some(leader) {
            let _ = world.serving(leader).declare(&format!("{number:0>200}"));
        }
        world.quiet_round();
    }
    for _ in 0..40 {
        if let Some(leader) = world.leader() {
            world.crash(leader, false);
        }
        (0..30).for_each(|_| world.quiet_round());
        (0..3).for_each(|at| world.start(at));
    }
    world.settle();
    let leader = elect(&mut world);
    world.serving(leader).declare("there is room").expect("there is room");
}

#[test]
fn a_checkpoint_without_room_stands_for_no_entry_that_is_not_applied() {
    let mut world = World::new(31, 3);
    let leader = elect(&mut world);
    let full = (leader + 1) % 3;
    (0..10).for_each(|_| world.quiet_round());
    world.fill_disk(full);
    for _ in 0..200 {
        if !world.replica(full).has_room() {
            break;
        }
        world.publish(leader);
        world.quiet_round();
    }
    assert!(!world.replica(full).has_room());
    for _ in 0..5 {
        world.publish(leader);
        world.round_without_disk(full);
    }
    let replica = world.replica(full);
    let (committed, applied) = (replica.committed(), replica.applicable());
    assert!(applied < committed, "all {committed} are applied");

    world.checkpoint(full);
    assert!(world.replica(full).last_in_checkpoint().index <= applied);
    world.crash(leader, false);
    for _ in 0..60 {
        // It wants to lead, and reads what it has not applied.
        world.turn(full, true);
    }
    world.settle();
    assert!(world.replica(full).applicable() > committed);
}

/// Makes something of each kind that can be removed. Returns how many queues.
fn make_what_is_removed(serving: &mut Serving) -> usize {
    let queues = ["deleted", "purged"];
    queues.iter().for_each(|name| serving.declare(name).expect("there is room"));
    let messages = [(1, 20), (2, 20), (3, 20)];
    serving.client.publish(TX, "", "purged", &messages, true).expect("a good publish");
    let commit = Method::TxCommit(Default::default());
    serving.client.request(TX, &commit).expect("there is room");
    let admin = serving.broker.admin();
    let exchange = ExchangeSettings {
        kind: ExchangeKind::Fanout,
        durable: true,
        auto_delete: false,
        internal: false,
        arguments: FieldTable::new(),
    };
    admin.declare_exchange("/", "deleted", &exchange).expect("there is room");
    for user in ["deleted", "kept"] {
        admin.create_user(User::new(user, PasswordHash::none())).expect("there is room");
        admin.set_permission(user, "/", Permission::all()).expect("there is room");
    }
    admin.change_vhost("deleted", |_| {}).expect("there is room");
    let queue = NewQueue { durable: true, ..NewQueue::default() };
    admin.declare_queue("deleted", "in it", queue).expect("there is room");
    assert_eq!(left(serving), LEFT);
    queues.len()
}

/// Removes all of it, as far as the leader knows.
fn remove(serving: &mut Serving) {
    let purge = queue::Purge { queue: short("purged"), nowait: false };
    serving.client.request(TOPOLOGY, &Method::QueuePurge(purge)).expect("it is gathered");
    serving.delete("deleted").expect("it is gathered");
    let admin = serving.broker.admin();
    admin.delete_exchange("/", b"deleted", false).expect("it is gathered");
    admin.delete_user("deleted").expect("it is gathered");
    admin.clear_permission("kept", "/").expect("it is gathered");
    admin.delete_vhost("deleted").expect("it is gathered");
}

/// All of what there is to remove.
const LEFT: [&str; 6] = ["queue", "messages", "exchange", "user", "permission", "vhost"];

/// What of it is there.
fn left(serving: &Serving) -> Vec<&'static str> {
    let vhost = serving.broker.vhost("/").expect("always there");
    let accounts = serving.broker.admin().accounts();
    let is_left = [
        serving.has_queue("deleted"),
        vhost.queue(b"purged").expect("it is not deleted").status().ready > 0,
        vhost.exchange(b"deleted").is_some(),
        accounts.user("deleted").is_some(),
        accounts.permission("kept", "/").is_some(),
        serving.broker.vhost("deleted").is_some(),
    ];
    LEFT.into_iter().zip(is_left).filter_map(|(what, is_left)| is_left.then_some(what)).collect()
}

/// A leader whose followers have no room, and which has gathered as much as messages may.
fn led_without_room(seed: u64) -> (World, usize) {
    let mut world = World::new(seed, 3);
    let leader = elect(&mut world);
    let declared = make_what_is_removed(world.serving(leader));
    for _ in 0..10 {
        world.publish(leader);
        world.quiet_round();
    }
    assert_eq!(world.answers(leader).len(), 1 + declared);
    followers(leader).for_each(|at| world.fill_disk(at));
    for _ in 0..150 {
        world.publish(leader);
        world.quiet_round();
    }
    assert!(!world.serving(leader).store.has_room());
    (world, leader)
}

#[test]
fn a_leader_without_room_answers_nothing_that_the_next_one_does_not_know() {
    let (mut world, first) = led_without_room(9);
    let settled = world.model.settled();
    (0..3).for_each(|_| world.take(first));
    remove(world.serving(first));
    (0..5).for_each(|_| world.quiet_round());
    assert!(world.answers(first).is_empty(), "no majority knows what is removed");
    assert_eq!(world.model.settled(), settled, "no majority knows what is acknowledged");

    followers(first).for_each(|at| world.nodes[at].disk.set_capacity(u64::MAX));
    world.settle();
    (0..30).for_each(|_| world.quiet_round());
    assert_eq!(world.leader(), Some(first), "it has waited");
    assert_eq!(world.answers(first), ["queue.purge-ok", "queue.delete-ok"]);
    assert_eq!(world.model.settled(), settled + 3);
    world.crash(first, true);
    let second = elect(&mut world);
    assert_eq!(left(world.serving(second)), Vec::<&str>::new());
}

#[test]
fn a_leader_that_can_not_gather_what_was_done_gives_up_the_lead_and_what_was_not_committed() {
    let (mut world, first) = led_without_room(10);
    let term = world.leader_term();
    let mut name = String::new();
    for number in 0.. {
        assert!(number < 1000, "nothing limits what is gathered");
        name = format!("{number:0>200}");
        if world.serving(first).declare(&name).is_err() {
            break;
        }
    }
    world.take(first);
    assert_eq!(world.leader(), None, "its broker has what the log has not");
    followers(first).for_each(|at| world.nodes[at].disk.set_capacity(u64::MAX));
    world.settle();
    assert!(world.leader_term() > term);
    let next = elect(&mut world);
    assert!(!world.serving(next).has_queue(&name));
    world.serving(next).declare(&name).expect("there is room");
}
