//! Waiting for a broker whose process is known.

use crate::support::Server;
use courser_ctl::Failure;

fn wait_for(pid: &str) -> Result<(), Failure> {
    let broker = Server::start(|_, _| (200, "application/json", r#"{"status":"ok"}"#));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pid");
    std::fs::write(&file, format!("{pid}\n")).expect("a file");
    broker.ctl(&["wait", file.to_str().expect("text")])
}

#[test]
fn a_process_that_lives_is_waited_for() {
    // The first one is another user's, unless root tests.
    for pid in [std::process::id(), 1] {
        wait_for(&pid.to_string()).expect("it lives");
    }
}

#[test]
fn a_process_that_is_gone_is_told() {
    // Numbers that no process ever has. To signal 0 would be to signal those of this group.
    for pid in ["0", "2147483647", "4294967295"] {
        let failure = wait_for(pid).expect_err("it is gone");
        assert_eq!(failure.code, 69, "{failure}");
        assert!(failure.text.contains(&format!("process {pid} is not running")), "{failure}");
    }
}
