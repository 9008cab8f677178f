//! What the pattern of a policy keeps to match the next name faster: there may be thousands of them.

use crate::allocated::held_bytes;
use courser_auth::Pattern;

/// A thread of each of these matches it, as the threads of a broker do that serve declares.
const THREADS: u64 = 9;
const NAMES: u64 = 6;

/// A name of 255 letters a and b, another one for each number.
fn name(number: u64) -> Vec<u8> {
    let mut state = number + 1;
    let letter = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if state >> 63 == 0 { b'a' } else { b'b' }
    };
    (0..255).map(letter).collect()
}

/// What all threads together still hold when each has matched its names.
fn kept_bytes(pattern: &Pattern, text: &str) -> i64 {
    let of_thread = |thread: u64| {
        let before = held_bytes();
        for nth in 0..NAMES {
            assert!(!pattern.matches(&name(thread * NAMES + nth)), "{text}");
        }
        held_bytes() - before
    };
    std::thread::scope(|scope| {
        let kept = |thread| scope.spawn(move || of_thread(thread)).join().expect("no panic");
        (0..THREADS).map(kept).sum()
    })
}

#[test]
fn a_policys_pattern_keeps_little_whichever_threads_match_it() {
    for text in [
        // A state for almost every letter of every name.
        "^[ab]*a[ab]{12}c",
        "[ab]*a[ab]{12}c$",
        "a[ab]{12}c[ab]*d",
        // Alternatives that are left for later with each letter.
        "^(?:(?:b??){800}[ab])*c",
        // A place of each group for each state.
        &format!("^{}d", "(c)?".repeat(900)),
    ] {
        let pattern = Pattern::of_policy(text).expect(text);
        let most = (2 * pattern.cost() as i64).max(32 << 10) + (4 << 10);
        let kept = kept_bytes(&pattern, text);
        assert!(kept <= most, "{kept} bytes are kept of {text}");
    }
}
