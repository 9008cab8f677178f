//! All users and permissions: a value that is cheap to copy. Commands only say what would change, so
//! that it can be written to a log before it is applied.

use crate::bounds::{NAME_BYTES_MAX, PERMISSIONS_MAX, USERS_MAX};
use crate::definitions::{PermissionRow, TopicPermissionRow};
use crate::error::AccountError;
use crate::password::PasswordHash;
use crate::permission::{Permission, TopicPermission};
use crate::record::{self, Record};
use crate::user::{Origin, User};
use imbl::OrdMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

mod lost;
mod refused;

/// The number of the next account, in any directory.
static NEXT_ACCOUNT: AtomicU64 = AtomicU64::new(0);

/// All users and permissions.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    users: OrdMap<String, Account>,
    permissions: usize,
    topic_permissions: usize,
}

/// A user with all that it may do.
#[derive(Clone, Debug)]
struct Account {
    user: Arc<User>,
    /// No other account has had it since this process was started.
    number: u64,
    /// By vhost.
    permissions: OrdMap<String, Permission>,
    /// By vhost and exchange.
    topics: OrdMap<(String, String), TopicPermission>,
}

impl Directory {
    /// The user of this name.
    pub fn user(&self, name: &str) -> Option<&Arc<User>> {
        self.users.get(name).map(|account| &account.user)
    }

    /// A number that tells the account of a user from all others that there have been, those of the same name included.
    /// It stays the same while the account changes, until a restart.
    pub fn account_number(&self, name: &str) -> Option<u64> {
        self.users.get(name).map(|account| account.number)
    }

    /// Users in the order of their names, from the one that follows `after`.
    pub fn users(&self, after: Option<&str>) -> impl Iterator<Item = &Arc<User>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.users
            .range::<(Bound<&str>, Bound<&str>), str>((from, Bound::Unbounded))
            .map(|(_, account)| &account.user)
    }

    /// How many users there are.
    pub fn user_count(&self) -> usize {
        self.users.len()
    }

    /// What a user may do in a vhost. A user of the configuration file may do everything.
    pub fn permission(&self, user: &str, vhost: &str) -> Option<Permission> {
        let account = self.users.get(user)?;
        if account.user.origin == Origin::ConfigurationFile {
            return Some(Permission::all());
        }
        account.permissions.get(vhost).cloned()
    }

    /// The topic permissions of a user in a vhost, with their exchanges.
    pub fn topic_permissions(&self, user: &str, vhost: &str) -> Vec<(&str, &TopicPermission)> {
        let Some(account) = self.users.get(user) else { return Vec::new() };
        account.topics_in(vhost, None).collect()
    }

    /// Whether a user has topic permissions in a vhost.
    pub fn has_topic_permissions(&self, user: &str, vhost: &str) -> bool {
        let account = self.users.get(user);
        account.is_some_and(|account| account.topics_in(vhost, None).next().is_some())
    }

    /// All permissions that are kept, by user and vhost.
    pub fn permission_rows(&self) -> impl Iterator<Item = PermissionRow> {
        self.users.iter().flat_map(|(name, account)| {
            let rows = account.permissions.iter();
            rows.map(|(vhost, permission)| record::permission_row(name, vhost, permission))
        })
    }

    /// All topic permissions, by user, vhost and exchange.
    pub fn topic_permission_rows(&self) -> impl Iterator<Item = TopicPermissionRow> {
        self.users.iter().flat_map(|(name, account)| {
            account.topics.iter().map(|((vhost, exchange), permission)| {
                record::topic_row(name, vhost, exchange, permission)
            })
        })
    }

    /// Everything that has to be kept, in an order in which it can be applied.
    pub fn records(&self) -> Vec<Record> {
        let kept = self.users.values().filter(|one| one.user.origin == Origin::Runtime);
        kept.flat_map(|account| {
            let user = Record::User(Arc::clone(&account.user));
            std::iter::once(user).chain(grants(account))
        })
        .collect()
    }

    /// Makes a user.
    ///
    /// # Errors
    /// If its name can't be one, if there is one of this name, or if there are too many.
    pub fn create_user(&self, user: User) -> Result<Record, AccountError> {
        check_name("user", &user.name)?;
        if let Some(known) = self.users.get(&user.name) {
            refuse_file_user(known)?;
            return Err(AccountError::UserExists(user.name));
        }
        if self.users.len() >= USERS_MAX {
            return Err(AccountError::TooManyUsers);
        }
        Ok(Record::User(Arc::new(User { origin: Origin::Runtime, ..user })))
    }

    /// Changes a user that exists, or makes one: `change` gets it as it is, or without a password,
    /// tags and limits.
    ///
    /// # Errors
    /// As [`Directory::create_user`] and [`Directory::change_user`].
    pub fn put_user(
        &self,
        name: &str,
        change: impl FnOnce(&mut User) -> Result<(), AccountError>,
    ) -> Result<Record, AccountError> {
        if self.users.contains_key(name) {
            return self.change_user(name, change);
        }
        let mut user = User::new(name, PasswordHash::none());
        change(&mut user)?;
        user.name = name.to_owned();
        self.create_user(user)
    }

    /// Changes a user that exists.
    ///
    /// # Errors
    /// If there is none, or `change` refuses.
    pub fn change_user(
        &self,
        name: &str,
        change: impl FnOnce(&mut User) -> Result<(), AccountError>,
    ) -> Result<Record, AccountError> {
        let account = self.changeable(name)?;
        let mut user = User::clone(&account.user);
        change(&mut user)?;
        // Under another name it would be another user's.
        user.name = name.to_owned();
        Ok(Record::User(Arc::new(user)))
    }

    /// Deletes a user with its permissions.
    ///
    /// # Errors
    /// If there is none, or it is a user of the configuration file.
    pub fn delete_user(&self, name: &str) -> Result<Vec<Record>, AccountError> {
        let account = self.changeable(name)?;
        let cleared = grants(account).map(cleared);
        let mut records: Vec<Record> = cleared.collect();
        records.push(Record::UserDeleted(name.to_owned()));
        Ok(records)
    }

    /// Sets what a user may do in a vhost. The caller has checked its patterns ([`Permission::check`]) without a lock, since
    /// each of them is compiled for that.
    ///
    /// # Errors
    /// If there is no such user, it is one of the configuration file, or there are too many permissions.
    pub fn set_permission(
        &self,
        user: &str,
        vhost: &str,
        permission: Permission,
    ) -> Result<Record, AccountError> {
        check_name("vhost", vhost)?;
        let account = self.changeable(user)?;
        if self.permissions >= PERMISSIONS_MAX && !account.permissions.contains_key(vhost) {
            return Err(AccountError::TooManyPermissions);
        }
        let (user, vhost) = (user.to_owned(), vhost.to_owned());
        Ok(Record::Permission { user, vhost, permission: Some(permission) })
    }

    /// Takes away what a user may do in a vhost. `None` if there is nothing.
    ///
    /// # Errors
    /// If there is no such user, or it is one of the configuration file.
    pub fn clear_permission(
        &self,
        user: &str,
        vhost: &str,
    ) -> Result<Option<Record>, AccountError> {
        let account = self.changeable(user)?;
        Ok(account.permissions.contains_key(vhost).then(|| Record::Permission {
            user: user.to_owned(),
            vhost: vhost.to_owned(),
            permission: None,
        }))
    }

    /// Sets with which routing keys a user may publish and bind to a topic exchange. The caller has checked its patterns
    /// likewise.
    ///
    /// # Errors
    /// As [`Directory::set_permission`], and if there can't be such an exchange.
    pub fn set_topic_permission(
        &self,
        user: &str,
        vhost: &str,
        exchange: &str,
        permission: TopicPermission,
    ) -> Result<Record, AccountError> {
        check_name("vhost", vhost)?;
        if exchange.len() > NAME_BYTES_MAX {
            return Err(AccountError::Name("exchange"));
        }
        let account = self.changeable(user)?;
        let known = account.topics.contains_key(&(vhost.to_owned(), exchange.to_owned()));
        if self.topic_permissions >= PERMISSIONS_MAX && !known {
            return Err(AccountError::TooManyPermissions);
        }
        let (user, vhost, exchange) = (user.to_owned(), vhost.to_owned(), exchange.to_owned());
        Ok(Record::TopicPermission { user, vhost, exchange, permission: Some(permission) })
    }

    /// Takes away the topic permissions of a user in a vhost: that of one exchange, or all.
    ///
    /// # Errors
    /// If there is no such user, or it is one of the configuration file.
    pub fn clear_topic_permissions(
        &self,
        user: &str,
        vhost: &str,
        exchange: Option<&str>,
    ) -> Result<Vec<Record>, AccountError> {
        let account = self.changeable(user)?;
        let meant = account.topics_in(vhost, exchange);
        let records = meant.map(|(exchange, _)| Record::TopicPermission {
            user: user.to_owned(),
            vhost: vhost.to_owned(),
            exchange: exchange.to_owned(),
            permission: None,
        });
        Ok(records.collect())
    }

    /// Takes away everybody's permissions in a vhost that is deleted.
    pub fn forget_vhost(&self, vhost: &str) -> Vec<Record> {
        let all = self.users.values().flat_map(grants);
        let meant = all.filter(|record| match record {
            Record::Permission { vhost: at, .. } | Record::TopicPermission { vhost: at, .. } => {
                at == vhost
            }
            Record::User(_) | Record::UserDeleted(_) => false,
        });
        meant.map(cleared).collect()
    }

    /// Adds the user of the configuration file. Returns whether it counts: a user of this name that
    /// was made at run time goes before it.
    ///
    /// # Errors
    /// If its name can't be one.
    pub fn add_file_user(&mut self, user: User) -> Result<bool, AccountError> {
        check_name("user", &user.name)?;
        if self.users.contains_key(&user.name) {
            return Ok(false);
        }
        let user = User { origin: Origin::ConfigurationFile, ..user };
        self.users.insert(user.name.clone(), Account::of(Arc::new(user)));
        Ok(true)
    }

    /// Carries out what one of the commands said, or what was kept of it. Permissions of a user that
    /// there is not mean nothing.
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::User(user) => match self.users.get_mut(&user.name) {
                Some(account) => account.user = user,
                None => drop(self.users.insert(user.name.clone(), Account::of(user))),
            },
            Record::UserDeleted(name) => {
                if let Some(account) = self.users.remove(&name) {
                    self.permissions -= account.permissions.len();
                    self.topic_permissions -= account.topics.len();
                }
            }
            Record::Permission { user, vhost, permission } => {
                let Some(account) = self.users.get_mut(&user) else { return };
                let permissions = &mut account.permissions;
                let before = permissions.len();
                match permission {
                    Some(permission) => drop(permissions.insert(vhost, permission)),
                    None => drop(permissions.remove(&vhost)),
                }
                self.permissions = self.permissions + permissions.len() - before;
            }
            Record::TopicPermission { user, vhost, exchange, permission } => {
                let Some(account) = self.users.get_mut(&user) else { return };
                let topics = &mut account.topics;
                let before = topics.len();
                match permission {
                    Some(permission) => drop(topics.insert((vhost, exchange), permission)),
                    None => drop(topics.remove(&(vhost, exchange))),
                }
                self.topic_permissions = self.topic_permissions + topics.len() - before;
            }
        }
    }

    fn changeable(&self, name: &str) -> Result<&Account, AccountError> {
        let account = self.users.get(name).ok_or_else(|| AccountError::NoUser(name.to_owned()))?;
        refuse_file_user(account)?;
        Ok(account)
    }
}

impl Account {
    fn of(user: Arc<User>) -> Self {
        let number = NEXT_ACCOUNT.fetch_add(1, Ordering::Relaxed);
        Account { user, number, permissions: OrdMap::new(), topics: OrdMap::new() }
    }

    /// Its topic permissions in a vhost, by exchange; or that of one exchange.
    fn topics_in(
        &self,
        vhost: &str,
        only: Option<&str>,
    ) -> impl Iterator<Item = (&str, &TopicPermission)> {
        let first = (vhost.to_owned(), only.unwrap_or_default().to_owned());
        let meant = self.topics.range(first..).take_while(move |((at, exchange), _)| {
            at == vhost && only.is_none_or(|only| exchange == only)
        });
        meant.map(|((_, exchange), permission)| (exchange.as_str(), permission))
    }
}

fn refuse_file_user(account: &Account) -> Result<(), AccountError> {
    match account.user.origin {
        Origin::ConfigurationFile => Err(AccountError::InFile(account.user.name.clone())),
        Origin::Runtime | Origin::Elsewhere => Ok(()),
    }
}

fn check_name(what: &'static str, name: &str) -> Result<(), AccountError> {
    if (1..=NAME_BYTES_MAX).contains(&name.len()) { Ok(()) } else { Err(AccountError::Name(what)) }
}

/// What the user of an account may do, as it is kept.
fn grants(account: &Account) -> impl Iterator<Item = Record> {
    let user = &account.user.name;
    let permissions = account.permissions.iter().map(|(vhost, permission)| Record::Permission {
        user: user.clone(),
        vhost: vhost.clone(),
        permission: Some(permission.clone()),
    });
    let topics =
        account.topics.iter().map(|((vhost, exchange), permission)| Record::TopicPermission {
            user: user.clone(),
            vhost: vhost.clone(),
            exchange: exchange.clone(),
            permission: Some(permission.clone()),
        });
    permissions.chain(topics)
}

/// The same permission, taken away.
fn cleared(record: Record) -> Record {
    match record {
        Record::Permission { user, vhost, .. } => {
            Record::Permission { user, vhost, permission: None }
        }
        Record::TopicPermission { user, vhost, exchange, .. } => {
            Record::TopicPermission { user, vhost, exchange, permission: None }
        }
        other => other,
    }
}
