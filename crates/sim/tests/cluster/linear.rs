//! Whether answers about queues are linearizable: whether each change and each question can have taken effect at one moment
//! between when it was asked and when it was answered, as if one broker had done one after the other.

use courser_codec::{Method, basic, queue};
use courser_sim::short;
use std::collections::HashSet;

/// Questions about one queue, before another name is used: they are searched for an order.
const QUESTIONS_MAX: usize = 24;
/// Names that are in use at the same time.
const NAMES: u64 = 2;

/// What a client asks.
#[derive(Clone, Debug)]
pub enum Question {
    /// This about a queue of this name.
    Queue(Asked, String),
    /// Whether a queue of this name is there; no part of the history.
    IsThere(String),
    /// For a message; when so many were confirmed.
    Empty { confirmed: usize },
}

/// A question about a queue.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    kind: Kind,
    name: usize,
    number: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Declare,
    Delete,
    IsThere,
}

impl Question {
    /// How it is asked; of messages, in this queue.
    pub fn method<'a>(&'a self, messages_in: &'a str) -> Method<'a> {
        let (kind, name) = match self {
            Question::Queue(asked, name) => (asked.kind, name),
            Question::IsThere(name) => (Kind::IsThere, name),
            Question::Empty { .. } => {
                return basic::Get { queue: short(messages_in), no_ack: false }.into();
            }
        };
        let declare = queue::Declare { queue: short(name), durable: true, ..Default::default() };
        match kind {
            Kind::Declare => declare.into(),
            Kind::IsThere => queue::Declare { passive: true, ..declare }.into(),
            Kind::Delete => queue::Delete { queue: short(name), ..Default::default() }.into(),
        }
    }
}

/// A question in the history of a queue.
#[derive(Debug)]
struct Op {
    kind: Kind,
    asked: u64,
    /// When it was answered, and whether the queue is there then.
    answered: Option<(u64, bool)>,
}

/// What was asked about queues.
#[derive(Default)]
pub struct History {
    now: u64,
    queues: Vec<Vec<Op>>,
    pub told: usize,
    pub empty: usize,
}

impl History {
    /// Asks one of three things about one of few queues; random numbers say which.
    pub fn ask(&mut self, which: u64, what: u64) -> Question {
        let mut name = (which % NAMES) as usize;
        let kind = [Kind::Declare, Kind::Delete, Kind::IsThere, Kind::IsThere][what as usize % 4];
        self.now += 1;
        while self.queues.get(name).is_some_and(|ops| ops.len() >= QUESTIONS_MAX) {
            name += NAMES as usize;
        }
        self.queues.resize_with(self.queues.len().max(name + 1), Vec::new);
        let ops = &mut self.queues[name];
        ops.push(Op { kind, asked: self.now, answered: None });
        let asked = Asked { kind, name, number: ops.len() - 1 };
        Question::Queue(asked, format!("asked {name}"))
    }

    /// It was answered with this method.
    pub fn answers(&mut self, asked: Asked, answer: &str) {
        self.now += 1;
        let is_there = match (asked.kind, answer) {
            (Kind::Declare | Kind::IsThere, "queue.declare-ok") => true,
            (Kind::Delete, "queue.delete-ok") | (Kind::IsThere, "channel.close") => false,
            // It was refused, or not: nothing is known of it.
            _ => return,
        };
        self.told += 1;
        if let Some(op) = self.queues[asked.name].get_mut(asked.number) {
            op.answered = Some((self.now, is_there));
        }
    }

    /// An answer said that there is no message.
    pub fn count_empty(&mut self) {
        self.empty += 1;
    }

    /// Whether all answers can have come from one broker.
    pub fn check(&self) {
        for ops in &self.queues {
            assert!(ops.len() <= 64);
            let mut seen = HashSet::new();
            assert!(has_order(ops, 0, false, &mut seen), "not linearizable: {ops:#?}");
        }
    }
}

/// Whether the rest can follow on those that are `done`, which have left the queue there or not.
fn has_order(ops: &[Op], done: u64, is_there: bool, seen: &mut HashSet<(u64, bool)>) -> bool {
    let rest = || ops.iter().enumerate().filter(|(at, _)| done & 1 << at == 0);
    let first_answer = rest().filter_map(|(_, op)| op.answered).map(|(when, _)| when).min();
    let Some(first_answer) = first_answer else { return true };
    if !seen.insert((done, is_there)) {
        return false;
    }
    rest().filter(|(_, op)| op.asked < first_answer).any(|(at, op)| {
        let next = match (op.kind, op.answered) {
            (Kind::Declare, _) => true,
            (Kind::Delete, _) => false,
            (Kind::IsThere, Some((_, told))) if told == is_there => is_there,
            // One that is not answered tells nothing.
            (Kind::IsThere, _) => return false,
        };
        has_order(ops, done | 1 << at, next, seen)
    })
}

fn op(kind: Kind, asked: u64, answered: Option<(u64, bool)>) -> Op {
    Op { kind, asked, answered }
}

#[test]
fn an_order_is_found_where_there_is_one() {
    use Kind::{Declare, Delete, IsThere};
    let good = [
        vec![op(Declare, 1, Some((2, true))), op(IsThere, 3, Some((4, true)))],
        // Beside each other.
        vec![op(Declare, 1, Some((4, true))), op(IsThere, 2, Some((3, false)))],
        vec![op(Declare, 1, Some((4, true))), op(IsThere, 2, Some((3, true)))],
        // One that was never answered may have taken effect, at any time, or not.
        vec![
            op(Declare, 1, None),
            op(IsThere, 2, Some((3, false))),
            op(IsThere, 4, Some((5, true))),
        ],
        vec![
            op(Declare, 1, None),
            op(Delete, 2, Some((3, false))),
            op(IsThere, 4, Some((5, false))),
        ],
    ];
    for ops in good {
        assert!(has_order(&ops, 0, false, &mut HashSet::new()), "{ops:#?}");
    }
    let bad = [
        vec![op(Declare, 1, Some((2, true))), op(IsThere, 3, Some((4, false)))],
        vec![op(IsThere, 1, Some((2, true)))],
        vec![
            op(Declare, 1, None),
            op(IsThere, 2, Some((3, true))),
            op(IsThere, 4, Some((5, false))),
        ],
    ];
    for ops in bad {
        assert!(!has_order(&ops, 0, false, &mut HashSet::new()), "{ops:#?}");
    }
}
