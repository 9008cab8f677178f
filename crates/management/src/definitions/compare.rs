//! What an import would do, without doing it.

use super::around::{DefaultTypes, Ends};
use super::check::{check, is_outdated, unknown_keys};
use super::error::ImportError;
use super::foreign::{leave_out_parameters, strip};
use super::users::{protected, user_of};
use super::vhosts::wanted_group;
use courser_auth::AccountError;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};

/// Things that are shown of each sort; of the others it is said how many they are.
const SHOWN_MAX: usize = 1000;
/// Unknown keys of a file that are named.
const KEYS_MAX: usize = 20;

/// The lists of definitions, and what tells the rows of each from one another.
pub(super) const LISTS: [(&str, &[&str]); 10] = [
    ("users", &["name"]),
    ("vhosts", &["name"]),
    ("permissions", &["vhost", "user"]),
    ("topic_permissions", &["vhost", "user", "exchange"]),
    ("global_parameters", &["name"]),
    ("policies", &["vhost", "name"]),
    ("parameters", &["vhost", "component", "name"]),
    ("exchanges", &["vhost", "name"]),
    ("queues", &["vhost", "name"]),
    (
        "bindings",
        &["vhost", "source", "destination", "destination_type", "routing_key", "arguments"],
    ),
];

/// What an import would come to.
#[derive(Default)]
struct Plan {
    create: Shown,
    change: Shown,
    /// They are there with other settings, and stay as they are.
    keep: Shown,
    refuse: Shown,
    /// They are left out, and the import goes on.
    skip: Shown,
    /// They are taken without keys that do nothing here.
    strip: Shown,
    same: usize,
}

/// The first of some things, and how many there are.
#[derive(Default)]
struct Shown {
    first: Vec<Value>,
    count: usize,
}

impl Shown {
    fn push(&mut self, one: impl FnOnce() -> Value) {
        self.count += 1;
        if self.first.len() < SHOWN_MAX {
            self.first.push(one());
        }
    }
}

/// What the import of `text` would change in a broker with so many groups that exports `now`.
///
/// # Errors
/// When the text is no definitions.
pub(crate) fn compare(now: &Value, text: &[u8], groups: u16) -> Result<Value, ImportError> {
    let mut wanted: Value = serde_json::from_slice(text).map_err(|_| ImportError::no_json())?;
    let Some(document) = wanted.as_object_mut() else { return Err(ImportError::no_json()) };
    let unknown: Vec<String> = unknown_keys(document).take(KEYS_MAX).map(str::to_owned).collect();
    let mut plan = Plan::default();
    plan.strip_policies(document);
    plan.leave_out_parameters(document);
    let (vhosts, users) = (names(now, &wanted, "vhosts"), names(now, &wanted, "users"));
    let (ends, types) = (Ends::new(now, &wanted), DefaultTypes::new(now, &wanted));
    let protected = protected(now);
    for (list, key) in LISTS {
        let known: HashMap<String, &Value> =
            rows(now, list)?.iter().map(|row| (identity(row, key), row)).collect();
        for row in rows(&wanted, list)? {
            // A file of one vhost names none in its rows.
            let stranger =
                [("vhost", &vhosts), ("user", &users)].into_iter().find(|(member, all)| {
                    !all.is_empty() && text_of(row, member).is_some_and(|name| !all.contains(name))
                });
            let missing = |what: &str, name: &str| {
                format!("there is no {what} '{name}', neither here nor in the file")
            };
            let known = known.get(&identity(row, key)).copied();
            let is_other_there = known.is_some_and(|known| !differences(known, row).1.is_empty());
            let because = match stranger {
                Some((what, _)) => Some(missing(what, text_of(row, what).unwrap_or_default())),
                None if list == "vhosts" && known.is_none() => {
                    wanted_group(row, groups).err().map(|why| why.to_string())
                }
                None => match user_of(list, row).filter(|user| protected.contains(user)) {
                    Some(user) if known.is_none() || is_other_there => {
                        Some(AccountError::Protected(user.to_owned()).to_string())
                    }
                    _ => None,
                },
            };
            let one = |why: String| json!({ "list": list, "row": shown(row, key), "because": why });
            let because = because.or_else(|| mistake(list, row, known.is_some(), types.of(row)));
            let end = match (list, known) {
                ("bindings", None) => ends.missing(row),
                _ => None,
            };
            match (because, end) {
                (Some(why), _)
                    if stranger.is_none() && !is_other_there && is_outdated(list, row) =>
                {
                    plan.skip.push(|| one(why));
                }
                (Some(why), _) => plan.refuse.push(|| one(why)),
                (None, Some((what, name))) => plan.skip.push(|| one(missing(what, name))),
                (None, None) => plan.add(list, key, row, known),
            }
        }
    }
    Ok(plan.told(&unknown))
}

/// What an import would refuse of a row. Exchanges and queues that are there stay, whatever the file says of them.
fn mistake(list: &str, row: &Value, is_known: bool, default_type: Option<&str>) -> Option<String> {
    let named = matches!(list, "exchanges" | "queues");
    if named && is_known || is_own(list, row) {
        return None;
    }
    check(list, row, default_type).err().map(|why| why.to_string())
}

/// Whether a row is of one of the broker's own exchanges and queues.
fn is_own(list: &str, row: &Value) -> bool {
    let name = text_of(row, "name");
    match list {
        "exchanges" => name.is_some_and(|name| name.is_empty() || name.starts_with("amq.")),
        "queues" => name.is_some_and(|name| name.starts_with("amq.")),
        _ => false,
    }
}

impl Plan {
    /// Takes out of policies what does nothing here.
    fn strip_policies(&mut self, document: &mut Map<String, Value>) {
        strip(document, |policy| {
            let list = policy.list;
            let key =
                LISTS.iter().find(|(known, _)| *known == list).map_or(&[][..], |(_, key)| key);
            let row = shown(policy.row, key);
            let one = || json!({ "list": list, "row": row, "because": policy.because() });
            if policy.is_empty { self.skip.push(one) } else { self.strip.push(one) }
        });
    }

    /// Takes parameters out of the file whose components there are not.
    fn leave_out_parameters(&mut self, document: &mut Map<String, Value>) {
        leave_out_parameters(document, |component, row| {
            let why = format!("there is no component '{component}' here");
            let row = shown(row, &["vhost", "component", "name"]);
            self.skip.push(|| json!({ "list": "parameters", "row": row, "because": why }));
        });
    }

    fn told(self, unknown_keys: &[String]) -> Value {
        let Plan { create, change, keep, refuse, skip, strip, same } = self;
        json!({
            "create": create.first, "create_count": create.count,
            "change": change.first, "change_count": change.count,
            "keep": keep.first, "keep_count": keep.count,
            "refuse": refuse.first, "refuse_count": refuse.count,
            "skip": skip.first, "skipped_count": skip.count,
            "strip": strip.first, "strip_count": strip.count,
            "same_count": same,
            "unknown_keys": unknown_keys,
        })
    }

    fn add(&mut self, list: &str, key: &[&str], row: &Value, known: Option<&Value>) {
        let named = matches!(list, "exchanges" | "queues");
        if is_own(list, row) {
            let why = "its name is one of the broker's own";
            self.skip.push(|| json!({ "list": list, "row": shown(row, key), "because": why }));
            return;
        }
        if list == "bindings" && text_of(row, "source") == Some("") {
            // Every queue has it.
            self.same += 1;
            return;
        }
        let Some(known) = known else {
            self.create.push(|| json!({ "list": list, "row": shown(row, key) }));
            return;
        };
        let (before, after) = differences(known, row);
        if after.is_empty() {
            self.same += 1;
            return;
        }
        let one = || {
            let row = shown(row, key);
            json!({ "list": list, "row": row, "before": before, "after": after })
        };
        if named { self.keep.push(one) } else { self.change.push(one) }
    }
}

/// The members of a row that are other than those of what is there.
fn differences(known: &Value, row: &Value) -> (Map<String, Value>, Map<String, Value>) {
    let (mut before, mut after) = (Map::new(), Map::new());
    // What the arguments say of a queue's type counts before what is said beside them.
    let in_arguments = known.get("type").and(row.pointer("/arguments/x-queue-type"));
    let members = row.as_object().into_iter().flatten();
    let beside = members.filter(|(name, _)| *name != "type" || in_arguments.is_none());
    let members = beside.map(|(name, value)| (name.as_str(), value));
    for (name, wanted) in members.chain(in_arguments.map(|kind| ("type", kind))) {
        // Older files have what is said of a vhost beside its name.
        let now = known.get(name).or_else(|| known.get("metadata")?.get(name));
        let now = now.unwrap_or(&Value::Null);
        // No import moves a vhost.
        let stays = name == "group" && known.get("metadata").is_some();
        if stays || is_same(now, wanted) {
            continue;
        }
        // Neither a hash nor a password is shown.
        let (now, wanted) = match name {
            "password_hash" | "password" => (json!("one"), json!("another")),
            _ => (now.clone(), wanted.clone()),
        };
        before.insert(name.to_owned(), now);
        after.insert(name.to_owned(), wanted);
    }
    (before, after)
}

/// Whether two values say the same: what is empty may be written in many ways, and lists of tags and
/// flags as text.
fn is_same(now: &Value, wanted: &Value) -> bool {
    let is_nothing = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Number(_) | Value::Bool(true) => false,
    };
    match (now, wanted) {
        (now, wanted) if now == wanted || is_nothing(now) && is_nothing(wanted) => true,
        (Value::Bool(flag), Value::String(text)) => text == if *flag { "true" } else { "false" },
        (Value::Array(list), Value::String(text)) => {
            let parts: Vec<&str> = text.split(',').map(str::trim).collect();
            list.iter().map(Value::as_str).eq(parts.into_iter().map(Some))
        }
        // An empty object may be written as an empty list.
        (Value::Object(_), Value::Array(list)) if list.is_empty() => is_same(now, &json!({})),
        (Value::Object(now), Value::Object(wanted)) => {
            let names = now.keys().chain(wanted.keys());
            let of =
                |object: &Map<String, Value>, name| object.get(name).cloned().unwrap_or_default();
            // The type of a queue may be said beside its arguments, and is looked at there.
            let mut names = names.filter(|name| *name != "x-queue-type");
            names.all(|name| is_same(&of(now, name), &of(wanted, name)))
        }
        _ => false,
    }
}

fn rows<'d>(document: &'d Value, list: &str) -> Result<&'d [Value], ImportError> {
    match document.get(list) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(rows)) => Ok(rows),
        Some(_) => Err(ImportError::new(format!("{list} is no list"))),
    }
}

/// The names that there are, and those that there will be.
fn names<'d>(now: &'d Value, wanted: &'d Value, list: &str) -> HashSet<&'d str> {
    let of = |document: &'d Value| document.get(list).and_then(Value::as_array);
    let both = [now, wanted].into_iter().filter_map(of).flatten();
    both.filter_map(|row| text_of(row, "name")).collect()
}

pub(super) fn text_of<'r>(row: &'r Value, member: &str) -> Option<&'r str> {
    row.get(member).and_then(Value::as_str)
}

/// What tells a row from the others.
pub(super) fn identity(row: &Value, key: &[&str]) -> String {
    let parts = key.iter().map(|member| match row.get(*member) {
        None | Some(Value::Null) => Value::Null,
        Some(Value::Array(list)) if list.is_empty() => json!({}),
        Some(value) => value.clone(),
    });
    Value::Array(parts.collect()).to_string()
}

/// A row by what tells it from the others.
fn shown(row: &Value, key: &[&str]) -> Value {
    let members =
        key.iter().filter_map(|member| Some(((*member).to_owned(), row.get(*member)?.clone())));
    Value::Object(members.collect())
}

/// The texts that name a row, for an error. The rest is not shown: there may be passwords in the value of a parameter.
pub(super) fn named(row: &Value) -> Value {
    let names = ["vhost", "component", "name", "source", "destination"];
    let texts = names.into_iter().filter(|name| text_of(row, name).is_some());
    shown(row, &texts.collect::<Vec<&str>>())
}

#[cfg(test)]
mod tests;
