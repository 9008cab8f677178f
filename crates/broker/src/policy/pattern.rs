//! The pattern of a policy, compiled.

use super::{PolicyError, invalid};
use crate::work;
use courser_auth::{PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX, Pattern};
use regex::bytes::{Regex, RegexBuilder};

/// Bytes that the compiled form of a pattern may take that an earlier version has accepted.
const RESTORED_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug)]
pub(super) enum NamePattern {
    /// As permissions have them.
    Usual(Pattern),
    /// What an earlier version has accepted, and a new policy may not have.
    Kept(Regex),
    /// Likewise, but no engine takes it any more: it matches nothing. Why that is.
    Refused(String),
}

impl NamePattern {
    /// Compiles a pattern that an operator writes.
    pub fn new(text: &str) -> Result<Self, PolicyError> {
        if text.len() > PATTERN_BYTES_MAX {
            // Even the syntax tree of a long text takes many times its bytes.
            let why = format!("has {} bytes, and may have {PATTERN_BYTES_MAX}", text.len());
            return Err(invalid("pattern", why));
        }
        // All names of queues and exchanges are matched, so each may cost little.
        Pattern::of_policy(text).map(NamePattern::Usual).map_err(|error| {
            invalid("pattern", format!("should be regular expression but is invalid: {error}"))
        })
    }

    /// Compiles a pattern from a log or a checkpoint, as far as it can be.
    pub fn restore(text: &str) -> Self {
        let usual = Self::new(text);
        let refused = |error: PolicyError| NamePattern::Refused(error.to_string());
        usual.unwrap_or_else(|error| Self::kept(text).unwrap_or_else(|| refused(error)))
    }

    /// Why it matches nothing, if it can't be compiled any more.
    pub fn refused(&self) -> Option<&str> {
        match self {
            NamePattern::Refused(why) => Some(why),
            _ => None,
        }
    }

    fn kept(text: &str) -> Option<Self> {
        if let Ok(pattern) = Pattern::kept(text) {
            return Some(NamePattern::Usual(pattern));
        }
        let mut builder = RegexBuilder::new(text);
        let builder = builder.size_limit(RESTORED_BYTES_MAX);
        let kept = builder.dfa_size_limit(PATTERN_COMPILED_BYTES_MAX).build();
        kept.map(NamePattern::Kept).ok()
    }

    /// What matching it with a name may cost at most, as [`Pattern::cost`].
    pub fn cost(&self) -> usize {
        match self {
            NamePattern::Usual(pattern) => pattern.cost(),
            NamePattern::Kept(_) => RESTORED_BYTES_MAX,
            NamePattern::Refused(_) => 0,
        }
    }

    pub fn is_match(&self, name: &[u8]) -> bool {
        work::count_match(self.cost());
        match self {
            NamePattern::Usual(pattern) => pattern.matches(name),
            NamePattern::Kept(regex) => regex.is_match(name),
            NamePattern::Refused(_) => false,
        }
    }
}
