//! The pattern of a policy, compiled.

use super::{PolicyError, invalid};
use courser_auth::{PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX, Pattern};
use regex::bytes::{Regex, RegexBuilder};

/// Bytes that the compiled form of a pattern may take that an earlier version has accepted.
const RESTORED_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug)]
pub(super) enum NamePattern {
    Linear(Regex),
    /// What only an engine that backtracks can match, in a bounded number of steps.
    Backtracking(Pattern),
}

impl NamePattern {
    /// Compiles a pattern that an operator writes.
    pub fn new(text: &str) -> Result<Self, PolicyError> {
        if text.len() > PATTERN_BYTES_MAX {
            // Even the syntax tree of a long text takes many times its bytes.
            let why = format!("has {} bytes, and may have {PATTERN_BYTES_MAX}", text.len());
            return Err(invalid("pattern", why));
        }
        if let Ok(regex) = linear(text, PATTERN_COMPILED_BYTES_MAX) {
            return Ok(NamePattern::Linear(regex));
        }
        // All names of queues and exchanges are matched, so each may cost little.
        Pattern::of_list(text).map(NamePattern::Backtracking).map_err(|error| {
            invalid("pattern", format!("should be regular expression but is invalid: {error}"))
        })
    }

    /// Compiles a pattern from a log or a checkpoint. Earlier versions accepted larger ones.
    pub fn restore(text: &str) -> Result<Self, PolicyError> {
        Self::new(text).or_else(|error| {
            linear(text, RESTORED_BYTES_MAX).map(NamePattern::Linear).map_err(|_| error)
        })
    }

    /// Whether a match may take more steps than the name has bytes.
    pub fn backtracks(&self) -> bool {
        matches!(self, NamePattern::Backtracking(pattern) if pattern.backtracks())
    }

    pub fn is_match(&self, name: &[u8]) -> bool {
        match self {
            NamePattern::Linear(regex) => regex.is_match(name),
            NamePattern::Backtracking(pattern) => pattern.matches(name),
        }
    }
}

fn linear(text: &str, compiled_bytes_max: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text)
        .size_limit(compiled_bytes_max)
        .dfa_size_limit(PATTERN_COMPILED_BYTES_MAX)
        .build()
}
