//! Which request is for which handler: the table's patterns, compiled.
//!
//! The table is the only place that says what is served. Matching, `allow` and OPTIONS, what a
//! caller needs, and the description of the API are made from it.

use crate::call::{Call, Outcome};
use crate::caller::Caller;
use crate::refusal::Refusal;
use hyper::Method;
use std::fmt;

/// What a caller needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// No credentials.
    Nothing,
    /// Name and password in the request, and a tag that lets it log in.
    Credentials,
    /// A code in the request that the provider gives tokens for, and a tag that lets its user log in.
    Code,
    /// A tag that lets it log in. Whose things it may see is for the handler to say.
    Login,
    /// Such a tag, and to be let into the vhost in the path.
    Vhost,
    /// To see what is everybody's.
    Monitoring,
    /// To make policies, in the vhost in the path if there is one.
    Policymaker,
    /// To administer the broker.
    Administrator,
}

/// What a route may change. Each request says whether it has been done; what is in the log has to be durable before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// Nothing: it asks.
    Nothing,
    /// What no restart keeps, such as sessions and connections, or which node leads.
    Memory,
    /// What the log keeps.
    Log,
}

/// What answers a request. Runs on a thread that may be blocked.
pub(crate) type Handler = fn(&Call) -> Outcome;

/// A line of the table.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub method: Verb,
    /// Segments behind slashes; `{name}` stands for any one.
    pub pattern: &'static str,
    pub needs: Needs,
    pub changes: Changes,
    pub handler: Handler,
    /// One sentence for the description of the API.
    pub doc: &'static str,
}

/// Methods that routes have; HEAD goes where GET does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Verb {
    Get,
    Put,
    Post,
    Delete,
}

impl Verb {
    pub fn of(method: &Method) -> Option<Self> {
        match *method {
            Method::GET | Method::HEAD => Some(Verb::Get),
            Method::PUT => Some(Verb::Put),
            Method::POST => Some(Verb::Post),
            Method::DELETE => Some(Verb::Delete),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::Put => "put",
            Verb::Post => "post",
            Verb::Delete => "delete",
        }
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.method, self.pattern)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Literal(&'static str),
    Name(&'static str),
}

impl Part {
    fn matches(&self, segment: &[u8]) -> bool {
        match self {
            Part::Literal(literal) => literal.as_bytes() == segment,
            Part::Name(_) => true,
        }
    }
}

/// All routes of one pattern.
#[derive(Debug)]
pub(crate) struct Resource {
    parts: Vec<Part>,
    pub routes: Vec<Route>,
    /// The methods that it has, for the header of this name.
    pub allow: String,
}

impl Resource {
    fn new(pattern: &'static str) -> Self {
        let part =
            |text: &'static str| match text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
                Some(name) => Part::Name(name),
                None => Part::Literal(text),
            };
        let parts = pattern.split('/').skip(1).map(part).collect();
        Resource { parts, routes: Vec::new(), allow: String::new() }
    }

    fn matches(&self, segments: &[Vec<u8>]) -> bool {
        self.parts.len() == segments.len()
            && self.parts.iter().zip(segments).all(|(part, segment)| part.matches(segment))
    }

    /// Of two patterns that match, the one that is a literal where the other is not comes first.
    fn rank(&self) -> Vec<bool> {
        self.parts.iter().map(|part| matches!(part, Part::Name(_))).collect()
    }

    /// What stands in a path for the names of the pattern.
    pub fn params(&self, segments: Vec<Vec<u8>>) -> Vec<(&'static str, Vec<u8>)> {
        let named = self.parts.iter().zip(segments).filter_map(|(part, segment)| match part {
            Part::Name(name) => Some((*name, segment)),
            Part::Literal(_) => None,
        });
        named.collect()
    }

    /// The route of a method.
    pub fn route(&self, verb: Verb) -> Option<&Route> {
        self.routes.iter().find(|route| route.method == verb)
    }

    fn set_allow(&mut self) {
        let mut allow = vec!["OPTIONS"];
        if self.route(Verb::Get).is_some() {
            allow.extend(["HEAD", "GET"]);
        }
        for (verb, name) in [(Verb::Put, "PUT"), (Verb::Post, "POST"), (Verb::Delete, "DELETE")] {
            if self.route(verb).is_some() {
                allow.push(name);
            }
        }
        self.allow = allow.join(", ");
    }
}

/// The table, compiled.
#[derive(Debug)]
pub(crate) struct Routes {
    resources: Vec<Resource>,
}

impl Routes {
    pub fn new(table: &[&[Route]]) -> Self {
        let mut resources: Vec<(&'static str, Resource)> = Vec::new();
        for route in table.iter().copied().flatten() {
            let at = resources.iter().position(|(pattern, _)| *pattern == route.pattern);
            let at = at.unwrap_or_else(|| {
                resources.push((route.pattern, Resource::new(route.pattern)));
                resources.len() - 1
            });
            resources[at].1.routes.push(*route);
        }
        let mut resources: Vec<Resource> = resources.into_iter().map(|(_, one)| one).collect();
        resources.iter_mut().for_each(Resource::set_allow);
        resources.sort_by_key(Resource::rank);
        Routes { resources }
    }

    /// What a path is for.
    pub fn find(&self, segments: &[Vec<u8>]) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.matches(segments))
    }

    /// All routes.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.resources.iter().flat_map(|resource| &resource.routes)
    }
}

/// Whether a caller has one of the tags that a route needs. The first thing to ask: a caller without one
/// is heard no further.
pub(crate) fn check_tags(caller: &Caller, needs: Needs) -> Result<(), Refusal> {
    match needs {
        Needs::Nothing => Ok(()),
        Needs::Credentials | Needs::Code | Needs::Login | Needs::Vhost => caller.need_login(),
        Needs::Monitoring => caller.need_monitor(),
        Needs::Policymaker => caller.need_policymaker(None),
        Needs::Administrator => caller.need_administrator(),
    }
}

/// Whether a caller who has the tags may use the vhost in the path, where a route is for one.
pub(crate) fn check_vhost(call: &Call, needs: Needs) -> Result<(), Refusal> {
    if !matches!(needs, Needs::Vhost | Needs::Policymaker) || !call.has("vhost") {
        return Ok(());
    }
    let caller = call.caller()?;
    if needs == Needs::Policymaker {
        caller.need_policymaker(Some(call.text("vhost")?))?;
    }
    vhost_is_there(call, caller)
}

/// Whether the vhost in the path can be entered.
fn vhost_is_there(call: &Call, caller: &Caller) -> Result<(), Refusal> {
    let vhost = call.text("vhost")?;
    if !caller.may_enter(vhost) {
        return Err(Refusal::missing("Not Found"));
    }
    if call.admin().has_vhost(vhost) {
        return Ok(());
    }
    match call.method {
        Method::GET | Method::HEAD => Err(Refusal::not_found()),
        _ => Err(Refusal::missing("vhost_not_found")),
    }
}

#[cfg(test)]
mod tests {
    use super::Verb::{Delete, Get, Post, Put};
    use super::*;
    use crate::api::TABLE;

    /// What asks, though it sends a body.
    const QUESTIONS: [(Verb, &str); 4] = [
        (Post, "/api/access/check"),
        (Post, "/api/exchanges/{vhost}/{exchange}/route"),
        (Post, "/api/operator-policy-preview/{vhost}"),
        (Post, "/api/policy-preview/{vhost}"),
    ];
    /// What is done though no log gets on.
    const OF_MEMORY: [(Verb, &str); 26] = [
        (Delete, "/api/auth/attempts/{node}"),
        (Delete, "/api/auth/attempts/{node}/source"),
        (Delete, "/api/channels/{name}"),
        (Delete, "/api/cluster/drain/{node}"),
        (Put, "/api/cluster/drain/{node}"),
        (Put, "/api/cluster/leader"),
        (Delete, "/api/connections/username/{user}"),
        (Delete, "/api/connections/{name}"),
        (Put, "/api/feature-flags/{name}/enable"),
        (Delete, "/api/login"),
        (Post, "/api/login"),
        (Put, "/api/nodes/{node}/listeners/resume"),
        (Put, "/api/nodes/{node}/listeners/suspend"),
        (Put, "/api/nodes/{node}/log-level"),
        (Put, "/api/nodes/{node}/memory-limit"),
        (Put, "/api/nodes/{node}/scrub"),
        (Post, "/api/oauth/login"),
        (Post, "/api/oauth/session"),
        (Post, "/api/queues/quorum/replicas/on/{node}/grow"),
        (Delete, "/api/queues/quorum/replicas/on/{node}/shrink"),
        (Post, "/api/queues/quorum/{vhost}/{queue}/replicas/add"),
        (Delete, "/api/queues/quorum/{vhost}/{queue}/replicas/delete"),
        (Post, "/api/queues/{vhost}/{queue}/actions"),
        (Post, "/api/rebalance/queues"),
        (Delete, "/api/reset"),
        (Delete, "/api/reset/{node}"),
    ];

    #[test]
    fn each_route_changes_nothing_or_memory_or_the_log() {
        let (mut questions, mut of_memory) = (0, 0);
        for route in TABLE.iter().copied().flatten() {
            let named = (route.method, route.pattern);
            let expected = match named {
                (Get, _) => Changes::Nothing,
                _ if QUESTIONS.contains(&named) => Changes::Nothing,
                _ if OF_MEMORY.contains(&named) => Changes::Memory,
                _ => Changes::Log,
            };
            assert_eq!(route.changes, expected, "{route:?}");
            questions += usize::from(QUESTIONS.contains(&named));
            of_memory += usize::from(OF_MEMORY.contains(&named));
        }
        assert_eq!((questions, of_memory), (QUESTIONS.len(), OF_MEMORY.len()), "all are served");
    }
}
