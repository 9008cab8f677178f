//! Answers that tell of what there is, or is not, wait until it is certain that they are current: in a cluster another node
//! may lead by now, and have changed it.

use super::answer::{PARTIAL, is_question, refusal, set_partial};
use super::body::Outgoing;
use crate::refusal::Refusal;
use crate::routes::{Needs, Route};
use courser_broker::admin::Admin;
use hyper::{Response, StatusCode};
use std::time::Duration;

/// How long an answer may wait. A leader without a majority gives up the lead sooner; one with slow disks may take longer.
const CURRENT_TIMEOUT: Duration = Duration::from_secs(30);

/// Paths, with all below, whose answers tell how a node or the cluster does: they are of use also where no majority is, and what
/// they tell of is this node's.
const OF_THE_NODE: [&str; 20] = [
    "/api/attention",
    "/api/audit",
    "/api/certificates",
    "/api/channels",
    "/api/cluster",
    "/api/config",
    "/api/connections",
    "/api/consumers",
    "/api/deprecated-features",
    "/api/events",
    "/api/extensions",
    "/api/feature-flags",
    "/api/health",
    "/api/healthchecks",
    "/api/log",
    "/api/message-sizes",
    "/api/nodes",
    "/api/overview",
    "/api/stream",
    "/api/tls",
];

/// Whether an answer tells of what another node may have changed. That a change is done is answered when it is durable.
pub(crate) fn is_to_be_current(route: &Route, status: StatusCode) -> bool {
    match status.is_success() {
        _ if route.needs == Needs::Nothing => false,
        true => is_question(route) && !is_of_the_node(route.pattern),
        false => !status.is_server_error(),
    }
}

fn is_of_the_node(pattern: &str) -> bool {
    OF_THE_NODE.iter().any(|path| {
        pattern.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// An answer when it is certainly current, or a refusal in its place.
pub(crate) async fn when_current(admin: &Admin, answer: Response<Outgoing>) -> Response<Outgoing> {
    let Err(refused) = current(admin).await else { return answer };
    let mut refusal = refusal(&refused);
    if answer.headers().contains_key(PARTIAL) {
        set_partial(&mut refusal);
    }
    refusal
}

/// Waits until what was read so far is certainly current.
///
/// # Errors
/// When it may not be.
pub(crate) async fn current(admin: &Admin) -> Result<(), Refusal> {
    let Some(current) = admin.current() else { return Ok(()) };
    match tokio::time::timeout(CURRENT_TIMEOUT, current).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(fault)) => Err(fault.into()),
        Err(_) => Err(Refusal::unavailable(
            "no majority of the cluster says in time that this is current",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api;
    use crate::routes::Routes;

    #[test]
    fn what_is_no_nodes_own_is_to_be_current() {
        let routes = Routes::new(api::TABLE);
        let of_the_node = |path: &str| {
            let found = routes.iter().filter(|route| is_of_the_node(route.pattern));
            found.filter(|route| route.pattern.starts_with(path)).count()
        };
        for path in OF_THE_NODE {
            assert!(of_the_node(path) > 0, "{path} is served by none");
        }
        for path in ["/api/cluster-name", "/api/definitions", "/api/queues", "/api/users"] {
            assert_eq!(of_the_node(path), 0, "{path}");
        }
    }
}
