//! Nodes: each is told of by the brokers that are on it, and one that leads several groups has one broker for each.

use super::parts::{Part, values};
use super::sums::{add, of_home};
use crate::api::NODE_COUNTERS;
use crate::call::{Call, Outcome};
use crate::json::Fields;
use crate::refusal::Refusal;
use crate::reply::Reply;
use serde_json::{Map, Value};

/// What an operation took on average, and how many there were.
const AVERAGES: [(&str, &str); 3] = [
    ("io_read_avg_time", "io_read_count"),
    ("io_write_avg_time", "io_write_count"),
    ("io_sync_avg_time", "io_sync_count"),
];

/// Alarms of a node: one of its brokers is enough.
const ALARMS: [&str; 2] = ["mem_alarm", "disk_free_alarm"];

pub(super) fn all(call: &Call, parts: Vec<Part>) -> Outcome {
    let mut order: Vec<Value> = Vec::new();
    // In the order of home; what a group knows besides comes behind.
    let mut known: Vec<Map<String, Value>> = Vec::new();
    let home = of_home(&parts).and_then(Value::as_array).cloned().unwrap_or_default();
    let elsewhere = values(parts)?;
    for node in home.iter().chain(elsewhere.iter().filter_map(Value::as_array).flatten()) {
        if !order.contains(&node["name"]) {
            order.push(node["name"].clone());
        }
    }
    for name in &order {
        let told = elsewhere.iter().filter_map(Value::as_array).flatten();
        let told: Vec<&Value> = told.filter(|node| node["name"] == *name).collect();
        let whole = told.iter().copied().filter(|node| is_whole(node));
        let node = whole.fold(None, |sum, node| Some(with(sum, node)));
        let node = node.or_else(|| told.first().map(|first| Value::clone(first)));
        known.extend(node.and_then(|node| node.as_object().cloned()));
    }
    let shown = known.into_iter().map(|node| chosen(call, node));
    Ok(Reply::json(&shown.collect::<Vec<Value>>()))
}

pub(super) fn one(call: &Call, parts: Vec<Part>) -> Outcome {
    let all = values(parts)?;
    let mut node = all.iter().fold(None, |sum, node| Some(with(sum, node)));
    if let Some(whole) = node.as_mut().and_then(Value::as_object_mut)
        && let Some(memory) = all.first().and_then(|one| one.get("memory"))
    {
        let others = all.iter().skip(1).filter_map(|one| one.get("memory"));
        whole.insert("memory".to_owned(), others.fold(memory.clone(), with_memory));
    }
    let node = node.as_ref().and_then(Value::as_object).cloned();
    let Some(mut node) = node else { return Err(Refusal::not_found()) };
    // It is shown whichever columns are wanted.
    let memory = node.remove("memory");
    let mut node = chosen(call, node);
    if let (Value::Object(members), Some(memory)) = (&mut node, memory) {
        members.insert("memory".to_owned(), memory);
    }
    Ok(Reply::json(&node))
}

/// A broker tells all of the node that it is on, and of others whether they run.
fn is_whole(node: &Value) -> bool {
    node.get("uptime").is_some()
}

/// A node with one broker more: what brokers count is added up, what is of the process is there once.
fn with(sum: Option<Value>, more: &Value) -> Value {
    let Some(mut sum) = sum else { return more.clone() };
    for (average, count) in AVERAGES {
        let number = |of: &Value, name: &str| of[name].as_f64().unwrap_or(0.0);
        let (one, other) = (number(&sum, count), number(more, count));
        if one + other > 0.0 {
            let took = number(&sum, average) * one + number(more, average) * other;
            sum[average] = (took / (one + other)).into();
        }
    }
    for counter in NODE_COUNTERS {
        for name in [counter.to_owned(), format!("{counter}_details")] {
            if let (Some(sum), Some(more)) = (sum.get_mut(&name), more.get(&name)) {
                add(sum, more);
            }
        }
    }
    for alarm in ALARMS {
        if more[alarm] == true {
            sum[alarm] = true.into();
        }
    }
    sum
}

/// Memory with that of one broker more: what clients make brokers hold, and the rest of the process.
fn with_memory(sum: Value, more: &Value) -> Value {
    let mut sum = sum;
    add(&mut sum["binary"], &more["binary"]);
    let held = sum["binary"].as_u64().unwrap_or(0);
    let rest = sum["total"]["rss"].as_u64().unwrap_or(0).saturating_sub(held);
    sum["other_system"] = rest.into();
    sum["total"]["allocated"] = (held + rest).into();
    sum["total"]["erlang"] = (held + rest).into();
    sum
}

pub(super) fn memory(_: &Call, parts: Vec<Part>) -> Outcome {
    let mut all = values(parts)?.into_iter();
    let mut first = all.next().ok_or_else(Refusal::not_found)?;
    let sum = all.fold(first["memory"].take(), |sum, more| with_memory(sum, &more["memory"]));
    first["memory"] = sum;
    Ok(Reply::json(&first))
}

/// In percent: what is not held for clients is the rest.
pub(super) fn relative_memory(_: &Call, parts: Vec<Part>) -> Outcome {
    let mut all = values(parts)?.into_iter().peekable();
    let mut sum = all.next().ok_or_else(Refusal::not_found)?;
    let is_one = all.peek().is_none();
    for more in all {
        add(&mut sum["memory"]["binary"], &more["memory"]["binary"]);
    }
    if !is_one {
        let held = sum["memory"]["binary"].as_u64().unwrap_or(0);
        sum["memory"]["other_system"] = 100_u64.saturating_sub(held).into();
    }
    Ok(Reply::json(&sum))
}

/// The members that are wanted: the groups were asked for all of them.
fn chosen(call: &Call, node: Map<String, Value>) -> Value {
    let mut fields = Fields::new(&call.columns());
    for (name, value) in node {
        fields.put(&name, value);
    }
    fields.finish()
}
