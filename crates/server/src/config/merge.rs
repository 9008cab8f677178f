//! Lays a file and the environment over the defaults.

use super::{Config, explained};
use serde_json::{Map, Value};
use std::fmt;
use std::path::Path;

/// Lists whose items have keys of their own, which a variable can't hold.
const LISTS_OF_SECTIONS: [&str; 7] = [
    "vhosts",
    "policies",
    "operator_policies",
    "gateway.endpoints",
    "tls.hosts",
    "oauth.signing_keys",
    "oauth.scope_aliases",
];

/// Why the settings can't be used.
#[derive(Debug)]
pub struct ConfigError {
    /// The file or environment variable that it stands in, if any.
    origin: Option<String>,
    problem: String,
}

impl ConfigError {
    pub(super) fn invalid(key: &str, why: &str) -> Self {
        ConfigError { origin: None, problem: format!("{key} {why}") }
    }

    fn of(self, origin: &str) -> Self {
        ConfigError { origin: Some(origin.to_owned()), ..self }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "{origin}: {}", self.problem),
            None => write!(f, "configuration: {}", self.problem),
        }
    }
}

impl std::error::Error for ConfigError {}

pub(super) fn load(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Config, ConfigError> {
    let broken = |error: serde_json::Error| ConfigError::invalid("defaults", &error.to_string());
    let defaults = serde_json::to_value(Config::default()).map_err(broken)?;
    let mut tree = defaults.clone();
    // What is wrong is best said while it is known where it came from; but a later source may still
    // make it right.
    let mut wrong: Option<ConfigError> = None;
    if let Some(path) = file {
        lay_file_over(&mut tree, path)?;
        wrong = good(&tree).err().map(|error| error.of(&path.display().to_string()));
    }
    for (name, value) in environment {
        if let Some(rest) = name.strip_prefix("COURSER_") {
            let is_set = set_from_environment(&mut tree, &defaults, &name, rest, &value)?;
            if is_set && wrong.is_none() {
                wrong = good(&tree).err().map(|error| error.of(&name));
            }
        }
    }
    good(&tree).map_err(|error| match wrong {
        Some(wrong) if wrong.problem == error.problem => wrong,
        _ => error,
    })
}

/// The settings in a tree, if they are good.
fn good(tree: &Value) -> Result<Config, ConfigError> {
    let typed: Config = serde_path_to_error::deserialize(tree)
        .map_err(|error| ConfigError { origin: None, problem: explained::problem(tree, &error) })?;
    typed.check()?;
    Ok(typed)
}

fn lay_file_over(tree: &mut Value, path: &Path) -> Result<(), ConfigError> {
    let origin = || Some(path.display().to_string());
    let fail = |problem: String| ConfigError { origin: origin(), problem };
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    let read: Option<Value> =
        serde_saphyr::from_str(&text).map_err(|error| fail(unreadable(&error)))?;
    match read {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(settings)) => lay_over(tree, settings, "").map_err(fail)?,
        Some(_) => return Err(fail("a mapping of settings is expected".into())),
    }
    Ok(())
}

/// Why a file is none that can be read, without a line of it: it may hold a password.
fn unreadable(error: &serde_saphyr::Error) -> String {
    match error.without_snippet() {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), location } => {
            format!("the key '{key}' is there twice, again in line {}", location.line())
        }
        other => other.to_string(),
    }
}

fn lay_over(tree: &mut Value, settings: Map<String, Value>, path: &str) -> Result<(), String> {
    let Value::Object(known) = tree else {
        return Err(format!("'{path}' is a single value, not a section"));
    };
    for (key, value) in settings {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let Some(current) = known.get_mut(&key) else {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            return Err(unknown("key", &path, &key, &names));
        };
        match (current.is_object(), value) {
            (true, Value::Object(section)) => lay_over(current, section, &path)?,
            (true, Value::Null) => {}
            (true, _) => return Err(format!("'{path}' is a section: indent its keys below it")),
            (false, value) => *current = value,
        }
    }
    Ok(())
}

fn unknown(what: &str, shown: &str, name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("unknown {what} '{shown}'; did you mean '{near}'?"),
        None => format!("unknown {what} '{shown}'; there are {}", known.join(", ")),
    }
}

fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |other: &&str| strsim::damerau_levenshtein(name, other);
    let near = known.iter().copied().min_by_key(|other| distance(other))?;
    (distance(&near) <= name.len().max(near.len()) / 2).then_some(near)
}

/// `COURSER_<KEY>` or `COURSER_<SECTION>_<KEY>`. A variable that is not of a known section and not
/// close to a known name may belong to another program, and is left alone. Returns whether it has set
/// something. What kind of value it is, the default says: a file may have one in another form.
fn set_from_environment(
    tree: &mut Value,
    defaults: &Value,
    variable: &str,
    rest: &str,
    text: &str,
) -> Result<bool, ConfigError> {
    let fail = |problem: String| ConfigError { origin: Some(variable.to_owned()), problem };
    let Value::Object(known) = defaults else { return Ok(false) };
    let wanted = rest.to_lowercase();
    let mut names = Vec::new();
    let mut in_section = false;
    for (key, default) in known {
        let Value::Object(section) = default else {
            if *key == wanted {
                tree[key] = parse(key, default, text).map_err(fail)?;
                return Ok(true);
            }
            names.push(format!("COURSER_{}", key.to_uppercase()));
            continue;
        };
        in_section |= wanted.starts_with(&format!("{key}_"));
        for (inner, default) in section {
            if format!("{key}_{inner}") == wanted {
                let name = format!("{key}.{inner}");
                tree[key][inner] = parse(&name, default, text).map_err(fail)?;
                return Ok(true);
            }
            names.push(format!("COURSER_{}_{}", key.to_uppercase(), inner.to_uppercase()));
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let close = nearest(variable, &names)
        .is_some_and(|near| strsim::damerau_levenshtein(variable, near) <= 2);
    if in_section || close {
        return Err(fail(unknown("setting", variable, variable, &names)));
    }
    Ok(false)
}

/// The text of a variable as the kind of value that the default is; the items of a list are separated
/// by commas.
fn parse(name: &str, default: &Value, text: &str) -> Result<Value, String> {
    let text = text.trim();
    match default {
        Value::Bool(_) => match text.to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(Value::Bool(true)),
            "false" | "no" | "off" | "0" => Ok(Value::Bool(false)),
            _ => Err(format!("'{text}' is neither true nor false")),
        },
        Value::Number(_) => text
            .parse::<u64>()
            .map(Value::from)
            .map_err(|_| explained::no_number(name, &format!("'{text}'"), " from 0 on")),
        Value::Array(_) if LISTS_OF_SECTIONS.contains(&name) => {
            Err("a variable can't hold it: set it in a file, and name that with --config".into())
        }
        Value::Array(_) if text.is_empty() => Ok(Value::Array(Vec::new())),
        Value::Array(_) => {
            Ok(text.split(',').map(|item| Value::from(item.trim())).collect::<Vec<_>>().into())
        }
        _ => Ok(Value::from(text)),
    }
}
