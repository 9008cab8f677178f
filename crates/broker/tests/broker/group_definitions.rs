//! What a group of a cluster takes over from the accounts, global parameters and vhosts of group 0.

use crate::support::{Heard, World, WorldOnDisk, declare_with, short};
use courser_auth::{PasswordHash, Permission, Record, TopicPermission, User};
use courser_broker::admin::{Admin, GlobalParameter, GroupDefinitions, VhostView};
use courser_codec::{FieldTable, queue};
use courser_store::Lsn;
use proptest::prelude::*;

const USERS: [&str; 4] = ["ann", "ben", "cem", "dee"];
const VHOSTS: [&str; 5] = ["/", "a", "b", "c", "d"];

fn user(name: &str, password: &str) -> User {
    User::new(name, PasswordHash::quick(password.as_bytes()).expect("a hash"))
}

fn put(admin: &Admin, name: &str, group: u16) {
    assert!(admin.change_vhost(name, |vhost| vhost.group = group).expect("a vhost"));
}

/// As it goes from one node to another.
fn taken(home: &Admin, group: u16) -> GroupDefinitions {
    let taken = home.definitions_of_group(group).expect("they are at home");
    assert_eq!(taken.version, home.definitions_version());
    GroupDefinitions::decode(&taken.encode()).expect("as it was")
}

fn adopt(home: &Admin, group: &World) -> bool {
    let admin = group.broker.admin();
    let definitions = taken(home, group.broker.group());
    let version = definitions.version;
    let is_newer = admin.adopt_definitions(definitions).expect("it is not older");
    assert_eq!(admin.adopted_version(), version);
    is_newer
}

/// What a vhost of the broker is, without what has happened in it.
fn said(view: VhostView) -> VhostView {
    VhostView { connections: 0, queues: 0, bindings: 0, counts: Default::default(), ..view }
}

/// What a group has to have, and has.
type Seen = (Vec<VhostView>, Vec<GlobalParameter>, Vec<Record>);

fn wanted(home: &Admin, group: u16) -> Seen {
    let vhosts: Vec<VhostView> =
        home.vhosts().into_iter().filter(|vhost| vhost.group == group).map(said).collect();
    let is_there = |name: &String| vhosts.iter().any(|vhost| vhost.name == *name);
    let mut accounts = home.accounts().records();
    accounts.retain(|record| match record {
        Record::Permission { vhost, .. } | Record::TopicPermission { vhost, .. } => is_there(vhost),
        Record::User(_) | Record::UserDeleted(_) => true,
    });
    (vhosts, home.global_parameters(), accounts)
}

fn had(group: &Admin) -> Seen {
    let vhosts = group.vhosts().into_iter().map(said).collect();
    (vhosts, group.global_parameters(), group.accounts().records())
}

#[test]
fn a_group_has_what_concerns_it_and_serves_its_vhosts() {
    let (home, group) = (WorldOnDisk::new(), World::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    put(&admin, "w", 2);
    admin.put_user(user("u", "secret")).expect("a user");
    for vhost in ["/", "v", "w"] {
        admin.set_permission("u", vhost, Permission::all()).expect("a permission");
    }
    admin.set_global_parameter("p", "1").expect("a parameter");
    assert!(adopt(&admin, &group));
    assert_eq!(had(&group.broker.admin()), wanted(&admin, 1));
    let mut client = group.admit("u", "v").expect("admitted");
    client.declare("q");
    assert!(group.admit("u", "w").is_err() && group.admit("u", "/").is_err());
    assert!(!adopt(&admin, &group), "nothing has changed");
}

#[test]
fn older_definitions_and_those_of_others_are_refused() {
    let (home, group) = (WorldOnDisk::new(), World::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    let old = taken(&admin, 1);
    put(&admin, "w", 1);
    assert!(adopt(&admin, &group));
    let to = group.broker.admin();
    let refused = to.adopt_definitions(old.clone()).expect_err("older").explanation;
    assert!(refused.starts_with(&format!("definitions of version {} are older", old.version)));
    let refused = to.adopt_definitions(taken(&admin, 2)).expect_err("another's").explanation;
    assert_eq!(refused, "definitions of group 2 are not for group 1");
    assert!(admin.adopt_definitions(taken(&admin, 1)).is_err());
    assert!(to.definitions_of_group(2).is_err() && admin.definitions_of_group(0).is_err());
    assert_eq!(had(&to), wanted(&admin, 1));
}

#[test]
fn malformed_definitions_are_none() {
    let home = WorldOnDisk::new();
    put(&home.broker.admin(), "v", 1);
    let bytes = taken(&home.broker.admin(), 1).encode();
    for len in 11..bytes.len() {
        assert!(GroupDefinitions::decode(&bytes[..len]).is_none(), "{len}");
    }
}

#[test]
fn open_sessions_of_a_group_follow_the_accounts() {
    let (home, group) = (WorldOnDisk::new(), World::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    for name in ["u", "w"] {
        admin.put_user(user(name, "secret")).expect("a user");
        admin.set_permission(name, "v", Permission::all()).expect("a permission");
    }
    adopt(&admin, &group);
    let mut stays = group.admit("u", "v").expect("admitted");
    let mut goes = group.admit("w", "v").expect("admitted");
    stays.declare("q");
    stays.publish("", "q", "allowed");
    let none = Permission { write: String::from("^$"), ..Permission::all() };
    admin.set_permission("u", "v", none).expect("a permission");
    admin.delete_user("w").expect("deleted");
    adopt(&admin, &group);
    let closed = Heard::ConnectionClosed("320 CONNECTION_FORCED - user 'w' was deleted".into());
    assert_eq!(goes.heard(), [closed]);
    let refused = stays.refused(queue::Bind {
        queue: short("q"),
        exchange: short("amq.fanout"),
        ..Default::default()
    });
    assert!(refused.starts_with("403 ACCESS_REFUSED"), "{refused}");
}

#[test]
fn a_vhost_that_was_deleted_is_gone_also_if_there_is_a_new_one_of_its_name() {
    let (home, mut group) = (WorldOnDisk::new(), WorldOnDisk::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    put(&admin, "w", 1);
    adopt(&admin, &group);
    for vhost in ["v", "w"] {
        let mut client = group.connect_to(group.broker.vhost(vhost).expect("the vhost"));
        declare_with(&mut client, "q", true, &FieldTable::new());
        client.disconnect();
    }
    let mut client = group.connect_to(group.broker.vhost("v").expect("the vhost"));
    admin.delete_vhost("v").expect("deleted");
    put(&admin, "v", 1);
    admin.change_vhost("w", |vhost| vhost.description = "kept".into()).expect("changed");
    adopt(&admin, &group);
    let closed = Heard::ConnectionClosed("320 CONNECTION_FORCED - vhost 'v' is deleted".into());
    assert_eq!(client.heard(), [closed]);
    client.disconnect();
    for _ in 0..2 {
        let to = group.broker.admin();
        assert_eq!(to.queues(Some("v")).expect("the vhost").len(), 0);
        assert_eq!(to.queues(Some("w")).expect("the vhost").len(), 1);
        drop(to);
        group.restart();
    }
    // A stay is another one also if the vhost has been away meanwhile.
    admin.set_vhost_group("w", 2).expect("moved");
    admin.set_vhost_group("w", 1).expect("moved");
    adopt(&admin, &group);
    assert_eq!(group.broker.admin().queues(Some("w")).expect("the vhost").len(), 0);
}

#[test]
fn a_full_disk_keeps_nobody_in_and_leaves_the_version_behind() {
    let (home, mut group) = (WorldOnDisk::new(), WorldOnDisk::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    admin.put_user(user("u", "secret")).expect("a user");
    adopt(&admin, &group);
    group.fill_disk();
    let value = format!("\"{}\"", "x".repeat(60_000));
    let full = (0..100).find_map(|nth| {
        // What was written last leaves some room.
        admin.set_global_parameter(&nth.to_string(), &value).expect("there is room at home");
        group.sync();
        group.broker.admin().adopt_definitions(taken(&admin, 1)).err()
    });
    assert_eq!(full.expect("no room").code, 506);
    admin.delete_user("u").expect("deleted");
    let to = group.broker.admin();
    assert!(to.adopt_definitions(taken(&admin, 1)).is_err());
    assert!(to.adopted_version() < admin.definitions_version());
    assert!(to.accounts().user("u").is_none());
    drop(to);
    group.free_disk();
    group.restart();
    assert!(adopt(&admin, &group));
    assert_eq!(had(&group.broker.admin()), wanted(&admin, 1));
}

#[derive(Clone, Debug)]
enum Step {
    PutUser(usize, u8),
    DeleteUser(usize),
    Limit(usize, i64),
    Permit(usize, usize, u8),
    Forbid(usize, usize),
    PermitTopic(usize, usize, u8),
    ForbidTopic(usize, usize),
    SetGlobal(u8, u8),
    ClearGlobal(u8),
    PutVhost(usize, u16, u8),
    DeleteVhost(usize),
    Move(usize, u16),
    /// Home is restarted, from a checkpoint or its log.
    RestartHome(bool),
    /// Somebody takes the definitions of a group to where they are not needed yet.
    Take(usize),
    /// A group gets what was taken at some time.
    Bring(usize, usize),
    /// It gets what is true now.
    Adopt(usize),
    /// A group's broker is restarted, killed, or loses its power.
    Restart(usize, u8),
    /// What it has done so far is durable.
    Sync(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let (user, vhost, which) = (0..USERS.len(), 0..VHOSTS.len(), 0..2_usize);
    prop_oneof![
        (user.clone(), any::<u8>()).prop_map(|(user, password)| Step::PutUser(user, password)),
        user.clone().prop_map(Step::DeleteUser),
        (user.clone(), -1..9_i64).prop_map(|(user, most)| Step::Limit(user, most)),
        (user.clone(), vhost.clone(), 0..3_u8).prop_map(|(u, v, what)| Step::Permit(u, v, what)),
        (user.clone(), vhost.clone()).prop_map(|(user, vhost)| Step::Forbid(user, vhost)),
        (user.clone(), vhost.clone(), 0..3_u8)
            .prop_map(|(u, v, what)| Step::PermitTopic(u, v, what)),
        (user, vhost.clone()).prop_map(|(user, vhost)| Step::ForbidTopic(user, vhost)),
        (0..3_u8, any::<u8>()).prop_map(|(name, value)| Step::SetGlobal(name, value)),
        (0..3_u8).prop_map(Step::ClearGlobal),
        (vhost.clone(), 0..3_u16, any::<u8>())
            .prop_map(|(v, group, what)| Step::PutVhost(v, group, what)),
        vhost.clone().prop_map(Step::DeleteVhost),
        (vhost, 0..3_u16).prop_map(|(vhost, group)| Step::Move(vhost, group)),
        any::<bool>().prop_map(Step::RestartHome),
        which.clone().prop_map(Step::Take),
        (which.clone(), 0..64_usize).prop_map(|(which, taken)| Step::Bring(which, taken)),
        which.clone().prop_map(Step::Adopt),
        (which.clone(), 0..4_u8).prop_map(|(which, how)| Step::Restart(which, how)),
        which.prop_map(Step::Sync),
    ]
}

struct Cluster {
    home: WorldOnDisk,
    groups: [WorldOnDisk; 2],
    taken: Vec<GroupDefinitions>,
    /// What each group had when it was last known to be durable.
    kept: [Lsn; 2],
}

impl Cluster {
    fn new() -> Self {
        let groups = [WorldOnDisk::of_group(1), WorldOnDisk::of_group(2)];
        Cluster { home: WorldOnDisk::new(), groups, taken: Vec::new(), kept: [Lsn(0); 2] }
    }

    /// Changes something at home. It is no matter whether it is refused.
    fn change(&self, step: &Step) {
        let admin = self.home.broker.admin();
        let pattern = |what: u8| ["", ".*", "^a"][usize::from(what)].to_owned();
        match *step {
            Step::PutUser(name, password) => {
                drop(admin.put_user(user(USERS[name], &password.to_string())));
            }
            Step::DeleteUser(name) => drop(admin.delete_user(USERS[name])),
            Step::Limit(name, most) => {
                drop(admin.set_user_limit(USERS[name], "max-connections", most));
            }
            Step::Permit(name, vhost, what) => {
                let permission = Permission { read: pattern(what), ..Permission::all() };
                drop(admin.set_permission(USERS[name], VHOSTS[vhost], permission));
            }
            Step::Forbid(name, vhost) => {
                drop(admin.clear_permission(USERS[name], VHOSTS[vhost]));
            }
            Step::PermitTopic(name, vhost, what) => {
                let topic = TopicPermission { write: pattern(what), read: pattern(1) };
                drop(admin.set_topic_permission(USERS[name], VHOSTS[vhost], "amq.topic", topic));
            }
            Step::ForbidTopic(name, vhost) => {
                drop(admin.clear_topic_permissions(USERS[name], VHOSTS[vhost], None));
            }
            Step::SetGlobal(name, value) => {
                drop(admin.set_global_parameter(&name.to_string(), &value.to_string()));
            }
            Step::ClearGlobal(name) => drop(admin.clear_global_parameter(&name.to_string())),
            Step::PutVhost(name, group, what) => {
                let is_new = admin.vhost(VHOSTS[name]).is_none();
                let put = admin.change_vhost(VHOSTS[name], |vhost| {
                    vhost.group = if is_new { group } else { vhost.group };
                    vhost.description = what.to_string();
                    vhost.protected = what % 8 == 0;
                });
                put.expect("a vhost");
            }
            Step::DeleteVhost(name) => drop(admin.delete_vhost(VHOSTS[name])),
            Step::Move(name, group) => drop(admin.set_vhost_group(VHOSTS[name], group)),
            _ => {}
        }
    }

    fn take(&mut self, which: usize) -> GroupDefinitions {
        // Nothing is given out that could still be lost.
        self.home.sync();
        let definitions = taken(&self.home.broker.admin(), which as u16 + 1);
        self.taken.push(definitions.clone());
        definitions
    }

    fn bring(&self, which: usize, definitions: GroupDefinitions) {
        let admin = self.groups[which].broker.admin();
        let (own, before) = (definitions.group == which as u16 + 1, admin.adopted_version());
        let version = definitions.version;
        match admin.adopt_definitions(definitions) {
            Ok(is_newer) => assert!(own && is_newer == (version > before) && version >= before),
            Err(_) => assert!(!own || version < before),
        }
    }

    fn restart(&mut self, which: usize, how: u8) {
        let group = &mut self.groups[which];
        match how {
            0 => group.restart(),
            1 => group.restart_from_checkpoint(),
            2 => group.crash(|| ()),
            _ => group.lose_power(),
        }
        assert!(group.broker.admin().adopted_version() >= self.kept[which]);
    }

    fn go(&mut self, step: &Step) {
        match *step {
            Step::RestartHome(true) => self.home.restart_from_checkpoint(),
            Step::RestartHome(false) => self.home.restart(),
            Step::Take(which) => drop(self.take(which)),
            Step::Bring(which, at) if !self.taken.is_empty() => {
                let definitions = self.taken[at % self.taken.len()].clone();
                self.bring(which, definitions);
            }
            Step::Adopt(which) => {
                let definitions = self.take(which);
                self.bring(which, definitions);
            }
            Step::Restart(which, how) => self.restart(which, how),
            Step::Sync(which) => {
                self.groups[which].sync();
                self.kept[which] = self.groups[which].broker.admin().adopted_version();
            }
            _ => self.change(step),
        }
    }

    fn check(&mut self) {
        for which in 0..2 {
            let definitions = self.take(which);
            self.bring(which, definitions);
            for how in 0..3 {
                let admin = self.groups[which].broker.admin();
                assert_eq!(had(&admin), wanted(&self.home.broker.admin(), which as u16 + 1));
                drop(admin);
                self.groups[which].sync();
                self.restart(which, how);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_group_has_what_home_has_whatever_has_happened(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut cluster = Cluster::new();
        for step in &steps {
            cluster.go(step);
        }
        cluster.check();
    }
}
