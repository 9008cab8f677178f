//! Values that make no sense: what is meant to be a flag, a number or one of a few words, and is none.

use super::trials::trials;
use super::{Attempts, with};
use crate::definitions::import;
use crate::support::{Answer, Broker};
use serde_json::{Value, json};

/// Members and parameters that are any text: it is kept, looked for or matched.
const FREE: [&str; 21] = [
    "arguments",
    "configure",
    "contains",
    "description",
    "download",
    "exchange",
    "header",
    "method",
    "name",
    "node",
    "number",
    "password",
    "pattern",
    "payload",
    "read",
    "routing_key",
    "search",
    "tags",
    "user",
    "vhost",
    "write",
];

/// The parameters of queries that the description knows: method, path, name, and whether it is a flag.
async fn parameters(broker: &Broker) -> Vec<(String, String, String, bool)> {
    let document = broker.get("/api/openapi.json").await.json();
    let known = |parameter: &Value| {
        let name = parameter["name"].as_str().expect("a name").to_owned();
        (name, parameter["schema"]["type"] == "boolean")
    };
    let usual = document["components"]["parameters"].as_object().expect("parameters");
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let path = path.replace("{vhost}", "%2F").replace(['{', '}'], "");
        for (method, operation) in methods.as_object().expect("methods") {
            if method == "parameters" || operation["security"] == json!([]) {
                continue;
            }
            let own = operation["parameters"].as_array().into_iter().flatten();
            let own = own.filter(|parameter| parameter["in"] == "query").map(known);
            let usual =
                usual.values().map(known).filter(|(_, is_flag)| *is_flag && method == "get");
            for (name, is_flag) in own.chain(usual) {
                found.push((method.to_uppercase(), path.clone(), name, is_flag));
            }
        }
    }
    found
}

fn reason(answer: &Answer) -> String {
    answer.refusal().1.as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn flags_of_queries_are_either_true_or_false() {
    let broker = Broker::start().await;
    let flags: Vec<_> =
        parameters(&broker).await.into_iter().filter(|(.., is_flag)| *is_flag).collect();
    for expected in ["sort_reverse", "disable_stats", "if-empty", "warnings", "dry_run"] {
        assert!(flags.iter().any(|(_, _, name, _)| name == expected), "{expected}");
    }
    for (method, path, name, _) in flags {
        for nonsense in ["perhaps", "True", "1"] {
            let answer = broker.send(&method, &format!("{path}?{name}={nonsense}"), "").await;
            assert_eq!(answer.status, 400, "{method} {path}?{name}={nonsense}: {answer:?}");
            assert_eq!(reason(&answer), format!("{name} is either true or false"), "{path}");
        }
    }
    for value in ["", "true", "false"] {
        let list = format!("/api/queues?sort=name&sort_reverse={value}&disable_stats={value}");
        assert_eq!(broker.get(&list).await.status, 200, "{value}");
    }
}

#[tokio::test]
async fn a_flag_without_a_value_says_yes() {
    let broker = Broker::start().await;
    for name in ["a1", "a2", "b"] {
        let declared = broker.send("PUT", &format!("/api/queues/%2F/{name}"), "{}").await;
        assert_eq!(declared.status, 201, "{name}");
    }
    let node = broker.get("/api/nodes").await.json()[0]["name"].clone();
    let node = format!("/api/nodes/{}", node.as_str().expect("a name").replace('@', "%40"));
    for (path, flag) in [
        ("/api/queues?page=1&name=%5Ea.%24", "use_regex"),
        ("/api/queues?sort=name&columns=name", "sort_reverse"),
        ("/api/queues/%2F/b?", "disable_stats"),
        ("/api/queues/%2F/b?disable_stats=true", "enable_queue_totals"),
        (&node, "memory"),
    ] {
        let path = if path.contains('?') { path.to_owned() } else { format!("{path}?") };
        let shape = async |flag: String| shape(&broker.get(&format!("{path}&{flag}")).await.json());
        let yes = shape(format!("{flag}=true")).await;
        assert_ne!(shape(format!("{flag}=false")).await, yes, "{path}&{flag} changes nothing");
        for flag in [flag.to_owned(), format!("{flag}=")] {
            assert_eq!(shape(flag.clone()).await, yes, "{path}&{flag}");
        }
    }
    for flag in ["if-empty", "if-unused"] {
        let deleted = broker.send("DELETE", &format!("/api/queues/%2F/b?{flag}"), "").await;
        assert_eq!(deleted.status, 204, "{flag}: nothing is in it, and nothing consumes");
        assert_eq!(broker.send("PUT", "/api/queues/%2F/b", "{}").await.status, 201);
    }
    let message = json!({ "routing_key": "b", "properties": {}, "payload": "x", "payload_encoding": "string" });
    let publish = "/api/exchanges/%2F/amq.default/publish";
    assert_eq!(broker.send("POST", publish, &message.to_string()).await.status, 200);
    let kept = broker.send("DELETE", "/api/queues/%2F/b?if-empty", "").await;
    assert_eq!(kept.status, 400, "it has a message: {kept:?}");
    let trial = json!({ "queues": [{ "vhost": "/", "name": "new", "durable": true }] });
    assert_eq!(import(&broker, "/api/definitions?dry_run", &trial).await.status, 200);
    assert_eq!(broker.get("/api/queues/%2F/new").await.status, 404, "it was tried only");
}

/// What is in an answer, without the figures, which are never twice the same: the names of members, and texts.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), shape(value))).collect()
        }
        Value::Array(list) => list.iter().map(shape).collect(),
        Value::String(_) => value.clone(),
        _ => Value::Null,
    }
}

#[tokio::test]
async fn parameters_with_a_value_that_makes_no_sense_are_refused() {
    let broker = Broker::start().await;
    assert_eq!(broker.send("PUT", "/api/queues/%2F/queue", "{}").await.status, 201);
    let stream = r#"{"durable":true,"arguments":{"x-queue-type":"stream"}}"#;
    assert_eq!(broker.send("PUT", "/api/queues/%2F/stream", stream).await.status, 201);
    let mut wrong = Vec::new();
    for (method, path, name, is_flag) in parameters(&broker).await {
        if is_flag || FREE.contains(&name.as_str()) || method != "GET" && name != "count" {
            continue;
        }
        // Some are of streams only.
        for queue in ["queue", "stream"] {
            let path = path.replace("/queue/", &format!("/{queue}/"));
            let answer = broker.send(&method, &format!("{path}?{name}=no-such-word"), "").await;
            let is_of_streams = path.ends_with("/tail") || name == "timestamp_ms";
            if answer.status != 400 && (queue == "stream") == is_of_streams {
                wrong.push(format!("{method} {path}?{name}: {answer:?}"));
            }
        }
    }
    for path in [
        "/api/queues?page=x",
        "/api/queues?page=1&page_size=x",
        "/api/queues?lengths_age=60",
        "/api/queues?lengths_incr=5",
        "/api/queues?lengths_age=60&lengths_incr=x",
        "/api/events?kind=queue.,no-such",
    ] {
        let answer = broker.get(path).await;
        if answer.status != 400 {
            wrong.push(format!("{path}: {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn members_that_are_one_of_a_few_words_take_no_other() {
    let mut attempts = Attempts::start().await;
    let mut wrong = Vec::new();
    for trial in trials() {
        let (method, pattern) = (trial.method, trial.pattern);
        for (member, value) in trial.other.as_object().expect("members") {
            if !(value.is_string() || value.is_boolean()) || FREE.contains(&member.as_str()) {
                continue;
            }
            let body = with(&trial.body, member, json!("no such word"));
            let (answer, _) = attempts.attempt(&trial, &body).await;
            if answer.status != 400 {
                wrong.push(format!("{member} in {method} {pattern}: {answer:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn flags_in_definitions_are_either_true_or_false() {
    let broker = Broker::start().await;
    let rows = [
        ("queues", json!({ "name": "q", "vhost": "/", "durable": "perhaps" })),
        ("queues", json!({ "name": "q", "vhost": "/", "durable": true, "auto_delete": 1 })),
        ("exchanges", json!({ "name": "x", "vhost": "/", "type": "direct", "durable": "yes" })),
        ("exchanges", json!({ "name": "x", "vhost": "/", "type": "direct", "internal": {} })),
    ];
    for (list, row) in rows {
        let definitions = json!({ list: [row] });
        let answer = import(&broker, "/api/definitions", &definitions).await;
        assert_eq!(answer.status, 400, "{definitions}: {answer:?}");
        assert!(reason(&answer).ends_with("is either true or false"), "{answer:?}");
        let plan = import(&broker, "/api/definitions?dry_run=true", &definitions).await;
        assert!(plan.json()["refuse"][0].is_object(), "{plan:?}");
    }
    let said = json!({ "queues": [{ "name": "q", "vhost": "/", "durable": "true", "auto_delete": null }] });
    assert_eq!(import(&broker, "/api/definitions", &said).await.status, 204);
    assert_eq!(broker.get("/api/queues/%2F/q").await.json()["durable"], true);
}
