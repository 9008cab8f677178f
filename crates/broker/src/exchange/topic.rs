//! Topic exchanges: patterns of words, `*` for one and `#` for any number (AMQP 0-9-1, 3.1.3.3).
//!
//! Patterns share a trie by words, so that matching costs what the routing key and the matching
//! patterns are long, not how many patterns there are.

use super::Destination;
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Default)]
pub(super) struct TopicIndex {
    root: Node,
}

#[derive(Default)]
struct Node {
    words: FxHashMap<Box<[u8]>, Node>,
    one: Option<Box<Node>>,
    many: Option<Box<Node>>,
    destinations: Vec<Destination>,
}

impl TopicIndex {
    pub fn matches(&self, routing_key: &[u8], found: &mut dyn FnMut(&Destination)) {
        // A key has at most 255 bytes, so at most 256 words, mostly few.
        let words: Vec<&[u8]> = words(routing_key).collect();
        Matching { words: &words, seen: FxHashSet::default() }.descend(&self.root, 0, found);
    }

    pub fn add(&mut self, destination: &Destination, pattern: &[u8]) {
        let mut node = &mut self.root;
        for word in words(pattern) {
            node = match word {
                b"*" => node.one.get_or_insert_default(),
                b"#" => node.many.get_or_insert_default(),
                _ => node.words.entry(word.into()).or_default(),
            };
        }
        node.destinations.push(destination.clone());
    }

    pub fn remove(&mut self, destination: u64, pattern: &[u8]) {
        let words: Vec<&[u8]> = words(pattern).collect();
        self.root.remove(destination, &words);
    }
}

/// Whether a routing key matches a pattern.
pub(crate) fn topic_matches(pattern: &[u8], routing_key: &[u8]) -> bool {
    let (pattern, key): (Vec<_>, Vec<_>) = (words(pattern).collect(), words(routing_key).collect());
    // For each number of words of the key: whether the pattern so far matches them.
    let mut reaches = vec![false; key.len() + 1];
    reaches[0] = true;
    for word in pattern {
        let before = reaches.clone();
        for at in 0..reaches.len() {
            reaches[at] = match word {
                b"#" => before[at] || at > 0 && reaches[at - 1],
                b"*" => at > 0 && before[at - 1],
                word => at > 0 && before[at - 1] && key[at - 1] == word,
            };
        }
    }
    reaches[key.len()]
}

/// The words between the dots; an empty key has none.
fn words(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    key.split(|byte| *byte == b'.').filter(|_| !key.is_empty())
}

/// One walk through the trie.
struct Matching<'k> {
    words: &'k [&'k [u8]],
    /// Where the walk has been below a `#`, which can be reached in many ways: without this, a
    /// pattern of many `#` would cost exponential time.
    seen: FxHashSet<(*const Node, usize)>,
}

impl Matching<'_> {
    fn descend(&mut self, node: &Node, at: usize, found: &mut dyn FnMut(&Destination)) {
        if let Some(many) = &node.many {
            for next in at..=self.words.len() {
                if !self.seen.insert((&raw const **many, next)) {
                    break;
                }
                self.descend(many, next, found);
            }
        }
        let Some(word) = self.words.get(at) else {
            node.destinations.iter().for_each(found);
            return;
        };
        if let Some(next) = node.words.get(*word) {
            self.descend(next, at + 1, found);
        }
        if let Some(one) = &node.one {
            self.descend(one, at + 1, found);
        }
    }
}

impl Node {
    /// Removes the destination at the end of `pattern`. Returns whether the node is now useless.
    fn remove(&mut self, destination: u64, pattern: &[&[u8]]) -> bool {
        match pattern.split_first() {
            None => self.destinations.retain(|known| known.id() != destination),
            Some((&b"*", rest)) => remove_below(&mut self.one, destination, rest),
            Some((&b"#", rest)) => remove_below(&mut self.many, destination, rest),
            Some((word, rest)) => {
                if self.words.get_mut(*word).is_some_and(|node| node.remove(destination, rest)) {
                    self.words.remove(*word);
                }
            }
        }
        self.destinations.is_empty()
            && self.words.is_empty()
            && self.one.is_none()
            && self.many.is_none()
    }
}

fn remove_below(child: &mut Option<Box<Node>>, destination: u64, rest: &[&[u8]]) {
    if child.as_mut().is_some_and(|node| node.remove(destination, rest)) {
        *child = None;
    }
}
