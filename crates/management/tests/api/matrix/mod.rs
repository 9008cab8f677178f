//! Who may ask for what: every method of every path, by every kind of caller.
//!
//! `expected.txt` says what each of them needs. A route that is not in it fails the test, as does one in it that there is not.

use crate::direct::{Asked, Direct, ELSEWHERE, OF_TOKEN, TOKEN_MS};
use crate::support::Answer;
use courser_auth::Permission;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// The refusals that come before a handler looks at anything.
const AT_THE_DOOR: [&str; 5] = [
    "Not management user",
    "Not monitor user",
    "Not administrator user",
    "Not_Authorized",
    "User can only log in via localhost",
];
/// The vhost that is asked for; who may do everything may also delete it.
const VHOST: &str = "matrix";
/// The other one.
const OTHER_VHOST: &str = "other";
const TAGS: [&str; 5] = ["none", "management", "policymaker", "monitoring", "administrator"];
/// Names in a pattern that need more than others there.
const NEED_MORE: [(&str, &str); 3] = [
    ("/api/global-parameters/{name}", "cluster_name"),
    ("/api/global-parameters/{name}", "imported_definition_hash_value"),
    ("/api/global-parameters/{name}", "first_users_made"),
];
/// What the page sends along.
const FROM_PAGE: (&str, &str) = ("x-courser-csrf", "1");

/// What a route needs.
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
    /// Whether a user with this tag is let in, who can enter the vhost in the path or can't.
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

/// The table, by path and method.
fn expected() -> BTreeMap<(String, String), Needs> {
    let (mut needs, mut table) = (Needs::Nothing, BTreeMap::new());
    for line in include_str!("expected.txt").lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some("nothing") => needs = Needs::Nothing,
            Some("any tag") => needs = Needs::Login,
            Some("any tag, vhost") => needs = Needs::Vhost,
            Some("monitoring") => needs = Needs::Monitoring,
            Some("policymaker") => needs = Needs::Policymaker,
            Some("administrator") => needs = Needs::Administrator,
            Some(other) => panic!("{other}"),
            None => {
                let mut words = line.split_whitespace();
                let path = words.next().expect("a path");
                for method in words {
                    let before = table.insert((path.to_owned(), method.to_owned()), needs);
                    assert_eq!(before, None, "{method} {path} is there twice");
                }
            }
        }
    }
    table
}

/// The routes that there are, and some names in them, by path and method.
async fn served(direct: &Direct) -> Vec<(String, String)> {
    let document = direct.ask(Asked::new("GET", "/api/openapi.json")).await.json();
    let mut routes = Vec::new();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for method in ["get", "put", "post", "delete"] {
            if operations.get(method).is_some() {
                routes.push((path.clone(), method.to_uppercase()));
                let more = NEED_MORE.iter().filter(|(pattern, _)| pattern == path);
                let more = more.map(|(pattern, name)| pattern.replace("{name}", name));
                routes.extend(more.map(|path| (path, method.to_uppercase())));
            }
        }
    }
    routes
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

/// Makes what a request may have deleted.
fn restore(direct: &Direct) {
    let admin = direct.broker.admin();
    if admin.vhost(VHOST).is_none() {
        admin.change_vhost(VHOST, |_| {}).expect("a vhost");
        for tag in TAGS {
            admin.set_permission(&format!("{tag}-in"), VHOST, Permission::all()).expect("let in");
        }
    }
    if admin.accounts().user("gone").is_none() {
        direct.add_user("gone", "administrator");
    }
}

fn world() -> Direct {
    let direct = Direct::new();
    direct.broker.admin().change_vhost(OTHER_VHOST, |_| {}).expect("a vhost");
    for tag in TAGS {
        let tags = if tag == "none" { "" } else { tag };
        let owner = format!("{tag}-out");
        direct.add_user(&format!("{tag}-in"), tags);
        direct.add_user(&owner, tags);
        direct
            .broker
            .admin()
            .set_permission(&owner, OTHER_VHOST, Permission::all())
            .expect("let in");
    }
    direct.add_user("local", "administrator");
    let local = direct.broker.admin().change_user("local", |user| {
        user.loopback_only = true;
        Ok(())
    });
    local.expect("a user");
    direct
}

/// Whether an answer comes from the handler, and not from the door.
fn is_let_in(answer: &Answer, needs: Needs) -> bool {
    if answer.status != 401 && answer.status != 404 {
        return true;
    }
    if answer.body.is_empty() {
        return answer.status != 401;
    }
    let (error, reason) = answer.refusal();
    let reason = reason.as_str().unwrap_or_default();
    let is_for_vhost = matches!(needs, Needs::Vhost | Needs::Policymaker);
    let refused_vhost = is_for_vhost && error == "not_found" && reason == "Not Found";
    // What needs an administrator may be among what needs a policymaker.
    let no_policymaker = matches!(needs, Needs::Policymaker | Needs::Administrator)
        && reason == "User not authorised to access object";
    !(refused_vhost || no_policymaker || AT_THE_DOOR.contains(&reason))
}

/// Asks for a route as each kind of caller. Returns what was answered otherwise than expected.
async fn cells(direct: &Direct, pattern: &str, method: &str, needs: Needs) -> Vec<String> {
    let path = path(pattern);
    let asked = Asked::new(method, &path);
    let mut wrong = Vec::new();
    let mut cell = |who: &str, answer: &Answer, expected: bool| {
        if is_let_in(answer, needs) != expected || answer.status == 500 {
            wrong.push(format!("{method} {pattern} by {who}: {answer:?}"));
        }
    };
    let is_open = needs == Needs::Nothing;
    for tag in TAGS {
        for (user, enters) in [(format!("{tag}-in"), true), (format!("{tag}-out"), false)] {
            restore(direct);
            let answer = direct.ask(asked.by(&user)).await;
            cell(&user, &answer, needs.lets_in(tag, enters, pattern.contains("{vhost}")));
        }
    }
    restore(direct);
    cell("no credentials", &direct.ask(asked).await, is_open);
    cell("a wrong login", &direct.ask(asked.by("unknown")).await, is_open);
    let made_up = [("cookie", "courser_session=00"), FROM_PAGE];
    cell("no session", &direct.ask(Asked { headers: &made_up, ..asked }).await, is_open);
    let cookie = direct.log_in("gone").await;
    direct.broker.admin().delete_user("gone").expect("deleted");
    let session = [("cookie", cookie.as_str()), FROM_PAGE];
    let answer = direct.ask(Asked { headers: &session, ..asked }).await;
    cell("one deleted after it has logged in", &answer, is_open);
    cell("one deleted", &direct.ask(asked.by("gone")).await, is_open);
    restore(direct);
    // Logging in reads what is sent first.
    if !is_open && (pattern, method) != ("/api/login", "POST") {
        let slow = Asked { body: "{}", ..asked.by("gone") };
        let delete = || direct.broker.admin().delete_user("gone").expect("deleted");
        cell("one deleted while it sends", &direct.ask_slowly(slow, delete).await, false);
    }
    let cookie = direct.log_in(OF_TOKEN).await;
    direct.now_ms.fetch_add(TOKEN_MS, Ordering::Relaxed);
    let session = [("cookie", cookie.as_str()), FROM_PAGE];
    let answer = direct.ask(Asked { headers: &session, ..asked }).await;
    cell("one whose token is over", &answer, is_open);
    let far = Asked { from: ELSEWHERE, ..asked };
    cell("one from elsewhere", &direct.ask(far.by("local")).await, is_open);
    let cookie = direct.log_in("local").await;
    let session = [("cookie", cookie.as_str()), FROM_PAGE];
    let answer = direct.ask(Asked { headers: &session, ..far }).await;
    cell("a session taken elsewhere", &answer, is_open);
    wrong
}

#[tokio::test]
async fn every_path_lets_in_the_expected_callers_only() {
    let direct = world();
    let mut expected = expected();
    let mut wrong = Vec::new();
    for (pattern, method) in served(&direct).await {
        match expected.remove(&(pattern.clone(), method.clone())) {
            Some(needs) => wrong.extend(cells(&direct, &pattern, &method, needs).await),
            None => wrong.push(format!("{method} {pattern} is not in expected.txt")),
        }
    }
    wrong.extend(expected.keys().map(|(path, method)| format!("{method} {path} is not there")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
