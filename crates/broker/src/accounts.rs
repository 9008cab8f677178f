//! The accounts of the broker: asked at `connection.open`, changed by an operator, kept in the log.

use crate::broker::Broker;
use crate::fault::Fault;
use crate::persistence::gone::Gone;
use crate::shard::Shard;
use crate::vhost::{Admission, Vhost};
use courser_auth::{
    Access, AccountError, Accounts, Directory, Grant, Login, Record as AccountRecord, User,
};
use courser_store::critical;
use courser_store::{Record, StoreError};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Why a change to the accounts was not made.
#[derive(Debug)]
pub enum AccountsError {
    /// It can't be meant.
    Refused(AccountError),
    /// There is no vhost of this name.
    NoVhost(String),
    /// They are changed at the broker of another group only.
    NotHome(Fault),
    /// The user on whose behalf it is to be made has been changed or deleted meanwhile.
    NotPermitted,
    /// It can't be kept.
    Store(StoreError),
}

impl fmt::Display for AccountsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccountsError::Refused(error) => error.fmt(f),
            AccountsError::NoVhost(name) => write!(f, "vhost '{name}' does not exist"),
            AccountsError::NotHome(fault) => f.write_str(&fault.explanation),
            AccountsError::NotPermitted => {
                f.write_str("the user who asks for this has been changed or deleted meanwhile")
            }
            AccountsError::Store(error) => write!(f, "the change can't be kept: {error}"),
        }
    }
}

impl std::error::Error for AccountsError {}

impl From<AccountError> for AccountsError {
    fn from(error: AccountError) -> Self {
        AccountsError::Refused(error)
    }
}

impl Broker {
    /// Users and permissions.
    pub fn accounts(&self) -> &Arc<Accounts> {
        &self.accounts
    }

    /// Lets a user who has logged in into a vhost (`connection.open`), or says what it hears
    /// instead.
    ///
    /// # Errors
    /// As [`Broker::admit`], and 530 if the user has been deleted since, even if it has been made again, or has another
    /// password.
    pub fn admit_login(&self, login: &Login, vhost: &str) -> Result<Admission, Fault> {
        if let Some(grant) = &login.grant {
            return self.admit_granted(grant, vhost);
        }
        let user = &login.user.name;
        if !self.accounts.still_holds(login) {
            return Err(Fault::not_allowed(format_args!(
                "access to vhost '{vhost}' refused for user '{user}': it has been deleted or has got another password since it \
                 logged in"
            )));
        }
        self.admit_with(user, login.account, vhost, self.accounts.access(user, vhost))
    }

    /// Lets in the user who has this name now.
    ///
    /// # Errors
    /// 530 if there is no such vhost, one of the limits is reached, or the user may not enter it.
    pub fn admit(&self, user: &str, vhost: &str) -> Result<Admission, Fault> {
        let account = self.accounts.directory().account_number(user);
        self.admit_with(user, account, vhost, self.accounts.access(user, vhost))
    }

    /// As [`Broker::admit`], for a user who has logged in elsewhere.
    ///
    /// # Errors
    /// Likewise.
    pub fn admit_granted(&self, grant: &Arc<Grant>, vhost: &str) -> Result<Admission, Fault> {
        let user = Arc::clone(grant.authority().user());
        self.admit_with(&user.name, None, vhost, Access::granted(grant, vhost))
    }

    fn admit_with(
        &self,
        user: &str,
        account: Option<u64>,
        vhost: &str,
        mut access: Access,
    ) -> Result<Admission, Fault> {
        // What is not there is said first.
        self.served(vhost)?;
        critical::assert_outside("a permission is asked for");
        // It counts when it is let in: another program may take its time, and the vhost may be gone by then.
        access.enter().map_err(Fault::not_allowed)?;
        let admission = self.served(vhost)?.admit(user)?;
        let member = self.members.join(user, account, self.limits_of(user))?;
        Ok(admission.of_member(member, access))
    }

    /// The vhost that clients are let into by this name.
    fn served(&self, vhost: &str) -> Result<Arc<Vhost>, Fault> {
        match self.vhost(vhost) {
            Some(found) if self.serves(&found) => Ok(found),
            None if self.group == 0 => {
                Err(Fault::not_allowed(format_args!("vhost {vhost} not found")))
            }
            // Home has let the client pass, or it was on its way here: that vhost has just moved.
            _ => Err(moves(vhost)),
        }
    }

    /// The limits of a user; one that is gone has none, as it may do nothing anyway.
    pub(crate) fn limits_of(&self, user: &str) -> courser_auth::UserLimits {
        self.accounts.directory().user(user).map(|user| user.limits).unwrap_or_default()
    }

    /// Makes a change to the accounts: it is in the log before it takes effect, which it does at
    /// once, also for connections that are open.
    pub(crate) fn change_accounts(
        &self,
        decide: impl FnOnce(&Directory) -> Result<Vec<AccountRecord>, AccountsError>,
    ) -> Result<Vec<AccountRecord>, AccountsError> {
        self.change_accounts_and_forget(decide, Vec::new(), || ())
    }

    /// The same, and has the log forget other definitions of the broker, together or not at all. Calls `forgotten` before another
    /// one can be changed.
    pub(crate) fn change_accounts_and_forget(
        &self,
        decide: impl FnOnce(&Directory) -> Result<Vec<AccountRecord>, AccountsError>,
        mut keys: Vec<Vec<u8>>,
        forgotten: impl FnOnce(),
    ) -> Result<Vec<AccountRecord>, AccountsError> {
        let shard = self.home();
        let changed = {
            let mut defined = self.defined.lock();
            let _gate = shard.gate.read();
            // Behind whatever made and deleted another user of the same name.
            let at = shard.store.end().0 + 1;
            let decide = |directory: &Directory| {
                let mut records = decide(directory)?;
                if self.group == 0 {
                    note_made(directory, &mut records, at);
                }
                Ok(records)
            };
            let gone = keys.clone();
            let mut keep = |records: &[AccountRecord]| {
                keep(&shard, records, std::mem::take(&mut keys)).map_err(AccountsError::Store)
            };
            let changed = self.accounts.change(decide, &mut keep)?;
            if changed.is_empty() {
                keep(&[])?;
            }
            if !gone.is_empty() || !changed.is_empty() {
                forgotten();
                let changed = changed.iter().map(AccountRecord::key);
                defined.add(gone.into_iter().chain(changed), shard.store.end());
            }
            changed
        };
        self.follow_accounts(&changed);
        Ok(changed)
    }

    /// Ends what is remembered of permissions that have changed, and the connections of users that
    /// are gone.
    fn follow_accounts(&self, changed: &[AccountRecord]) {
        let mut vhosts = BTreeSet::new();
        for record in changed {
            match record {
                AccountRecord::Permission { vhost, .. }
                | AccountRecord::TopicPermission { vhost, .. } => {
                    vhosts.insert(vhost);
                }
                AccountRecord::User(_) | AccountRecord::UserDeleted(_) => {}
            }
        }
        for vhost in vhosts {
            if let Some(vhost) = self.vhost(vhost) {
                // Routes are remembered together with the permission to take them.
                vhost.routes_changed();
            }
        }
        for record in changed {
            if let AccountRecord::UserDeleted(name) = record {
                let fault = Fault::new(320, format_args!("user '{name}' was deleted"));
                self.members.close_all(name, &fault);
            }
        }
    }

    /// Takes back the accounts that were there before a restart. Users come first: permissions are
    /// theirs.
    pub(crate) fn restore_accounts(&self, records: Vec<AccountRecord>) {
        let mut directory = Directory::clone(&self.accounts.directory());
        let is_user = |record: &AccountRecord| matches!(record, AccountRecord::User(_));
        let (users, rest): (Vec<_>, Vec<_>) = records.into_iter().partition(is_user);
        for record in users.into_iter().chain(rest) {
            directory.apply(record);
        }
        self.accounts.restore(directory);
    }

    /// Adds the user of the configuration file, which is kept nowhere else. Returns whether it counts: a
    /// user of this name that was made at run time goes before it.
    ///
    /// # Errors
    /// If its name can't be one.
    pub fn add_file_user(&self, user: User) -> Result<bool, AccountError> {
        let mut directory = Directory::clone(&self.accounts.directory());
        let counts = directory.add_file_user(user)?;
        self.accounts.restore(directory);
        Ok(counts)
    }

    /// Every user and permission that has to survive, as key and value.
    pub(crate) fn for_each_account(&self, each: &mut dyn FnMut(&[u8], &[u8])) {
        for record in self.accounts.directory().records() {
            if let Some(value) = record.value() {
                each(&record.key(), &value);
            }
        }
    }
}

/// Notes of users where in the log they are made. Other groups have that from home.
fn note_made(directory: &Directory, records: &mut [AccountRecord], at: u64) {
    for record in records {
        if let AccountRecord::User(user) = record {
            let made = directory.user(&user.name).map_or(at, |known| known.made);
            if user.made != made {
                Arc::make_mut(user).made = made;
            }
        }
    }
}

/// What a client hears that was on its way to a vhost when that went to another group: no mistake of its own, so it comes again.
fn moves(vhost: &str) -> Fault {
    let text = format_args!("vhost '{vhost}' is in another group of the cluster now; try again");
    Fault::new(320, text)
}

/// Writes changes to the log: what is set, and what is taken away with the definitions of `keys`, each together or not at all.
fn keep(shard: &Shard, records: &[AccountRecord], keys: Vec<Vec<u8>>) -> Result<(), StoreError> {
    let kept: Vec<_> = records.iter().map(|record| (record.key(), record.value())).collect();
    let (set, gone): (Vec<_>, Vec<_>) = kept.iter().partition(|(_, value)| value.is_some());
    let set = set
        .iter()
        .filter_map(|(key, value)| Some(Record::Defined { key, value: value.as_deref()? }));
    let set: Vec<Record<'_>> = set.collect();
    if !set.is_empty() {
        shard.define(&set)?;
    }
    let gone = gone.into_iter().map(|(key, _)| key.clone());
    let gone: Vec<Vec<u8>> = keys.into_iter().chain(gone).collect();
    if !gone.is_empty() {
        // Also on a full disk: a user who is to be kept out must not stay because there is no room.
        shard.forget(Gone::of_keys(gone))?;
    }
    Ok(())
}
