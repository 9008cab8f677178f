//! The worst day, step by step as `docs/cluster.md` has it: two of three nodes are lost with their disks.

mod nodes;

use crate::support::{ANOTHER_USER, Process, give_away, owners, wait_until};
use courser_client::Connection;
use courser_journal::replica::{Contents, EntryId, EntryKind, Replica, ReplicaError};
use courser_journal::{Options, RealDisk};
use nodes::{A, B, C, D, MESSAGES, Nodes, body, files, has, text, three_nodes};
use std::fs;
use std::path::Path;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn the_steps_for_the_worst_day_bring_a_cluster_back_with_what_one_node_has() {
    let mut nodes = three_nodes().await;
    // With the others it is a majority: nothing has to be lost.
    let before = files(&nodes.data(C));
    let refused = nodes.recover(C, &["--from-this-copy"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let why = text(&refused.stderr);
    assert!(why.contains("'a', 'b' and this node are 3 of 3 voting members"), "{why}");

    // The day: one folder is gone, and one comes back when nothing counts on it any more.
    [A, B].into_iter().for_each(|node| nodes.end(node, "KILL"));
    fs::remove_dir_all(nodes.data(B)).expect("removed");
    let kept = nodes.folder.path().join("a-of-before");
    fs::rename(nodes.data(A), &kept).expect("renamed");

    // Step 2 and 3.
    let data = nodes.data(C);
    let arguments = ["journal", "verify", "--data-dir", data.to_str().expect("text")];
    let verified = Process::run(&arguments);
    assert!(verified.status.success(), "{verified:?}");
    let asked = nodes.recover(C, &[]);
    assert!(asked.status.success(), "{asked:?}");
    let said = text(&asked.stdout);
    for part in
        ["voting members were", "group 0: the last entry is", "group 1:", "Nothing was changed"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(said.matches("no member answers").count(), 2, "{said}");
    assert_eq!(said.matches("last written to at 2").count(), 2, "{said}");
    assert!(files(&data) == before, "asking has changed something");

    // Steps 4 and 5.
    let recovered = nodes.recover(C, &["--from-this-copy"]);
    assert!(recovered.status.success(), "{recovered:?}");
    assert!(text(&recovered.stdout).contains("is node 'c' alone now"), "{recovered:?}");
    let again = nodes.recover(C, &["--from-this-copy"]);
    assert!(text(&again.stderr).contains("the only member"), "{again:?}");
    nodes.start(C);
    let in_use = nodes.recover(C, &[]);
    assert!(text(&in_use.stderr).contains("in use"), "{in_use:?}");
    nodes.consume(C, 0..MESSAGES / 2).await;
    nodes.publish(C, MESSAGES).await;
    wait_until("a leader of the group", async || {
        nodes.ctl(C, &["cluster", "status"]).contains("group 1\tleader c")
    })
    .await;
    let status = nodes.ctl(C, &["cluster", "status"]);
    assert!(!status.contains("\na\t") && !status.contains("\nb\t"), "{status}");

    // Step 6.
    nodes.start(D);
    let address = nodes.addresses[D].to_string();
    wait_until("the new node is added", async || {
        nodes.ctl(C, &["cluster", "add", &address]);
        nodes.ctl(C, &["cluster", "status"]).contains("\nd\tfollower")
    })
    .await;
    wait_until("it has all", async || {
        has(&nodes.data(D).join("group"), &body(2 * MESSAGES - 1))
            && nodes.data(D).join("group-1/replica").exists()
    })
    .await;

    // One of before has no part in it.
    fs::rename(&kept, nodes.data(A)).expect("renamed");
    nodes.start(A);
    let status = nodes.running[A].as_mut().expect("a node").wait();
    assert_eq!(status.code(), Some(1));
    let log = fs::read_to_string(nodes.log(A)).expect("readable");
    assert!(log.contains("cluster 'prod' was recovered without node 'a'"), "{log}");
    nodes.running[A] = None;

    nodes.consume(D, MESSAGES / 2..2 * MESSAGES).await;
    nodes.end(D, "TERM");
    nodes.end(C, "TERM");
}

#[tokio::test(flavor = "multi_thread")]
async fn root_recovers_a_folder_as_the_user_that_owns_it() {
    if !rustix::process::geteuid().is_root() {
        // No other user can give a folder away.
        return;
    }
    let mut nodes = three_nodes().await;
    [A, B].into_iter().for_each(|node| nodes.end(node, "KILL"));
    give_away(nodes.folder.path());
    let recovered = nodes.recover(C, &["--from-this-copy"]);
    assert!(recovered.status.success(), "{recovered:?}");
    assert_eq!(owners(&nodes.data(C)), [ANOTHER_USER].into());
}

/// Recovers a node that was lost before it had kept that it has the group which home's log names.
async fn recover_without_its_group(has_copy: bool) {
    let mut nodes = three_nodes().await;
    [A, B].into_iter().for_each(|node| nodes.end(node, "KILL"));
    let file = nodes.data(C).join("cluster.json");
    let kept = fs::read_to_string(&file).expect("readable");
    let mut kept: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    kept.as_object_mut().expect("an object").remove("groups");
    fs::write(&file, kept.to_string()).expect("written");
    if !has_copy {
        fs::remove_dir_all(nodes.data(C).join("group-1")).expect("removed");
    }
    let recovered = nodes.recover(C, &["--from-this-copy"]);
    assert!(recovered.status.success(), "{recovered:?}");
    nodes.start(C);
    nodes.consume(C, 0..MESSAGES).await;
    wait_until("a leader of the group", async || {
        nodes.ctl(C, &["cluster", "status"]).contains("group 1\tleader c")
    })
    .await;
    nodes.end(C, "TERM");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_the_node_had_only_just_made_is_recovered() {
    recover_without_its_group(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_of_which_the_node_had_no_copy_begins_anew_with_that_node() {
    recover_without_its_group(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_whose_copy_can_not_be_used_is_left_out_when_that_is_asked_for() {
    let mut nodes = three_nodes().await;
    [A, B].into_iter().for_each(|node| nodes.end(node, "KILL"));
    let data = nodes.data(C);
    fs::write(data.join("group-1/being-installed"), "").expect("written");
    for (arguments, why) in [
        (&["--from-this-copy"][..], "'--from-this-copy --without-group 1'"),
        (&["--from-this-copy", "--without-group", "0"], "it says who the users are"),
        (&["--from-this-copy", "--without-group", "2"], "this node has no copy of it"),
        (&["--without-group", "1"], "--from-this-copy"),
    ] {
        let refused = nodes.recover(C, arguments);
        assert!(text(&refused.stderr).contains(why) && !refused.status.success(), "{refused:?}");
    }
    let recovered = nodes.recover(C, &["--from-this-copy", "--without-group", "1"]);
    assert!(recovered.status.success(), "{recovered:?}");
    assert!(text(&recovered.stdout).contains("group 1 is left out"), "{recovered:?}");
    assert!(data.join("group-1-before-recovery-1/replica").exists());
    nodes.start(C);
    nodes.consume(C, 0..MESSAGES).await;
    wait_until("a leader of the group", async || {
        nodes.ctl(C, &["cluster", "status"]).contains("group 1\tleader c")
    })
    .await;
    let added = nodes.ctl(C, &["add_vhost", "orders", "--group", "1"]);
    nodes.ctl(C, &["set_permissions", "-p", "orders", "guest", ".*", ".*", ".*"]);
    nodes.channel(C, "orders").await;
    nodes.end(C, "TERM");
    assert!(!added.contains("rror"), "{added}");
}

/// Stops a copy in a cut.
fn begin_cut(dir: &Path) {
    let options = Options { segment_bytes: 1 << 20, threads: false, ..Options::default() };
    let replica = Replica::open(dir, options, Arc::new(RealDisk), Arc::new(())).expect("a copy");
    let EntryId { term, index } = replica.last();
    let next = EntryId { term, index: index + 1 };
    replica.place_note(next, EntryKind::Start, &[]).expect("there is room");
    replica.save_vote(&replica.vote()).expect("nothing fails");
    // It is open, and can't be opened again by its name.
    let logs = files(dir).into_iter().map(|(path, _)| path);
    let log = logs.filter(|path| !path.ends_with("replica")).max().expect("a segment");
    let away = dir.join("away");
    fs::rename(&log, &away).expect("renamed");
    replica.cut(index).expect_err("the log is away");
    drop(replica);
    fs::rename(&away, &log).expect("renamed");
    let found = Contents::read(dir, Arc::new(RealDisk));
    assert!(matches!(found, Err(ReplicaError::CutBegun(_))), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_lost_in_a_cut_says_what_it_has() {
    let mut nodes = three_nodes().await;
    [A, B].into_iter().for_each(|node| nodes.end(node, "KILL"));
    begin_cut(&nodes.data(C).join("group-1"));
    let asked = nodes.recover(C, &[]);
    assert!(asked.status.success(), "{asked:?}");
    let said = text(&asked.stdout);
    assert!(said.contains("group 1: the end of its log was being cut off"), "{said}");
    assert!(said.contains("group 1: the last entry is"), "{said}");
    assert!(said.contains("Nothing else was changed"), "{said}");
    let again = nodes.recover(C, &[]);
    assert!(text(&again.stdout).contains("Nothing was changed"), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_was_ahead_of_home_loses_no_vhost_and_follows_home_again() {
    let mut nodes = three_nodes().await;
    let (home, before) = (nodes.data(C).join("group"), nodes.data(C).join("home-of-before"));
    fs::create_dir(&before).expect("made");
    let copy_files = |from: &Path, to: &Path| {
        for entry in fs::read_dir(from).expect("a folder") {
            let path = entry.expect("an entry").path();
            fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
        }
    };
    copy_files(&home, &before);
    nodes.start(C);
    let padding = format!("\"{}\"", "x".repeat(60_000));
    let allow = |nodes: &Nodes, node, user| {
        nodes.ctl(node, &["set_permissions", "-p", "orders", user, ".*", ".*", ".*"])
    };
    nodes.ctl(A, &["set_global_parameter", "padding", &padding]);
    nodes.ctl(A, &["add_vhost", "orders", "--group", "1"]);
    nodes.ctl(A, &["add_user", "late", "a password"]);
    allow(&nodes, A, "late");
    allow(&nodes, A, "guest");
    nodes.publish_in(A, "orders", 1000).await;
    let last = body(1000 + MESSAGES - 1);
    wait_until("a copy", async || has(&nodes.data(C).join("group-1"), &last)).await;
    [A, B].into_iter().for_each(|node| nodes.end(node, "KILL"));
    nodes.end(C, "TERM");
    fs::remove_dir_all(&home).expect("removed");
    fs::rename(&before, &home).expect("renamed");

    let recovered = nodes.recover(C, &["--from-this-copy"]);
    assert!(recovered.status.success(), "{recovered:?}");
    nodes.start(C);
    let said = "the group has a vhost that home does not know";
    wait_until("what home has lost is told", async || {
        fs::read_to_string(nodes.log(C)).is_ok_and(|log| log.contains(said))
    })
    .await;
    let unknown = Connection::open(&nodes.url(C, "guest:guest", "orders")).await;
    assert!(unknown.is_err(), "no client gets into it");
    nodes.ctl(C, &["add_vhost", "orders", "--group", "1"]);
    allow(&nodes, C, "guest");
    nodes.consume_in(C, "orders", 1000..1000 + MESSAGES).await;
    let late = Connection::open(&nodes.url(C, "late:a%20password", "orders")).await;
    assert!(late.is_err(), "home does not know this user");
    nodes.end(C, "TERM");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_majority_of_before_goes_on_and_one_of_before_that_is_alone_ends() {
    let mut nodes = three_nodes().await;
    [A, B].into_iter().for_each(|node| nodes.end(node, "KILL"));
    let recovered = nodes.recover(C, &["--from-this-copy"]);
    assert!(recovered.status.success(), "{recovered:?}");
    // The recovery was a mistake: the others come back, one after the other.
    [C, A, B].into_iter().for_each(|node| nodes.start(node));
    wait_until("the others have a leader", async || {
        for node in [A, B] {
            // On a busy machine the other one may come too late.
            if nodes.running[node].as_mut().is_some_and(Process::has_ended) {
                nodes.start(node);
            }
        }
        let status = nodes.ctl(A, &["cluster", "status"]);
        status.contains("leader a") || status.contains("leader b")
    })
    .await;
    nodes.publish(A, MESSAGES).await;
    nodes.end(B, "KILL");
    let status = nodes.running[A].as_mut().expect("a node").wait();
    assert_eq!(status.code(), Some(1));
    let log = fs::read_to_string(nodes.log(A)).expect("readable");
    assert!(log.contains("cluster 'prod' was recovered without node 'a'"), "{log}");
    nodes.running[A] = None;
    nodes.end(C, "TERM");
}
