//! What is left of a move that does not come to its end.

use super::contents::{assert_same, contents};
use super::{V, enter, export, found, found_another, import, persistent, pieces, settings, sync};
use crate::support::{WorldOnDisk, declare_with};
use bytes::Bytes;
use courser_broker::admin::{Arrival, MESSAGES_MAX};
use courser_codec::FieldTable;

/// A vhost with something of everything in it.
fn source() -> WorldOnDisk {
    let source = WorldOnDisk::new();
    found(&source);
    let mut client = enter(&source);
    for nth in 0..30 {
        let headers = FieldTable::new().with("x-delay", nth * 1000).with("kind", nth % 5);
        let exchange = ["all", "later", "recent"][nth as usize % 3];
        client.send(persistent(exchange, "a.b", &nth.to_string()).headers(headers));
    }
    let delivery = client.get("counted").expect("a message");
    client.fail_on(delivery.tag);
    client.disconnect();
    sync(&source);
    source
}

/// What was in the broker before is as it was, and nothing of the vhost is there.
fn assert_no_trace(target: &mut WorldOnDisk, at: usize) {
    let admin = target.broker.admin();
    assert_eq!(admin.arrivals(), [], "{at}");
    assert!(target.broker.vhost(V).is_none(), "{at}");
    for queue in ["plain", "own"] {
        let messages =
            admin.peek("another", queue.as_bytes(), 0, MESSAGES_MAX, 100).expect("there");
        assert_eq!(messages.len(), 1, "{at}");
    }
    drop(admin);
    let found = target.found_by_restart();
    for key in found.definitions.keys() {
        assert!(!key.windows(V.len() + 2).any(|part| part == b"\x01\0v"), "{at}: {key:?}");
        assert_ne!(key, b"mv", "{at}");
    }
    let mut positions = 0;
    found.for_each_position(&mut |_| positions += 1);
    assert_eq!(positions, 2, "{at}");
}

#[test]
fn a_crash_at_any_point_leaves_no_trace() {
    let pieces = pieces(&source());
    let all: Vec<u8> = pieces.concat();
    for with_power in [true, false] {
        for at in (0..all.len()).step_by(101) {
            let mut target = WorldOnDisk::new();
            found_another(&target);
            sync(&target);
            let mut import = target.broker.admin().import_vhost(V, 0, &settings()).expect("begun");
            // In parts of their own, so that the log has something of each.
            for part in all[..at].chunks(997) {
                import.take(part).expect("taken in");
            }
            if at % 3 == 0 {
                sync(&target);
            }
            if at % 7 == 0 {
                target.checkpoint();
            }
            // It goes with the broker, and forgets nothing.
            std::mem::forget(import);
            match with_power {
                true => target.crash(|| {}),
                false => target.lose_power(),
            }
            assert_no_trace(&mut target, at);
        }
    }
}

#[test]
fn one_that_is_given_up_leaves_no_trace() {
    let pieces = pieces(&source());
    let all: Vec<u8> = pieces.concat();
    for at in (0..all.len()).step_by(509) {
        let mut target = WorldOnDisk::new();
        found_another(&target);
        let mut import = target.broker.admin().import_vhost(V, 0, &settings()).expect("begun");
        import.take(&all[..at]).expect("taken in");
        match at % 2 {
            0 => drop(import),
            _ => assert!(import.finish().is_err(), "it is not whole"),
        }
        assert_no_trace(&mut target, at);
    }
}

#[test]
fn it_arrives_as_it_is_wherever_its_pieces_are_cut() {
    let source = source();
    let mut client = enter(&source);
    for queue in ["plain", "counted"] {
        // Of one message, it is noted of two queues.
        let delivery = client.get(queue).expect("a message");
        client.fail_on(delivery.tag);
    }
    client.disconnect();
    sync(&source);
    let (before, all) = (contents(&source), pieces(&source).concat());
    for bytes in [1, 7, 1000] {
        let target = WorldOnDisk::new();
        found_another(&target);
        let parts: Vec<Bytes> = all.chunks(bytes).map(Bytes::copy_from_slice).collect();
        import(&target, &parts).expect("taken in");
        target.broker.admin().accept_vhost(V, None).expect("it has arrived");
        sync(&target);
        assert_same(&contents(&target), &before);
    }
}

#[test]
fn one_that_has_arrived_stays_hidden_through_restarts_until_it_is_accepted() {
    let source = source();
    let before = contents(&source);
    let pieces = pieces(&source);
    let mut target = WorldOnDisk::new();
    found_another(&target);
    import(&target, &pieces).expect("taken in");
    sync(&target);
    for round in 0..3 {
        let arrival = Arrival { name: V.to_owned(), is_whole: true };
        assert_eq!(target.broker.admin().arrivals(), [arrival], "{round}");
        assert!(target.broker.vhost(V).is_none());
        let refused = target.broker.define_vhost(V, Default::default()).err().expect("it arrives");
        assert!(refused.explanation.contains("moved here"), "{refused}");
        match round {
            0 => target.lose_power(),
            1 => target.restart_from_checkpoint(),
            _ => {}
        }
    }
    // Its timers wait as well, and all is as it was.
    target.broker.tick(super::START_MS + 10_000_000);
    target.broker.set_time(super::START_MS);
    target.broker.admin().accept_vhost(V, None).expect("it has arrived");
    let mut after = contents(&target);
    // That it came back is noted in the log where that is counted, and nowhere else.
    assert_eq!(after.remove("counted"), before.get("counted").cloned());
    assert_eq!(after.len() + 1, before.len());
    for (name, lines) in after {
        assert_eq!(Some(&lines), before.get(&name), "{name}");
    }
    target.lose_power();
    assert!(target.broker.vhost(V).is_none() || target.broker.admin().arrivals().is_empty());
}

#[test]
fn one_that_has_arrived_can_be_forgotten() {
    let pieces = pieces(&source());
    let mut target = WorldOnDisk::new();
    found_another(&target);
    import(&target, &pieces).expect("taken in");
    target.checkpoint();
    assert!(target.broker.admin().forget_arrival(V, 0).expect("nothing fails"));
    assert!(!target.broker.admin().forget_arrival(V, 0).expect("nothing fails"));
    assert_no_trace(&mut target, 0);
    // And can come again.
    import(&target, &pieces).expect("taken in");
    target.broker.admin().accept_vhost(V, None).expect("it has arrived");
}

#[test]
fn a_source_that_crashes_has_everything_and_goes_on() {
    let mut source = source();
    let before = contents(&source);
    let mut export = export(&source);
    assert!(export.next_piece().expect("it can be read").is_some());
    drop(export);
    source.restart();
    source.broker.set_time(super::START_MS);
    assert_eq!(contents(&source).keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    let mut client = enter(&source);
    declare_with(&mut client, "new", true, &FieldTable::new());
    let others = |all: &super::contents::Contents| all.get("plain").cloned();
    assert_eq!(others(&contents(&source)), others(&before));
    client.disconnect();
}

#[test]
fn a_disk_that_is_full_ends_the_import_and_keeps_nothing() {
    let pieces = pieces(&source());
    let target = WorldOnDisk::new();
    found_another(&target);
    sync(&target);
    let mut import = target.broker.admin().import_vhost(V, 0, &settings()).expect("begun");
    import.take(&pieces[0]).expect("there is room");
    target.fill_disk();
    drop(import);
    assert_eq!(target.broker.admin().arrivals(), []);
    // The rest of the segment takes some more.
    let begin = || {
        let mut import = target.broker.admin().import_vhost(V, 0, &settings())?;
        pieces.iter().try_for_each(|piece| import.take(piece))
    };
    let fault = (0..200).find_map(|_| begin().err()).expect("no room");
    assert_eq!(fault.code, 506);
    assert_eq!(target.broker.admin().arrivals(), []);
    assert!(target.broker.vhost(V).is_none());
}

#[test]
fn what_comes_late_of_an_earlier_move_does_nothing_to_what_arrives_by_a_later_one() {
    let (source, target) = (WorldOnDisk::new(), WorldOnDisk::new());
    found(&source);
    let all = pieces(&source);
    let admin = target.broker.admin();
    let (first, rest) = all.split_first().expect("there is something in it");
    for ends in [false, true] {
        let mut earlier = admin.import_vhost(V, 1, &settings()).expect("begun");
        earlier.take(first).expect("taken in");
        assert!(admin.forget_arrival(V, 1).expect("given up"));
        let mut later = admin.import_vhost(V, 2, &settings()).expect("begun");
        later.take(first).expect("taken in");
        assert!(!admin.forget_arrival(V, 1).expect("nothing is meant"));
        let refused = rest.iter().try_for_each(|piece| earlier.take(piece));
        assert!(rest.is_empty() || refused.is_err());
        match ends {
            true => drop(earlier.finish().expect_err("it was given up")),
            false => drop(earlier),
        }
        let arrival = |is_whole| vec![Arrival { name: V.into(), is_whole }];
        assert_eq!(admin.arrivals(), arrival(false));
        rest.iter().for_each(|piece| later.take(piece).expect("taken in"));
        later.finish().expect("it is whole");
        assert_eq!(admin.arrivals(), arrival(true));
        assert!(admin.forget_arrival(V, 2).expect("given up"));
    }
}

#[test]
fn what_comes_late_of_an_earlier_move_forgets_no_arrival_after_a_restart() {
    let (source, mut target) = (WorldOnDisk::new(), WorldOnDisk::new());
    found(&source);
    let all = pieces(&source);
    let admin = target.broker.admin();
    let mut import = admin.import_vhost(V, 7, &settings()).expect("begun");
    all.iter().for_each(|piece| import.take(piece).expect("taken in"));
    import.finish().expect("it is whole");
    drop(admin);
    sync(&target);
    for round in 0..3 {
        match round {
            0 => target.lose_power(),
            1 => target.restart_from_checkpoint(),
            _ => target.restart(),
        }
        let admin = target.broker.admin();
        assert!(!admin.forget_arrival(V, 6).expect("nothing is meant"), "{round}");
        let arrival = Arrival { name: V.to_owned(), is_whole: true };
        assert_eq!(admin.arrivals(), [arrival], "{round}");
    }
    assert!(target.broker.admin().forget_arrival(V, 7).expect("given up"));
    assert_eq!(target.broker.admin().arrivals(), []);
}
