//! A small broker made of the connection machine: queues in memory, and faults as a test wants them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use courser_codec::{
    FieldTable, Method, RawProperties, ShortStr, ShortString, basic, confirm, exchange, queue,
    write_body_frame, write_content_header_frame,
};
use courser_connection::server::{self, Event};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

/// What goes wrong, counted over all publishes from 1.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    /// This publish is confirmed and goes nowhere.
    pub loses: Option<u64>,
    /// This publish arrives twice.
    pub doubles: Option<u64>,
    /// This publish is refused.
    pub refuses: Option<u64>,
    /// From this publish on nothing is confirmed.
    pub forgets_from: Option<u64>,
    /// With this publish its connection breaks.
    pub breaks_at: Option<u64>,
    /// With this publish its connection is closed with an error.
    pub closes_at: Option<u64>,
    /// Consumers get a message every few milliseconds.
    pub drips: bool,
}

/// Time between two messages for a consumer, when they come in drips.
const DRIP_EVERY: Duration = Duration::from_millis(5);

/// Where it listens, and what it holds.
pub struct Broker {
    pub uri: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    faults: Faults,
    published: u64,
    queues: HashMap<String, Queue>,
    exchanges: HashMap<String, Vec<String>>,
    acknowledgements: Vec<basic::Ack>,
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<Vec<u8>>,
    consumers: Vec<mpsc::UnboundedSender<Vec<u8>>>,
    turn: usize,
}

impl Queue {
    fn push(&mut self, body: Vec<u8>) {
        self.consumers.retain(|consumer| !consumer.is_closed());
        self.turn += 1;
        match self.consumers.len() {
            0 => self.ready.push_back(body),
            count => drop(self.consumers[self.turn % count].send(body)),
        }
    }
}

impl Broker {
    pub async fn start(faults: Faults) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("amqp://{}/", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State { faults, ..State::default() }));
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Link::new(shared.clone()).serve(stream));
            }
        });
        Self { uri, state }
    }

    /// One that speaks TLS, as `localhost`.
    pub async fn start_tls(config: ServerConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("amqps://localhost:{}/", listener.local_addr().unwrap().port());
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, link) = (acceptor.clone(), Link::new(shared.clone()));
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        link.serve(stream).await;
                    }
                });
            }
        });
        Self { uri, state }
    }

    /// Puts a message into a queue, as if somebody had left it there.
    pub fn leave(&self, queue: &str, body: &[u8]) {
        self.state.lock().unwrap().queues.entry(queue.into()).or_default().push(body.into());
    }

    /// Names of the queues that there are.
    pub fn queues(&self) -> Vec<String> {
        self.state.lock().unwrap().queues.keys().cloned().collect()
    }

    /// All acknowledgements that have come.
    pub fn acknowledgements(&self) -> Vec<basic::Ack> {
        self.state.lock().unwrap().acknowledgements.clone()
    }
}

/// One connection.
struct Link {
    state: Arc<Mutex<State>>,
    machine: server::Connection,
    deliveries: mpsc::UnboundedReceiver<Vec<u8>>,
    delivering: mpsc::UnboundedSender<Vec<u8>>,
    /// Channel, tag and queue of the connection's consumer.
    consumer: Option<(u16, ShortString, String)>,
    delivery_tag: u64,
    is_broken: bool,
}

impl Link {
    fn new(state: Arc<Mutex<State>>) -> Self {
        let properties = FieldTable::new()
            .with("product", "Test broker")
            .with("version", "1")
            .with("capabilities", server::capabilities());
        let config = server::Config { server_properties: properties, ..Default::default() };
        let (delivering, deliveries) = mpsc::unbounded_channel();
        Self {
            state,
            machine: server::Connection::new(Arc::new(config), Instant::now()),
            deliveries,
            delivering,
            consumer: None,
            delivery_tag: 0,
            is_broken: false,
        }
    }

    async fn serve(mut self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut input = Vec::new();
        let drips = self.state.lock().unwrap().faults.drips;
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
                    if let Ok(body) = self.deliveries.try_recv() {
                        self.deliver(&body);
                    }
                }
                Some(body) = self.deliveries.recv(), if !drips => self.deliver(&body),
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

    fn act(&mut self, event: Event<'_>) {
        match event {
            Event::Login { .. } => self.machine.login_accepted(Instant::now()),
            Event::Open { .. } => self.machine.open_accepted(Instant::now()),
            Event::Publish(publish) => self.publish(&publish),
            Event::LargePublish(publish) => self.publish(&publish.as_publish()),
            Event::Request { channel, method } => self.request(channel, method),
            Event::ChannelOpened { .. }
            | Event::ChannelClosed { .. }
            | Event::PublishBegun { .. }
            | Event::Closed(_) => {}
        }
    }

    fn publish(&mut self, publish: &server::Publish<'_>) {
        let state = self.state.clone();
        let mut state = state.lock().unwrap();
        state.published += 1;
        let (number, faults) = (Some(state.published), state.faults);
        if number == faults.breaks_at || number == faults.closes_at {
            self.is_broken = number == faults.breaks_at;
            if !self.is_broken {
                self.machine.connection_error(541, "out of order", (60, 40), Instant::now());
            }
            return;
        }
        let (exchange, key) =
            (publish.publish.exchange.to_string(), publish.publish.routing_key.to_string());
        let targets = match exchange.as_str() {
            "" => vec![key],
            name => state.exchanges.get(name).cloned().unwrap_or_default(),
        };
        let copies = match number {
            number if number == faults.loses || number == faults.refuses => 0,
            number if number == faults.doubles => 2,
            _ => 1,
        };
        let mut is_routed = false;
        for target in targets {
            if let Some(queue) = state.queues.get_mut(&target) {
                is_routed = true;
                (0..copies).for_each(|_| queue.push(publish.body.to_vec()));
            }
        }
        drop(state);
        if !is_routed && publish.publish.mandatory {
            let returned = basic::Return {
                reply_code: 312,
                exchange: publish.publish.exchange,
                ..Default::default()
            };
            self.message(publish.channel, Method::BasicReturn(returned), publish.body);
        }
        let is_forgotten = faults.forgets_from.is_some_and(|from| number >= Some(from));
        if publish.confirm_seq > 0 && !is_forgotten {
            let delivery_tag = publish.confirm_seq;
            let answer = match number == faults.refuses {
                true => {
                    Method::BasicNack(basic::Nack { delivery_tag, multiple: false, requeue: false })
                }
                false => Method::BasicAck(basic::Ack { delivery_tag, multiple: false }),
            };
            self.machine.transmit(publish.channel, &answer);
        }
    }

    fn request(&mut self, channel: u16, method: Method<'_>) {
        let state = self.state.clone();
        let mut state = state.lock().unwrap();
        let answer = match method {
            Method::QueueDeclare(declare) => {
                let name = declare.queue.to_string();
                if declare.passive && !state.queues.contains_key(&name) {
                    return self.not_found(channel, (50, 10));
                }
                let message_count = state.queues.entry(name).or_default().ready.len() as u32;
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
                state.exchanges.entry(name).or_default();
                Method::ExchangeDeclareOk(exchange::DeclareOk)
            }
            Method::QueueBind(bind) => {
                let bound = state.exchanges.entry(bind.exchange.to_string()).or_default();
                bound.push(bind.queue.to_string());
                Method::QueueBindOk(queue::BindOk)
            }
            Method::QueueDelete(delete) => {
                state.queues.remove(&delete.queue.to_string());
                Method::QueueDeleteOk(queue::DeleteOk { message_count: 0 })
            }
            Method::ExchangeDelete(delete) => {
                state.exchanges.remove(&delete.exchange.to_string());
                Method::ExchangeDeleteOk(exchange::DeleteOk)
            }
            Method::BasicQos(_) => Method::BasicQosOk(basic::QosOk),
            Method::ConfirmSelect(_) => Method::ConfirmSelectOk(confirm::SelectOk),
            Method::BasicCancel(cancel) => {
                if let Some((_, _, name)) = self.consumer.take() {
                    // What was not sent is ready again.
                    self.deliveries.close();
                    let queue = state.queues.entry(name).or_default();
                    while let Ok(body) = self.deliveries.try_recv() {
                        queue.ready.push_back(body);
                    }
                }
                Method::BasicCancelOk(basic::CancelOk { consumer_tag: cancel.consumer_tag })
            }
            Method::BasicAck(ack) => return state.acknowledgements.push(ack),
            Method::BasicConsume(consume) => {
                let name = consume.queue.to_string();
                self.consumer = Some((channel, consume.consumer_tag.into(), name.clone()));
                let queue = state.queues.entry(name).or_default();
                queue.consumers.push(self.delivering.clone());
                let waiting: Vec<_> = queue.ready.drain(..).collect();
                waiting.into_iter().for_each(|body| queue.push(body));
                Method::BasicConsumeOk(basic::ConsumeOk { consumer_tag: consume.consumer_tag })
            }
            other => panic!("{} is not expected", other.name()),
        };
        self.machine.transmit(channel, &answer);
    }

    fn not_found(&mut self, channel: u16, ids: (u16, u16)) {
        self.machine.channel_error(channel, 404, "no such thing", ids, Instant::now());
    }

    fn deliver(&mut self, body: &[u8]) {
        let Some((channel, tag, _)) = self.consumer.clone() else { return };
        self.delivery_tag += 1;
        let deliver = basic::Deliver {
            consumer_tag: tag.as_short_str(),
            delivery_tag: self.delivery_tag,
            redelivered: false,
            exchange: ShortStr::EMPTY,
            routing_key: ShortStr::EMPTY,
        };
        self.message(channel, Method::BasicDeliver(deliver), body);
    }

    fn message(&mut self, channel: u16, method: Method<'_>, body: &[u8]) {
        self.machine.transmit(channel, &method);
        let (out, size) = (self.machine.output(), body.len() as u64);
        write_content_header_frame(channel, basic::CLASS_ID, size, RawProperties::EMPTY, out);
        for piece in body.chunks(100_000) {
            write_body_frame(channel, piece, out);
        }
    }
}
