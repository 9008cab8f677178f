//! The permission matrix as a client sees it: every method that names a queue or an exchange, with
//! every right that it needs, taken away one at a time while the channel is open.

use super::support::{Client, Heard, TestServer, short};
use courser_auth::{Hashing, PasswordHash, Permission, TopicPermission, User};
use courser_codec::{FieldTable, Method, Table, basic, exchange, queue};

/// Which right to what; the name is the last word.
type Need = (&'static str, &'static str);

enum Act {
    Call(Method<'static>),
    Publish(&'static str, &'static str),
}

fn arguments(name: &str, value: &str) -> Table<'static> {
    // A test's few bytes may stay to its end.
    Table::from_entries(FieldTable::new().with(name, value).to_entries().leak())
}

fn declare_queue(name: &'static str, arguments: Table<'static>) -> Act {
    let queue = short(name);
    Act::Call(queue::Declare { queue, arguments, ..Default::default() }.into())
}

fn declare_exchange(name: &'static str, arguments: Table<'static>) -> Act {
    let (exchange, kind) = (short(name), short("topic"));
    Act::Call(exchange::Declare { exchange, kind, arguments, ..Default::default() }.into())
}

fn cases() -> Vec<(&'static str, Vec<Need>, Act)> {
    let none = Table::from_entries(&[]);
    let call = |method: Method<'static>| Act::Call(method);
    vec![
        ("exchange.declare", vec![("configure", "exchange x-1")], declare_exchange("x-1", none)),
        (
            "exchange.declare with an alternate exchange",
            vec![
                ("configure", "exchange x-2"),
                ("read", "exchange x-2"),
                ("write", "exchange amq.fanout"),
            ],
            declare_exchange("x-2", arguments("alternate-exchange", "amq.fanout")),
        ),
        (
            "exchange.bind",
            vec![("write", "exchange x-1"), ("read", "exchange x-2")],
            call(
                exchange::Bind {
                    source: short("x-2"),
                    destination: short("x-1"),
                    ..Default::default()
                }
                .into(),
            ),
        ),
        (
            "exchange.unbind",
            vec![("write", "exchange x-1"), ("read", "exchange x-2")],
            call(
                exchange::Unbind {
                    source: short("x-2"),
                    destination: short("x-1"),
                    ..Default::default()
                }
                .into(),
            ),
        ),
        ("queue.declare", vec![("configure", "queue q-1")], declare_queue("q-1", none)),
        (
            "queue.declare with dead letters",
            vec![
                ("configure", "queue q-2"),
                ("read", "queue q-2"),
                ("write", "exchange amq.default"),
            ],
            declare_queue("q-2", arguments("x-dead-letter-exchange", "")),
        ),
        (
            "queue.bind",
            vec![("write", "queue q-1"), ("read", "exchange x-1")],
            call(
                queue::Bind { queue: short("q-1"), exchange: short("x-1"), ..Default::default() }
                    .into(),
            ),
        ),
        (
            "queue.unbind",
            vec![("write", "queue q-1"), ("read", "exchange x-1")],
            call(
                queue::Unbind { queue: short("q-1"), exchange: short("x-1"), ..Default::default() }
                    .into(),
            ),
        ),
        ("basic.publish", vec![("write", "exchange x-1")], Act::Publish("x-1", "k")),
        (
            "basic.publish by the name of a queue",
            vec![("write", "exchange amq.default")],
            Act::Publish("", "q-1"),
        ),
        (
            "basic.get",
            vec![("read", "queue q-1")],
            call(basic::Get { queue: short("q-1"), no_ack: true }.into()),
        ),
        (
            "basic.consume",
            vec![("read", "queue q-1")],
            call(basic::Consume { queue: short("q-1"), ..Default::default() }.into()),
        ),
        (
            "queue.purge",
            vec![("read", "queue q-1")],
            call(queue::Purge { queue: short("q-1"), ..Default::default() }.into()),
        ),
        (
            "queue.delete",
            vec![("configure", "queue q-1")],
            call(queue::Delete { queue: short("q-1"), ..Default::default() }.into()),
        ),
        (
            "exchange.delete",
            vec![("configure", "exchange x-1")],
            call(exchange::Delete { exchange: short("x-1"), ..Default::default() }.into()),
        ),
    ]
}

async fn with_user(server: &TestServer) -> Client {
    let hash = PasswordHash::new(b"secret", Hashing::Argon2id).expect("a hash");
    let admin = server.admin();
    admin.create_user(User::new("u", hash)).expect("a user");
    admin.set_permission("u", "/", Permission::default()).expect("a permission");
    Client::log_in(server.address(), "u", "secret").await.expect("let in")
}

fn give(server: &TestServer, needs: &[Need]) {
    let pattern = |right: &str| {
        let meant = needs.iter().filter(|(of, _)| *of == right);
        let names: Vec<String> = meant
            .filter_map(|(_, what)| Some(what.split_once(' ')?.1.replace('.', "\\.")))
            .collect();
        if names.is_empty() { String::new() } else { format!("^(?:{})$", names.join("|")) }
    };
    let [configure, write, read] = ["configure", "write", "read"].map(pattern);
    let permission = Permission { configure, write, read };
    server.admin().set_permission("u", "/", permission).expect("a permission");
}

async fn act(client: &mut Client, act: &Act) -> Heard {
    match act {
        Act::Call(method) => client.call(*method).await,
        Act::Publish(exchange, key) => {
            client.publish_to(exchange, key, b"body").await;
            // Answered only if the publish was not refused.
            client.call(basic::Qos::default()).await
        }
    }
}

fn text((right, what): Need) -> String {
    let (kind, name) = what.split_once(' ').expect("a kind and a name");
    format!("ACCESS_REFUSED - {right} access to {kind} '{name}' in vhost '/' refused for user 'u'")
}

#[tokio::test]
async fn every_method_needs_each_of_its_rights_and_no_other() {
    let server = TestServer::start().await;
    let mut client = with_user(&server).await;
    for (name, needs, method) in cases() {
        give(&server, &[]);
        let heard = act(&mut client, &method).await;
        assert_eq!(heard, Heard::ChannelClosed(1, text(needs[0])), "{name} without any right");
        client.reopen().await;
        for missing in 0..needs.len() {
            let mut left = needs.clone();
            let taken = left.remove(missing);
            give(&server, &left);
            let heard = act(&mut client, &method).await;
            assert_eq!(heard, Heard::ChannelClosed(1, text(taken)), "{name} without {taken:?}");
            client.reopen().await;
        }
        give(&server, &needs);
        let heard = act(&mut client, &method).await;
        let is_done = !matches!(heard, Heard::ChannelClosed(..) | Heard::Closed(..) | Heard::Gone);
        assert!(is_done, "{name} with all its rights: {heard:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn what_is_there_may_be_seen_with_any_right_to_it() {
    let server = TestServer::start().await;
    let mut client = with_user(&server).await;
    Client::connect(server.address()).await.declare("q-1").await;
    let passive = || queue::Declare { queue: short("q-1"), passive: true, ..Default::default() };
    for right in ["configure", "write", "read"] {
        give(&server, &[(right, "queue q-1")]);
        let heard = client.call(passive()).await;
        assert!(matches!(heard, Heard::DeclareOk { .. }), "{right}: {heard:?}");
    }
    give(&server, &[]);
    let refused = Heard::ChannelClosed(1, text(("configure", "queue q-1")));
    assert_eq!(client.call(passive()).await, refused);
    server.stop().await;
}

#[tokio::test]
async fn topic_permissions_hold_for_publishing_and_binding() {
    let server = TestServer::start().await;
    let mut client = with_user(&server).await;
    let admin = server.admin();
    admin.set_permission("u", "/", Permission::all()).expect("a permission");
    client.declare("q-1").await;
    let own = || "^{username}\\.".to_owned();
    let permission = TopicPermission { write: own(), read: own() };
    admin.set_topic_permission("u", "/", "amq.topic", permission).expect("a permission");
    let (allowed, refused) = (Act::Publish("amq.topic", "u.1"), Act::Publish("amq.topic", "v.1"));
    assert_eq!(act(&mut client, &allowed).await, Heard::Reply("basic.qos-ok"));
    let text = |right: &str, key: &str| {
        let text = format!(
            "ACCESS_REFUSED - {right} access to topic '{key}' in exchange 'amq.topic' in vhost '/' \
             refused for user 'u'"
        );
        Heard::ChannelClosed(1, text)
    };
    assert_eq!(act(&mut client, &refused).await, text("write", "v.1"));
    client.reopen().await;
    let (queue, exchange) = (short("q-1"), short("amq.topic"));
    let bind = queue::Bind { queue, exchange, routing_key: short("bad.#"), ..Default::default() };
    assert_eq!(client.call(bind).await, text("read", "bad.#"));
    server.stop().await;
}

#[tokio::test]
async fn a_vhost_without_permission_is_not_entered() {
    let server = TestServer::start().await;
    with_user(&server).await;
    server.admin().clear_permission("u", "/").expect("cleared");
    let refused = Client::log_in(server.address(), "u", "secret").await.err();
    let text = "NOT_ALLOWED - access to vhost '/' refused for user 'u'";
    assert_eq!(refused, Some(Heard::Closed(530, text.into())));
    server.stop().await;
}
