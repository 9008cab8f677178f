//! What is refused whatever else there is, to be known before anything is made.

use super::commands::{check_vhost_name, new_name};
use super::declare::request;
use super::{NewBinding, NewQueue};
use crate::arguments;
use crate::exchange::ExchangeSettings;
use crate::fault::{Fault, Resource};
use crate::vhost::VhostSettings;
use courser_codec::ShortString;

/// Whether a queue could be declared in a vhost. One without a type is taken for a classic one.
///
/// # Errors
/// As `queue.declare`.
pub fn check_queue(vhost: &str, name: &str, queue: NewQueue) -> Result<(), Fault> {
    let request = request(name, queue)?;
    request.check(|| Resource { kind: "queue", name: request.name.as_short_str(), vhost })
}

/// Whether an exchange could be declared in a vhost.
///
/// # Errors
/// As `exchange.declare`.
pub fn check_exchange(vhost: &str, name: &str, settings: &ExchangeSettings) -> Result<(), Fault> {
    let resource = Resource { kind: "exchange", name: new_name(name)?, vhost };
    arguments::check_exchange(settings.kind, &settings.arguments, resource)
}

/// Whether a binding could have these arguments, whatever it is between.
///
/// # Errors
/// As `queue.bind`.
pub fn check_binding(binding: &NewBinding) -> Result<(), Fault> {
    arguments::check_size(&binding.arguments)
}

/// Whether a vhost could have this name, and this said of it.
///
/// # Errors
/// As [`super::Admin::change_vhost`].
pub fn check_vhost(name: &str, settings: &VhostSettings) -> Result<(), Fault> {
    check_vhost_name(name)?;
    settings.check()
}

/// Whether a parameter or a component could have this name.
///
/// # Errors
/// As [`super::Admin::set_parameter`].
pub fn check_name(what: &str, name: &str) -> Result<(), Fault> {
    super::parameters::check_name(what, name)
}

/// Whether every vhost has an exchange of this name.
pub fn is_predefined(name: &str) -> bool {
    ShortString::try_from(name).is_ok_and(|name| crate::vhost::is_predefined(&name))
}
