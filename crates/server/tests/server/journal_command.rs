//! `courser journal`: what it says of a data folder with more than one shard, and how it ends.

use crate::support::{
    ANOTHER_USER, Client, Process, free_addresses, give_away, owners, short, wait_until,
};
use courser_client::{Connection, Outgoing, QueueOptions};
use courser_codec::queue;
use rustix::process::geteuid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

const QUEUE: &str = "known-by-this-name";

/// A data folder with two journals that are the same.
async fn two_journals() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut broker = Process::start(&folder);
    let mut client = Client::connect(broker.address).await;
    let declare = queue::Declare { queue: short(QUEUE), durable: true, ..Default::default() };
    client.call(declare).await;
    client.close().await;
    broker.signal("TERM");
    assert!(broker.wait().success());
    let data = folder.path().join("data");
    fs::create_dir(data.join("journal-3")).expect("a new folder");
    for file in fs::read_dir(data.join("journal")).expect("a journal") {
        let file = file.expect("a file");
        let copy = data.join("journal-3").join(file.file_name());
        fs::copy(file.path(), copy).expect("a copy");
    }
    folder
}

fn journal(command: &str, data: &Path) -> (Output, String) {
    let output = Process::run(&["journal", command, "--data-dir", data.to_str().expect("text")]);
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    (output, text)
}

/// Damages the files of a journal wherever they name the queue.
fn damage(journal: &Path) {
    let mut found = 0;
    for file in fs::read_dir(journal).expect("a journal") {
        let path = file.expect("a file").path();
        let mut bytes = fs::read(&path).expect("readable");
        let places: Vec<usize> = (0..bytes.len().saturating_sub(QUEUE.len()))
            .filter(|at| bytes[*at..].starts_with(QUEUE.as_bytes()))
            .collect();
        found += places.len();
        places.into_iter().for_each(|at| bytes[at] ^= 1);
        fs::write(&path, bytes).expect("written");
    }
    assert!(found > 0, "nothing names the queue");
}

#[tokio::test]
async fn every_shard_is_looked_at_and_damage_in_one_fails_the_command() {
    let folder = two_journals().await;
    let data = folder.path().join("data");
    let (output, text) = journal("verify", &data);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text.matches("the journal is sound").count(), 2, "{text}");

    damage(&data.join("journal-3"));
    let (output, text) = journal("verify", &data);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let (home, other) = text.split_once("journal-3:\n").expect("a part of its own");
    assert!(home.contains("the journal is sound"), "{text}");
    assert!(!other.contains("the journal is sound"), "{text}");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert!(stderr.contains("courser journal repair"), "{stderr}");

    let (output, text) = journal("repair", &data);
    assert_eq!(output.status.code(), Some(1), "something is lost: {output:?}");
    assert!(text.contains("journal-3:\n"), "{text}");
    assert!(journal("verify", &data).0.status.success());
    assert!(journal("repair", &data).0.status.success(), "nothing more is lost");
    drop(Process::start(&folder));
}

#[tokio::test]
async fn root_repairs_a_folder_as_the_user_that_owns_it() {
    if !geteuid().is_root() {
        // No other user can give a folder away.
        return;
    }
    let folder = two_journals().await;
    let data = folder.path().join("data");
    damage(&data.join("journal-3"));
    give_away(folder.path());
    let (output, text) = journal("repair", &data);
    assert_eq!(output.status.code(), Some(1), "something is lost: {output:?}");
    assert!(text.contains("journal-3:\n"), "{text}");
    assert_eq!(owners(&data), [ANOTHER_USER].into());
}

#[tokio::test]
async fn a_journal_that_is_in_use_is_told_and_the_others_are_looked_at() {
    let folder = two_journals().await;
    let data = folder.path().join("data");
    let _broker = Process::start(&folder);
    let (output, text) = journal("verify", &data);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let (home, other) = text.split_once("journal-3:\n").expect("a part of its own");
    assert!(!home.contains("sound") && other.contains("the journal is sound"), "{text}");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert!(stderr.contains("in use"), "{stderr}");
}

/// A data folder of a cluster's only member, with messages in a queue, and a group besides home.
async fn members_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let mut command = Process::command();
    command.env("COURSER_LOG_LEVEL", "error").env("COURSER_CLUSTER_GROUPS", "2");
    command.args(["--listen", "127.0.0.1:0", "--cluster-name", "test", "--node-name", "a"]);
    command.args(["--cluster-listen", &free_addresses(1)[0].to_string(), "--data-dir"]).arg(&data);
    let mut node = Process::start_with(command);
    let connection = Connection::open(&format!("amqp://{}", node.address)).await;
    let channel = connection.expect("a connection").open_channel().await.expect("a channel");
    channel.queue_declare(QUEUE, QueueOptions::durable()).await.expect("a queue");
    channel.confirm_select().await.expect("confirms");
    for number in 0..3u8 {
        let body = format!("this is message {number}");
        let message = Outgoing::new(body.as_bytes()).persistent();
        let confirm = channel.publish("", QUEUE, message).await.expect("published");
        assert!(confirm.await.expect("a confirm").is_ack());
    }
    wait_until("the other group", async || data.join("group-1").join("replica").exists()).await;
    node.signal("TERM");
    assert!(node.wait().success());
    folder
}

/// What is in all files of a folder but its locks.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else if path.file_name() != Some("lock".as_ref()) {
            found.push((path.clone(), fs::read(&path).expect("readable")));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn the_copies_of_a_member_are_verified_and_never_changed() {
    let folder = members_folder().await;
    let data = folder.path().join("data");
    let before = contents(&data);
    let (output, text) = journal("verify", &data);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text.matches("the journal is sound").count(), 2, "{text}");
    let (output, text) = journal("inspect", &data);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text.matches("copy of the log of group").count(), 2, "{text}");
    let (output, text) = journal("repair", &data);
    assert!(output.status.success(), "there is nothing to repair: {output:?} {text}");
    assert!(contents(&data) == before, "something was changed");

    // One message, in the file of home's log.
    let log = before.iter().find_map(|(path, bytes)| {
        let body = b"this is message 1";
        let at = bytes.windows(body.len()).position(|window| window == body)?;
        Some((path.clone(), bytes.clone(), at))
    });
    let (path, mut bytes, at) = log.expect("the message");
    bytes[at] ^= 1;
    fs::write(&path, bytes).expect("written");
    let before = contents(&data);
    for command in ["verify", "repair"] {
        let (output, text) = journal(command, &data);
        assert_eq!(output.status.code(), Some(1), "{command}: {output:?}");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert!(stderr.contains("from another member"), "{command}: {stderr}");
        assert!(!stderr.contains("journal repair"), "{command}: {stderr}");
        let what = format!("queue '{QUEUE}' of vhost '/': 1 of 3 messages are lost");
        let is_told = text.contains(&what) || text.contains("must be rebuilt");
        assert!(is_told, "{command}: {text}");
    }
    assert!(contents(&data) == before, "something was changed");
}

#[test]
fn a_folder_without_a_journal_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    for data in [folder.path().to_owned(), folder.path().join("none")] {
        let (output, _) = journal("verify", &data);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert!(stderr.contains("there is no journal in"), "{stderr}");
    }
}
