//! A node takes over settings that are read again, all of them or none: whether they are good is for home to say, if this node leads
//! it. Behind that, a group that can't have them is served without, as where a node comes to lead, and that is told.

use super::front::Serves;
use super::group::Group;
use super::node::Inner;
use crate::config::Config;
use crate::notices::Settings;
use crate::server::StartError;
use crate::service;
use courser_broker::Broker;
use courser_cluster::Leadership;
use std::sync::{Arc, Weak};

/// Takes them over, in the turn of reloads. It keeps no node that ends, and no broker but the one that is being changed.
///
/// # Errors
/// What is wrong with them: those from before are in effect then, for the groups that this node comes to lead as well.
pub(super) fn take_over(inner: &Weak<Inner>, config: &Config) -> Result<(), StartError> {
    let Some(home) = inner.upgrade().map(|inner| Arc::clone(inner.groups.home())) else {
        return Ok(());
    };
    let broker_of_home = broker_of(&home);
    let done = service::set_up_again(&broker_of_home, config);
    // Without the lead nothing can be changed, and the settings count when it comes back.
    if done.is_err() && leads_with(&home, &broker_of_home) {
        return done;
    }
    let Some(groups) = inner.upgrade().map(|inner| {
        inner.decide(config);
        inner.groups.all()
    }) else {
        return Ok(());
    };
    for group in groups {
        let broker = broker_of(&group);
        // A group that comes to be led from now on has them anyway.
        if broker.strong_count() == 0 {
            continue;
        }
        let done = match broker.ptr_eq(&broker_of_home) {
            true => Ok(()),
            false => service::set_up_again(&broker, config),
        };
        let number = group.number.0;
        let is_whole = match done {
            Err(error) if leads_with(&group, &broker) => {
                tracing::error!(group = number, %error, "this node serves without what it can't apply of its settings");
                false
            }
            _ => true,
        };
        if let Some(inner) = inner.upgrade() {
            inner.around.notices.settings_applied(number, Settings::Reloaded, is_whole);
        }
    }
    Ok(())
}

impl Inner {
    /// Has these settings be the ones that count.
    fn decide(&self, config: &Config) {
        self.config.lock().clone_from(config);
        self.around.runtime.configure(config);
    }
}

/// The broker with which this node serves a group: none that can be had if it does not.
fn broker_of(group: &Group) -> Weak<Broker> {
    match group.serves() {
        Serves::Here(service) => Arc::downgrade(&service.shared.broker),
        _ => Weak::new(),
    }
}

/// Whether this node still leads a group, with this broker.
fn leads_with(group: &Group, broker: &Weak<Broker>) -> bool {
    let leads = |leadership: &Leadership| matches!(leadership, Leadership::Serving { .. });
    let is_led = group.member().is_some_and(|member| leads(&member.leadership().borrow()));
    is_led && broker_of(group).ptr_eq(broker)
}
