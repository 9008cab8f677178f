//! Definitions on their way to groups.

use super::super::super::testing::ONE;
use super::super::pieces::{Gathering, KEPT_TIMEOUT, NEXT_TIMEOUT, Pieces, Turn};
use super::put_user;
use courser_broker::admin::GroupDefinitions;
use courser_broker::{Broker, Limits};
use courser_cluster::GroupNumber;
use courser_store::{Lsn, MemoryGauge, MemoryStore};
use futures_util::FutureExt as _;
use std::future::pending;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

const PIECE_BYTES: usize = 1000;

/// The definitions of a broker with so many users.
fn definitions(group: GroupNumber, users: usize) -> GroupDefinitions {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    let broker = Broker::new(store, gauge, Limits::default(), 7);
    for nth in 0..users {
        put_user(&broker.admin(), &format!("u{nth}"));
    }
    broker.admin().definitions_of_group(group.0, Lsn(0)).expect("home has them")
}

/// Answers a question of a group that is to have all of these.
async fn first(
    pieces: &Pieces,
    group: GroupNumber,
    all: &GroupDefinitions,
) -> Result<String, String> {
    let mut asked = pieces.asked(group, Lsn(0));
    let turn = asked.unless_anew(async { Ok(pieces.turn().await) }).await?;
    pieces.first(asked, all, Some(turn))
}

/// Whether a turn can be had at once.
async fn now(pieces: &Pieces) -> Option<Turn> {
    timeout(NEXT_TIMEOUT / 2, pieces.turn()).await.ok()
}

#[tokio::test]
async fn definitions_that_fit_into_no_answer_come_in_pieces() {
    let all = definitions(ONE, 100);
    assert!(all.encode().len() > 5 * PIECE_BYTES);
    let (pieces, mut gathering) = (Pieces::of(PIECE_BYTES), Gathering::of(PIECE_BYTES));
    let mut asked = 0;
    let came = loop {
        asked += 1;
        let piece = match gathering.wants() {
            None => first(&pieces, ONE, &all).await.expect("a piece"),
            Some(part) => pieces.next(ONE, Lsn(0), part).expect("another piece"),
        };
        assert!(piece.len() <= PIECE_BYTES.div_ceil(3) * 4);
        if let ControlFlow::Break(came) = gathering.add(&piece).expect("a piece") {
            break came;
        }
    };
    assert!(came == Some(all) && asked > 5, "{asked} pieces");
    let nothing = Gathering::of(PIECE_BYTES).add("").expect("nothing new");
    assert_eq!(nothing, ControlFlow::Break(None));
}

#[tokio::test]
async fn definitions_of_exactly_so_many_bytes_as_a_piece_have_an_end() {
    let all = definitions(ONE, 3);
    let bytes = all.encode().len();
    let (pieces, mut gathering) = (Pieces::of(bytes), Gathering::of(bytes));
    let piece = first(&pieces, ONE, &all).await.expect("a piece");
    assert_eq!(gathering.add(&piece), Ok(ControlFlow::Continue(())));
    let part = gathering.wants().expect("there may be more");
    let rest = pieces.next(ONE, Lsn(0), part).expect("nothing more");
    assert_eq!(gathering.add(&rest), Ok(ControlFlow::Break(Some(all))));
}

#[tokio::test]
async fn pieces_of_two_versions_are_not_put_together() {
    let all = definitions(ONE, 100);
    let mut later = all.clone();
    later.version = all.version.plus(1);
    let (pieces, mut gathering) = (Pieces::of(PIECE_BYTES), Gathering::of(PIECE_BYTES));
    let added = gathering.add(&first(&pieces, ONE, &all).await.expect("a piece"));
    assert_eq!(added, Ok(ControlFlow::Continue(())));
    // The group asks anew meanwhile, as when another node leads it by now.
    first(&pieces, ONE, &later).await.expect("a piece");
    let refused = pieces.next(ONE, Lsn(0), gathering.wants().expect("there is more"));
    assert_eq!(refused, Err("the definitions have to be asked for from their beginning".into()));
}

#[tokio::test]
async fn pieces_of_one_version_since_two_are_not_put_together() {
    let all = definitions(ONE, 100);
    let (pieces, mut gathering) = (Pieces::of(PIECE_BYTES), Gathering::of(PIECE_BYTES));
    let added = gathering.add(&first(&pieces, ONE, &all).await.expect("a piece"));
    assert_eq!(added, Ok(ControlFlow::Continue(())));
    let part = gathering.wants().expect("there is more");
    // Another node leads the group by now, which has more of them.
    let (asked, turn) = (pieces.asked(ONE, Lsn(1)), pieces.turn().await);
    pieces.first(asked, &all, Some(turn)).expect("a piece");
    let refused = pieces.next(ONE, Lsn(0), part);
    assert_eq!(refused, Err("the definitions have to be asked for from their beginning".into()));
    assert!(pieces.next(ONE, Lsn(1), part).is_ok(), "that one goes on");
}

#[tokio::test(start_paused = true)]
async fn one_group_after_the_other_gets_definitions() {
    let pieces = Arc::new(Pieces::of(PIECE_BYTES));
    let (at_once, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut groups = JoinSet::new();
    for number in 1..=8 {
        let (pieces, at_once, most) =
            (Arc::clone(&pieces), Arc::clone(&at_once), Arc::clone(&most));
        groups.spawn(async move {
            let group = GroupNumber(number);
            let (asked, turn) = (pieces.asked(group, Lsn(0)), pieces.turn().await);
            most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let all = definitions(group, 30);
            let mut gathering = Gathering::of(PIECE_BYTES);
            let mut piece = pieces.first(asked, &all, Some(turn)).expect("a piece");
            let came = loop {
                match gathering.add(&piece).expect("a piece") {
                    ControlFlow::Break(came) => break came,
                    ControlFlow::Continue(()) => {}
                }
                // As long as it takes on its way.
                sleep(NEXT_TIMEOUT / 2).await;
                let part = gathering.wants().expect("there is more");
                if part.is_last_of(all.encode().len(), PIECE_BYTES) {
                    at_once.fetch_sub(1, Ordering::SeqCst);
                }
                piece = pieces.next(group, Lsn(0), part).expect("another piece");
            };
            assert!(came == Some(all));
        });
    }
    groups.join_all().await;
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_asks_for_the_rest_no_more_keeps_none_from_its_turn() {
    let pieces = Pieces::of(PIECE_BYTES);
    let all = definitions(ONE, 100);
    let mut gathering = Gathering::of(PIECE_BYTES);
    let added = gathering.add(&first(&pieces, ONE, &all).await.expect("a piece"));
    assert_eq!(added, Ok(ControlFlow::Continue(())));
    assert!(now(&pieces).await.is_none());
    // The same group has it at once.
    let again = timeout(NEXT_TIMEOUT / 2, first(&pieces, ONE, &all)).await.expect("its turn");
    again.expect("a piece");
    let since = Instant::now();
    let turn = timeout(NEXT_TIMEOUT * 3, pieces.turn()).await.expect("its turn");
    assert!(since.elapsed() >= NEXT_TIMEOUT, "it may still ask");
    let part = gathering.wants().expect("there is more");
    assert!(pieces.next(ONE, Lsn(0), part).is_err(), "nothing is kept for it");
    drop(turn);
}

#[tokio::test(start_paused = true)]
async fn what_a_group_asks_another_node_for_is_not_kept_although_none_waits() {
    let pieces = Pieces::of(PIECE_BYTES);
    let all = definitions(ONE, 100);
    let mut gathering = Gathering::of(PIECE_BYTES);
    let added = gathering.add(&first(&pieces, ONE, &all).await.expect("a piece"));
    assert_eq!(added, Ok(ControlFlow::Continue(())));
    let part = gathering.wants().expect("there is more");
    for _ in 0..3 {
        sleep(KEPT_TIMEOUT - NEXT_TIMEOUT).await;
        assert!(pieces.next(ONE, Lsn(0), part).is_ok(), "it has asked not long ago");
    }
    sleep(KEPT_TIMEOUT + NEXT_TIMEOUT).await;
    assert!(pieces.next(ONE, Lsn(0), part).is_err(), "nothing is kept for it");
    assert!(pieces.turn().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_group_that_asks_again_and_again_leaves_no_tasks() {
    let pieces = Pieces::of(PIECE_BYTES);
    let all = definitions(ONE, 30);
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for _ in 0..200 {
        first(&pieces, ONE, &all).await.expect("a piece");
        sleep(Duration::from_secs(1)).await;
    }
    assert!(tasks() <= before + 1, "{} tasks", tasks() - before);
    sleep(KEPT_TIMEOUT * 2).await;
    assert_eq!(tasks(), before, "nothing is left to be forgotten");
    assert!(pieces.turn().now_or_never().is_some());
}

/// Has a group ask until it has got all, at first not for long.
async fn get(pieces: Arc<Pieces>, group: GroupNumber, all: Arc<GroupDefinitions>) {
    let mut patience = NEXT_TIMEOUT / 3;
    loop {
        let (on, of) = (Arc::clone(&pieces), Arc::clone(&all));
        // What is asked is answered also when nothing waits for that any more.
        let answering = tokio::spawn(async move { first(&on, group, &of).await });
        if let Ok(answer) = timeout(patience, answering).await {
            let mut gathering = Gathering::of(PIECE_BYTES);
            let mut piece = answer.expect("no panic").expect("a piece");
            while gathering.add(&piece) == Ok(ControlFlow::Continue(())) {
                let part = gathering.wants().expect("there is more");
                piece = pieces.next(group, Lsn(0), part).expect("another piece");
            }
            return;
        }
        patience = NEXT_TIMEOUT * 6;
    }
}

#[tokio::test(start_paused = true)]
async fn questions_that_a_group_waits_for_no_more_take_no_turn() {
    let pieces = Arc::new(Pieces::of(PIECE_BYTES));
    let all = Arc::new(definitions(ONE, 30));
    let held = pieces.turn().await;
    let groups =
        (1..=8).map(|group| get(Arc::clone(&pieces), GroupNumber(group), Arc::clone(&all)));
    let mut groups: JoinSet<()> = groups.collect();
    // By then each has asked twice.
    sleep(NEXT_TIMEOUT / 2).await;
    assert!(groups.try_join_next().is_none());
    drop(held);
    let since = Instant::now();
    let got = timeout(NEXT_TIMEOUT * 20, groups.join_all()).await;
    got.expect("all groups have all");
    assert!(since.elapsed().is_zero(), "no turn was kept from them");
}

#[tokio::test]
async fn nothing_begins_for_a_question_once_the_group_has_asked_anew() {
    let pieces = Pieces::of(PIECE_BYTES);
    let all = definitions(ONE, 30);
    let (asked, turn) = (pieces.asked(ONE, Lsn(0)), pieces.turn().await);
    let again = first(&pieces, ONE, &all);
    let mut again = pin!(again);
    assert!(again.as_mut().now_or_never().is_none());
    let refused = pieces.first(asked, &all, Some(turn));
    assert_eq!(refused, Err("the group has asked anew".into()));
    again.await.expect("a piece");
}

#[tokio::test]
async fn what_is_being_taken_for_a_group_ends_when_it_asks_anew() {
    let pieces = Pieces::of(PIECE_BYTES);
    let mut asked = pieces.asked(ONE, Lsn(0));
    let turn = pieces.turn().await;
    let taking = asked.unless_anew(async { pending::<Result<Turn, String>>().await.map(|_| turn) });
    let mut taking = pin!(taking);
    assert!(taking.as_mut().now_or_never().is_none());
    let _other = pieces.asked(GroupNumber(2), Lsn(0));
    assert!(taking.as_mut().now_or_never().is_none());
    let _newest = pieces.asked(ONE, Lsn(0));
    let taken = taking.now_or_never().expect("it has ended");
    assert_eq!(taken.map(drop), Err("the group has asked anew".into()));
    assert!(pieces.turn().now_or_never().is_some(), "its turn has ended with it");
}
