//! Vhosts and policies as the configuration names them.

use super::{Config, ConfigError};
use courser_broker::{ApplyTo, Policy, PolicyError, PolicyKind, VhostLimits};
use courser_codec::{FieldTable, FieldValue};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A vhost that is there from the start on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VhostSettings {
    /// Its name, 1 to 255 bytes.
    pub name: String,
    /// Connections at the same time; none stands for no limit.
    #[serde(default)]
    pub max_connections: Option<u64>,
    /// Queues at the same time; none stands for no limit.
    #[serde(default)]
    pub max_queues: Option<u64>,
}

/// A policy, or an operator policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// Its name, which is its own in its vhost.
    pub name: String,
    /// The vhost that it is for.
    #[serde(default = "default_vhost")]
    pub vhost: String,
    /// A regular expression for the names of queues and exchanges.
    pub pattern: String,
    /// all, queues, exchanges, classic_queues, quorum_queues or streams.
    #[serde(default = "default_apply_to")]
    pub apply_to: String,
    /// Of several policies that match, the one of the highest priority counts.
    #[serde(default)]
    pub priority: i64,
    /// The settings: names of arguments without their `x-`.
    pub definition: Map<String, Value>,
}

fn default_vhost() -> String {
    "/".to_owned()
}

fn default_apply_to() -> String {
    ApplyTo::default().name().to_owned()
}

impl VhostSettings {
    pub(crate) fn limits(&self) -> VhostLimits {
        VhostLimits { connections_max: self.max_connections, queues_max: self.max_queues }
    }
}

impl PolicySettings {
    /// The policy, if it is good; `key` is where it stands.
    fn policy(&self, key: &str, kind: PolicyKind) -> Result<Policy, ConfigError> {
        let apply_to = ApplyTo::parse(&self.apply_to).ok_or_else(|| {
            let names = ApplyTo::names().collect::<Vec<_>>().join(", ");
            let why = format!("is '{}'; there are {names}", self.apply_to);
            ConfigError::invalid(&format!("{key}.apply_to"), &why)
        })?;
        let mut definition = FieldTable::new();
        for (name, value) in &self.definition {
            let value = match (value, value.as_i64()) {
                (Value::String(text), _) => FieldValue::from(text.as_str()),
                (Value::Bool(flag), _) => FieldValue::from(*flag),
                (_, Some(number)) => FieldValue::from(number),
                _ => {
                    let key = format!("{key}.definition.{name}");
                    return Err(ConfigError::invalid(&key, "is no text, number or flag"));
                }
            };
            let short = name.as_str().try_into().map_err(|_| {
                ConfigError::invalid(&format!("{key}.definition"), "has a key that is too long")
            })?;
            definition.insert(short, value);
        }
        let (name, pattern) = (self.name.clone(), self.pattern.clone());
        let policy = Policy { name, pattern, apply_to, priority: self.priority, definition };
        match policy.check(kind) {
            Err(PolicyError::Invalid { key: inner, why }) => {
                Err(ConfigError::invalid(&format!("{key}.{inner}"), &why))
            }
            Err(other) => Err(ConfigError::invalid(key, &other.to_string())),
            Ok(()) => Ok(policy),
        }
    }
}

/// All policies with their vhosts.
pub(super) fn policies(
    user: &[PolicySettings],
    operator: &[PolicySettings],
) -> Result<Vec<(String, PolicyKind, Policy)>, ConfigError> {
    let lists = [
        ("policies", PolicyKind::User, user),
        ("operator_policies", PolicyKind::Operator, operator),
    ];
    let mut all = Vec::new();
    for (list, kind, policies) in lists {
        let mut names = BTreeSet::new();
        for (nth, settings) in policies.iter().enumerate() {
            let key = format!("{list}[{nth}]");
            if !names.insert((&settings.vhost, &settings.name)) {
                return Err(ConfigError::invalid(&format!("{key}.name"), "is there twice"));
            }
            all.push((settings.vhost.clone(), kind, settings.policy(&key, kind)?));
        }
    }
    Ok(all)
}

impl Config {
    /// Refuses policies for vhosts that are neither in the configuration nor there already, as
    /// `is_there` says.
    pub(crate) fn check_vhosts_of_policies(
        &self,
        is_there: impl Fn(&str) -> bool,
    ) -> Result<(), ConfigError> {
        let lists = [("policies", &self.policies), ("operator_policies", &self.operator_policies)];
        for (list, policies) in lists {
            for (nth, PolicySettings { vhost, .. }) in policies.iter().enumerate() {
                if !is_there(vhost) && !is_named(&self.vhosts, vhost) {
                    let key = format!("{list}[{nth}].vhost");
                    let why = format!("is '{vhost}', which there is not; name it in vhosts, too");
                    return Err(ConfigError::invalid(&key, &why));
                }
            }
        }
        Ok(())
    }

    /// These settings without the policies that [`Config::check_vhosts_of_policies`] refuses. Tells the log of them.
    pub(crate) fn without_policies_of_no_vhost(mut self, is_there: impl Fn(&str) -> bool) -> Self {
        for list in [&mut self.policies, &mut self.operator_policies] {
            list.retain(|PolicySettings { name, vhost, .. }| {
                let is_known = is_there(vhost) || is_named(&self.vhosts, vhost);
                if !is_known {
                    tracing::error!(policy = name, vhost, "no vhost for a policy of the settings");
                }
                is_known
            });
        }
        self
    }
}

fn is_named(vhosts: &[VhostSettings], name: &str) -> bool {
    vhosts.iter().any(|known| known.name == name)
}

pub(super) fn check_vhosts(vhosts: &[VhostSettings]) -> Result<(), ConfigError> {
    let mut names = BTreeSet::new();
    for (nth, vhost) in vhosts.iter().enumerate() {
        let key = format!("vhosts[{nth}].name");
        if vhost.name.is_empty() || vhost.name.len() > 255 {
            return Err(ConfigError::invalid(&key, "must have 1 to 255 bytes"));
        }
        if !names.insert(&vhost.name) {
            return Err(ConfigError::invalid(&key, "is there twice"));
        }
    }
    Ok(())
}
