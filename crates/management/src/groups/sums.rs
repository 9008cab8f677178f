//! Numbers of several brokers as those of one.

use super::HOME;
use super::parts::{Part, values};
use crate::api::{QUEUES_MAX, reply_alarms};
use crate::call::{Call, Outcome};
use crate::refusal::Refusal;
use crate::reply::Reply;
use serde_json::{Map, Value};

/// Members of the overview that are sums; the others are what home says.
const SUMS: [&str; 4] = ["object_totals", "queue_totals", "message_stats", "churn_rates"];

/// What all groups say alike.
pub(super) fn first(_: &Call, parts: Vec<Part>) -> Outcome {
    let first = values(parts)?.into_iter().next();
    Ok(Reply::json(&first.ok_or_else(Refusal::not_found)?))
}

/// What all groups have done.
pub(super) fn done(_: &Call, parts: Vec<Part>) -> Outcome {
    values(parts).map(|_| Reply::done())
}

pub(super) fn overview(_: &Call, parts: Vec<Part>) -> Outcome {
    let mut parts = values(parts)?.into_iter();
    let mut all = parts.next().ok_or_else(Refusal::not_found)?;
    for part in parts {
        for member in SUMS {
            // One that is not wanted is not there.
            if let (Some(sum), Some(more)) = (all.get_mut(member), part.get(member)) {
                add(sum, more);
            }
        }
    }
    Ok(Reply::json(&all))
}

/// What each group has counted, together.
pub(super) fn numbers(_: &Call, parts: Vec<Part>) -> Outcome {
    let mut parts = values(parts)?.into_iter();
    let mut all = parts.next().ok_or_else(Refusal::not_found)?;
    parts.for_each(|part| add(&mut all, &part));
    Ok(Reply::json(&all))
}

/// Logins, by protocol.
pub(super) fn attempts(_: &Call, parts: Vec<Part>) -> Outcome {
    let mut all: Vec<Value> = Vec::new();
    for row in values(parts)?.into_iter().filter_map(into_list).flatten() {
        match all.iter_mut().find(|one| one["protocol"] == row["protocol"]) {
            None => all.push(row),
            Some(one) => add(one, &row),
        }
    }
    Ok(Reply::json(&all))
}

/// What is short anywhere; of what is short on a node, one word is enough.
pub(super) fn alarms(_: &Call, parts: Vec<Part>) -> Outcome {
    let mut all: Vec<Value> = Vec::new();
    for part in parts {
        match part.value.get("alarms").and_then(Value::as_array) {
            Some(alarms) => {
                for alarm in alarms {
                    if !all.contains(alarm) {
                        all.push(alarm.clone());
                    }
                }
            }
            None => drop(part.known()?),
        }
    }
    Ok(reply_alarms(all, "There are alarms in effect in the cluster"))
}

/// The member by which findings about queues are compared; clients do not see it.
pub(crate) const WEIGHT: &str = "weight";

/// What an operator should look at: the broker first, and of the queues those that one broker would name.
pub(super) fn attention(_: &Call, parts: Vec<Part>) -> Outcome {
    let (mut general, mut queues) = (Vec::new(), Vec::new());
    for finding in values(parts)?.into_iter().filter_map(into_list).flatten() {
        if finding.get(WEIGHT).is_some_and(Value::is_array) {
            queues.push(finding);
        } else if !general.contains(&finding) {
            general.push(finding);
        }
    }
    let severity = |finding: &Value| match finding["severity"].as_str() {
        Some("critical") => 0,
        Some("warning") => 1,
        _ => 2,
    };
    general.sort_by_key(severity);
    // Those of the same weight are in the order of the list, which is reversed.
    let weight = |finding: &Value| {
        let number = |nth: usize| finding[WEIGHT][nth].as_u64().unwrap_or(0);
        let text = |member: &str| finding["object"][member].as_str().unwrap_or("").to_owned();
        (number(0), number(1), text("vhost"), text("queue"))
    };
    queues.sort_by_cached_key(|finding| std::cmp::Reverse(weight(finding)));
    queues.truncate(QUEUES_MAX);
    general.extend(queues.into_iter().map(|mut finding| {
        if let Value::Object(members) = &mut finding {
            members.remove(WEIGHT);
        }
        finding
    }));
    // What is of no interest has only been sent to be compared.
    general.retain(|finding| finding["kind"].is_string());
    Ok(Reply::json(&general))
}

fn into_list(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(list) => Some(list),
        _ => None,
    }
}

/// Adds numbers to those at the same places: all that an object has, and samples by their time.
pub(super) fn add(sum: &mut Value, more: &Value) {
    match (sum, more) {
        (Value::Object(sum), Value::Object(more)) => add_members(sum, more),
        // An object without any member is printed as an empty list.
        (sum @ Value::Array(_), Value::Object(_)) => *sum = more.clone(),
        (Value::Array(sum), Value::Array(more)) => add_samples(sum, more),
        (Value::Number(sum), Value::Number(more)) => {
            *sum = match (sum.as_u64(), more.as_u64()) {
                (Some(sum), Some(more)) => sum.saturating_add(more).into(),
                _ => {
                    let both = sum.as_f64().unwrap_or(0.0) + more.as_f64().unwrap_or(0.0);
                    serde_json::Number::from_f64(both).unwrap_or_else(|| 0.into())
                }
            };
        }
        _ => {}
    }
}

fn add_members(sum: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        match sum.get_mut(name) {
            None => drop(sum.insert(name.clone(), value.clone())),
            // The time of a sample is no number to add.
            Some(_) if name == "timestamp" => {}
            Some(known) => add(known, value),
        }
    }
    // The mean of sums is theirs, whatever rounding has made of the parts.
    if let Some(samples) = sum.get("samples").and_then(Value::as_array)
        && sum.contains_key("avg")
    {
        let counts = samples.iter().filter_map(|sample| sample["sample"].as_f64());
        let average = counts.sum::<f64>() / samples.len().max(1) as f64;
        sum.insert("avg".to_owned(), average.into());
    }
}

/// Samples are at multiples of the same step; one whose time the other has not is of a clock that is ahead.
fn add_samples(sum: &mut [Value], more: &[Value]) {
    for sample in sum {
        let at = &sample["timestamp"];
        if let Some(other) = more.iter().find(|other| !at.is_null() && other["timestamp"] == *at) {
            add(sample, other);
        }
    }
}

/// The part of home, which has been asked as every group.
pub(super) fn of_home(parts: &[Part]) -> Option<&Value> {
    parts.iter().find(|part| part.group == HOME).map(|part| &part.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_added_at_the_same_places() {
        let sample = |at: u64, count: u64| json!({ "timestamp": at, "sample": count });
        let mut sum = json!({
            "publish": 3,
            "publish_details": { "rate": 0.5, "samples": [sample(10, 3), sample(5, 1)] },
            "none": [],
        });
        add(
            &mut sum,
            &json!({
                "publish": 4,
                "publish_details": { "rate": 1.0, "samples": [sample(10, 4), sample(5, 2)] },
                "ack": 1,
                "none": { "rate": 1.0 },
            }),
        );
        let expected = json!({
            "publish": 7,
            "publish_details": { "rate": 1.5, "samples": [sample(10, 7), sample(5, 3)] },
            "ack": 1,
            "none": { "rate": 1.0 },
        });
        assert_eq!(sum, expected);
    }
}
