//! Who may check a password next.
//!
//! There are a few places for that. Each goes to another address than the last one, and there to another user, however many
//! wait behind them; and only one password of a user from an address is checked at a time, so that each counts what those
//! before it have come to. Logins from this machine have a place of their own. Of IPv6, the addresses of a network are one.

use courser_auth::network;
use parking_lot::Mutex;
use std::collections::{HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::oneshot;

/// An address, and a user by name.
type Pair = (IpAddr, Vec<u8>);

/// The places for checks.
pub(crate) struct Turns {
    strangers: Arc<Mutex<Places>>,
    /// For logins from this machine.
    local: Arc<Mutex<Places>>,
}

struct Places {
    free: usize,
    /// Whose passwords are being checked.
    checked: HashSet<Pair>,
    waiting: VecDeque<OfAddress>,
}

/// Who waits at an address.
struct OfAddress {
    address: IpAddr,
    users: VecDeque<(Vec<u8>, VecDeque<oneshot::Sender<Turn>>)>,
}

/// One who waits. Dropped behind the receiver, it lets the sender be forgotten.
struct Waiting<'a> {
    places: &'a Mutex<Places>,
    pair: Pair,
}

/// A place, until this is dropped.
pub(crate) struct Turn {
    places: Arc<Mutex<Places>>,
    pair: Pair,
    has_place: bool,
}

impl Turns {
    /// So many places, and one for this machine.
    pub fn new(places: usize) -> Self {
        let new = |free| Places { free, checked: HashSet::new(), waiting: VecDeque::new() };
        Turns { strangers: Arc::new(Mutex::new(new(places))), local: Arc::new(Mutex::new(new(1))) }
    }

    /// Waits for a place; none if there won't be any.
    pub async fn take(&self, address: IpAddr, user: &[u8]) -> Option<Turn> {
        let is_local = address.to_canonical().is_loopback();
        let (address, places) =
            (network(address), if is_local { &self.local } else { &self.strangers });
        let waiting = Waiting { places, pair: (address, user.to_vec()) };
        let (sender, receiver) = oneshot::channel();
        let next = {
            let mut state = places.lock();
            state.push(waiting.pair.clone(), sender);
            state.next(places)
        };
        hand_over(next);
        receiver.await.ok()
    }
}

impl Places {
    fn push(&mut self, (address, user): Pair, sender: oneshot::Sender<Turn>) {
        let known = self.waiting.iter().position(|one| one.address == address);
        let at = known.unwrap_or_else(|| {
            self.waiting.push_back(OfAddress { address, users: VecDeque::new() });
            self.waiting.len() - 1
        });
        let users = &mut self.waiting[at].users;
        match users.iter_mut().find(|(name, _)| *name == user) {
            Some((_, senders)) => senders.push_back(sender),
            None => users.push_back((user, VecDeque::from([sender]))),
        }
    }

    /// Lets go of those of a user at an address that have given up.
    fn forget(&mut self, (address, user): &Pair) {
        let Some(at) = self.waiting.iter().position(|one| one.address == *address) else { return };
        let users = &mut self.waiting[at].users;
        let Some(nth) = users.iter().position(|(name, _)| name == user) else { return };
        let senders = &mut users[nth].1;
        senders.retain(|sender| !sender.is_closed());
        if senders.is_empty() {
            users.remove(nth);
        }
        if users.is_empty() {
            self.waiting.remove(at);
        }
    }

    /// Who gets a place that is free, if there is one. To be handed over without the lock.
    fn next(&mut self, places: &Arc<Mutex<Places>>) -> Option<(oneshot::Sender<Turn>, Turn)> {
        if self.free == 0 {
            return None;
        }
        for _ in 0..self.waiting.len() {
            let mut first = self.waiting.pop_front()?;
            let found = first.next(&self.checked);
            let address = first.address;
            if !first.users.is_empty() {
                self.waiting.push_back(first);
            }
            if let Some((user, sender)) = found {
                self.free -= 1;
                self.checked.insert((address, user.clone()));
                let places = Arc::clone(places);
                return Some((sender, Turn { places, pair: (address, user), has_place: true }));
            }
        }
        None
    }
}

impl OfAddress {
    /// The next one who waits here and of whose user no password is being checked. Those that have given up are forgotten.
    fn next(&mut self, checked: &HashSet<Pair>) -> Option<(Vec<u8>, oneshot::Sender<Turn>)> {
        for _ in 0..self.users.len() {
            let (user, mut senders) = self.users.pop_front()?;
            senders.retain(|sender| !sender.is_closed());
            let is_checked = checked.contains(&(self.address, user.clone()));
            let found = if is_checked { None } else { senders.pop_front() };
            if !senders.is_empty() {
                self.users.push_back((user.clone(), senders));
            }
            if let Some(sender) = found {
                return Some((user, sender));
            }
        }
        None
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.places.lock().forget(&self.pair);
    }
}

impl Turn {
    /// Gives the place to another user; other passwords of the user still wait.
    pub fn leave_place(&mut self) {
        if !std::mem::take(&mut self.has_place) {
            return;
        }
        let next = {
            let mut state = self.places.lock();
            state.free += 1;
            state.next(&self.places)
        };
        hand_over(next);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut state = self.places.lock();
            state.checked.remove(&self.pair);
            state.free += usize::from(std::mem::take(&mut self.has_place));
            state.next(&self.places)
        };
        hand_over(next);
    }
}

/// Who has given up meanwhile lets its turn go, which gives it to the next.
fn hand_over(next: Option<(oneshot::Sender<Turn>, Turn)>) {
    if let Some((sender, turn)) = next {
        drop(sender.send(turn));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    const ATTACKER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    type Taking<'a> = Pin<Box<dyn Future<Output = Option<Turn>> + 'a>>;

    fn taken(taking: &mut Taking<'_>) -> Option<Turn> {
        match taking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => turn,
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_place_goes_to_another_address_and_there_to_another_user() {
        let turns = Turns::new(1);
        let take =
            |address, user: &'static [u8]| -> Taking<'_> { Box::pin(turns.take(address, user)) };
        let mut first = take(ATTACKER, b"a");
        let held = taken(&mut first).expect("a place");
        let mut flood: Vec<Taking<'_>> = (0..100).map(|_| take(ATTACKER, b"a")).collect();
        flood.iter_mut().for_each(|one| assert!(taken(one).is_none()));
        let (mut neighbour, mut other) = (take(ATTACKER, b"b"), take(OTHER, b"c"));
        assert!(taken(&mut neighbour).is_none() && taken(&mut other).is_none());
        let mut here = take(HERE, b"root");
        assert!(taken(&mut here).is_some(), "this machine does not wait");
        drop(held);
        let of_flood = taken(&mut flood[0]).expect("the next at the first address");
        assert!(taken(&mut other).is_none());
        drop(of_flood);
        let of_other = taken(&mut other).expect("its turn");
        assert!(taken(&mut neighbour).is_none());
        drop(of_other);
        drop(taken(&mut neighbour).expect("another user's turn"));
        assert!(taken(&mut flood[1]).is_some());
    }

    #[test]
    fn the_addresses_of_a_network_of_ipv6_have_the_turns_of_one() {
        let turns = Turns::new(1);
        let take = |address: &str| -> Taking<'_> {
            let address = address.parse().expect("an address");
            Box::pin(turns.take(address, b"a"))
        };
        let mut first = take("2001:db8::1");
        let held = taken(&mut first).expect("a place");
        let mut flood: Vec<Taking<'_>> =
            (2..100).map(|nth| take(&format!("2001:db8::{nth:x}"))).collect();
        flood.iter_mut().for_each(|one| assert!(taken(one).is_none()));
        let mut other = take("2001:db8:0:1::1");
        assert!(taken(&mut other).is_none());
        drop(held);
        drop(taken(&mut flood[0]).expect("the next of the first network"));
        assert!(taken(&mut other).is_some(), "its turn, however many wait there");
        assert!(taken(&mut take("::1")).is_some(), "this machine does not wait");
    }

    #[test]
    fn one_password_of_a_user_is_checked_at_a_time_and_a_login_that_gives_up_blocks_no_other() {
        let turns = Turns::new(2);
        let take = |user: &'static [u8]| -> Taking<'_> { Box::pin(turns.take(ATTACKER, user)) };
        let (mut one, mut two, mut three) = (take(b"a"), take(b"a"), take(b"b"));
        let mut held = taken(&mut one).expect("a place");
        assert!(taken(&mut two).is_none(), "there is a place, but not for the same user");
        let of_three = taken(&mut three).expect("the other place");
        let mut four = take(b"d");
        assert!(taken(&mut four).is_none());
        held.leave_place();
        drop(taken(&mut four).expect("the place that was left"));
        let mut five = take(b"a");
        assert!(taken(&mut five).is_none());
        drop(two);
        drop((held, of_three));
        assert!(taken(&mut five).is_some());
    }

    #[test]
    fn logins_that_give_up_leave_nothing() {
        let turns = Turns::new(1);
        let users: Vec<Vec<u8>> = (0..100u32).map(|nth| nth.to_be_bytes().to_vec()).collect();
        let mut first: Taking<'_> = Box::pin(turns.take(ATTACKER, b"a"));
        let held = taken(&mut first).expect("a place");
        let waiting = || turns.strangers.lock().waiting.len();
        let mut others: Vec<Taking<'_>> = Vec::new();
        for address in [ATTACKER, OTHER] {
            for user in &users {
                let (one, two) = (turns.take(address, user), turns.take(address, user));
                others.extend([Box::pin(one) as Taking<'_>, Box::pin(two)]);
            }
        }
        others.iter_mut().for_each(|one| assert!(taken(one).is_none()));
        assert_eq!(waiting(), 2);
        let mut last = others.split_off(others.len() - 1);
        drop(others);
        assert_eq!(waiting(), 1, "one still waits");
        drop(held);
        assert!(taken(&mut last[0]).is_some());
        assert_eq!(waiting(), 0);
    }
}
