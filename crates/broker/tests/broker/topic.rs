//! Topic exchanges.

use crate::support::{Client, World, processor_time};
use proptest::prelude::*;
use std::time::Duration;

/// What a pattern means, word by word and without any index.
fn naive(pattern: &[&str], key: &[&str]) -> bool {
    match (pattern.split_first(), key.split_first()) {
        (None, None) => true,
        (Some((&"#", rest)), _) => (0..=key.len()).any(|skipped| naive(rest, &key[skipped..])),
        (Some((&"*", rest)), Some((_, words))) => naive(rest, words),
        (Some((word, rest)), Some((first, words))) => word == first && naive(rest, words),
        _ => false,
    }
}

fn words(text: &str) -> Vec<&str> {
    if text.is_empty() { vec![] } else { text.split('.').collect() }
}

fn matches(pattern: &str, key: &str) -> bool {
    naive(&words(pattern), &words(key))
}

/// Queues named after patterns, each bound by its own.
fn bound(world: &World, patterns: &[String]) -> Client {
    let mut client = world.connect();
    for (nth, pattern) in patterns.iter().enumerate() {
        client.declare(&nth.to_string());
        client.bind(&nth.to_string(), "amq.topic", pattern);
    }
    client
}

/// Which of the queues a message with this key goes to.
fn reached(client: &mut Client, world: &World, queues: usize, key: &str) -> Vec<usize> {
    client.publish("amq.topic", key, key);
    let reached: Vec<usize> =
        (0..queues).filter(|nth| world.counts(&nth.to_string()).0 == 1).collect();
    for nth in &reached {
        assert_eq!(client.pop_all(&nth.to_string()), [key], "one copy each");
    }
    reached
}

#[test]
fn patterns_match_as_the_specification_says() {
    for (pattern, key, expected) in [
        ("a.b", "a.b", true),
        ("a.b", "a.b.c", false),
        ("a.*", "a.b", true),
        ("a.*", "a", false),
        ("a.*", "a.b.c", false),
        ("*", "", false),
        ("*", "a", true),
        ("#", "", true),
        ("#", "a.b.c", true),
        ("a.#", "a", true),
        ("a.#", "a.b.c", true),
        ("a.#", "b", false),
        ("#.c", "a.b.c", true),
        ("#.c", "c", true),
        ("a.#.c", "a.c", true),
        ("a.#.c", "a.b.b.c", true),
        ("a.#.c", "a.b.b", false),
        ("#.#", "", true),
        ("#.*.#", "", false),
        ("*.#.*", "a", false),
        ("*.#.*", "a.b", true),
        ("", "", true),
        ("", "a", false),
        ("a..b", "a..b", true),
        ("a.*.b", "a..b", true),
        ("a#", "a.b", false),
        ("a*", "ab", false),
    ] {
        let world = World::new();
        let mut client = bound(&world, &[pattern.to_owned()]);
        let reached = !reached(&mut client, &world, 1, key).is_empty();
        assert_eq!(reached, expected, "'{pattern}' and '{key}'");
        assert_eq!(matches(pattern, key), expected, "the naive matcher is wrong itself");
    }
}

fn word() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just("c"), Just("")]
}

fn pattern_word() -> impl Strategy<Value = &'static str> {
    prop_oneof![2 => word(), 1 => Just("*"), 2 => Just("#")]
}

fn joined(
    words: impl Strategy<Value = &'static str>,
    most: usize,
) -> impl Strategy<Value = String> {
    prop::collection::vec(words, 0..=most).prop_map(|words| words.join("."))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_index_agrees_with_a_naive_matcher(
        patterns in prop::collection::vec(joined(pattern_word(), 6), 1..12),
        unbound in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        keys in prop::collection::vec(joined(word(), 7), 1..12),
    ) {
        let world = World::new();
        let mut client = bound(&world, &patterns);
        let mut live: Vec<Option<&str>> = patterns.iter().map(|one| Some(&**one)).collect();
        for index in unbound {
            let nth = index.index(patterns.len());
            client.unbind(&nth.to_string(), "amq.topic", &patterns[nth]);
            live[nth] = None;
        }
        for key in &keys {
            let expected: Vec<usize> = (0..live.len())
                .filter(|nth| live[*nth].is_some_and(|pattern| matches(pattern, key)))
                .collect();
            prop_assert_eq!(reached(&mut client, &world, patterns.len(), key), expected);
        }
    }
}

/// The least time of many tries to route a message that one of `bindings` patterns matches.
fn routing_time(bindings: usize) -> Duration {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.declare("rest");
    for nth in 0..bindings {
        let queue = if nth == 0 { "q" } else { "rest" };
        client.bind(queue, "amq.topic", &format!("*.w{nth}.#.end"));
    }
    let tries = (0..50).map(|nth| {
        // A key that was not used before, so that no route is remembered for it.
        let key = format!("k{nth}.w0.x.end");
        let start = processor_time();
        client.publish("amq.topic", &key, "");
        processor_time() - start
    });
    let least = tries.min().unwrap_or_default();
    assert_eq!(world.counts("q").0, 50);
    assert_eq!(world.counts("rest").0, 0);
    least
}

#[test]
fn ten_thousand_bindings_do_not_cost_ten_thousand_comparisons() {
    let (few, many) = (routing_time(10), routing_time(10_000));
    // Comparing with each would take a hundred times as long and more.
    assert!(many < few * 20, "{few:?} with 10 bindings, {many:?} with 10,000");
}

#[test]
fn a_pattern_of_many_hashes_costs_no_exponential_time() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.bind("q", "amq.topic", &["#"; 100].join("."));
    client.bind("q", "amq.topic", &["#.x"; 60].join("."));
    client.bind("q", "amq.topic", &["#.*"; 60].join("."));
    let key = ["x"; 120].join(".");
    let start = processor_time();
    client.publish("amq.topic", &key, "found");
    assert!(processor_time() - start < Duration::from_secs(5));
    assert_eq!(client.pop_all("q"), ["found"]);
}
