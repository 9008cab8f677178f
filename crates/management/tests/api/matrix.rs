//! Who may do what: every method of every path, asked for by users with each tag, with access to the
//! vhost and without.

use crate::support::Broker;
use courser_auth::Permission;
use courser_broker::admin::VhostLimits;
use serde_json::Value;

/// The refusals that come before a handler looks at anything.
const AT_THE_DOOR: [&str; 3] =
    ["Not management user", "Not monitor user", "Not administrator user"];

/// The vhost that is asked for; who may do everything may also delete it.
const VHOST: &str = "matrix";

/// Makes the vhost, and lets some users in, unless it is there.
fn restore(broker: &Broker) {
    let admin = broker.admin();
    if admin.vhost(VHOST).is_none() {
        admin.put_vhost(VHOST, VhostLimits::default()).expect("a vhost");
        for tag in TAGS {
            let user = format!("{tag}-in");
            admin.set_permission(&user, VHOST, Permission::all()).expect("a permission");
        }
    }
}

const TAGS: [&str; 5] = ["none", "management", "policymaker", "monitoring", "administrator"];

/// What a route needs, as its description says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    Login,
    Vhost,
    Monitoring,
    Policymaker,
    Administrator,
}

impl Needs {
    fn of(operation: &Value) -> Self {
        match operation["description"].as_str().expect("a description") {
            "Needs no credentials." => Needs::Nothing,
            "Needs any tag." => Needs::Login,
            "Needs any tag, and access to the vhost." => Needs::Vhost,
            "Needs monitoring or administrator." => Needs::Monitoring,
            "Needs policymaker or administrator." => Needs::Policymaker,
            "Needs administrator." => Needs::Administrator,
            other => panic!("{other}"),
        }
    }

    /// Whether somebody with this tag is let in.
    fn lets_in(self, tag: &str, enters: bool, has_vhost: bool) -> bool {
        let enters = enters || !has_vhost || tag == "administrator";
        match self {
            Needs::Nothing => true,
            Needs::Login => tag != "none",
            Needs::Vhost => tag != "none" && enters,
            Needs::Monitoring => matches!(tag, "monitoring" | "administrator"),
            Needs::Policymaker => tag == "administrator" || tag == "policymaker" && enters,
            Needs::Administrator => tag == "administrator",
        }
    }
}

/// A path of the pattern, with names that nothing has.
fn path(pattern: &str) -> String {
    let parts = pattern.split('/').map(|part| match part {
        "{vhost}" => VHOST,
        named if named.starts_with('{') => "nothing-of-this-name",
        literal => literal,
    });
    let path = parts.collect::<Vec<_>>().join("/");
    // What goes on for ever is asked for none of it.
    let goes_on = path == "/api/events" || path == "/api/log/stream";
    if goes_on { path + "?seconds=0" } else { path }
}

#[tokio::test]
async fn every_path_lets_in_whom_its_description_names_and_nobody_else() {
    let broker = Broker::start().await;
    for tag in TAGS {
        let tag_list = if tag == "none" { "" } else { tag };
        broker.add_user(&format!("{tag}-in"), tag_list, &[]);
        broker.add_user(&format!("{tag}-out"), tag_list, &[]);
    }
    let document = broker.call("GET", "/api/openapi.json", None, "").await.json();
    let paths = document["paths"].as_object().expect("paths");
    let mut asked = 0;
    for (pattern, operations) in paths {
        let methods = ["get", "put", "post", "delete"];
        for method in methods.into_iter().filter(|method| operations.get(*method).is_some()) {
            let needs = Needs::of(&operations[method]);
            let (verb, path) = (method.to_uppercase(), path(pattern));
            let nobody = broker.call(&verb, &path, None, "").await;
            let is_open = nobody.status != 401;
            assert_eq!(is_open, needs == Needs::Nothing, "{verb} {path} without credentials");
            for tag in TAGS {
                for (user, enters) in [(format!("{tag}-in"), true), (format!("{tag}-out"), false)] {
                    restore(&broker);
                    let answer = broker.call(&verb, &path, Some(&user), "").await;
                    let has_vhost = pattern.contains("{vhost}");
                    let lets_in = needs.lets_in(tag, enters, has_vhost);
                    assert_eq!(
                        is_let_in(&answer, needs),
                        lets_in,
                        "{verb} {path} by {user}: {answer:?}"
                    );
                    assert_ne!(answer.status, 500, "{verb} {path} by {user}: {answer:?}");
                    asked += 1;
                }
            }
        }
    }
    assert!(asked > 800, "{asked}");
}

/// Whether an answer comes from the handler, and not from the door.
fn is_let_in(answer: &crate::support::Answer, needs: Needs) -> bool {
    if answer.status != 401 && answer.status != 404 {
        return true;
    }
    let (error, reason) = answer.refusal();
    let reason = reason.as_str().unwrap_or_default();
    let is_for_vhost = matches!(needs, Needs::Vhost | Needs::Policymaker);
    let refused_vhost = is_for_vhost && error == "not_found" && reason == "Not Found";
    let no_policymaker =
        needs == Needs::Policymaker && reason == "User not authorised to access object";
    !(refused_vhost || no_policymaker || AT_THE_DOOR.contains(&reason))
}

#[tokio::test]
async fn what_needs_an_administrator_has_not_become_anybodys() {
    let broker = Broker::start().await;
    let document = broker.call("GET", "/api/openapi.json", None, "").await.json();
    for (method, pattern, needs) in [
        ("put", "/api/users/{user}", Needs::Administrator),
        ("put", "/api/users/{user}/tags", Needs::Administrator),
        ("delete", "/api/users/{user}", Needs::Administrator),
        ("get", "/api/users", Needs::Administrator),
        ("put", "/api/permissions/{vhost}/{user}", Needs::Administrator),
        ("get", "/api/permissions", Needs::Administrator),
        ("get", "/api/vhosts/{vhost}", Needs::Administrator),
        ("put", "/api/vhost-limits/{vhost}/{name}", Needs::Administrator),
        ("put", "/api/operator-policies/{vhost}/{name}", Needs::Administrator),
        ("put", "/api/policies/{vhost}/{name}", Needs::Policymaker),
        ("get", "/api/nodes", Needs::Monitoring),
        ("put", "/api/queues/{vhost}/{queue}", Needs::Vhost),
        ("post", "/api/exchanges/{vhost}/{exchange}/publish", Needs::Vhost),
        ("get", "/api/overview", Needs::Login),
    ] {
        let operation = &document["paths"][pattern][method];
        assert_eq!(Needs::of(operation), needs, "{method} {pattern}");
    }
}
