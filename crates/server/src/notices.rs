//! What an operator has asked for, or relies on, and the broker could not do, or has to take back: it is among what needs attention
//! until then.

use crate::clock::Clock;
use courser_management::Notice;
use courser_store::ShardId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// What came of reading the settings again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// All that is in them is in effect.
    Whole,
    /// Some of it takes effect after a restart.
    InPart,
    /// They are not in order: those from before are in effect.
    NotAtAll,
}

/// Settings of a node that leads, by when they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Settings {
    /// When it comes to lead: definitions and users.
    AtFirst,
    /// Also when they are read again: vhosts and policies.
    Reloaded,
}

/// All of it.
#[derive(Default)]
pub(crate) struct Notices {
    clock: Clock,
    /// By what it is about.
    all: Mutex<BTreeMap<&'static str, Notice>>,
    /// Groups of the cluster that this node leads and that can't follow home.
    behind: Mutex<BTreeSet<u16>>,
    /// Groups that this node serves without some of its settings, and which.
    without_settings: Mutex<BTreeSet<(u16, Settings)>>,
    /// Groups of the cluster in which this node can't take part yet.
    waiting: Mutex<BTreeSet<u16>>,
    /// Groups and their shards whose last checkpoint could not be made.
    without_checkpoint: Mutex<BTreeSet<(u16, ShardId)>>,
}

impl Notices {
    pub fn new(clock: Clock) -> Self {
        Notices { clock, ..Notices::default() }
    }

    /// What an operator should know now.
    pub fn all(&self) -> Vec<Notice> {
        self.all.lock().values().cloned().collect()
    }

    /// Says what came of reading the settings again.
    pub fn reloaded(&self, reloaded: Reloaded) {
        // What is wrong may have a secret in it; the log is for who runs the broker.
        let failed = "The settings were read again and are not in order: those from before are in effect. \
                      The broker's log says what is wrong; mend it and reload";
        self.set("settings_not_reloaded", (reloaded == Reloaded::NotAtAll).then_some(failed));
        let in_part =
            "Settings were changed that take effect after a restart only: restart the broker";
        if reloaded != Reloaded::NotAtAll {
            let is_in_part = reloaded == Reloaded::InPart;
            self.set("settings_need_restart", is_in_part.then_some(in_part));
        }
    }

    /// Says whether the files of certificates could be read again.
    pub fn certificates_renewed(&self, renewed: bool) {
        let failed = "The files of certificates have changed and can't be used: the certificates from before stay in \
                      use until they expire. The broker's log names the file";
        self.set("certificates_not_renewed", (!renewed).then_some(failed));
    }

    /// Says whether an operator has suspended the listeners for clients.
    pub fn listeners_suspended(&self, on: bool) {
        let suspended = "The listeners for clients are suspended: no new connections are taken until they are resumed \
                         (courser ctl resume_listeners)";
        self.set("listeners_suspended", on.then_some(suspended));
    }

    /// Says whether a group that this node leads can't get what has been changed at home.
    pub fn group_is_behind(&self, group: u16, is_behind: bool) {
        let failed = "A group of the cluster can't get the definitions of home: what has been changed of users, permissions, vhosts \
                      and global parameters, revocations included, has no effect there. The log of the node that leads the \
                      group says why";
        self.set_of(&self.behind, group, is_behind, "group_behind_home", failed);
    }

    /// Says whether this node can't take part in a group yet.
    pub fn group_waits(&self, group: u16, waits: bool) {
        let waiting = "This node can't take part in a group of the cluster: its disk has no room for the group or does not give what it \
                       has, or the system has no thread. It is tried again; the node's log says what is in the way";
        self.set_of(&self.waiting, group, waits, "group_waits", waiting);
    }

    /// Groups in which this node can't take part yet.
    pub fn waiting_groups(&self) -> Vec<u16> {
        self.waiting.lock().iter().copied().collect()
    }

    /// Whether there are such groups.
    pub fn has_waiting_group(&self) -> bool {
        !self.waiting.lock().is_empty()
    }

    /// Says whether other nodes of the cluster can't take part in a group yet.
    pub fn group_waits_elsewhere(&self, waits: bool) {
        let waiting = "Other nodes of the cluster can't take part in a group: their disks have no room for it or do not give what \
                       they have, or the system has no thread. They try it again; the logs of those nodes say what is in the way";
        self.set("group_waits_elsewhere", waits.then_some(waiting));
    }

    /// Says whether all of these settings of this node are applied to a group that it serves, or that it does not serve it.
    pub fn settings_applied(&self, group: u16, which: Settings, is_whole: bool) {
        let failed = "The node that leads could not apply some of its settings, and serves without them: of a file of \
                      definitions (management.load_definitions), nothing behind the first mistake. The node's log says what \
                      is wrong; mend it and reload, or, where definitions or users are wrong, restart the node";
        let one = (group, which);
        self.set_of(&self.without_settings, one, !is_whole, "settings_not_applied", failed);
    }

    /// Says whether the last checkpoint that was tried of a shard of a group could be made.
    pub fn checkpoint_tried(&self, group: u16, shard: ShardId, is_made: bool) {
        let failed = "No checkpoint of the journal can be made: it only grows, and the next start takes longer. It is tried \
                      again; the broker's log says what is in the way";
        let one = (group, shard);
        self.set_of(&self.without_checkpoint, one, !is_made, "checkpoint_failed", failed);
    }

    /// Says whether the disk has damaged a part of the journal that nothing has repaired.
    pub fn journal_is_damaged(&self, is_damaged: bool) {
        let damaged = "The disk has damaged parts of the journal: look after the disk. The broker's log names them, and \
                       docs/durability.md says what becomes of messages in them";
        self.set("journal_damaged", is_damaged.then_some(damaged));
    }

    /// Says whether another node of the cluster has such a part.
    pub fn journal_is_damaged_elsewhere(&self, is_damaged: bool) {
        let damaged = "The disks of other nodes of the cluster have damaged parts of the journal there: look after the disks. The \
                       log of the node names them (courser ctl journal status NODE), and docs/durability.md says what becomes of them";
        self.set("journal_damaged_elsewhere", is_damaged.then_some(damaged));
    }

    /// Says whether something is so of one of several: it is told until it is so of none.
    fn set_of<T: Ord>(
        &self,
        all: &Mutex<BTreeSet<T>>,
        one: T,
        is_so: bool,
        kind: &'static str,
        text: &'static str,
    ) {
        let mut all = all.lock();
        match is_so {
            true => all.insert(one),
            false => all.remove(&one),
        };
        self.set(kind, (!all.is_empty()).then_some(text));
    }

    fn set(&self, kind: &'static str, text: Option<&'static str>) {
        let mut all = self.all.lock();
        match text {
            None => drop(all.remove(kind)),
            Some(text) => {
                let since_ms = self.clock.now_ms();
                all.entry(kind).or_insert(Notice { kind, text, since_ms });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(notices: &Notices) -> Vec<&'static str> {
        notices.all().iter().map(|notice| notice.kind).collect()
    }

    #[test]
    fn what_is_not_in_effect_is_told_until_it_is() {
        let notices = Notices::default();
        notices.reloaded(Reloaded::NotAtAll);
        assert_eq!(kinds(&notices), ["settings_not_reloaded"]);
        notices.reloaded(Reloaded::InPart);
        assert_eq!(kinds(&notices), ["settings_need_restart"]);
        notices.reloaded(Reloaded::NotAtAll);
        notices.certificates_renewed(false);
        // What was to take effect after a restart still is.
        let all = ["certificates_not_renewed", "settings_need_restart", "settings_not_reloaded"];
        assert_eq!(kinds(&notices), all);
        notices.certificates_renewed(true);
        notices.reloaded(Reloaded::Whole);
        assert_eq!(kinds(&notices), [""; 0]);
    }

    #[test]
    fn a_group_that_can_not_follow_home_is_told_until_all_can() {
        let notices = Notices::default();
        notices.group_is_behind(1, true);
        notices.group_is_behind(2, true);
        notices.group_is_behind(1, false);
        assert_eq!(kinds(&notices), ["group_behind_home"]);
        notices.group_is_behind(2, false);
        assert!(kinds(&notices).is_empty());
    }

    #[test]
    fn settings_that_a_group_is_served_without_are_told_until_none_is() {
        let notices = Notices::default();
        for (group, which, is_whole, told) in [
            (0, Settings::AtFirst, true, false),
            (0, Settings::AtFirst, false, true),
            (1, Settings::Reloaded, false, true),
            (0, Settings::Reloaded, true, true),
            (0, Settings::AtFirst, true, true),
            (1, Settings::Reloaded, true, false),
        ] {
            notices.settings_applied(group, which, is_whole);
            assert_eq!(kinds(&notices) == ["settings_not_applied"], told, "{group}, {which:?}");
        }
    }

    #[test]
    fn checkpoints_that_fail_are_told_until_each_shard_has_one() {
        let notices = Notices::default();
        for (group, shard, is_made, told) in [
            (0, 0, true, false),
            (0, 1, false, true),
            (0, 0, true, true),
            (1, 1, false, true),
            (0, 1, true, true),
            (1, 1, true, false),
        ] {
            notices.checkpoint_tried(group, ShardId(shard), is_made);
            assert_eq!(kinds(&notices) == ["checkpoint_failed"], told, "{group}, {shard}");
        }
    }
}
