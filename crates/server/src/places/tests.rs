use super::{Admission, LEAVING_MAX, Places};
use std::sync::Arc;

#[tokio::test]
async fn newcomers_wait_until_those_that_made_room_are_gone() {
    let places = Arc::new(Places::new(1));
    let admit = || {
        places.admit(|place| {
            let staying = async move {
                let _place = place;
                std::future::pending::<()>().await;
            };
            tokio::spawn(staying).abort_handle()
        })
    };
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
