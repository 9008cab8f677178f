//! Shards of one broker: opened, filled, closed, opened again and removed one by one.

use courser_broker::{Broker, Limits, ShardFault, names_in_log, shards_in_log};
use courser_journal::testing::{FakeDisk, Faults};
use courser_journal::{JournalShards, Options, tools};
use courser_sim::{Client, PLAIN};
use courser_store::{MemoryGauge, OpenShard, Opening, ShardId, Shards};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const OTHER: ShardId = ShardId(1);
const VHOST: &str = "elsewhere";

/// A broker on a fake disk, and the shards below it.
struct World {
    shards: JournalShards,
    broker: Arc<Broker>,
    home: Arc<dyn OpenShard>,
}

fn shards(disk: &FakeDisk, gauge: &Arc<MemoryGauge>) -> JournalShards {
    let options = Options { segment_bytes: 64 << 10, threads: false, ..Options::default() };
    let (disk, gauge) = (Arc::new(disk.clone()), Arc::clone(gauge));
    JournalShards::new(Path::new("data"), options, disk, gauge, u64::MAX)
}

impl World {
    fn start(disk: &FakeDisk) -> Self {
        let gauge = Arc::new(MemoryGauge::default());
        let shards = shards(disk, &gauge);
        let opened = shards.open(ShardId::HOME, Opening::MakeIfMissing, &mut |_| {});
        let opened = opened.expect("a good journal");
        let broker = Broker::new(opened.shard.store(), gauge, Limits::default(), 7);
        broker.restore(opened.recovered).expect("what was written can be read");
        World { shards, broker, home: opened.shard }
    }

    /// Opens the other shard. Returns it, and how many messages were in it.
    fn open(&self, opening: Opening) -> (Arc<dyn OpenShard>, usize) {
        let opened = self.shards.open(OTHER, opening, &mut |_| {}).expect("a good journal");
        let store = opened.shard.store();
        let restored = self.broker.open_shard(OTHER, store, opened.recovered);
        (opened.shard, restored.expect("what was written can be read").messages)
    }

    /// Closes the other shard, whose clients have gone.
    fn close(&self, shard: Arc<dyn OpenShard>) {
        let state = self.broker.state_of(OTHER).expect("open");
        shard.checkpoint(&state).expect("there is room");
        self.broker.close_shard(OTHER).expect("open");
        assert!(shard.checkpoint(&state).is_err(), "a checkpoint without its vhosts");
        shard.close().expect("nothing fails");
    }

    fn ready(&self, vhost: &str) -> usize {
        let vhost = self.broker.vhost(vhost).expect("a vhost of this name");
        vhost.queue(b"q").expect("declared").status().ready
    }
}

fn publish(client: &mut Client, ids: std::ops::RangeInclusive<u64>) {
    for id in ids {
        client.publish(PLAIN, "", "q", &[(id, 100)], true).expect("there is room");
    }
}

#[test]
fn a_shard_is_opened_filled_closed_opened_again_and_removed_while_another_serves() {
    let disk = FakeDisk::new(1);
    let world = World::start(&disk);
    let mut at_home = Client::new(&world.broker);
    at_home.declare("q", None).expect("declared");
    publish(&mut at_home, 1..=3);

    let (shard, messages) = world.open(Opening::MakeIfMissing);
    assert_eq!(messages, 0);
    world.broker.add_vhost_on(VHOST, OTHER).expect("a new vhost");
    let mut elsewhere = Client::in_vhost(&world.broker, VHOST);
    elsewhere.declare("q", None).expect("declared");
    publish(&mut elsewhere, 11..=15);
    publish(&mut at_home, 4..=4);
    drop(elsewhere);
    world.close(shard);

    assert!(world.broker.vhost(VHOST).is_none());
    publish(&mut at_home, 5..=5);
    let (shard, messages) = world.open(Opening::Existing);
    assert_eq!((messages, world.ready(VHOST), world.ready("/")), (5, 5, 5));
    let mut elsewhere = Client::in_vhost(&world.broker, VHOST);
    assert_eq!(elsewhere.take_all("q").expect("declared"), [11, 12, 13, 14, 15]);
    assert_eq!(world.ready("/"), 5);
    assert!(world.shards.remove(OTHER).is_err(), "it is in use");
    drop(elsewhere);
    world.close(shard);

    world.broker.forget_shard(OTHER).expect("closed");
    world.shards.remove(OTHER).expect("closed");
    assert!(world.shards.open(OTHER, Opening::Existing, &mut |_| {}).is_err());
    publish(&mut at_home, 6..=6);
    assert_eq!(at_home.take_all("q").expect("declared"), [1, 2, 3, 4, 5, 6]);
    assert!(world.broker.shards_in_use().is_empty());
}

#[test]
fn vhosts_on_another_shard_are_there_after_a_restart_from_a_checkpoint_or_the_log() {
    for checkpoint in [false, true] {
        let disk = FakeDisk::new(2);
        let world = World::start(&disk);
        let (shard, _) = world.open(Opening::MakeIfMissing);
        world.broker.add_vhost_on(VHOST, OTHER).expect("a new vhost");
        let limits = courser_broker::VhostLimits { queues_max: Some(3), connections_max: None };
        world.broker.define_vhost(VHOST, limits).expect("limits");
        let mut client = Client::in_vhost(&world.broker, VHOST);
        client.declare("q", None).expect("declared");
        publish(&mut client, 1..=2);
        drop(client);
        if checkpoint {
            let state = world.broker.state_of(ShardId::HOME).expect("always open");
            world.home.checkpoint(&state).expect("there is room");
            let state = world.broker.state_of(OTHER).expect("open");
            shard.checkpoint(&state).expect("there is room");
        }
        shard.close().expect("nothing fails");
        world.home.close().expect("nothing fails");
        drop((world, shard));

        let world = World::start(&disk);
        assert_eq!(world.broker.shards_in_use().into_iter().collect::<Vec<_>>(), [OTHER]);
        assert!(world.broker.vhost(VHOST).is_none(), "its shard is not open");
        let placed = world.broker.add_vhost_on(VHOST, ShardId::HOME);
        assert!(matches!(placed, Err(ShardFault::VhostExists(_))));
        let (_shard, messages) = world.open(Opening::Existing);
        assert_eq!((messages, world.ready(VHOST)), (2, 2));
        let vhost = world.broker.vhost(VHOST).expect("placed");
        assert_eq!(vhost.limits(), Some(limits));
    }
}

#[test]
fn where_all_vhosts_share_a_log_none_gets_one_of_its_own() {
    let disk = FakeDisk::new(5);
    let world = World::start(&disk);
    world.broker.stay_at_home().expect("all are");
    let refused = world.broker.add_vhost_on(VHOST, OTHER).map(drop);
    let Err(error @ ShardFault::OnlyHome(_)) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("vhost 'elsewhere'"), "{error}");
    let opened = world.shards.open(OTHER, Opening::MakeIfMissing, &mut |_| {}).expect("a journal");
    let refused = world.broker.open_shard(OTHER, opened.shard.store(), opened.recovered);
    assert!(matches!(refused, Err(ShardFault::OnlyHome(_))), "{refused:?}");
    world.broker.add_vhost_on(VHOST, ShardId::HOME).expect("a vhost like the others");
    drop((world, opened.shard));

    let world = World::start(&FakeDisk::new(6));
    let (_shard, _) = world.open(Opening::MakeIfMissing);
    world.broker.add_vhost_on(VHOST, OTHER).expect("a new vhost");
    let refused = world.broker.stay_at_home();
    assert!(matches!(refused, Err(ShardFault::OnlyHome(_))), "{refused:?}");
}

#[test]
fn a_shard_whose_folder_is_lost_is_not_taken_for_an_empty_one() {
    let world = World::start(&FakeDisk::new(3));
    let opened = world.shards.open(OTHER, Opening::Existing, &mut |_| {});
    let error = opened.err().expect("it was never made").to_string();
    assert!(error.contains("journal-1") && error.contains("no journal here"), "{error}");
}

#[test]
fn a_shard_that_is_removed_when_the_power_fails_is_whole_or_gone() {
    let (mut whole, mut gone) = (0, 0);
    for after in 0..40 {
        let disk = FakeDisk::new(after);
        let world = World::start(&disk);
        let (shard, _) = world.open(Opening::MakeIfMissing);
        world.broker.add_vhost_on(VHOST, OTHER).expect("a new vhost");
        let mut client = Client::in_vhost(&world.broker, VHOST);
        client.declare("q", None).expect("declared");
        publish(&mut client, 1..=2);
        drop(client);
        world.close(shard);
        disk.set_faults(Faults { power_off_after: Some(after), ..Faults::default() });
        let removed = world.shards.remove(OTHER).is_ok();
        disk.lose_power();
        drop(world);
        disk.set_faults(Faults::default());

        let gauge = Arc::new(MemoryGauge::default());
        let shards = shards(&disk, &gauge);
        let opened = shards.open(OTHER, Opening::MakeIfMissing, &mut |_| {});
        let recovered = opened.expect("no remains of a shard are damage").recovered;
        match recovered.queues.len() {
            0 => gone += 1,
            _ => {
                assert!(!removed, "it has come back");
                let queue = recovered.queues.values().next().expect("there is one");
                assert_eq!(queue.positions().count(), 2);
                whole += 1;
            }
        }
    }
    assert!(whole > 0 && gone > 0, "{whole} whole, {gone} gone");
}

/// The disk of a broker that was stopped with three messages at home and two on the other shard.
fn stopped() -> FakeDisk {
    let disk = FakeDisk::new(8);
    let world = World::start(&disk);
    let mut at_home = Client::new(&world.broker);
    at_home.declare("q", None).expect("declared");
    publish(&mut at_home, 1..=3);
    let (shard, _) = world.open(Opening::MakeIfMissing);
    world.broker.add_vhost_on(VHOST, OTHER).expect("a new vhost");
    let mut elsewhere = Client::in_vhost(&world.broker, VHOST);
    elsewhere.declare("q", None).expect("declared");
    publish(&mut elsewhere, 11..=12);
    drop((at_home, elsewhere));
    shard.close().expect("nothing fails");
    world.home.close().expect("nothing fails");
    disk.kill();
    disk
}

const MEANING: tools::Meaning<'_> = tools::Meaning { names: &names_in_log, shards: &shards_in_log };

fn verify(disk: &FakeDisk) -> (bool, String) {
    let mut out = Vec::new();
    let disk = Arc::new(disk.clone());
    let sound = tools::verify_all(Path::new("data"), disk, MEANING, &mut out);
    (sound.expect("it can be read"), String::from_utf8(out).expect("text"))
}

fn repair(disk: &FakeDisk) -> (tools::Repaired, String) {
    let mut out = Vec::new();
    let options = Options { segment_bytes: 64 << 10, threads: false, ..Options::default() };
    let disk = Arc::new(disk.clone());
    let done = tools::repair_all(Path::new("data"), &options, disk, MEANING, &mut out);
    (done.expect("it can be mended"), String::from_utf8(out).expect("text"))
}

fn files_in(disk: &FakeDisk, folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let names = disk.names().into_iter().filter(|path| path.starts_with(folder));
    names.filter_map(|path| Some((path.clone(), disk.contents(&path)?))).collect()
}

/// Starts both shards. Returns the messages that wait at home and on the other one.
fn ready(disk: &FakeDisk) -> (usize, Option<usize>) {
    let world = World::start(disk);
    let (_shard, _) = world.open(Opening::Existing);
    let vhost = world.broker.vhost(VHOST).expect("placed");
    (world.ready("/"), vhost.queue(b"q").map(|queue| queue.status().ready))
}

#[test]
fn the_tools_say_of_each_shard_that_it_is_sound() {
    let disk = stopped();
    let (sound, text) = verify(&disk);
    assert!(sound, "{text}");
    assert_eq!(
        text,
        "data/journal:\nthe journal is sound\ndata/journal-1:\nthe journal is sound\n"
    );
    assert_eq!(repair(&disk).0, tools::Repaired::default());
    let mut out = Vec::new();
    let inspected = tools::inspect_all(Path::new("data"), Arc::new(disk.clone()), &mut out);
    inspected.expect("it can be read");
    let text = String::from_utf8(out).expect("text");
    assert_eq!(text.matches("replay: ").count(), 2, "{text}");
    assert_eq!(ready(&disk), (3, Some(2)));
}

#[test]
fn the_tools_find_and_mend_what_is_damaged_on_another_shard_and_name_it() {
    let disk = stopped();
    let home = files_in(&disk, "data/journal");
    let (path, mut log) = files_in(&disk, "data/journal-1")
        .into_iter()
        .find(|(path, _)| path.extension().is_some_and(|is| is == "log"))
        .expect("a segment");
    let body = log.windows(50).position(|bytes| bytes == [12; 50]).expect("the second message");
    log[body] ^= 1;
    disk.put(&path, &log);
    let (sound, text) = verify(&disk);
    let (at_home, elsewhere) = text.split_once("data/journal-1:\n").expect("a part of its own");
    assert!(!sound && at_home.ends_with("the journal is sound\n"), "{text}");
    assert!(elsewhere.contains(path.to_str().expect("text")), "{text}");
    let (repaired, text) = repair(&disk);
    assert_eq!(repaired, tools::Repaired { changed: true, lost: true });
    assert!(text.contains("data/journal-1:\n"), "{text}");
    assert_eq!(files_in(&disk, "data/journal"), home, "nothing was wrong there");
    assert!(verify(&disk).0);
    assert_eq!(ready(&disk), (3, Some(1)));
}

#[test]
fn a_shard_that_is_missing_is_told_and_begins_anew_after_a_repair() {
    let disk = stopped();
    for marked in [false, true] {
        let kept = FakeDisk::new(9);
        for (path, contents) in files_in(&disk, "data/journal") {
            kept.put(&path, &contents);
        }
        if marked {
            for (path, contents) in files_in(&disk, "data/journal-1") {
                kept.put(&path, &contents);
            }
            kept.put(Path::new("data/journal-1/being-removed"), b"");
        }
        let (sound, text) = verify(&kept);
        assert!(!sound && text.contains("data/journal-1:\nthere is no journal here"), "{text}");
        let (repaired, text) = repair(&kept);
        assert_eq!(repaired, tools::Repaired { changed: true, lost: true });
        assert!(text.contains("everything in it is lost"), "{text}");
        assert!(verify(&kept).0);
        assert_eq!(ready(&kept), (3, None));
    }
}
