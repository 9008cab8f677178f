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

#[test]
fn a_vhost_is_where_home_says_though_what_comes_behind_that_fails() {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    let home = Broker::new(store, gauge, Limits::default(), 7).admin();
    home.change_vhost(V, |_| {}).expect("a vhost");
    let known = home.vhost_handle(V).expect("it is there");
    let (here, there) = (GroupNumber::HOME, GroupNumber(1));
    assert!(!is_said_to_be_in(&home, &known, there));
    home.set_vhost_group(&known, there.0).expect("it is said");
    assert!(is_said_to_be_in(&home, &known, there));
    assert!(!is_said_to_be_in(&home, &known, here));
    // Another one of its name is not what was moved.
    home.delete_vhost(V).expect("it is gone");
    home.change_vhost(V, |_| {}).expect("a vhost");
    let other = home.vhost_handle(V).expect("it is there");
    home.set_vhost_group(&other, 2).expect("it is said");
    assert!(!is_said_to_be_in(&home, &known, GroupNumber(2)));
}
