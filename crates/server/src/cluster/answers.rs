//! What a node that does not lead answers itself over HTTP.

use super::members::Members;
use crate::config::Config;
use courser_management::{Cluster as _, OwnAnswer, QUORUM_CRITICAL, Relay};
use hyper::Uri;
use std::sync::Arc;

/// What may be read by those who may read metrics.
const MONITORED_PAGE: &str = "/api/cluster";

/// What a node that does not lead answers itself over HTTP.
pub(super) fn relay(config: &Config, members: &Arc<Members>) -> Arc<Relay> {
    let (prefix, members) = (config.management.path_prefix.clone(), Arc::clone(members));
    Relay::new(move |path, is_operator| {
        let path = if is_operator { path } else { path.strip_prefix(&*prefix)? };
        let json = |status, body: serde_json::Value| {
            Some(OwnAnswer { status, content_type: "application/json", body: body.to_string() })
        };
        let failed = |reason: &str| serde_json::json!({ "status": "failed", "reason": reason });
        let ok = || serde_json::json!({ "status": "ok" });
        match path {
            "/health/live" => json(200, ok()),
            "/health/ready" if members.has_leader() => json(200, ok()),
            "/health/ready" => json(503, failed("no node of the cluster leads")),
            "/api/health/checks/node-is-quorum-critical" => match members.is_quorum_critical() {
                false => json(200, ok()),
                true => json(503, failed(QUORUM_CRITICAL)),
            },
            // Others have to log in, which only the node that leads can check.
            "/api/cluster" if is_operator => json(200, members.status()),
            _ => None,
        }
    })
}

/// The metrics of a node that does not lead. It knows no users: where a login is wanted, the node that leads is asked.
pub(super) fn metrics_relay(config: &Config, members: &Arc<Members>) -> Arc<Relay> {
    let members = Arc::clone(members);
    let answer = move |path: &str, _: bool| {
        Some(match path.trim_end_matches('/') {
            "/metrics" => OwnAnswer {
                status: 200,
                content_type: "text/plain; version=0.0.4; charset=utf-8",
                body: members.metrics(),
            },
            _ => OwnAnswer {
                status: 404,
                content_type: "text/plain",
                body: "this node does not lead: it has /metrics only".into(),
            },
        })
    };
    let page = config.metrics.authentication.then(|| {
        let page = format!("{}{MONITORED_PAGE}", config.management.path_prefix);
        // A prefix that is none was refused before.
        page.parse().unwrap_or(Uri::from_static(MONITORED_PAGE))
    });
    Relay::of_own(answer, page)
}
