//! What an operator, or a node, is told of members that are just added or removed.

use super::super::super::testing::start_alone;
use super::*;
use courser_cluster::forming::Folder;
use courser_journal::RealDisk;

/// The group of another node, whose consensus hears of nothing until it is put back.
type Deaf = (Arc<Group>, Option<Arc<Member>>);

/// Has all nodes but one hear of nothing in home.
fn deafen_all_but(three: &Three, one: usize) -> Vec<Deaf> {
    let others = (0..3).filter(|node| *node != one);
    let home = |node: usize| Arc::clone(three.nodes[node].inner.groups.home());
    others.map(home).map(|group| (Arc::clone(&group), group.set_member(None))).collect()
}

fn undo(deaf: Vec<Deaf>) {
    for (group, member) in deaf {
        group.set_member(member);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_no_majority_has_added_is_not_said_to_be_added() {
    let three = Three::start().await;
    let home = three.leader(HOME).await;
    let fourth = Arc::new(Fourth { is_asked: AtomicBool::new(false), may: Semaphore::new(0) });
    let address = start_fourth(1, &fourth).await;
    let again = address.clone();
    let adding = ask(&three, home, move |it| it.add(&address));
    wait_until("it is asked", async || fourth.is_asked.load(Relaxed)).await;
    let deaf = deafen_all_but(&three, home);
    fourth.may.add_permits(1);
    let added = adding.await.expect("no panic");
    assert!(matches!(added, Err(ClusterError::Unavailable(_))), "{added:?}");
    undo(deaf);
    wait_until("it is added", async || {
        let (home, again) = (three.leader(HOME).await, again.clone());
        asked(&three, home, move |it| it.add(&again)).await.is_ok()
    })
    .await;
    wait_until("all know it", async || {
        let status = |node: &crate::Node| node.inner.members.status_of_member();
        three.nodes.iter().all(|node| status(node).is_some_and(|it| it.members.contains(NodeId(1))))
    })
    .await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn that_a_node_was_removed_is_said_by_a_leader_that_a_majority_follows() {
    let three = Three::start().await;
    let home = three.leader(HOME).await;
    let fourth = Arc::new(Fourth { is_asked: AtomicBool::new(false), may: Semaphore::new(1) });
    let address = start_fourth(1, &fourth).await;
    asked(&three, home, move |it| it.add(&address)).await.expect("added");
    let knows = |node: &crate::Node, is_member: bool| {
        let status = node.inner.members.status_of_member();
        let heard = status.filter(|status| status.members_index > 0);
        heard.is_some_and(|status| status.members.contains(NodeId(1)) == is_member)
    };
    wait_until("it is a member", async || knows(&three.nodes[home], true)).await;
    wait_until("it is removed", async || {
        // The members may just be changed otherwise.
        let _ = asked(&three, home, |it| it.remove("d")).await;
        three.nodes.iter().all(|node| knows(node, false))
    })
    .await;

    let gone = endpoint(NodeId(1), "d", "d:1").about();
    let question = serde_json::to_string(&Question::Removed { group: HOME, since: Some(0) });
    let question = question.expect("a question");
    let says_so = async |node: usize| {
        let answer = three.nodes[node].inner.members.answer(&gone, &question).await;
        answer.expect("an answer") == "removed"
    };
    wait_until("the leader alone says it", async || {
        let home = three.leader(HOME).await;
        let mut said = Vec::new();
        for node in 0..3 {
            said.push(says_so(node).await == (node == home));
        }
        said == [true; 3]
    })
    .await;
    // One that was added again meanwhile may be so by another leader.
    let home = three.leader(HOME).await;
    let deaf = deafen_all_but(&three, home);
    assert!(!says_so(home).await, "no majority follows it");
    undo(deaf);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_a_node_is_a_member_is_said_by_a_leader_that_a_majority_follows() {
    let three = Three::start().await;
    let asking = endpoint(NodeId(1), "d", "d:1").about();
    let question = serde_json::to_string(&Question::Member(NodeId(1))).expect("a question");
    let said = async |node: usize| three.nodes[node].inner.members.answer(&asking, &question).await;
    wait_until("the leader says it", async || {
        let home = three.leader(HOME).await;
        said(home).await == Ok("false".into())
    })
    .await;
    let home = three.leader(HOME).await;
    said((home + 1) % 3).await.expect_err("it follows");
    // Another leader may add it meanwhile.
    let deaf = deafen_all_but(&three, home);
    said(home).await.expect_err("no majority follows it");
    undo(deaf);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_a_copy_of_the_same_data_folder_is_not_added_and_both_are_named() {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let [image, copy] = folders.each_ref().map(|folder| folder.path().join("data"));
    for dir in [&image, &copy] {
        std::fs::create_dir(dir).expect("a folder");
    }
    // It was started once, and was in no cluster.
    drop(Folder::open(&image, Arc::new(RealDisk), "test", "image").expect("an empty folder"));
    std::fs::copy(image.join("cluster.json"), copy.join("cluster.json")).expect("it is there");
    let (a, b) = (start_alone(&folders[0], "a").await, start_alone(&folders[1], "b").await);
    for node in [&a, &b] {
        let home = node.inner.groups.home();
        wait_until("it serves", async || matches!(home.serves(), Serves::Here(_))).await;
    }
    let why = a.add(&b.address()).await.expect_err("it would be a member already");
    for node in [&a, &b] {
        assert!(why.contains(&format!("'{}' ({})", node.name(), node.address())), "{why}");
    }
    for node in [a, b] {
        node.stop().await.expect("a clean stop");
    }
}
