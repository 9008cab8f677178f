//! Options and commands of RabbitMQ's tools by their own names.

use crate::cluster::Three;
use crate::cluster_operated::ctl;
use crate::support::operated::{Operated, said};
use crate::support::{Client, ended, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

/// The name of the broker's node.
fn node(broker: &Operated) -> String {
    broker.json(&["status"])["node"].as_str().expect("a name").to_owned()
}

#[test]
fn a_name_of_a_node_has_to_be_that_of_the_broker() {
    let broker = Operated::start();
    let name = node(&broker);
    let (first, host) = name.split_once('@').expect("a host");
    let short = format!("{first}@{}", host.split('.').next().expect("a host"));
    for option in ["-n", "--node"] {
        assert_eq!(broker.quiet(&[option, &name, "list_vhosts"]), "name\n/\n");
    }
    broker.quiet(&["-n", &short, "ping"]);
    broker.quiet(&["-n", first, "await_startup"]);
    broker.quiet(&["--longnames", "-n", &name, "list_vhosts"]);
    broker.quiet(&["-l", "-n", &name, "list_vhosts"]);
    for command in ["list_vhosts", "ping", "await_startup"] {
        let other = broker.refused(69, &["-n", "rabbit@elsewhere", command]);
        assert!(other.contains(&format!("is node {name}, not rabbit@elsewhere")), "{other}");
        assert!(other.contains("--url, --context or --data-dir"), "{other}");
    }
    broker.refused(69, &["-n", "rabbit@elsewhere", "add_vhost", "v"]);
    assert_eq!(broker.quiet(&["-s", "list_vhosts"]), "/\n", "nothing was done");
    broker.refused(64, &["-n", "", "list_vhosts"]);
    assert!(broker.refused(64, &["-l", "list_vhosts"]).contains("--node"));
    for command in [&["version"][..], &["context", "list"]] {
        let error = broker.refused(64, &[&["-n", &name], command].concat());
        assert!(error.contains("asks no broker: leave out --node"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_listed_by_where_they_are() {
    let broker = Operated::start();
    let mut client = Client::connect(broker.broker.address).await;
    client.open_channel().await;
    client.declare("orders").await;
    let listed =
        |options: &[&str]| broker.quiet(&[&["-s", "list_queues", "name"], options].concat());
    assert_eq!(listed(&["--online"]), "orders\n");
    assert_eq!(listed(&["--local"]), "orders\n");
    assert_eq!(listed(&["--offline"]), "");
    assert_eq!(listed(&["--online", "--offline"]), "orders\n");
    assert_eq!(broker.quiet(&["list_unresponsive_queues"]), "");
    assert_eq!(broker.quiet(&["list_unresponsive_queues", "name", "--queue-timeout", "1"]), "");
    broker.refused(64, &["list_unresponsive_queues", "messages"]);
    broker.refused(64, &["list_unresponsive_queues", "--queue-timeout", "0"]);
    let erlang = broker.quiet(&["--formatter", "erlang", "list_queues", "name", "messages"]);
    assert_eq!(erlang, "[[{name,<<\"orders\">>},{messages,0}]]\n");
    assert_eq!(broker.quiet(&["--formatter", "erlang", "ping"]), "<<\"Ping succeeded\">>\n");
}

#[test]
fn limits_and_permissions_are_of_all_where_that_is_said() {
    let broker = Operated::start();
    broker.quiet(&["add_vhost", "v"]);
    broker.quiet(&["add_user", "ada", "s3cret"]);
    broker.quiet(&["set_vhost_limits", "-p", "v", r#"{"max-queues":5}"#]);
    broker.quiet(&["set_user_limits", "ada", r#"{"max-channels":7}"#]);
    let vhosts = broker.quiet(&["list_vhost_limits", "--global"]);
    assert_eq!(vhosts, "vhost\tlimits\nv\t{\"max-queues\":5}\n");
    let users = broker.quiet(&["list_user_limits", "--global"]);
    assert_eq!(users, "user\tlimits\nada\t{\"max-channels\":7}\n");
    broker.refused(64, &["list_vhost_limits", "--global", "-p", "v"]);
    broker.refused(64, &["list_user_limits", "--global", "ada"]);
    let granted = broker.ctl(&["set_permissions_globally", "ada", "^c", "^w", "^r"]);
    let intent = "Setting permissions for user \"ada\" in all virtual hosts ...\n";
    assert_eq!((granted.code, &*granted.out), (Some(0), intent));
    let permissions = broker.quiet(&["-s", "list_user_permissions", "ada"]);
    assert_eq!(permissions, "/\t^c\t^w\t^r\nv\t^c\t^w\t^r\n");
    broker.refused(64, &["set_permissions_globally", "-p", "v", "ada", "", "", ""]);
    broker.refused(65, &["set_permissions_globally", "ada", "(", "", ""]);
}

#[test]
fn a_broker_tells_whether_it_runs_and_how_much_of_what_it_uses() {
    let broker = Operated::start();
    let running = broker.json(&["is_running"]);
    let sentence = "Courser is fully booted and running";
    assert_eq!(running, json!({ "result": true, "message": sentence }));
    assert_eq!(broker.json(&["is_booting"])["result"], false);
    broker.quiet(&["await_online_nodes", "1"]);
    let few = broker.refused(70, &["-t", "0.5", "await_online_nodes", "2"]);
    assert!(few.contains("Not enough nodes joined the cluster"), "{few}");
    broker.refused(64, &["await_online_nodes", "0"]);
    assert_eq!(broker.quiet(&["log_tail", "-N", "1"]).lines().count(), 1);
    for (unit, shown) in [("MB", " mb\n"), ("kib", " kib\n"), ("bytes", " bytes\n")] {
        let status = broker.quiet(&["status", "--unit", unit]);
        assert_eq!(status.matches(shown).count(), 4, "{status}");
    }
    for command in ["status", "memory_breakdown"] {
        let unknown = broker.refused(64, &[command, "--unit", "stone"]);
        assert!(unknown.contains("unknown unit 'stone': use B, KB, MB"), "{unknown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_shown_by_its_position() {
    let broker = Operated::start();
    let mut client = Client::connect(broker.broker.address).await;
    client.open_channel().await;
    client.declare("orders").await;
    for body in [b"one", b"two"] {
        client.publish("orders", body).await;
    }
    assert_eq!(client.count("orders").await, 2);
    let shown = broker.quiet(&["peek", "orders", "2"]);
    assert!(shown.starts_with("keys\tvalues\n") && shown.contains("payload\ttwo\n"), "{shown}");
    let message = broker.json(&["peek", "orders", "1"]);
    assert_eq!((&message["result"], &message["message"]["payload"]), (&json!("ok"), &json!("one")));
    assert!(broker.refused(69, &["peek", "orders", "3"]).contains("a message at that position"));
    for position in ["0", "x"] {
        broker.refused(64, &["peek", "orders", position]);
    }
    assert_eq!(client.count("orders").await, 2);
    let definitions = r#"{"queues":[{"name":"s","durable":true,"arguments":{"x-queue-type":"stream"}},
        {"name":"q","durable":true,"arguments":{"x-queue-type":"quorum"}}]}"#;
    std::fs::write(broker.folder.path().join("more"), definitions).expect("a file");
    broker.quiet(&["import_definitions", "-p", "/", "more"]);
    assert!(broker.refused(69, &["peek", "s", "1"]).contains("use peek_messages --offset"));
    let status = broker.quiet(&["quorum_status", "q"]);
    let expected = format!("Node Name\tRaft State\tMembership\n{}\tleader\tvoter\n", node(&broker));
    assert_eq!(status, expected);
    let classic = broker.refused(65, &["quorum_status", "orders"]);
    assert!(classic.contains("is not a quorum queue") && classic.contains("cluster status"));
}

#[test]
fn definitions_that_were_imported_the_last_time_are_skipped_where_that_is_said() {
    let broker = Operated::start();
    let file = broker.folder.path().join("all");
    let import = |rest: &[&str]| {
        broker.quiet(&[&["import_definitions", "all", "--skip-if-unchanged"], rest].concat())
    };
    std::fs::write(&file, r#"{"vhosts":[{"name":"v"}]}"#).expect("a file");
    assert!(import(&[]).starts_with("Successfully imported"));
    broker.quiet(&["delete_vhost", "v"]);
    assert!(import(&[]).contains("nothing was imported"));
    assert_eq!(broker.quiet(&["-s", "list_vhosts"]), "/\n");
    broker.quiet(&["import_definitions", "all"]);
    assert_eq!(broker.quiet(&["-s", "list_vhosts"]), "/\nv\n", "it is only skipped when asked");
    std::fs::write(&file, r#"{"vhosts":[{"name":"w"}]}"#).expect("a file");
    assert!(import(&[]).starts_with("Successfully imported"));
    std::fs::write(&file, r#"{"vhosts":[{"name":"x"},{"name":5}]}"#).expect("a file");
    broker.refused(65, &["import_definitions", "all", "--skip-if-unchanged"]);
    broker.quiet(&["delete_vhost", "x"]);
    broker.refused(65, &["import_definitions", "all", "--skip-if-unchanged"]);
    // What the settings name is not imported once more for that.
    let parameters = broker.quiet(&["list_global_parameters"]);
    assert!(!parameters.contains("imported_definition_hash_value"), "{parameters}");
    assert!(parameters.contains("imported_by_command_hash_value"), "{parameters}");
    for option in [&["-p", "/"][..], &["--dry-run"]] {
        let line = [&["import_definitions", "all", "--skip-if-unchanged"], option].concat();
        assert!(broker.refused(64, &line).contains("leave out"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_tls_offers_and_how_large_messages_are_is_told() {
    let broker = Operated::start();
    assert_eq!(broker.quiet(&["tls_versions"]), "tlsv1.3\ntlsv1.2\n");
    assert_eq!(broker.json(&["tls_versions"]), json!({ "versions": ["tlsv1.3", "tlsv1.2"] }));
    let suites = broker.quiet(&["cipher_suites"]);
    assert!(suites.starts_with("TLS_AES_256_GCM_SHA384\n"), "{suites}");
    assert!(suites.contains("\nECDHE-RSA-AES256-GCM-SHA384\n"), "{suites}");
    let iana = broker.quiet(&["cipher_suites", "--format", "iana", "--all"]);
    assert!(iana.contains("\nTLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384\n"), "{iana}");
    assert!(
        broker.refused(64, &["cipher_suites", "--format", "erlang"]).contains("openssl or iana")
    );
    broker.refused(64, &["cipher_suites", "--format", "x"]);

    let mut client = Client::connect(broker.broker.address).await;
    client.open_channel().await;
    client.declare("orders").await;
    for body in [&[0; 10][..], &[0; 100], &[0; 101], &[0; 5000]] {
        client.publish("orders", body).await;
    }
    assert_eq!(client.count("orders").await, 4);
    let sizes = broker.quiet(&["message_size_stats"]);
    let lines: Vec<&str> = sizes.lines().collect();
    let expected = [
        "Message Size\tCount\tPercentage",
        "below 100B\t2\t50.00",
        "between 100B and 1KB\t1\t25.00",
        "between 1KB and 10KB\t1\t25.00",
        "between 10KB and 100KB\t0\t0.00",
    ];
    assert_eq!(lines[..5], expected);
    assert_eq!(lines[9..], ["above 100MB\t0\t0.00"]);
}

/// The next line of a command that follows events, while vhosts come.
fn next_event(broker: &Operated, lines: &mpsc::Receiver<String>, name: &str) -> Value {
    for nth in 0..200 {
        broker.quiet(&["add_vhost", &format!("{name}{nth}")]);
        if let Ok(line) = lines.recv_timeout(Duration::from_millis(50)) {
            return serde_json::from_str(&line).expect("JSON");
        }
    }
    panic!("no event came")
}

#[test]
fn events_are_followed_as_long_as_is_said_or_the_broker_runs() {
    let broker = Operated::start();
    let follow = |options: &[&str]| {
        let mut command = broker.command();
        command.args(["--data-dir", "data", "consume_event_stream"]).args(options);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command runs");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        (child, lines)
    };
    let (child, lines) = follow(&["--duration", "2", "--pattern", "^vhost\\."]);
    let event = next_event(&broker, &lines, "timed");
    assert_eq!(event["event"], "vhost.created", "{event}");
    assert!(event["name"].as_str().expect("a name").starts_with("timed"), "{event}");
    assert!(event["timestamp_in_ms"].is_u64(), "{event}");
    let output = ended(child);
    assert!(output.status.success(), "{output:?}");

    let (child, lines) = follow(&[]);
    next_event(&broker, &lines, "endless");
    broker.broker.signal("TERM");
    let output = ended(child);
    assert_eq!(output.status.code(), Some(69), "{output:?}");
}

#[test]
fn events_are_refused_in_forms_that_they_do_not_have() {
    let broker = Operated::start();
    for line in [
        &["--formatter", "csv", "consume_event_stream"][..],
        &["consume_event_stream", "--duration", "0"],
        &["consume_event_stream", "--pattern", "("],
    ] {
        broker.refused(64, line);
    }
}

#[test]
fn plugins_are_built_in_or_are_told_not_to_be_there() {
    let broker = Operated::start();
    let all = broker.json(&["plugins", "list"]);
    let state = |name: &str| {
        let found = all.as_array().expect("a list").iter().find(|one| one["name"] == name);
        found.map(|one| one["state"].clone()).unwrap_or_default()
    };
    assert_eq!(state("rabbitmq_management"), "built in");
    assert_eq!(state("rabbitmq_shovel"), "not supported");
    let some = broker.quiet(&["-s", "plugins", "list", "random"]);
    assert_eq!(some, "rabbitmq_random_exchange\tbuilt in\texchange type x-random\n");
    broker.quiet(&["plugins", "enable", "rabbitmq_management", "rabbitmq_prometheus"]);
    broker.quiet(&["plugins", "is_enabled", "rabbitmq_management"]);
    let absent =
        broker.refused(69, &["plugins", "enable", "rabbitmq_management", "rabbitmq_stomp"]);
    assert!(absent.contains("rabbitmq_stomp is not supported: AMQP 0-9-1 only"), "{absent}");
    broker.refused(69, &["plugins", "disable", "rabbitmq_management"]);
    for wrong in [&["plugins", "enable"][..], &["plugins", "list", "("], &["plugins", "put", "x"]] {
        broker.refused(64, wrong);
    }
}

#[test]
fn what_is_not_here_says_why_whatever_options_it_has() {
    let broker = Operated::start();
    for (line, instead) in [
        (&["grow", "rabbit@b", "all", "--queue-pattern", "^q"][..], "cluster add"),
        (&["add_member", "q", "rabbit@b", "--membership", "voter"], "every node of a cluster"),
        (&["rebalance", "all"], "cluster transfer-leader"),
        (&["join_cluster", "--ram", "rabbit@b"], "cluster add"),
    ] {
        let why = broker.refused(69, line);
        assert!(why.contains(instead), "{line:?}: {why}");
    }
    let mut nowhere = broker.command();
    let said = said(nowhere.args(["-n", "rabbit@b", "grow", "rabbit@b", "all"]));
    assert_eq!(said.code, Some(69), "it asks no broker: {said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_a_cluster_is_drained_and_revived_by_its_own_name() {
    let three = Three::start().await;
    let to = (three.wait_for_leader().await + 1) % 3;
    let config = &three.configs[to];
    let code = async |arguments: &'static [&'static str]| {
        ctl(config, arguments).await.status.code().expect("a code")
    };
    assert_eq!(code(&["-q", "await_online_nodes", "3"]).await, 0);
    assert_eq!(code(&["suspend_listeners"]).await, 69, "it is drained instead");
    assert_eq!(code(&["-q", "-t", "0.5", "await_online_nodes", "4"]).await, 70);
    // Another node leads, and answers most questions: that is not the one that is asked.
    let named: [&[&str]; 3] =
        [&["-n", "a", "list_vhosts"], &["-n", "b", "list_vhosts"], &["-n", "c", "list_vhosts"]];
    let whole: [&[&str]; 3] = [
        &["-n", "courser@a", "drain"],
        &["-n", "courser@b", "drain"],
        &["-n", "courser@c", "drain"],
    ];
    for other in 0..3 {
        let expected = if other == to { 0 } else { 69 };
        assert_eq!(code(named[other]).await, expected);
        assert_eq!(code(whole[other]).await, expected);
    }
    let amqp = three.node(to).addresses().amqp[0];
    let listens = || std::net::TcpStream::connect(amqp).is_ok();
    wait_until("the door for AMQP is shut", async || !listens()).await;
    assert_eq!(code(&["revive"]).await, 0);
    wait_until("the node listens again", async || listens()).await;
    three.stop().await;
}
