//! Where vhosts are: the group of each. The leader of home knows; other nodes ask it, and remember the answer for a while.
//!
//! A vhost that has moved meanwhile is found all the same: the group that had it refuses its clients, and home passes them on.

use super::front::{Front, Serves};
use super::questions::Question;
use courser_broker::Broker;
use courser_cluster::GroupNumber;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How long an answer is remembered.
const REMEMBERED: Duration = Duration::from_secs(10);
/// Answers that are remembered at most.
const VHOSTS_MAX: usize = 10_000;
/// Questions at a time: many clients may come at once, and what one has asked, the others need not.
const QUESTIONS_MAX: usize = 8;

/// What is remembered.
pub(super) struct Whereabouts {
    known: Mutex<HashMap<String, (GroupNumber, Instant)>>,
    pub(super) questions: Semaphore,
}

impl Default for Whereabouts {
    fn default() -> Self {
        Whereabouts { known: Mutex::default(), questions: Semaphore::new(QUESTIONS_MAX) }
    }
}

impl Whereabouts {
    fn recall(&self, vhost: &str, now: Instant) -> Option<GroupNumber> {
        let known = self.known.lock();
        let (group, until) = known.get(vhost)?;
        (now < *until).then_some(*group)
    }

    fn remember(&self, vhost: &str, group: GroupNumber, now: Instant) {
        let mut known = self.known.lock();
        if known.len() >= VHOSTS_MAX {
            known.retain(|_, (_, until)| now < *until);
        }
        if known.len() >= VHOSTS_MAX {
            known.clear();
        }
        known.insert(vhost.to_owned(), (group, now + REMEMBERED));
    }

    /// Forgets where a vhost is: it is not there any more, or not yet.
    pub fn forget(&self, vhost: &str) {
        self.known.lock().remove(vhost);
    }
}

/// The group that a vhost is in, if it is in the cluster, as the broker of home knows it.
pub(super) fn group_of(home: &Broker, vhost: &str) -> Option<GroupNumber> {
    home.vhost(vhost).map(|vhost| GroupNumber(vhost.group()))
}

impl Front {
    /// The group that a vhost is in, if it is in the cluster.
    ///
    /// # Errors
    /// Why that is not known now.
    pub(super) async fn group_of(&self, vhost: &str) -> Result<Option<GroupNumber>, String> {
        let leader = match self.serves() {
            Serves::Here(service) => return Ok(group_of(&service.shared.broker, vhost)),
            Serves::There(leader) => leader,
            Serves::Unknown => return Err("no node leads the cluster".into()),
        };
        if let Some(group) = self.whereabouts.recall(vhost, Instant::now()) {
            return Ok(Some(group));
        }
        let questions = self.whereabouts.questions.acquire().await;
        let _question = questions.map_err(|error| error.to_string())?;
        if let Some(group) = self.whereabouts.recall(vhost, Instant::now()) {
            return Ok(Some(group));
        }
        let question = Question::Where { vhost: vhost.to_owned() };
        let answer = self.ask(leader, &question).await.map_err(|error| error.to_string())?;
        let group = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        // One that is not there may be made at any time.
        if let Some(group) = group {
            self.whereabouts.remember(vhost, group, Instant::now());
        }
        Ok(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_remembered_for_a_while() {
        let (whereabouts, now) = (Whereabouts::default(), Instant::now());
        whereabouts.remember("orders", GroupNumber(3), now);
        assert_eq!(whereabouts.recall("orders", now), Some(GroupNumber(3)));
        assert_eq!(whereabouts.recall("orders", now + REMEMBERED), None);

        whereabouts.remember("orders", GroupNumber(4), now + REMEMBERED);
        assert_eq!(whereabouts.recall("orders", now + REMEMBERED), Some(GroupNumber(4)));
        whereabouts.forget("orders");
        assert_eq!(whereabouts.recall("orders", now + REMEMBERED), None);
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let (whereabouts, mut now) = (Whereabouts::default(), Instant::now());
        for number in 0..3 * VHOSTS_MAX {
            if number == VHOSTS_MAX / 2 {
                now += REMEMBERED;
            }
            let vhost = number.to_string();
            whereabouts.remember(&vhost, GroupNumber(1), now);
            assert!(whereabouts.known.lock().len() <= VHOSTS_MAX);
            assert_eq!(whereabouts.recall(&vhost, now), Some(GroupNumber(1)));
        }
    }
}
