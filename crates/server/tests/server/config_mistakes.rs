//! What is said of a value that has another form than it should: which it is, and what is expected.

use crate::config::{loaded, refused, refused_variable};
use crate::support::Process;
use courser::TlsVersion;

#[test]
fn a_value_that_is_no_number_is_named_with_the_unit_and_the_range() {
    for (file, why) in [
        (
            "limits: {memory_high_bytes: 2GB}",
            "limits.memory_high_bytes: '2GB' is not a whole number of bytes from 0 on, such as 2147483648 for 2 GiB",
        ),
        ("limits: {memory_high_bytes: 40%}", "'40%' is not a whole number of bytes from 0 on"),
        (
            "amqp: {heartbeat_s: 30s}",
            "amqp.heartbeat_s: '30s' is not a whole number of seconds from 0 to 65535",
        ),
        ("amqp: {heartbeat_s: 70000}", "70000 is not a whole number of seconds from 0 to 65535"),
        ("amqp: {heartbeat_s: 1.5}", "1.5 is not a whole number of seconds"),
        ("amqp: {gather_us: -1}", "-1 is not a whole number of microseconds from 0 on"),
        ("amqp: {handshake_timeout_ms: [1]}", "a list is not a whole number of milliseconds"),
        ("limits: {queues_max: many}", "limits.queues_max: 'many' is not a whole number from 0 on"),
        ("limits: {queues_max: }", "nothing is not a whole number from 0 on"),
    ] {
        let error = refused(file);
        assert!(error.contains(why), "{file}: {error}");
    }
    let error = refused_variable("COURSER_LIMITS_MEMORY_HIGH_BYTES", "2GB");
    assert!(error.contains("'2GB' is not a whole number of bytes from 0 on, such as"), "{error}");
}

#[test]
fn a_text_without_quotes_that_is_something_else_is_to_be_quoted() {
    let error = refused("auth: {user: admin, password: 12345}");
    assert!(error.ends_with("auth.password: a number is no text: put it in quotes"), "{error}");
    let error = refused("auth: {user: 12345}");
    assert!(error.ends_with("auth.user: 12345 is no text: put it in quotes"), "{error}");
    let error = refused("data_dir: 5");
    assert!(error.ends_with("data_dir: 5 is no text: put it in quotes"), "{error}");
    let error = refused("management: {audit_log: true}");
    assert!(error.ends_with("management.audit_log: true is no text: put it in quotes"), "{error}");
    for text in ["1.3", "'1.3'"] {
        assert_eq!(
            loaded(&format!(
                "tls: {{listen: 127.0.0.1:5671, certificate: a, key: b, min_version: {text}}}"
            ))
            .tls
            .min_version,
            TlsVersion::Tls13
        );
    }
    let error = refused("tls: {min_version: 1.1}");
    assert!(error.ends_with("tls.min_version: '1.1' is neither 1.2 nor 1.3"), "{error}");
}

#[test]
fn a_value_of_another_kind_is_answered_with_an_example() {
    for (file, why) in [
        ("vhosts: [orders]", "vhosts[0]: 'orders' is no mapping such as {name: orders}"),
        ("vhosts: orders", "vhosts: 'orders' is no list: write [orders]"),
        ("vhosts:", "vhosts: nothing is no list, such as [a, b]"),
        ("policies: [short]", "policies[0]: 'short' is no mapping such as {name: short, pattern: "),
        (
            "auth: {loopback_only: perhaps}",
            "auth.loopback_only: 'perhaps' is neither true nor false",
        ),
        (
            "tls: {client_certificates: maybe}",
            "tls.client_certificates: 'maybe' is none of these: none, optional, required",
        ),
    ] {
        let error = refused(file);
        assert!(error.contains(why), "{file}: {error}");
    }
}

#[test]
fn a_secret_of_another_form_than_it_should_have_is_not_shown() {
    for (file, why) in [
        (
            "oauth: {token_params: client_secret=hunter2}",
            "oauth.token_params: what is there is no list, such as [a, b]",
        ),
        (
            "oauth: {token_params: {client_secret: hunter2}}",
            "oauth.token_params: a mapping is no list",
        ),
        (
            "oauth: {token_params: [{client_secret: hunter2}]}",
            "token_params[0]: a mapping is no text",
        ),
        ("oauth: {client_secret: [hunter2]}", "oauth.client_secret: a list is no text"),
        ("auth: {password: {is: hunter2}}", "auth.password: a mapping is no text"),
    ] {
        let error = refused(file);
        assert!(error.contains(why) && !error.contains("hunter2"), "{file}: {error}");
    }
}

#[test]
fn a_key_that_is_there_twice_is_named_with_its_line() {
    let error = refused("amqp:\n  heartbeat_s: 5\n  channel_max: 4\n  heartbeat_s: 6\n");
    assert!(
        error.ends_with("courser.yaml: the key 'heartbeat_s' is there twice, again in line 4"),
        "{error}"
    );
}

#[test]
fn what_shows_only_at_the_start_names_the_file_too() {
    assert!(refused("cluster: {groups: 0}").ends_with("cluster.groups must be from 1 to 64"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("courser.yaml");
    let policy = "{name: a, vhost: nowhere, pattern: x, definition: {max-length: 1}}";
    let text = format!(
        "listen: '127.0.0.1:0'\nmanagement: {{listen: none}}\nmetrics: {{listen: none}}\npolicies: [{policy}]\n"
    );
    std::fs::write(&file, text).expect("written");
    let data_dir = folder.path().join("data");
    let paths = [&file, &data_dir].map(|path| path.to_str().expect("text"));
    let output = Process::run(&["--config", paths[0], "--data-dir", paths[1]]);
    let said = String::from_utf8(output.stderr).expect("text");
    let why = "courser.yaml: configuration: policies[0].vhost is 'nowhere', which there is not";
    assert!(!output.status.success() && said.contains(why), "{said}");
}

#[test]
fn a_limit_that_lets_no_client_do_anything_is_refused() {
    for key in [
        "connections_max",
        "queues_max",
        "consumers_per_channel_max",
        "consumers_per_connection_max",
        "consumers_per_queue_max",
        "outbox_high_bytes",
        "unacked_per_channel_max",
        "pace_backlog",
    ] {
        let error = refused(&format!("limits: {{{key}: 0}}"));
        assert!(error.contains(&format!("limits.{key} must be at least 1: 0 does not")), "{error}");
    }
    // No client may declare exchanges, or use transactions: the broker is of use all the same.
    loaded("limits: {exchanges_max: 0, bindings_max: 0, transaction_max_bytes: 0}");
    loaded("limits: {transaction_publishes_max: 0}");
}

#[test]
fn an_audit_log_that_can_not_be_written_and_too_much_memory_are_noticed_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("courser.yaml");
    let text = "listen: '127.0.0.1:0'\nmanagement: {listen: none, audit_log: /nonexistent/a.log}\n\
                metrics: {listen: none}\nlimits: {memory_high_bytes: 1000000000000000}\n";
    std::fs::write(&file, text).expect("written");
    let data_dir = folder.path().join("data");
    let paths = [&file, &data_dir].map(|path| path.to_str().expect("text"));
    let output = Process::run(&["--config", paths[0], "--data-dir", paths[1]]);
    let said = String::from_utf8(output.stderr).expect("text");
    let why = "courser.yaml: configuration: management.audit_log can't be opened: /nonexistent/a.log: No such file";
    assert!(!output.status.success() && said.contains(why), "{said}");
    assert!(
        said.contains("limits.memory_high_bytes is more than the memory of the machine"),
        "{said}"
    );
}

#[test]
fn a_file_that_is_not_in_order_is_refused_with_the_line_and_without_its_text() {
    for file in [
        "auth:\n  password: hunter2\n broken: [1\n",
        "auth:\n  password: \"hunter2\n",
        "auth: {password: hunter2, password: hunter3}\n",
        "auth:\n\tpassword: hunter2\n",
    ] {
        let error = refused(file);
        assert!(error.contains("line "), "{file}: {error}");
        assert!(!error.contains("hunter"), "{file}: {error}");
    }
}
