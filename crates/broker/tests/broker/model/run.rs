//! Does each action to the broker and to the model, and compares.

use super::queues::{Consumer, Model, Position, Seen};
use super::{Action, CHANNELS, Place, QUEUES, SESSIONS};
use crate::support::{Client, Delivery, Heard, Message, Step, World, short};
use courser_codec::{basic, channel};
use std::collections::HashMap;

pub struct Run {
    world: World,
    clients: Vec<Client>,
    model: Model,
    published: usize,
    consumed: usize,
}

impl Run {
    pub fn new() -> Self {
        let world = World::new();
        let mut clients: Vec<Client> = (0..SESSIONS).map(|_| connect(&world)).collect();
        for queue in QUEUES {
            clients[0].declare(queue);
            clients[0].bind(queue, "amq.fanout", "");
        }
        Run { world, clients, model: Model::default(), published: 0, consumed: 0 }
    }

    pub fn step(&mut self, action: &Action) {
        self.act(action);
        self.compare();
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Publish { place, queue, count } => self.publish(place, queue, count),
            Action::Consume { place, queue, no_ack, prefetch } => {
                self.consume(place, queue, no_ack, prefetch);
            }
            Action::Cancel { pick } => self.cancel(pick),
            Action::Get { place, queue, no_ack } => self.get(place, queue, no_ack),
            Action::Ack { pick, multiple } => {
                let Some((place, tag)) = self.pick_unacked(pick) else { return };
                self.model.settle(place, tag, multiple);
                let ack = basic::Ack { delivery_tag: tag, multiple };
                self.client(place).tell_on(place.channel, ack);
            }
            Action::Refuse { pick, multiple, requeue } => self.refuse(pick, multiple, requeue),
            Action::Recover { place } => {
                let all = self.model.settle(place, u64::MAX - 1, true);
                self.model.requeue(all);
                let recover = basic::Recover { requeue: true };
                self.client(place).call_on(place.channel, recover);
            }
            Action::LimitChannel { place, prefetch: prefetch_count } => {
                self.model.channel(place).prefetch = prefetch_count;
                let qos = basic::Qos { prefetch_count, global: true, ..Default::default() };
                self.client(place).call_on(place.channel, qos);
            }
            Action::Flow { place, active } => {
                self.model.channel(place).flow = active;
                let answer = self.client(place).call_on(place.channel, channel::Flow { active });
                assert_eq!(answer, Heard::FlowOk(active));
            }
            Action::Purge { queue } => {
                let waited = std::mem::take(&mut self.model.queues[queue].ready).len();
                assert_eq!(self.clients[0].purge(QUEUES[queue]), Heard::Count(waited as u32));
            }
            Action::CloseChannel { place } => {
                self.model.close_channel(place);
                let client = self.client(place);
                client.close_channel(place.channel);
                client.open_channel(place.channel);
            }
            Action::Reconnect { session } => {
                for channel in 1..=CHANNELS {
                    self.model.close_channel(Place { session, channel });
                }
                self.clients[session].disconnect();
                self.clients[session] = connect(&self.world);
            }
        }
    }

    fn client(&mut self, place: Place) -> &mut Client {
        &mut self.clients[place.session]
    }

    fn publish(&mut self, place: Place, queue: Option<usize>, count: usize) {
        let mut steps = Vec::new();
        for _ in 0..count {
            let body = self.published.to_string();
            self.published += 1;
            let message = match queue {
                Some(queue) => Message::new("", QUEUES[queue], &body),
                None => Message::new("amq.fanout", "", &body),
            };
            let reached = queue.map_or(0..QUEUES.len(), |queue| queue..queue + 1);
            reached.for_each(|queue| self.model.publish(queue, body.clone()));
            steps.push(Step::Publish(place.channel, message));
        }
        self.client(place).read(&steps);
    }

    fn consume(&mut self, place: Place, queue: usize, no_ack: bool, prefetch: u16) {
        let tag = format!("c{}", self.consumed);
        self.consumed += 1;
        let consumer = Consumer { place, queue, no_ack, prefetch };
        self.model.consumers.insert(tag.clone(), consumer);
        self.model.channel(place);
        let client = self.client(place);
        let qos = basic::Qos { prefetch_count: prefetch, ..Default::default() };
        client.call_on(place.channel, qos);
        let (queue, consumer_tag) = (short(QUEUES[queue]), short(&tag));
        let consume = basic::Consume { queue, consumer_tag, no_ack, ..Default::default() };
        assert_eq!(client.consume_on(place.channel, consume), tag);
    }

    fn cancel(&mut self, pick: usize) {
        let count = self.model.consumers.len().max(1);
        let Some(tag) = self.model.consumers.keys().nth(pick % count).cloned() else { return };
        let Some(consumer) = self.model.consumers.remove(&tag) else { return };
        let cancel = basic::Cancel { consumer_tag: short(&tag), nowait: false };
        let answer = self.client(consumer.place).call_on(consumer.place.channel, cancel);
        assert_eq!(answer, Heard::CancelOk(tag));
    }

    fn get(&mut self, place: Place, queue: usize, no_ack: bool) {
        let oldest = self.model.queues[queue].ready.first().copied();
        let get = basic::Get { queue: short(QUEUES[queue]), no_ack };
        match (self.client(place).call_on(place.channel, get), oldest) {
            (Heard::GetEmpty, None) => {}
            (Heard::GetOk { delivery, left }, Some(oldest)) => {
                let at = self.model.deliver(place, queue, None, no_ack, &seen(&delivery));
                assert_eq!(at, oldest, "a get takes the oldest message");
                assert_eq!(left as usize, self.model.queues[queue].ready.len());
            }
            (answer, oldest) => panic!("{answer:?} where the oldest is {oldest:?}"),
        }
    }

    /// One of the deliveries that wait for an acknowledgement.
    fn pick_unacked(&self, pick: usize) -> Option<(Place, u64)> {
        let all = self
            .model
            .channels
            .iter()
            .flat_map(|(place, channel)| channel.unacked.keys().map(|tag| (*place, *tag)));
        let all: Vec<(Place, u64)> = all.collect();
        all.get(pick % all.len().max(1)).copied()
    }

    fn refuse(&mut self, pick: usize, multiple: bool, requeue: bool) {
        let Some((place, delivery_tag)) = self.pick_unacked(pick) else { return };
        let returned = self.model.settle(place, delivery_tag, multiple);
        if requeue {
            self.model.requeue(returned);
        }
        let client = self.client(place);
        if multiple {
            client.tell_on(place.channel, basic::Nack { delivery_tag, multiple, requeue });
        } else {
            client.tell_on(place.channel, basic::Reject { delivery_tag, requeue });
        }
    }

    /// Takes in what everybody got by the last step, and compares the state after it.
    fn compare(&mut self) {
        let mut newest: HashMap<usize, Position> = HashMap::new();
        for session in 0..SESSIONS {
            let mut last: HashMap<(u16, usize), Position> = HashMap::new();
            for delivery in self.clients[session].deliveries() {
                let place = Place { session, channel: delivery.channel };
                let consumer = self.model.consumers.get(&delivery.consumer);
                let consumer = *consumer.expect("a consumer that was not cancelled");
                assert_eq!(consumer.place, place);
                let Consumer { queue, no_ack, .. } = consumer;
                assert!(self.model.has_credit(&delivery.consumer), "more than the prefetch");
                let tag = Some(&*delivery.consumer);
                let at = self.model.deliver(place, queue, tag, no_ack, &seen(&delivery));
                let before = last.insert((place.channel, queue), at);
                assert!(before.is_none_or(|before| before < at), "in the queue's order");
                let newest = newest.entry(queue).or_insert(at);
                *newest = at.max(*newest);
            }
            assert_eq!(self.clients[session].heard(), [], "nothing else is said");
        }
        for (queue, newest) in newest {
            let oldest = self.model.queues[queue].ready.first();
            assert!(oldest.is_none_or(|oldest| newest < *oldest), "the oldest go first");
        }
        for (queue, name) in QUEUES.iter().enumerate() {
            assert_eq!(self.world.counts(name), self.model.counts(queue), "the counts of {name}");
            let ready = !self.model.queues[queue].ready.is_empty();
            let mut consumers = self.model.consumers.iter().filter(|(_, one)| one.queue == queue);
            let idle = consumers.find(|(tag, _)| self.model.has_credit(tag));
            assert!(!ready || idle.is_none(), "{name} waits although {idle:?} could take more");
        }
    }

    /// Everything left is there, once, in order.
    pub fn finish(mut self) {
        for session in 0..SESSIONS {
            self.step(&Action::Reconnect { session });
        }
        for (queue, name) in QUEUES.iter().enumerate() {
            let state = &self.model.queues[queue];
            let left: Vec<String> =
                state.ready.iter().map(|at| state.bodies[*at as usize].clone()).collect();
            assert_eq!(self.clients[0].pop_all(name), left);
        }
        assert_eq!(self.world.broker.messages_bytes(), 0, "nothing is kept that is in no queue");
    }
}

fn connect(world: &World) -> Client {
    let mut client = world.connect();
    (2..=CHANNELS).for_each(|number| client.open_channel(number));
    client
}

fn seen(delivery: &Delivery) -> Seen<'_> {
    let Delivery { tag, redelivered, .. } = *delivery;
    Seen { body: delivery.text(), tag, redelivered }
}
