//! What an operator may do to vhosts and to what is in them.
//!
//! Everything here is what a client could do as well, without a connection: it is refused with the
//! same faults, and takes effect before the call returns.

use super::{Admin, Event, EventKind, VhostHandle};
use crate::accounts::AccountsError;
use crate::exchange::BindingKey;
use crate::fault::{Fault, store_fault};
use crate::monitor::vhost_deleted;
use crate::persistence::definition;
use crate::persistence::moves;
use crate::policy::{Policy, PolicyError, PolicyKind};
use crate::queue::ConnectionId;
use crate::vhost::{BindingRequest, Vhost, VhostSettings};
use crate::wakes::Wakes;
use courser_auth::Directory;
use courser_codec::{FieldTable, ShortStr, ShortString};
use std::sync::Arc;

/// No connection has this number: every exclusive queue belongs to another one.
pub(super) const NO_CONNECTION: ConnectionId = 0;
/// Bytes of a vhost's name.
const VHOST_NAME_BYTES_MAX: usize = 255;

/// A binding to be made or to be removed.
#[derive(Clone, Debug, PartialEq)]
pub struct NewBinding {
    /// The exchange that messages come from.
    pub source: ShortString,
    /// The queue or exchange that they go to.
    pub destination: ShortString,
    /// The destination is a queue, not an exchange.
    pub to_queue: bool,
    /// The routing key.
    pub routing_key: ShortString,
    /// The arguments.
    pub arguments: FieldTable,
}

impl Admin {
    /// Makes a vhost, or finds it, and changes what is said of it: limits, description, tags, the
    /// default type of its queues, whether it is traced and whether it can be deleted. It survives a
    /// restart. Returns whether it is new; then it is in group 0, or in that which `change` says.
    ///
    /// # Errors
    /// When it is just being deleted, its name is none, something that is said of it can't be meant, it
    /// is in another group than `change` says, this is not the broker of group 0, or it can't be kept.
    pub fn change_vhost(
        &self,
        name: &str,
        change: impl FnOnce(&mut VhostSettings),
    ) -> Result<bool, Fault> {
        self.place_vhost(name, &[0], None, change)
    }

    /// The same in a cluster of several groups: a new vhost is in the one of `groups` with the fewest vhosts,
    /// unless `change` says another. A `founder` may do everything in a new one, from the beginning.
    ///
    /// # Errors
    /// Likewise, and when a vhost is to be made for a user who is not kept or may have no more permissions.
    pub fn place_vhost(
        &self,
        name: &str,
        groups: &[u16],
        founder: Option<&str>,
        change: impl FnOnce(&mut VhostSettings),
    ) -> Result<bool, Fault> {
        check_vhost_name(name)?;
        let (_, is_new) = self.broker.change_vhost(name, groups, founder, change)?;
        let kind = if is_new { EventKind::VhostCreated } else { EventKind::VhostChanged };
        self.tell(kind, name, name);
        if let Some(founder) = founder.filter(|_| is_new) {
            self.tell(EventKind::PermissionSet, name, founder);
        }
        Ok(is_new)
    }

    /// Changes what is said of a vhost that is there.
    ///
    /// # Errors
    /// When there is no such vhost, and as [`Admin::change_vhost`].
    pub fn change_known_vhost(
        &self,
        name: &str,
        change: impl FnOnce(&mut VhostSettings),
    ) -> Result<(), Fault> {
        let vhost = self.vhost_of_any_group(name)?;
        self.broker.change_known_vhost(&vhost, change)?;
        self.tell(EventKind::VhostChanged, name, name);
        Ok(())
    }

    /// Of these groups, the one with the fewest vhosts, and the first of several; home if there are none.
    pub fn group_with_fewest_vhosts(&self, groups: &[u16]) -> u16 {
        self.broker.group_with_fewest_vhosts(groups)
    }

    /// Says that a vhost, which is not moved by that, is in another group from now on: this broker serves
    /// it no more, or begins to. The caller has closed the connections in it.
    ///
    /// # Errors
    /// When the vhost has been deleted or is just being, this is not the broker of group 0, or it can't be kept.
    pub fn set_vhost_group(&self, vhost: &VhostHandle, group: u16) -> Result<(), Fault> {
        self.broker.check_is_home("the group of a vhost")?;
        self.broker.set_group(&vhost.0, group)?;
        self.tell(EventKind::VhostChanged, vhost.name(), vhost.name());
        Ok(())
    }

    /// Deletes a vhost with everything in it. Its clients are told (320), and what users may do in it
    /// is forgotten. The default vhost `/` comes again with the next start, without anything in it.
    ///
    /// # Errors
    /// When there is no such vhost, it is protected from that (406) or just being deleted, or that can't
    /// be kept.
    pub fn delete_vhost(&self, name: &str) -> Result<(), Fault> {
        self.broker.check_is_home("a vhost")?;
        let vhost = self.vhost_of_any_group(name)?;
        self.remove_vhost(&vhost, |settings| match settings.protected {
            false => Ok(()),
            true => Err(Fault::precondition_failed(format_args!(
                "Refusing to delete virtual host '{name}' because it is protected from deletion"
            ))),
        })?;
        self.tell(EventKind::VhostDeleted, name, name);
        Ok(())
    }

    /// Deletes a vhost if `condition` agrees to what is said of it.
    pub(super) fn remove_vhost(
        &self,
        vhost: &Arc<Vhost>,
        condition: impl FnOnce(&VhostSettings) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let name = vhost.name.as_str();
        {
            // It is accepted here, what is said of it, its parameters and permissions are changed before this, or not any more.
            let _write = self.broker.shards_write.lock();
            let _defined = self.broker.defined.lock();
            self.broker.refuse_if_replaced(vhost)?;
            condition(&vhost.settings().unwrap_or_default())?;
            if !vhost.label.begin_deletion() {
                return Err(vhost_deleted(name));
            }
        }
        let removed = self.remove_marked(vhost);
        if removed.is_err() {
            vhost.label.deletion_failed();
        }
        removed
    }

    /// Removes a vhost that has just been marked as deleted, with everything in it.
    fn remove_marked(&self, vhost: &Arc<Vhost>) -> Result<(), Fault> {
        let name = vhost.name.as_str();
        // It may just be moved here.
        self.broker.forget_arrival(name, |_| true)?;
        for outbox in self.broker.monitor.registry.snapshot().starting_at(0) {
            if Arc::ptr_eq(&outbox.connection.vhost, &vhost.label) {
                outbox.fail_connection(vhost_deleted(name));
            }
        }
        let mut wakes = Wakes::default();
        let emptied = vhost.empty(&mut wakes);
        wakes.wake_all();
        emptied?;
        self.take_away(vhost)?;
        self.broker.check_alarms();
        Ok(())
    }

    /// Has the log of the broker's definitions forget a vhost, where it was, its parameters and what users may do in it, and
    /// everybody else too.
    fn take_away(&self, vhost: &Arc<Vhost>) -> Result<(), Fault> {
        let (broker, name) = (&self.broker, &vhost.name);
        // What it is itself is first here, and so goes last where all of it is too much for one batch.
        let mut keys = vec![definition::vhost_key(name)];
        if vhost.shard().id != broker.home().id {
            keys.push(definition::placement_key(name));
        }
        keys.extend(Some(moves::held_key(name)).filter(|key| broker.kept.get(key).is_some()));
        keys.extend(broker.parameter_keys(name));
        let forgotten = || {
            broker.kept.remove_all(&keys);
            broker.hide_vhost(vhost);
        };
        let decide = |all: &Directory| Ok(all.forget_vhost(name));
        match broker.change_accounts_and_forget(decide, keys.clone(), forgotten) {
            Ok(_) => Ok(()),
            Err(AccountsError::Store(error)) => Err(store_fault(error)),
            Err(error) => Err(Fault::internal_error(error)),
        }
    }

    /// Deletes an exchange with its bindings; only one without any if `if_unused`.
    ///
    /// # Errors
    /// As `exchange.delete`; and 404 when it is not there.
    pub fn delete_exchange(&self, vhost: &str, name: &[u8], if_unused: bool) -> Result<(), Fault> {
        let (vhost, exchange) = self.known_exchange(vhost, name)?;
        let _change = vhost.begin_change()?;
        let shard = Arc::clone(vhost.shard());
        let _gate = shard.gate.read();
        vhost.delete_exchange(&exchange.name, if_unused).map(drop)
    }

    /// Deletes a queue; only one without consumers if `if_unused`, only one without messages if
    /// `if_empty`. Returns how many messages waited in it.
    ///
    /// # Errors
    /// As `queue.delete`; and 404 when it is not there.
    pub fn delete_queue(
        &self,
        vhost: &str,
        name: &[u8],
        if_unused: bool,
        if_empty: bool,
    ) -> Result<usize, Fault> {
        let vhost = self.known_vhost(vhost)?;
        let _change = vhost.begin_change()?;
        let queue = vhost.queue_for(name, NO_CONNECTION)?;
        let (mut wakes, mut messages) = (Wakes::default(), 0);
        let deleted = {
            let _gate = vhost.shard().gate.read();
            let reply = |count, _| messages = count;
            vhost.delete_queue_if(&queue, if_unused, if_empty, reply, &mut wakes)
        };
        wakes.wake_all();
        self.broker.check_alarms();
        deleted.map(|()| messages)
    }

    /// Drops everything that waits in a queue. Returns how much that was.
    ///
    /// # Errors
    /// As `queue.purge`.
    pub fn purge_queue(&self, vhost: &str, name: &[u8]) -> Result<usize, Fault> {
        let vhost = self.known_vhost(vhost)?;
        let _change = vhost.begin_change()?;
        let queue = vhost.queue_for(name, NO_CONNECTION)?;
        super::messages::refuse_streams("queue.purge", &vhost, &queue)?;
        let purged = vhost.purge(&queue).map_err(store_fault)?;
        self.tell(EventKind::QueuePurged, &vhost.name, &queue.name);
        self.broker.check_alarms();
        Ok(purged)
    }

    /// Makes a binding, which may be there already.
    ///
    /// # Errors
    /// As `queue.bind` and `exchange.bind`.
    pub fn bind(&self, vhost: &str, binding: NewBinding) -> Result<(), Fault> {
        let vhost = self.known_vhost(vhost)?;
        let _change = vhost.begin_change()?;
        refuse_line_breaks(binding.source.as_bytes())?;
        refuse_line_breaks(binding.destination.as_bytes())?;
        let mut wakes = Wakes::default();
        let may_go_on = || self.broker.refuse_to_publish();
        let bound = vhost.bind(request(&binding), NO_CONNECTION, &mut wakes, &may_go_on);
        wakes.wake_all();
        bound.map(drop)
    }

    /// Removes a binding. What is not bound is no error.
    ///
    /// # Errors
    /// As `queue.unbind` and `exchange.unbind`.
    pub fn unbind(&self, vhost: &str, binding: NewBinding) -> Result<(), Fault> {
        let vhost = self.known_vhost(vhost)?;
        let _change = vhost.begin_change()?;
        let _gate = vhost.shard().gate.read();
        vhost.unbind(request(&binding), NO_CONNECTION).map(drop)
    }

    /// Sets a policy, in place of the one of its name. It holds at once and survives a restart. Returns
    /// whether it is new.
    ///
    /// # Errors
    /// When there is no such vhost, something in it is wrong, or it can't be kept.
    pub fn set_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        policy: Policy,
    ) -> Result<bool, PolicyError> {
        let name = policy.name.clone();
        let is_new = self.broker.set_policy(vhost, kind, policy)?;
        self.tell(EventKind::PolicySet, vhost, name);
        Ok(is_new)
    }

    /// Sets several policies of a vhost likewise, all at the same moment: nothing follows some of them without the others.
    ///
    /// # Errors
    /// The same. None is set then.
    pub fn set_policies(
        &self,
        vhost: &str,
        policies: &[(PolicyKind, Policy)],
    ) -> Result<(), PolicyError> {
        self.broker.set_policies(vhost, policies)?;
        policies
            .iter()
            .for_each(|(_, policy)| self.tell(EventKind::PolicySet, vhost, &policy.name));
        Ok(())
    }

    /// Removes a policy. Returns whether it was there; one from the configuration stays.
    ///
    /// # Errors
    /// When there is no such vhost, or that can't be kept.
    pub fn clear_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        name: &str,
    ) -> Result<bool, PolicyError> {
        let cleared = self.broker.clear_policy(vhost, kind, name)?;
        if cleared {
            self.tell(EventKind::PolicyCleared, vhost, name);
        }
        Ok(cleared)
    }

    pub(super) fn tell(&self, kind: EventKind, vhost: &str, name: impl std::fmt::Display) {
        self.broker.monitor.events.tell(|| Event::new(self.broker.now_ms(), kind, vhost, name));
    }
}

pub(super) fn check_vhost_name(name: &str) -> Result<(), Fault> {
    match name.len() {
        1..=VHOST_NAME_BYTES_MAX => Ok(()),
        _ => Err(Fault::precondition_failed("the name of a vhost has 1 to 255 bytes")),
    }
}

fn request(binding: &NewBinding) -> BindingRequest<'_> {
    BindingRequest {
        source: binding.source.as_short_str(),
        destination: &binding.destination,
        to_queue: binding.to_queue,
        key: BindingKey {
            routing_key: binding.routing_key.clone(),
            arguments: binding.arguments.clone(),
        },
    }
}

pub(super) fn short(text: &str) -> Result<ShortStr<'_>, Fault> {
    text.try_into().map_err(|_| Fault::precondition_failed("a name has 255 bytes at most"))
}

/// The name of a queue or exchange that is to be made.
pub(super) fn new_name(name: &str) -> Result<ShortStr<'_>, Fault> {
    refuse_line_breaks(name.as_bytes())?;
    short(name)
}

/// Names from clients lose their line breaks before the client's permissions are checked. For those
/// that come this way permissions have been checked already, so they can't be changed any more.
fn refuse_line_breaks(name: &[u8]) -> Result<(), Fault> {
    match name.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        true => Err(Fault::precondition_failed("a name has no line breaks")),
        false => Ok(()),
    }
}
