//! The engine that never backtracks.

use super::{Bounds, COMPILED_BYTES_MAX, PatternError};
use parking_lot::Mutex;
use regex_automata::Input;
use regex_automata::meta::{self, Cache};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::util::syntax;

/// What a frugal pattern may use to match it faster, in either direction, if its compiled form is no larger.
const CACHE_BYTES_LEAST: usize = 16 << 10;

/// A pattern that keeps little, however it is matched. By itself the engine keeps what each thread has used at some time to match
/// it: a state for each byte of a name that it has seen, and for an engine that does without states a stack that may have
/// megabytes.
#[derive(Debug)]
pub(super) struct Frugal {
    regex: meta::Regex,
    /// What it keeps from one match to the next has no more bytes.
    kept_max: usize,
    /// Taken while one thread uses it; another one does with a new one meanwhile.
    kept: Mutex<Option<Box<Cache>>>,
}

impl Frugal {
    /// A pattern whose compiled form has so many bytes.
    pub fn new(regex: meta::Regex, compiled_bytes: usize) -> Self {
        // Both directions, or one of them and what an engine needs beside that does without.
        Frugal { regex, kept_max: 2 * cache_bytes(compiled_bytes), kept: Mutex::default() }
    }

    pub fn is_match(&self, name: &[u8]) -> bool {
        let kept = self.kept.lock().take();
        let mut cache = kept.unwrap_or_else(|| Box::new(self.regex.create_cache()));
        let input = Input::new(name).earliest(true);
        let is_match = self.regex.search_half_with(&mut cache, &input).is_some();
        if cache.memory_usage() <= self.kept_max {
            *self.kept.lock() = Some(cache);
        }
        is_match
    }
}

/// What a frugal pattern may use to match it faster whose compiled form has so many bytes. As that has a bound for all policies of
/// a vhost, this has one.
fn cache_bytes(compiled_bytes: usize) -> usize {
    compiled_bytes.max(CACHE_BYTES_LEAST)
}

/// The pattern, and the first of the sizes from that of `bounds` on in which it has room; none if it needs the other engine.
///
/// # Errors
/// If it has no room in any of them.
pub(super) fn compile(
    text: &str,
    unicode: bool,
    bounds: &Bounds,
) -> Result<Option<(meta::Regex, usize)>, PatternError> {
    let build = |size| {
        let cache_bytes = if bounds.is_frugal { cache_bytes(size) } else { bounds.cache_bytes };
        // It is only asked whether there is a match: where its groups are would be remembered for each state and each group.
        let config = meta::Config::new()
            .nfa_size_limit(Some(size))
            .hybrid_cache_capacity(cache_bytes)
            .which_captures(WhichCaptures::Implicit)
            .onepass(false)
            .utf8_empty(false);
        let syntax = syntax::Config::new().unicode(unicode).utf8(false);
        meta::Builder::new().configure(config).syntax(syntax).build(text).map_err(Box::new)
    };
    let mut found = match build(COMPILED_BYTES_MAX) {
        Ok(regex) => (regex, COMPILED_BYTES_MAX),
        Err(error) if let Some(size) = error.size_limit() => {
            let why = format!("Compiled regex exceeds size limit of {size} bytes.");
            return Err(PatternError::TooLarge(why));
        }
        Err(_) => return Ok(None),
    };
    // It is read again for each size: half of those that are left are ruled out each time.
    let (mut least, mut most) = (bounds.first_size.ilog2(), COMPILED_BYTES_MAX.ilog2());
    while least < most {
        let middle = least.midpoint(most);
        match build(1 << middle) {
            Ok(regex) => (found, most) = ((regex, 1 << middle), middle),
            Err(_) => least = middle + 1,
        }
    }
    Ok(Some(found))
}
