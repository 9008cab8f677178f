//! Topic exchanges: patterns of words, `*` for one and `#` for any number (AMQP 0-9-1, 3.1.3.3).
//!
//! Patterns share a trie by words, so that matching costs what the routing key and the matching
//! patterns are long, not how many patterns there are.

use super::destinations::Destinations;
use super::{Destination, Steps, shrink};
use crate::keyed::KeyedMap;
use rustc_hash::FxHashSet;

#[derive(Default)]
pub(super) struct TopicIndex {
    root: Node,
}

#[derive(Default)]
struct Node {
    words: Words,
    one: Option<Box<Node>>,
    many: Option<Box<Node>>,
    destinations: Destinations,
}

/// What follows a node, by the next word. Most patterns end in a chain, whose nodes are followed by one each: that one needs no
/// map.
#[derive(Default)]
struct Words {
    first: Option<Box<(Box<[u8]>, Node)>>,
    /// Others than the first; empty where there is none.
    others: Option<Box<KeyedMap<Box<[u8]>, Node>>>,
}

impl Words {
    fn get(&self, word: &[u8]) -> Option<&Node> {
        match &self.first {
            Some(first) if *first.0 == *word => Some(&first.1),
            _ => self.others.as_ref()?.get(word),
        }
    }

    fn get_or_insert(&mut self, word: &[u8]) -> &mut Node {
        let first = self.first.get_or_insert_with(|| Box::new((word.into(), Node::default())));
        if *first.0 == *word {
            return &mut first.1;
        }
        self.others.get_or_insert_default().entry(word.into()).or_default()
    }

    /// Removes the destination at the end of a pattern that goes on with `word`, and what leads to nothing then.
    fn remove_below(&mut self, word: &[u8], destination: u64, rest: &[&[u8]]) {
        match (&mut self.first, &mut self.others) {
            (Some(first), _) if *first.0 == *word => {
                if first.1.remove(destination, rest) {
                    self.first = None;
                }
            }
            (_, Some(others)) => {
                if others.get_mut(word).is_some_and(|node| node.remove(destination, rest)) {
                    others.remove(word);
                    shrink(others);
                }
            }
            (_, None) => {}
        }
        self.tidy();
    }

    /// Where only one is left, it is the first.
    fn tidy(&mut self) {
        let Some(others) = &mut self.others else { return };
        if self.first.is_none() && others.len() == 1 {
            self.first = others.drain().next().map(Box::new);
        }
        if others.is_empty() {
            self.others = None;
        }
    }

    fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_none()
    }
}

impl TopicIndex {
    /// Calls `found` with the destinations of every pattern that matches one of the keys, once for each
    /// pattern, as far as there are steps: one for each word at a node.
    pub fn matches(&self, keys: &[&[u8]], steps: &mut Steps, found: &mut dyn FnMut(&Destination)) {
        let mut ends = (keys.len() > 1).then(FxHashSet::default);
        for key in keys {
            // A key has at most 255 bytes, so at most 256 words, mostly few.
            let words: Vec<&[u8]> = words(key).collect();
            let mut matching = Matching { words: &words, seen: FxHashSet::default(), steps };
            matching.descend(&self.root, 0, &mut |end| {
                if ends.as_mut().is_none_or(|ends| ends.insert(&raw const *end)) {
                    end.destinations.as_slice().iter().for_each(&mut *found);
                }
            });
            if steps.is_over() {
                break;
            }
        }
    }

    pub fn add(&mut self, destination: &Destination, pattern: &[u8]) {
        let mut node = &mut self.root;
        for word in words(pattern) {
            node = match word {
                b"*" => node.one.get_or_insert_default(),
                b"#" => node.many.get_or_insert_default(),
                _ => node.words.get_or_insert(word),
            };
        }
        node.destinations.add(destination);
    }

    pub fn remove(&mut self, destination: u64, pattern: &[u8]) {
        let words: Vec<&[u8]> = words(pattern).collect();
        self.root.remove(destination, &words);
    }
}

/// Whether a routing key matches a pattern; not if there are not enough steps to find out.
pub(crate) fn topic_matches(pattern: &[u8], routing_key: &[u8], steps: &mut Steps) -> bool {
    let (pattern, key): (Vec<_>, Vec<_>) = (words(pattern).collect(), words(routing_key).collect());
    if !steps.take((pattern.len() + 1) * (key.len() + 1)) {
        return false;
    }
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
    steps: &'k mut Steps,
}

impl Matching<'_> {
    /// Calls `found` with the ends of the patterns that match.
    fn descend(&mut self, node: &Node, at: usize, found: &mut dyn FnMut(&Node)) {
        if !self.steps.step() {
            return;
        }
        if let Some(many) = &node.many {
            for next in at..=self.words.len() {
                if !self.seen.insert((&raw const **many, next)) {
                    break;
                }
                self.descend(many, next, found);
            }
        }
        let Some(word) = self.words.get(at) else {
            found(node);
            return;
        };
        if let Some(next) = node.words.get(word) {
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
            None => self.destinations.remove(destination),
            Some((&b"*", rest)) => remove_below(&mut self.one, destination, rest),
            Some((&b"#", rest)) => remove_below(&mut self.many, destination, rest),
            Some((word, rest)) => self.words.remove_below(word, destination, rest),
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
