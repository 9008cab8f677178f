//! `courser journal`: what it says of a data folder with more than one shard, and how it ends.

use crate::support::{Client, Process, short};
use courser_codec::queue;
use std::fs;
use std::path::Path;
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
