//! How many connections there may be, and which one goes when there are too many.
//!
//! A connection that is being answered for a user who has logged in keeps its place, unless that user keeps many
//! already, or all users together do. All others wait: for the head of a request, for a body, for credentials that are
//! checked. When all places are taken, a newcomer gets that of the one that waits longest, of those at the address that
//! has most of them; a network of IPv6 counts as one address. So clients that connect and say nothing, or half of what
//! they have to say, keep no others out, and no more do those of users that take their answers slowly.

use courser_auth::network;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::sync::Notify;

/// Connections at the same time.
pub(super) const CONNECTIONS_MAX: usize = 512;
/// Places that are kept at the same time. The others are there for newcomers, such as those that ask for the node's health.
const KEPT_MAX: usize = CONNECTIONS_MAX - 64;
/// Of these, those of one user.
const USER_KEPT_MAX: usize = 128;

/// The places for connections.
#[derive(Debug, Default)]
pub(crate) struct Places {
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    connections: HashMap<u64, Connection>,
    next: u64,
    /// How many are kept, by user.
    kept: HashMap<String, usize>,
    kept_count: usize,
}

#[derive(Debug)]
struct Connection {
    network: IpAddr,
    /// Grows with time.
    waits_since: u64,
    /// It is kept so many times: an answer may end after the next one has begun.
    kept: usize,
    evicted: Arc<Notify>,
}

/// A connection's place.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    evicted: Arc<Notify>,
}

/// Keeps a place for a user as long as it lives.
#[derive(Debug)]
pub(crate) struct Kept {
    places: Arc<Places>,
    number: u64,
    user: String,
}

impl Places {
    /// A place for a connection from `peer`, which may be that of another one.
    pub fn take(self: &Arc<Self>, peer: SocketAddr) -> Place {
        let network = network(peer.ip());
        let mut taken = self.taken.lock();
        if taken.connections.len() >= CONNECTIONS_MAX {
            taken.evict();
        }
        let (number, evicted) = (taken.next, Arc::new(Notify::new()));
        taken.next += 1;
        let connection =
            Connection { network, waits_since: number, kept: 0, evicted: evicted.clone() };
        taken.connections.insert(number, connection);
        Place { places: Arc::clone(self), number, evicted }
    }
}

impl Taken {
    /// Ends the connection that has to go first. There is one: not all are kept.
    fn evict(&mut self) {
        let waiting = || self.connections.iter().filter(|(_, one)| one.kept == 0);
        let mut of: HashMap<IpAddr, usize> = HashMap::new();
        for (_, connection) in waiting() {
            *of.entry(connection.network).or_default() += 1;
        }
        let first = waiting()
            .max_by_key(|(_, one)| (of.get(&one.network), std::cmp::Reverse(one.waits_since)));
        let number = first.map(|(number, _)| *number);
        if let Some(connection) = number.and_then(|number| self.connections.remove(&number)) {
            tracing::debug!(network = %connection.network, "HTTP connection closed: too many");
            connection.evicted.notify_one();
        }
    }
}

impl Place {
    /// Waits until another connection has got it.
    pub async fn lost(&self) {
        self.evicted.notified().await;
    }

    /// Who keeps it while a user is answered.
    pub fn keeper(&self) -> Keeper {
        Keeper { places: Arc::clone(&self.places), number: self.number }
    }
}

/// Makes [`Kept`].
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    places: Arc<Places>,
    number: u64,
}

impl Keeper {
    /// Keeps the place from now on, for a user, if neither that one nor all have as many as they may have.
    pub fn keep(&self, user: &str) -> Option<Kept> {
        let mut taken = self.places.taken.lock();
        let Taken { connections, kept, kept_count, .. } = &mut *taken;
        let of_user = kept.get(user).copied().unwrap_or_default();
        if *kept_count >= KEPT_MAX || of_user >= USER_KEPT_MAX {
            return None;
        }
        *kept_count += 1;
        kept.insert(user.to_owned(), of_user + 1);
        if let Some(connection) = connections.get_mut(&self.number) {
            connection.kept += 1;
        }
        let (places, number, user) = (Arc::clone(&self.places), self.number, user.to_owned());
        Some(Kept { places, number, user })
    }
}

impl Kept {
    /// Whom the answer is for.
    pub fn user(&self) -> &str {
        &self.user
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        let now = taken.next;
        taken.next += 1;
        if let Some(connection) = taken.connections.get_mut(&self.number) {
            connection.kept -= 1;
            connection.waits_since = now;
        }
        taken.kept_count -= 1;
        if let Entry::Occupied(mut of_user) = taken.kept.entry(std::mem::take(&mut self.user)) {
            *of_user.get_mut() -= 1;
            if *of_user.get() == 0 {
                of_user.remove();
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.lock().connections.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn peer(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 1))
    }

    fn is_lost(place: &Place) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        matches!(pin!(place.lost()).poll(&mut context), Poll::Ready(()))
    }

    fn full(places: &Arc<Places>, last: u8) -> Vec<Place> {
        (0..CONNECTIONS_MAX).map(|_| places.take(peer(last))).collect()
    }

    #[test]
    fn a_newcomer_gets_the_place_of_who_waits_longest() {
        let places = Arc::new(Places::default());
        let held = full(&places, 1);
        let _kept = held[0].keeper().keep("user").expect("it has none yet");
        let _new = places.take(peer(2));
        let lost: Vec<bool> = held.iter().map(is_lost).collect();
        assert_eq!((lost[0], lost[1]), (false, true), "who is answered keeps its place");
        assert_eq!(lost.iter().filter(|lost| **lost).count(), 1);
    }

    #[test]
    fn who_floods_loses_its_own_places() {
        let of_one = |_: u16| peer(2);
        // Each from an address of its own in one network.
        let of_network = |nth: u16| SocketAddr::from(([0x2001, 0xdb8, 0, 2, 0, 0, 0, nth + 1], 1));
        let flooding: [&dyn Fn(u16) -> SocketAddr; 2] = [&of_one, &of_network];
        for flooding in flooding {
            let places = Arc::new(Places::default());
            let browser = [places.take(peer(1)), places.take(peer(1))];
            let many: Vec<Place> =
                (0..CONNECTIONS_MAX * 2).map(|nth| places.take(flooding(nth as u16))).collect();
            assert!(!browser.iter().any(is_lost));
            let lost = many.iter().filter(|place| is_lost(place)).count();
            assert_eq!(lost, CONNECTIONS_MAX + 2);
        }
    }

    #[test]
    fn a_newcomer_gets_in_where_as_many_are_kept_as_may_be() {
        let places = Arc::new(Places::default());
        let held = full(&places, 1);
        let keep =
            |(nth, place): (usize, &Place)| place.keeper().keep(&(nth / USER_KEPT_MAX).to_string());
        let kept: Vec<_> = held.iter().enumerate().filter_map(keep).collect();
        assert_eq!(kept.len(), KEPT_MAX);
        let new = places.take(peer(2));
        assert!(is_lost(&held[KEPT_MAX]) && !held[..KEPT_MAX].iter().any(is_lost));
        assert!(new.keeper().keep("other").is_none());
        drop(kept);
        assert!(new.keeper().keep("other").is_some(), "what was given back may be had again");
    }

    #[test]
    fn a_user_whose_answers_take_long_keeps_no_others_out() {
        let places = Arc::new(Places::default());
        let held = full(&places, 1);
        let keep = |place: &Place| place.keeper().keep("slow");
        let kept: Vec<_> = held.iter().filter_map(keep).collect();
        assert_eq!(kept.len(), USER_KEPT_MAX);
        let new = places.take(peer(2));
        assert!(is_lost(&held[USER_KEPT_MAX]) && !is_lost(&held[0]), "those that are kept stay");
        assert!(new.keeper().keep("other").is_some());
        assert!(new.keeper().keep("slow").is_none());
        drop(kept);
        assert!(new.keeper().keep("slow").is_some(), "what was given back may be had again");
    }

    #[test]
    fn a_place_that_is_given_up_is_free() {
        let places = Arc::new(Places::default());
        drop(full(&places, 1));
        assert!(places.taken.lock().connections.is_empty());
        let place = places.take(peer(1));
        drop((place.keeper().keep("user"), place.keeper().keep("user")));
        assert!(places.taken.lock().kept.is_empty());
    }
}
