//! Users and permissions: what an operator may change of them.
//!
//! A change is in the log when the call returns, and holds at once, also for connections that are
//! open.

use super::{Admin, Event, EventKind};
use crate::accounts::AccountsError;
use courser_auth::{
    AccountError, Accounts, Directory, Login, Permission, Record, TopicPermission, User,
};
use parking_lot::Mutex;
use std::sync::Arc;

/// The user on whose behalf an [`Admin`] changes something, as it was when it was let in, or as it has made itself since.
pub(super) struct Author(Mutex<Arc<User>>);

impl Author {
    pub fn new(user: Arc<User>) -> Self {
        Author(Mutex::new(user))
    }

    /// Refuses changes of a user who has been deleted or changed meanwhile. A login that replaces the hash of the password
    /// changes nothing.
    fn check(&self, accounts: &Accounts, all: &Directory) -> Result<(), AccountsError> {
        let known = self.0.lock();
        let is_same =
            |now: &Arc<User>| accounts.has_password(now, &known.password) && now.tags == known.tags;
        match all.user(&known.name).is_some_and(is_same) {
            true => Ok(()),
            false => Err(AccountsError::NotPermitted),
        }
    }

    /// Takes note of what the user has changed of itself, as an import may: what follows is still its own.
    fn follow(&self, changed: &[Record]) {
        let mut known = self.0.lock();
        for record in changed {
            match record {
                Record::User(user) if user.name == known.name => *known = Arc::clone(user),
                _ => {}
            }
        }
    }
}

impl Admin {
    /// All users and permissions as they are now.
    pub fn accounts(&self) -> Arc<Directory> {
        self.broker.accounts().directory()
    }

    /// Looks whether the user on whose behalf it changes things is there still, with the same password and tags, for what
    /// goes on for long. Only home knows: elsewhere there is nothing to look at.
    ///
    /// # Errors
    /// If the user has been changed or deleted by another meanwhile.
    pub fn check_author(&self) -> Result<(), AccountsError> {
        match &self.author {
            Some(author) if self.broker.group() == 0 => {
                author.check(self.broker.accounts(), &self.accounts())
            }
            _ => Ok(()),
        }
    }

    /// Makes a user.
    ///
    /// # Errors
    /// If there is one of this name, it can't be one, there are too many, or it can't be kept.
    pub fn create_user(&self, user: User) -> Result<(), AccountsError> {
        self.change(|all| Ok(vec![all.create_user(user)?]))
    }

    /// Changes a user, or makes one: `change` gets it as it is, or without a password, tags and
    /// limits. One that is new may do what `permissions` say, by vhost. Returns whether it is new.
    ///
    /// # Errors
    /// If it can't be one, it comes from the configuration file, `change` refuses, there is no vhost
    /// of a permission, there are too many, or it can't be kept.
    pub fn put_user(
        &self,
        name: &str,
        permissions: &[(String, Permission)],
        change: impl FnOnce(&mut User) -> Result<(), AccountError>,
    ) -> Result<bool, AccountsError> {
        // Compiled before any lock is taken, as in all that sets permissions.
        for (_, permission) in permissions {
            permission.check()?;
        }
        let mut is_new = false;
        self.change(|all| {
            is_new = all.user(name).is_none();
            let record = all.put_user(name, change)?;
            let mut with_user = Directory::clone(all);
            with_user.apply(record.clone());
            let mut records = vec![record];
            for (vhost, permission) in permissions.iter().filter(|_| is_new) {
                self.vhost_is_there(vhost)?;
                records.push(with_user.set_permission(name, vhost, permission.clone())?);
            }
            Ok(records)
        })?;
        Ok(is_new)
    }

    /// Changes a user: its password, tags or limits.
    ///
    /// # Errors
    /// If there is none, it comes from the configuration file, `change` refuses, or it can't be kept.
    pub fn change_user(
        &self,
        name: &str,
        change: impl FnOnce(&mut User) -> Result<(), AccountError>,
    ) -> Result<(), AccountsError> {
        self.change(|all| Ok(vec![all.change_user(name, change)?]))
    }

    /// Deletes a user with its permissions, and closes its connections.
    ///
    /// # Errors
    /// If there is none, it comes from the configuration file, or it can't be kept.
    pub fn delete_user(&self, name: &str) -> Result<(), AccountsError> {
        self.change(|all| Ok(all.delete_user(name)?))
    }

    /// Sets what a user may do in a vhost. Returns whether it could not enter that before.
    ///
    /// # Errors
    /// If there is no such user or vhost, the user comes from the configuration file, a pattern can't
    /// be used, there are too many permissions, or it can't be kept.
    pub fn set_permission(
        &self,
        user: &str,
        vhost: &str,
        permission: Permission,
    ) -> Result<bool, AccountsError> {
        permission.check()?;
        let mut is_new = false;
        self.change(|all| {
            self.vhost_is_there(vhost)?;
            is_new = all.permission(user, vhost).is_none();
            Ok(vec![all.set_permission(user, vhost, permission)?])
        })?;
        Ok(is_new)
    }

    /// Takes away what a user may do in a vhost: it can't enter it any more. Returns whether it could.
    ///
    /// # Errors
    /// If there is no such user, it comes from the configuration file, or it can't be kept.
    pub fn clear_permission(&self, user: &str, vhost: &str) -> Result<bool, AccountsError> {
        let mut was_there = false;
        self.change(|all| {
            let cleared = all.clear_permission(user, vhost)?;
            was_there = cleared.is_some();
            Ok(cleared.into_iter().collect())
        })?;
        Ok(was_there)
    }

    /// Sets with which routing keys a user may publish and bind to a topic exchange. Returns whether
    /// it had no such permission in the vhost before.
    ///
    /// # Errors
    /// As [`Admin::set_permission`].
    pub fn set_topic_permission(
        &self,
        user: &str,
        vhost: &str,
        exchange: &str,
        permission: TopicPermission,
    ) -> Result<bool, AccountsError> {
        permission.check()?;
        let mut is_first = false;
        self.change(|all| {
            self.vhost_is_there(vhost)?;
            is_first = !all.has_topic_permissions(user, vhost);
            Ok(vec![all.set_topic_permission(user, vhost, exchange, permission)?])
        })?;
        Ok(is_first)
    }

    /// Gives a user a topic permission that is refused now and was taken once, if it has none for the exchange: without one
    /// it could use every key, and with this none.
    ///
    /// # Errors
    /// As [`Admin::set_topic_permission`], but for the patterns.
    pub fn keep_topic_permission(
        &self,
        user: &str,
        vhost: &str,
        exchange: &str,
        permission: TopicPermission,
    ) -> Result<(), AccountsError> {
        self.change(|all| {
            self.vhost_is_there(vhost)?;
            let kept = all.set_topic_permission(user, vhost, exchange, permission)?;
            let has_one = all.topic_permissions(user, vhost).iter().any(|(of, _)| *of == exchange);
            Ok(if has_one { Vec::new() } else { vec![kept] })
        })
    }

    /// Takes away the topic permissions of a user in a vhost: that of one exchange, or all. Returns whether there was one.
    ///
    /// # Errors
    /// As [`Admin::clear_permission`].
    pub fn clear_topic_permissions(
        &self,
        user: &str,
        vhost: &str,
        exchange: Option<&str>,
    ) -> Result<bool, AccountsError> {
        let mut was_there = false;
        self.change(|all| {
            let cleared = all.clear_topic_permissions(user, vhost, exchange)?;
            was_there = !cleared.is_empty();
            Ok(cleared)
        })?;
        Ok(was_there)
    }

    /// Sets a limit of a user: `max-connections` or `max-channels`; a negative value lifts it. What
    /// is open already stays.
    ///
    /// # Errors
    /// If there is no such user or limit, the user comes from the configuration file, or it can't be
    /// kept.
    pub fn set_user_limit(&self, user: &str, name: &str, value: i64) -> Result<(), AccountsError> {
        self.change_user(user, |user| user.limits.set(name, value))
    }

    /// Lifts a limit of a user.
    ///
    /// # Errors
    /// As [`Admin::set_user_limit`].
    pub fn clear_user_limit(&self, user: &str, name: &str) -> Result<(), AccountsError> {
        self.change_user(user, |user| user.limits.clear(name))
    }

    /// Keeps the stronger hash that a login has made of the password, if it is still the same. Returns whether it has: not
    /// where the log has no room, or an append may wait for some, as the login would wait with it. The next login tries again.
    ///
    /// # Errors
    /// If it can't be kept.
    pub fn keep_rehashed(&self, login: &Login) -> Result<bool, AccountsError> {
        if self.broker.group() != 0 {
            // The log of group 0 has the users. It gets the stronger hash with a login there.
            return Ok(false);
        }
        let home = self.broker.home();
        if !home.store.has_room() || home.store.may_block() {
            return Ok(false);
        }
        // The password stays what it was: no event tells of it.
        let kept = self.broker.change_accounts(|all| {
            Ok(self.broker.accounts().rehash(all, login).into_iter().collect())
        });
        kept.map(|_| true)
    }

    fn change(
        &self,
        decide: impl FnOnce(&Directory) -> Result<Vec<Record>, AccountsError>,
    ) -> Result<(), AccountsError> {
        self.change_any(|all| {
            let records = decide(all)?;
            if self.spares_protected {
                records.iter().try_for_each(|record| refuse_protected(all, record))?;
            }
            Ok(records)
        })
    }

    /// Changes also users who are protected.
    fn change_any(
        &self,
        decide: impl FnOnce(&Directory) -> Result<Vec<Record>, AccountsError>,
    ) -> Result<(), AccountsError> {
        self.broker.check_is_home("a user or permission").map_err(AccountsError::NotHome)?;
        let mut before = None;
        let changed = self.broker.change_accounts(|all| {
            let check = |author: &Arc<Author>| author.check(self.broker.accounts(), all);
            self.author.as_ref().map_or(Ok(()), check)?;
            before = Some(self.accounts());
            decide(all)
        })?;
        if let Some(author) = &self.author {
            author.follow(&changed);
        }
        if let Some(before) = before {
            changed.iter().for_each(|record| self.tell_of_account(&before, record));
        }
        Ok(())
    }

    /// Tells those who follow what a change to the accounts has been.
    fn tell_of_account(&self, before: &Directory, record: &Record) {
        let tell = |kind, vhost: &str, user: &str, exchange: Option<&str>| {
            self.broker.monitor.events.tell(|| {
                let event = Event::new(self.broker.now_ms(), kind, vhost, user);
                match exchange {
                    Some(exchange) => event.with("exchange", exchange),
                    None => event,
                }
            });
        };
        match record {
            Record::User(user) => {
                let name = user.name.as_str();
                let Some(old) = before.user(name) else {
                    return tell(EventKind::UserCreated, "", name, None);
                };
                if old.password != user.password {
                    tell(EventKind::UserPasswordChanged, "", name, None);
                }
                if old.tags != user.tags {
                    tell(EventKind::UserTagsSet, "", name, None);
                }
                if old.limits != user.limits {
                    tell(EventKind::UserLimitsSet, "", name, None);
                }
            }
            Record::UserDeleted(name) => tell(EventKind::UserDeleted, "", name, None),
            Record::Permission { user, vhost, permission } => {
                let kind = match permission {
                    Some(_) => EventKind::PermissionSet,
                    None => EventKind::PermissionCleared,
                };
                tell(kind, vhost, user, None);
            }
            Record::TopicPermission { user, vhost, exchange, permission } => {
                let kind = match permission {
                    Some(_) => EventKind::TopicPermissionSet,
                    None => EventKind::TopicPermissionCleared,
                };
                tell(kind, vhost, user, Some(exchange));
            }
        }
    }

    /// To be asked while the accounts are locked: a vhost that goes takes its permissions along then.
    fn vhost_is_there(&self, name: &str) -> Result<(), AccountsError> {
        match self.broker.vhost(name) {
            Some(vhost) if !vhost.is_deleted() => Ok(()),
            _ => Err(AccountsError::NoVhost(name.to_owned())),
        }
    }
}

/// Refuses a record that changes a user with the tag `protected`, or what it may do.
fn refuse_protected(all: &Directory, record: &Record) -> Result<(), AccountError> {
    let (name, is_same) = match record {
        Record::User(user) => (&user.name, all.user(&user.name).is_some_and(|known| known == user)),
        Record::UserDeleted(name) => (name, false),
        Record::Permission { user, vhost, permission } => {
            (user, all.permission(user, vhost) == *permission)
        }
        Record::TopicPermission { user, vhost, exchange, permission } => {
            let all = all.topic_permissions(user, vhost);
            let known = all.iter().find(|(of, _)| of == exchange).map(|(_, known)| *known);
            (user, known == permission.as_ref())
        }
    };
    match all.user(name).filter(|_| !is_same) {
        Some(user) => user.refuse_protected(),
        None => Ok(()),
    }
}
