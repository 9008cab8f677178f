//! Members of bodies and parameters of queries: each has an effect, or is refused, or is said to change nothing. Which
//! there are, the description of the API says, which is made from the tables that requests are checked by.

mod trials;
mod values;

use crate::support::{Answer, Broker};
use serde_json::{Map, Value, json};
use trials::{Trial, trials};

/// Those that need a cluster, an issuer of tokens, or the node itself: what they may have is read by tests of these.
const ELSEWHERE: [&str; 7] = [
    "/api/cluster/nodes",
    "/api/cluster/leader",
    "/api/cluster/moves/{vhost}",
    "/api/cluster/drain/{node}",
    "/api/oauth/login",
    "/api/nodes/{node}/log-level",
    "/api/nodes/{node}/memory-limit",
];

/// A policy that there is in each attempt.
const KEPT: &str = r#"{"pattern":"^q$","definition":{"max-length":9},"priority":4}"#;

/// One broker, in which each attempt has a vhost and a user of its own.
struct Attempts {
    broker: Broker,
    count: usize,
}

impl Attempts {
    async fn start() -> Self {
        Attempts { broker: Broker::start().await, count: 0 }
    }

    /// What an attempt is made in: a queue with two messages, another one, an exchange and a binding, a user.
    async fn prepare(&mut self) -> (String, String) {
        self.count += 1;
        let (vhost, user) = (format!("vhost-{}", self.count), format!("user-{}", self.count));
        let steps = [
            ("PUT", format!("/api/vhosts/{vhost}"), "{}"),
            ("PUT", format!("/api/users/{user}"), r#"{"tags":""}"#),
            ("PUT", format!("/api/queues/{vhost}/q"), "{}"),
            ("PUT", format!("/api/queues/{vhost}/r"), "{}"),
            ("PUT", format!("/api/exchanges/{vhost}/x"), "{}"),
            ("POST", format!("/api/bindings/{vhost}/e/x/q/q"), r#"{"routing_key":"k"}"#),
            (
                "PUT",
                format!("/api/permissions/{vhost}/{user}"),
                r#"{"configure":"","write":"","read":".*"}"#,
            ),
            (
                "PUT",
                format!("/api/topic-permissions/{vhost}/{user}"),
                r#"{"exchange":"amq.topic","write":"","read":"yes"}"#,
            ),
            ("PUT", format!("/api/policies/{vhost}/kept"), KEPT),
            ("PUT", format!("/api/operator-policies/{vhost}/kept"), KEPT),
            ("PUT", "/api/global-parameters/g".to_owned(), r#"{"value":0}"#),
            ("PUT", "/api/cluster-name".to_owned(), r#"{"name":"none"}"#),
        ];
        for (method, path, body) in steps {
            let answer = self.broker.send(method, &path, body).await;
            assert!(answer.status < 300, "{path}: {answer:?}");
        }
        for payload in ["one", "two"] {
            let message = json!({ "routing_key": "q", "properties": {}, "payload": payload, "payload_encoding": "string" });
            let path = format!("/api/exchanges/{vhost}/amq.default/publish");
            self.broker.send("POST", &path, &message.to_string()).await;
        }
        (vhost, user)
    }

    /// The answer, and what there is afterwards.
    async fn attempt(&mut self, trial: &Trial, body: &Value) -> (Answer, String) {
        let (vhost, user) = self.prepare().await;
        let named = |text: &str| text.replace("VHOST", &vhost).replace("USER", &user);
        let answer = self
            .broker
            .send(trial.method, &path(trial, &vhost, &user), &named(&body.to_string()))
            .await;
        let mut seen = format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body));
        let seen_at = [
            format!("/api/definitions/{vhost}"),
            "/api/bindings/VHOST".replace("VHOST", &vhost),
            format!("/api/queues/{vhost}?columns=name,arguments,durable,auto_delete,messages"),
            format!(
                "/api/exchanges/{vhost}?columns=name,type,durable,auto_delete,internal,arguments"
            ),
            format!("/api/queues/{vhost}/q/messages"),
            format!("/api/queues/{vhost}/r/messages"),
            format!(
                "/api/vhosts/{vhost}?columns=description,tags,default_queue_type,tracing,protected_from_deletion"
            ),
            format!(
                "/api/vhosts/new-{vhost}?columns=description,tags,default_queue_type,tracing,protected_from_deletion"
            ),
            format!("/api/operator-policies/{vhost}"),
            format!("/api/users/{user}"),
            format!("/api/users/new-{user}"),
            format!("/api/users/{user}/permissions"),
            format!("/api/users/new-{user}/permissions"),
            format!("/api/users/{user}/topic-permissions"),
            "/api/global-parameters/g".to_owned(),
            "/api/cluster-name".to_owned(),
        ];
        for path in seen_at {
            seen += &format!("\n{}", String::from_utf8_lossy(&self.broker.get(&path).await.body));
        }
        // Names and times are an attempt's own.
        (answer, seen.replace(&vhost, "VHOST").replace(&user, "USER"))
    }
}

/// Where a trial's request goes.
fn path(trial: &Trial, vhost: &str, user: &str) -> String {
    let is_new = trial.method == "PUT";
    let of_user =
        if trial.pattern == "/api/users/{user}" { format!("new-{user}") } else { user.to_owned() };
    let name = match trial.pattern {
        "/api/user-limits/{user}/{name}" => "max-connections",
        "/api/vhost-limits/{vhost}/{name}" => "max-queues",
        "/api/global-parameters/{name}" => "g",
        _ => "p",
    };
    let of_vhost = if trial.pattern == "/api/vhosts/{vhost}" {
        format!("new-{vhost}")
    } else {
        vhost.to_owned()
    };
    trial
        .pattern
        .replace("{vhost}", &of_vhost)
        .replace("{user}", &of_user)
        .replace("{queue}", if is_new { "new" } else { "q" })
        .replace("{exchange}", if is_new && !trial.pattern.contains("topic") { "new" } else { "x" })
        .replace("{destination}", "amq.fanout")
        .replace("{component}", "federation-upstream-set")
        .replace("{name}", name)
}

fn with(body: &Value, member: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[member] = value;
    body
}

/// What the description says of each request with a body: its path, its method, and the members.
async fn described(broker: &Broker) -> Vec<(String, String, Map<String, Value>)> {
    let document = broker.get("/api/openapi.json").await.json();
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            if let Some(members) = schema["properties"].as_object() {
                found.push((path.clone(), method.to_uppercase(), members.clone()));
            }
        }
    }
    found
}

#[tokio::test]
async fn every_member_of_a_body_has_an_effect_or_is_said_to_have_none() {
    let mut attempts = Attempts::start().await;
    let trials = trials();
    let mut wrong = Vec::new();
    for (pattern, method, members) in described(&attempts.broker).await {
        if ELSEWHERE.contains(&pattern.as_str()) {
            continue;
        }
        let found = trials.iter().find(|one| one.method == method && one.pattern == pattern);
        let trial = found.unwrap_or_else(|| panic!("no trial of {method} {pattern}"));
        let (answer, plain) = attempts.attempt(trial, &trial.body).await;
        assert!(
            answer.status < 300 || pattern.ends_with("/actions"),
            "{method} {pattern}: {answer:?}"
        );
        for (member, described) in members {
            let changes_nothing = described["description"].is_string();
            let value = trial.other.get(&member).filter(|_| !changes_nothing).cloned();
            if value.is_none() && !changes_nothing {
                wrong.push(format!("no trial of {member} in {method} {pattern}"));
                continue;
            }
            let body = with(&trial.body, &member, value.unwrap_or_else(|| json!({ "any": [1] })));
            let (_, seen) = attempts.attempt(trial, &body).await;
            if (seen == plain) != changes_nothing {
                wrong.push(format!("{member} in {method} {pattern}: {seen}\ninstead of: {plain}"));
            }
            let is_any = member == "value" && pattern.contains("parameters");
            if changes_nothing || is_any {
                continue;
            }
            let other_type = match trial.other[&member] {
                Value::Object(_) | Value::Array(_) => json!(5),
                _ => json!({ "a": { "b": 1 } }),
            };
            let (answer, _) =
                attempts.attempt(trial, &with(&trial.body, &member, other_type)).await;
            if answer.status != 400 {
                wrong
                    .push(format!("{member} in {method} {pattern} takes another type: {answer:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn members_that_a_request_does_not_know_are_refused_and_nothing_is_done() {
    let mut attempts = Attempts::start().await;
    for trial in trials() {
        let unknown = with(&trial.body, "no-such-member", json!(1));
        let (answer, seen) = attempts.attempt(&trial, &unknown).await;
        let (method, pattern) = (trial.method, trial.pattern);
        assert_eq!(answer.status, 400, "{method} {pattern}: {answer:?}");
        let reason = answer.refusal().1;
        let said = reason
            .as_str()
            .is_some_and(|text| text.starts_with("there is no member 'no-such-member' here"));
        assert!(said, "{method} {pattern}: {reason}");
        let (_, again) = attempts.attempt(&trial, &unknown).await;
        assert_eq!(seen, again);
        // What says nothing, and notes, may be there.
        let (_, plain) = attempts.attempt(&trial, &trial.body).await;
        let noted = with(&with(&trial.body, "other", Value::Null), "_note", json!(1));
        assert_eq!(attempts.attempt(&trial, &noted).await.1, plain, "{method} {pattern}");
    }
}

#[tokio::test]
async fn parameters_that_a_request_does_not_know_are_refused() {
    let broker = Broker::start().await;
    let document = broker.get("/api/openapi.json").await.json();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            if method == "parameters" {
                continue;
            }
            let method = method.to_uppercase();
            let path = path.replace(['{', '}'], "");
            let answer = broker.send(&method, &format!("{path}?no-such=1"), "").await;
            if operation["security"] == json!([]) {
                continue;
            }
            assert_eq!(answer.status, 400, "{method} {path}: {answer:?}");
            let reason = answer.refusal().1;
            let said = reason
                .as_str()
                .is_some_and(|text| text.starts_with("there is no parameter 'no-such' here"));
            assert!(said, "{method} {path}: {reason}");
        }
    }
    let usual = document["components"]["parameters"].as_object().expect("parameters");
    let query: Vec<String> = usual.keys().map(|name| format!("{name}=")).collect();
    assert_eq!(broker.get(&format!("/api/whoami?{}&_=1", query.join("&"))).await.status, 200);
}

/// A program may change what it got, and put it back.
#[tokio::test]
async fn what_is_shown_of_an_object_can_be_put_back() {
    let mut attempts = Attempts::start().await;
    let (vhost, user) = attempts.prepare().await;
    let broker = &attempts.broker;
    let policy = r#"{"pattern":"^q$","definition":{"max-length":5}}"#;
    for of in ["policies", "operator-policies"] {
        let path = format!("/api/{of}/{vhost}/p");
        assert_eq!(broker.send("PUT", &path, policy).await.status, 201);
    }
    let declared = r#"{"durable":true,"arguments":{"x-queue-type":"quorum"}}"#;
    broker.send("PUT", &format!("/api/queues/{vhost}/quorum"), declared).await;
    let declared = r#"{"durable":true,"arguments":{"x-queue-type":"stream"}}"#;
    broker.send("PUT", &format!("/api/queues/{vhost}/stream"), declared).await;
    broker.send("PUT", "/api/parameters/federation-upstream-set/%2F/n", r#"{"value":[]}"#).await;
    let path = format!("/api/queues/{vhost}/q/get");
    broker
        .send("POST", &path, r#"{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}"#)
        .await;
    for path in [
        format!("/api/queues/{vhost}/q"),
        format!("/api/queues/{vhost}/quorum"),
        format!("/api/queues/{vhost}/stream"),
        format!("/api/exchanges/{vhost}/x"),
        format!("/api/vhosts/{vhost}"),
        format!("/api/users/{user}"),
        format!("/api/permissions/{vhost}/{user}"),
        format!("/api/policies/{vhost}/p"),
        format!("/api/operator-policies/{vhost}/p"),
        "/api/parameters/federation-upstream-set/%2F/n".to_owned(),
        "/api/global-parameters/g".to_owned(),
        "/api/cluster-name".to_owned(),
    ] {
        let shown = broker.get(&path).await;
        assert_eq!(shown.status, 200, "{path}: {shown:?}");
        let mut body = shown.json();
        // That a queue without a type has one is said to readers only.
        if path.ends_with("/q") {
            body["arguments"] = json!({});
        }
        let answer = broker.send("PUT", &path, &body.to_string()).await;
        assert_eq!(answer.status, 204, "{path} {body}: {answer:?}");
    }
    let bindings = broker.get(&format!("/api/bindings/{vhost}/e/x/q/q")).await.json();
    let path = format!("/api/bindings/{vhost}/e/x/q/q");
    assert_eq!(broker.send("POST", &path, &bindings[0].to_string()).await.status, 201);
}
