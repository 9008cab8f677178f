//! What waits in an `x-delayed-message` exchange, after a restart or a loss of power.

use crate::delayed::{
    DAYS_MS, START_MS, declare_as, delayed, delayed_type, messages_delayed, persistent, run_until,
    with_exchange,
};
use crate::support::{Heard, Message, WorldOnDisk, short};
use courser_codec::{exchange, tx};

#[test]
fn a_restart_keeps_what_is_persistent_and_its_time() {
    for from_checkpoint in [false, true] {
        let mut world = WorldOnDisk::new();
        let mut client = with_exchange(&world);
        client.confirm_select();
        let times = [10u64, 300, 100_000, DAYS_MS];
        for time in times {
            client.send(persistent(delayed(&time.to_string(), time as i64)));
        }
        client.send(delayed("transient", 300));
        run_until(&world, START_MS + 50);
        assert_eq!(client.pop_all("q"), ["10"]);
        client.disconnect();
        match from_checkpoint {
            true => world.restart_from_checkpoint(),
            false => world.restart(),
        }
        assert_eq!(messages_delayed(&world), 3);
        let mut client = world.connect();
        for time in &times[1..] {
            run_until(&world, START_MS + time - 1);
            assert_eq!(client.pop("q"), None, "{time}");
            run_until(&world, START_MS + time);
            assert_eq!(client.pop_all("q"), [time.to_string()]);
        }
    }
}

#[test]
fn a_confirmed_message_waits_on_after_a_power_cut() {
    let mut world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    client.confirm_select();
    client.send(persistent(delayed("confirmed", 1000)));
    assert_eq!(client.heard(), [], "nothing is confirmed before it is durable");
    world.sync();
    assert!(matches!(&client.heard()[..], [Heard::Confirm { through: 1, .. }]));
    world.lose_power();
    drop(client);
    assert_eq!(messages_delayed(&world), 1);
    run_until(&world, START_MS + 1000);
    assert_eq!(world.connect().pop_all("q"), ["confirmed"]);
}

#[test]
fn a_commit_begins_to_wait_as_a_whole_even_if_the_power_goes() {
    let mut world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    client.call(tx::Select {});
    client.send(persistent(delayed("waits", 1000)));
    client.send(persistent(Message::new("", "q", "arrives")));
    client.tell(tx::Commit {});
    world.sync();
    assert_eq!(client.heard(), [Heard::Done("tx.commit-ok")]);
    world.lose_power();
    drop(client);
    let mut client = world.connect();
    assert_eq!(client.pop_all("q"), ["arrives"]);
    run_until(&world, START_MS + 1000);
    assert_eq!(client.pop_all("q"), ["waits"]);
}

#[test]
fn what_became_due_while_the_broker_was_down_arrives_at_the_start() {
    let mut world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    for nth in 0..500 {
        client.send(persistent(delayed(&nth.to_string(), 1000 + nth)));
    }
    client.disconnect();
    world.restart();
    run_until(&world, START_MS + DAYS_MS);
    let expected: Vec<String> = (0..500).map(|nth| nth.to_string()).collect();
    assert_eq!(world.connect().pop_all("q"), expected);
}

#[test]
fn what_has_arrived_does_not_wait_again_after_a_restart() {
    for from_checkpoint in [false, true] {
        let mut world = WorldOnDisk::new();
        let mut client = with_exchange(&world);
        client.send(persistent(delayed("once", 100)));
        run_until(&world, START_MS + 100);
        client.disconnect();
        match from_checkpoint {
            true => world.restart_from_checkpoint(),
            false => world.restart(),
        }
        assert_eq!(messages_delayed(&world), 0);
        run_until(&world, START_MS + 200);
        assert_eq!(world.connect().pop_all("q"), ["once"]);
    }
}

#[test]
fn what_a_deleted_exchange_had_does_not_come_back() {
    let mut world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    client.send(persistent(delayed("gone", 100)));
    client.call(exchange::Delete { exchange: short("x"), ..Default::default() });
    declare_as(&mut client, delayed_type("direct"), true);
    client.bind("q", "x", "k");
    client.disconnect();
    world.restart();
    run_until(&world, START_MS + DAYS_MS);
    assert_eq!(world.connect().pop("q"), None);
}
