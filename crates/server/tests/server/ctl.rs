//! `courser ctl` against a broker: what its commands show, and what they end with.

use crate::support::operated::{Operated, said};
use crate::support::{Client, Process};
use crate::tls::World;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_is_operated_over_https_with_the_authority_that_is_named() {
    let any = "127.0.0.1:0".parse().expect("an address");
    let world = World::with(|config, _, _| config.management.tls_listen = vec![any]).await;
    let port = world.server.https_addresses()[0].port();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("ca.pem"), world.authority.pem()).expect("a file");
    let ctl = async |host: &str, arguments: &[&str]| {
        let mut command = Process::command();
        command.current_dir(folder.path()).env("HOME", folder.path());
        command.env_remove("XDG_CONFIG_HOME").env("COURSER_CTL_PASSWORD", "guest");
        command.args(["ctl", "--user", "guest", "--url"]).arg(format!("https://{host}:{port}"));
        command.args(arguments).args(["-q", "list_vhosts"]);
        tokio::task::spawn_blocking(move || said(&mut command)).await.expect("what it said")
    };
    let trusting = ctl("localhost", &["--ca", "ca.pem"]).await;
    assert_eq!((trusting.code, &*trusting.error), (Some(0), ""), "{trusting:?}");
    assert!(trusting.out.ends_with("\n/\n"), "{trusting:?}");
    for (host, arguments, why) in [
        ("localhost", &[][..], "give the CA that issued its certificate with --ca"),
        ("127.0.0.1", &["--ca", "ca.pem"], "the TLS handshake with "),
        ("localhost", &["--ca", "none.pem"], "can't read CA certificates from none.pem"),
    ] {
        let said = ctl(host, arguments).await;
        assert!(said.code != Some(0) && said.error.contains(why), "{said:?}");
    }
}

#[test]
fn users_and_permissions_are_changed_and_shown() {
    let broker = Operated::start();
    let added = broker.ctl(&["add_user", "ada", "s3cret"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(
        added.out.starts_with("Adding user \"ada\" ...\nDone. Don't forget to grant"),
        "{added:?}"
    );
    assert!(broker.refused(70, &["add_user", "ada", "x"]).contains("User \"ada\" already exists"));
    let tags = broker.ctl(&["set_user_tags", "ada", "management", "monitoring"]);
    assert_eq!(tags.out, "Setting tags for user \"ada\" to [management, monitoring] ...\n");
    assert!(
        broker
            .refused(67, &["set_user_tags", "stranger", "a"])
            .contains("\"stranger\" does not exist")
    );
    assert_eq!(
        broker.quiet(&["list_users"]),
        "user\ttags\nada\t[management, monitoring]\nguest\t[administrator]\n"
    );
    assert_eq!(broker.quiet(&["-s", "list_users"]).lines().count(), 2);
    assert_eq!(broker.quiet(&["--no-table-headers", "list_users"]).lines().count(), 2);
    assert_eq!(
        broker.json(&["list_users"])[0],
        json!({ "user": "ada", "tags": ["management", "monitoring"] })
    );
    assert_eq!(
        broker.quiet(&["authenticate_user", "ada", "s3cret"]),
        "Success\n",
        "tags leave the password alone"
    );
    assert!(
        broker.refused(65, &["authenticate_user", "ada", "wrong"]).contains("invalid credentials")
    );
    broker.quiet(&["change_password", "ada", "other"]);
    assert_eq!(broker.quiet(&["authenticate_user", "ada", "other"]), "Success\n");
    assert_eq!(broker.json(&["list_users"])[0]["tags"], json!(["management", "monitoring"]));
    let changes = broker.json(&["audit_log", "--contains", "/api/users/ada/password"]);
    assert_eq!(changes.as_array().map(Vec::len), Some(1), "no tags go with it: {changes}");
    broker.refused(67, &["change_password", "stranger", "x"]);

    broker.quiet(&["set_permissions", "ada", "^c", ".*", ""]);
    assert_eq!(
        broker.quiet(&["list_permissions"]),
        "user\tconfigure\twrite\tread\nada\t^c\t.*\t\nguest\t.*\t.*\t.*\n"
    );
    assert_eq!(
        broker.quiet(&["list_user_permissions", "ada"]),
        "vhost\tconfigure\twrite\tread\n/\t^c\t.*\t\n"
    );
    broker.refused(67, &["list_user_permissions", "stranger"]);
    broker.refused(67, &["set_permissions", "stranger", "", "", ""]);
    broker.refused(65, &["set_permissions", "ada", "(", "", ""]);
    broker.quiet(&["set_topic_permissions", "ada", "amq.topic", "^a", ".*"]);
    assert_eq!(broker.quiet(&["-s", "list_topic_permissions"]), "ada\tamq.topic\t^a\t.*\n");
    broker.quiet(&["clear_topic_permissions", "ada"]);
    assert_eq!(broker.quiet(&["list_topic_permissions"]), "");
    broker.quiet(&["clear_permissions", "ada"]);
    broker.quiet(&["clear_password", "ada"]);
    broker.refused(65, &["authenticate_user", "ada", "other"]);
    broker.quiet(&["delete_user", "ada"]);
    broker.quiet(&["delete_user", "ada"]);
    assert_eq!(broker.quiet(&["-s", "list_users"]), "guest\t[administrator]\n");
}

#[test]
fn vhosts_limits_and_policies_are_changed_and_shown() {
    let broker = Operated::start();
    broker.quiet(&["add_vhost", "v1", "--description", "a b", "--tags", "x,y"]);
    assert_eq!(
        broker.quiet(&["list_vhosts", "name", "description", "tags"]).lines().last(),
        Some("v1\ta b\t[x, y]")
    );
    broker.quiet(&["update_vhost_metadata", "v1", "--description", "c"]);
    assert_eq!(
        broker.quiet(&["list_vhosts", "description", "tags"]).lines().last(),
        Some("c\t[x, y]")
    );
    assert_eq!(broker.quiet(&["trace_on", "-p", "v1"]), "Trace enabled for vhost v1\n");
    assert_eq!(
        broker.quiet(&["list_vhosts", "description", "tracing"]).lines().last(),
        Some("c\ttrue")
    );
    assert_eq!(broker.quiet(&["trace_off", "-p", "v1"]), "Trace disabled for vhost v1\n");
    broker.refused(65, &["trace_on", "-p", "none"]);
    broker.quiet(&["set_vhost_limits", "-p", "v1", r#"{"max-connections":10}"#]);
    assert_eq!(broker.quiet(&["list_vhost_limits", "-p", "v1"]), "{\"max-connections\":10}\n");
    broker.quiet(&["clear_vhost_limits", "-p", "v1"]);
    assert_eq!(broker.quiet(&["list_vhost_limits", "-p", "v1"]), "{}\n");
    broker.quiet(&["set_user_limits", "guest", r#"{"max-channels":7}"#]);
    assert_eq!(broker.json(&["list_user_limits", "guest"]), json!({ "max-channels": 7 }));
    assert_eq!(broker.json(&["list_user_limits", "--user", "guest"])["max-channels"], 7);
    assert!(broker.refused(64, &["--user", "ada", "list_vhosts"]).contains("add --url"));
    broker.quiet(&["clear_user_limits", "guest", "all"]);
    broker.quiet(&[
        "set_policy",
        "p1",
        "^zz",
        r#"{"max-length":5}"#,
        "--priority",
        "1",
        "--apply-to",
        "queues",
    ]);
    assert_eq!(
        broker.quiet(&["list_policies"]),
        "vhost\tname\tpattern\tapply-to\tdefinition\tpriority\n/\tp1\t^zz\tqueues\t{\"max-length\":5}\t1\n"
    );
    broker.refused(65, &["set_policy", "p2", "^zz", r#"{"no-such":5}"#]);
    broker.refused(65, &["set_policy", "p2", "^zz", "no JSON"]);
    broker.quiet(&["clear_policy", "p1"]);
    broker.refused(69, &["clear_policy", "p1"]);
    broker.quiet(&["set_parameter", "federation-upstream-set", "x", "{}"]);
    assert_eq!(broker.quiet(&["-s", "list_parameters"]), "federation-upstream-set\tx\t{}\n");
    broker.quiet(&["enable_vhost_deletion_protection", "v1"]);
    broker.refused(65, &["delete_vhost", "v1"]);
    broker.quiet(&["disable_vhost_deletion_protection", "v1"]);
    broker.quiet(&["delete_vhost", "v1"]);
    broker.refused(65, &["delete_vhost", "v1"]);
}

#[tokio::test]
async fn queues_and_connections_are_shown_and_touched_without_permissions() {
    let broker = Operated::start();
    let mut client = Client::connect(broker.broker.address).await;
    client.open_channel().await;
    client.declare("orders").await;
    client.publish("orders", b"hello").await;
    assert_eq!(client.count("orders").await, 1);
    let listed = broker.ctl(&["list_queues"]);
    assert_eq!(
        listed.out,
        "Timeout: 60.0 seconds ...\nListing queues for vhost / ...\nname\tmessages\norders\t1\n"
    );
    assert_eq!(
        broker.json(&["list_queues", "name", "messages"]),
        json!([{ "name": "orders", "messages": 1 }])
    );
    assert_eq!(
        broker.quiet(&["--formatter", "csv", "list_queues"]),
        "\"name\",\"messages\"\n\"orders\",\"1\"\n"
    );
    let unknown = broker.refused(65, &["list_queues", "-p", "none"]);
    assert_eq!(unknown, "Error:\nVirtual host 'none' does not exist\n");
    let unknown = broker.refused(64, &["list_queues", "nosuchcol"]);
    assert!(
        unknown.starts_with("Error (argument validation): Info key(s) nosuchcol are not supported"),
        "{unknown}"
    );
    assert!(broker.quiet(&["list_bindings"]).contains("\texchange\torders\tqueue\torders\t[]\n"));
    assert!(broker.quiet(&["list_exchanges"]).starts_with("name\ttype\n\tdirect\n"));
    assert!(
        broker
            .quiet(&["list_connections"])
            .starts_with("user\tpeer_host\tpeer_port\tstate\nguest\t127.0.0.1\t")
    );
    assert!(
        broker
            .quiet(&["list_channels"])
            .starts_with("pid\tuser\tconsumer_count\tmessages_unacknowledged\n")
    );
    let lines = broker.quiet(&["log_tail"]);
    assert!(lines.contains("Z [info] courser") && lines.starts_with("20"), "{lines}");
    assert_eq!(
        broker.quiet(&["check_certificate_expiration"]),
        "No certificate expires within 4 weeks.\n"
    );
    broker.refused(65, &["check_certificate_expiration", "--unit", "seconds"]);
    broker.quiet(&["pause_queue", "orders"]);
    assert!(broker.quiet(&["list_queues", "name", "state"]).contains("orders\tpaused\n"));
    broker.quiet(&["resume_queue", "orders"]);
    assert!(broker.quiet(&["list_queues", "name", "state"]).contains("orders\trunning\n"));
    broker.refused(65, &["pause_queue", "nothing"]);
    broker.quiet(&["purge_queue", "orders"]);
    assert_eq!(client.count("orders").await, 0);
    assert_eq!(
        broker.quiet(&["delete_queue", "orders"]),
        "Queue was successfully deleted with 0 ready messages\n"
    );
    broker.refused(64, &["delete_queue", "orders"]);
    broker.refused(65, &["purge_queue", "orders"]);
    broker.refused(65, &["close_connection", "stranger", "bye"]);
    let pid = broker.quiet(&["-s", "list_connections", "pid"]);
    broker.quiet(&["close_connection", pid.trim_end(), "bye"]);
    assert_eq!(broker.quiet(&["close_all_connections", "bye"]), "Closed 0 connections\n");
}

#[test]
fn the_broker_is_described_and_checked() {
    let broker = Operated::start();
    let port = broker.broker.address.port().to_string();
    assert_eq!(broker.quiet(&["ping"]), "Ping succeeded\n");
    assert_eq!(broker.quiet(&["version"]), format!("{}\n", courser::VERSION));
    let status = broker.json(&["status"]);
    assert_eq!(status["product_name"], "Courser");
    assert_eq!(status["totals"]["virtual_host_count"], 1);
    assert!(broker.quiet(&["status"]).contains("Alarms\n\n(none)\n"));
    assert!(broker.quiet(&["environment"]).contains("heartbeat_s: 60"));
    broker.quiet(&["check_running"]);
    broker.quiet(&["check_alarms"]);
    broker.quiet(&["check_virtual_hosts"]);
    broker.quiet(&["check_port_listener", &port]);
    broker.quiet(&["check_protocol_listener", "amqp"]);
    broker.quiet(&["check_port_connectivity"]);
    broker.quiet(&["await_startup"]);
    assert!(
        broker
            .refused(69, &["check_port_listener", "9"])
            .contains("No listener for port 9 is active")
    );
    broker.refused(69, &["check_protocol_listener", "mqtt"]);
    broker.refused(69, &["join_cluster", "rabbit@elsewhere"]);
    broker.refused(64, &["no_such_command"]);
    broker.refused(64, &["set_user_tags"]);
    assert!(broker.refused(75, &["list_queues", "--timeout", "0"]).contains("timed out"));
}

#[test]
fn definitions_go_out_and_come_in() {
    let broker = Operated::start();
    broker.quiet(&["add_vhost", "v1"]);
    broker.quiet(&["export_definitions", "all.json"]);
    let file = broker.folder.path().join("all.json");
    let mode = file.metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "hashes are in it");
    broker.quiet(&["delete_vhost", "v1"]);
    broker.quiet(&["import_definitions", "all.json"]);
    assert!(broker.quiet(&["list_vhosts"]).contains("v1\n"));
    let document: Value =
        serde_json::from_str(&broker.quiet(&["export_definitions", "-"])).expect("JSON");
    assert_eq!(document["vhosts"].as_array().map(Vec::len), Some(2));
    broker.refused(65, &["import_definitions", "none.json"]);
    std::fs::write(&file, "{").expect("written");
    broker.refused(65, &["import_definitions", "all.json"]);
}

#[test]
fn over_http_a_user_may_do_what_it_may() {
    let broker = Operated::start();
    broker.quiet(&["add_user", "ada", "s3cret"]);
    broker.quiet(&["set_user_tags", "ada", "monitoring"]);
    let url = broker.url();
    let ask = |password: &str, arguments: &[&str]| {
        let mut command = broker.command();
        command.env("COURSER_CTL_PASSWORD", password).args(["--url", &url, "--user", "ada"]);
        said(command.args(arguments))
    };
    assert_eq!(ask("s3cret", &["-q", "list_vhosts"]).out, "name\n/\n");
    let denied = ask("s3cret", &["list_users"]);
    assert_eq!(denied.code, Some(77), "{denied:?}");
    assert!(denied.error.contains("Not administrator user"), "{denied:?}");
    let wrong = ask("wrong", &["list_vhosts"]);
    assert_eq!(wrong.code, Some(77), "{wrong:?}");
    assert!(wrong.error.contains("the user or the password is wrong"), "{wrong:?}");
    let without = broker.anywhere(&["--url", &url, "--user", "ada", "list_vhosts"]);
    assert_eq!(without.code, Some(64), "{without:?}");
}

#[test]
fn contexts_are_kept_for_their_owner() {
    let broker = Operated::start();
    let url = broker.url();
    std::fs::write(broker.folder.path().join("password"), "guest\n").expect("written");
    let add =
        ["context", "add", "here", "--url", &url, "--user", "guest", "--password-file", "password"];
    assert_eq!(broker.anywhere(&add).code, Some(0));
    let file = broker.folder.path().join(".config/courser/contexts.yaml");
    assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    let again = broker.anywhere(&["context", "add", "here", "--url", "http://127.0.0.1:1"]);
    assert!(again.code == Some(70) && again.error.contains("--replace"), "{again:?}");
    assert_eq!(broker.anywhere(&[&add[..], &["--replace"]].concat()).code, Some(0));
    let users = broker.anywhere(&["-q", "list_users"]);
    assert_eq!(
        users.out, "user\ttags\nguest\t[administrator]\n",
        "the first one is the current one: {users:?}"
    );
    let listed = broker.anywhere(&["context", "list"]);
    assert!(listed.out.contains(&format!("here\t{url}\tguest\ttrue")), "{listed:?}");
    assert_eq!(broker.anywhere(&["--context", "there", "list_users"]).code, Some(65));
    assert_eq!(broker.anywhere(&["context", "remove", "here"]).code, Some(0));
    let lost = broker.anywhere(&["list_users"]);
    assert_eq!(lost.code, Some(69), "{lost:?}");
    assert!(lost.error.contains("--data-dir"), "{lost:?}");
}

#[test]
fn the_socket_is_for_its_owner_and_goes_with_the_broker() {
    let mut broker = Operated::start();
    let socket = broker.folder.path().join("data/ctl.sock");
    assert_eq!(socket.metadata().expect("a socket").permissions().mode() & 0o777, 0o600);
    broker.broker.signal("TERM");
    assert!(broker.broker.wait().success());
    assert!(!socket.exists());
    let gone = broker.refused(69, &["list_queues"]);
    assert!(gone.contains("no broker runs at"), "{gone}");
    let mut command = Process::command();
    command.env("COURSER_MANAGEMENT_LOCAL_SOCKET", "false").env("COURSER_LOG_LEVEL", "error");
    command.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(broker.folder.path().join("data"));
    let _other = Process::start_with(command);
    assert!(!socket.exists(), "it is switched off");
}

#[test]
fn a_report_holds_no_secret() {
    let broker = Operated::start();
    broker.quiet(&["add_user", "ada", "PLANTED-password"]);
    broker.quiet(&[
        "set_parameter",
        "shovel",
        "s",
        r#"{"src-uri":"amqp://u:PLANTED-uri@h/v","dest-uri":"amqp://","password":"PLANTED-value"}"#,
    ]);
    let hash = broker.json(&["export_definitions", "-"])["users"][0]["password_hash"].clone();
    let hash = hash.as_str().expect("a hash").to_owned();
    let log = broker.folder.path().join("log");
    std::fs::write(
        &log,
        "INFO a user=ada\nWARN b password=PLANTED-log uri=amqp://a:PLANTED-log@b\n",
    )
    .expect("written");
    broker.quiet(&["report", "bundle.tar.gz", "--log", "log"]);
    let file = std::fs::File::open(broker.folder.path().join("bundle.tar.gz")).expect("a bundle");
    let mut all = String::new();
    GzDecoder::new(file).read_to_string(&mut all).expect("a whole bundle");
    for secret in ["PLANTED", &*hash] {
        assert!(!all.contains(secret), "{secret} is in it");
    }
    for part in [
        "settings.json",
        "queues.json",
        "journal.txt",
        "\"heartbeat_s\": 60",
        "ada",
        "INFO a user=ada",
    ] {
        assert!(all.contains(part), "{part} is missing");
    }
    broker.refused(73, &["report", "bundle.tar.gz"]);
    broker.refused(65, &["report", "other.tar.gz", "--log", "none"]);
}
