//! A vhost that has moved, in a group that has not heard of it yet.

use super::super::answers;
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_vhost_that_has_left_a_group_does_not_go_on_there_when_the_move_back_is_given_up() {
    let three = start().await;
    three.move_to(1).await;
    let group = |node: &Node| node.inner.groups.get(GroupNumber(1)).expect("it is there");
    let groups: Vec<_> = three.nodes.iter().map(group).collect();
    let mut late = Vec::new();
    for group in &groups {
        late.push(group.adopting.lock().await);
    }
    three.move_to(2).await;
    let number = three.home().await.next_number().expect("it leads");
    let left = three.admin(GroupNumber(1)).await;
    assert_eq!(left.still_vhosts(), [V], "the group has not heard that it has left");
    let admin = left.clone();
    let given_up = blocking(move || answers::give_up(&admin, (V, number), GroupNumber(1), false));
    given_up.await.expect("it leads");
    assert_eq!(left.still_vhosts(), [V]);
    drop(late);
    wait_until("it is removed", async || left.vhost(V).is_none_or(|view| view.group == 2)).await;
    three.move_to(1).await;
    let connection = three.connect(0).await;
    connection.close().await.expect("a good end");
    drop(left);
    three.stop().await;
}
