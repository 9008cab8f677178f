//! A first message without a client program: `courser ctl` makes queues, publishes to them and takes what is in them.

use crate::support::ended;
use crate::support::operated::{Operated, Said};
use courser_broker::admin::ExchangeKind;
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::Stdio;

/// A broker with a queue of this name.
pub(crate) fn with_queue(name: &str) -> Operated {
    let broker = Operated::start();
    assert_eq!(broker.quiet(&["declare_queue", name]), format!("Created queue '{name}'\n"));
    broker
}

/// What a command says that reads this.
fn fed(broker: &Operated, input: &[u8], arguments: &[&str]) -> Said {
    let mut command = broker.command();
    command.args(["--data-dir", "data", "-q"]).args(arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    child.stdin.take().expect("a pipe").write_all(input).expect("it reads");
    let output = ended(child);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Said { out: text(output.stdout), error: text(output.stderr), code: output.status.code() }
}

fn payloads(messages: &Value) -> Vec<&str> {
    let list = messages.as_array().expect("a list");
    list.iter().map(|one| one["payload"].as_str().expect("text")).collect()
}

pub(crate) fn waiting(broker: &Operated, queue: &str) -> u64 {
    let listed = broker.json(&["list_queues", "name", "messages"]);
    let queues = listed.as_array().expect("a list");
    let found = queues.iter().find(|one| one["name"] == queue);
    found.expect("the queue")["messages"].as_u64().expect("a number")
}

#[test]
fn a_message_is_published_looked_at_and_taken() {
    let broker = with_queue("greetings");
    let said = broker.quiet(&["publish", "--routing-key", "greetings", "Hello!"]);
    assert_eq!(said, "Message published\n");
    for redelivered in [false, true] {
        let looked = broker.json(&["get", "greetings"]);
        assert_eq!(payloads(&looked), ["Hello!"]);
        assert_eq!(looked[0]["redelivered"], redelivered, "it goes back: {looked}");
        assert_eq!(looked[0]["properties"], json!({ "delivery_mode": 2 }));
    }
    let taken = broker.quiet(&["get", "greetings", "--ack"]);
    assert!(taken.contains("\tgreetings\ttrue\t0\t6\tstring\tHello!\t"), "{taken}");
    assert_eq!(broker.json(&["get", "greetings"]), json!([]));
    broker.quiet(&["publish", "-r", "greetings", "rejected", "--count", "2"]);
    assert_eq!(payloads(&broker.json(&["get", "greetings", "--reject"])), ["rejected"]);
    assert_eq!(waiting(&broker, "greetings"), 1);
}

#[test]
fn a_message_has_the_properties_that_are_given() {
    let broker = with_queue("q");
    let properties = r#"{"priority": 5, "expiration": "60000", "headers": {"a": 1}}"#;
    let publish =
        ["publish", "-r", "q", "--properties", properties, "--content-type", "text/plain"];
    let headers = ["--header", "b=two", "--header", "c=[true]", "--transient", "-"];
    broker.quiet(&[&publish[..], &headers].concat());
    let expected = json!({
        "priority": 5, "expiration": "60000", "content_type": "text/plain", "delivery_mode": 1,
        "headers": { "a": 1, "b": "two", "c": [true] },
    });
    assert_eq!(broker.json(&["get", "q"])[0]["properties"], expected);
    for (wrong, why) in [
        (&["--properties", "{\"prioritty\": 1}"][..], "did you mean 'priority'?"),
        (&["--properties", "[]"], "it is JSON, but no object"),
        (&["--properties", "{"], "expected JSON such as"),
        (&["--properties", "{\"headers\": 1}", "--header", "a=1"], "headers is no JSON object"),
        (
            &["--properties", "{\"delivery_mode\": 2}", "--transient"],
            "delivery_mode is given twice",
        ),
        (
            &["--properties", "{\"content_type\": \"a\"}", "--content-type", "b"],
            "content_type is given twice",
        ),
        (&["--header", "a=1", "--header", "a=2"], "a is given twice"),
        (&["--header", "a"], "expected NAME=VALUE, not 'a'"),
        (&["--count", "0"], "not a whole number above 0"),
        (&["--file", "f"], "either PAYLOAD or --file"),
        (&["--lines"], "leave out PAYLOAD and --count"),
    ] {
        let error = broker.refused(64, &[&["publish", "-r", "q", "payload"], wrong].concat());
        assert!(error.contains(why), "{wrong:?}: {error}");
    }
    assert!(broker.refused(64, &["publish", "x"]).contains("say where it goes"));
    let text = ["publish", "-r", "q", "--properties", "{\"expiration\": 1}", "x"];
    assert!(broker.refused(65, &text).contains("not_string"), "the broker judges values");
    assert_eq!(waiting(&broker, "q"), 1);
}

#[test]
fn payloads_come_from_a_file_or_standard_input_as_they_are() {
    let broker = with_queue("q");
    let file = broker.folder.path().join("payload");
    std::fs::write(&file, b"\xff\x1b[31m\n").expect("a file");
    broker.quiet(&["publish", "-r", "q", "--file", "payload"]);
    assert_eq!(fed(&broker, b"two\n", &["publish", "-r", "q"]).out, "Message published\n");
    let lines = fed(&broker, b"three\r\n\nfive", &["publish", "-r", "q", "--lines", "--file", "-"]);
    assert_eq!(lines.out, "3 messages published\n");
    let messages = broker.json(&["get", "q", "--count", "9"]);
    assert_eq!(payloads(&messages), ["/xtbMzFtCg==", "two\n", "three", "", "five"]);
    assert_eq!(messages[0]["payload_encoding"], "base64");
    let table = broker.quiet(&["get", "q", "--count", "2"]);
    assert!(table.contains("\tstring\ttwo\\n\t"), "control characters are escaped: {table}");
    assert!(
        broker.refused(65, &["publish", "-r", "q", "--file", "none"]).contains("can't read none")
    );
    let large = fed(&broker, &vec![b'a'; 7_000_001], &["publish", "-r", "q"]);
    assert_eq!(large.code, Some(65), "{large:?}");
    assert!(large.error.contains("more than the 7000000 bytes"), "{large:?}");
    assert_eq!(fed(&broker, &vec![0; 7_000_000], &["publish", "-r", "q"]).code, Some(0));
}

#[test]
fn a_message_that_no_queue_takes_is_an_error_that_says_why() {
    let broker = with_queue("q");
    let error = broker.refused(69, &["publish", "-r", "greetings", "x"]);
    assert!(
        error.contains("Message published but NOT routed: there is no queue 'greetings'"),
        "{error}"
    );
    let error = broker.refused(69, &["publish", "-e", "amq.topic", "-r", "a.b", "x"]);
    assert!(
        error.contains("no queue is bound to exchange 'amq.topic' for routing key 'a.b'"),
        "{error}"
    );
    for (missing, why) in [
        (&["publish", "-e", "none", "x"][..], "There is no exchange 'none' in vhost '/'"),
        (&["publish", "-p", "none", "-r", "q", "x"], "Virtual host 'none' does not exist"),
        (&["get", "none"], "There is no queue 'none' in vhost '/'"),
        (&["get", "-p", "none", "q"], "Virtual host 'none' does not exist"),
        (&["declare_queue", "-p", "none", "q"], "Virtual host 'none' does not exist"),
        (&["delete_exchange", "none"], "There is no exchange 'none' in vhost '/'"),
        (&["bind", "none", "q"], "no exchange 'none' in vhost '/'"),
        (&["bind", "amq.topic", "none"], "no queue 'none' in vhost '/'"),
    ] {
        let error = broker.refused(65, missing);
        assert!(error.contains(why), "{missing:?}: {error}");
    }
    broker.refused(64, &["get", "q", "--ack", "--reject"]);
    assert!(broker.refused(64, &["get", "q", "--count", "1001"]).contains("at most 1000"));
}

#[test]
fn queues_exchanges_and_bindings_are_made_and_removed() {
    let broker = with_queue("orders");
    let again = broker.quiet(&["declare_queue", "orders"]);
    assert_eq!(again, "queue 'orders' is there already, with these settings\n");
    let error = broker.refused(65, &["declare_queue", "orders", "--durable", "false"]);
    assert!(error.contains("inequivalent arg 'durable' for queue 'orders'"), "{error}");
    let quorum = ["declare_queue", "jobs", "--type", "quorum", "--argument", "x-delivery-limit=5"];
    broker.quiet(&[&quorum[..], &["--arguments", "{\"x-max-length\": 9}"]].concat());
    broker.quiet(&["declare_queue", "passing", "--durable", "false", "--auto-delete"]);
    let listed = broker.json(&["list_queues", "name", "durable", "auto_delete", "arguments"]);
    let arguments = json!({ "x-queue-type": "quorum", "x-delivery-limit": 5, "x-max-length": 9 });
    assert_eq!(listed[0]["arguments"], arguments, "{listed}");
    assert_eq!((&listed[2]["durable"], &listed[2]["auto_delete"]), (&json!(false), &json!(true)));

    broker.quiet(&["declare_exchange", "events", "--type", "topic"]);
    broker.quiet(&["declare_exchange", "inner", "--internal", "--auto-delete"]);
    broker.quiet(&["bind", "events", "orders", "--routing-key", "order.*"]);
    broker.quiet(&["bind", "events", "orders", "-r", "", "--argument", "x=1"]);
    broker.quiet(&["bind", "events", "inner", "--destination-type", "exchange", "-r", "#"]);
    broker.quiet(&["publish", "-e", "events", "-r", "order.paid", "x"]);
    assert_eq!(waiting(&broker, "orders"), 1);
    let error = broker.refused(65, &["unbind", "events", "orders", "-r", "order"]);
    assert!(error.contains("There are:\n") && error.contains("routing key \"order.*\""), "{error}");
    broker.quiet(&["unbind", "events", "orders", "-r", "order.*"]);
    broker.quiet(&["unbind", "events", "orders", "--argument", "x=1"]);
    broker.refused(69, &["publish", "-e", "events", "-r", "order.paid", "x"]);
    let used = broker.refused(65, &["delete_exchange", "events", "--if-unused"]);
    assert!(used.contains("in use"), "{used}");
    broker.quiet(&["unbind", "events", "inner", "--destination-type", "exchange", "-r", "#"]);
    broker.quiet(&["delete_exchange", "events", "--if-unused"]);
    broker.refused(65, &["delete_exchange", "events"]);
}

#[test]
fn every_type_of_exchange_can_be_named_and_a_wrong_one_is_answered_with_the_nearest() {
    let broker = Operated::start();
    for kind in ExchangeKind::all() {
        let name = kind.name();
        let declare = ["declare_exchange", name, "--type", name];
        let argument: &[&str] = match kind {
            ExchangeKind::Delayed => &["--argument", "x-delayed-type=direct"],
            ExchangeKind::Deduplicating => &["--argument", "x-cache-size=10"],
            _ => &[],
        };
        broker.quiet(&[&declare[..], argument].concat());
    }
    for (wrong, nearest) in [
        (&["declare_exchange", "e", "--type", "topc"][..], "'topic'"),
        (&["declare_queue", "q", "--type", "quorm"], "'quorum'"),
        (&["declare_queue", "q", "--typ", "quorum"], "'--type'"),
        (&["declare_queue", "q", "--durable", "yes"], "true, false"),
        (&["declare_que", "q"], "'declare_queue'"),
        (&["publsh", "x"], "'publish'"),
    ] {
        let error = broker.refused(64, wrong);
        assert!(error.contains(nearest), "{wrong:?}: {error}");
    }
    for (wrong, why) in [
        (&["--argument", "x"][..], "expected NAME=VALUE, not 'x'"),
        (&["--arguments", "1"], "no object"),
        (&["--arguments", "{\"a\":1}", "--argument", "a=2"], "a is given twice"),
        (
            &["--type", "quorum", "--argument", "x-queue-type=classic"],
            "x-queue-type is given twice",
        ),
    ] {
        let error = broker.refused(64, &[&["declare_queue", "q"], wrong].concat());
        assert!(error.contains(why), "{wrong:?}: {error}");
    }
    for (command, what) in [
        (&["declare_queue", ""][..], "queue"),
        (&["declare_exchange", ""], "name"),
        (&["delete_exchange", ""], "name"),
        (&["bind", "", "q"], "source"),
        (&["unbind", "amq.topic", ""], "destination"),
        (&["get", ""], "queue"),
    ] {
        assert!(broker.refused(64, command).contains(&format!("the {what} is empty")));
    }
    assert_eq!(broker.json(&["list_queues", "name"]), json!([]));
}
