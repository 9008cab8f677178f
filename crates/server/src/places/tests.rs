use super::{Admission, Going, LEAVING_MAX, Place, Places, UNCOUNTED_MAX};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

fn staying(place: Place) -> AbortHandle {
    let staying = async move {
        let _place = place;
        std::future::pending::<()>().await;
    };
    tokio::spawn(staying).abort_handle()
}

/// A place whose connection can be seen.
fn admitted(places: &Arc<Places>) -> Place {
    let mut admitted = None;
    places.admit(|place| {
        admitted = Some(place);
        tokio::spawn(std::future::pending::<()>()).abort_handle()
    });
    admitted.expect("a place")
}

#[tokio::test]
async fn without_a_descriptor_to_spare_one_that_has_not_logged_in_makes_room() {
    let places = Arc::new(Places::new(10));
    assert_eq!(places.exchange(staying), Admission::Refused, "there is none that could");
    assert_eq!(places.admit(staying), Admission::Admitted);
    assert_eq!(places.exchange(staying), Admission::Replaced);
    assert_eq!(places.taken(), 1);
}

#[tokio::test]
async fn newcomers_wait_until_those_that_made_room_are_gone() {
    let places = Arc::new(Places::new(1));
    let admit = || places.admit(staying);
    assert_eq!(admit(), Admission::Admitted);
    // No task can end meanwhile: this runtime has one thread.
    for _ in 0..=LEAVING_MAX {
        assert_eq!(admit(), Admission::Replaced);
    }
    assert_eq!(places.taken.lock().leaving, LEAVING_MAX + 1);
    places.until_few_leave().await;
    assert!(places.taken.lock().leaving <= LEAVING_MAX);
    assert_eq!(places.taken(), 1);
}

#[tokio::test]
async fn those_that_are_passed_on_have_two_descriptors() {
    let places = Arc::new(Places::within(10, 5));
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut place = admitted(&places);
        assert!(place.pass_on() && place.pass_on() && place.keep());
        kept.push(place);
    }
    let mut last = admitted(&places);
    assert!(!last.pass_on(), "the others stay");
    assert_eq!(places.admit(staying), Admission::Replaced, "there is no sixth descriptor");
    drop(last);
    kept[0].pass_on_no_more();
    assert_eq!(places.admit(staying), Admission::Admitted);
    assert_eq!(places.admit(staying), Admission::Replaced);
    drop(kept);
    assert_eq!(places.taken.lock().passed_on, 0);
}

#[tokio::test]
async fn one_that_has_not_logged_in_makes_room_for_the_other_descriptor_of_another() {
    let places = Arc::new(Places::within(10, 4));
    let mut silent = [admitted(&places), admitted(&places)];
    assert!(silent[0].pass_on());
    let mut place = admitted(&places);
    assert!(place.pass_on());
    assert!(!silent[0].pass_on() && !silent[0].keep(), "the oldest has made room");
    assert!(silent[1].pass_on() && place.keep());
    let mut next = admitted(&places);
    assert!(next.pass_on());
    assert!(!silent[1].keep());
    drop(silent);
    assert_eq!((places.taken(), places.taken.lock().leaving), (2, 0));
}

/// The descriptors that there are for connections to go elsewhere.
async fn going(places: &Arc<Places>) -> Vec<Going> {
    let mut going = Vec::new();
    for _ in 0..100 {
        let Ok(one) = tokio::time::timeout(Duration::ZERO, places.go()).await else { break };
        going.push(one);
    }
    going
}

#[tokio::test]
async fn those_that_go_elsewhere_take_what_descriptors_are_left_and_no_more_than_some() {
    let places = Arc::new(Places::within(10, 6));
    let mut kept = [admitted(&places), admitted(&places)];
    assert!(kept.iter_mut().all(|place| place.pass_on() && place.keep()));
    let mut gone = going(&places).await;
    assert_eq!(gone.len(), UNCOUNTED_MAX + 2, "the others go without being counted");
    assert_eq!(places.admit(staying), Admission::Refused);
    assert!(kept[0].pass_on(), "it has its descriptor");

    let waiting = tokio::spawn({
        let places = Arc::clone(&places);
        async move { places.go().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    gone.pop();
    gone.push(waiting.await.expect("no panic"));
    drop(gone);
    assert_eq!(places.admit(staying), Admission::Admitted);
    assert_eq!(going(&places).await.len(), UNCOUNTED_MAX + 1);
    assert_eq!(places.taken.lock().going, 0);
}

#[tokio::test]
async fn those_that_wait_to_go_elsewhere_see_each_descriptor_that_is_freed() {
    let places = Arc::new(Places::within(10, 6));
    let mut kept = [(); 3].map(|()| admitted(&places));
    assert!(kept.iter_mut().all(|place| place.pass_on() && place.keep()));
    let mut gone = going(&places).await;
    assert_eq!(gone.len(), UNCOUNTED_MAX);
    let waiting = [(); 5].map(|()| {
        let places = Arc::clone(&places);
        tokio::spawn(async move { places.go().await })
    });
    tokio::task::yield_now().await;
    assert!(waiting.iter().all(|one| !one.is_finished()));
    let [mut first, second, _third] = kept;
    first.pass_on_no_more();
    // It has two.
    drop(second);
    gone.truncate(UNCOUNTED_MAX - 2);
    let mut arrived = Vec::new();
    for one in waiting {
        let one = tokio::time::timeout(Duration::from_secs(60), one).await;
        arrived.push(one.expect("it sees a descriptor").expect("no panic"));
    }
    assert_eq!(places.taken.lock().going, UNCOUNTED_MAX + 3);
}

#[tokio::test]
async fn what_was_kept_for_a_connection_counts_no_more_for_who_takes_it_over() {
    let places = Arc::new(Places::new(10));
    let (mut first, second) = (admitted(&places), admitted(&places));
    first.keep_bytes(60, 100);
    let mut first = first.take_over();
    assert_eq!(places.kept_bytes(), 0);
    second.keep_bytes(60, 100);
    assert!(first.keep(), "nothing was kept for it that had to make room");
}
