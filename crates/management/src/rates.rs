//! How fast counters grow, from what was seen of them when they were asked for before.
//!
//! Nothing is sampled by itself: each time an object is looked at, its counters are noted, and the rate is what has been
//! added since they were noted last. A caller that polls gets the rate over the time between two polls, the first time 0.

mod objects;

use crate::call::Call;
use crate::json::Fields;
use crate::refusal::Refusal;
use hyper::StatusCode;
use objects::Objects;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// Samples of an object. What is asked for with a range is kept longer.
const SAMPLES_MAX: usize = 3;
const SAMPLES_IN_RANGE_MAX: usize = 130;
/// The least time between two samples.
const GAP_MS: u64 = 1_000;
/// The time after which a sample says nothing any more about now.
const STALE_MS: u64 = 5 * 60_000;
/// Samples that a range may ask for, and those of all rows of a list: ten minutes, five seconds apart, of
/// the longest page.
const RANGE_MAX: u64 = 501;
const ROWS_SAMPLES_MAX: u64 = 121 * 500;
/// The longest range: nothing is remembered as long as that.
const AGE_MAX_S: u64 = 366 * 24 * 3600;

/// What was seen of counters.
#[derive(Default)]
pub(crate) struct Rates {
    objects: Mutex<Objects>,
}

#[derive(Default)]
struct Seen {
    samples: VecDeque<Sample>,
    /// A range was asked for, and there is room for it.
    in_range: bool,
}

#[derive(Clone)]
struct Sample {
    at_ms: u64,
    values: Box<[u64]>,
}

/// The samples that are asked for: so many seconds, so many apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    age_s: u64,
    step_s: u64,
}

/// Groups of counters of which ranges may be asked for.
const GROUPS: [&str; 4] = ["lengths", "msg_rates", "data_rates", "node_stats"];

impl Range {
    /// The range of a group of counters (`lengths`, `msg_rates`, `data_rates`, `node_stats`).
    pub fn asked(call: &Call, group: &str) -> Result<Option<Self>, Refusal> {
        let read = |what: &str| call.query(&format!("{group}_{what}"));
        let (age, step) = match (read("age"), read("incr")) {
            (None, None) => return Ok(None),
            // One without the other is no range.
            (age, step) => (age.unwrap_or_default(), step.unwrap_or_default()),
        };
        let range = match (age.parse::<u64>(), step.parse::<u64>()) {
            (Ok(age_s), Ok(step_s)) => Some(Range { age_s, step_s }),
            _ => None,
        };
        let is_good = |range: &Range| {
            let Range { age_s, step_s } = *range;
            (1..=AGE_MAX_S).contains(&step_s) && age_s <= AGE_MAX_S && range.samples() <= RANGE_MAX
        };
        range.filter(is_good).map(Some).ok_or_else(|| {
            let reason = format!("Invalid range parameters: age {age}, incr {step}");
            Refusal::new(StatusCode::BAD_REQUEST, "bad_request", reason)
        })
    }

    /// Refuses ranges that are too long for so many rows.
    pub fn check_rows(call: &Call, rows: usize) -> Result<(), Refusal> {
        let mut samples = 0;
        for group in GROUPS {
            samples = Range::asked(call, group)?.map_or(0, Range::samples).max(samples);
        }
        if samples * rows as u64 <= ROWS_SAMPLES_MAX {
            return Ok(());
        }
        Err(Refusal::bad_request(format!(
            "Invalid range parameters: {samples} samples of each of {rows} rows are more than the \
             {ROWS_SAMPLES_MAX} of one list; ask for pages, or for a larger incr"
        )))
    }

    /// How many samples of each counter there are.
    fn samples(self) -> u64 {
        self.age_s / self.step_s + 1
    }
}

impl Rates {
    /// Notes counters of an object that a user looks at, and says how fast they grow and what they were.
    pub fn observe(
        &self,
        user: &str,
        object: &str,
        now_ms: u64,
        values: &[u64],
        range: Option<Range>,
    ) -> Vec<Value> {
        let mut objects = self.objects.lock();
        let Some(seen) = objects.use_one(user, object, now_ms, range.is_some()) else {
            return values.iter().map(|_| json!({ "rate": 0.0 })).collect();
        };
        seen.forget(now_ms, values);
        let details = (0..values.len()).map(|nth| seen.details(nth, now_ms, values, range));
        let details = details.collect();
        seen.add(now_ms, values);
        details
    }

    /// Forgets everything.
    pub fn reset(&self) {
        *self.objects.lock() = Objects::default();
    }
}

impl Seen {
    /// Whether it was looked at in the last so many milliseconds.
    fn is_since(&self, now_ms: u64, age_ms: u64) -> bool {
        self.samples.back().is_some_and(|last| last.at_ms + age_ms >= now_ms)
    }

    /// Drops what says nothing about these counters: what is old, and what another object of the same
    /// name had counted.
    fn forget(&mut self, now_ms: u64, values: &[u64]) {
        let age_ms = if self.in_range { STALE_MS * 2 } else { STALE_MS };
        while self.samples.front().is_some_and(|sample| sample.at_ms + age_ms < now_ms) {
            self.samples.pop_front();
        }
        let is_other =
            |sample: &Sample| sample.values.len() != values.len() || sample.at_ms > now_ms;
        if self.samples.back().is_some_and(is_other) {
            self.samples.clear();
        }
    }

    fn add(&mut self, now_ms: u64, values: &[u64]) {
        let is_due = |last: &Sample| last.at_ms + GAP_MS <= now_ms;
        if self.samples.back().is_none_or(is_due) {
            let most = if self.in_range { SAMPLES_IN_RANGE_MAX } else { SAMPLES_MAX };
            while self.samples.len() >= most {
                self.samples.pop_front();
            }
            self.samples.push_back(Sample { at_ms: now_ms, values: values.into() });
        }
    }

    fn details(&self, nth: usize, now_ms: u64, values: &[u64], range: Option<Range>) -> Value {
        let base = self.samples.iter().rev().find(|sample| sample.at_ms + GAP_MS <= now_ms);
        let rate = base.map_or(0.0, |base| {
            growth(base.values[nth], values[nth], now_ms.saturating_sub(base.at_ms))
        });
        let mut details = Map::new();
        details.insert("rate".to_owned(), rate.into());
        if let Some(range) = range {
            self.add_range(&mut details, nth, now_ms, values[nth], range);
        }
        Value::Object(details)
    }

    fn add_range(
        &self,
        details: &mut Map<String, Value>,
        nth: usize,
        now_ms: u64,
        value: u64,
        range: Range,
    ) {
        let step_ms = range.step_s * 1000;
        let newest_ms = now_ms / step_ms * step_ms;
        let oldest_known = self.samples.front().map_or(value, |first| first.values[nth]);
        let value_at = |at_ms: u64| {
            let known = self.samples.iter().rev().find(|sample| sample.at_ms <= at_ms);
            known.map_or(oldest_known, |sample| sample.values[nth])
        };
        let samples: Vec<(u64, u64)> = (0..range.samples())
            .map(|back| newest_ms.saturating_sub(back * step_ms))
            .map(|at_ms| (at_ms, if at_ms == newest_ms { value } else { value_at(at_ms) }))
            .collect();
        let (last, first) = (samples.first(), samples.last());
        let average = last
            .zip(first)
            .map_or(0.0, |(last, first)| growth(first.1, last.1, last.0.saturating_sub(first.0)));
        let sum: f64 = samples.iter().map(|(_, sample)| *sample as f64).sum();
        details.insert("avg_rate".to_owned(), average.into());
        details.insert("avg".to_owned(), (sum / samples.len() as f64).into());
        let list = samples.iter().map(|(at, sample)| json!({ "sample": sample, "timestamp": at }));
        details.insert("samples".to_owned(), list.collect());
    }
}

/// What is added in a second.
fn growth(before: u64, now: u64, elapsed_ms: u64) -> f64 {
    if elapsed_ms == 0 {
        return 0.0;
    }
    (now as f64 - before as f64) * 1000.0 / elapsed_ms as f64
}

/// How an object of a vhost is told from all others. Names may have any character: the size of the first says where it ends.
pub(crate) fn object_in(vhost: &str, kind: &str, name: &str) -> String {
    format!("{kind} {} {vhost} {name}", vhost.len())
}

/// Adds counters to an object, each with its rate beside it as `_details`.
pub(crate) fn put_counters(
    call: &Call,
    fields: &mut Fields,
    object: &str,
    counters: &[(&str, u64)],
    range: Option<Range>,
) {
    if !counters.iter().any(|(name, _)| fields.wants(&format!("{name}_details"))) {
        // A long list that is sorted by a counter wants no rates.
        for (name, value) in counters {
            fields.put(name, *value);
        }
        return;
    }
    let values: Vec<u64> = counters.iter().map(|(_, value)| *value).collect();
    let details = call.api.rates.observe(call.user(), object, call.api.now_ms(), &values, range);
    for ((name, value), details) in counters.iter().zip(details) {
        fields.put(name, *value);
        fields.put(&format!("{name}_details"), details);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(details: &[Value]) -> f64 {
        details[0]["rate"].as_f64().expect("a rate")
    }

    #[test]
    fn the_rate_is_what_was_added_since_the_last_look() {
        let rates = Rates::default();
        assert_eq!(rate(&rates.observe("u", "q", 10_000, &[100], None)), 0.0);
        assert_eq!(rate(&rates.observe("u", "q", 15_000, &[350], None)), 50.0);
        assert_eq!(rate(&rates.observe("u", "q", 25_000, &[350], None)), 0.0);
        assert_eq!(rate(&rates.observe("u", "other", 25_000, &[9], None)), 0.0);
    }

    #[test]
    fn two_who_ask_at_once_see_the_same_rate() {
        let rates = Rates::default();
        rates.observe("u", "q", 10_000, &[100], None);
        assert_eq!(rate(&rates.observe("u", "q", 15_000, &[350], None)), 50.0);
        assert_eq!(rate(&rates.observe("u", "q", 15_010, &[351], None)).round(), 50.0);
    }

    #[test]
    fn what_was_seen_long_ago_says_nothing() {
        let rates = Rates::default();
        rates.observe("u", "q", 10_000, &[100], None);
        assert_eq!(rate(&rates.observe("u", "q", 10_000 + STALE_MS + 1, &[900], None)), 0.0);
    }

    #[test]
    fn a_range_has_samples_at_multiples_of_its_step_newest_first() {
        let rates = Rates::default();
        let range = Some(Range { age_s: 10, step_s: 5 });
        rates.observe("u", "q", 20_000, &[10], range);
        rates.observe("u", "q", 25_000, &[20], range);
        let details = rates.observe("u", "q", 30_100, &[40], range);
        let expected = json!([
            { "sample": 40, "timestamp": 30_000 },
            { "sample": 20, "timestamp": 25_000 },
            { "sample": 10, "timestamp": 20_000 },
        ]);
        assert_eq!(details[0]["samples"], expected);
        assert_eq!(details[0]["avg_rate"], 3.0);
    }
}
