//! Every method, with exactly the rights that it needs, without one of them, and with none.

use super::support::{Client, Heard, Message, World, owned, short};
use courser_auth::{PasswordHash, Permission, User};
use courser_codec::{FieldTable, FieldValue, Table, basic, exchange, queue};

/// What a method needs: which right, what it is called in a refusal, and the name that the pattern
/// has to match.
type Need = (&'static str, &'static str, &'static str);

struct Case {
    name: &'static str,
    /// In the order in which they are asked.
    needs: &'static [Need],
    act: fn(&mut Client) -> Vec<Heard>,
}

fn arguments(name: &str, value: &str) -> Vec<u8> {
    FieldTable::new().with(name, value).to_entries()
}

fn get(client: &mut Client, name: &str) -> Vec<Heard> {
    vec![client.call(basic::Get { queue: short(name), ..Default::default() })]
}

fn declare_queue(client: &mut Client, name: &str, passive: bool, arguments: &[u8]) -> Vec<Heard> {
    let arguments = Table::from_entries(arguments);
    let queue = short(name);
    vec![client.call(queue::Declare { queue, passive, arguments, ..Default::default() })]
}

fn declare_exchange(client: &mut Client, name: &str, arguments: &[u8]) -> Vec<Heard> {
    let arguments = Table::from_entries(arguments);
    let (exchange, kind) = (short(name), short("direct"));
    vec![client.call(exchange::Declare { exchange, kind, arguments, ..Default::default() })]
}

fn publish(client: &mut Client, message: Message) -> Vec<Heard> {
    client.send(message);
    client.heard()
}

const CASES: &[Case] = &[
    Case {
        name: "exchange.declare",
        needs: &[("configure", "exchange 'x-new'", "x-new")],
        act: |client| declare_exchange(client, "x-new", &[]),
    },
    Case {
        name: "exchange.declare with an alternate exchange",
        needs: &[
            ("configure", "exchange 'x-new'", "x-new"),
            ("read", "exchange 'x-new'", "x-new"),
            ("write", "exchange 'x-dir'", "x-dir"),
        ],
        act: |client| declare_exchange(client, "x-new", &arguments("alternate-exchange", "x-dir")),
    },
    Case {
        name: "exchange.declare of one that is there",
        needs: &[("configure", "exchange 'x-dir'", "x-dir")],
        act: |client| declare_exchange(client, "x-dir", &[]),
    },
    Case {
        name: "exchange.delete",
        needs: &[("configure", "exchange 'x-dir'", "x-dir")],
        act: |client| {
            vec![client.call(exchange::Delete { exchange: short("x-dir"), ..Default::default() })]
        },
    },
    Case {
        name: "exchange.delete of one that is missing",
        needs: &[("configure", "exchange 'x-no'", "x-no")],
        act: |client| {
            vec![client.call(exchange::Delete { exchange: short("x-no"), ..Default::default() })]
        },
    },
    Case {
        name: "exchange.bind",
        needs: &[("write", "exchange 'x-to'", "x-to"), ("read", "exchange 'x-dir'", "x-dir")],
        act: |client| {
            let (source, destination) = (short("x-dir"), short("x-to"));
            vec![client.call(exchange::Bind { source, destination, ..Default::default() })]
        },
    },
    Case {
        name: "exchange.unbind",
        needs: &[("write", "exchange 'x-to'", "x-to"), ("read", "exchange 'x-dir'", "x-dir")],
        act: |client| {
            let (source, destination) = (short("x-dir"), short("x-to"));
            vec![client.call(exchange::Unbind { source, destination, ..Default::default() })]
        },
    },
    Case {
        name: "queue.declare",
        needs: &[("configure", "queue 'q-new'", "q-new")],
        act: |client| declare_queue(client, "q-new", false, &[]),
    },
    Case {
        name: "queue.declare with dead letters to an exchange",
        needs: &[
            ("configure", "queue 'q-new'", "q-new"),
            ("read", "queue 'q-new'", "q-new"),
            ("write", "exchange 'x-dir'", "x-dir"),
        ],
        act: |client| {
            declare_queue(client, "q-new", false, &arguments("x-dead-letter-exchange", "x-dir"))
        },
    },
    Case {
        name: "queue.declare with dead letters to the default exchange",
        needs: &[
            ("configure", "queue 'q-new'", "q-new"),
            ("read", "queue 'q-new'", "q-new"),
            ("write", "exchange 'amq.default'", "amq.default"),
        ],
        act: |client| {
            declare_queue(client, "q-new", false, &arguments("x-dead-letter-exchange", ""))
        },
    },
    Case {
        name: "queue.delete",
        needs: &[("configure", "queue 'q'", "q")],
        act: |client| vec![client.delete("q")],
    },
    Case {
        name: "queue.delete of one that is missing",
        needs: &[("configure", "queue 'q-no'", "q-no")],
        act: |client| vec![client.delete("q-no")],
    },
    Case {
        name: "queue.bind",
        needs: &[("write", "queue 'q'", "q"), ("read", "exchange 'x-dir'", "x-dir")],
        act: |client| {
            let (queue, exchange) = (short("q"), short("x-dir"));
            vec![client.call(queue::Bind { queue, exchange, ..Default::default() })]
        },
    },
    Case {
        name: "queue.unbind",
        needs: &[("write", "queue 'q'", "q"), ("read", "exchange 'x-dir'", "x-dir")],
        act: |client| {
            let (queue, exchange) = (short("q"), short("x-dir"));
            vec![client.call(queue::Unbind { queue, exchange, ..Default::default() })]
        },
    },
    Case {
        name: "queue.purge",
        needs: &[("read", "queue 'q'", "q")],
        act: |client| vec![client.purge("q")],
    },
    Case {
        name: "basic.get",
        needs: &[("read", "queue 'q'", "q")],
        act: |client| get(client, "q"),
    },
    Case {
        name: "basic.consume",
        needs: &[("read", "queue 'q'", "q")],
        act: |client| vec![client.call(basic::Consume { queue: short("q"), ..Default::default() })],
    },
    Case {
        name: "basic.publish",
        needs: &[("write", "exchange 'x-dir'", "x-dir")],
        act: |client| publish(client, Message::new("x-dir", "k", "")),
    },
    Case {
        name: "basic.publish to the default exchange",
        needs: &[("write", "exchange 'amq.default'", "amq.default")],
        act: |client| publish(client, Message::new("", "q", "")),
    },
    Case {
        name: "basic.publish with CC",
        needs: &[("write", "exchange 'x-dir'", "x-dir")],
        act: |client| {
            let more = FieldValue::Array(vec![FieldValue::LongStr(b"other".to_vec())]);
            let headers = FieldTable::new().with("CC", more);
            publish(client, Message::new("x-dir", "k", "").headers(headers))
        },
    },
];

/// A world with what the cases name, and a user who may enter `/`.
pub fn world() -> World {
    let world = World::new();
    let mut owner = world.connect();
    owner.declare("q");
    owner.declare_exchange("x-dir", "direct");
    owner.declare_exchange("x-to", "direct");
    owner.declare_exchange("x-top", "topic");
    let admin = world.broker.admin();
    admin.create_user(User::new("u", PasswordHash::none())).expect("a user");
    admin.set_permission("u", "/", Permission::default()).expect("a permission");
    world
}

/// Gives the user exactly these rights.
pub fn give(world: &World, needs: &[Need]) {
    let pattern = |right: &str| {
        let names = needs.iter().filter(|(of, _, _)| *of == right);
        let names: Vec<&str> = names.map(|(_, _, name)| *name).collect();
        if names.is_empty() { String::new() } else { format!("^(?:{})$", names.join("|")) }
    };
    let permission = Permission {
        configure: pattern("configure"),
        write: pattern("write"),
        read: pattern("read"),
    };
    world.broker.admin().set_permission("u", "/", permission).expect("a permission");
}

fn refusal(heard: &[Heard]) -> Option<&str> {
    heard.iter().find_map(|heard| match heard {
        Heard::ChannelClosed(text) => Some(text.as_str()),
        Heard::ConnectionClosed(text) => panic!("the connection was closed: {text}"),
        _ => None,
    })
}

pub fn text((right, what, _): &Need) -> String {
    format!("403 ACCESS_REFUSED - {right} access to {what} in vhost '/' refused for user 'u'")
}

#[test]
fn every_method_is_carried_out_with_exactly_its_rights_and_refused_without_one_of_them() {
    for Case { name, needs, act } in CASES {
        let all = world();
        give(&all, needs);
        assert_eq!(refusal(&act(&mut all.connect_user("u"))), None, "{name}");
        for missing in 0..needs.len() {
            let mut left = needs.to_vec();
            left.remove(missing);
            let world = world();
            give(&world, &left);
            let heard = act(&mut world.connect_user("u"));
            assert_eq!(refusal(&heard), Some(&*text(&needs[missing])), "{name}");
        }
        let world = world();
        let heard = act(&mut world.connect_user("u"));
        assert_eq!(refusal(&heard), Some(&*text(&needs[0])), "{name}: the first is said");
    }
}

#[test]
fn any_right_is_enough_to_see_whether_something_is_there() {
    for (passive, what, name) in [(true, "queue 'q'", "q"), (false, "exchange 'x-dir'", "x-dir")] {
        let act = |client: &mut Client| match passive {
            true => declare_queue(client, "q", true, &[]),
            false => {
                let exchange = short("x-dir");
                vec![client.call(exchange::Declare {
                    exchange,
                    passive: true,
                    ..Default::default()
                })]
            }
        };
        for right in ["configure", "write", "read"] {
            let world = world();
            give(&world, &[(right, what, name)]);
            assert_eq!(refusal(&act(&mut world.connect_user("u"))), None, "{right} {what}");
        }
        let world = world();
        let heard = act(&mut world.connect_user("u"));
        assert_eq!(refusal(&heard), Some(&*text(&("configure", what, name))));
    }
}

#[test]
fn without_permission_it_is_not_said_whether_something_is_there() {
    let world = world();
    let mut client = world.connect_user("u");
    let without = get(&mut client, "q-no");
    assert_eq!(refusal(&without), Some(&*text(&("read", "queue 'q-no'", "q-no"))));
    client.open_channel(1);
    let published = client.refused_publish(Message::new("x-no", "k", ""));
    assert_eq!(published, text(&("write", "exchange 'x-no'", "x-no")));
    give(&world, &[("read", "", "q-no"), ("write", "", "x-no")]);
    let with = get(&mut client, "q-no");
    assert_eq!(refusal(&with), Some("404 NOT_FOUND - no queue 'q-no' in vhost '/'"));
    client.open_channel(1);
    let published = client.refused_publish(Message::new("x-no", "k", ""));
    assert_eq!(published, "404 NOT_FOUND - no exchange 'x-no' in vhost '/'");
}

#[test]
fn a_queue_that_the_broker_names_needs_the_right_to_that_name() {
    let world = world();
    let mut client = world.connect_user("u");
    let heard = declare_queue(&mut client, "", false, &[]);
    let refused = refusal(&heard).expect("refused");
    let begin = "403 ACCESS_REFUSED - configure access to queue 'amq.gen-";
    assert!(refused.starts_with(begin), "{refused}");
    assert!(refused.ends_with("' in vhost '/' refused for user 'u'"), "{refused}");
    client.open_channel(1);
    give(&world, &[("configure", "", "amq\\.gen-.*")]);
    let heard = declare_queue(&mut client, "", false, &[]);
    assert!(matches!(&heard[..], [Heard::DeclareOk { .. }]), "{heard:?}");
}

#[test]
fn direct_replies_need_only_the_right_to_publish() {
    let world = world();
    give(&world, &[("write", "", "amq\\.default")]);
    let mut client = world.connect_user("u");
    declare_queue(&mut client, "amq.rabbitmq.reply-to", true, &[]);
    let queue = short("amq.rabbitmq.reply-to");
    let heard = client.call(basic::Consume { queue, no_ack: true, ..Default::default() });
    assert!(matches!(heard, Heard::ConsumeOk(_)), "{heard:?}");
}

#[test]
fn the_default_and_the_predefined_exchanges_are_refused_before_the_rights_to_them() {
    let mut client = world().connect_user("u");
    let passive = exchange::Declare { passive: true, ..Default::default() };
    let on_default = "403 ACCESS_REFUSED - operation not permitted on the default exchange";
    assert_eq!(client.refused(passive), on_default);
    let delete = exchange::Delete { exchange: short("amq.direct"), ..Default::default() };
    assert_eq!(
        client.refused(delete),
        "403 ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed"
    );
}

#[test]
fn a_publish_is_refused_for_its_exchange_before_its_properties() {
    let world = world();
    let mut client = world.connect_user("u");
    let refused = client.refused_publish(Message::new("x-dir", "k", "").user_id("other"));
    assert_eq!(refused, text(&("write", "exchange 'x-dir'", "x-dir")));
}

#[test]
fn what_the_broker_does_by_itself_needs_no_permission() {
    let world = world();
    let mut owner = world.connect();
    let to =
        FieldTable::new().with("x-dead-letter-exchange", "").with("x-dead-letter-routing-key", "q");
    super::support::declare_with(&mut owner, "q-dead", false, &to);
    give(&world, &[("read", "", "q-dead")]);
    owner.publish("", "q-dead", "letter");
    let mut client = world.connect_user("u");
    let got = client.get("q-dead").expect("a message");
    client.tell(basic::Reject { delivery_tag: got.tag, requeue: false });
    assert_eq!(world.counts("q").0, 1);
    assert_eq!(owned("u").to_string(), "u");
}
