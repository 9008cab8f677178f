//! How much a stream keeps, and for how long.

use crate::streams::{declare, expected, fill, filled, messages, read, reader};
use crate::support::{World, WorldOnDisk, on_a_thread};
use courser_codec::FieldTable;
use courser_journal::testing::Call;
use courser_store::StoreError;

#[test]
fn the_oldest_leave_when_there_are_too_many_bytes() {
    let world = World::new();
    let mut client = world.connect();
    let arguments = FieldTable::new().with("x-max-length-bytes", 100_000);
    declare(&mut client, "s", arguments);
    let mut behind = reader(&world, 1);
    read(&mut behind, "s", "first");
    fill(&mut client, 0..1);
    assert_eq!(messages(&mut behind), expected(0..1));
    for number in 1..5000_usize {
        fill(&mut client, number..number + 1);
    }
    let (left, ..) = world.counts("s");
    // A message is 37 to 40 bytes here, a page a sixteenth of the limit.
    assert!((2300..2700).contains(&left), "{left}");
    let mut first = reader(&world, 0xffff);
    read(&mut first, "s", 0);
    assert_eq!(messages(&mut first), expected(5000 - left..5000));
    behind.ack(1);
    assert_eq!(messages(&mut behind), expected(5000 - left..5001 - left));
}

#[test]
fn the_oldest_leave_when_they_are_too_old() {
    let world = World::new();
    world.broker.set_time(1_000_000);
    let mut client = world.connect();
    declare(&mut client, "s", FieldTable::new().with("x-max-age", "1h"));
    for minute in 0..120_u64 {
        world.broker.set_time(1_000_000 + minute * 60_000);
        fill(&mut client, minute as usize..minute as usize + 1);
    }
    let (left, ..) = world.counts("s");
    assert!((60..70).contains(&left), "{left}");
    // Without a publish too, and down to nothing; offsets go on.
    let mut now_ms = 1_000_000 + 120 * 60_000;
    while world.counts("s").0 > 0 {
        now_ms = world.broker.tick(now_ms).expect("a timer is armed").max(now_ms + 1);
        assert!(now_ms < 1_000_000 + 190 * 60_000, "{:?}", world.counts("s"));
    }
    assert!(now_ms > 1_000_000 + 179 * 60_000);
    fill(&mut client, 120..121);
    let mut other = reader(&world, 10);
    read(&mut other, "s", "first");
    assert_eq!(messages(&mut other), expected(120..121));
}

#[test]
fn messages_leave_in_time_though_one_came_while_the_clock_was_ahead() {
    const YEAR_MS: u64 = 365 * 24 * 3_600_000;
    for restarts in [false, true] {
        let mut world = WorldOnDisk::new();
        world.broker.set_time(1_000_000);
        let mut client = world.connect();
        declare(&mut client, "s", FieldTable::new().with("x-max-age", "1h"));
        world.tick_all(1_000_000 + YEAR_MS);
        fill(&mut client, 0..1);
        world.tick_all(1_000_000);
        fill(&mut client, 1..10);
        if restarts {
            client.disconnect();
            world.restart();
        }
        world.tick_all(1_000_000 + 3_500_000);
        assert_eq!(world.counts("s").0, 10);
        // Without a publish, too.
        for minute in 60..70 {
            world.tick_all(1_000_000 + minute * 60_000);
        }
        assert_eq!(world.counts("s").0, 0, "restarts: {restarts}");
    }
}

#[test]
fn limits_change_in_use() {
    let world = World::new();
    world.broker.set_time(1_000_000);
    let mut client = filled(&world, 5000);
    world.give_policy("s", FieldTable::new().with("max-length-bytes", 100_000));
    fill(&mut client, 5000..5001);
    let (left, ..) = world.counts("s");
    assert!((1900..4000).contains(&left), "{left}");
    world.give_policy("s", FieldTable::new().with("max-age", "1m"));
    world.broker.set_time(1_030_000);
    fill(&mut client, 5001..5002);
    world.broker.tick(1_070_000);
    assert_eq!(world.counts("s").0, 1);
}

#[test]
fn messages_become_no_older_than_a_policy_says_now() {
    let world = World::new();
    world.broker.set_time(1_000_000);
    filled(&world, 10);
    world.give_policy("s", FieldTable::new().with("max-age", "1D"));
    world.give_policy("s", FieldTable::new().with("max-age", "16s"));
    world.broker.tick(1_001_000);
    assert_eq!(world.counts("s").0, 10);
    for second in 2..20 {
        world.broker.tick(1_000_000 + second * 1000);
    }
    assert_eq!(world.counts("s").0, 0);
}

#[test]
fn a_great_deal_that_is_too_old_leaves_piece_by_piece() {
    let world = World::new();
    world.broker.set_time(1_000_000);
    let mut client = world.connect();
    declare(&mut client, "s", FieldTable::new().with("x-max-age", "1m"));
    fill(&mut client, 0..100_000);
    let now_ms = 2_000_000;
    assert_eq!(world.broker.tick(now_ms), Some(now_ms + 1));
    assert!((1..100_000).contains(&world.counts("s").0));
    world.broker.tick(now_ms + 1);
    assert_eq!(world.counts("s").0, 0);
}

#[test]
fn pages_have_some_messages_however_small_a_segment_is_asked_for() {
    const MESSAGES: usize = 10_000;
    for segment_bytes in [0, 1, 100] {
        let world = World::new();
        let mut client = world.connect();
        let used = || world.broker.admin().memory_uses().places as usize;
        let asked = FieldTable::new().with("x-stream-max-segment-size-bytes", segment_bytes);
        declare(&mut client, "s", asked);
        let before = used();
        fill(&mut client, 0..MESSAGES);
        let taken = used() - before;
        // In memory, a place is 16 bytes; a page of its own would make it more than a hundred.
        assert!(taken < 20 * MESSAGES, "{segment_bytes}: {taken}");
    }
}

#[test]
fn what_leaves_a_stream_while_it_is_read_holds_up_no_reader() {
    let world = WorldOnDisk::new();
    let (mut client, mut behind) = (world.connect(), reader(&world, 1));
    declare(&mut client, "s", FieldTable::new().with("x-max-length-bytes", 20_000));
    fill(&mut client, 0..1);
    world.flush();
    world.store().before_next_read(move || {
        on_a_thread(|| (1..2000).for_each(|number| fill(&mut client, number..number + 1)));
    });
    let mut is_first = true;
    world.store().set_faults(move |call| {
        let fails = call == Call::Read && std::mem::take(&mut is_first);
        fails.then(|| StoreError::Unread("another message is there".to_owned()))
    });
    read(&mut behind, "s", "first");
    world.flush();
    assert_eq!(messages(&mut behind), []);
    let left = world.counts("s").0;
    assert!((1..1000).contains(&left), "{left}");
    world.flush();
    assert_eq!(messages(&mut behind), expected(2000 - left..2001 - left));
}
