//! Parameters: what an operator keeps in the broker for a part of it, or for a program beside it.
//!
//! A parameter belongs to a vhost and to a component, such as `shovel`; a global one to neither. Values
//! are JSON texts, kept as they are: what they say concerns their readers.

use super::{Admin, Event, EventKind};
use crate::broker::Broker;
use crate::fault::{Fault, store_fault};
use crate::limits::OPERATOR_VALUE_BYTES_MAX as VALUE_BYTES_MAX;
use crate::persistence::definition;
use crate::persistence::scope::sizes;
use std::fmt;

/// Parameters that there may be, and global ones as many.
const PARAMETERS_MAX: usize = 10_000;
/// Bytes that the values of all of either kind may have together.
const VALUES_BYTES_MAX: usize = 16 << 20;
/// Bytes of a name, or of that of a component.
const NAME_BYTES_MAX: usize = 255;

/// The global parameter with the name that the broker, or the cluster it is in, is known by.
pub const CLUSTER_NAME: &str = "cluster_name";

/// A parameter of a vhost.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parameter {
    /// The vhost it belongs to.
    pub vhost: String,
    /// What it is for.
    pub component: String,
    /// Its name, which is its own among those of the component in the vhost.
    pub name: String,
    /// A JSON text.
    pub value: String,
}

/// A parameter that belongs to no vhost.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GlobalParameter {
    /// Its name.
    pub name: String,
    /// A JSON text.
    pub value: String,
}

impl Admin {
    /// The parameters of a vhost, or of all, of one component or of all: by vhost, component and name.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn parameters(
        &self,
        vhost: Option<&str>,
        component: Option<&str>,
    ) -> Result<Vec<Parameter>, Fault> {
        let mut parameters = Vec::new();
        for vhost in self.chosen_vhosts(vhost)? {
            let prefix = definition::parameter_prefix(&vhost.name);
            let kept = self.broker.kept.beginning_with(&prefix);
            let read = kept.into_iter().filter_map(|(rest, value)| {
                let (component, name) = definition::parse_parameter(&rest)?;
                let value = String::from_utf8(value).ok()?;
                Some(Parameter { vhost: vhost.name.clone(), component, name, value })
            });
            parameters
                .extend(read.filter(|one| component.is_none_or(|only| one.component == only)));
        }
        parameters.sort_unstable();
        Ok(parameters)
    }

    /// One parameter's value.
    ///
    /// # Errors
    /// When it is not there.
    pub fn parameter(&self, vhost: &str, component: &str, name: &str) -> Result<String, Fault> {
        self.known_vhost(vhost)?;
        let key = definition::parameter_key(vhost, component, name);
        self.kept_value(&key).ok_or_else(|| {
            Fault::not_found(format_args!(
                "no parameter '{name}' of component '{component}' in vhost '{vhost}'"
            ))
        })
    }

    /// Sets a parameter, in place of the one of its name. It survives a restart. Returns whether it is
    /// new.
    ///
    /// # Errors
    /// When there is no such vhost, the names or the value are none or too long, there are too many, or
    /// it can't be kept.
    pub fn set_parameter(&self, parameter: &Parameter) -> Result<bool, Fault> {
        let Parameter { vhost, component, name, value } = parameter;
        let known = self.known_vhost(vhost)?;
        let _change = known.begin_change()?;
        check_name("component", component)?;
        check_name("parameter", name)?;
        let key = definition::parameter_key(vhost, component, name);
        let is_there = || known.refuse_if_deleted();
        let is_new = self.keep_value(key, Some(definition::PARAMETER), value, is_there)?;
        self.tell_of_parameter(EventKind::ParameterSet, vhost, name, component);
        Ok(is_new)
    }

    /// Removes a parameter. Returns whether it was there.
    ///
    /// # Errors
    /// When there is no such vhost, or that can't be kept.
    pub fn clear_parameter(&self, vhost: &str, component: &str, name: &str) -> Result<bool, Fault> {
        let known = self.known_vhost(vhost)?;
        let _change = known.begin_change()?;
        let key = definition::parameter_key(vhost, component, name);
        // A vhost that is made anew has parameters of its own.
        let is_there = || known.refuse_if_deleted();
        let cleared = self.broker.forget_for_broker_if(&key, is_there)?;
        if cleared {
            self.tell_of_parameter(EventKind::ParameterCleared, vhost, name, component);
        }
        Ok(cleared)
    }

    /// The global parameters, by name.
    pub fn global_parameters(&self) -> Vec<GlobalParameter> {
        let kept = self.broker.kept.beginning_with(&[definition::GLOBAL_PARAMETER]);
        let read = kept.into_iter().filter_map(|(name, value)| {
            let (name, value) = (String::from_utf8(name).ok()?, String::from_utf8(value).ok()?);
            Some(GlobalParameter { name, value })
        });
        read.collect()
    }

    /// One global parameter's value.
    pub fn global_parameter(&self, name: &str) -> Option<String> {
        self.kept_value(&definition::global_parameter_key(name))
    }

    /// Sets a global parameter, in place of the one of its name. It survives a restart. Returns whether
    /// it is new.
    ///
    /// # Errors
    /// As [`Admin::set_parameter`].
    pub fn set_global_parameter(&self, name: &str, value: &str) -> Result<bool, Fault> {
        self.set_global(name, Some(definition::GLOBAL_PARAMETER), value)
    }

    /// Sets one of the few by which the program around the broker remembers what it has done: there is room for it, whatever
    /// others have set.
    ///
    /// # Errors
    /// As [`Admin::set_parameter`], but for how many there are.
    pub fn set_own_parameter(&self, name: &str, value: &str) -> Result<bool, Fault> {
        self.set_global(name, None, value)
    }

    fn set_global(&self, name: &str, counted: Option<u8>, value: &str) -> Result<bool, Fault> {
        self.broker.check_is_home("a global parameter")?;
        check_name("parameter", name)?;
        let key = definition::global_parameter_key(name);
        let is_new = self.keep_value(key, counted, value, || Ok(()))?;
        self.tell_of_parameter(EventKind::ParameterSet, "", name, "");
        Ok(is_new)
    }

    /// Removes a global parameter. Returns whether it was there.
    ///
    /// # Errors
    /// When that can't be kept.
    pub fn clear_global_parameter(&self, name: &str) -> Result<bool, Fault> {
        self.broker.check_is_home("a global parameter")?;
        let key = definition::global_parameter_key(name);
        let cleared = self.broker.forget_for_broker(&key).map_err(store_fault)?;
        if cleared {
            self.tell_of_parameter(EventKind::ParameterCleared, "", name, "");
        }
        Ok(cleared)
    }

    fn kept_value(&self, key: &[u8]) -> Option<String> {
        String::from_utf8(self.broker.kept.get(key)?).ok()
    }

    /// Keeps a value if there is room among those of the kind that it counts to, if it does, and `is_there` what it belongs to.
    /// Returns whether it is new.
    fn keep_value(
        &self,
        key: Vec<u8>,
        counted: Option<u8>,
        value: &str,
        is_there: impl FnOnce() -> Result<(), Fault>,
    ) -> Result<bool, Fault> {
        if value.is_empty() || value.len() > VALUE_BYTES_MAX {
            return Err(Fault::precondition_failed(format_args!(
                "the value of a parameter has 1 to {VALUE_BYTES_MAX} bytes"
            )));
        }
        let (named, mut is_new) = (key.clone(), false);
        self.broker.define_for_broker_if(key, value.as_bytes(), |kept| -> Result<(), Fault> {
            is_there()?;
            let before = kept.get(&named).map(Vec::len);
            is_new = before.is_none();
            let Some(kind) = counted else { return Ok(()) };
            let (parameters, bytes) = sizes(kept, kind);
            if is_new && parameters >= PARAMETERS_MAX {
                return Err(limit_reached(PARAMETERS_MAX, "parameters"));
            }
            if bytes - before.unwrap_or_default() + value.len() > VALUES_BYTES_MAX {
                return Err(limit_reached(VALUES_BYTES_MAX, "bytes of parameters"));
            }
            Ok(())
        })?;
        Ok(is_new)
    }

    fn tell_of_parameter(&self, kind: EventKind, vhost: &str, name: &str, component: &str) {
        let event =
            || Event::new(self.broker.now_ms(), kind, vhost, name).with("component", component);
        self.broker.monitor.events.tell(event);
    }
}

impl Broker {
    /// Removes the parameters of a vhost that goes.
    pub(crate) fn forget_parameters(&self, vhost: &str) -> Result<(), Fault> {
        for key in self.parameter_keys(vhost) {
            self.forget_for_broker(&key).map_err(store_fault)?;
        }
        Ok(())
    }

    /// The keys of the parameters of a vhost.
    pub(crate) fn parameter_keys(&self, vhost: &str) -> impl Iterator<Item = Vec<u8>> + use<> {
        let prefix = definition::parameter_prefix(vhost);
        let kept = self.kept.beginning_with(&prefix).into_iter();
        kept.map(move |(rest, _)| [prefix.as_slice(), rest.as_slice()].concat())
    }
}

pub(super) fn check_name(what: &str, name: &str) -> Result<(), Fault> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Fault::precondition_failed(format_args!(
            "the name of a {what} has 1 to {NAME_BYTES_MAX} bytes"
        )));
    }
    Ok(())
}

fn limit_reached(most: usize, what: impl fmt::Display) -> Fault {
    Fault::precondition_failed(format_args!("limit ({most} {what}) reached"))
}
