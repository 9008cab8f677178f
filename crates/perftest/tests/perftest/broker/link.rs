//! One connection to the broker.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use courser_codec::{
    FieldTable, Method, OwnedProperties, RawProperties, ShortStr, ShortString, basic, confirm,
    exchange, queue, tx, write_body_frame, write_content_header_frame,
};
use courser_connection::server::{self, Event};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

use super::state::{Exchange, Message, Sending, State};

mod publish;

/// Time between two messages for a consumer, when they come in drips.
const DRIP_EVERY: Duration = Duration::from_millis(5);

/// One connection.
pub struct Link {
    state: Arc<Mutex<State>>,
    machine: server::Connection,
    deliveries: mpsc::UnboundedReceiver<(u16, Message)>,
    delivering: Sending,
    channels: HashMap<u16, Channel>,
    is_broken: bool,
    restarts: watch::Receiver<u64>,
}

#[derive(Default)]
struct Channel {
    /// Tag and queue of its consumer, and whether that acknowledges.
    consumer: Option<(ShortString, String, bool)>,
    delivery_tag: u64,
    /// Queue and message of each that is not acknowledged.
    unacknowledged: BTreeMap<u64, (String, Message)>,
    /// Publishes and acknowledgements since the last commit.
    in_transaction: u64,
}

impl Link {
    pub fn new(state: Arc<Mutex<State>>) -> Self {
        let properties = FieldTable::new()
            .with("product", "Test broker")
            .with("version", "1")
            .with("capabilities", server::capabilities());
        let config = server::Config { server_properties: properties, ..Default::default() };
        let (delivering, deliveries) = mpsc::unbounded_channel();
        let restarts = state.lock().unwrap().restarts.subscribe();
        Self {
            state,
            machine: server::Connection::new(Arc::new(config), Instant::now()),
            deliveries,
            delivering,
            channels: HashMap::new(),
            is_broken: false,
            restarts,
        }
    }

    pub async fn serve(mut self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        self.state.lock().unwrap().seen.connections += 1;
        self.exchange(stream).await;
        self.deliveries.close();
        self.put_back_undelivered();
        let channels: Vec<_> = self.channels.keys().copied().collect();
        channels.into_iter().for_each(|channel| self.end_channel(channel));
    }

    async fn exchange(&mut self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut input = Vec::new();
        let drips = self.state().faults.drips;
        let mut drip = tokio::time::interval(DRIP_EVERY);
        loop {
            tokio::select! {
                count = stream.read_buf(&mut input) => {
                    if count.unwrap_or(0) == 0 {
                        return;
                    }
                    let mut rest = &input[..];
                    while let Some(event) = self.machine.next(&mut rest, Instant::now()) {
                        self.act(event);
                    }
                    let used = input.len() - rest.len();
                    input.drain(..used);
                }
                _ = drip.tick(), if drips => {
                    if let Ok((channel, message)) = self.deliveries.try_recv() {
                        self.deliver(channel, message);
                    }
                }
                Some((channel, message)) = self.deliveries.recv(), if !drips => {
                    self.deliver(channel, message);
                }
                _ = self.restarts.changed() => return,
            }
            let output = std::mem::take(self.machine.output());
            if stream.write_all(&output).await.is_err()
                || self.is_broken
                || self.machine.is_closed()
            {
                return;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn act(&mut self, event: Event<'_>) {
        match event {
            Event::Login { .. } => self.machine.login_accepted(Instant::now()),
            Event::Open { .. } => self.machine.open_accepted(Instant::now()),
            Event::Publish(publish) => self.publish(&publish),
            Event::LargePublish(publish) => self.publish(&publish.as_publish()),
            Event::Request { channel, method } => self.request(channel, method),
            Event::ChannelOpened { .. } => self.state().seen.channels += 1,
            Event::ChannelClosed { channel, .. } => self.end_channel(channel),
            Event::PublishBegun { .. } | Event::Closed(_) => {}
        }
    }

    /// What was delivered on the channel and not acknowledged is back in its queue.
    fn end_channel(&mut self, channel: u16) {
        let Some(ended) = self.channels.remove(&channel) else { return };
        let mut state = self.state();
        if let Some((_, name, _)) = &ended.consumer
            && let Some(queue) = state.queues.get_mut(name)
        {
            queue.cancel(channel, &self.delivering);
        }
        for (name, message) in ended.unacknowledged.into_values() {
            if let Some(queue) = state.queues.get_mut(&name).filter(|queue| !queue.is_stream) {
                queue.push(Message { redelivered: true, ..message });
            }
        }
    }

    /// What was not sent is ready again.
    fn put_back_undelivered(&mut self) {
        while let Ok((channel, message)) = self.deliveries.try_recv() {
            let consumer = self.channels.get(&channel).and_then(|of| of.consumer.as_ref());
            let Some((_, name, _)) = consumer else { continue };
            let mut state = self.state.lock().unwrap();
            if let Some(queue) = state.queues.get_mut(name).filter(|queue| !queue.is_stream) {
                queue.cancel(channel, &self.delivering);
                queue.push(message);
            }
        }
    }

    fn request(&mut self, channel: u16, method: Method<'_>) {
        let state = self.state.clone();
        let mut state = state.lock().unwrap();
        let answer = match method {
            Method::BasicQos(_) => Method::BasicQosOk(basic::QosOk),
            Method::ConfirmSelect(_) => Method::ConfirmSelectOk(confirm::SelectOk),
            Method::TxSelect(_) => Method::TxSelectOk(tx::SelectOk),
            Method::TxCommit(_) => {
                let count =
                    std::mem::take(&mut self.channels.entry(channel).or_default().in_transaction);
                state.seen.commits.push(count);
                if state.faults.forgets_from.is_some_and(|from| state.published >= from) {
                    return;
                }
                Method::TxCommitOk(tx::CommitOk)
            }
            Method::BasicAck(ack) => {
                state.acknowledgements.push(ack);
                self.channels.entry(channel).or_default().in_transaction += 1;
                return self.settled(channel, ack.delivery_tag, ack.multiple);
            }
            Method::BasicNack(nack) => {
                state.seen.nacks.push(nack);
                drop(state);
                return self.refused(channel, nack);
            }
            Method::BasicGet(get) => return self.get(channel, &get, &mut state),
            Method::BasicCancel(cancel) => {
                drop(state);
                self.cancel(channel);
                Method::BasicCancelOk(basic::CancelOk { consumer_tag: cancel.consumer_tag })
            }
            Method::BasicConsume(consume) => {
                let arguments = consume.arguments.to_owned().unwrap();
                state.seen.consumers.push(arguments.clone());
                if arguments.get("x-priority").is_some_and(|level| level.as_integer().is_none()) {
                    let ids = (60, 20);
                    return self.machine.channel_error(channel, 406, "no", ids, Instant::now());
                }
                let name = consume.queue.to_string();
                let Some(queue) = state.queues.get_mut(&name) else {
                    return self.not_found(channel, (60, 20));
                };
                self.channels.entry(channel).or_default().consumer =
                    Some((consume.consumer_tag.into(), name, !consume.no_ack));
                let offset = arguments.get("x-stream-offset");
                queue.consume(channel, self.delivering.clone(), offset);
                Method::BasicConsumeOk(basic::ConsumeOk { consumer_tag: consume.consumer_tag })
            }
            other => {
                drop(state);
                return self.declare(channel, other);
            }
        };
        self.machine.transmit(channel, &answer);
    }

    /// What is asked of queues, exchanges and bindings.
    fn declare(&mut self, channel: u16, method: Method<'_>) {
        let state = self.state.clone();
        let mut state = state.lock().unwrap();
        let answer = match method {
            Method::QueueDeclare(_) if state.faults.declares_nothing => return,
            Method::QueueDeclare(declare) => {
                let name = declare.queue.to_string();
                if declare.passive && !state.queues.contains_key(&name) {
                    return self.not_found(channel, (50, 10));
                }
                let message_count = state.declare_queue(&declare);
                Method::QueueDeclareOk(queue::DeclareOk {
                    queue: declare.queue,
                    message_count,
                    consumer_count: 0,
                })
            }
            Method::ExchangeDeclare(declare) => {
                let name = declare.exchange.to_string();
                if declare.passive && !state.exchanges.contains_key(&name) {
                    return self.not_found(channel, (40, 10));
                }
                if !declare.passive {
                    let arguments = declare.arguments.to_owned().unwrap();
                    state.seen.exchanges.push((name.clone(), declare.durable, arguments));
                    let kind = declare.kind.to_string();
                    let made = Exchange { kind, is_durable: declare.durable, bindings: Vec::new() };
                    state.exchanges.entry(name).or_insert(made);
                }
                Method::ExchangeDeclareOk(exchange::DeclareOk)
            }
            Method::QueueBind(bind) => {
                state.seen.bindings += 1;
                let binding = (bind.routing_key.to_string(), bind.queue.to_string());
                let bound = state.exchanges.entry(bind.exchange.to_string()).or_default();
                bound.bindings.retain(|other| *other != binding);
                bound.bindings.push(binding);
                Method::QueueBindOk(queue::BindOk)
            }
            Method::QueueUnbind(_) => {
                state.seen.unbindings += 1;
                Method::QueueUnbindOk(queue::UnbindOk)
            }
            Method::QueueDelete(delete) => {
                state.seen.deleted_queues += 1;
                state.queues.remove(&delete.queue.to_string());
                Method::QueueDeleteOk(queue::DeleteOk { message_count: 0 })
            }
            Method::ExchangeDelete(delete) => {
                state.exchanges.remove(&delete.exchange.to_string());
                Method::ExchangeDeleteOk(exchange::DeleteOk)
            }
            other => panic!("{} is not expected", other.name()),
        };
        self.machine.transmit(channel, &answer);
    }

    fn cancel(&mut self, channel: u16) {
        let consumer = self.channels.get(&channel).and_then(|of| of.consumer.clone());
        let Some((_, name, _)) = consumer else { return };
        if let Some(queue) = self.state().queues.get_mut(&name) {
            queue.cancel(channel, &self.delivering);
        }
        self.put_back_undelivered();
    }

    fn settled(&mut self, channel: u16, tag: u64, multiple: bool) {
        let unacknowledged = &mut self.channels.entry(channel).or_default().unacknowledged;
        match multiple {
            true => *unacknowledged = unacknowledged.split_off(&(tag + 1)),
            false => drop(unacknowledged.remove(&tag)),
        }
    }

    fn refused(&mut self, channel: u16, nack: basic::Nack) {
        let of = self.channels.entry(channel).or_default();
        let Some((name, message)) = of.unacknowledged.remove(&nack.delivery_tag) else { return };
        if let Some(queue) = self.state().queues.get_mut(&name).filter(|_| nack.requeue) {
            queue.push(Message { redelivered: true, ..message });
        }
    }

    fn get(&mut self, channel: u16, get: &basic::Get<'_>, state: &mut State) {
        let name = get.queue.to_string();
        let taken = state.queues.get_mut(&name).and_then(|queue| queue.ready.pop_front());
        let Some(message) = taken else {
            return self.machine.transmit(channel, &Method::BasicGetEmpty(basic::GetEmpty));
        };
        state.seen.gets += 1;
        let got = basic::GetOk {
            delivery_tag: self.next_tag(channel, &name, &message, !get.no_ack),
            redelivered: message.redelivered,
            ..Default::default()
        };
        self.message(channel, Method::BasicGetOk(got), &message.body, None);
    }

    fn next_tag(&mut self, channel: u16, queue: &str, message: &Message, acks: bool) -> u64 {
        let of = self.channels.entry(channel).or_default();
        of.delivery_tag += 1;
        if acks {
            of.unacknowledged.insert(of.delivery_tag, (queue.to_owned(), message.clone()));
        }
        of.delivery_tag
    }

    fn not_found(&mut self, channel: u16, ids: (u16, u16)) {
        self.machine.channel_error(channel, 404, "no such thing", ids, Instant::now());
    }

    fn deliver(&mut self, channel: u16, message: Message) {
        let consumer = self.channels.get(&channel).and_then(|of| of.consumer.clone());
        let Some((tag, name, acks)) = consumer else { return };
        let deliver = basic::Deliver {
            consumer_tag: tag.as_short_str(),
            delivery_tag: self.next_tag(channel, &name, &message, acks),
            redelivered: message.redelivered,
            exchange: ShortStr::EMPTY,
            routing_key: ShortStr::EMPTY,
        };
        self.message(channel, Method::BasicDeliver(deliver), &message.body, message.offset);
    }

    fn message(&mut self, channel: u16, method: Method<'_>, body: &[u8], offset: Option<usize>) {
        self.machine.transmit(channel, &method);
        let (out, size) = (self.machine.output(), body.len() as u64);
        let headers = offset.map(|at| FieldTable::new().with("x-stream-offset", at as i64));
        let mut encoded = Vec::new();
        OwnedProperties { headers, ..Default::default() }.encode(&mut encoded);
        let properties = RawProperties::from_encoded(&encoded).unwrap();
        write_content_header_frame(channel, basic::CLASS_ID, size, properties, out);
        for piece in body.chunks(100_000) {
            write_body_frame(channel, piece, out);
        }
    }
}
