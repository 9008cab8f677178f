//! Work that is done portion by portion, each in one of its user's places and on a thread that may be
//! blocked. Between two portions, others have their turn; when the future is dropped, as its client has
//! gone, one portion is finished at most.

use crate::shares::Shares;

/// Has `go_on` called with `state` until it returns something. `None` when a portion panics.
pub(crate) async fn portions<S, T>(
    places: &Shares,
    user: &str,
    mut state: S,
    go_on: fn(&mut S) -> Option<T>,
) -> Option<(S, T)>
where
    S: Send + 'static,
    T: Send + 'static,
{
    loop {
        let place = places.take(user, 1).await?;
        let portion = tokio::task::spawn_blocking(move || {
            let done = go_on(&mut state);
            drop(place);
            (state, done)
        });
        let done;
        (state, done) = portion.await.ok()?;
        if let Some(done) = done {
            return Some((state, done));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::task::{Context, Waker};

    /// Says that a portion begins, and waits for leave to end it.
    struct Work {
        name: &'static str,
        begun: Sender<&'static str>,
        leave: Receiver<bool>,
    }

    fn go_on(work: &mut Work) -> Option<()> {
        work.begun.send(work.name).expect("the test listens");
        // Without a test, it would go on for ever.
        work.leave.recv().unwrap_or(false).then_some(())
    }

    fn work(name: &'static str, begun: &Sender<&'static str>) -> (Work, Sender<bool>) {
        let (sender, leave) = channel();
        (Work { name, begun: begun.clone(), leave }, sender)
    }

    #[tokio::test]
    async fn work_ends_when_its_caller_is_gone() {
        let places = Shares::new(1, 1);
        let (begun, begins) = channel();
        let (first, leave_first) = work("first", &begun);
        let mut working = Box::pin(portions(&places, "user", first, go_on));
        assert!(working.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(begins.recv(), Ok("first"));
        drop(working);
        leave_first.send(false).expect("it listens");
        let (second, leave) = work("second", &begun);
        leave.send(true).expect("it listens");
        portions(&places, "user", second, go_on).await.expect("the place is free");
        assert_eq!(begins.try_iter().collect::<Vec<_>>(), ["second"]);
    }

    #[tokio::test]
    async fn others_have_their_turn_between_two_portions() {
        let places = Shares::new(1, 1);
        let (begun, begins) = channel();
        let (long, leave) = work("long", &begun);
        let (short, leave_short) = work("short", &begun);
        for is_end in [false, false, false, true] {
            leave.send(is_end).expect("it listens");
        }
        leave_short.send(true).expect("it listens");
        let (long, short) = tokio::join!(
            portions(&places, "one", long, go_on),
            portions(&places, "other", short, go_on)
        );
        assert!(long.is_some() && short.is_some());
        let order: Vec<&str> = begins.try_iter().collect();
        assert_eq!(order, ["long", "short", "long", "long", "long"]);
    }
}
