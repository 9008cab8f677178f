//! A cluster of one that is made of what a member has, and members of before.

use crate::support::{Listening, about, endpoint, formation};
use courser_cluster::forming::{Folder, FolderError, RecoverError, Survivor};
use courser_cluster::transport::{DialError, Node, Purpose, Recovery};
use courser_cluster::{GroupNumber, Members, NodeId};
use courser_journal::replica::{EntryId, EntryKind, Identity, Replica, ReplicaError, Vote};
use courser_journal::testing::{FakeDisk, Faults};
use courser_journal::{Disk, Options};
use std::path::Path;
use std::sync::Arc;

const NODE: &str = "node";
const GROUPS: [GroupNumber; 2] = [GroupNumber::HOME, GroupNumber(1)];
/// Entries of each group, of which some are not known to be committed.
const ENTRIES: u64 = 5;
const COMMITTED: u64 = 3;

fn options() -> Options {
    Options { segment_bytes: 64 << 10, threads: false, ..Options::default() }
}

fn disk_of(disk: &FakeDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

fn folder(disk: &FakeDisk) -> Result<Folder, FolderError> {
    Folder::open(Path::new(NODE), disk_of(disk), "prod", "a")
}

fn survivor(disk: &FakeDisk) -> Result<Survivor, RecoverError> {
    Survivor::open(Path::new(NODE), disk_of(disk), "prod", "a")
}

/// A member of three with copies of two groups, which is stopped.
fn member(seed: u64) -> (FakeDisk, NodeId) {
    let disk = FakeDisk::new(seed);
    let folder = folder(&disk).expect("an empty disk");
    let node = folder.node();
    let members = Members::founders(&[node, NodeId(2), NodeId(3)]);
    for number in [2, 3] {
        let other = Node { id: NodeId(number), name: format!("n{number}"), address: "x:1".into() };
        folder.learn(&other, true).expect("kept");
    }
    let founded = formation(&[node.0, 2, 3]);
    for group in GROUPS {
        let dir = folder.copy_dir(group).expect("readable");
        let identity = Identity { group: founded.group, segment_bytes: 64 << 10 };
        Replica::create(&dir, identity, &disk).expect("there is room");
        let replica = Replica::open(&dir, options(), disk_of(&disk), Arc::new(()));
        let replica = replica.expect("a copy");
        let vote = Vote { term: 2, voted_for: 2, members: members.encode(), members_index: 0 };
        replica.save_vote(&vote).expect("nothing fails");
        for index in 1..=ENTRIES {
            replica.place_note(EntryId { term: 2, index }, EntryKind::Start, &[]).expect("room");
        }
        replica.commit(COMMITTED).expect("it is here");
        replica.close().expect("nothing fails");
    }
    folder.set_formation(&founded).expect("kept");
    folder.set_group(GROUPS[1], &founded).expect("kept");
    drop(folder);
    disk.kill();
    (disk, node)
}

/// The voters of all groups, as far as a node knows, whose copies have to be as long as ever.
fn voters(survivor: &Survivor) -> Vec<Vec<NodeId>> {
    let copies = survivor.groups().map(|group| {
        let copy = survivor.copy(group).expect("a copy");
        assert_eq!(copy.contents.last, EntryId { term: 2, index: ENTRIES });
        copy.members.voters
    });
    copies.collect()
}

#[test]
fn a_recovery_is_done_as_a_whole_or_can_be_repeated_whenever_it_is_killed() {
    let (mut before, mut half, mut whole) = (0, 0, 0);
    for after in 0.. {
        let (disk, node) = member(after);
        let all = [vec![node, NodeId(2), NodeId(3)], vec![node, NodeId(2), NodeId(3)]];
        let alone = [vec![node], vec![node]];
        disk.set_faults(Faults { power_off_after: Some(after), ..Faults::default() });
        let is_done = survivor(&disk).and_then(|mut one| one.recover(&options())).is_ok();
        match after % 2 {
            0 => disk.lose_power(),
            _ => disk.kill(),
        }
        let opened = folder(&disk).map(|folder| folder.formation());
        let mut found = survivor(&disk).expect("a member");
        match opened {
            Ok(Some(formation)) if formation.recovery.is_some() => {
                whole += 1;
                assert_eq!(voters(&found), alone);
            }
            Ok(_) => {
                before += 1;
                assert!(!is_done && !found.is_begun());
                assert_eq!(voters(&found), all);
                found.recover(&options()).expect("nothing fails");
            }
            Err(FolderError::Recovering { .. }) => {
                half += 1;
                assert!(!is_done && found.is_begun());
                found.recover(&options()).expect("nothing fails");
            }
            Err(error) => panic!("{error}"),
        }
        disk.kill();
        let folder = folder(&disk).expect("it starts");
        let formation = folder.formation().expect("a member");
        assert_eq!((formation.founders, folder.node()), (vec![node], node));
        assert_eq!(formation.recovery.map(|one| one.times), Some(1));
        assert_eq!(folder.known(), [], "the others have no part in it");
        let found = survivor(&disk).expect("a member");
        assert_eq!(voters(&found), alone);
        let home = found.copy(GroupNumber::HOME).expect("a copy").contents;
        assert_eq!(home.vote.members_index, ENTRIES, "all that is here counts");
        if is_done {
            break;
        }
    }
    assert!(before > 1 && half > 10 && whole > 0, "{before} before, {half} half, {whole} whole");
}

#[test]
fn nothing_is_changed_where_a_copy_can_not_be_used() {
    let (disk, _) = member(1);
    let dir = Path::new(NODE).join("group-1");
    disk.open(&dir.join("being-installed"), courser_journal::OpenMode::Create).expect("made");
    let error = survivor(&disk).expect("a member").copy(GroupNumber(1)).err().expect("it is half");
    let RecoverError::Copy { error: ReplicaError::HalfInstalled { .. }, .. } = error else {
        panic!("{error}")
    };
    for file in disk.names().into_iter().filter(|name| name.starts_with(&dir)) {
        disk.remove(&file).expect("removed");
    }
    let error = survivor(&disk).expect("a member").copy(GroupNumber(1)).err();
    assert!(matches!(error, Some(RecoverError::NoCopy(_))), "{error:?}");
}

#[test]
fn a_group_that_is_left_out_is_set_aside_whenever_the_recovery_is_killed() {
    let (one, dir) = (GROUPS[1], Path::new(NODE).join("group-1"));
    let (disk, _) = member(1);
    let mut usable = survivor(&disk).expect("a member");
    for (group, why) in [(GroupNumber::HOME, "users"), (GroupNumber(2), "no copy"), (one, "used")] {
        let refused = usable.leave_out(group).expect_err("refused").to_string();
        assert!(refused.contains(why), "{refused}");
    }
    let mut half = 0;
    for after in 0.. {
        let (disk, _) = member(after);
        disk.open(&dir.join("being-installed"), courser_journal::OpenMode::Create).expect("made");
        disk.sync_dir(&dir).expect("nothing fails");
        let recover = |disk: &FakeDisk| {
            let mut survivor = survivor(disk)?;
            survivor.leave_out(one)?;
            survivor.recover(&options())
        };
        disk.set_faults(Faults { power_off_after: Some(after), ..Faults::default() });
        let is_done = recover(&disk).is_ok();
        match after % 2 {
            0 => disk.lose_power(),
            _ => disk.kill(),
        }
        let opened = folder(&disk).map(|folder| folder.formation().and_then(|one| one.recovery));
        if !matches!(opened, Ok(Some(_))) {
            half += usize::from(matches!(opened, Err(FolderError::Recovering { .. })));
            assert!(!is_done);
            recover(&disk).expect("nothing fails");
            disk.kill();
        }
        assert!(folder(&disk).expect("it starts").groups().is_empty());
        let names = disk.names();
        let is_in =
            |folder: &str, file: &str| names.contains(&Path::new(NODE).join(folder).join(file));
        assert!(is_in("group-1-before-recovery-1", "replica") && !is_in("group-1", "replica"));
        if is_done {
            break;
        }
    }
    assert!(half > 5, "{half}");
}

#[test]
fn folders_that_are_no_members_are_refused() {
    let disk = FakeDisk::new(1);
    assert!(matches!(survivor(&disk).err(), Some(RecoverError::NoMember(_))));
    drop(folder(&disk).expect("an empty disk"));
    disk.kill();
    assert!(matches!(survivor(&disk).err(), Some(RecoverError::NoMember(_))));
    let (disk, _) = member(1);
    let other = Survivor::open(Path::new(NODE), disk_of(&disk), "prod", "b").err();
    assert!(
        matches!(other, Some(RecoverError::Folder(FolderError::OtherName { .. }))),
        "{other:?}"
    );
}

fn recovered(times: u32, number: u64) -> Option<Recovery> {
    Some(Recovery { times, number })
}

/// What a node says that another one dials, both with a recovery or none.
async fn meet(listens: Option<Recovery>, dials: Option<Recovery>) -> Result<(), DialError> {
    let of = |number, name, recovery| {
        let mut about = about(number, name);
        about.formation = Some(formation(&[1, 2, 3]));
        about.formation.as_mut().expect("one").recovery = recovery;
        about
    };
    let node = Listening::start(&endpoint(of(1, "a", listens))).await;
    let other = endpoint(of(2, "b", dials));
    other.dial(&node.address, Purpose::Packets, "").await.map(drop)
}

#[tokio::test]
async fn members_of_before_a_recovery_have_no_part_in_the_cluster() {
    assert!(meet(recovered(1, 5), recovered(1, 5)).await.is_ok());
    // The one that dials is of before.
    for (listens, dials) in [(recovered(1, 5), None), (recovered(2, 6), recovered(1, 5))] {
        match meet(listens, dials).await {
            Err(DialError::LeftBehind(why)) => assert_eq!(
                why,
                "cluster 'prod' was recovered without node 'b', whose data folder is of before, as node 'a' says: start it \
                 with an empty folder, and add it anew"
            ),
            other => panic!("{other:?}"),
        }
    }
    // The one that is dialled is.
    let error = meet(None, recovered(1, 5)).await.expect_err("not let in");
    assert!(
        matches!(&error, DialError::Refused(why) if why.contains("without node 'a'")),
        "{error}"
    );
    let error = meet(recovered(1, 5), recovered(1, 6)).await.expect_err("not let in");
    assert!(matches!(&error, DialError::Refused(why) if why.contains("apart")), "{error}");
}
