//! Policies with patterns that take long: a look at what they would change keeps no others waiting.

use crate::direct::{Asked, Direct};
use crate::policy_turns::{OF_USER, add_makers, send, until};
use courser_broker::admin::NewQueue;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

const PREVIEW: &str = "/api/policy-preview/%2F";
/// Previews of one user that have begun.
const PREVIEWS_OF_USER: usize = 32;

/// A policy whose pattern takes some milliseconds for each of the names in [`with_long_names`].
fn costly() -> String {
    let pattern = "^[0-9]{4}(?:a*b?){600}[^a-z]";
    format!(r#"{{"pattern":"{pattern}","definition":{{"expires":1000}}}}"#)
}

fn long_name(nth: usize) -> String {
    format!("{nth:04}{}", "ab".repeat(123))
}

/// A broker with queues whose names have 250 bytes.
fn with_long_names() -> Direct {
    let direct = Direct::new();
    for nth in 0..2000 {
        let queue = NewQueue { durable: false, ..NewQueue::default() };
        direct.broker.admin().declare_queue("/", &long_name(nth), queue).expect("a queue");
    }
    direct
}

#[tokio::test]
async fn a_preview_whose_patterns_take_too_long_is_given_up() {
    let direct = with_long_names();
    add_makers(&direct, &["maker"]);
    let policy = costly();
    let asked = Asked { body: &policy, ..Asked::new("POST", PREVIEW).by("maker") };
    let refused = direct.ask(asked).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let reason = refused.json()["reason"].as_str().unwrap_or_default().to_owned();
    let said =
        "the patterns of the policies take too long to be matched with all names: after 5 s, ";
    let (looked_at, all) = reason
        .strip_prefix(said)
        .and_then(|rest| rest.strip_suffix(" queues and exchanges")?.split_once(" of "))
        .unwrap_or_else(|| panic!("{reason}"));
    let (looked_at, all): (usize, usize) =
        (looked_at.parse().expect("a number"), all.parse().expect("a number"));
    assert!(looked_at < all && all > 2000, "{reason}");
}

#[tokio::test]
async fn previews_of_costly_patterns_leave_places_to_others_and_end_with_their_clients() {
    let direct = Arc::new(with_long_names());
    let makers = ["one", "two"];
    add_makers(&direct, &makers);
    direct.add_user("root", "administrator");
    let previewing: Vec<JoinHandle<()>> = (0..2 * OF_USER)
        .map(|nth| {
            let (direct, maker) = (Arc::clone(&direct), makers[nth % 2]);
            tokio::spawn(async move {
                let policy = costly();
                let asked = Asked { body: &policy, ..Asked::new("POST", PREVIEW).by(maker) };
                direct.ask(asked).await;
            })
        })
        .collect();
    // Long enough that all have come.
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(direct.ask(Asked::new("GET", "/api/overview").by("root")).await.status, 200);
    }
    assert!(previewing.iter().all(|one| !one.is_finished()), "the overview waited for a preview");
    previewing.iter().for_each(JoinHandle::abort);
    // Other work that is done in portions has its turn, behind those that are being made.
    let path = format!("/api/queues/%2F/{}/messages", long_name(0));
    assert_eq!(direct.ask(Asked::new("GET", &path).by("one")).await.status, 200);
}

#[tokio::test]
async fn what_previews_of_one_user_keep_counts_and_is_bounded() {
    let direct = with_long_names();
    add_makers(&direct, &["maker"]);
    let policy = costly();
    let asked = Asked { body: &policy, ..Asked::new("POST", PREVIEW).by("maker") };
    let mut previewing = vec![send(&direct, asked).await];
    let kept = || direct.broker.admin().memory_uses().answers;
    until(|| kept() > 0).await;
    let each = kept();
    for _ in 1..PREVIEWS_OF_USER + OF_USER {
        previewing.push(send(&direct, asked).await);
    }
    until(|| kept() >= PREVIEWS_OF_USER as u64 * each).await;
    // Long enough that more would have begun.
    for _ in 0..400 {
        assert!(kept() <= PREVIEWS_OF_USER as u64 * each, "{} of {each}", kept());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(previewing);
    until(|| kept() == 0).await;
}
