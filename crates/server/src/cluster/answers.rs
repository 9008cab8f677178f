//! What a node that does not lead answers itself over HTTP.

use super::members::Members;
use crate::config::Config;
use courser_management::{Cluster as _, LOCAL_ALARMS, OwnAnswer, QUORUM_CRITICAL, Relay};
use hyper::Uri;
use std::sync::Arc;

/// What may be read by those who may read metrics.
const MONITORED_PAGE: &str = "/api/cluster";
/// What may be read by those who may log in.
const LOGIN_PAGE: &str = "/api/whoami";

/// What a node that does not lead answers itself over HTTP.
pub(super) fn relay(config: &Config, members: &Arc<Members>) -> Arc<Relay> {
    let (prefix, members) = (config.management.path_prefix.clone(), Arc::clone(members));
    Relay::new(move |path, is_operator| {
        let path = if is_operator { path } else { path.strip_prefix(&*prefix)? };
        let json = |status, body: serde_json::Value| {
            let body = body.to_string();
            Some(OwnAnswer { status, content_type: "application/json", body, page: None })
        };
        let failed = |reason: &str| serde_json::json!({ "status": "failed", "reason": reason });
        let ok = || serde_json::json!({ "status": "ok" });
        match path {
            "/health/live" => json(200, ok()),
            "/health/ready" => match members.why_not_ready() {
                None => json(200, ok()),
                Some(why) => json(503, failed(&why)),
            },
            "/api/health/checks/node-is-quorum-critical" => match members.is_quorum_critical() {
                false => json(200, ok()),
                true => json(503, failed(QUORUM_CRITICAL)),
            },
            "/api/health/checks/local-alarms" => {
                let answer = match members.has_room() {
                    true => json(200, ok()),
                    false => {
                        let node = format!("courser@{}", members.node_name());
                        let alarms = [serde_json::json!({ "node": node, "resource": "disk" })];
                        let mut body = failed(LOCAL_ALARMS);
                        body["alarms"] = serde_json::json!(alarms);
                        json(503, body)
                    }
                };
                let page = || page(&prefix, LOGIN_PAGE);
                answer.map(|answer| OwnAnswer { page: (!is_operator).then(page), ..answer })
            }
            // Others have to log in, which only the node that leads can check.
            "/api/cluster" if is_operator => json(200, members.status()),
            _ => None,
        }
    })
}

/// The metrics of a node that does not lead. It knows no users: where a login is wanted, the node that leads is asked.
pub(super) fn metrics_relay(config: &Config, members: &Arc<Members>) -> Arc<Relay> {
    let members = Arc::clone(members);
    let wants_login = config.metrics.authentication;
    let monitored = wants_login.then(|| page(&config.management.path_prefix, MONITORED_PAGE));
    Relay::of_own(move |path, _| {
        let page = monitored.clone();
        Some(match path.trim_end_matches('/') {
            "/metrics" => OwnAnswer {
                status: 200,
                content_type: "text/plain; version=0.0.4; charset=utf-8",
                body: members.metrics(),
                page,
            },
            _ => OwnAnswer {
                status: 404,
                content_type: "text/plain",
                body: "this node does not lead: it has /metrics only".into(),
                page,
            },
        })
    })
}

/// A page of the node that leads.
fn page(prefix: &str, path: &'static str) -> Uri {
    // A prefix that is none was refused before.
    format!("{prefix}{path}").parse().unwrap_or(Uri::from_static(path))
}
