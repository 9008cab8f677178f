//! A vhost goes from one group of a cluster to another: through each of them, home among them, with crashes at each step.

use super::contents::{Contents, assert_same, contents};
use super::{START_MS, V, found, persistent, settings, sync};
use crate::support::WorldOnDisk;
use courser_broker::PolicyKind;
use courser_broker::admin::{GroupDefinitions, NewQueue, VhostHandle};
use courser_codec::FieldTable;

const GROUPS: u16 = 3;

/// The brokers of the groups.
struct Cluster(Vec<WorldOnDisk>);

/// What has been done of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Finished,
    Held,
    Said,
    Adopted,
}

const STEPS: [Step; 4] = [Step::Finished, Step::Held, Step::Said, Step::Adopted];

impl Cluster {
    /// With the vhost, and something in it, at home.
    fn new() -> Self {
        let cluster = Cluster((0..GROUPS).map(WorldOnDisk::of_group).collect());
        found(&cluster.0[0]);
        let vhost = cluster.0[0].broker.vhost(V).expect("it is there");
        let mut client = cluster.0[0].connect_to(vhost);
        for nth in 0..20 {
            let headers = FieldTable::new().with("kind", nth % 5).with("x-delay", nth * 1000);
            let exchange = ["all", "later", "recent"][nth as usize % 3];
            client.send(persistent(exchange, "a.b", &nth.to_string()).headers(headers));
        }
        client.disconnect();
        cluster.sync();
        cluster
    }

    fn sync(&self) {
        self.0.iter().for_each(sync);
    }

    fn group(&self) -> u16 {
        self.0[0].broker.admin().vhost(V).expect("home knows all").group
    }

    /// Has the vhost carried, up to a step.
    fn carry(&self, to: u16, until: Step) {
        let known = self.0[0].broker.admin().vhost_handle(V).expect("home knows all");
        let from = &self.0[usize::from(self.group())];
        let (source, target) = (from.broker.admin(), self.0[usize::from(to)].broker.admin());
        assert_eq!(source.stop_vhost(V, 0).expect("it is there"), 0);
        let mut export = source.export_vhost(V).expect("it can be carried");
        let mut import = target.import_vhost(V, 0, &settings()).expect("it is not there");
        while let Some(piece) = export.next_piece().expect("it can be read") {
            import.take(&piece).expect("taken in");
        }
        import.finish().expect("it is whole");
        self.sync();
        if until >= Step::Held {
            export.hold().expect("it stands still");
            self.sync();
        }
        if until >= Step::Said {
            self.say(&known, to);
        }
        if until >= Step::Adopted {
            self.adopt();
        }
    }

    /// Says at home where the vhost is.
    fn say(&self, known: &VhostHandle, to: u16) {
        let home = self.0[0].broker.admin();
        let from = self.group();
        match to {
            0 => home.accept_vhost(V, Some(known)).expect("it has arrived"),
            to => home.set_vhost_group(known, to).expect("said"),
        }
        self.sync();
        if from == 0 {
            assert_eq!(home.clear_moved_vhosts().expect("it is elsewhere"), [V]);
        }
    }

    /// Has all groups know what home says.
    fn adopt(&self) {
        let home = self.0[0].broker.admin();
        for world in &self.0[1..] {
            let have = world.broker.admin().adopted_version();
            let definitions = home.definitions_of_group(world.broker.group(), have);
            let definitions = definitions.expect("at home");
            let definitions = GroupDefinitions::decode(&definitions.encode()).expect("as it was");
            world.broker.admin().adopt_definitions(definitions).expect("it is not older");
        }
        self.sync();
    }

    /// Takes the power from all of them.
    fn lose_power(&mut self) {
        for world in &mut self.0 {
            world.lose_power();
            world.broker.set_time(START_MS);
        }
    }

    /// Ends a move whose leader is gone, as the next one does by what it finds.
    fn go_on(&self) {
        let group = self.group();
        for world in &self.0 {
            let admin = world.broker.admin();
            let is_here = world.broker.group() == group;
            for held in admin.held_vhosts() {
                if is_here {
                    admin.start_vhost(&held, 0).expect("it is there");
                }
            }
            for arrival in admin.arrivals() {
                if !is_here {
                    admin.forget_arrival(&arrival.name, 0).expect("forgotten");
                }
            }
        }
        self.adopt();
    }

    /// That the vhost is served in its group, as it was, and that no other broker has anything of it.
    fn check(&mut self, before: &Contents) {
        let group = self.group();
        for world in &mut self.0 {
            let admin = world.broker.admin();
            assert_eq!((admin.arrivals(), admin.held_vhosts()), (vec![], vec![]));
            drop(admin);
            if world.broker.group() == group {
                let vhost = world.broker.vhost(V).expect("it is there");
                drop(vhost.admit("guest").expect("it is served"));
                drop(vhost);
                assert_same(&contents(world), before);
                continue;
            }
            let mut positions = 0;
            let found = world.found_by_restart();
            world.broker.set_time(START_MS);
            found.for_each_position(&mut |_| positions += 1);
            assert_eq!(positions, 0, "in group {}, and it is in {group}", world.broker.group());
        }
    }
}

#[test]
fn a_vhost_goes_through_all_groups_and_home_again() {
    let mut cluster = Cluster::new();
    let before = contents(&cluster.0[0]);
    for to in [1, 2, 1, 0, 2, 0] {
        cluster.carry(to, Step::Adopted);
        assert_eq!(cluster.group(), to);
        cluster.check(&before);
    }
    let vhost = cluster.0[0].broker.vhost(V).expect("it is there");
    let mut client = cluster.0[0].connect_to(vhost);
    assert_eq!(client.get("plain").expect("a message").text(), "0");
    client.disconnect();
}

#[test]
fn after_a_crash_at_any_step_it_is_in_one_group_whole() {
    for (from, to) in [(0, 1), (1, 0), (1, 2)] {
        for until in STEPS {
            let mut cluster = Cluster::new();
            if from != 0 {
                cluster.carry(from, Step::Adopted);
            }
            let before = contents(&cluster.0[usize::from(from)]);
            cluster.carry(to, until);
            cluster.lose_power();
            let is_in = if until >= Step::Said { to } else { from };
            assert_eq!(cluster.group(), is_in, "from {from} to {to}, {until:?}");
            if until == Step::Held {
                let world = &cluster.0[usize::from(from)];
                let refused = world.broker.vhost(V).expect("it is there").admit("guest");
                assert_eq!(refused.err().expect("it stands still").code, 320);
            }
            cluster.go_on();
            cluster.check(&before);
        }
    }
}

/// Removes something from the vhost, which is in group 1.
fn remove_some(cluster: &Cluster) {
    let admin = cluster.0[1].broker.admin();
    admin.delete_queue(V, b"gone", false, false).expect("it is there");
    admin.clear_policy(V, PolicyKind::User, "alternate").expect("it is there");
}

#[test]
fn a_vhost_does_not_come_home_beside_what_it_has_left_there() {
    for from_checkpoint in [false, true] {
        let mut cluster = Cluster::new();
        let home = cluster.0[0].broker.admin();
        let queue = NewQueue { durable: true, ..NewQueue::default() };
        home.declare_queue(V, "gone", queue).expect("a queue");
        // Home has not had a majority of disks for long that says it, and has removed nothing.
        let known = home.vhost_handle(V).expect("it is there");
        cluster.carry(1, Step::Held);
        home.set_vhost_group(&known, 1).expect("said");
        cluster.adopt();
        remove_some(&cluster);
        let refused = home.import_vhost(V, 0, &settings()).expect_err("what is left has its name");
        assert!(refused.explanation.contains("not removed yet"), "{refused}");
        assert_eq!(home.clear_moved_vhosts().expect("removed"), [V]);
        assert!(home.clear_moved_vhosts().expect("nothing is left").is_empty());
        drop(home);
        let before = contents(&cluster.0[1]);
        if from_checkpoint {
            cluster.0[0].checkpoint();
        }
        cluster.carry(0, Step::Adopted);
        cluster.lose_power();
        cluster.check(&before);
    }
}

#[test]
fn a_vhost_that_is_deleted_while_it_arrives_does_not_come() {
    let cluster = Cluster::new();
    cluster.carry(1, Step::Held);
    let home = cluster.0[0].broker.admin();
    let known = home.vhost_handle(V).expect("it is there");
    home.delete_vhost(V).expect("it may be deleted");
    assert!(home.set_vhost_group(&known, 1).is_err(), "there is none");
    cluster.adopt();
    let target = cluster.0[1].broker.admin();
    assert!(target.forget_arrival(V, 0).expect("forgotten"));
    assert!(cluster.0[1].broker.vhost(V).is_none());
}

#[test]
fn nothing_of_a_vhost_that_was_deleted_while_it_arrived_is_in_a_new_one_of_its_name() {
    let cluster = Cluster::new();
    cluster.carry(1, Step::Held);
    let home = cluster.0[0].broker.admin();
    home.delete_vhost(V).expect("it may be deleted");
    home.change_vhost(V, |vhost| vhost.group = 1).expect("a new one");
    cluster.adopt();
    let target = cluster.0[1].broker.admin();
    assert!(target.arrivals().is_empty());
    assert_eq!(target.queues(Some(V)).expect("it is there").len(), 0);
}

#[test]
fn a_vhost_that_was_made_when_one_of_its_name_had_begun_to_move_is_not_said_to_have_moved() {
    for (from, to) in [(0, 1), (1, 2), (1, 0)] {
        let cluster = Cluster::new();
        if from != 0 {
            cluster.carry(from, Step::Adopted);
        }
        let home = cluster.0[0].broker.admin();
        let known = home.vhost_handle(V).expect("it is there");
        // Home hears of its deletion before it arrives as a whole.
        if to == 0 {
            home.delete_vhost(V).expect("it may be deleted");
            home.change_vhost(V, |vhost| vhost.group = from).expect("a new one");
            cluster.carry(to, Step::Held);
        } else {
            cluster.carry(to, Step::Held);
            home.delete_vhost(V).expect("it may be deleted");
            home.change_vhost(V, |vhost| vhost.group = from).expect("a new one");
        }
        let said = match to {
            0 => home.accept_vhost(V, Some(&known)),
            to => home.set_vhost_group(&known, to),
        };
        said.expect_err("it is another one");
        assert_eq!(cluster.group(), from, "to {to}");
        cluster.adopt();
        let source = cluster.0[usize::from(from)].broker.admin();
        let queue = NewQueue { durable: true, ..NewQueue::default() };
        if to != 0 {
            source.declare_queue(V, "new", queue).expect("it goes on");
        }
        let target = cluster.0[usize::from(to)].broker.admin();
        target.forget_arrival(V, 0).expect("forgotten");
        let queues = source.queues(Some(V)).expect("it is there").len();
        assert_eq!(queues, usize::from(to != 0), "to {to}");
    }
}

#[test]
fn what_is_said_of_a_vhost_that_has_come_home_is_said_of_no_earlier_one() {
    let cluster = Cluster::new();
    cluster.carry(1, Step::Adopted);
    let home = cluster.0[0].broker.admin();
    let before = home.vhost_handle(V).expect("it is there");
    cluster.carry(0, Step::Adopted);
    home.set_vhost_group(&before, 2).expect_err("it has come home");
    assert_eq!(cluster.group(), 0);
}
