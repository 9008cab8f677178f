//! Feature flags, deprecated features, and login counts.

use super::nodes::is_this;
use super::{connections, get};
use crate::LoginCounts;
use crate::call::{Call, Outcome};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use serde_json::{Value, json};

pub(crate) const ROUTES: &[Route] = &[
    get("/api/feature-flags", Needs::Login, connections::none, "Feature flags: there is none."),
    Route {
        method: Verb::Put,
        pattern: "/api/feature-flags/{name}/enable",
        needs: Needs::Administrator,
        changes: Changes::Memory,
        handler: enable,
        doc: "Enables a feature flag.",
    },
    get("/api/deprecated-features", Needs::Login, connections::none, "There is none."),
    get("/api/deprecated-features/used", Needs::Login, connections::none, "There is none."),
    get(
        "/api/auth/attempts/{node}",
        Needs::Monitoring,
        attempts,
        "How many logins there were, by protocol.",
    ),
    get(
        "/api/auth/attempts/{node}/source",
        Needs::Monitoring,
        sources,
        "Where logins came from: that is not counted.",
    ),
    Route {
        method: Verb::Delete,
        pattern: "/api/auth/attempts/{node}",
        needs: Needs::Administrator,
        changes: Changes::Memory,
        handler: forget,
        doc: "Begins to count logins anew, those over AMQP too.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/auth/attempts/{node}/source",
        needs: Needs::Administrator,
        changes: Changes::Memory,
        handler: forget,
        doc: "Begins to count logins anew, those over AMQP too.",
    },
];

fn enable(call: &Call) -> Outcome {
    Err(Refusal::bad_request(format!("The feature flag {} is unsupported", call.text("name")?)))
}

fn attempts(call: &Call) -> Outcome {
    is_this(call)?;
    let (succeeded, failed) = call.api.logins.counts();
    let over = |protocol: &str, counts: LoginCounts| {
        let LoginCounts { succeeded, failed } = counts;
        json!({
            "protocol": protocol,
            "auth_attempts": succeeded + failed,
            "auth_attempts_failed": failed,
            "auth_attempts_succeeded": succeeded,
        })
    };
    Ok(Reply::json(&[
        over("amqp091", (call.api.settings.amqp_logins)()),
        over("http", LoginCounts { succeeded, failed }),
    ]))
}

fn sources(call: &Call) -> Outcome {
    is_this(call)?;
    Ok(Reply::json(&Value::Array(Vec::new())))
}

fn forget(call: &Call) -> Outcome {
    is_this(call)?;
    call.api.logins.reset();
    (call.api.settings.forget_amqp_logins)();
    Ok(Reply::done())
}
