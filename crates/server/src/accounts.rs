//! The users that a broker starts with: those of its journal, the one of the configuration file, or, if it is new and would have
//! none at all, `guest`.

use crate::config::{Auth, Config};
use crate::server::StartError;
use courser_auth::{Hashing, PasswordHash, Permission, Settings, Tags, User, UserLimits};
use courser_broker::Broker;
use courser_broker::admin::Admin;
use courser_management::FIRST_USERS_MADE;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The user that a new broker makes when there is none.
pub(crate) const GUEST: &str = "guest";

/// Sets the accounts up, and tells the log who there is and why.
pub(crate) fn set_up(broker: &Arc<Broker>, config: &Config) -> Result<(), StartError> {
    let auth = &config.auth;
    configure(broker, auth);
    let admin = broker.admin();
    let kept = admin.accounts().user_count();
    if auth.names_a_user() {
        if auth.user == GUEST && is_untouched_guest(broker) {
            // No setting names it: it is only what a new broker without any user makes.
            admin.delete_user(GUEST)?;
        }
        add_file_user(broker, auth)?;
    } else if kept == 0 && admin.global_parameter(FIRST_USERS_MADE).is_none() {
        make_guest(broker, auth.hashing())?;
    } else if kept == 0 {
        tracing::warn!(
            "this broker has no users of its own, and makes guest at its first start only: courser ctl add_user makes \
             one, over the socket in the data folder, which needs no login"
        );
    }
    if kept > 0 {
        tracing::info!(users = kept, "users kept in the journal");
    }
    note_first_users(&admin);
    Ok(())
}

/// Has later starts make no `guest` if the last user is deleted. Noted behind the users: after a crash between, there are some, or
/// the broker still counts as new.
fn note_first_users(admin: &Admin) {
    if admin.global_parameter(FIRST_USERS_MADE).is_none()
        && let Err(error) = admin.set_own_parameter(FIRST_USERS_MADE, "true")
    {
        tracing::warn!(%error, "it can't be noted that this broker has users: the next start tries again");
    }
}

/// Sets the accounts of the broker of another group than home up. It adopts those of home, but for the user of the
/// configuration file, which is in no log.
pub(crate) fn set_up_in_group(broker: &Arc<Broker>, config: &Config) -> Result<(), StartError> {
    configure(broker, &config.auth);
    if config.auth.names_a_user() {
        broker.add_file_user(file_user(&config.auth)?)?;
    }
    Ok(())
}

fn configure(broker: &Arc<Broker>, auth: &Auth) {
    let mut loopback_users: BTreeSet<String> = auth.loopback_users.iter().cloned().collect();
    if !auth.names_a_user() && !auth.loopback_only {
        loopback_users.remove(GUEST);
    }
    broker.accounts().configure(Settings { loopback_users, hashing: auth.hashing() });
}

fn file_user(auth: &Auth) -> Result<User, StartError> {
    let mut user = User::new(&auth.user, PasswordHash::quick(auth.password.as_bytes())?);
    user.tags = Tags::administrator();
    user.loopback_only = auth.loopback_only;
    Ok(user)
}

fn add_file_user(broker: &Arc<Broker>, auth: &Auth) -> Result<(), StartError> {
    let user = file_user(auth)?;
    let from = if auth.loopback_only { "this machine only" } else { "everywhere" };
    let user_name = auth.user.as_str();
    if broker.add_file_user(user)? {
        tracing::info!(
            user = user_name,
            from,
            "this user comes from the configuration: an administrator of all vhosts"
        );
    } else {
        tracing::warn!(
            user = user_name,
            "the configuration names a user that was also made at run time: the latter counts, with \
             its own password and permissions. Delete it at run time, or name another"
        );
    }
    Ok(())
}

/// Whether `guest` is as this broker has made it.
fn is_untouched_guest(broker: &Arc<Broker>) -> bool {
    let accounts = broker.accounts().directory();
    accounts.user(GUEST).is_some_and(|guest| {
        guest.is_kept()
            && guest.tags == Tags::administrator()
            && guest.limits == UserLimits::default()
            && guest.password.verify(GUEST.as_bytes())
    })
}

fn make_guest(broker: &Arc<Broker>, hashing: Hashing) -> Result<(), StartError> {
    let hash = PasswordHash::new(GUEST.as_bytes(), hashing)?;
    // In one change: after a crash between two, no one could get in.
    broker.admin().put_user(GUEST, &[("/".to_owned(), Permission::all())], |guest| {
        guest.password = hash;
        guest.tags = Tags::administrator();
        Ok(())
    })?;
    tracing::info!(user = GUEST, "no users yet: created an administrator with password guest");
    Ok(())
}

/// Lets `guest` into a vhost that the configuration has just made, as into `/`.
pub(crate) fn let_guest_into(broker: &Arc<Broker>, vhost: &str) -> Result<(), StartError> {
    let accounts = broker.accounts().directory();
    if accounts.user(GUEST).is_some_and(|guest| guest.is_kept()) {
        broker.admin().set_permission(GUEST, vhost, Permission::all())?;
    }
    Ok(())
}
