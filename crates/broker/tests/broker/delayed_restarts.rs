//! What waits in an `x-delayed-message` exchange, after a restart or a loss of power.

use crate::delayed::{
    DAYS_MS, START_MS, declare_as, delayed, delayed_type, messages_delayed, persistent, run_until,
    with_exchange,
};
use crate::support::{Heard, Message, Step, WorldOnDisk, allocated_bytes, short};
use courser_codec::{exchange, tx};
use courser_store::{ShardId, ShardState};
use std::io::{self, Write};

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

#[test]
fn what_is_in_the_log_for_want_of_memory_keeps_its_place_and_survives_no_restart() {
    for restarts in [false, true] {
        let mut world = WorldOnDisk::without_memory();
        let mut client = with_exchange(&world);
        for nth in 0..3 {
            client.send(persistent(delayed(&format!("persistent {nth}"), 100_000)));
            client.send(delayed(&format!("transient {nth}"), 100_000));
        }
        assert_eq!(messages_delayed(&world), 6);
        world.checkpoint();
        if restarts {
            client.disconnect();
            world.restart_from_checkpoint();
            client = world.connect();
        }
        run_until(&world, START_MS + 100_000);
        let kept = |nth: usize| ["persistent", "transient"].map(|kind| format!("{kind} {nth}"));
        let kept = (0..3).flat_map(kept).filter(|body| !restarts || body.starts_with("persistent"));
        assert_eq!(client.pop_all("q"), kept.collect::<Vec<_>>());
    }
}

/// Notes how much memory the thread has had at most when something was written.
struct Measured {
    bytes_before: i64,
    most_bytes: i64,
}

impl Write for Measured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.most_bytes = self.most_bytes.max(allocated_bytes() - self.bytes_before);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_checkpoint_copies_no_more_of_what_waits_the_more_that_is() {
    const PORTION: usize = 5000;
    let world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    let message = persistent(delayed("x", DAYS_MS as i64));
    let mut most_bytes = Vec::new();
    for portions in [10, 40] {
        for _ in 0..portions {
            client.read(&vec![Step::Publish(1, message.clone()); PORTION]);
            world.flush();
        }
        let state = world.broker.state_of(ShardId::HOME).expect("it is open");
        let start = state.start();
        let mut out = Measured { bytes_before: allocated_bytes(), most_bytes: 0 };
        state.write(start, &mut out).expect("it is written");
        most_bytes.push(out.most_bytes);
    }
    assert_eq!(messages_delayed(&world), 50 * PORTION);
    let more = most_bytes[1] - most_bytes[0];
    assert!(more < 32 << 10, "{more} bytes more for 200,000 messages");
}
