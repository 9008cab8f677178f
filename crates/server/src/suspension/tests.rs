//! What is said of suspended listeners, and when.

use super::*;
use std::thread;
use std::time::Duration;

/// How long a suspension gets to come as far as it can. Too short a time only finds less.
const AHEAD: Duration = Duration::from_millis(50);

#[test]
fn that_listeners_are_suspended_is_said_when_they_are_and_not_before() {
    let notices = Arc::new(Notices::default());
    let suspension = Suspension::new(&notices);
    for on in [true, false] {
        let said = notices.all();
        thread::scope(|scope| {
            // As long as its state is looked at, nothing changes it.
            let looked_at = suspension.on.borrow();
            let changing = scope.spawn(|| suspension.set(on));
            thread::sleep(AHEAD);
            assert_eq!(notices.all(), said, "{on}");
            drop(looked_at);
            changing.join().expect("no panic");
        });
        assert_eq!((suspension.is_on(), notices.all().len()), (on, usize::from(on)));
    }
}
