//! A group whose log is on one disk only.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_group_has_what_home_has_when_a_majority_of_its_disks_has_it() {
    let three = Three::start().await;
    let leader = three.leader(HOME).await;
    three.move_lead(ONE, leader).await;
    let home = three.admin(HOME).await;
    // As while they are brought copies of the log. The leader of the group does not know yet that it has no majority.
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    let groups = others.map(|node| three.nodes[node].inner.groups.get(ONE).expect("it is there"));
    let members = groups.each_ref().map(|group| group.set_member(None));
    put_user(&home, "u");
    let version = home.definitions_version();
    let has = three.front(leader).wait_for_version(ONE, version).await;
    assert!(has.is_err(), "the next leader of the group may not have it");
    for (group, member) in groups.iter().zip(members) {
        group.set_member(member);
    }
    spread(&three, version).await;
    assert!(three.admin(ONE).await.accounts().user("u").is_some());
    drop(home);
    three.stop().await;
}
