//! The `courser` command: its arguments, and what it says when it can't start.

use crate::support::Process;
use courser::TEMPLATE;
use std::net::TcpListener;
use std::process::Output;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn failed(output: &Output) -> String {
    assert!(!output.status.success());
    assert_eq!(text(&output.stdout), "");
    text(&output.stderr)
}

#[test]
fn version_and_help_are_told() {
    let version = Process::run(&["--version"]);
    assert!(version.status.success());
    assert_eq!(text(&version.stdout), format!("courser {}\n", courser::VERSION));
    let help = Process::run(&["--help"]);
    assert!(help.status.success());
    let help = text(&help.stdout);
    for option in ["--config", "--generate-config", "--data-dir", "--listen", "--version"] {
        assert!(help.contains(option), "{option}");
    }
    assert!(help.contains("COURSER_<SECTION>_<KEY>"));
}

#[test]
fn the_help_of_a_list_names_the_columns_that_there_are() {
    let help = Process::run(&["ctl", "list_exchanges", "--help"]);
    assert!(help.status.success());
    let help = text(&help.stdout);
    assert!(help.contains("[default: name type]"), "{help}");
    assert!(help.contains("Columns: name, type, durable, "), "{help}");
    assert!(help.contains("courser ctl list_exchanges name type durable"), "{help}");
}

#[test]
fn bad_arguments_are_refused() {
    for arguments in [
        &["--nonsense"][..],
        &["--listen", "nowhere"],
        &["--listen"],
        &["--config", "a", "--generate-config", "b"],
        &["something"],
    ] {
        let output = Process::run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(failed(&output).contains("--help"), "{arguments:?}");
    }
}

#[test]
fn an_address_that_is_none_is_answered_with_one() {
    for address in ["5673", ":5673", "localhost:5673", "127.0.0.1"] {
        let error = failed(&Process::run(&["--listen", address]));
        assert!(error.contains("such as 127.0.0.1:5672"), "{error}");
    }
}

#[test]
fn a_generated_configuration_is_the_template_and_never_overwrites() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new.yaml");
    let path = path.to_str().expect("text");
    let written = Process::run(&["--generate-config", path]);
    assert!(written.status.success());
    assert_eq!(std::fs::read_to_string(path).expect("a file"), TEMPLATE);
    std::fs::write(path, "mine").expect("a file");
    let error = failed(&Process::run(&["--generate-config", path]));
    assert!(error.contains(path), "{error}");
    assert_eq!(std::fs::read_to_string(path).expect("a file"), "mine");
}

#[test]
fn the_configuration_can_go_to_standard_output() {
    let written = Process::run(&["--generate-config", "-"]);
    assert!(written.status.success());
    assert_eq!(text(&written.stdout), TEMPLATE);
}

#[test]
fn a_broker_starts_with_a_generated_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("courser.yaml");
    let written = Process::run(&["--generate-config", path.to_str().expect("text")]);
    assert!(written.status.success());
    let mut command = Process::command();
    command.arg("--config").arg(&path).current_dir(folder.path());
    command.args(["--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"]);
    let broker = Process::start_with(command);
    assert_eq!(broker.banner.matches("amqp://127.0.0.1:").count(), 2, "{}", broker.banner);
    assert!(folder.path().join("courser-data").is_dir(), "data is where the file says");
}

#[test]
fn the_environment_of_the_process_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Process::command();
    command.current_dir(folder.path());
    command.env("COURSER_LISTEN", "127.0.0.1:0").env("COURSER_DATA_DIR", "here");
    drop(Process::start_with(command));
    assert!(folder.path().join("here").is_dir());
    let mut command = Process::command();
    let output = command.env("COURSER_AMQP_HEARTBEAT_S", "x").output().expect("it runs");
    assert!(failed(&output).starts_with("courser: COURSER_AMQP_HEARTBEAT_S: "));
}

#[test]
fn a_low_limit_of_open_files_is_raised_as_far_as_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -Sn 64 && exec \"$0\" --listen 127.0.0.1:0"]);
    command.arg(Process::command().get_program()).current_dir(folder.path());
    command.env("COURSER_MANAGEMENT_LISTEN", "none").env("COURSER_METRICS_LISTEN", "none");
    let broker = Process::start_with(command);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", broker.id()));
    let limits = limits.expect("a running process");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
    let values: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(values[0], values[1], "soft and hard limit");
}

#[test]
fn the_banner_says_where_it_listens_and_what_to_try_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let broker = Process::start(&folder);
    let address = broker.address.to_string();
    for expected in [courser::VERSION, &address, "guest", "Try ", "Stop "] {
        assert!(broker.banner.contains(expected), "{expected} in {}", broker.banner);
    }
}

#[test]
fn a_broker_without_users_says_how_to_make_one_and_needs_no_login_for_that() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut broker = Process::start(&folder);
    let data = folder.path().join("data");
    let data = data.to_str().expect("text");
    let ctl = |arguments: &[&str]| {
        let output = Process::run(&[&["ctl", "--data-dir", data], arguments].concat());
        assert!(output.status.success(), "{output:?}");
    };
    ctl(&["delete_user", "guest"]);
    broker.signal("TERM");
    assert!(broker.wait().success());
    let broker = Process::start(&folder);
    let expected = "  User        none of the broker's own: 'courser ctl add_user' makes one";
    assert!(broker.banner.contains(expected), "{}", broker.banner);
    ctl(&["add_user", "ops", "a long password"]);
}

#[test]
fn a_mistake_in_the_configuration_is_told_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bad.yaml");
    std::fs::write(&path, "amqp:\n  hartbeat_s: 7\n").expect("a file");
    let error = failed(&Process::run(&["--config", path.to_str().expect("text")]));
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("bad.yaml") && error.contains("heartbeat_s"), "{error}");
}

#[test]
fn a_bad_log_level_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Process::command();
    command.current_dir(folder.path()).env("COURSER_LOG_LEVEL", "=!");
    let error = failed(&command.output().expect("it runs"));
    assert!(error.contains("log.level"), "{error}");
}

#[test]
fn a_second_broker_on_the_same_data_folder_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Process::start(&folder);
    let data = folder.path().join("data");
    let data = data.to_str().expect("text");
    // That its address is in use as well comes of that.
    for address in ["127.0.0.1:0", &first.address.to_string()] {
        let second = Process::run(&["--listen", address, "--data-dir", data]);
        let error = failed(&second);
        assert!(error.contains(data) && error.contains("in use by another broker"), "{error}");
    }
    drop(first);
    drop(Process::start(&folder));
}

#[test]
fn a_port_in_use_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("an address").to_string();
    let data = folder.path().join("data");
    let data = data.to_str().expect("text");
    let error = failed(&Process::run(&["--listen", &address, "--data-dir", data]));
    assert!(error.contains(&address) && error.contains("Choose another port"), "{error}");
}

#[test]
fn an_unusable_data_folder_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let path = file.to_str().expect("text");
    let error = failed(&Process::run(&["--listen", "127.0.0.1:0", "--data-dir", path]));
    assert!(error.contains(path), "{error}");
}

#[test]
fn completions_know_the_options_in_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = Process::run(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        assert!(text(&output.stdout).contains("generate-config"), "{shell}");
    }
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("text");
    assert!(Process::run(&["man", path]).status.success());
    for (page, about) in [("courser.1", "data\\-dir"), ("courser-journal-repair.1", "Repair")] {
        let page = std::fs::read_to_string(folder.path().join(page)).expect("a page");
        assert!(page.contains(about), "{page}");
    }
    let missing = folder.path().join("missing");
    let error = failed(&Process::run(&["man", missing.to_str().expect("text")]));
    assert!(error.contains("manual's pages") && error.contains("missing"), "{error}");
}
