//! What the other program has said lately.
//!
//! Questions are remembered as sums with a random key: there are passwords in them, and what is in memory is of no use
//! elsewhere.

use super::questions::{Question, Verdict};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Answers that are remembered.
const ENTRIES_MAX: usize = 16_384;

type Sum = [u8; 32];

pub(super) struct Cache {
    /// Without one, where the system gave no random numbers, nothing is remembered.
    key: Option<Zeroizing<[u8; 32]>>,
    kept: Duration,
    /// Each with the moment from which on it does not count any more.
    answers: HashMap<Sum, (Verdict, Instant)>,
}

impl Cache {
    /// A cache that forgets after this time.
    pub fn new(kept: Duration) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        let filled = getrandom::fill(&mut *key);
        Cache { key: filled.is_ok().then_some(key), kept, answers: HashMap::new() }
    }

    pub fn get(&self, question: &Question<'_>, now: Instant) -> Option<Verdict> {
        let (verdict, until) = self.answers.get(&self.sum(question)?)?;
        (now < *until).then(|| verdict.clone())
    }

    pub fn put(&mut self, question: &Question<'_>, verdict: &Verdict, now: Instant) {
        let Some(sum) = self.sum(question) else { return };
        if self.answers.len() >= ENTRIES_MAX {
            self.answers.retain(|_, (_, until)| now < *until);
        }
        if self.answers.len() >= ENTRIES_MAX {
            self.answers.clear();
        }
        self.answers.insert(sum, (verdict.clone(), now + self.kept));
    }

    fn sum(&self, question: &Question<'_>) -> Option<Sum> {
        let kind = match question {
            Question::User { .. } => b'u',
            Question::Vhost { .. } => b'v',
            Question::Resource { .. } => b'r',
            Question::Topic { .. } => b't',
        };
        // A form says the same only for the same question, and the key stands before all that can be chosen.
        let sum = Sha256::new().chain_update(self.key.as_ref()?.as_slice()).chain_update([kind]);
        Some(sum.chain_update(question.form().as_bytes()).finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &str) -> Question<'_> {
        Question::User { name, password: b"p" }
    }

    #[test]
    fn an_answer_is_remembered_for_its_time() {
        let mut cache = Cache::new(Duration::from_secs(5));
        let start = Instant::now();
        let verdict = Verdict::Allow("management".to_owned());
        cache.put(&question("a"), &verdict, start);
        assert_eq!(cache.get(&question("a"), start + Duration::from_millis(4999)), Some(verdict));
        assert_eq!(cache.get(&question("a"), start + Duration::from_secs(5)), None);
        assert_eq!(cache.get(&question("b"), start), None);
        assert_eq!(cache.get(&Question::User { name: "a", password: b"q" }, start), None);
    }

    #[test]
    fn it_is_bounded() {
        let mut cache = Cache::new(Duration::from_secs(5));
        let start = Instant::now();
        for nth in 0..ENTRIES_MAX + 10 {
            cache.put(&question(&nth.to_string()), &Verdict::Deny(String::new()), start);
        }
        assert!(cache.answers.len() <= ENTRIES_MAX);
        assert!(cache.get(&question(&(ENTRIES_MAX + 9).to_string()), start).is_some());
    }
}
