//! What `courser ctl` ends with when it can't do what it is told.

use crate::support::ended;
use crate::support::operated::Operated;
use std::process::Stdio;

#[test]
fn output_without_room_is_a_failure_and_no_panic() {
    let broker = Operated::start();
    for arguments in [
        &["list_vhosts"][..],
        &["-q", "list_vhosts"],
        &["status"],
        &["--formatter", "json", "list_vhosts"],
        &["export_definitions", "-"],
        &["hash_password", "secret"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
        let mut command = broker.command();
        command.args(["--data-dir", "data"]).args(arguments).stdout(full).stderr(Stdio::piped());
        let output = ended(command.spawn().expect("the command runs"));
        assert_eq!(output.status.code(), Some(73), "{arguments:?}: {output:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("can't write the output"), "{error}");
    }
}

#[test]
fn codes_say_what_is_wrong() {
    let broker = Operated::start();
    let no_vhost = broker.refused(65, &["set_permissions", "-p", "no", "guest", "", "", ""]);
    assert!(no_vhost.contains("Virtual host 'no' does not exist"), "{no_vhost}");
    let no_user = broker.refused(67, &["set_permissions", "stranger", "", "", ""]);
    assert!(no_user.contains("User \"stranger\" does not exist"), "{no_user}");
    broker.refused(67, &["list_user_permissions", "stranger"]);
    broker.refused(67, &["list_user_limits", "stranger"]);
    broker.refused(67, &["check_access", "stranger", "read", "queue", "orders"]);
    broker.refused(64, &["check_access", "guest", "reed", "queue", "orders"]);
    broker.refused(64, &["check_access", "guest", "read", "que", "orders"]);
    broker.refused(65, &["add_vhost", "v", "--default-queue-type", "no"]);
    broker.refused(65, &["set_vhost_limits", "[]"]);
    for number in ["x", "0"] {
        broker.refused(64, &["audit_log", "--number", number]);
        broker.refused(64, &["log_tail", "--number", number]);
    }
}

#[test]
fn options_of_other_actions_are_not_ignored() {
    let broker = Operated::start();
    for arguments in [
        &["cluster", "status", "--group", "2"][..],
        &["cluster", "remove", "a", "--group", "2"],
        &["cluster", "transfer-leader", "a", "--pause-ms", "5"],
    ] {
        let error = broker.refused(64, arguments);
        assert!(error.contains("has no --"), "{error}");
    }
    broker.refused(64, &["add_vhost", "v", "--group", "x"]);
}
