//! Groups that take their time.

use super::support::World;
use crate::support::until_of;
use courser_broker::admin::NewQueue;
use courser_codec::FieldTable;
use courser_management::{HOME, RelayStream};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, copy};
use tokio::task::JoinSet;

/// A connection to a group that answers so much later.
pub fn by(time: Duration, group: DuplexStream) -> RelayStream {
    let (ours, theirs) = tokio::io::duplex(16 << 10);
    let ((mut asked, mut asks), (mut answered, mut answers)) =
        (tokio::io::split(theirs), tokio::io::split(group));
    tokio::spawn(async move {
        let _ = copy(&mut asked, &mut answers).await;
        let _ = answers.shutdown().await;
    });
    tokio::spawn(async move {
        let mut piece = vec![0; 16 << 10];
        while let Ok(length @ 1..) = answered.read(&mut piece).await {
            tokio::time::sleep(time).await;
            if asks.write_all(&piece[..length]).await.is_err() {
                return;
            }
        }
        let _ = asks.shutdown().await;
    });
    Box::new(ours)
}

// No time passes but for what waits for the group.
#[tokio::test(start_paused = true)]
async fn what_takes_a_group_long_is_waited_for_as_at_home() {
    let world = World::start().await;
    world.known.late_s.store(45, Ordering::Relaxed);
    let moved = json!({ "to": { "exchange": "amq.fanout" } }).to_string();
    let done = world.home("PUT", "/api/queues/b/q", "{}").await;
    assert_eq!(done.status, 201, "{done:?}");
    // A group closes a connection that seems to be unused for so long.
    world.lose(HOME).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let done = world.home("POST", "/api/queues/b/q/move", &moved).await;
    assert_eq!(done.status, 200, "{done:?}");
    let definitions = json!({ "queues": [{ "name": "other", "vhost": "b", "durable": true }] });
    world.lose(HOME).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (headers, body) = ([("content-type", "application/json")], definitions.to_string());
    let importing = world.call(&world.home, "POST", "/api/definitions", "guest", &headers, &body);
    let done = importing.await;
    assert_eq!(done.status, 204, "{done:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_of_another_group_that_is_taken_too_slowly_does_not_end_as_if_it_were_whole() {
    let world = World::start().await;
    let group = world.group_of("b").expect("it is there");
    assert_ne!(group, HOME);
    for nth in 0..3000 {
        let queue = NewQueue { durable: false, auto_delete: false, arguments: FieldTable::new() };
        let name = format!("{nth}-{}", "x".repeat(200));
        world.admin_of(group).declare_queue("b", &name, queue).expect("a queue");
    }
    let mut list = world.follow("/api/queues/b", "guest").await;
    // The connection goes on, but no piece is taken in the time that it has.
    for _ in 0..10 {
        list.read_exact(&mut [0; 1000]).await.expect("it goes on");
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    let mut rest = Vec::new();
    // The end is an error or none.
    let _ = list.read_to_end(&mut rest).await;
    assert!(!rest.is_empty() && !rest.ends_with(b"0\r\n\r\n"));
}

// Likewise.
#[tokio::test(start_paused = true)]
async fn a_list_that_waits_for_its_place_keeps_no_vhost_in_its_group() {
    const LATE: Duration = Duration::from_secs(5);
    let world = Arc::new(World::start().await);
    world.known.late_s.store(LATE.as_secs(), Ordering::Relaxed);
    let mut asked = JoinSet::new();
    // More than there are places for. A trial keeps no vhost in its group.
    for nth in 0..50 {
        let world = Arc::clone(&world);
        asked.spawn(async move {
            let json = [("content-type", "application/json")];
            let trial = "/api/definitions?dry_run=true";
            match nth {
                0..40 => world.call(&world.home, "POST", trial, "guest", &json, "{}").await.status,
                40..45 => world.home("GET", "/api/queues", "").await.status,
                _ => world.home("GET", "/api/overview", "").await.status,
            }
        });
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(LATE / 5).await;
    assert!(asked.try_join_next().is_none(), "all of them wait");
    assert!(world.known.changes.try_write().is_ok(), "no list is made yet");
    while let Some(status) = asked.join_next().await {
        assert_eq!(status.expect("no panic"), 200);
    }
}

#[tokio::test]
async fn a_large_answer_of_another_group_ends_with_the_right_of_who_asks() {
    let world = World::start().await;
    let group = world.group_of("b").expect("it is there");
    assert_ne!(group, HOME);
    for nth in 0..10_000 {
        let queue = NewQueue { durable: true, auto_delete: false, arguments: FieldTable::new() };
        let name = format!("{nth}-{}", "x".repeat(200));
        world.admin_of(group).declare_queue("b", &name, queue).expect("a queue");
    }
    let mut answer = world.follow("/api/definitions/b", "guest").await;
    let head = until_of(&mut answer, "\r\n\r\n").await.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.expect("it is made already").parse().expect("a number");
    world.admin_of(HOME).delete_user("guest").expect("it is there");
    let mut rest = Vec::new();
    // The end is an error or none.
    let _ = answer.read_to_end(&mut rest).await;
    assert!(rest.len() < length / 2, "{} of {length}", rest.len());
}

// Likewise.
#[tokio::test(start_paused = true)]
async fn an_answer_of_all_groups_counts_until_its_client_has_it_and_ends_if_that_takes_it_too_slowly()
 {
    const PART: usize = 60_000;
    const BYTES: usize = 100 * PART;
    let world = World::start().await;
    for nth in 0..BYTES / PART {
        let (path, value) = (format!("/api/global-parameters/{nth}"), "x".repeat(PART));
        let put = world.home("PUT", &path, &json!({ "value": value }).to_string()).await;
        assert_eq!(put.status, 201, "{put:?}");
    }
    let mut client = world.follow("/api/definitions", "guest").await;
    let (mut some, mut taken) = (vec![0; 100_000], 0);
    let counted = || world.admin_of(HOME).memory_uses().answers;
    // Always something before the connection counts as stalled.
    for nth in 0..60 {
        if client.read_exact(&mut some).await.is_err() {
            break;
        }
        taken += some.len();
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(nth > 0 || counted() >= BYTES as u64, "{}", counted());
    }
    let mut rest = Vec::new();
    // The end is an error or none.
    let _ = client.read_to_end(&mut rest).await;
    let taken = taken + rest.len();
    assert!((BYTES / 2..BYTES).contains(&taken), "{taken}");
    assert_eq!(counted(), 0);
}
