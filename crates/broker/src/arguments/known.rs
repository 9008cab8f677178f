//! Which arguments mean something, and what comes of each.

use super::{consumer, exchange, queue};
use crate::exchange::headers::X_MATCH;

/// What an argument is given to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentOf {
    /// `queue.declare`.
    Queue,
    /// `exchange.declare`.
    Exchange,
    /// `queue.bind` and `exchange.bind`.
    Binding,
    /// `basic.consume`.
    Consumer,
}

/// What comes of an argument whose value is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// What it asks for is done.
    Done,
    /// It is taken, since clients of RabbitMQ send it, and nothing comes of it.
    None,
}

/// An argument that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownArgument {
    /// What it is given to.
    pub of: ArgumentOf,
    /// Its name.
    pub name: &'static str,
    /// What comes of it, where it is for that type of queue or exchange.
    pub effect: Effect,
}

/// All arguments that mean something. Declarations, bindings and consumers are checked by the same tables.
pub fn known_arguments() -> impl Iterator<Item = KnownArgument> {
    let of_bindings = [(X_MATCH, Effect::Done)];
    let all: [(ArgumentOf, Box<dyn Iterator<Item = _>>); 4] = [
        (ArgumentOf::Queue, Box::new(queue::effects())),
        (ArgumentOf::Exchange, Box::new(exchange::effects())),
        (ArgumentOf::Binding, Box::new(of_bindings.into_iter())),
        (ArgumentOf::Consumer, Box::new(consumer::effects())),
    ];
    let with = |(of, known): (ArgumentOf, Box<dyn Iterator<Item = (&'static str, Effect)>>)| {
        known.map(move |(name, effect)| KnownArgument { of, name, effect })
    };
    all.into_iter().flat_map(with)
}
