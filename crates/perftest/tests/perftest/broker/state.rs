//! What the broker holds, and what it has seen.

use std::collections::{HashMap, VecDeque};

use courser_codec::{FieldTable, FieldValue, OwnedProperties, basic, queue};
use tokio::sync::{mpsc, watch};

use super::Faults;

#[derive(Default)]
pub struct State {
    pub faults: Faults,
    pub published: u64,
    pub queues: HashMap<String, Queue>,
    pub exchanges: HashMap<String, Exchange>,
    pub acknowledgements: Vec<basic::Ack>,
    pub seen: Seen,
    /// Each restart ends all connections.
    pub restarts: watch::Sender<u64>,
}

impl State {
    /// How many messages are in the queue, which is made if it is not there.
    pub fn declare_queue(&mut self, declare: &queue::Declare<'_>) -> u32 {
        let name = declare.queue.to_string();
        let arguments = declare.arguments.to_owned().unwrap();
        let is_stream =
            arguments.get("x-queue-type").and_then(|kind| kind.as_str()) == Some("stream");
        if !declare.passive {
            self.seen.queues.push((name.clone(), declare.durable, arguments));
        }
        let made = || Queue { is_stream, is_durable: declare.durable, ..Queue::default() };
        self.queues.entry(name).or_insert_with(made).ready.len() as u32
    }

    /// Only what is durable stays; clients have to connect again.
    pub fn restart(&mut self) {
        self.queues.retain(|_, queue| queue.is_durable);
        self.exchanges.retain(|_, exchange| exchange.is_durable);
        self.restarts.send_modify(|restarts| *restarts += 1);
    }
}

/// What clients have asked for, for tests to look at.
#[derive(Clone, Default)]
pub struct Seen {
    /// Name, whether it is durable, and arguments of each queue that was declared.
    pub queues: Vec<(String, bool, FieldTable)>,
    /// The same for exchanges.
    pub exchanges: Vec<(String, bool, FieldTable)>,
    /// Arguments of each consumer.
    pub consumers: Vec<FieldTable>,
    pub published: Vec<Published>,
    /// Messages taken by `basic.get`.
    pub gets: u64,
    pub nacks: Vec<basic::Nack>,
    /// Publishes and acknowledgements of each transaction.
    pub commits: Vec<u64>,
    pub connections: usize,
    pub channels: usize,
    pub bindings: usize,
    pub unbindings: usize,
    pub deleted_queues: usize,
}

#[derive(Clone)]
pub struct Published {
    pub key: String,
    pub properties: OwnedProperties,
    pub size_bytes: usize,
}

#[derive(Default)]
pub struct Exchange {
    pub kind: String,
    pub is_durable: bool,
    /// Key and queue of each binding.
    pub bindings: Vec<(String, String)>,
}

impl Exchange {
    /// The queues that get a message with this key.
    pub fn route(&self, key: &str) -> Vec<String> {
        let takes = |binding: &&(String, String)| self.kind != "direct" || binding.0 == key;
        self.bindings.iter().filter(takes).map(|(_, queue)| queue.clone()).collect()
    }
}

/// A message, as it is in a queue.
#[derive(Clone)]
pub struct Message {
    pub body: Vec<u8>,
    pub redelivered: bool,
    /// Where it is, if it is in a stream.
    pub offset: Option<usize>,
}

/// A message on its way to a consumer of this channel.
pub type Sending = mpsc::UnboundedSender<(u16, Message)>;

#[derive(Default)]
pub struct Queue {
    pub ready: VecDeque<Message>,
    pub is_stream: bool,
    pub is_durable: bool,
    consumers: Vec<(u16, Sending)>,
    turn: usize,
}

impl Queue {
    pub fn push(&mut self, mut message: Message) {
        self.consumers.retain(|(_, consumer)| !consumer.is_closed());
        if self.is_stream {
            message.offset = Some(self.ready.len());
            for (channel, consumer) in &self.consumers {
                let _ = consumer.send((*channel, message.clone()));
            }
            return self.ready.push_back(message);
        }
        self.turn += 1;
        match self.consumers.len() {
            0 => self.ready.push_back(message),
            count => {
                let (channel, consumer) = &self.consumers[self.turn % count];
                let _ = consumer.send((*channel, message));
            }
        }
    }

    /// Adds a consumer, which gets what is there; of a stream, what is there from `offset` on.
    pub fn consume(&mut self, channel: u16, consumer: Sending, offset: Option<&FieldValue>) {
        if self.is_stream {
            let all = self.ready.len();
            let from = match offset.and_then(FieldValue::as_str) {
                Some("first") => 0,
                _ => offset.and_then(FieldValue::as_integer).map_or(all, |offset| offset as usize),
            };
            for message in self.ready.iter().skip(from) {
                let _ = consumer.send((channel, message.clone()));
            }
        }
        self.consumers.push((channel, consumer));
        if !self.is_stream {
            let waiting: Vec<_> = self.ready.drain(..).collect();
            waiting.into_iter().for_each(|message| self.push(message));
        }
    }

    /// Nothing more is sent to the consumer of this channel.
    pub fn cancel(&mut self, channel: u16, consumer: &Sending) {
        self.consumers.retain(|(of, other)| *of != channel || !other.same_channel(consumer));
    }
}
