//! What happens in the broker, for those that follow it.
//!
//! Events are kept only while there are followers, and a bounded number of them: a follower that is
//! too slow loses the oldest and is told how many.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

/// Events that are kept for those who follow.
pub const EVENTS_MAX: usize = 8192;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What.
    pub kind: EventKind,
    /// The vhost that it happened in; empty if it concerns none.
    pub vhost: String,
    /// The name of what it happened to.
    pub name: String,
    /// What else there is to say: names and values.
    pub details: Vec<(&'static str, String)>,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal,)*) => {
        /// What has happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum EventKind {
            $($(#[$doc])* $kind,)*
        }

        impl EventKind {
            /// Its name, as `queue.created`.
            pub fn name(self) -> &'static str {
                match self {
                    $(EventKind::$kind => $name,)*
                }
            }

            /// All names.
            pub fn names() -> impl Iterator<Item = &'static str> {
                [$($name),*].into_iter()
            }
        }
    };
}

kinds! {
    /// A vhost has been made.
    VhostCreated "vhost.created",
    /// The settings or limits of a vhost have been changed.
    VhostChanged "vhost.changed",
    /// A vhost has been deleted with everything in it.
    VhostDeleted "vhost.deleted",
    /// An exchange has been made.
    ExchangeCreated "exchange.created",
    /// An exchange has gone.
    ExchangeDeleted "exchange.deleted",
    /// A queue has been made.
    QueueCreated "queue.created",
    /// A queue has gone.
    QueueDeleted "queue.deleted",
    /// Everything that waited in a queue has been dropped.
    QueuePurged "queue.purged",
    /// Clients get nothing from a queue until it is resumed.
    QueuePaused "queue.paused",
    /// Clients get the messages of a queue again.
    QueueResumed "queue.resumed",
    /// A binding has been made; the name is that of its source.
    BindingCreated "binding.created",
    /// A binding has gone; the name is that of its source.
    BindingDeleted "binding.deleted",
    /// A connection has entered its vhost.
    ConnectionOpened "connection.created",
    /// A connection is over.
    ConnectionClosed "connection.closed",
    /// A channel has been opened; the name is that of its connection.
    ChannelOpened "channel.created",
    /// A channel is closed; the name is that of its connection.
    ChannelClosed "channel.closed",
    /// A policy has been set.
    PolicySet "policy.set",
    /// A policy has been cleared.
    PolicyCleared "policy.cleared",
    /// A parameter has been set.
    ParameterSet "parameter.set",
    /// A parameter has been cleared.
    ParameterCleared "parameter.cleared",
    /// Publishers have to wait: the name says what is short.
    AlarmSet "alarm.set",
    /// They need not wait any more.
    AlarmCleared "alarm.cleared",
    /// A user has been made.
    UserCreated "user.created",
    /// The password of a user has been changed.
    UserPasswordChanged "user.password.changed",
    /// The tags of a user have been changed.
    UserTagsSet "user.tags.set",
    /// The limits of a user have been changed.
    UserLimitsSet "user.limits.set",
    /// A user has been deleted.
    UserDeleted "user.deleted",
    /// Permissions have been given to a user, or others than before.
    PermissionSet "permission.created",
    /// Permissions have been taken from a user.
    PermissionCleared "permission.deleted",
    /// Topic permissions have been given to a user, or others than before.
    TopicPermissionSet "topic.permission.created",
    /// Topic permissions have been taken away from a user.
    TopicPermissionCleared "topic.permission.deleted",
    /// A user has logged in.
    LoginAccepted "user.authentication.success",
    /// A login has been refused.
    LoginRefused "user.authentication.failure",
}

impl Event {
    /// Something that happens at `at_ms`.
    pub fn new(at_ms: u64, kind: EventKind, vhost: &str, name: impl fmt::Display) -> Self {
        let (vhost, name) = (vhost.to_owned(), name.to_string());
        Event { at_ms, kind, vhost, name, details: Vec::new() }
    }

    /// The same with one more thing said.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.details.push((name, value.to_string()));
        self
    }
}

/// Those who follow, and what they have not all seen yet.
#[derive(Default)]
pub(crate) struct Events {
    followers: AtomicUsize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The number of the oldest event that is kept.
    first: u64,
    events: VecDeque<Arc<Event>>,
    wakers: Vec<Waker>,
}

impl Events {
    /// Tells the followers what has happened; without followers the event is not even made.
    #[inline]
    pub fn tell(&self, event: impl FnOnce() -> Event) {
        if self.followers.load(Ordering::Relaxed) > 0 {
            self.keep(event());
        }
    }

    #[cold]
    fn keep(&self, event: Event) {
        let mut kept = self.kept.lock();
        if kept.events.len() == EVENTS_MAX {
            kept.events.pop_front();
            kept.first += 1;
        }
        kept.events.push_back(Arc::new(event));
        let wakers = std::mem::take(&mut kept.wakers);
        drop(kept);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Follows what happens from now on.
    pub fn follow(self: &Arc<Self>) -> Follower {
        let kept = self.kept.lock();
        self.followers.fetch_add(1, Ordering::Relaxed);
        let next = kept.first + kept.events.len() as u64;
        drop(kept);
        Follower { events: Arc::clone(self), next }
    }
}

/// Follows what happens.
pub struct Follower {
    events: Arc<Events>,
    /// The number of the event that comes next.
    next: u64,
}

/// What a follower has not seen before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// How many events were lost, before the first one here, as the follower was too slow.
    pub missed: u64,
    /// The events, oldest first.
    pub events: Vec<Arc<Event>>,
}

impl Follower {
    /// Takes the next events, `most` at most.
    pub fn take(&mut self, most: usize) -> Followed {
        let kept = self.events.kept.lock();
        let missed = kept.first.saturating_sub(self.next);
        let from = (self.next + missed - kept.first) as usize;
        let events: Vec<_> = kept.events.iter().skip(from).take(most).cloned().collect();
        drop(kept);
        self.next += missed + events.len() as u64;
        Followed { missed, events }
    }

    /// As [`Follower::take`]; if there is nothing, has `waker` woken when there is.
    pub fn take_or_wait(&mut self, most: usize, waker: &Waker) -> Followed {
        {
            let mut kept = self.events.kept.lock();
            if kept.first + kept.events.len() as u64 == self.next {
                if !kept.wakers.iter().any(|known| known.will_wake(waker)) {
                    kept.wakers.push(waker.clone());
                }
                return Followed::default();
            }
        }
        self.take(most)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut kept = self.events.kept.lock();
        if self.events.followers.fetch_sub(1, Ordering::Relaxed) == 1 {
            // No follower is left to see them.
            kept.first += kept.events.len() as u64;
            kept.events = VecDeque::new();
            kept.wakers = Vec::new();
        }
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("next", &self.next).finish_non_exhaustive()
    }
}
