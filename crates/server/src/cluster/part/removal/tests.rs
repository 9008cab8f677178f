//! When a node that was left behind ends.

use super::*;

#[test]
fn a_node_ends_when_it_has_had_no_leader_for_a_while_also_if_it_had_one() {
    let start = Instant::now();
    let mut leaderless = Leaderless::since(start);
    let mut ends_at =
        |seconds, has_leader| leaderless.ends(start + Duration::from_secs(seconds), has_leader);
    assert!(!ends_at(0, false) && !ends_at(9, false), "it may be about to have one");
    assert!(!ends_at(10, true) && !ends_at(600, true));
    assert!(!ends_at(609, false), "the time counts without a break");
    assert!(ends_at(610, false));
}
