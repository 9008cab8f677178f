//! The description of the API (OpenAPI 3.1), made from the table of routes.

use crate::routes::{Needs, Route, Routes};
use crate::taken;
use serde_json::{Map, Value, json};

/// The whole document.
pub(crate) fn document(routes: &Routes, version: &str) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes.iter() {
        let path = paths.entry(route.pattern).or_insert_with(|| parameters(route.pattern));
        path[route.method.name()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Courser HTTP API",
            "version": version,
            "description": "Paths, objects and errors are those of RabbitMQ's management API.",
        },
        "paths": paths,
        "components": {
            "parameters": taken::OF_EVERY_GET.iter().map(|name| ((*name).to_owned(), in_query(name))).collect::<Map<_, _>>(),
            "securitySchemes": {
                "basic": { "type": "http", "scheme": "basic" },
                "bearer": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" },
            },
        },
    })
}

fn parameters(pattern: &str) -> Value {
    let names = pattern.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let list = names.map(|name| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
    });
    let list: Vec<Value> = list.collect();
    if list.is_empty() { json!({}) } else { json!({ "parameters": list }) }
}

fn in_query(name: &str) -> Value {
    let kind = if taken::FLAGS.contains(&name) { "boolean" } else { "string" };
    json!({ "name": name, "in": "query", "schema": { "type": kind } })
}

/// What a body may have, if it is read. Other members are refused.
fn request_body(body: &taken::Body) -> Value {
    let members = body.members.iter().map(|name| ((*name).to_owned(), json!({})));
    let beside = body.beside.iter().map(|name| {
        let said = "Taken, since tools of RabbitMQ send it, and changes nothing.";
        ((*name).to_owned(), json!({ "description": said }))
    });
    let properties: Map<String, Value> = members.chain(beside).collect();
    let schema =
        json!({ "type": "object", "properties": properties, "additionalProperties": false });
    json!({ "content": { "application/json": { "schema": schema } } })
}

fn operation(route: &Route) -> Value {
    let Route { method, pattern, needs, doc, .. } = *route;
    let tag = pattern.split('/').nth(2).unwrap_or_default();
    let security = match needs {
        Needs::Nothing | Needs::Code => json!([]),
        Needs::Credentials => json!([{ "basic": [] }, {}]),
        _ => json!([{ "basic": [] }, { "bearer": [] }]),
    };
    let mut operation = json!({
        "summary": doc,
        "description": format!("Needs {}.", needed(needs)),
        "tags": [tag],
        "security": security,
        "responses": { "default": { "description": "See the summary; errors have `error` and `reason`." } },
    });
    if let Some(body) = taken::body_of(method, pattern) {
        operation["requestBody"] = request_body(body);
    }
    let own: Vec<Value> = taken::query_of(method, pattern).iter().copied().map(in_query).collect();
    if !own.is_empty() {
        operation["parameters"] = own.into();
    }
    operation
}

/// What a caller needs, in words.
pub(crate) fn needed(needs: Needs) -> &'static str {
    match needs {
        Needs::Nothing | Needs::Code => "no credentials",
        Needs::Credentials | Needs::Login => "any tag",
        Needs::Vhost => "any tag, and access to the vhost",
        Needs::Monitoring => "monitoring or administrator",
        Needs::Policymaker => "policymaker or administrator",
        Needs::Administrator => "administrator",
    }
}
