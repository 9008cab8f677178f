//! What is defined in group 0 of a cluster, taken over by the brokers of other groups.
//!
//! The broker of group 0 gives out what has changed since the version that a group has, or all of it where that is not known;
//! that of the other group makes what it has the same, by changes that do what an operator's would: connections of a user that
//! is gone are closed, and a vhost that is gone takes its queues along. Each change is in its log, the version last: after a crash
//! in between the next one to be adopted repairs it.

mod wanted;

use super::Admin;
use crate::accounts::AccountsError;
use crate::fault::{Fault, store_fault};
use crate::persistence::GroupDefinitions;
use crate::persistence::definition;
use crate::persistence::definition_changes::Changes;
use crate::vhost::{Vhost, VhostSettings};
use courser_auth::{Directory, Record};
use courser_store::Lsn;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use wanted::Wanted;

/// The stay of a vhost that the group has kept in a recovery, and home does not know. No log ends there.
const UNKNOWN_AT_HOME: u64 = u64::MAX;
/// Accounts that are written to the log together.
const ACCOUNTS_AT_ONCE: usize = 256;

impl Admin {
    /// Where the log ended behind the last change of users, permissions, global parameters and what is
    /// said of vhosts. It never goes back. Nothing is waited for: threads ask that serve clients.
    pub fn definitions_version(&self) -> Lsn {
        Lsn(self.broker.definitions_version.load(Acquire))
    }

    /// What a group other than 0 has to have of these, as they are now: what may have changed since version `have`, where that
    /// is known, and else all of them. The caller waits for [`Admin::durable`] before it passes them on.
    ///
    /// # Errors
    /// When this is not the broker of group 0, or the group is that.
    pub fn definitions_of_group(&self, group: u16, have: Lsn) -> Result<GroupDefinitions, Fault> {
        self.broker.check_is_home("what groups adopt")?;
        if group == 0 {
            return Err(Fault::precondition_failed(
                "group 0 adopts nothing: it has all definitions",
            ));
        }
        // Locked while it is read, so that it is what the version says. Nothing is copied meanwhile but
        // what is said of vhosts.
        let defined = self.broker.defined.lock();
        let accounts = self.broker.accounts().directory();
        let changes = defined.since(have);
        let globals = self.broker.kept.globals(changes.as_ref());
        let vhosts: BTreeMap<String, VhostSettings> = self
            .broker
            .vhosts()
            .iter()
            .filter_map(|vhost| Some((vhost.name.clone(), vhost.settings()?)))
            .filter(|(_, settings)| settings.group == group)
            .collect();
        let version = defined.version();
        drop(defined);
        let mut records: Vec<(Vec<u8>, Vec<u8>)> = vhosts
            .iter()
            .filter(|(name, _)| changes.as_ref().is_none_or(|some| some.concern_vhost(name)))
            .map(|(name, settings)| {
                (definition::vhost_key(name), definition::vhost_value(settings))
            })
            .collect();
        records.extend(globals);
        for record in some_accounts(&accounts, changes.as_ref()) {
            let concerns_group = match &record {
                Record::Permission { vhost, .. } | Record::TopicPermission { vhost, .. } => {
                    vhosts.contains_key(vhost)
                }
                Record::User(_) | Record::UserDeleted(_) => true,
            };
            if let Some(value) = record.value().filter(|_| concerns_group) {
                records.push((record.key(), value));
            }
        }
        Ok(GroupDefinitions { group, version, changes, records })
    }

    /// Says how often the cluster was recovered from one member's copies. Home's log may end before what was adopted earlier.
    pub fn set_recoveries(&self, times: u32) {
        self.broker.recoveries.store(times, Relaxed);
    }

    /// The version of what was adopted last since the last recovery of the cluster; 0 if nothing was.
    pub fn adopted_version(&self) -> Lsn {
        let recoveries = self.broker.recoveries.load(Relaxed);
        let adopted = self.adopted().filter(|(_, times)| *times == recoveries);
        adopted.map_or(Lsn(0), |(version, _)| version)
    }

    /// What was adopted last: its version, and how often the cluster had been recovered then.
    fn adopted(&self) -> Option<(Lsn, u32)> {
        let kept = self.broker.kept.get(&[definition::ADOPTED])?;
        let (version, rest) = kept.split_first_chunk()?;
        let times = rest.first_chunk().map_or(0, |times| u32::from_le_bytes(*times));
        Some((Lsn(u64::from_le_bytes(*version)), times))
    }

    /// The vhosts that this group has and home does not know since the cluster was recovered, by name: home's copy of the log
    /// ended before it. They are kept until home says again that they are in this group.
    pub fn vhosts_unknown_at_home(&self) -> Vec<String> {
        let is_unknown = |vhost: &Arc<Vhost>| {
            vhost.settings().is_some_and(|settings| settings.stay == UNKNOWN_AT_HOME)
        };
        let unknown = self.broker.vhosts().into_iter().filter(is_unknown);
        unknown.map(|vhost| vhost.name.clone()).collect()
    }

    /// Makes what this broker, which is not that of group 0, has of users, permissions and global
    /// parameters, and the vhosts that it has, what these definitions say. A vhost whose settings name
    /// another group than this is being moved here, and left alone until they say that it is here.
    /// Returns whether they are newer than what was adopted before. The first since a recovery of the cluster may be of an
    /// earlier state of home: they remove no vhost.
    ///
    /// # Errors
    /// When they are older than that, or what has changed since a version that this group does not have, or another group's, or
    /// malformed, or can't be kept; part of it may have been done in the last case.
    pub fn adopt_definitions(&self, definitions: GroupDefinitions) -> Result<bool, Fault> {
        let own = self.broker.group();
        if own == 0 || definitions.group != own {
            return Err(Fault::precondition_failed(format_args!(
                "definitions of group {} are not for group {own}",
                definitions.group
            )));
        }
        let _alone = self.broker.adopting.lock();
        let (version, adopted) = (definitions.version, self.adopted_version());
        if version < adopted {
            return Err(Fault::precondition_failed(format_args!(
                "definitions of version {version} are older than those of version {adopted} that \
                 group {own} has"
            )));
        }
        if version == adopted {
            return Ok(false);
        }
        let since = definitions.changes.as_ref().map_or(Lsn(0), |changes| changes.since);
        if since > adopted {
            return Err(Fault::precondition_failed(format_args!(
                "group {own} has version {adopted}, and these are the changes since version {since} only"
            )));
        }
        let wanted = Wanted::read(definitions)?;
        // First what is not to be any more: no user keeps a right because there is no room for the rest. Only what restricts
        // rights goes last.
        let recoveries = self.broker.recoveries.load(Relaxed);
        let is_recovered = self.adopted().is_some_and(|(_, times)| times != recoveries);
        self.remove_vhosts_but(&wanted, is_recovered)?;
        let restrictions = self.remove_accounts_but(&wanted)?;
        self.adopt_globals(&wanted)?;
        // Who may enter a vhost is known before it is served: a client that comes at once would be refused else.
        self.adopt_accounts(&wanted)?;
        self.change_in_parts(restrictions)?;
        for (name, settings) in wanted.vhosts {
            self.adopt_vhost(&name, settings)?;
        }
        let mut value = version.0.to_le_bytes().to_vec();
        if recoveries > 0 {
            value.extend_from_slice(&recoveries.to_le_bytes());
        }
        self.broker.define_for_broker(vec![definition::ADOPTED], &value).map_err(store_fault)?;
        Ok(true)
    }

    /// Removes the vhosts that are not wanted. After a recovery they stay, and home's word for them has to be a new one.
    fn remove_vhosts_but(&self, wanted: &Wanted, is_recovered: bool) -> Result<(), Fault> {
        let concerned = |vhost: &Arc<Vhost>| {
            wanted.changes.as_ref().is_none_or(|changes| changes.concern_vhost(&vhost.name))
        };
        for vhost in self.all_vhosts().into_iter().filter(concerned) {
            let settings = vhost.settings().unwrap_or_default();
            let now = wanted.vhosts.get(&vhost.name);
            let stays = now.is_some_and(|now| now.stay == settings.stay);
            if settings.group != self.broker.group() || stays || settings.stay == UNKNOWN_AT_HOME {
                continue;
            }
            match (is_recovered, now) {
                (false, _) => self.remove_vhost(&vhost, |_| Ok(()))?,
                (true, None) => self.broker.change_settings(&vhost, |settings, _| {
                    settings.stay = UNKNOWN_AT_HOME;
                    Ok(())
                })?,
                // It is the one that home knows from now on.
                (true, Some(_)) => {}
            }
        }
        Ok(())
    }

    fn adopt_vhost(&self, name: &str, settings: VhostSettings) -> Result<(), Fault> {
        let there = self.broker.vhost(name);
        if there.is_none() && self.arrivals().iter().any(|one| one.name == name) {
            if settings.has_moved {
                return self.broker.accept_arrival(name, None, Some(settings));
            }
            // What was on its way here was another vhost of this name.
            self.broker.forget_arrival(name, |_| true)?;
            self.broker.check_alarms();
        }
        let is_served = there.as_ref().is_some_and(|vhost| self.broker.serves(vhost));
        let vhost = match there {
            Some(vhost) => {
                self.broker.change_settings(&vhost, |now, _| {
                    *now = settings;
                    Ok(())
                })?;
                vhost
            }
            None => {
                let _write = self.broker.shards_write.lock();
                self.broker.make_vhost(name, settings, None)?
            }
        };
        match is_served {
            true => Ok(()),
            // There is hardly anything in it.
            false => self.broker.configure_vhost(&vhost).map_err(Fault::precondition_failed),
        }
    }

    fn adopt_globals(&self, wanted: &Wanted) -> Result<(), Fault> {
        for (key, _) in self.broker.kept.globals(wanted.changes.as_ref()) {
            if !wanted.globals.contains_key(&key) {
                self.broker.forget_for_broker(&key).map_err(store_fault)?;
            }
        }
        for (key, value) in &wanted.globals {
            if self.broker.kept.get(key).as_ref() != Some(value) {
                self.broker.define_for_broker(key.clone(), value).map_err(store_fault)?;
            }
        }
        Ok(())
    }

    /// Takes away the users and permissions that are not wanted, and users with all that they may do who have been made anew.
    /// Returns what takes away the topic permissions of users who stay: without one a user may use every key, so that these
    /// go when what the user may do is as it is wanted.
    fn remove_accounts_but(&self, wanted: &Wanted) -> Result<Vec<Record>, Fault> {
        let there = some_accounts(&self.accounts(), wanted.changes.as_ref());
        let wanted = &wanted.accounts;
        let adopted = self.adopted_version();
        let is_another = |record: &&Record| is_another(record, wanted.get(&record.key()), adopted);
        let others = there.iter().filter(is_another).map(|record| user_of(record).to_owned());
        let others: BTreeSet<String> = others.collect();
        let stays = |record: &Record| {
            wanted.contains_key(&record.key()) && !others.contains(user_of(record))
        };
        let unwanted = there.into_iter().filter(|record| !stays(record));
        let (users, grants): (Vec<_>, Vec<_>) =
            unwanted.partition(|record| matches!(record, Record::User(_)));
        let gone: BTreeSet<String> = users.iter().map(|user| user_of(user).to_owned()).collect();
        let (restrictions, grants): (Vec<_>, Vec<_>) = grants.into_iter().partition(|record| {
            matches!(record, Record::TopicPermission { .. }) && !gone.contains(user_of(record))
        });
        // A user goes after what it may do: the log forgets each by itself.
        let records = grants.into_iter().chain(users).map(taken_away).collect();
        self.change_in_parts(records)?;
        Ok(restrictions.into_iter().map(taken_away).collect())
    }

    /// Makes the users and permissions that are wanted and not there as they are wanted. A topic permission comes before the
    /// permission that it restricts: alone it permits nothing.
    fn adopt_accounts(&self, wanted: &Wanted) -> Result<(), Fault> {
        let there = some_accounts(&self.accounts(), wanted.changes.as_ref()).into_iter();
        let there: BTreeMap<Vec<u8>, Record> = there.map(|record| (record.key(), record)).collect();
        let missing =
            wanted.accounts.iter().filter(|(key, record)| there.get(*key) != Some(*record));
        let mut missing: Vec<Record> = missing.map(|(_, record)| record.clone()).collect();
        missing.sort_by_key(|record| match record {
            Record::User(_) | Record::UserDeleted(_) => 0,
            Record::TopicPermission { .. } => 1,
            Record::Permission { .. } => 2,
        });
        self.change_in_parts(missing)
    }

    fn change_in_parts(&self, records: Vec<Record>) -> Result<(), Fault> {
        for part in records.chunks(ACCOUNTS_AT_ONCE) {
            // Nothing else changes them here: only one caller at a time adopts, and operators change them in group 0.
            let changed = self.broker.change_accounts(|_| Ok(part.to_vec()));
            changed.map_err(|error| match error {
                AccountsError::Store(error) => store_fault(error),
                other => Fault::internal_error(other),
            })?;
        }
        Ok(())
    }
}

/// The users and permissions that may have changed.
fn some_accounts(all: &Directory, changes: Option<&Changes>) -> Vec<Record> {
    match changes {
        None => all.records(),
        Some(changes) if !changes.concern_accounts() => Vec::new(),
        Some(changes) => {
            let mut some = all.records();
            some.retain(|record| changes.concern_account(record));
            some
        }
    }
}

/// Whether a user is another one than that of the same name that is wanted: made at home since the version that was adopted last.
/// Where an earlier one was made may not be known here.
fn is_another(there: &Record, wanted: Option<&Record>, adopted: Lsn) -> bool {
    match (there, wanted) {
        (Record::User(there), Some(Record::User(wanted))) => {
            wanted.made > adopted.0 && there.made != wanted.made
        }
        _ => false,
    }
}

/// The name of the user whom a record is of.
fn user_of(record: &Record) -> &str {
    match record {
        Record::User(user) => &user.name,
        Record::UserDeleted(user)
        | Record::Permission { user, .. }
        | Record::TopicPermission { user, .. } => user,
    }
}

/// What takes a user or a permission away.
fn taken_away(record: Record) -> Record {
    match record {
        Record::User(user) => Record::UserDeleted(user.name.clone()),
        Record::Permission { user, vhost, .. } => {
            Record::Permission { user, vhost, permission: None }
        }
        Record::TopicPermission { user, vhost, exchange, .. } => {
            Record::TopicPermission { user, vhost, exchange, permission: None }
        }
        gone @ Record::UserDeleted(_) => gone,
    }
}
