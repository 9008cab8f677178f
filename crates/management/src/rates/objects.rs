//! Which objects are remembered: as many as there is room for, which the users who look at them share.

use super::Seen;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Objects whose counters are remembered.
pub(super) const OBJECTS_MAX: usize = 20_000;
/// Objects of which a range is kept.
pub(super) const IN_RANGE_MAX: usize = 500;
/// How long an object is kept for its user while others that look at fewer need no room.
const KEPT_MS: u64 = 60_000;

#[derive(Default)]
pub(super) struct Objects {
    by_name: HashMap<Arc<str>, Object>,
    /// The objects that are there because of each user, by their last use.
    by_user: HashMap<Arc<str>, BTreeMap<u64, Arc<str>>>,
    uses: u64,
    /// How many of them a range is kept of.
    in_range: usize,
}

struct Object {
    seen: Seen,
    user: Arc<str>,
    /// The number of its last use.
    used: u64,
}

impl Objects {
    /// What was seen of an object, as long as there is room for it.
    pub fn use_one(
        &mut self,
        user: &str,
        name: &str,
        now_ms: u64,
        with_range: bool,
    ) -> Option<&mut Seen> {
        if !self.by_name.contains_key(name) {
            if self.by_name.len() >= OBJECTS_MAX && !self.make_room(user, now_ms) {
                return None;
            }
            self.add(user, name);
        }
        self.uses += 1;
        let object = self.by_name.get_mut(name)?;
        let of_user = self.by_user.get_mut(&object.user)?;
        let name = of_user.remove(&object.used)?;
        of_user.insert(self.uses, name);
        object.used = self.uses;
        if with_range && !object.seen.in_range && self.in_range < IN_RANGE_MAX {
            object.seen.in_range = true;
            self.in_range += 1;
        }
        Some(&mut object.seen)
    }

    fn add(&mut self, user: &str, name: &str) {
        self.uses += 1;
        let known = self.by_user.get_key_value(user).map(|(user, _)| Arc::clone(user));
        let (user, name) = (known.unwrap_or_else(|| user.into()), Arc::<str>::from(name));
        let of_user = self.by_user.entry(Arc::clone(&user)).or_default();
        of_user.insert(self.uses, Arc::clone(&name));
        let object = Object { seen: Seen::default(), user, used: self.uses };
        self.by_name.insert(name, object);
    }

    /// Drops the least recently used object, if that was long ago, or else that of the user with the most. To drop the first rows
    /// of a user's long list for its last ones would leave no rates at all, as the next request begins with the first.
    fn make_room(&mut self, user: &str, now_ms: u64) -> bool {
        let own = self.by_user.get(user).map_or(0, BTreeMap::len);
        let oldest = self.by_user.values().filter_map(BTreeMap::first_key_value).min();
        let is_unused = |name: &str| {
            self.by_name.get(name).is_none_or(|object| !object.seen.is_since(now_ms, KEPT_MS))
        };
        let unused = oldest.filter(|(_, name)| is_unused(name));
        let most = self.by_user.values().max_by_key(|objects| objects.len());
        let most = most.filter(|objects| own + 1 < objects.len());
        let dropped = unused.or_else(|| most?.first_key_value());
        let Some(name) = dropped.map(|(_, name)| Arc::clone(name)) else { return false };
        self.remove(&name);
        true
    }

    fn remove(&mut self, name: &str) {
        let Some(Object { seen, user, used }) = self.by_name.remove(name) else { return };
        self.in_range -= usize::from(seen.in_range);
        if let Some(objects) = self.by_user.get_mut(&user) {
            objects.remove(&used);
            if objects.is_empty() {
                self.by_user.remove(&user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Range, Rates, SAMPLES_MAX};
    use super::*;

    /// The rate of an object that a user looks at.
    fn rate(rates: &Rates, user: &str, object: impl ToString, at_ms: u64, count: u64) -> f64 {
        let details = rates.observe(user, &object.to_string(), at_ms, &[count], None);
        details[0]["rate"].as_f64().expect("a rate")
    }

    #[test]
    fn a_user_who_looks_at_very_many_objects_leaves_room_for_those_of_others() {
        let rates = Rates::default();
        for (at_ms, count) in [(1_000, 1), (3_000, 5)] {
            for nth in 0..OBJECTS_MAX {
                rate(&rates, "with many", nth, at_ms, count);
            }
            let expected = if at_ms == 1_000 { 0.0 } else { 2.0 };
            assert_eq!(rate(&rates, "with one", "late", at_ms, count), expected);
            assert_eq!(rates.objects.lock().by_name.len(), OBJECTS_MAX);
        }
    }

    #[test]
    fn a_list_that_is_longer_than_all_room_has_its_first_rates() {
        let rates = Rates::default();
        let look = |at_ms, count| {
            let all = (0..OBJECTS_MAX + 10).map(|nth| rate(&rates, "u", nth, at_ms, count));
            all.filter(|rate| *rate > 0.0).count()
        };
        assert_eq!([look(1_000, 1), look(3_000, 5)], [0, OBJECTS_MAX]);
    }

    #[test]
    fn what_was_not_looked_at_for_long_makes_room() {
        let rates = Rates::default();
        for nth in 0..OBJECTS_MAX {
            rate(&rates, "u", nth, 1_000, 1);
        }
        let later_ms = 1_000 + KEPT_MS + 1;
        rate(&rates, "u", 0, later_ms, 1);
        assert_eq!(rate(&rates, "u", "late", later_ms, 1), 0.0);
        assert_eq!(rate(&rates, "u", "late", later_ms + 2_000, 3), 1.0);
        let objects = rates.objects.lock();
        let is_there = |name: &str| objects.by_name.contains_key(name);
        assert!(is_there("0") && !is_there("1") && is_there("2"));
        assert_eq!((objects.by_name.len(), objects.by_user["u"].len()), (OBJECTS_MAX, OBJECTS_MAX));
    }

    #[test]
    fn long_histories_are_kept_of_some_objects_only() {
        let rates = Rates::default();
        let range = Some(Range { age_s: 10, step_s: 5 });
        for nth in 0..IN_RANGE_MAX + 10 {
            for second in 1..20 {
                rates.observe("u", &nth.to_string(), second * 1_000, &[1], range);
            }
        }
        let mut objects = rates.objects.lock();
        let long = |objects: &Objects| {
            objects.by_name.values().filter(|one| one.seen.samples.len() > SAMPLES_MAX).count()
        };
        assert_eq!((long(&objects), objects.in_range), (IN_RANGE_MAX, IN_RANGE_MAX));
        objects.remove("0");
        assert_eq!((long(&objects), objects.in_range), (IN_RANGE_MAX - 1, IN_RANGE_MAX - 1));
    }
}
