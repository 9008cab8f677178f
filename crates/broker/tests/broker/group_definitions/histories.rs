//! Whatever happens at home and to a group, in the end the group has what home has.

use super::{changed, had, user, wanted};
use crate::support::WorldOnDisk;
use courser_auth::{Permission, TopicPermission};
use courser_broker::admin::GroupDefinitions;
use courser_store::Lsn;
use proptest::prelude::*;

const USERS: [&str; 4] = ["ann", "ben", "cem", "dee"];
const VHOSTS: [&str; 5] = ["/", "a", "b", "c", "d"];

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
    /// The definitions of a group are taken to where they are not needed yet: all of them, or what it does not have.
    Take(usize, bool),
    /// A group gets what was taken at some time.
    Bring(usize, usize),
    /// It gets what is true now, likewise.
    Adopt(usize, bool),
    /// A group's broker is restarted, killed, also while it writes, or loses its power.
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
        (which.clone(), any::<bool>()).prop_map(|(which, all)| Step::Take(which, all)),
        (which.clone(), 0..64_usize).prop_map(|(which, taken)| Step::Bring(which, taken)),
        (which.clone(), any::<bool>()).prop_map(|(which, all)| Step::Adopt(which, all)),
        (which.clone(), 0..5_u8).prop_map(|(which, how)| Step::Restart(which, how)),
        which.prop_map(Step::Sync),
    ]
}

struct Cluster {
    home: WorldOnDisk,
    groups: [WorldOnDisk; 2],
    /// And which version the group had.
    taken: Vec<(Lsn, GroupDefinitions)>,
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
                let user = user(USERS[name], &password.to_string());
                drop(admin.put_user(USERS[name], &[], |one| {
                    one.password = user.password;
                    Ok(())
                }));
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
            Step::Move(name, group) => {
                if let Some(vhost) = admin.vhost_handle(VHOSTS[name]) {
                    drop(admin.set_vhost_group(&vhost, group));
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, which: usize, all: bool) -> (Lsn, GroupDefinitions) {
        // Nothing is given out that could still be lost.
        self.home.sync();
        let have = if all { Lsn(0) } else { self.groups[which].broker.admin().adopted_version() };
        let taken = (have, changed(&self.home.broker.admin(), which as u16 + 1, have));
        self.taken.push(taken.clone());
        taken
    }

    fn bring(&self, which: usize, (have, definitions): (Lsn, GroupDefinitions)) {
        let admin = self.groups[which].broker.admin();
        let (own, before) = (definitions.group == which as u16 + 1, admin.adopted_version());
        let version = definitions.version;
        match admin.adopt_definitions(definitions) {
            Ok(is_newer) => assert!(own && is_newer == (version > before) && version >= before),
            Err(_) => assert!(!own || version < before || have > before),
        }
    }

    fn restart(&mut self, which: usize, how: u8) {
        let group = &mut self.groups[which];
        match how {
            0 => group.restart(),
            1 => group.restart_from_checkpoint(),
            2 => group.crash(|| ()),
            3 => group.crash_while_writing(),
            _ => group.lose_power(),
        }
        assert!(group.broker.admin().adopted_version() >= self.kept[which]);
    }

    fn go(&mut self, step: &Step) {
        match *step {
            Step::RestartHome(true) => self.home.restart_from_checkpoint(),
            Step::RestartHome(false) => self.home.restart(),
            Step::Take(which, all) => drop(self.take(which, all)),
            Step::Bring(which, at) if !self.taken.is_empty() => {
                let taken = self.taken[at % self.taken.len()].clone();
                self.bring(which, taken);
            }
            Step::Adopt(which, all) => {
                let taken = self.take(which, all);
                self.bring(which, taken);
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
            let taken = self.take(which, false);
            self.bring(which, taken);
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
