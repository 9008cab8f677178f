//! Random histories of several clients against a simple model of what queues hold.
//!
//! After every step: each consumer that got something was allowed to get it, each queue handed out
//! its oldest messages first, nothing waits that a consumer could take, marks and counts are right.
//! At the end each queue holds exactly what the model says, in order.

mod queues;
mod run;

use proptest::prelude::*;
use run::Run;

/// Sessions, each with channels 1 and 2.
pub const SESSIONS: usize = 3;
pub const CHANNELS: u16 = 2;
pub const QUEUES: [&str; 3] = ["q0", "q1", "q2"];

/// A channel of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub session: usize,
    pub channel: u16,
}

/// What happens next. A `pick` chooses among what there is then.
#[derive(Clone, Debug)]
pub enum Action {
    /// To one queue, or to all through an exchange.
    Publish {
        place: Place,
        queue: Option<usize>,
        count: usize,
    },
    Consume {
        place: Place,
        queue: usize,
        no_ack: bool,
        prefetch: u16,
    },
    Cancel {
        pick: usize,
    },
    Get {
        place: Place,
        queue: usize,
        no_ack: bool,
    },
    Ack {
        pick: usize,
        multiple: bool,
    },
    Refuse {
        pick: usize,
        multiple: bool,
        requeue: bool,
    },
    Recover {
        place: Place,
    },
    LimitChannel {
        place: Place,
        prefetch: u16,
    },
    Flow {
        place: Place,
        active: bool,
    },
    Purge {
        queue: usize,
    },
    CloseChannel {
        place: Place,
    },
    Reconnect {
        session: usize,
    },
}

fn place() -> impl Strategy<Value = Place> {
    (0..SESSIONS, 1..=CHANNELS).prop_map(|(session, channel)| Place { session, channel })
}

fn action() -> impl Strategy<Value = Action> {
    let queue = 0..QUEUES.len();
    let pick = any::<usize>();
    let flag = any::<bool>();
    prop_oneof![
        8 => (place(), prop::option::weighted(0.8, queue.clone()), 1..6usize)
            .prop_map(|(place, queue, count)| Action::Publish { place, queue, count }),
        4 => (place(), queue.clone(), prop::bool::weighted(0.3), 0..4u16).prop_map(
            |(place, queue, no_ack, prefetch)| Action::Consume { place, queue, no_ack, prefetch }
        ),
        2 => pick.prop_map(|pick| Action::Cancel { pick }),
        3 => (place(), queue.clone(), flag)
            .prop_map(|(place, queue, no_ack)| Action::Get { place, queue, no_ack }),
        6 => (pick, flag).prop_map(|(pick, multiple)| Action::Ack { pick, multiple }),
        6 => (pick, flag, prop::bool::weighted(0.7)).prop_map(
            |(pick, multiple, requeue)| Action::Refuse { pick, multiple, requeue }
        ),
        1 => place().prop_map(|place| Action::Recover { place }),
        1 => (place(), 0..4u16)
            .prop_map(|(place, prefetch)| Action::LimitChannel { place, prefetch }),
        1 => (place(), flag).prop_map(|(place, active)| Action::Flow { place, active }),
        1 => queue.prop_map(|queue| Action::Purge { queue }),
        1 => place().prop_map(|place| Action::CloseChannel { place }),
        1 => (0..SESSIONS).prop_map(|session| Action::Reconnect { session }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_doubled_and_order_is_kept(
        actions in prop::collection::vec(action(), 1..80)
    ) {
        let mut run = Run::new();
        for action in &actions {
            run.step(action);
        }
        run.finish();
    }
}
