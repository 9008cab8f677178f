use super::{Admission, LEAVING_MAX, Place, Places};
use std::sync::Arc;
use tokio::task::AbortHandle;

fn staying(place: Place) -> AbortHandle {
    let staying = async move {
        let _place = place;
        std::future::pending::<()>().await;
    };
    tokio::spawn(staying).abort_handle()
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
