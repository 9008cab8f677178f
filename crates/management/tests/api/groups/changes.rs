//! Changes in a cluster with several groups: each is made where it belongs.

use super::support::World;
use super::told::OF_TOKEN;
use crate::support::until_of;
use courser_broker::admin::NewQueue;
use courser_codec::FieldTable;
use courser_management::HOME;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use tokio::io::AsyncReadExt;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_in_a_vhost_is_made_and_read_in_its_group() {
    let world = World::start().await;
    for vhost in ["a", "b", "c", "%2F"] {
        let queue = format!("/api/queues/{vhost}/orders");
        world.both("PUT", &queue, r#"{"durable":true}"#).await;
        world.both("PUT", &queue, r#"{"durable":true}"#).await;
        world.both("PUT", &queue, r#"{"durable":false}"#).await;
        world.both("PUT", &queue, "{").await;
        let bind = r#"{"routing_key":"k"}"#;
        let bound = format!("/api/bindings/{vhost}/e/amq.direct/q/orders");
        let made = world.both("POST", &bound, bind).await;
        assert!(made.headers["location"].ends_with("orders/k"), "{made:?}");
        let message = json!({
            "routing_key": "k", "properties": {}, "payload": "x", "payload_encoding": "string",
        });
        let publish = format!("/api/exchanges/{vhost}/amq.direct/publish");
        let routed = world.both("POST", &publish, &message.to_string()).await;
        assert_eq!(routed.json(), json!({ "routed": true }));
        world.both("GET", &queue, "").await;
        world.both("HEAD", &queue, "").await;
        for part in ["bindings", "messages", "unacked", "diagnosis"] {
            world.both("GET", &format!("{queue}/{part}"), "").await;
        }
        let get = json!({ "count": 5, "ackmode": "ack_requeue_false", "encoding": "auto" });
        let got = world.both("POST", &format!("{queue}/get"), &get.to_string()).await.json();
        assert_eq!(got[0]["payload"], "x");
        world.both("GET", &format!("/api/vhosts/{vhost}/connections"), "").await;
        world.both("GET", &format!("/api/aliveness-test/{vhost}"), "").await;
        world.both("GET", &format!("/api/definitions/{vhost}"), "").await;
        world.both("GET", &format!("/api/vhosts/{vhost}/permissions"), "").await;
        let check = json!({ "vhost": vhost.replace("%2F", "/"), "right": "read", "resource": "queue", "name": "x" });
        world.both("POST", "/api/access/check", &check.to_string()).await;
        world.both("DELETE", &queue, "").await;
        world.both("DELETE", &queue, "").await;
    }
    world.both("PUT", "/api/queues/nowhere/q", "{}").await;
    world.both("GET", "/api/queues/nowhere", "").await;
    assert_eq!(world.admin_of(0).vhost("a").map(|vhost| vhost.queues), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_is_told_so_as_by_one_broker() {
    let world = World::start().await;
    world.both("PUT", "/api/users/me", r#"{"password":"me","tags":"management"}"#).await;
    world.both("PUT", "/api/users/out", r#"{"password":"out","tags":""}"#).await;
    let read = r#"{"configure":"^mine","write":"","read":".*"}"#;
    world.both("PUT", "/api/permissions/a/me", read).await;
    for user in ["me", "out", "stranger"] {
        for vhost in ["a", "b", "c"] {
            let path = |name: &str| format!("/api/queues/{vhost}/{name}");
            world.both_as("PUT", &path("mine"), user, &[], "{}").await;
            world.both_as("PUT", &path("other"), user, &[], "{}").await;
            world.both_as("GET", &path("mine"), user, &[], "").await;
            world.both_as("PUT", &format!("/api/policies/{vhost}/p"), user, &[], "{}").await;
            world.both_as("GET", &format!("/api/queues/{vhost}"), user, &[], "").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_of_another_authority_may_do_the_same_in_every_group() {
    let world = World::start().await;
    for vhost in ["a", "b", "c"] {
        for name in [OF_TOKEN, "other"] {
            let path = format!("/api/queues/{vhost}/{name}");
            world.both_as("PUT", &path, OF_TOKEN, &[], "{}").await;
            world.both_as("GET", &path, OF_TOKEN, &[], "").await;
            let get = json!({ "count": 1, "ackmode": "ack_requeue_true", "encoding": "auto" });
            let get = get.to_string();
            world.both_as("POST", &format!("{path}/get"), OF_TOKEN, &[], &get).await;
        }
    }
    let mine = world.both_as("GET", "/api/queues?columns=name,vhost", OF_TOKEN, &[], "").await;
    assert_eq!(mine.json(), json!([{ "name": OF_TOKEN, "vhost": "b" }]));
    world.both_as("GET", "/api/vhosts", OF_TOKEN, &[], "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_would_be_let_in_no_more_follows_no_stream_of_another_group() {
    let world = World::start().await;
    let stream = json!({ "durable": true, "arguments": { "x-queue-type": "stream" } });
    let path = format!("/api/queues/b/{OF_TOKEN}");
    assert_eq!(world.home("PUT", &path, &stream.to_string()).await.status, 201);
    let mut tail = world.follow(&format!("{path}/tail"), OF_TOKEN).await;
    until_of(&mut tail, ": messages as they come").await;
    let publish = async |payload: &str| {
        let message = json!({
            "routing_key": OF_TOKEN, "properties": {}, "payload": payload,
            "payload_encoding": "string",
        });
        let path = "/api/exchanges/b/amq.default/publish";
        assert_eq!(world.home("POST", path, &message.to_string()).await.status, 200);
    };
    publish("welcome").await;
    assert!(until_of(&mut tail, "welcome").await.contains("welcome"));
    world.is_out.store(true, Ordering::Relaxed);
    publish("secret").await;
    assert!(!until_of(&mut tail, "secret").await.contains("secret"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_another_group_ends_with_the_user_who_has_asked_for_it() {
    let world = World::start().await;
    let group = world.group_of("b").expect("it is there");
    assert_ne!(group, HOME);
    for nth in 0..3000 {
        let queue = NewQueue { durable: false, auto_delete: false, arguments: FieldTable::new() };
        let name = format!("{nth}-{}", "x".repeat(200));
        world.admin_of(group).declare_queue("b", &name, queue).expect("a queue");
    }
    let user = json!({ "password": "low", "tags": "administrator" }).to_string();
    for is_gone in [false, true] {
        world.home("PUT", "/api/users/low", &user).await;
        let mut list = world.follow("/api/queues/b", "low").await;
        until_of(&mut list, "{").await;
        if is_gone {
            world.home("DELETE", "/api/users/low", "").await;
        }
        // What ends early ends without the last chunk. A list goes on over a connection that is kept.
        let mut came = Vec::new();
        let mut piece = vec![0; 64 << 10];
        while !came.ends_with(b"0\r\n\r\n") {
            match list.read(&mut piece).await {
                Ok(bytes @ 1..) => came.extend_from_slice(&piece[..bytes]),
                _ => break,
            }
        }
        assert_eq!(came.ends_with(b"0\r\n\r\n"), !is_gone);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_from_outside_speaks_for_no_other_user() {
    let world = World::start().await;
    let said = json!({
        "group": 0, "rows": false, "from": "127.0.0.1:1", "user": "guest", "tags": ["administrator"],
        "standing": "Operator",
    });
    use base64::Engine as _;
    let said = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(said.to_string());
    let header = [("x-courser-inside", said.as_str())];
    for path in ["/api/whoami", "/api/queues/a", "/api/users"] {
        let answer = world.call(&world.home, "GET", path, "stranger", &header, "").await;
        assert_eq!(answer.status, 401, "{path}");
    }
    world.both("PUT", "/api/users/me", r#"{"password":"me","tags":"management"}"#).await;
    let answer = world.call(&world.home, "GET", "/api/queues/a", "me", &header, "").await;
    assert_eq!(answer.status, 404, "{answer:?}");
    let answer = world.call(&world.home, "GET", "/api/queues", "guest", &header, "").await;
    assert!(answer.json().is_array(), "no rows for outsiders");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_vhost_goes_where_it_is_wanted_or_where_there_are_fewest() {
    let world = World::start().await;
    // Home has `/`, `c` and `f`, the others two each.
    let made = |name: &str, body: &str| {
        let (path, body) = (format!("/api/vhosts/{name}"), body.to_owned());
        let world = &world;
        async move { world.home("PUT", &path, &body).await }
    };
    assert_eq!(made("one", "{}").await.status, 201);
    assert_eq!(world.group_of("one"), Some(1));
    assert_eq!(made("two", "{}").await.status, 201);
    assert_eq!(world.group_of("two"), Some(2));
    assert_eq!(made("three", "{}").await.status, 201);
    assert_eq!(world.group_of("three"), Some(0));
    assert_eq!(made("two", r#"{"description":"x","group":2}"#).await.status, 204);
    let moved = made("two", r#"{"group":1}"#).await;
    assert_eq!(moved.status, 400);
    assert!(
        moved.refusal().1.as_str().is_some_and(|why| why.contains("is in group 2")),
        "{moved:?}"
    );
    assert_eq!(made("bad", r#"{"group":7}"#).await.status, 400);
    assert_eq!(made("bad", r#"{"group":"x"}"#).await.status, 400);
    let two = world.home("GET", "/api/vhosts/two", "").await.json();
    assert_eq!((&two["group"], &two["description"]), (&json!(2), &json!("x")));
    let all = world.home("GET", "/api/vhosts?columns=name,group", "").await.json();
    assert_eq!(all[0], json!({ "name": "/", "group": 0 }));
    assert_eq!(world.home("PUT", "/api/queues/two/q", "{}").await.status, 201);
    assert_eq!(world.home("DELETE", "/api/vhosts/two", "").await.status, 204);
    assert!(world.admin_of(2).vhost("two").is_none());
    assert_eq!(world.single("PUT", "/api/vhosts/x", r#"{"group":1}"#).await.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_vhost_goes_to_a_group_that_has_a_leader_unless_another_is_wanted() {
    let world = World::start().await;
    world.known.down.store(1, std::sync::atomic::Ordering::Relaxed);
    // Group 1 would have been the first of those with the fewest.
    assert_eq!(world.home("PUT", "/api/vhosts/one", "{}").await.status, 201);
    assert_eq!(world.group_of("one"), Some(2));
    assert_eq!(world.home("PUT", "/api/vhosts/two", r#"{"group":1}"#).await.status, 201);
    assert_eq!(world.group_of("two"), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_found_and_closed_wherever_they_are() {
    let world = World::start().await;
    world.both("PUT", "/api/users/me", r#"{"password":"me","tags":"management"}"#).await;
    let mut clients = Vec::new();
    for (port, vhost) in [(1, "a"), (2, "b"), (3, "c")] {
        let all = r#"{"configure":".*","write":".*","read":".*"}"#;
        world.both("PUT", &format!("/api/permissions/{vhost}/me"), all).await;
        clients.push(world.connect("me", vhost, port));
    }
    let name = |port: u16| format!("127.0.0.1:{port}%20-%3E%20127.0.0.1:5672");
    for port in [1, 2, 3, 4] {
        let path = format!("/api/connections/{}", name(port));
        let found = world.both("GET", &path, "").await;
        assert_eq!(found.status == 200, port < 4, "{path}");
        world.both("GET", &format!("{path}/channels"), "").await;
        world.both("GET", &format!("{path}/sessions"), "").await;
        let channel = format!("/api/channels/{}%20(1)", name(port));
        world.both("GET", &channel, "").await;
        world.both_as("GET", &channel, "stranger", &[], "").await;
        world.both("DELETE", &channel, "").await;
    }
    assert_eq!(
        world.both("DELETE", &format!("/api/connections/{}", name(2)), "").await.status,
        204
    );
    assert_eq!(
        world.both("DELETE", &format!("/api/connections/{}", name(9)), "").await.status,
        404
    );
    assert_eq!(world.both("DELETE", "/api/connections/username/me", "").await.status, 204);
    let faults = clients.iter_mut().flatten().filter(|one| !one.outbox().take_faults().is_empty());
    assert_eq!(faults.count(), 6, "all clients are told");
    world.both("DELETE", "/api/reset", "").await;
    world.both("DELETE", "/api/reset/courser@one", "").await;
    world.both("DELETE", "/api/reset/courser@none", "").await;
}

fn definitions() -> Value {
    let mut vhosts = Vec::new();
    let (mut queues, mut exchanges, mut bindings) = (Vec::new(), Vec::new(), Vec::new());
    let (mut policies, mut parameters) = (Vec::new(), Vec::new());
    for (nth, vhost) in ["a", "new-1", "b", "new-2", "new-3", "/"].into_iter().enumerate() {
        vhosts.push(json!({
            "name": vhost, "limits": { "max-queues": 100 + nth },
            "metadata": { "description": format!("the {nth}th"), "tags": ["t"] },
        }));
        for queue in ["one", "two"] {
            queues.push(json!({ "name": queue, "vhost": vhost, "durable": true, "auto_delete": false, "arguments": {} }));
            bindings.push(json!({
                "source": "own", "vhost": vhost, "destination": queue, "destination_type": "queue",
                "routing_key": "k", "arguments": {},
            }));
        }
        exchanges.push(json!({
            "name": "own", "vhost": vhost, "type": "topic", "durable": true, "auto_delete": false,
            "internal": false, "arguments": {},
        }));
        policies.push(json!({
            "vhost": vhost, "name": "p", "pattern": "^x", "apply-to": "queues",
            "definition": { "max-length": nth }, "priority": nth,
        }));
        parameters
            .push(json!({ "vhost": vhost, "component": "federation-upstream-set", "name": "n", "value": { "x": nth } }));
    }
    json!({
        "users": [{ "name": "of-file", "password_hash": "", "tags": ["management"], "limits": {} }],
        "vhosts": vhosts,
        "permissions": [{ "user": "of-file", "vhost": "new-1", "configure": "", "write": "", "read": ".*" }],
        "global_parameters": [{ "name": "g", "value": 7 }],
        "queues": queues, "exchanges": exchanges, "bindings": bindings,
        "policies": policies, "parameters": parameters,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_go_to_where_they_belong_and_come_back_as_one() {
    let world = World::start().await;
    let json = [("content-type", "application/json")];
    let file = definitions().to_string();
    let planned =
        world.both_as("POST", "/api/definitions?dry_run=true", "guest", &json, &file).await;
    assert_eq!(planned.json()["create_count"], 48, "{}", planned.json());
    let done = world.both_as("POST", "/api/definitions", "guest", &json, &file).await;
    assert_eq!(done.status, 204);
    assert_ne!(world.group_of("new-1"), world.group_of("new-2"), "new vhosts are spread");
    for vhost in ["a", "new-1", "b", "new-2", "new-3", "/"] {
        let admin = world.admin_of(world.group_of(vhost).expect("it is there"));
        assert_eq!(admin.vhost(vhost).map(|one| one.queues), Some(2), "{vhost}");
    }
    let planned =
        world.both_as("POST", "/api/definitions?dry_run=true", "guest", &json, &file).await;
    assert_eq!(planned.json()["create_count"], 0, "{}", planned.json());
    let all = world.both("GET", "/api/definitions", "").await;
    assert_eq!(all.headers["content-type"], "application/json");
    world.both("GET", "/api/all-configuration", "").await;
    let tag = all.headers["etag"].as_str();
    let again = [("if-none-match", tag)];
    let unchanged = world.call(&world.home, "GET", "/api/definitions", "guest", &again, "").await;
    assert_eq!(unchanged.status, 304);
    world.both("GET", "/api/definitions/new-1", "").await;
    for wrong in [
        "[]",
        "{",
        r#"{"queues":1}"#,
        r#"{"queues":[{"name":"q"}]}"#,
        r#"{"queues":[{"name":"q","vhost":"nowhere"}]}"#,
        r#"{"users":[{"name":1}]}"#,
        r#"{"exchanges":[{"name":"x","vhost":"a","type":"unknown"}]}"#,
        r#"{"vhosts":[{"name":"new-1","limits":{"max-nothing":1}}]}"#,
    ] {
        let refused = world.both_as("POST", "/api/definitions", "guest", &json, wrong).await;
        assert_eq!(refused.status, 400, "{wrong}");
    }
    world.both_as("POST", "/api/definitions", "guest", &[], "{}").await;
    let of_vhost = r#"{"queues":[{"name":"three","durable":true}]}"#;
    world.both_as("POST", "/api/definitions/new-2", "guest", &json, of_vhost).await;
    world.both("GET", "/api/queues/new-2?columns=name", "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_log_of_home_has_what_was_passed_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("audit.log");
    let world = World::audited(file.clone()).await;
    world.home("PUT", "/api/queues/b/q", "{}").await;
    world.home("DELETE", "/api/queues/b/none", "").await;
    let lines = world.home("GET", "/api/audit?count=2", "").await.json();
    let said = |nth: usize| (lines[nth]["path"].clone(), lines[nth]["status"].clone());
    assert_eq!(said(1), (json!("/api/queues/b/q"), json!(201)));
    assert_eq!(said(0), (json!("/api/queues/b/none"), json!(404)));
    assert_eq!(lines[0]["user"], "guest");
    world.lose(2).await;
    world.home("PUT", "/api/queues/b/q", "{}").await;
    let lines = world.home("GET", "/api/audit?count=1", "").await.json();
    assert_eq!(lines[0]["status"], 503);
    assert!(file.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_say_which_group_a_vhost_is_in() {
    let world = World::start().await;
    let json = [("content-type", "application/json")];
    let exported = world.home("GET", "/api/definitions", "").await.json();
    let of = |name: &str| {
        let rows = exported["vhosts"].as_array().expect("a list");
        rows.iter().find(|row| row["name"] == name).expect("it is there")["group"].clone()
    };
    assert_eq!((of("/"), of("a"), of("b")), (json!(0), json!(1), json!(2)));
    let alone = world.single("GET", "/api/definitions", "").await.json();
    assert!(alone["vhosts"][0].get("group").is_none(), "{alone}");
    let import = async |path: &str, file: &str| {
        world.call(&world.home, "POST", path, "guest", &json, file).await
    };
    // `a` is there, and stays where it is.
    let file = r#"{"vhosts":[{"name":"new","group":2},{"name":"a","group":0}]}"#;
    let planned = import("/api/definitions?dry_run=true", file).await.json();
    assert_eq!((&planned["create_count"], &planned["same_count"]), (&json!(1), &json!(1)));
    assert_eq!(import("/api/definitions", file).await.status, 204);
    assert_eq!((world.group_of("new"), world.group_of("a")), (Some(2), Some(1)));
    let file = r#"{"vhosts":[{"name":"lost","group":9}]}"#;
    let planned = import("/api/definitions?dry_run=true", file).await.json();
    let refused = import("/api/definitions", file).await;
    assert_eq!(refused.status, 400);
    for why in [&planned["refuse"][0]["because"], &refused.refusal().1] {
        assert!(why.as_str().is_some_and(|why| why.contains("there is no group 9")), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_tells_the_warnings_of_all_groups() {
    let world = World::start().await;
    let json = [("content-type", "application/json")];
    let binding = |vhost: &str| json!({ "source": "amq.topic", "vhost": vhost, "destination": "gone", "destination_type": "queue", "routing_key": "k", "arguments": {} });
    let file = json!({ "queue": [], "bindings": [binding("a"), binding("b")] }).to_string();
    let import =
        async |path: &str| world.call(&world.home, "POST", path, "guest", &json, &file).await;
    let told = import("/api/definitions?warnings=true").await.json();
    let warnings = told["warnings"].as_array().expect("a list");
    for part in ["not imported: queue", "in vhost 'a'", "in vhost 'b'"] {
        let said = warnings.iter().filter_map(|one| one.as_str()?.find(part)).count();
        assert_eq!(said, 1, "{part}: {told}");
    }
    assert_eq!(import("/api/definitions").await.status, 204);
    let all = world.home("GET", "/api/definitions?for_rabbitmq=true", "").await.json();
    assert_eq!(all["warnings"], json!([]), "its one user has a hash of RabbitMQ's");
}
