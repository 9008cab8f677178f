//! Users and permissions: what an operator may change of them.
//!
//! A change is in the log when the call returns, and holds at once, also for connections that are
//! open.

use super::{Admin, Event, EventKind};
use crate::accounts::AccountsError;
use courser_auth::{
    AccountError, Accounts, Directory, Login, Permission, Record, TopicPermission, User,
};
use std::sync::Arc;

impl Admin {
    /// All users and permissions as they are now.
    pub fn accounts(&self) -> Arc<Directory> {
        self.broker.accounts().directory()
    }

    /// Makes a user, or replaces one of the same name, which keeps its permissions. Returns whether
    /// it is new.
    ///
    /// # Errors
    /// If it can't be one, it comes from the configuration file, there are too many, or it can't be
    /// kept.
    pub fn put_user(&self, user: User) -> Result<bool, AccountsError> {
        let mut is_new = false;
        self.change(|all| {
            is_new = all.user(&user.name).is_none();
            Ok(vec![all.put_user(user)?])
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
        self.change(|all| all.delete_user(name))
    }

    /// Sets what a user may do in a vhost.
    ///
    /// # Errors
    /// If there is no such user or vhost, the user comes from the configuration file, a pattern can't
    /// be used, there are too many permissions, or it can't be kept.
    pub fn set_permission(
        &self,
        user: &str,
        vhost: &str,
        permission: Permission,
    ) -> Result<(), AccountsError> {
        self.vhost_is_there(vhost)?;
        self.change(|all| Ok(vec![all.set_permission(user, vhost, permission)?]))
    }

    /// Takes away what a user may do in a vhost: it can't enter it any more.
    ///
    /// # Errors
    /// If there is no such user, it comes from the configuration file, or it can't be kept.
    pub fn clear_permission(&self, user: &str, vhost: &str) -> Result<(), AccountsError> {
        self.change(|all| Ok(all.clear_permission(user, vhost)?.into_iter().collect()))
    }

    /// Sets with which routing keys a user may publish and bind to a topic exchange.
    ///
    /// # Errors
    /// As [`Admin::set_permission`].
    pub fn set_topic_permission(
        &self,
        user: &str,
        vhost: &str,
        exchange: &str,
        permission: TopicPermission,
    ) -> Result<(), AccountsError> {
        self.vhost_is_there(vhost)?;
        self.change(|all| Ok(vec![all.set_topic_permission(user, vhost, exchange, permission)?]))
    }

    /// Takes away the topic permissions of a user in a vhost: that of one exchange, or all.
    ///
    /// # Errors
    /// As [`Admin::clear_permission`].
    pub fn clear_topic_permissions(
        &self,
        user: &str,
        vhost: &str,
        exchange: Option<&str>,
    ) -> Result<(), AccountsError> {
        self.change(|all| all.clear_topic_permissions(user, vhost, exchange))
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

    /// Keeps the stronger hash that a login has made of the password, if it is still the same.
    ///
    /// # Errors
    /// If it can't be kept.
    pub fn keep_rehashed(&self, login: &Login) -> Result<(), AccountsError> {
        if self.broker.group() != 0 {
            // The log of group 0 has the users. It gets the stronger hash with a login there.
            return Ok(());
        }
        // The password stays what it was: nobody needs to hear of it.
        let kept = self
            .broker
            .change_accounts(|all| Ok(Accounts::rehash(all, login).into_iter().collect()));
        kept.map(drop)
    }

    fn change(
        &self,
        decide: impl FnOnce(&Directory) -> Result<Vec<Record>, AccountError>,
    ) -> Result<(), AccountsError> {
        self.broker.check_is_home("a user or permission").map_err(AccountsError::NotHome)?;
        let mut before = None;
        let changed = self.broker.change_accounts(|all| {
            before = Some(self.accounts());
            decide(all)
        })?;
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

    fn vhost_is_there(&self, name: &str) -> Result<(), AccountsError> {
        match self.broker.vhost(name) {
            Some(_) => Ok(()),
            None => Err(AccountsError::NoVhost(name.to_owned())),
        }
    }
}
