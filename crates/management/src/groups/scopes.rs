//! Which requests are answered where in a cluster with several groups.
//!
//! What has a vhost in its path is for the group of that vhost, unless it stands here. Everything else stands here; a test sees to it.

use super::parts::Merge;
use super::{documents, nodes, sums};
use crate::routes::{Route, Verb};

/// Who answers a request.
#[derive(Clone, Copy)]
pub(super) enum Scope {
    /// Home alone.
    Home,
    /// Home; it changes what the other groups have a copy of.
    Shared,
    /// The group of the vhost in the path.
    Vhost,
    /// The same; where the parameter stands for the limits of the vhost, as [`Scope::Shared`].
    Parameter,
    /// The group of the vhost that the body names.
    VhostOfBody,
    /// All groups: rows of a list. Of one vhost, if the header `x-vhost` says so.
    Rows,
    /// The same, whatever that header says.
    AllRows,
    /// All groups: what they answer is put together. Those that do not know what is asked for (404) are left out, unless all do not.
    Parts(Merge),
    /// The same, of all that there is: which columns are wanted is for home to look at.
    WholeParts(Merge),
    /// The group that has it: connections and channels have names of their own.
    Owner,
    /// All groups, for as long as the client listens.
    Events,
    /// Each group what is for it.
    Import,
}

use Scope::{
    AllRows, Events, Home, Import, Owner, Parameter, Parts, Rows, Shared, VhostOfBody, WholeParts,
};
use Verb::{Delete, Get, Post, Put};

/// Patterns, and who answers.
const SCOPES: &[(Verb, &str, Scope)] = &[
    // Who asks, and what this is.
    (Get, "/api/whoami", Home),
    (Get, "/api/version", Home),
    (Get, "/api/auth", Home),
    (Get, "/api/openapi.json", Home),
    (Get, "/api/index.html", Home),
    (Get, "/api/index.css", Home),
    (Get, "/api/audit", Home),
    (Get, "/api/config/effective", Home),
    (Get, "/api/extensions", Home),
    (Get, "/api/login", Home),
    (Post, "/api/login", Home),
    (Delete, "/api/login", Home),
    (Post, "/api/oauth/login", Home),
    (Post, "/api/oauth/session", Home),
    (Get, "/api/log", Home),
    (Get, "/api/log/stream", Home),
    (Get, "/api/certificates", Home),
    (Get, "/api/tls", Home),
    (Get, "/api/feature-flags", Home),
    (Put, "/api/feature-flags/{name}/enable", Home),
    (Get, "/api/deprecated-features", Home),
    (Get, "/api/deprecated-features/used", Home),
    // What there is none of.
    (Get, "/api/shovels", Home),
    (Get, "/api/shovels/{vhost}", Home),
    (Get, "/api/shovels/vhost/{vhost}/{name}", Home),
    (Get, "/api/federation-links", Home),
    (Get, "/api/federation-links/{vhost}", Home),
    (Get, "/api/federation-links/state/down", Home),
    (Get, "/api/federation-links/{vhost}/state/down", Home),
    (Get, "/api/traces", Home),
    (Get, "/api/traces/{vhost}", Home),
    (Get, "/api/trace-files", Home),
    (Get, "/api/users/{user}/queues", Home),
    (Get, "/api/stream/connections", Home),
    (Get, "/api/stream/connections/{vhost}", Home),
    (Get, "/api/stream/publishers", Home),
    (Get, "/api/stream/publishers/{vhost}", Home),
    (Get, "/api/stream/consumers", Home),
    (Get, "/api/stream/consumers/{vhost}", Home),
    (Post, "/api/queues/quorum/replicas/on/{node}/grow", Home),
    (Delete, "/api/queues/quorum/replicas/on/{node}/shrink", Home),
    (Post, "/api/rebalance/queues", Home),
    // The cluster and its nodes.
    (Get, "/api/cluster", Home),
    (Post, "/api/cluster/nodes", Home),
    (Delete, "/api/cluster/nodes/{node}", Home),
    (Put, "/api/cluster/drain/{node}", Home),
    (Get, "/api/cluster/drain/{node}", Home),
    (Delete, "/api/cluster/drain/{node}", Home),
    (Put, "/api/cluster/leader", Home),
    (Put, "/api/cluster/moves/{vhost}", Home),
    (Get, "/api/cluster/moves/{vhost}", Home),
    (Put, "/api/nodes/{node}/listeners/suspend", Home),
    (Put, "/api/nodes/{node}/listeners/resume", Home),
    // The node in the path answers, which home asks.
    (Get, "/api/nodes/{node}/log-level", Home),
    (Put, "/api/nodes/{node}/log-level", Home),
    (Get, "/api/nodes/{node}/memory-limit", Home),
    (Put, "/api/nodes/{node}/memory-limit", Home),
    (Put, "/api/nodes/{node}/scrub", Home),
    (Get, "/api/nodes/{node}/scrub", Home),
    (Get, "/api/nodes", WholeParts(nodes::all)),
    (Get, "/api/nodes/{node}", WholeParts(nodes::one)),
    (Get, "/api/nodes/{node}/memory", Parts(nodes::memory)),
    (Get, "/api/nodes/{node}/memory/relative", Parts(nodes::relative_memory)),
    (Get, "/api/auth/attempts/{node}", Parts(sums::attempts)),
    (Get, "/api/auth/attempts/{node}/source", Parts(sums::first)),
    (Delete, "/api/auth/attempts/{node}", Parts(sums::done)),
    (Delete, "/api/auth/attempts/{node}/source", Parts(sums::done)),
    (Delete, "/api/reset", Parts(sums::done)),
    (Delete, "/api/reset/{node}", Parts(sums::done)),
    // Whether all is well.
    (Get, "/health/live", Home),
    (Get, "/health/ready", Home),
    (Get, "/api/health/checks/alarms", Parts(sums::alarms)),
    (Get, "/api/health/checks/local-alarms", Home),
    (Get, "/api/health/checks/port-listener/{port}", Home),
    (Get, "/api/health/checks/protocol-listener/{protocols}", Home),
    (Get, "/api/health/checks/certificate-expiration/{within}/{unit}", Home),
    (Get, "/api/health/checks/virtual-hosts", Parts(sums::first)),
    (Get, "/api/health/checks/node-is-quorum-critical", Home),
    (Get, "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts", Home),
    (Get, "/api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}", Home),
    (Get, "/api/health/checks/metadata-store/initialized", Home),
    (Get, "/api/health/checks/metadata-store/initialized/with-data", Home),
    (Get, "/api/health/checks/is-in-service", Home),
    (Get, "/api/health/checks/ready-to-serve-clients", Home),
    (Get, "/api/health/checks/below-node-connection-limit", Home),
    (Get, "/api/health/checks/reached-target-cluster-size", Home),
    (Get, "/api/healthchecks/node", Home),
    (Get, "/api/healthchecks/node/{node}", Home),
    (Get, "/api/attention", Parts(sums::attention)),
    (Get, "/api/overview", Parts(sums::overview)),
    (Get, "/api/message-sizes", Parts(sums::numbers)),
    (Get, "/api/events", Events),
    // Users and what they may do.
    (Get, "/api/users", Home),
    (Get, "/api/users/without-permissions", Home),
    (Get, "/api/users/{user}", Home),
    (Get, "/api/users/{user}/permissions", Home),
    (Get, "/api/users/{user}/topic-permissions", Home),
    (Get, "/api/permissions", Home),
    (Get, "/api/permissions/{vhost}/{user}", Home),
    (Get, "/api/topic-permissions", Home),
    (Get, "/api/topic-permissions/{vhost}/{user}", Home),
    (Get, "/api/topic-permissions/{vhost}/{user}/{exchange}", Home),
    (Get, "/api/user-limits", Home),
    (Get, "/api/user-limits/{user}", Home),
    (Get, "/api/vhosts/{vhost}/permissions", Home),
    (Get, "/api/vhosts/{vhost}/topic-permissions", Home),
    (Get, "/api/auth/hash_password/{password}", Home),
    (Post, "/api/access/check", VhostOfBody),
    (Put, "/api/users/{user}", Shared),
    (Put, "/api/users/{user}/tags", Shared),
    (Put, "/api/users/{user}/password", Shared),
    (Delete, "/api/users/{user}", Shared),
    (Post, "/api/users/bulk-delete", Shared),
    (Put, "/api/permissions/{vhost}/{user}", Shared),
    (Delete, "/api/permissions/{vhost}/{user}", Shared),
    (Put, "/api/topic-permissions/{vhost}/{user}", Shared),
    (Delete, "/api/topic-permissions/{vhost}/{user}", Shared),
    (Put, "/api/topic-permissions/{vhost}/{user}/{exchange}", Shared),
    (Delete, "/api/topic-permissions/{vhost}/{user}/{exchange}", Shared),
    (Put, "/api/user-limits/{user}/{name}", Shared),
    (Delete, "/api/user-limits/{user}/{name}", Shared),
    // Global parameters.
    (Get, "/api/global-parameters", Home),
    (Get, "/api/global-parameters/{name}", Home),
    (Put, "/api/global-parameters/{name}", Shared),
    (Delete, "/api/global-parameters/{name}", Shared),
    (Get, "/api/cluster-name", Home),
    (Put, "/api/cluster-name", Shared),
    // Vhosts.
    (Get, "/api/vhosts", AllRows),
    (Put, "/api/vhosts/{vhost}", Shared),
    (Delete, "/api/vhosts/{vhost}", Shared),
    (Post, "/api/vhosts/{vhost}/deletion/protection", Shared),
    (Delete, "/api/vhosts/{vhost}/deletion/protection", Shared),
    (Get, "/api/vhost-limits", Home),
    (Get, "/api/vhost-limits/{vhost}", Home),
    (Put, "/api/vhost-limits/{vhost}/{name}", Shared),
    (Delete, "/api/vhost-limits/{vhost}/{name}", Shared),
    // What is in them.
    (Get, "/api/queues", Rows),
    (Get, "/api/queues/detailed", Rows),
    (Get, "/api/exchanges", Rows),
    (Get, "/api/bindings", Rows),
    (Get, "/api/consumers", Rows),
    (Get, "/api/policies", Rows),
    (Get, "/api/operator-policies", Rows),
    (Get, "/api/parameters", Rows),
    (Get, "/api/parameters/{component}", Rows),
    (Get, "/api/parameters/{component}/{vhost}/{name}", Parameter),
    (Put, "/api/parameters/{component}/{vhost}/{name}", Parameter),
    (Delete, "/api/parameters/{component}/{vhost}/{name}", Parameter),
    (Get, "/api/connections", Rows),
    (Get, "/api/connections/username/{user}", AllRows),
    (Delete, "/api/connections/username/{user}", Parts(sums::done)),
    (Get, "/api/connections/{name}", Owner),
    (Get, "/api/connections/{name}/channels", Owner),
    (Get, "/api/connections/{name}/sessions", Owner),
    (Delete, "/api/connections/{name}", Owner),
    (Get, "/api/channels", Rows),
    (Get, "/api/channels/{name}", Owner),
    (Delete, "/api/channels/{name}", Owner),
    // Definitions.
    (Get, "/api/definitions", Parts(documents::definitions)),
    (Get, "/api/all-configuration", Parts(documents::definitions)),
    (Post, "/api/definitions", Import),
];

/// Who answers the requests of a route.
pub(super) fn of(route: &Route) -> Scope {
    named(route.method, route.pattern).unwrap_or(Scope::Vhost)
}

fn named(method: Verb, pattern: &str) -> Option<Scope> {
    let found = SCOPES.iter().find(|(verb, known, _)| (*verb, *known) == (method, pattern));
    found.map(|(_, _, scope)| *scope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::TABLE;
    use std::collections::HashSet;

    /// Subjects that are in vhosts.
    const IN_VHOSTS: [&str; 13] = [
        "aliveness-test",
        "bindings",
        "consumers",
        "definitions",
        "exchanges",
        "health",
        "operator-policies",
        "operator-policy-preview",
        "parameters",
        "policies",
        "policy-preview",
        "queues",
        "vhosts",
    ];

    #[test]
    fn every_route_has_a_scope() {
        for route in TABLE.iter().copied().flatten() {
            let subject = route.pattern.split('/').nth(2).unwrap_or_default();
            let is_in_vhost = route.pattern.contains("{vhost}") && IN_VHOSTS.contains(&subject);
            let scope = named(route.method, route.pattern);
            assert!(scope.is_some() || is_in_vhost, "{route:?} stands in no group");
        }
    }

    #[test]
    fn every_scope_is_that_of_one_route() {
        let routes = TABLE.iter().copied().flatten();
        let routes: HashSet<(Verb, &str)> = routes.map(|one| (one.method, one.pattern)).collect();
        let mut seen = HashSet::new();
        for (verb, pattern, _) in SCOPES {
            assert!(routes.contains(&(*verb, *pattern)), "{verb:?} {pattern} is no route");
            assert!(seen.insert((*verb, *pattern)), "{verb:?} {pattern} stands here twice");
        }
    }
}
