//! Which broker `courser ctl` asks, and what its probes say where nothing was tried.

use crate::support::operated::{Operated, Said, said};

#[test]
fn what_an_option_names_is_asked_whatever_the_environment_says() {
    let broker = Operated::start();
    let url = broker.url();
    let elsewhere = "http://127.0.0.1:1";
    let data = ["--data-dir", "data"];
    let by_context = ["--context", "here"];
    let add = ["context", "add", "here", "--data-dir", "data"];
    let added = said(broker.command().env("COURSER_CTL_URL", elsewhere).args(add));
    assert_eq!(added.out, "Added context here, which is the default now\n", "{added:?}");
    let by_url = ["--url", &url, "--user", "guest"];
    for (variable, value) in [("COURSER_CTL_URL", elsewhere), ("COURSER_CTL_CONTEXT", "nowhere")] {
        for named in [&data[..], &by_context, &by_url] {
            let mut command = broker.command();
            command.env(variable, value);
            if named[0] == "--url" {
                command.env("COURSER_CTL_PASSWORD", "guest");
            }
            let said = said(command.args(named).args(["-q", "list_vhosts"]));
            assert_eq!(said.out, "name\n/\n", "{variable} {named:?}: {said:?}");
        }
    }
    let two = broker.anywhere(&["--context", "here", "--data-dir", "data", "list_vhosts"]);
    assert!(two.code == Some(64) && two.error.contains("give one of them"), "{two:?}");
}

/// What a command says that only a login can make work.
fn asked_as(broker: &Operated, environment: &[(&str, &str)], arguments: &[&str]) -> Said {
    let mut command = broker.command();
    command.envs(environment.iter().copied()).args(arguments);
    said(command.args(["-q", "list_vhosts"]))
}

#[test]
fn the_login_of_a_context_that_is_an_option_counts_before_the_environment() {
    let broker = Operated::start();
    for user in ["ops", "other"] {
        broker.quiet(&["add_user", user, &format!("{user}-s3cret")]);
        broker.quiet(&["set_user_tags", user, "administrator"]);
    }
    let url = broker.url();
    let add = ["context", "add", "prod", "--url", &url, "--user", "ops", "--keep-password"];
    let added = said(broker.command().env("COURSER_CTL_PASSWORD", "ops-s3cret").args(add));
    assert_eq!(added.code, Some(0), "{added:?}");
    let wrong = [("COURSER_CTL_USER", "other"), ("COURSER_CTL_PASSWORD", "wrong")];
    let right = [("COURSER_CTL_USER", "ops"), ("COURSER_CTL_PASSWORD", "other-s3cret")];
    let named = asked_as(&broker, &wrong, &["--context", "prod"]);
    assert_eq!(named.out, "name\n/\n", "{named:?}");
    let by_default = asked_as(&broker, &wrong, &[]);
    assert_eq!(by_default.code, Some(77), "the environment counts: {by_default:?}");
    let by_user = asked_as(&broker, &right, &["--context", "prod", "--user", "other"]);
    assert_eq!(by_user.out, "name\n/\n", "the saved password is not the other's: {by_user:?}");
    let missing = asked_as(&broker, &[], &["--context", "prod", "--user", "other"]);
    assert!(missing.error.contains("the password of other is missing"), "{missing:?}");
}

#[test]
fn a_password_of_the_environment_is_not_sent_as_the_user_of_a_context() {
    let broker = Operated::start();
    for user in ["ops", "other"] {
        // Were it sent, it would be the right one.
        broker.quiet(&["add_user", user, "one-s3cret"]);
        broker.quiet(&["set_user_tags", user, "administrator"]);
    }
    let url = broker.url();
    let added = broker.anywhere(&["context", "add", "prod", "--url", &url, "--user", "ops"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let of_other = [("COURSER_CTL_USER", "other"), ("COURSER_CTL_PASSWORD", "one-s3cret")];
    let named = asked_as(&broker, &of_other, &["--context", "prod"]);
    assert!(named.error.contains("the password of ops is missing"), "{named:?}");
    for environment in [&of_other[1..], &[("COURSER_CTL_USER", "ops"), of_other[1]]] {
        let named = asked_as(&broker, environment, &["--context", "prod"]);
        assert_eq!(named.out, "name\n/\n", "{environment:?}: {named:?}");
    }
    for arguments in [&["--context", "prod", "--user", "ops"][..], &[]] {
        let sent = asked_as(&broker, &of_other, arguments);
        assert_eq!(sent.out, "name\n/\n", "{arguments:?}: {sent:?}");
    }
}

#[test]
fn a_mistake_in_the_contexts_file_shows_no_password() {
    let broker = Operated::start();
    let folder = broker.folder.path().join(".config/courser");
    std::fs::create_dir_all(&folder).expect("a folder");
    for (mistake, named) in
        [("pasword: s3cret", "pasword"), ("password: s3cret\n    port: 1", "port")]
    {
        let text = format!("contexts:\n  - name: a\n    url: http://b\n    {mistake}\n");
        std::fs::write(folder.join("contexts.yaml"), text).expect("written");
        let said = broker.anywhere(&["list_vhosts"]);
        assert!(said.code == Some(78) && said.error.contains(named), "{said:?}");
        assert!(!said.error.contains("s3cret"), "{said:?}");
    }
}

#[test]
fn ports_that_were_not_tried_are_no_success() {
    let broker = Operated::start();
    broker.quiet(&["add_user", "probe", "s3cret"]);
    broker.quiet(&["set_user_tags", "probe", "management"]);
    let url = broker.url();
    let probe = || {
        let mut command = broker.command();
        command.env("COURSER_CTL_PASSWORD", "s3cret").args(["--url", &url, "--user", "probe"]);
        said(command.arg("check_port_connectivity"))
    };
    let refused = probe();
    assert_eq!(refused.code, Some(77), "{refused:?}");
    assert!(refused.error.contains("the tag monitoring"), "{refused:?}");
    broker.quiet(&["set_user_tags", "probe", "monitoring"]);
    assert_eq!(probe().code, Some(0));
}

#[test]
fn the_status_of_a_cluster_has_the_alarms_in_effect() {
    let quiet = Operated::start();
    assert!(quiet.quiet(&["cluster_status"]).contains("Alarms\n\n(none)\n"));
    assert_eq!(quiet.json(&["cluster_status"])["alarms"], serde_json::json!([]));
    let full = Operated::start_with(|command| {
        command.env("COURSER_LIMITS_MEMORY_HIGH_BYTES", "1");
    });
    full.refused(69, &["check_alarms"]);
    assert!(full.quiet(&["cluster_status"]).contains("Memory alarm on node "));
    let alarms = full.json(&["cluster_status"])["alarms"].clone();
    assert_eq!(
        (&alarms[0]["type"], &alarms[0]["resource"]),
        (&"resource_limit".into(), &"memory".into())
    );
}

#[test]
fn a_socket_in_a_folder_of_another_user_is_used_only_if_it_is_named() {
    if !rustix::process::geteuid().is_root() {
        // No other user can give a folder away.
        return;
    }
    let broker = Operated::start();
    let usual = broker.folder.path().join("courser-data");
    std::os::unix::fs::symlink("data", &usual).expect("a link");
    let found = broker.anywhere(&["-q", "list_vhosts"]);
    assert_eq!((&*found.out, &*found.error), ("name\n/\n", ""));
    let data = broker.folder.path().join("data");
    std::os::unix::fs::chown(data, Some(12_345), None).expect("given away");
    let passed_over = broker.anywhere(&["-q", "list_vhosts"]);
    assert_eq!(passed_over.out, "", "{passed_over:?}");
    let why = "./courser-data belongs to another user and is left out";
    assert!(passed_over.error.contains(why), "{passed_over:?}");
    let named = broker.anywhere(&["-q", "--data-dir", "courser-data", "list_vhosts"]);
    assert_eq!((&*named.out, &*named.error), ("name\n/\n", ""));
}
