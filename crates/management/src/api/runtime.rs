//! Settings of a node that can be changed while it runs.

use super::get;
use super::nodes::is_this;
use crate::call::{Call, Members, Outcome};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use crate::runtime::{AskedSetting, NewLevel, NewLimit, RuntimeSetting, SettingInEffect};
use serde_json::{Map, Value, json};

pub(crate) const ROUTES: &[Route] = &[
    get(
        "/api/nodes/{node}/log-level",
        Needs::Monitoring,
        log_level,
        "What a node logs, what its configuration has, and who has changed it since.",
    ),
    Route {
        method: Verb::Put,
        pattern: "/api/nodes/{node}/log-level",
        needs: Needs::Administrator,
        changes: Changes::Memory,
        handler: set_log_level,
        doc: "Has a node log from this `level` on, or one `target` of its log, until it is started or reads its configuration again.",
    },
    get(
        "/api/nodes/{node}/memory-limit",
        Needs::Monitoring,
        memory_limit,
        "Bytes from which on a node holds publishers back, what its configuration has, and who has changed it since.",
    ),
    Route {
        method: Verb::Put,
        pattern: "/api/nodes/{node}/memory-limit",
        needs: Needs::Administrator,
        changes: Changes::Memory,
        handler: set_memory_limit,
        doc: "Has a node hold publishers back from so many `bytes` on, or from this `fraction` of the memory there is, until it is started or reads its configuration again.",
    },
];

fn log_level(call: &Call) -> Outcome {
    ask(call, RuntimeSetting::LogLevel(None))
}

fn set_log_level(call: &Call) -> Outcome {
    let body = call.object()?;
    let level = body.required_text("level")?.to_owned();
    let target = body.text("target")?.map(str::to_owned);
    ask(call, RuntimeSetting::LogLevel(Some(NewLevel { level, target })))
}

fn memory_limit(call: &Call) -> Outcome {
    ask(call, RuntimeSetting::MemoryLimit(None))
}

fn set_memory_limit(call: &Call) -> Outcome {
    let body = call.object()?;
    ask(call, RuntimeSetting::MemoryLimit(Some(new_limit(&body)?)))
}

fn new_limit(body: &Map<String, Value>) -> Result<NewLimit, Refusal> {
    let fraction = body.get("fraction").filter(|value| !value.is_null());
    match (body.integer("bytes")?, fraction) {
        (Some(bytes), None) => match u64::try_from(bytes) {
            Ok(bytes) => Ok(NewLimit::Bytes(bytes)),
            Err(_) => Err(Refusal::bad_request("bytes must be 0 or more")),
        },
        (None, Some(fraction)) => match fraction.as_f64() {
            Some(fraction) => Ok(NewLimit::Fraction(fraction)),
            None => Err(Refusal::bad_request("fraction must be a number, such as 0.4")),
        },
        _ => Err(Refusal::bad_request("either bytes or fraction has to be given")),
    }
}

/// Asks the node in the path, which may be another one of the cluster.
fn ask(call: &Call, setting: RuntimeSetting) -> Outcome {
    let asked = AskedSetting { setting, by: call.user().to_owned() };
    if let Some(cluster) = &call.api.settings.cluster {
        let node = call.text("node")?;
        let name = node.strip_prefix("courser@").unwrap_or(node);
        return Ok(Reply::json(&cluster.runtime_setting(name, &asked)?));
    }
    is_this(call)?;
    let answered = (call.api.settings.runtime)(&asked);
    answered.map(|setting| Reply::json(&setting)).map_err(Refusal::bad_request)
}

/// The settings that the node runs with, and which of them differ from the configuration.
pub(super) fn settings_in_effect(call: &Call) -> Value {
    let mut settings = (call.api.settings.configured)();
    let mut changed = Map::new();
    for (section, name, setting) in [
        ("log", "level", RuntimeSetting::LogLevel(None)),
        ("limits", "memory_high_bytes", RuntimeSetting::MemoryLimit(None)),
    ] {
        let asked = AskedSetting { setting, by: String::new() };
        let Ok(found) = (call.api.settings.runtime)(&asked) else { continue };
        let SettingInEffect { value, configured, changed_by, changed_at_ms, .. } = found;
        // A limit that is the default stays 0, as it is configured.
        if value != configured {
            settings[section][name] = value;
        }
        if let Some(by) = changed_by {
            let about = json!({ "configured": configured, "changed_by": by, "changed_at_ms": changed_at_ms });
            changed.insert(format!("{section}.{name}"), about);
        }
    }
    if !changed.is_empty() {
        settings["changed_at_run_time"] = changed.into();
    }
    settings
}
