//! The limits of a vhost as one value: so they stand in definitions and among parameters.

use super::accounts::erlang;
use courser_broker::admin::{Parameter, VhostLimits, VhostView};
use serde_json::{Map, Value};

/// The component of the parameter that stands for the limits of a vhost, and its name.
pub(crate) const COMPONENT: &str = "vhost-limits";
pub(crate) const NAME: &str = "limits";

/// Limits as a value: those that are set.
pub(crate) fn value_of(limits: &VhostLimits) -> Value {
    let named = [("max-connections", limits.connections_max), ("max-queues", limits.queues_max)];
    let set = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    Value::Object(set.collect::<Map<String, Value>>())
}

/// The limits that a value names: `None` lifts one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NamedLimits {
    connections_max: Option<Option<u64>>,
    queues_max: Option<Option<u64>>,
}

impl NamedLimits {
    /// Reads a value; a negative number lifts a limit.
    ///
    /// # Errors
    /// Says what is wrong with the value.
    pub fn read(value: &Value) -> Result<Self, String> {
        let mut named = NamedLimits::default();
        let Value::Object(members) = value else {
            // Nothing may also be written as an empty list.
            let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            return if is_empty { Ok(named) } else { Err("limits is no object".into()) };
        };
        for (name, value) in members {
            let limit = match name.as_str() {
                "max-connections" => &mut named.connections_max,
                "max-queues" => &mut named.queues_max,
                _ => {
                    let shown = erlang(value);
                    return Err(format!(
                        "Unrecognised terms [{{<<\"{name}\">>,{shown}}}] in limits"
                    ));
                }
            };
            let number = value.as_i64().ok_or_else(|| {
                format!("{name} should be a number, actually was {}", erlang(value))
            })?;
            *limit = Some(u64::try_from(number).ok());
        }
        Ok(named)
    }

    /// Changes those that are named.
    pub fn apply(self, limits: &mut VhostLimits) {
        limits.connections_max = self.connections_max.unwrap_or(limits.connections_max);
        limits.queues_max = self.queues_max.unwrap_or(limits.queues_max);
    }

    /// Those that are named and no others.
    pub fn only(self) -> VhostLimits {
        let mut limits = VhostLimits::default();
        self.apply(&mut limits);
        limits
    }
}

/// The parameter that stands for the limits of a vhost that has some.
pub(super) fn parameter(vhost: &VhostView) -> Option<Parameter> {
    let has_some = vhost.limits != VhostLimits::default();
    has_some.then(|| Parameter {
        vhost: vhost.name.clone(),
        component: COMPONENT.to_owned(),
        name: NAME.to_owned(),
        value: value_of(&vhost.limits).to_string(),
    })
}
