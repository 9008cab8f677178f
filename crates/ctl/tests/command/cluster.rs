//! Commands about the cluster that the broker is a node of.

use crate::support::{Server, ctl};

#[test]
fn a_recovery_is_said_to_be_a_command_of_a_node_that_is_stopped() {
    for arguments in [&["cluster", "recover"][..], &["cluster", "recover", "--from-this-copy"]] {
        // No broker is asked: none runs then.
        let failure = ctl(arguments).expect_err("it is not here");
        assert_eq!(failure.code, 69, "{failure}");
        assert!(failure.text.contains("'courser cluster recover'"), "{failure}");
    }
    let node = Server::start(|_, _| (200, "application/json", "{}"));
    let failure = node.ctl(&["cluster", "status", "--from-this-copy"]).expect_err("not for it");
    assert_eq!(failure.code, 64, "{failure}");
}

#[test]
fn a_removal_is_done_whether_all_that_are_left_vote_or_not() {
    let all_vote = Server::start(|_, _| (204, "", ""));
    all_vote.ctl(&["cluster", "remove", "c"]).expect("it is removed");
    let not_all = Server::start(|_, _| (200, "application/json", r#"{"not_voting":["d"]}"#));
    not_all.ctl(&["cluster", "remove", "c"]).expect("it is removed");
    assert_eq!(not_all.asked(), ["DELETE /api/cluster/nodes/c"]);
}
